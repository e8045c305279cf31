"""NVML asked in a child process: nvmlInit opens libcuda.so.1 by the loader's path and calls into it.

A libcuda that crashes or hangs would take this process along, as it does nvidia-smi (both seen under driver 580.159.04
with an aborting libcuda on LD_LIBRARY_PATH). The child starts with the session and reads while the caller does other
work; the facts wait for it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

import msgspec

from cudnn_doctor.model.base import Absent, Base, Known, known
from cudnn_doctor.model.facts import Gpu, NvmlStatus
from cudnn_doctor.probe.loader_path import find_on_path, release_of
from cudnn_doctor.probe.root_files import ROOT, absent, on_linux

if TYPE_CHECKING:
    from threading import Thread

    from cudnn_doctor.live.parent import JobOutcome
    from cudnn_doctor.live.wire import Wire

SONAME = "libnvidia-ml.so.1"
_BODY = "cudnn_doctor.probe.nvml_session:read"


class NvmlFacts(Base, frozen=True, kw_only=True):
    """All that NVML told."""

    status: Known[NvmlStatus] | Absent
    version: Known[str] | Absent
    gpus: Known[tuple[Gpu, ...]] | Absent


class NvmlSession:
    """One child that asks NVML everything. Open it once, as a context manager, and early.

    Where the loader finds no libnvidia-ml.so.1 there is no child and pynvml is not imported.
    """

    def __init__(
        self,
        root: Path = ROOT,
        environ: Mapping[str, str] | None = None,
        *,
        timeout_s: float = 10.0,
        body: str = _BODY,
    ) -> None:
        """Starts the child.

        Args:
            timeout_s: after this the child is killed, and what it has not told is absent. Without persistence mode a
                driver may spend a second or two on each GPU before it answers.
            body: what the child runs; tests have their own.
        """
        self._timeout_s, self._body = timeout_s, body
        self._thread: Thread | None = None
        library = _find_library(root, os.environ if environ is None else environ)
        if isinstance(library, Absent):
            self._facts = _nothing(library)
        else:
            from threading import Thread

            self._facts = _nothing(Absent(reason="error", detail="the thread that asks NVML ended early"))
            self._thread = Thread(target=self._ask, args=library, daemon=True)
            self._thread.start()

    def _ask(self, path: str, real_path: str) -> None:
        try:
            facts = _facts(_run(path, self._body, self._timeout_s))
        except Exception as error:
            facts = _nothing(absent(error))
        if isinstance(facts.version, Absent):
            named = release_of(real_path)
            facts = msgspec.structs.replace(facts, version=named if isinstance(named, Known) else facts.version)
        self._facts = facts

    @property
    def facts(self) -> NvmlFacts:
        """What the child told, once it has."""
        self.close()
        return self._facts

    @property
    def status(self) -> Known[NvmlStatus] | Absent:
        """What nvmlInit answered."""
        return self.facts.status

    @property
    def version(self) -> Known[str] | Absent:
        """The driver's release; where NVML did not start, that of its library."""
        return self.facts.version

    @property
    def gpus(self) -> Known[tuple[Gpu, ...]] | Absent:
        return self.facts.gpus

    def close(self) -> None:
        """Waits for the child; its facts stay."""
        if self._thread is not None:
            self._thread.join()

    def __enter__(self) -> NvmlSession:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:  # an error or Ctrl-C is not kept waiting; the child ends with this process
            self.close()


def probe_gpus(nvml: NvmlSession | None) -> Known[tuple[Gpu, ...]] | Absent:
    """All devices that the driver drives, in NVML's order; a driver without any device gives an empty tuple.

    A device that fails (fallen off the bus, not permitted, hanging) is listed with its facts absent and does not lose
    the others.
    """
    return Absent(reason="not-examined", detail="no NVML session") if nvml is None else nvml.gpus


def read(wire: Wire, args: dict[str, Any], _shared: dict[str, Any]) -> None:
    """The child's work: one line a fact, so that what was told before a crash or a hang counts."""
    from cudnn_doctor.probe.nvml import Nvml

    wire.send(next="nvmlInit")
    tell(wire, Nvml(library=str(args["library"])))


def tell(wire: Wire, nvml: Any) -> None:
    """Writes all facts of an open `Nvml`."""
    from cudnn_doctor.probe.gpus import read_gpu

    def say(name: str, fact: Any) -> None:
        wire.send(did=name, value=msgspec.to_builtins(fact))

    say("nvmlInit", nvml.status)
    wire.send(next="nvmlSystemGetDriverVersion")
    say("version", nvml.release())
    wire.send(next="nvmlDeviceGetCount")
    count = nvml.call("nvmlDeviceGetCount")
    say("count", count)
    if isinstance(count, Known):
        for index in range(count.value):
            wire.send(next=f"reading GPU {index}")
            say("gpu", read_gpu(nvml, index))
    wire.send(next="nvmlShutdown")
    nvml.close()


def _find_library(root: Path, environ: Mapping[str, str]) -> tuple[str, str] | Absent:
    if not on_linux():
        return Absent(reason="not-supported", detail="NVML is asked in a child process: Linux only")
    copies = find_on_path(SONAME, root, environ)
    if copies:
        return copies[0].path, copies[0].real_path
    where = "LD_LIBRARY_PATH, ld.so.cache and the default folders"
    return Absent(reason="not-found", detail=f"no {SONAME} in {where}")


def _run(library: str, body: str, timeout_s: float) -> JobOutcome:
    from cudnn_doctor.live.parent import Job, Task, run_jobs

    job = Job(tasks=(Task(id="nvml", body=body, args={"library": library}),), deadline=timeout_s, trusted=True)
    (outcome,) = run_jobs([job], deadline=timeout_s, linger=True)
    return outcome


def _facts(outcome: JobOutcome) -> NvmlFacts:
    from cudnn_doctor.live.questions import in_words
    from cudnn_doctor.probe.gpus import unreadable

    (task,) = outcome.tasks
    died = Absent(
        reason="timeout" if outcome.fate.kind == "timeout" else "error",
        detail=f"the child that asked NVML: {task.error or in_words(outcome)}",
    )

    def told(name: str, kind: Any) -> list[Any]:
        return [msgspec.convert(step.value, kind) for step in task.steps if step.call == name]

    def once(name: str, kind: Any) -> Any:
        return (told(name, kind) or [died])[0]

    count: Known[int] | Absent = once("count", Known[int] | Absent)
    gpus: Known[tuple[Gpu, ...]] | Absent
    if isinstance(count, Absent):
        gpus = count
    else:
        found = told("gpu", Gpu)
        rest = (unreadable(index, died) for index in range(len(found), count.value))
        gpus = known((*found, *rest), "NVML")
    return NvmlFacts(
        status=once("nvmlInit", Known[NvmlStatus] | Absent),
        version=once("version", Known[str] | Absent),
        gpus=gpus,
    )


def _nothing(why: Absent) -> NvmlFacts:
    return NvmlFacts(status=why, version=why, gpus=why)
