"""The backend binding: its numbers against NVIDIA's headers, its calls against the stub and, where one is installed, a
real libcudnn (operation descriptors can be finalised without a GPU)."""

from __future__ import annotations

import ctypes
import json
import os
import re
import sysconfig
from contextlib import ExitStack
from enum import IntEnum
from pathlib import Path

import pytest

from cudnn_doctor.engines.graphs import Graph
from cudnn_doctor.engines.keys import plan_key
from cudnn_doctor.engines.plans import configuration, engine_for, read_choice
from cudnn_doctor.engines.problems import Problem, problems
from cudnn_doctor.native.backend_enums import HEADER_NAMES, Attr, BehaviorNote, Descriptor, HeurMode, Type, note_name
from cudnn_doctor.native.cudnn import Cudnn
from cudnn_doctor.native.cudnn_backend import Backend, BackendError, heuristics
from tests.engines.stub import stub
from tests.native.wheel import real_cudnn

HERE = Path(__file__).parent
HEADERS = ("cudnn_backend.h", "cudnn_ops_infer.h", "cudnn_cnn_infer.h", "cudnn_graph.h")


def read_enums(header: str) -> dict[str, int]:
    """Every enumerator of a cuDNN header with its value; those without one count on from the last."""
    text = re.sub(r"/\*.*?\*/|//[^\n]*|^\s*#[^\n]*", "", header, flags=re.DOTALL | re.MULTILINE)
    values: dict[str, int] = {}
    for body in re.findall(r"\benum\s*\w*\s*\{([^{}]*)\}", text):
        last = -1
        for item in body.split(","):
            found = re.match(r"\s*(\w+)\s*(?:CUDNN_DEPRECATED_ENUM\s*)?(?:=\s*(-?\w+))?", item)
            if found:
                name, value = found.groups()
                last = last + 1 if value is None else values[value] if value in values else int(value.rstrip("UL"), 0)
                values[name] = last
    return values


def test_read_enums_counts_on_and_resolves_names() -> None:
    header = "typedef enum { A = 3, B, /* x, y */ C CUDNN_DEPRECATED_ENUM, D = A, E CUDNN_DEPRECATED_ENUM = 9 } t;"
    assert read_enums(header) == {"A": 3, "B": 4, "C": 5, "D": 3, "E": 9}


def header_name(kind: type[IntEnum], member: IntEnum) -> str:
    prefix, suffix = HEADER_NAMES[kind]
    return f"{prefix}{member.name}{suffix}"


def test_every_number_is_that_of_the_headers() -> None:
    """header_enums.json: name, value and first version, read by `read_enums` from the headers of 8.9.7.29, 9.1.0.70,
    9.19.0.56 and 9.27.0.42 (no value differed between them)."""
    recorded = json.loads((HERE / "header_enums.json").read_text())
    ours = {header_name(kind, m): int(m) for kind in HEADER_NAMES for m in kind}
    assert ours == {name: value for name, (value, _) in recorded.items()}


def installed_headers() -> list[Path]:
    named = os.environ.get("CUDNN_DOCTOR_HEADERS")
    roots = [Path(named)] if named else []
    roots += [Path("/usr/include"), Path("/usr/include/x86_64-linux-gnu"), Path("/usr/local/cuda/include")]
    roots += sorted(Path(sysconfig.get_paths()["purelib"]).glob("nvidia/cudnn*/include"))
    return [r for r in roots if any((r / h).is_file() for h in HEADERS)]


def test_an_installed_header_agrees() -> None:
    for folder in installed_headers() or [real_cudnn().parents[1] / "include"]:
        values: dict[str, int] = {}
        for header in HEADERS:
            if (folder / header).is_file():
                values.update(read_enums((folder / header).read_text(errors="replace")))
        known = {header_name(k, m): int(m) for k in HEADER_NAMES for m in k if header_name(k, m) in values}
        assert len(known) > 90
        assert known == {name: values[name] for name in known}


def test_a_note_of_a_newer_cudnn_is_a_number() -> None:
    assert note_name(BehaviorNote, 0) == "RUNTIME_COMPILATION"
    assert note_name(BehaviorNote, 77) == "77"


# ---------------------------------------------------------------- calls


@pytest.fixture
def backend(monkeypatch: pytest.MonkeyPatch) -> Backend:
    monkeypatch.delenv("STUB_ENGINES", raising=False)
    return Backend(Cudnn(str(stub().cudnn)))


def graph_of(backend: Backend, operation: str = "matmul") -> Graph:
    status, handle = backend.cudnn.create()
    assert status == 0
    chosen: tuple[Problem, ...] = problems(operations=(operation,), data_types=("fp16",))
    return Graph(backend, handle, chosen[0])


def test_a_refused_attribute_names_call_status_and_reason(backend: Backend) -> None:
    with backend.new(Descriptor.TENSOR) as tensor:
        tensor.finalized()
        with pytest.raises(BackendError) as e:
            tensor.set(Attr.TENSOR_UNIQUE_ID, Type.INT64, [1])
    assert str(e.value) == "cudnnBackendSetAttribute TENSOR_UNIQUE_ID: 2000 CUDNN_STATUS_BAD_PARAM: a reason"
    assert (e.value.status, e.value.name, e.value.detail) == (2000, "CUDNN_STATUS_BAD_PARAM", "a reason")


def test_attributes_come_back_as_they_went(backend: Backend) -> None:
    with backend.new(Descriptor.TENSOR) as tensor:
        tensor.set(Attr.TENSOR_DIMENSIONS, Type.INT64, (8, 64, 32, 1 << 40))
        tensor.set(Attr.TENSOR_IS_VIRTUAL, Type.BOOLEAN, [True])
        tensor.finalized()
        assert tensor.get(Attr.TENSOR_DIMENSIONS, Type.INT64, 4) == [8, 64, 32, 1 << 40]
        assert tensor.get(Attr.TENSOR_DIMENSIONS, Type.INT64, 2) == [8, 64]
        assert tensor.count(Attr.TENSOR_DIMENSIONS, Type.INT64) == 4
        assert tensor.get(Attr.TENSOR_IS_VIRTUAL, Type.BOOLEAN) == [True]


def test_a_closed_descriptor_may_be_closed_again(backend: Backend) -> None:
    tensor = backend.new(Descriptor.TENSOR)
    tensor.close()
    tensor.close()
    assert tensor.pointer is None


def test_engines_and_heuristics_of_a_graph(backend: Backend) -> None:
    with graph_of(backend) as graph:
        assert graph.engine_count() == 12
        configs = heuristics(backend, graph.descriptor, HeurMode.A, 13)
        assert [plan_key(*read_choice(c)) for c in configs] == [f"e{i}" for i in range(12)] + ["e0 k2=1"]
        with engine_for(backend, graph.descriptor, 7) as engine, configuration(backend, engine, ((2, 1), (5, 0))) as c:
            assert read_choice(c) == (7, ((2, 1), (5, 0)))
        with pytest.raises(BackendError) as e:
            engine_for(backend, graph.descriptor, 12)
        assert e.value.status == 2000


def test_a_graph_knows_its_tensors(backend: Backend) -> None:
    with graph_of(backend, "conv-bias-relu") as graph:
        seen = [(t.uid, t.role, t.data_type, t.bytes) for t in graph.tensors]
    size = 8 * 64 * 32 * 32 * 2
    assert seen == [
        (2, "input", "fp16", size),
        (3, "input", "fp16", 64 * 64 * 9 * 2),
        (4, "input", "fp16", 128),
        (6, "output", "fp16", size),
    ]


# ---------------------------------------------------------------- a real library


def real_libraries() -> list[Path]:
    named = os.environ.get("CUDNN_DOCTOR_LIBCUDNN")
    found = [Path(named)] if named else []
    return found + sorted(Path(sysconfig.get_paths()["purelib"]).glob("nvidia/cudnn/lib/libcudnn.so.[89]"))


def test_a_real_library_takes_every_operation() -> None:
    """In a process of its own: a real library may abort. Up to the operation graph, which wants a handle."""
    import subprocess
    import sys

    libraries = real_libraries()
    if not libraries:
        pytest.skip("no full libcudnn is installed (set CUDNN_DOCTOR_LIBCUDNN to one)")
    for library in libraries:
        done = subprocess.run(
            [sys.executable, "-m", "tests.native.test_cudnn_backend", str(library)],
            capture_output=True,
            text=True,
            env={**os.environ, "LD_LIBRARY_PATH": str(library.parent)},
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout) == {}


def refused_operations(library: str) -> dict[str, str]:
    """Problems whose operations a real library does not finalise, with its reason."""
    backend = Backend(Cudnn(library))
    refused = {}
    for problem in problems():
        graph = object.__new__(Graph)
        graph.backend, graph.problem, graph.tensors, graph._uid = backend, problem, [], 0
        graph.scale = ctypes.c_float(1.0)
        with ExitStack() as graph._stack:
            try:
                graph._operations()
            except BackendError as e:
                if problem.shape != "unified" or backend.cudnn.cudnnGetVersion() >= 91300:
                    refused[problem.id] = str(e)
    return refused


if __name__ == "__main__":
    import sys

    print(json.dumps(refused_operations(sys.argv[1])))  # noqa: T201 - the result for the parent
