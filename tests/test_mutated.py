"""Recordings that somebody damaged, by chance or on purpose: judged, or refused with exit 2 and a reason.

`python -m tests.test_mutated 20000` makes the long run whose counts are in .github/SECURITY.md.
"""

from __future__ import annotations

import copy
import json
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from cudnn_doctor import recordings
from cudnn_doctor.model.base import encode
from cudnn_doctor.model.errors import UsageError
from cudnn_doctor.model.options import Options
from cudnn_doctor.render import Format, render
from cudnn_doctor.rules.judge import judge
from tests import _cli

TODAY = date(2026, 12, 1)
FORMS: tuple[Format, ...] = ("text", "json", "markdown", "junit", "sarif", "github", "html")
HOSTILE: tuple[Any, ...] = (
    None, True, -1, 0, 2**63, 2**80, 1e308, float("nan"), "", "\x00", "\x1b[31m[bold]::error::</script>", "\u202e",
    "\ud800",
    "9" * 5000, "9.1", "GPU-", "/" * 300, "../" * 50, [], {}, [[]] * 50, {"kind": "known"},
    {"kind": "absent", "reason": "x"},
)  # fmt: skip


def mutated(document: Any, rng: random.Random) -> str:
    """JSON of the document with one to four places changed, taken away, doubled or cut."""
    tree = json.loads(json.dumps(document))
    for _ in range(rng.randint(1, 4)):
        node, key = rng.choice(list(places(tree)))
        what = rng.randrange(5)
        if what == 0:
            del node[key]
        elif what == 1:
            alike = [h for h in HOSTILE if type(h) is type(node[key])]
            node[key] = copy.deepcopy(rng.choice(alike if alike and rng.random() < 0.8 else HOSTILE))
        elif what == 2 and isinstance(node[key], str):
            node[key] = node[key][: rng.randrange(len(node[key]) + 1)] + rng.choice(
                ("", "\x00", "\U0001f600", "9" * 40)
            )
        elif what == 3 and isinstance(node[key], list):
            node[key] = node[key] * rng.choice((2, 30))
        else:
            other, there = rng.choice(list(places(tree)))
            node[key] = json.loads(json.dumps(other[there]))  # a copy: an ancestor would hold itself
    text = json.dumps(tree)
    return text[: rng.randrange(len(text))] if rng.random() < 0.05 else text


def places(node: Any) -> Iterator[tuple[Any, Any]]:
    """Every place in a tree of JSON."""
    items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, value in list(items):
        yield node, key
        yield from places(value)


def outcome(text: str, folder: Path, was: str, form: Format) -> str:
    """What became of one recording: "refused", or the verdict.

    Raises:
        AssertionError: no verdict and no reason.
    """
    path = folder / "box.json"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    try:
        report = judge(recordings.load(str(path)), Options(), TODAY)
    except UsageError as e:
        return f"refused{'' if str(e) else ' without a word'}"
    assert report.verdict in ("ok", "problem", "no-verdict")
    crashed = [f.title for f in report.findings if f.status == "crashed"]
    assert not crashed or report.verdict != "ok", crashed
    render(report, form, width=100, color=False, encoding="utf-8")
    return f"{was} became {report.verdict}{' (one probe or rule failed)' if crashed else ''}"


def run(count: int, seed: int) -> Counter[str]:
    """So many mutated recordings, each rendered in one of the forms."""
    rng = random.Random(seed)  # noqa: S311  not for a secret
    boxes = {name: json.loads(encode(_cli.judged(facts))) for name, facts in _cli.recorded_cases().items()}
    said: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        for n in range(count):
            name = rng.choice(sorted(boxes))
            said[outcome(mutated(boxes[name], rng), Path(folder), boxes[name]["verdict"], FORMS[n % len(FORMS)])] += 1
    return said


@pytest.mark.parametrize("seed", range(4))
def test_a_damaged_recording_gives_a_verdict_or_a_reason(seed: int) -> None:
    said = run(60, seed)
    assert sum(said.values()) == 60
    assert said["refused"] > 0


if __name__ == "__main__":
    print(run(int(sys.argv[1]), 16))  # noqa: T201  a tool for the maintainers
