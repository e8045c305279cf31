"""Renews cudnn_doctor/redact/gitleaks.json from gitleaks' own rules:

python -m tests.bench.renew_gitleaks config/gitleaks.toml LICENSE COMMIT DATE

The first two are files of https://github.com/gitleaks/gitleaks at COMMIT, of DATE. gitleaks' expressions are written
for Go's RE2, which never runs away; Python's `re` backtracks. What is changed so that they are safe there, and fit for
text that is to be redacted and not source code that is to be reported:

- `(?i)` in the middle becomes a group of its own; `[[:alnum:]]` and `\\z` are spelt as `re` knows them
- the leading `[\\w.-]{0,50}?` goes: only the value is replaced, and it would be tried at every character
- the closing quote or blank becomes "no letter or digit follows": a log closes a value with anything
- rules with a repetition without an upper bound around a wildcard (curl, Kubernetes, PEM) are left out; redact/ has
  forms of its own for these, and for passwords (a key word near a value), so that generic-api-key is left out as well
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import tomllib  # type: ignore[import-not-found]  # since Python 3.11; this is a maintainer's tool

TARGET = Path(__file__).parents[2] / "cudnn_doctor" / "redact" / "gitleaks.json"
OWN_FORMS = {
    "curl-auth-header", "curl-auth-user", "generic-api-key", "hashicorp-tf-password", "kubernetes-secret-yaml",
    "nuget-config-password", "private-key", "jwt",
}  # fmt: skip
CLOSE = "(?:[\\x60'\"\\s;]|\\\\[nr]|$)"
LEAD = "[\\w.-]{0,50}?"
NEAR = "[\\s'\"]{0,3}(?:=|>|:{1,3}=|"
UNBOUNDED = 1000  # instead of no bound


def portable(expression: str) -> str:
    """The expression as `re` takes it."""
    text = expression.replace("[[:alnum:]]", "[A-Za-z0-9]").replace("\\z", "\\Z").replace(LEAD, "")
    text = text.replace(CLOSE + "|\\b", CLOSE).replace("(?:[\\x60'\"\\s;]|\\\\[nr]|$|\\b)", CLOSE)
    text = text.replace(CLOSE, "(?![A-Za-z0-9])")
    return _bounded(_scoped(text))


def _scoped(text: str) -> str:
    """`a(?i)b` as `a(?i:b)`: the flag holds to the end of the group around it."""
    at = text.find("(?i)", 1)
    while at > 0:
        depth, end = 0, at + 4
        while end < len(text) and depth >= 0:
            if text[end] == "\\":
                end += 1
            elif text[end] == "[":
                end = text.index("]", end + 2)
            else:
                depth += {"(": 1, ")": -1}.get(text[end], 0)
            end += depth >= 0
        text = f"{text[:at]}(?i:{text[at + 4 : end]}){text[end:]}"
        at = text.find("(?i)", 1)
    return text


def _bounded(text: str) -> str:
    """`+` and `{n,}` with an upper bound."""
    text = re.sub(r"\{(\d+),\}", lambda m: f"{{{m[1]},{UNBOUNDED}}}", text)
    return re.sub(r"(?<=[\])wSd])\+(?!\?)", f"{{1,{UNBOUNDED}}}", text)


def rule(raw: dict[str, Any]) -> dict[str, Any] | None:
    """One rule of ours; None for what is left out."""
    expression = raw.get("regex", "")
    if not expression or raw["id"] in OWN_FORMS:
        return None
    made: dict[str, Any] = {"id": raw["id"], "regex": portable(expression), "keywords": raw["keywords"]}
    re.compile(made["regex"])
    if raw.get("entropy"):
        made["entropy"] = raw["entropy"]
    if NEAR in expression:
        made["near"] = True
    if raw.get("secretGroup"):
        made["group"] = raw["secretGroup"]
    return made


def main() -> None:
    """Writes the file."""
    toml, licence, commit, date = sys.argv[1:]
    rules = [r for r in map(rule, tomllib.loads(Path(toml).read_text())["rules"]) if r]
    document = {
        "source": "https://github.com/gitleaks/gitleaks/blob/" + commit + "/config/gitleaks.toml",
        "date": date,
        "changed": "tests/bench/renew_gitleaks.py says how",
        "licence": Path(licence).read_text(),
        "rules": rules,
    }
    head = json.dumps({**document, "rules": []}, indent=1)[: -len("[]\n}")]
    TARGET.write_text(head + "[\n" + ",\n".join("  " + json.dumps(r) for r in rules) + "\n ]\n}\n")


if __name__ == "__main__":
    main()
