"""What cuDNN prints before it gives up, read for the name of the file that is really missing."""

from __future__ import annotations

import re
from typing import NamedTuple

CANNOT_OPEN = "cannot open shared object file"


class LoaderMessage(NamedTuple):
    """One line of cuDNN's own loader or of dlopen."""

    missing: str  # the file to look for; "" when everything was found and does not fit together
    victim: str  # the library that cuDNN was loading then
    line: str
    misfit: str = ""  # path of a file that lacks a symbol which the others want: it is of another release


def loader_message(text: str) -> LoaderMessage | None:
    """The first such line in what a child printed, None when there is none.

    The forms were measured with the wheels of 8.5, 8.9, 9.1, 9.19 and 9.27. The library named first is mostly the
    victim; what is missing is named after "Error:".
    """
    for line in text.splitlines():
        message = _of_8(line) or _of_9(line) or _of_dlopen(line)
        if message:
            return message
    return None


def _of_8(line: str) -> LoaderMessage | None:
    """ "Could not load library libcudnn_ops_infer.so.8. Error: libcublas.so.11: cannot open shared object file"."""
    found = re.search(r"Could not load (?:library|symbol \w+ from) (\S+?)\. Error: (.{0,300})", line)
    if found is None:
        found = re.search(r"Could not load symbol (\w+)\. Error: (.{0,300})", line)
    if found is None:
        return None
    victim, error = found[1], found[2]
    name = error.partition(":")[0].strip()
    missing = _base(name) if CANNOT_OPEN in error else ""
    misfit = name if "undefined symbol" in error and ".so" in name else ""
    return LoaderMessage(missing=missing, victim=victim, line=line.strip(), misfit=misfit)


def _of_9(line: str) -> LoaderMessage | None:
    """ "Unable to load any of {libcudnn_ops.so.9.1.0, libcudnn_ops.so.9.1, libcudnn_ops.so.9, libcudnn_ops.so}": the
    file is missing, or there and of another version (its dlerror is not printed)."""
    found = re.search(r"Unable to load any of \{([^}]{1,400})\}", line)
    if found:
        names = [n.strip() for n in found[1].split(",")]
        soname = next((n for n in names if re.fullmatch(r"\S+\.so\.\d+", n)), names[0])
        return LoaderMessage(missing=soname, victim=soname, line=line.strip())
    found = re.search(r"Invalid handle\. Cannot load symbol (\w+)", line)
    return LoaderMessage(missing="", victim=found[1], line=line.strip()) if found else None


def _of_dlopen(line: str) -> LoaderMessage | None:
    """ "libcublas.so.12: cannot open shared object file: No such file or directory"."""
    found = re.search(r"(\S+\.so[\w.]*): " + CANNOT_OPEN, line)
    return LoaderMessage(missing=_base(found[1]), victim=_base(found[1]), line=line.strip()) if found else None


def _base(path: str) -> str:
    return path.rpartition("/")[2]
