"""A live process seen from outside: the document of `inspect --format json`, schema "cudnn-doctor/inspection/1"."""

from __future__ import annotations

from typing import Literal

from cudnn_doctor.model.base import NOT_EXAMINED, Base, Fact
from cudnn_doctor.model.report import Finding, Verdict


class MappedLibrary(Base, frozen=True, kw_only=True):
    """A library of CUDA's that the process has mapped. Paths are as the process sees them."""

    name: str  # "libcudnn", "libcudnn_ops", "libcublas"
    path: str
    version: Fact[str]
    deleted: bool  # its file is gone, or another one has its name: the process runs the old one


class GpuUse(Base, frozen=True, kw_only=True):
    gpu: int
    memory: Fact[int]  # bytes


class InspectedProcess(Base, frozen=True, kw_only=True):
    """One process. A fact that this user may not read is Absent, never healthy."""

    pid: int
    started: int  # clock ticks after boot: with the PID it names the process for ever
    name: str
    user: Fact[int]  # its uid
    threads: int
    parent: int
    seconds: float  # since its start
    namespaces: tuple[str, ...] = ()  # kinds in which it is in another namespace than this one: a container
    libraries: Fact[tuple[MappedLibrary, ...]]
    devices: Fact[tuple[int, ...]]  # minor numbers of the GPUs whose device files it holds open
    visible_devices: Fact[str]  # CUDA_VISIBLE_DEVICES when it was started
    mps: Fact[bool]  # whether it was started as a client of MPS
    gpu_memory: Fact[tuple[GpuUse, ...]]
    memory_limit: Fact[int]  # of its cgroup, -1: none
    limits: dict[str, str]
    forked_from: Fact[int]  # PID of the parent that had CUDA open before the fork; 0: none
    would_load: Fact[str] = NOT_EXAMINED  # the cuDNN that its interpreter and environment would load now
    stacks: Fact[str] = NOT_EXAMINED


class Inspection(Base, frozen=True, kw_only=True):
    """What `inspect` answers."""

    schema: Literal["cudnn-doctor/inspection/1"] = "cudnn-doctor/inspection/1"
    processes: tuple[InspectedProcess, ...]
    findings: tuple[Finding, ...]
    verdict: Verdict
    reason: str
    exit_code: int
    notes: tuple[str, ...] = ()
