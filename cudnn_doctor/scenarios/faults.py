"""What the states with a faulting kernel share: a kernel from PTX, then cuDNN on the poisoned context. Not a state."""

from __future__ import annotations

from typing import Any

from cudnn_doctor.live.session import Session
from cudnn_doctor.live.wire import StopTask

# PTX language and target to try in turn: old drivers know only the first, new ones may have dropped it.
TARGETS = (("6.0", "sm_50"), ("6.0", "sm_60"), ("6.4", "sm_75"), ("7.0", "sm_80"), ("7.8", "sm_90"), ("8.6", "sm_100"))


def after_fault(s: Session, body: str, head: str = "") -> None:
    """Runs the kernel, waits for its error, then sets streams and makes a handle. `body` and `head` are PTX."""
    s.primary()
    handle, untouched, stream = s.handle(), s.handle("without a stream"), s.stream()
    s.set_stream(handle, stream, "before")
    kernel = _kernel(s, body, head)
    s.cuda("cuLaunchKernel", kernel, 1, 1, 1, 1, 1, 1, 0, stream, 0, 0, must=True)
    s.cuda("cuCtxSynchronize", label="fault")
    s.set_stream(handle, stream, "own stream")
    s.set_stream(handle, 0, "NULL stream")
    s.set_stream(untouched, stream, "stream of a handle that had none")
    s.cudnn("cudnnCreate", label="new handle")


def _kernel(s: Session, body: str, head: str) -> Any:
    for version, target in TARGETS:
        ptx = (
            f".version {version}\n.target {target}\n.address_size 64\n{head}"
            f".visible .entry fault() {{\n{body}    ret;\n}}\n"
        )
        module = s.cuda("cuModuleLoadData", ptx.encode() + b"\0", label=target)
        if module.status == 0:
            return s.cuda("cuModuleGetFunction", module.value, b"fault", must=True).value
    raise StopTask
