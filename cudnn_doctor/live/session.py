"""One child's libcuda and libcudnn behind the wire: what the bodies of the states work with. Child side."""

from __future__ import annotations

import ctypes
import os
import threading
import time
from collections.abc import Callable
from typing import Any

from cudnn_doctor.live.wire import Answer, StopTask, Wire
from cudnn_doctor.native.cuda import LIBCUDA, Bindings, Libcuda
from cudnn_doctor.native.cudnn import Cudnn

NON_BLOCKING = 1  # CU_STREAM_NON_BLOCKING
MAPPED = ("libcudnn", "libcublas", "libnvrtc", "libnvJitLink", "libcudart", "libcuda.so")


class Session:
    """An initialised driver, a loaded cuDNN and, once asked for, the primary context of a device."""

    def __init__(self, wire: Wire, args: dict[str, Any], more: Callable[[], Any] = lambda: None) -> None:
        """Opens both. Without "cudnn" in `args` the driver and the context come first, then `more` gives the rest.

        Raises:
            StopTask: one of them cannot be opened; the steps say why.
        """
        self.wire = wire
        self.device: int = args.get("device", 0)
        self.other_device: int = args.get("other_device", -1)
        self._primary: dict[int, Any] = {}  # retained contexts by device
        self._second: Any = None
        early = "cudnn" not in args
        ready = True
        if early:
            driver = self._start_driver()
            ready = driver is not None and self._early_context(driver)
            args = self._wait(more)
        self.library = self._load(args["cudnn"], args.get("preload", ()), tuple(args.get("hide", ())))
        if not early:
            driver = self._start_driver()
        if driver is None:
            # What a framework would hear from cuDNN now.
            self.wire.call("cudnnCreate", self.library.create, decode=self.library.decode)
        if driver is None or not ready:
            raise StopTask
        self.bindings = driver

    # -- opening

    def _early_context(self, driver: Bindings) -> bool:
        self.bindings = driver
        try:
            self.primary()
        except StopTask:
            return False
        return True

    def _wait(self, more: Callable[[], Any]) -> dict[str, Any]:
        """The arguments that the parent did not know before; the time does not count."""
        start = time.perf_counter_ns()
        args = more()
        self.wire.note("waited", round((time.perf_counter_ns() - start) / 1e6, 3))
        if not isinstance(args, dict):
            raise StopTask
        return args

    def _load(self, path: str, preload: Any, hide: tuple[str, ...]) -> Cudnn:
        for other in preload:
            self._dlopen(other, ctypes.CDLL)
        cudnn = self._dlopen_hiding(path, hide) if hide else self._dlopen(path, Cudnn)
        if not isinstance(cudnn, Cudnn):
            raise StopTask
        # The first call makes libcudnn.so.8 and 9 load their sub-libraries; they abort the process when they cannot.
        version = self.number("cudnnGetVersion", cudnn.cudnnGetVersion)
        self.major = version // 10000 if version >= 90000 else version // 1000
        return cudnn

    def _dlopen_hiding(self, path: str, hide: tuple[str, ...]) -> Any:
        """Opens cuDNN so that it cannot find what is in `hide` beside it.

        $ORIGIN of a library opened as /proc/self/fd/N is /proc/self/fd, where no library lies: nothing is found by
        RPATH or RUNPATH. Whatever is not hidden is opened beforehand the same way and then found by its soname.
        """
        folder = os.path.dirname(os.path.realpath(path))
        names = sorted(n for n in os.listdir(folder) if n.startswith("libcudnn_") and ".so." in n)
        first = ("graph", "ops_infer", "ops", "cnn_infer", "cnn")  # each needs those before it
        names.sort(key=lambda n: next((i for i, f in enumerate(first) if n.startswith(f"libcudnn_{f}.")), len(first)))
        for name in names:
            if not name.startswith(hide):
                self._dlopen(os.path.join(folder, name), lambda p: ctypes.CDLL(_by_descriptor(p)))
        return self._dlopen(path, lambda p: Cudnn(_by_descriptor(p)))

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
        self.wire.send(next=name, label="")
        value = int(fn())
        self.wire.send(did=name, value=value)
        return value

    def _start_driver(self) -> Bindings | None:
        """cuInit takes 0.1 s in the driver and importing cuda.bindings as long in Python: they run side by side."""
        libcuda: Libcuda | None = self._dlopen(LIBCUDA, Libcuda)
        if libcuda is None:
            return None
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
        self.wire.note("library", mapped("libcuda.so") or LIBCUDA)
        version = libcuda.driver_version()
        self.wire.note("driver version", version[1] if version[0] == 0 else None)
        self.wire.note("cuda.bindings", bindings.version if bindings else None, error)
        return bindings if status and status[0].status == 0 else None

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

    def primary(self, ordinal: int | None = None, *, again: bool = False) -> Any:
        """A device's primary context made current; retained on first use, and `again` after a reset."""
        ordinal = self.device if ordinal is None else ordinal
        if ordinal not in self._primary or again:
            device = self.cuda("cuDeviceGet", ordinal, must=True).value
            name = self.cuda("cuDeviceGetName", 128, device)
            if name.status == 0:
                self.wire.note("device name", name.value.split(b"\0")[0].decode("utf-8", "replace"))
            self._primary[ordinal] = self.cuda("cuDevicePrimaryCtxRetain", device, must=True).value
        self.cuda("cuCtxSetCurrent", self._primary[ordinal], must=True)
        return self._primary[ordinal]

    def new_context(self) -> Any:
        """A context of its own on the device, now current."""
        device = self.cuda("cuDeviceGet", self.device, must=True).value
        return self.cuda("cuCtxCreate", device, must=True).value

    def second_context(self) -> Any:
        """A second context on the device, now current; made once a child, since making one takes 0.1 s."""
        if self._second is None:
            self._second = self.new_context()
        else:
            self.cuda("cuCtxSetCurrent", self._second, must=True)
        return self._second

    def stream(self, label: str = "") -> int:
        """A new non-blocking stream of the current context."""
        return int(self.cuda("cuStreamCreate", NON_BLOCKING, label=label, must=True).value)

    def handle(self, label: str = "") -> int:
        """A new cuDNN handle in the current context."""
        return int(self.cudnn("cudnnCreate", label=label, must=True).value)

    def set_stream(self, handle: int, stream: int, label: str) -> Answer:
        """`cudnnSetStream`."""
        return self.cudnn("cudnnSetStream", handle, stream, label=label)

    def destroy(self, handle: int, *streams: int) -> None:
        """Frees a handle, then streams."""
        self.cudnn("cudnnDestroy", handle)
        for stream in streams:
            self.cuda("cuStreamDestroy", stream)

    # -- what several states do

    def begin_capture(self, stream: int, mode: str) -> None:
        """Begins to capture `stream`; `mode` is GLOBAL, THREAD_LOCAL or RELAXED."""
        value = getattr(self.bindings.CUstreamCaptureMode, f"CU_STREAM_CAPTURE_MODE_{mode}")
        self.cuda("cuStreamBeginCapture", stream, value, must=True)

    def end_capture(self, stream: int, label: str) -> None:
        """Ends the capture and drops its graph."""
        ended = self.cuda("cuStreamEndCapture", stream, label=label)
        if ended.status == 0 and int(ended.value):
            self.cuda("cuGraphDestroy", ended.value)

    def fill_memory(self) -> list[int]:
        """Takes device memory until blocks of 1 MiB fail; returns the blocks."""
        blocks: list[int] = []
        size = 1 << 38
        self.wire.send(next="cuMemAlloc", label="until it fails")
        while size >= 1 << 20:
            status, *memory = self.bindings.cuMemAlloc(size)
            if int(status):
                size //= 2
            else:
                blocks.append(int(memory[0]))
        free, _total = self.cuda("cuMemGetInfo", must=True).values
        self.wire.note("bytes free", free)
        return blocks

    def free_memory(self, blocks: list[int]) -> None:
        """Gives back what `fill_memory` took."""
        for block in blocks:
            self.bindings.cuMemFree(block)


def session(wire: Wire, args: dict[str, Any], shared: dict[str, Any]) -> Session:
    """The child's session, opened by its first task."""
    if "session" not in shared:
        shared["session"] = Session(wire, args, shared.get("more", lambda: None))
    opened: Session = shared["session"]
    opened.wire = wire
    return opened


def bare_create(wire: Wire, args: dict[str, Any]) -> None:
    """cuInit and cudnnCreate, whatever they answer: for states without a device."""
    library = Cudnn(args["cudnn"])
    wire.send(next="cudnnGetVersion")
    wire.send(did="cudnnGetVersion", value=int(library.cudnnGetVersion()))
    libcuda = Libcuda()
    wire.call("cuInit", libcuda.init, label="cuInit", decode=libcuda.decode)
    wire.call("cudnnCreate", library.create, label="cudnnCreate", decode=library.decode)


def _by_descriptor(path: str) -> str:
    """A name for an open file in which its folder does not appear."""
    return f"/proc/self/fd/{os.open(path, os.O_RDONLY | os.O_CLOEXEC)}"


def mapped(name: str) -> str:
    """Path of the loaded library whose file name begins so; "" when there is none."""
    return next((p for p in mapped_libraries() if p.rpartition("/")[2].startswith(name)), "")


def mapped_libraries() -> list[str]:
    """The CUDA libraries that this process has really loaded, from /proc/self/maps."""
    paths = set()
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
        for line in maps:
            path = line[line.find("/") :].rstrip("\n") if "/" in line else ""
            if path.rpartition("/")[2].startswith(MAPPED):
                paths.add(path)
    return sorted(paths)
