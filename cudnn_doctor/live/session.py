"""One child's libcuda and libcudnn behind the wire: what the bodies of scenarios work with. Child side."""

from __future__ import annotations

import ctypes
import threading
from typing import Any

from cudnn_doctor.live.wire import Answer, StopTask, Wire
from cudnn_doctor.native.cuda import LIBCUDA, Bindings, Libcuda
from cudnn_doctor.native.cudnn import Cudnn

NON_BLOCKING = 1  # CU_STREAM_NON_BLOCKING
MAPPED = ("libcudnn", "libcublas", "libnvrtc", "libnvJitLink", "libcudart", "libcuda.so")


class Session:
    """An initialised driver, a loaded cuDNN and, once asked for, the primary context of a device."""

    def __init__(self, wire: Wire, args: dict[str, Any]) -> None:
        self.wire = wire
        self.device: int = args.get("device", 0)
        self.library = self._load(args["cudnn"], args.get("preload", ()))
        self.bindings = self._start_driver()

    # -- opening

    def _load(self, path: str, preload: Any) -> Cudnn:
        for other in preload:
            self._dlopen(other, ctypes.CDLL)
        library = self._dlopen(path, Cudnn)
        if library is None:
            raise StopTask
        cudnn: Cudnn = library
        # The first call makes libcudnn.so.8 and 9 load their sub-libraries; they abort the process when they cannot.
        version = self.number("cudnnGetVersion", cudnn.cudnnGetVersion)
        self.major = version // 10000 if version >= 90000 else version // 1000
        return cudnn

    def _dlopen(self, path: str, load: Any) -> Any:
        self.wire.send(next=f"dlopen {path}")
        try:
            loaded = load(path)
        except OSError as e:
            self.wire.send(did=f"dlopen {path}", status=1, name="not loaded", detail=str(e))
            return None
        self.wire.send(did=f"dlopen {path}", status=0, name="loaded")
        return loaded

    def number(self, name: str, fn: Any) -> int:
        """A native call that returns a number and no status."""
        self.wire.send(next=name)
        value = int(fn())
        self.wire.send(did=name, value=value)
        return value

    def _start_driver(self) -> Bindings:
        """cuInit takes 0.1 s in the driver and importing cuda.bindings as long in Python: they run side by side."""
        libcuda: Libcuda | None = self._dlopen(LIBCUDA, Libcuda)
        if libcuda is None:
            self._stop_without_driver()
            raise StopTask
        status: list[Answer] = []
        thread = threading.Thread(
            target=lambda: status.append(self.wire.call("cuInit", libcuda.init, decode=libcuda.decode))
        )
        thread.start()
        bindings, error = None, ""
        try:
            bindings = Bindings()
        except Exception as e:
            error = f"{type(e).__name__}: {e}"
        thread.join()
        if not status or status[0].status:
            self._stop_without_driver()
        if bindings is None:
            self.wire.note("cuda.bindings", None, error)
            raise StopTask
        self.wire.note("cuda.bindings", bindings.version)
        return bindings

    def _stop_without_driver(self) -> None:
        """What a framework would hear from cuDNN now, then the end."""
        self.wire.call("cudnnCreate", self.library.create, decode=self.library.decode)
        raise StopTask

    # -- calls

    def cuda(self, name: str, *args: Any, label: str = "", must: bool = False) -> Answer:
        """One driver call by name."""
        fn = self.bindings.create_context if name == "cuCtxCreate" else getattr(self.bindings, name)
        return self.wire.call(name, fn, *args, label=label, must=must, decode=self.bindings.decode)

    def cudnn(self, name: str, *args: Any, label: str = "", must: bool = False) -> Answer:
        """One cuDNN call by name; those that give something back through a pointer return it as value."""
        fn: Any
        if name == "cudnnCreate":
            fn = self.library.create
        elif name == "cudnnGetStream":
            fn = self.library.get_stream
        elif name.startswith("cudnnCreate"):
            fn, args = self.library.new, (name,)
        else:
            fn = getattr(self.library, name)
        return self.wire.call(name, fn, *args, label=label, must=must, decode=self.library.decode)

    def primary(self) -> Any:
        """The device's primary context, retained and made current."""
        device = self.cuda("cuDeviceGet", self.device, must=True).value
        context = self.cuda("cuDevicePrimaryCtxRetain", device, must=True).value
        self.cuda("cuCtxSetCurrent", context, must=True)
        return context

    def stream(self, label: str = "") -> int:
        """A new non-blocking stream of the current context."""
        return int(self.cuda("cuStreamCreate", NON_BLOCKING, label=label, must=True).value)

    def handle(self, label: str = "") -> int:
        """A new cuDNN handle in the current context."""
        return int(self.cudnn("cudnnCreate", label=label, must=True).value)


def session(wire: Wire, args: dict[str, Any], shared: dict[str, Any]) -> Session:
    """The child's session, opened by its first task."""
    if "session" not in shared:
        shared["session"] = Session(wire, args)
    opened: Session = shared["session"]
    opened.wire = wire
    return opened


def mapped_libraries() -> list[str]:
    """The CUDA libraries that this process has really loaded, from /proc/self/maps."""
    paths = set()
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
        for line in maps:
            path = line[line.find("/") :].rstrip("\n") if "/" in line else ""
            if path.rpartition("/")[2].startswith(MAPPED):
                paths.add(path)
    return sorted(paths)
