"""A fleet made from the report of a real H200: reports that differ in all that differs between real nodes (UUIDs, buses
stay, memory, temperature, times, the node's own name), and outliers planted in some of them."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

RECORDINGS = Path(__file__).parents[1] / "recordings"
Document = dict[str, Any]


@cache
def _recorded() -> str:
    return (RECORDINGS / "h200-check-report.json").read_text(encoding="utf-8")


def report(name: str, seed: int = 0) -> Document:
    """The report of one healthy node, with volatile values of its own."""
    random = Random(f"{name} {seed}")  # noqa: S311 - no secret
    document: Document = json.loads(_recorded())
    snapshot = document["snapshot"]
    snapshot["taken_at"] = f"2026-11-30T16:{random.randrange(60):02}:{random.randrange(60):02}Z"
    snapshot["host"]["environment"]["CUDA_CACHE_PATH"] = f"/scratch/{name}/cache"
    for gpu in snapshot["gpus"]["value"]:
        gpu["uuid"]["value"] = "GPU-" + "".join(random.choice("0123456789abcdef") for _ in range(32))
        gpu["memory_used"]["value"] = random.randrange(10**9)
        gpu["memory_free"]["value"] = random.randrange(10**11)
        gpu["temperature"]["value"] = random.randrange(25, 60)
    for finding in document["findings"]:
        if finding["code"] == "CD206":
            finding["title"] = f"Not slowed down, {random.randrange(25, 60)} degrees Celsius"
    return document


def _driver(document: Document) -> None:
    for name in ("version", "kernel_module"):
        document["snapshot"]["driver"][name]["value"] = "570.86.15"


def _package(document: Document) -> None:
    for package in document["snapshot"]["packages"]["value"]:
        if package["name"] == "nvidia-cudnn-cu13":
            package["version"] = "9.14.0.64"


def _variable(document: Document) -> None:
    document["snapshot"]["host"]["environment"]["LD_LIBRARY_PATH"] = "/opt/old/lib64"


def _kernel(document: Document) -> None:
    document["snapshot"]["host"]["kernel"]["value"] = "5.15.0-91-generic"


def _ecc(document: Document) -> None:
    document["snapshot"]["gpus"]["value"][0]["ecc"]["value"] = False


def _loads(document: Document) -> None:
    for resolution in document["snapshot"]["resolutions"]:
        if resolution["consumer"] == "torch":
            resolution["real_path"]["value"] = "/opt/old/lib64/libcudnn.so.9.1.0"


def _limit(document: Document) -> None:
    document["snapshot"]["host"]["limits"]["stack"]["value"] = 1 << 20


# What is planted, and the only section in which it shows.
OUTLIERS: tuple[tuple[str, Callable[[Document], None]], ...] = (
    ("driver", _driver),
    ("packages", _package),
    ("variables", _variable),
    ("system", _kernel),
    ("gpus", _ecc),
    ("cudnn", _loads),
    ("limits", _limit),
)


def bad(document: Document) -> None:
    """An error that decides: the live check of this node failed."""
    finding = copy.deepcopy(next(f for f in document["findings"] if f["code"] == "CD413" and f["status"] == "problem"))
    finding.update(code="CD601", severity="error", owner="node", subject="GPU 0", title="cudnnCreate fails")
    document["findings"].append(finding)
    document.update(verdict="problem", exit_code=1, reason="CD601 GPU 0: cudnnCreate fails")


def fleet(number: int, share: float = 0.01) -> Iterator[tuple[str, str, bytes]]:
    """Name, planted section ("" for none) and report of each node; every 1/`share`-th is an outlier."""
    every = round(1 / share) if share else number + 1
    width = len(str(number))
    for i in range(1, number + 1):
        name = f"node{i:0{width}}"
        document = report(name)
        planted = ""
        if i % every == every // 2:
            planted, change = OUTLIERS[(i // every) % len(OUTLIERS)]
            change(document)
        yield name, planted, json.dumps(document, indent=2).encode() + b"\n"
