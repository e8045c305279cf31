"""Run by each interpreter under the recorder: streams destroyed in many kinds of Python frame; says in which lines.

Arguments: the stub libraries libcuda and libcudnn. Runs on Python 3.8 and newer.
"""

from __future__ import annotations

import ctypes
import sys
import threading
from typing import Any

cuda, cudnn = ctypes.CDLL(sys.argv[1]), ctypes.CDLL(sys.argv[2])
lines: list[tuple[str, int]] = []


def here() -> int:
    frame = sys._getframe(1)
    lines.append((frame.f_code.co_name, frame.f_lineno))
    return frame.f_lineno


def stream() -> ctypes.c_void_p:
    made = ctypes.c_void_p()
    cuda.cuStreamCreate(ctypes.byref(made), 1)
    return made


def plain() -> None:
    here(), cuda.cuStreamDestroy_v2(stream())


class Größe:  # noqa: PLC2401 - a name that is not ASCII is what is tried
    def methode(self) -> None:
        here(), cuda.cuStreamDestroy_v2(stream())


def generator() -> Any:
    yield 1
    yield here(), cuda.cuStreamDestroy_v2(stream())


def after_many_lines() -> None:
    a = 1
    try:
        raise ValueError(a)
    except ValueError:
        for c in range(3):
            if c == 2:
                # a comment,
                # and another

                here(), cuda.cuStreamDestroy_v2(stream())


def by_callback(callback: Any) -> None:
    ctypes.CFUNCTYPE(None)(callback)()  # a C function that calls Python


def with_gil() -> None:
    here(), ctypes.PyDLL(sys.argv[1]).cuStreamDestroy_v2(stream())


def main() -> None:
    plain()
    Größe().methode()
    list(generator())
    after_many_lines()
    by_callback(plain)
    with_gil()
    thread = threading.Thread(target=plain)
    thread.start()
    thread.join()
    far = compile("\n" * 70000 + "here(), cuda.cuStreamDestroy_v2(stream())", "<далеко>", "eval")
    eval(far, globals())  # noqa: S307 - code of ours


main()
sys.stdout.write(repr(lines))
