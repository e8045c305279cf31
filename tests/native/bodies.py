"""Bodies for the real library. Child side."""

from __future__ import annotations

from typing import Any

from cudnn_doctor.live.wire import Wire
from cudnn_doctor.native.cudnn import Cudnn


def names(wire: Wire, args: dict[str, Any], shared: dict[str, Any]) -> None:
    """cudnnGetErrorString of every code in `args["codes"]`."""
    library = Cudnn(args["path"])
    wire.note("names", {code: library.decode(code)[0] for code in args["codes"]})
