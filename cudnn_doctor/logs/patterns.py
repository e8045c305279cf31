"""The authored YAML of explain in one JSON file, so that a ticket needs no YAML reader.

`knowledge/explain.json` is made when the package is built (.ci/build_hook.py) and never committed. It tells which YAML
it was made of; where that has changed since, as in a checkout at work, or where there is no such file, the YAML itself
is compiled. The matrix goes in as results: the compatibility rules of part 1, asked for every release and GPU.
"""

from __future__ import annotations

import os
import re
from functools import cache

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# Strings, no pathlib: its import takes longer than reading the file.
PACKAGE = os.path.dirname(os.path.dirname(__file__))
FILE = os.path.join(PACKAGE, "knowledge", "explain.json")
SOURCES = ("signatures", "statements", "causes", "facts", "ranking", "questions", "circumstances", "experiments")


@cache
def load() -> dict[str, Any]:
    """Signatures, statements, facts, ranking, causes, questions and the matrix's answers."""
    return stored() or compile_all()


def stored() -> dict[str, Any] | None:
    """The content of explain.json, where there is one that was made of today's YAML."""
    import json

    try:
        with open(FILE, "rb") as file:
            data: dict[str, Any] = json.load(file)
    except FileNotFoundError:
        return None
    return data if data["made_of"] == _sum() else None


def write() -> None:
    """Makes explain.json; for the build of the package."""
    import json

    with open(FILE, "w", encoding="utf-8") as file:
        json.dump(compile_all(), file, ensure_ascii=False)


def _sum() -> int:
    """A checksum of the YAML and of this compiler."""
    from zlib import crc32

    matrix = os.path.join(PACKAGE, "compat_matrix.yaml")
    if not os.path.exists(matrix):  # a checkout has it at the top
        matrix = os.path.join(os.path.dirname(PACKAGE), "compat_matrix.yaml")
    total = 0
    for path in (*(os.path.join(PACKAGE, "knowledge", f"{name}.yaml") for name in SOURCES), matrix, __file__):
        with open(path, "rb") as file:
            total = crc32(file.read(), total)
    return total


def compile_all() -> dict[str, Any]:
    """The content of explain.json, from the YAML."""
    from cudnn_doctor.knowledge.load import knowledge

    signatures = [_signature(s) for s in knowledge("signatures")]
    says = [_signature({**s, "kind": "says"}) for s in knowledge("statements")]
    causes = {c["id"]: {k: v for k, v in c.items() if k not in ("id", "source")} for c in knowledge("causes")}
    return {
        "made_of": _sum(),
        "signatures": signatures,
        "statements": says,
        "facts": _facts(knowledge("facts")),
        "ranking": knowledge("ranking"),
        "causes": causes,
        "questions": knowledge("questions"),
        "circumstances": _plain(knowledge("circumstances")),
        "experiments": knowledge("experiments"),
        "tables": _tables(),
    }


def _plain(table: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Without the examples, which are for tests."""
    return [{k: v for k, v in entry.items() if k not in ("examples", "not")} for entry in table]


_SUSPECTED = frozenset({"memory", "driver", "arch"})  # kinds that people name by suspicion


def _facts(table: dict[str, Any]) -> dict[str, Any]:
    """With the letters that a framework's words begin with, for a test without regular expressions."""
    frameworks = [{**f, "stems": _stems(f["words"])} for f in table["frameworks"]]
    return {"frameworks": frameworks, "systems": [{"words": s, "stems": _stems(s)} for s in table["systems"]]}


def _needed(regex: str, begun: str = "") -> str:
    """The expression without lookarounds, optional groups and the brackets of the other ones. Groups after a word of
    the same alternative (`begun` before the expression) go as well: the word is enough."""
    at = regex.find("(") if "\\(" not in regex else re.sub(r"\\.", "__", regex).find("(")
    if at < 0:
        return regex
    depth, end = 0, at
    for end in range(at, len(regex)):
        if regex[end - 1] != "\\":
            depth += (regex[end] == "(") - (regex[end] == ")")
        if not depth:
            break
    inside, rest, before = regex[at + 1 : end], regex[end + 1 :], regex[:at]
    begun = before.rsplit("|", 1)[1] if "|" in before else begun + before
    optional = inside[1:2] in "!=<" or rest[:1] in ("?", "*")
    dropped = optional or re.search(r"(?<![A-Za-z])[a-z]{3}", begun) is not None
    kept = "\0" if dropped else _needed(inside.removeprefix("?:"))
    return f"{before}{kept}{_needed(rest[1:] if rest[:1] == '?' else rest, begun)}"


def _stems(words: str) -> list[str]:
    """Letters of which one must occur where the expression matches: the longest run of each alternative, without what
    is optional."""
    plain = re.sub(r"(?:\\.|\[[^]]*\]|[\w ])(?:[?*]|\{0[^}]*\})|\{[^}]*\}|\\[a-zA-Z]|\[[^]]*\]", "\0", _needed(words))
    plain = plain.replace("\\.", ".").lower()
    runs = ([run.strip() for run in re.findall(r"[a-z0-9. \u0080-\uffff]+", part)] for part in plain.split("|"))
    return list(dict.fromkeys(max(alternative, key=len) for alternative in runs if alternative))


def _signature(entry: dict[str, Any]) -> list[Any]:
    from cudnn_doctor.logs.signatures import form

    return [
        entry["id"],
        entry["kind"],
        entry["anchor"],
        form(entry["pattern"]),
        entry["pattern"],
        entry.get("framework", ""),
        entry.get("call", ""),
        entry.get("hearsay", entry["kind"] in _SUSPECTED or entry.get("success", False)),
        entry.get("also", ()),
        entry.get("success", False),
    ]


def _tables() -> dict[str, Any]:
    from cudnn_doctor.knowledge.load import knowledge
    from cudnn_doctor.matrix.compat import service
    from cudnn_doctor.matrix.load import load_matrix
    from cudnn_doctor.model.versions import capability, numbers, within

    matrix = load_matrix()
    drivers: dict[str, tuple[str, str]] = {}
    for row in matrix.cuda:
        span = matrix.minor_compat_row(row.cuda)
        drivers[row.cuda] = (span.linux if span else row.linux, span.windows if span else row.windows)
    wheels: dict[str, dict[str, Any]] = {"tensorflow": {}, "pytorch": {}}

    def serves(capabilities: tuple[str, ...]) -> dict[str, str]:
        found: dict[str, str] = {}
        carried = [numbers(capability(c)) for c in capabilities]
        for gpu in matrix.gpus:
            if carried and service(capabilities, gpu.cc) != "native":
                found[gpu.cc] = "newer" if numbers(gpu.cc) > max(carried) else "older"
        return {cc: word for cc, word in found.items() if word == "newer" or numbers(cc) < min(carried)}

    for tf in matrix.tensorflow:
        cuda = tf.wheel_cuda or tf.cuda
        served = serves(tf.capabilities)
        wheels["tensorflow"][tf.version] = {"cuda": cuda, "cudas": [cuda] if cuda else [], "serves": served}
    for torch in matrix.torch:
        variants = [v for v in matrix.torch_variants if within(torch.version, v.first, v.last)]
        each = [serves(torch.capabilities), *(serves(v.capabilities) for v in variants)]
        wheels["pytorch"][torch.version] = {
            "cuda": torch.cuda,
            "cudas": [c for c in (torch.cuda, *(v.cuda for v in variants)) if c],
            "serves": {cc: word for cc, word in each[0].items() if all(other.get(cc) == word for other in each)},
        }
    for framework, releases in knowledge("facts")["old_wheels"].items():
        for release, cudas in releases.items():
            known = wheels[framework].setdefault(release, {"cuda": cudas[0], "cudas": [], "serves": {}})
            known["cudas"] = list(dict.fromkeys((*known["cudas"], *cudas)))
    old = ("2.0", knowledge("facts")["before_cudnn"])
    return {
        "drivers": drivers,
        "gpus": {g.cc: (g.cuda_min, g.cuda_max, g.cudnn_min, g.cudnn_max) for g in matrix.gpus},
        "gpu_names": [(cc, regex, _stems(regex)) for cc, regex in (*((r.cc, r.regex) for r in matrix.gpu_names), old)],
        "wheels": wheels,
        "newest": {"cuda": matrix.cuda[-1].cuda, "cudnn": matrix.newest_cudnn()},
    }
