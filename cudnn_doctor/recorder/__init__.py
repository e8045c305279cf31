"""The recorder: an audit library in C (source/) that follows contexts, streams and handles inside a program.

`run` puts `environment()` into the program's environment, the program's dynamic linker loads the library, and read.py
reads what that wrote. Nothing here imports more than os: it is on the way to the start of the user's program.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

LIBRARY = os.path.join(os.path.dirname(os.path.abspath(__file__)), "recorder.so")
MACHINES = {62: "x86_64", 183: "aarch64"}  # e_machine of an ELF file
FOLDER = "CUDNN_DOCTOR_EVENTS"


def library_path() -> tuple[str, str]:
    """The path of the recorder's library, else "" and why there is none. Starts no process."""
    if not sys.platform.startswith("linux"):
        return "", f"the recorder works on Linux, this is {sys.platform}"
    if not _glibc():
        return "", "the recorder needs glibc's dynamic linker; this system has another libc"
    try:
        with open(LIBRARY, "rb") as stream:
            head = stream.read(20)
    except FileNotFoundError:
        return "", (
            "cudnn-doctor was built without its recorder, since there was no C compiler: "
            "install one (cc), or the package ziglang, and reinstall cudnn-doctor"
        )
    except OSError as error:
        return "", f"{LIBRARY}: {error.strerror}"
    built_for, here = MACHINES.get(int.from_bytes(head[18:20], "little"), "an unknown machine"), os.uname().machine
    if head[:4] != b"\x7fELF" or built_for != here:
        return "", f"{LIBRARY} was built for {built_for}, this is {here}"
    return LIBRARY, ""


def _glibc() -> bool:
    try:
        return (os.confstr("CS_GNU_LIBC_VERSION") or "").startswith("glibc")
    except (ValueError, OSError):  # musl knows no such name
        return False


def environment(path: str, folder: str, environ: Mapping[str, str]) -> dict[str, str]:
    """The variables to add to a program's environment.

    `folder`: absolute and private, where the event files go; the program must be able to write there.
    An audit library that the user has set is kept behind ours.
    """
    theirs = environ.get("LD_AUDIT", "")
    return {"LD_AUDIT": f"{path}:{theirs}" if theirs else path, FOLDER: folder}
