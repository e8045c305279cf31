"""What the recorder wrote on an H200 (driver 580.159.04, glibc 2.39, Python 3.12) on 2026-12-01, but for the paths.

PyTorch 2.11 with cuDNN 9.19, JAX 0.11.2, CuPy 14.2, numba 0.68, cuda.bindings 13.3, and program.c, linked with cuDNN
9.19 (c_linked_*) or by cuGetProcAddress (c_driver_*); c_cudart is a C program with a static CUDA runtime.
"""

from __future__ import annotations

import gzip
from functools import cache
from pathlib import Path

import pytest

from cudnn_doctor.model import events
from cudnn_doctor.model.events import AnyEvent, Recording
from cudnn_doctor.recorder.read import decode

FOLDER = Path(__file__).parents[1] / "recordings" / "run"


@cache
def recording(name: str) -> Recording:
    return decode(gzip.decompress((FOLDER / f"{name}.events.gz").read_bytes()), name)


def line(event: AnyEvent) -> str:
    """The user's own line: the innermost that is not in an installed package."""
    own = [f for f in event.origin.python if f.file.startswith("/home/user/") and "/site-packages/" not in f.file]
    return f"{own[0].file.removeprefix('/home/user/')}:{own[0].line} {own[0].function}" if own else ""


def decisive(event: AnyEvent) -> bool:
    """Not what healthy programs do."""
    if isinstance(event, events.StreamSet):
        contexts = {event.handle_context, event.stream_context} - {None}
        return bool(event.status != 0 or event.handle_ended_by or event.stream_ended_by or len(contexts) > 1)
    if isinstance(event, events.ContextCreated):
        return event.how != "primary"
    return isinstance(event, (events.ContextEnded, events.CallFailed, events.Forked, events.EndedUsed))


def short(event: AnyEvent) -> str:
    words = [
        getattr(event, "function", "fork"),
        getattr(event, "how", ""),
        str(getattr(event, "status", "")),
        line(event),
    ]
    return " ".join(w for w in words if w)


EXPECTED = {
    "bindings": [
        "cuCtxCreate created bindings.py:5 <module>",
        "cuCtxDestroy destroyed 0 bindings.py:8 <module>",
        "cuMemAlloc 201 bindings.py:9 <module>",
    ],
    "c_cudart": ["cuMemAlloc 2", "cuDevicePrimaryCtxReset reset 0", "cuStreamSynchronize 400"],
    "c_driver_foreign": ["cuCtxCreate created", "cudnnSetStream 2007", "cuEventRecord 400"],
    "c_driver_release": ["cuDevicePrimaryCtxRelease released 0"],
    "c_linked_foreign": ["cuCtxCreate created", "cudnnSetStream 2007", "cuEventRecord 400"],
    "c_linked_fork": ["fork", "cudnnSetStream 4000"],
    "c_linked_handle-destroyed": ["cudnnSetStream 0"],  # cuDNN 9.19 took the dead handle
    "c_linked_healthy": [],
    "c_linked_release": ["cuDevicePrimaryCtxRelease released 0"],
    "c_linked_reset": [
        "cuDevicePrimaryCtxReset reset 0",
        "cudnnSetStream 4000",
        "cuDevicePrimaryCtxRelease released 0",
    ],
    "c_linked_stream-destroyed": ["cudnnSetStream None"],  # SIGSEGV in it
    "cupy_foreign": ["cuCtxCreate created cupy_foreign.py:5 <module>", "cublasSetStream 0 cupy_foreign.py:7 <module>"],
    "cupy_healthy": [],
    "jax_healthy": [],
    "jax_reset": ["cuDevicePrimaryCtxReset reset 0 jax_reset.py:7 other_library"],  # then SIGSEGV without a word
    "numba_close": [
        "cuDevicePrimaryCtxRelease released 0 numba_close.py:4 <module>",
        "cuDevicePrimaryCtxReset reset 0 numba_close.py:4 <module>",
    ],
    "torch_dataloader": [],
    "torch_foreign": [
        "cuCtxCreate created torch_foreign.py:5 <module>",
        "cudnnSetStream 2007 torch_foreign.py:7 <module>",
        "cuEventRecord 400 torch_foreign.py:7 <module>",
    ],
    "torch_fork": ["fork", "cudaGetDevice 3 torch_fork.py:5 <module>", "cudaGetLastError 3 torch_fork.py:5 <module>"],
    "torch_healthy": [],
    "torch_illegal": [
        "cuLaunchKernel 700 torch_illegal.py:17 <module>",
        "cudnnBackendExecute 5003 torch_illegal.py:17 <module>",
    ],
    "torch_oom": [
        "cuMemAlloc 2 torch_oom.py:4 load_everything",
        "cudaMalloc 2 torch_oom.py:4 load_everything",
        "cudaGetLastError 2 torch_oom.py:4 load_everything",
        "cuMemAlloc 2 torch_oom.py:4 load_everything",
        "cudaMalloc 2 torch_oom.py:4 load_everything",
    ],
    "torch_reset": [
        "cuDevicePrimaryCtxReset reset 0 torch_reset.py:5 other_library",
        "cudnnSetStream 0 torch_reset.py:7 <module>",  # a null stream is in no context that could be gone
        "cuDevicePrimaryCtxRelease released 0 torch_reset.py:7 <module>",
        "cuLaunchKernel 700 torch_reset.py:7 <module>",
        "cudaGetLastError 700 torch_reset.py:7 <module>",
    ],
    "torch_reset_new_stream": [
        "cuDevicePrimaryCtxReset reset 0 torch_reset_new_stream.py:5 <module>",
        "cudnnSetStream 2007 torch_reset_new_stream.py:8 <module>",
        "cuEventRecord 709 torch_reset_new_stream.py:8 <module>",
    ],
    "torch_stream_destroyed": ["cudnnSetStream None torch_stream_destroyed.py:13 <module>"],  # SIGSEGV in it
}


def test_each_recording_is_here() -> None:
    assert {f.name.removesuffix(".events.gz") for f in FOLDER.glob("*.events.gz")} == set(EXPECTED)


@pytest.mark.parametrize("name", EXPECTED)
def test_what_decides(name: str) -> None:
    found = recording(name)
    assert (found.damage, found.dropped, found.incomplete) == ("", 0, 0)
    assert [short(e) for e in found.events if decisive(e)] == EXPECTED[name]


def test_the_foreign_stream_names_both_contexts() -> None:
    found = recording("torch_foreign").events
    pair = next(e for e in found if isinstance(e, events.StreamSet) and e.status == 2007)
    by_seq = {e.seq: e for e in found}
    stream, handle = by_seq[pair.stream_created_by or 0], by_seq[pair.handle_created_by or 0]
    assert isinstance(stream, events.StreamCreated)
    assert isinstance(handle, events.HandleCreated)
    assert line(stream) == "torch_foreign.py:5 <module>"
    assert stream.context == pair.stream_context != pair.handle_context == handle.context
    assert handle.path == "/home/user/venv/lib/python3.12/site-packages/nvidia/cudnn/lib/libcudnn.so.9"
    assert handle.origin.native[0].module.endswith("/torch/lib/libtorch_cuda.so")


def test_a_crash_names_the_stream_and_who_ended_it() -> None:
    found = recording("torch_stream_destroyed").events
    last = [e for e in found if isinstance(e, events.StreamSet)][-1]
    end = next(e for e in found if e.seq == last.stream_ended_by)
    assert last.status is None
    assert isinstance(end, events.StreamEnded)
    assert line(end) == "torch_stream_destroyed.py:10 shutdown_of_the_other_library"
    assert not any(isinstance(e, events.LibraryUnloaded) for e in found)


def test_memory_at_the_allocation_that_failed() -> None:
    failed = [e for e in recording("torch_oom").events if isinstance(e, events.CallFailed) and e.requested]
    assert {e.requested for e in failed} == {200 << 30}
    assert {e.memory_total for e in failed} == {150109880320}
    assert all(e.memory_free and e.memory_free < e.memory_total for e in failed if e.memory_total)


def test_a_thread_of_jax_is_no_python_thread() -> None:
    found = recording("jax_healthy").events
    made = next(e for e in found if isinstance(e, events.ContextCreated))
    assert made.origin.python_unknown == "not a python thread"
    assert made.origin.native[0].module.endswith("/xla_cuda_plugin.so")


def test_a_thread_of_autograd_has_no_frame() -> None:
    made = [
        e for e in recording("torch_healthy").events if isinstance(e, events.HandleCreated) and e.library == "cudnn"
    ]
    assert [(e.origin.thread, e.origin.python_unknown) for e in made] == [
        ("python3", ""),
        ("pt_autograd_0", "no python frame"),
    ]


def test_a_forked_child_fails_in_its_first_call() -> None:
    found = recording("torch_fork")
    fork = next(e for e in found.events if isinstance(e, events.Forked))
    failed = next(e for e in found.events if isinstance(e, events.CallFailed))
    assert (fork.parent, fork.initialised) == (found.process.pid, True)
    assert failed.origin.pid == fork.origin.pid != found.process.pid
