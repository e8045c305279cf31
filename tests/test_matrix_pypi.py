"""A sample of the matrix against the package index that pip is configured with.

Skipped, with the reason, when it cannot be reached. Read are the JSON pages (PEP 691) and of each wheel its metadata
alone: the `.metadata` file (PEP 658), or where the index has none, the end of the zip by range requests.
"""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
import warnings
import zipfile
from functools import cache
from typing import IO, Any, cast
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from cudnn_doctor.matrix.load import load_matrix
from cudnn_doctor.matrix.requires import specifier_for
from cudnn_doctor.matrix.rows import WheelsRow

MATRIX = load_matrix()
SECONDS = 30
JSON = "application/vnd.pypi.simple.v1+json"


@cache
def index_url() -> str:
    """The index of pip: PIP_INDEX_URL, pip's configuration, else PyPI."""
    configured = subprocess.run(
        [sys.executable, "-m", "pip", "config", "get", "global.index-url"], capture_output=True, text=True, check=False
    )
    url = os.environ.get("PIP_INDEX_URL") or configured.stdout.strip() or "https://pypi.org/simple"
    return url.rstrip("/")


def fetch(url: str, accept: str = "*/*", range_: tuple[int, int] | None = None) -> bytes:
    headers = {"Accept": accept} | ({"Range": f"bytes={range_[0]}-{range_[1]}"} if range_ else {})
    if not url.startswith(("https://", "http://")):
        pytest.skip("pip's index is not on the web")
    try:
        with urlopen(Request(url, headers=headers), timeout=SECONDS) as answer:  # noqa: S310 - checked above
            if range_ and answer.status != 206:
                pytest.skip("the package index serves neither .metadata files nor ranges")
            content: bytes = answer.read()
    except HTTPError as e:
        pytest.skip(f"the package index answers {e.code} for {url.rpartition('/simple/')[2] or url}")
    except (URLError, OSError) as e:
        pytest.skip(f"the package index cannot be reached: {e}")
    return content


@cache
def page(distribution: str) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(fetch(f"{index_url()}/{distribution}/", JSON))
    except ValueError:
        pytest.skip("the package index does not speak JSON (PEP 691)")
    return found


def versions(distribution: str) -> dict[str, bool]:
    """Version -> whether all its files are yanked, from the file names."""
    escaped = distribution.replace("-", "[-_.]")
    found: dict[str, list[bool]] = {}
    for file in page(distribution)["files"]:
        name = re.match(rf"{escaped}-([^-]+?)(?:-[^-]+){{3,4}}\.whl$", file["filename"], re.IGNORECASE)
        if name:
            found.setdefault(name[1], []).append(bool(file.get("yanked")))
    return {version: all(yanked) for version, yanked in found.items()}


class Remote(io.RawIOBase):
    """A file on the web, read by ranges."""

    def __init__(self, url: str, size: int) -> None:
        self.url, self.size, self.at = url, size, 0

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self.at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self.at, io.SEEK_END: self.size}[whence]
        return self.at

    def tell(self) -> int:
        return self.at

    def read(self, count: int = -1) -> bytes:
        end = self.size if count < 0 else min(self.at + count, self.size)
        if end <= self.at:
            return b""
        content = fetch(self.url, range_=(self.at, end - 1))
        self.at += len(content)
        return content


def requirements(distribution: str, version: str, tag: str) -> list[str]:
    """The Requires-Dist lines of one wheel."""
    for file in page(distribution)["files"]:
        name = file["filename"]
        if re.split("-", name)[1] == version and re.search(tag, name) and name.endswith(".whl"):
            if file.get("core-metadata"):
                text = fetch(file["url"] + ".metadata").decode()
            else:
                with zipfile.ZipFile(cast(IO[bytes], Remote(file["url"], file["size"]))) as wheel:
                    inside = next(n for n in wheel.namelist() if n.endswith(".dist-info/METADATA"))
                    text = wheel.read(inside).decode()
            return re.findall(r"^Requires-Dist: (.*)$", text, re.MULTILINE)
    raise AssertionError(f"{distribution} {version} has no {tag} wheel on the index")


@pytest.mark.parametrize("row", MATRIX.cudnn_wheels, ids=lambda r: r.distribution)
def test_cudnn_wheels_exist(row: WheelsRow) -> None:
    there = versions(row.distribution)
    assert [v for v in row.versions if v not in there] == []
    assert [v for v in row.versions if there[v]] == list(row.yanked)
    newer = sorted(v for v in set(there) - set(row.versions) if "dev" not in v and not v.startswith("0.0"))
    if newer:
        warnings.warn(f"{row.distribution}: on the index, not in the matrix: {', '.join(newer)}", stacklevel=1)


@pytest.mark.parametrize("version", ["1.0", "1.15", "2.0", "2.10", "2.14", "2.15", "2.18", "2.20", "2.21"])
def test_releases_of_tensorflow_exist(version: str) -> None:
    row = MATRIX.framework("tensorflow", version)
    assert row is not None
    there = versions("tensorflow")
    assert [r for r in row.releases if r not in there] == []


def test_releases_of_torch_exist() -> None:
    there = versions("torch")
    assert [r for row in MATRIX.torch for r in row.releases if r not in there] == []


def same(ours: str, theirs: str) -> bool:
    return SpecifierSet(ours) == SpecifierSet(theirs)


@pytest.mark.parametrize(
    ("distribution", "version", "tag"),
    [
        ("tensorflow", "2.15.1", "cp310-.*x86_64"),
        ("tensorflow", "2.18.1", "cp310-.*x86_64"),
        ("tensorflow", "2.21.0", "cp310-.*x86_64"),
        ("torch", "2.6.0", "cp310-manylinux.*x86_64"),
        ("torch", "2.11.0", "cp310-manylinux.*x86_64"),
        ("jax-cuda12-plugin", "0.12.0", "manylinux"),
        ("jax-cuda13-plugin", "0.9.0", "manylinux"),
    ],
)
def test_what_wheels_require(distribution: str, version: str, tag: str) -> None:
    framework, plugin = distribution, ""
    if distribution.startswith("jax-"):
        framework, plugin = "jax", distribution.removeprefix("jax-").removesuffix("-plugin")
    row = MATRIX.framework(framework, version, distribution=plugin)
    assert row is not None
    lines = requirements(distribution, version, tag)
    for pin in filter(None, (row.cudnn_pin, row.cuda_pin)):
        ours = Requirement(pin)
        theirs = specifier_for(lines, ours.name)
        assert same(str(ours.specifier), theirs), f"{ours.name}: the matrix says {ours.specifier}, the wheel {theirs}"
