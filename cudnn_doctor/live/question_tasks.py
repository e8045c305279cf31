"""Bodies of the two questions that need no GPU. Child side, standard library only."""

from __future__ import annotations

import ctypes
from typing import Any

from cudnn_doctor.live.session import mapped
from cudnn_doctor.live.wire import Wire
from cudnn_doctor.native.cuda import Libcuda
from cudnn_doctor.native.cudnn import Cudnn


def versions(wire: Wire, args: dict[str, Any], _shared: dict[str, Any]) -> None:
    """cudnnGetVersion and cudnnGetCudartVersion of `args["path"]`."""
    wire.send(next="dlopen")
    for other in args.get("preload", ()):
        ctypes.CDLL(other)
    library = Cudnn(args["path"])
    wire.send(did="dlopen", status=0)
    for name in ("cudnnGetVersion", "cudnnGetCudartVersion"):
        wire.send(next=name)
        wire.send(did=name, value=int(getattr(library, name)()))


def driver(wire: Wire, args: dict[str, Any], _shared: dict[str, Any]) -> None:
    """cuDriverGetVersion and cuInit of `args["path"]`, or of the libcuda that the loader finds."""
    wire.send(next="dlopen")
    library = Libcuda(args["path"])
    wire.send(did="dlopen", status=0)
    wire.note("library", mapped("libcuda.so") or args["path"])
    version = wire.call("cuDriverGetVersion", library.driver_version, decode=library.decode)
    wire.note("driver version", version.value if version.status == 0 else None)
    wire.call("cuInit", library.init, decode=library.decode)
