"""Writes knowledge/explain.json anew, after any change of its YAML or the matrix: python -m tests.explain.regenerate"""

from __future__ import annotations

import json
from pathlib import Path

from cudnn_doctor.explain.knowledge import FILE, compile_all


def text() -> str:
    """The file's content: one entry a line, so that a change is readable in a diff."""
    parts = []
    for key, value in compile_all().items():
        if isinstance(value, list) and value:
            body = "[\n" + ",\n".join(json.dumps(v, ensure_ascii=False) for v in value) + "\n]"
        else:
            body = json.dumps(value, ensure_ascii=False)
        parts.append(f"{json.dumps(key)}: {body}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


if __name__ == "__main__":
    Path(FILE).write_text(text(), encoding="utf-8")
