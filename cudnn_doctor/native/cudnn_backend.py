"""cuDNN's backend API by ctypes, for 8 and 9 alike: descriptors as context managers, attributes by their type.

Signatures: cudnn_backend.h of 8.9.7, cudnn_graph.h of 9.1.0, 9.19.0 and 9.27.0 (they agree). Loaded in child processes
alone.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from contextlib import ExitStack
from ctypes import POINTER, c_bool, c_float, c_int, c_int64, c_void_p
from types import TracebackType
from typing import Any

from cudnn_doctor.native.backend_enums import Attr, Descriptor, HeurMode, Type
from cudnn_doctor.native.cudnn import SUCCESS, Cudnn

# What one element of an attribute of each type is. Enums of the header are ints.
ELEMENT: dict[Type, Any] = {
    Type.HANDLE: c_void_p,
    Type.BOOLEAN: c_bool,
    Type.INT64: c_int64,
    Type.FLOAT: c_float,
    Type.VOID_PTR: c_void_p,
    Type.BACKEND_DESCRIPTOR: c_void_p,
}
FUNCTIONS: dict[str, tuple[Any, ...]] = {
    "cudnnBackendCreateDescriptor": (c_int, POINTER(c_void_p)),
    "cudnnBackendDestroyDescriptor": (c_void_p,),
    "cudnnBackendFinalize": (c_void_p,),
    "cudnnBackendSetAttribute": (c_void_p, c_int, c_int, c_int64, c_void_p),
    "cudnnBackendGetAttribute": (c_void_p, c_int, c_int, c_int64, POINTER(c_int64), c_void_p),
    "cudnnBackendExecute": (c_void_p, c_void_p, c_void_p),
}


class BackendError(Exception):
    """A backend call that did not succeed: the call and what it was about, its raw status, that status in words."""

    def __init__(self, what: str, status: int, name: str, detail: str) -> None:
        super().__init__(f"{what}: {status} {name}{': ' + detail if detail else ''}")
        self.what, self.status, self.name, self.detail = what, status, name, detail


class Backend:
    """The backend functions of one loaded libcudnn.

    Raises:
        AttributeError: this libcudnn has no backend API (cuDNN 7 and older).
    """

    def __init__(self, cudnn: Cudnn) -> None:
        self.cudnn = cudnn
        library = ctypes.CDLL(cudnn.path)  # the loaded one again: its functions get types of their own here
        self._functions = {name: getattr(library, name) for name in FUNCTIONS}
        for name, arguments in FUNCTIONS.items():
            self._functions[name].restype, self._functions[name].argtypes = c_int, arguments

    def call(self, name: str, *arguments: Any, about: str = "") -> None:
        """One backend function.

        Raises:
            BackendError: its status is not CUDNN_STATUS_SUCCESS.
        """
        status = int(self._functions[name](*arguments))
        if status != SUCCESS:
            raise BackendError(f"{name} {about}".strip(), status, *self.cudnn.decode(status))

    def new(self, kind: Descriptor) -> BackendDescriptor:
        """An empty descriptor, to be filled, finalised and destroyed."""
        return BackendDescriptor(self, kind)

    def made(self, kind: Descriptor, *attributes: tuple[Attr, Type, Sequence[Any]]) -> BackendDescriptor:
        """A finalised descriptor; destroyed again where an attribute or the finalisation is refused."""
        descriptor = BackendDescriptor(self, kind)
        try:
            for attribute, type_, values in attributes:
                descriptor.set(attribute, type_, values)
            return descriptor.finalized()
        except BaseException:
            descriptor.close()
            raise

    def execute(self, handle: int, plan: BackendDescriptor, pack: BackendDescriptor) -> None:
        """cudnnBackendExecute: queues the plan's kernels, in the handle's stream if the engine is right."""
        self.call("cudnnBackendExecute", handle, plan.pointer, pack.pointer)


class BackendDescriptor:
    """One backend descriptor; a context manager that destroys it. What it refers to must outlive it."""

    def __init__(self, backend: Backend, kind: Descriptor) -> None:
        self.backend, self.kind = backend, kind
        pointer = c_void_p()
        backend.call("cudnnBackendCreateDescriptor", kind, ctypes.byref(pointer), about=kind.name)
        self.pointer = pointer.value

    def __enter__(self) -> BackendDescriptor:
        return self

    def __exit__(self, kind: type[BaseException] | None, e: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Destroys the descriptor; more than once does no harm."""
        if self.pointer is not None:
            pointer, self.pointer = self.pointer, None
            self.backend.call("cudnnBackendDestroyDescriptor", pointer, about=self.kind.name)

    def set(self, attribute: Attr, type_: Type, values: Sequence[Any]) -> None:
        """Sets an attribute; descriptors are given as `BackendDescriptor`s."""
        raw = [v.pointer if isinstance(v, BackendDescriptor) else v for v in values]
        array = (ELEMENT.get(type_, c_int) * len(raw))(*raw)
        self.backend.call(
            "cudnnBackendSetAttribute", self.pointer, attribute, type_, len(raw), array, about=attribute.name
        )

    def finalized(self) -> BackendDescriptor:
        """This descriptor, finalised."""
        self.backend.call("cudnnBackendFinalize", self.pointer, about=self.kind.name)
        return self

    def count(self, attribute: Attr, type_: Type) -> int:
        """How many elements an attribute has."""
        n = c_int64()
        self._get(attribute, type_, 0, n, None)
        return n.value

    def get(self, attribute: Attr, type_: Type, most: int = 1) -> list[Any]:
        """At most `most` elements of an attribute of plain values."""
        n, array = c_int64(), (ELEMENT.get(type_, c_int) * most)()
        self._get(attribute, type_, most, n, array)
        return list(array[: min(n.value, most)])

    def get_descriptors(self, attribute: Attr, kind: Descriptor, most: int) -> list[BackendDescriptor]:
        """At most `most` descriptors of an attribute, copied into new ones that the caller closes."""
        made: list[BackendDescriptor] = []
        try:
            made.extend(BackendDescriptor(self.backend, kind) for _ in range(most))
            n, array = c_int64(), (c_void_p * most)(*(d.pointer for d in made))
            self._get(attribute, Type.BACKEND_DESCRIPTOR, most, n, array)
        except BaseException:
            close_all(made)
            raise
        close_all(made[n.value :])
        return made[: n.value]

    def _get(self, attribute: Attr, type_: Type, most: int, n: c_int64, array: Any) -> None:
        self.backend.call(
            "cudnnBackendGetAttribute",
            self.pointer,
            attribute,
            type_,
            most,
            ctypes.byref(n),
            array,
            about=attribute.name,
        )


def close_all(descriptors: Sequence[BackendDescriptor]) -> None:
    """Destroys all of them, the last first."""
    with ExitStack() as stack:
        for descriptor in descriptors:
            stack.callback(descriptor.close)


def heuristics(backend: Backend, graph: BackendDescriptor, mode: HeurMode, most: int) -> list[BackendDescriptor]:
    """The engine configurations that cuDNN proposes for a graph, best first; the caller closes them.

    Raises:
        BackendError: this version or graph has no such heuristic, or a sub-library is missing.
    """
    heuristic = backend.made(
        Descriptor.ENGINEHEUR,
        (Attr.ENGINEHEUR_OPERATION_GRAPH, Type.BACKEND_DESCRIPTOR, [graph]),
        (Attr.ENGINEHEUR_MODE, Type.HEUR_MODE, [mode]),
    )
    with heuristic:
        n = min(most, heuristic.count(Attr.ENGINEHEUR_RESULTS, Type.BACKEND_DESCRIPTOR))
        return heuristic.get_descriptors(Attr.ENGINEHEUR_RESULTS, Descriptor.ENGINECFG, n)
