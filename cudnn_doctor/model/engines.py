"""What the engines' examination asks for and what it reports. Times in milliseconds, sizes in bytes.

In JSON, problems, rows and plans leave out what is at its default (no alarm, no error, zero): there are thousands.
"""

from __future__ import annotations

from typing import Literal

from cudnn_doctor.model.base import Base
from cudnn_doctor.model.report import Tool, Verdict


class EngineOptions(Base, frozen=True, kw_only=True):
    """What to examine. Empty tuples mean everything."""

    cudnn: str  # path of libcudnn.so.N
    preload: tuple[str, ...] = ()  # libraries to open before it, cuBLAS of the wheels first of all
    device: int = 0  # CUDA ordinal
    operations: tuple[str, ...] = ()
    data_types: tuple[str, ...] = ()
    engines: tuple[int, ...] = ()  # global indices
    max_plans: int | None = None  # plans of one problem
    quick: bool = False  # the heuristics' plans of plain convolutions, tests 1 and 2
    width: int | None = None  # child processes at a time; None chooses by processors
    timeout: float = 900.0  # seconds for the whole examination
    stall: float = 30.0  # seconds that one native step may take before its child is ended


# ---------------------------------------------------------------- what a child saw of one plan


class CaptureSeen(Base, frozen=True, kw_only=True, omit_defaults=True):
    """Test 1: all streams in relaxed capture, one execution; the nodes that each stream's graph took."""

    given: int = 0  # in the stream of the handle that was given
    plan: int = 0  # in the stream of the handle that built the plan
    other: int = 0  # in a third stream in capture
    kernels: int = 0  # kernel nodes among all of these
    error: str = ""  # why the plan could not be captured


class HeldSeen(Base, frozen=True, kw_only=True, omit_defaults=True):
    """Test 2: the stream of the given handle held, one execution, then released."""

    early: bool = False  # output or workspace changed while the stream was held
    equal: bool | None = None  # output afterwards equal to the reference; None: not comparable
    waited: bool = False  # the call or the other stream's work came only after the release: nothing was decided
    error: str = ""


class ThreadsSeen(Base, frozen=True, kw_only=True, omit_defaults=True):
    """Test 4: two threads, a handle, a stream and buffers each, one plan. Where that fails, the same with a clone for
    each thread: when that does not fail, sharing is the cause."""

    runs: int = 0
    different: int = 0  # outputs that are not bit for bit the serial one
    error: str = ""
    own_different: int | None = None  # with a plan for each thread; None: not run
    own_error: str = ""


class DestroyedSeen(Base, frozen=True, kw_only=True, omit_defaults=True):
    """Test 3: the handle that built the plan destroyed, a new one made, then one execution."""

    capture: CaptureSeen | None = None
    equal: bool | None = None
    error: str = ""


class CloneSeen(Base, frozen=True, kw_only=True, omit_defaults=True):
    """The plan built again for the given handle from its own engine and knobs."""

    ms: float = 0.0
    capture: CaptureSeen | None = None
    equal: bool | None = None
    same_choice: bool = False  # engine and knobs read back from the clone are those of the plan
    error: str = ""


class PlanSeen(Base, frozen=True, kw_only=True, omit_defaults=True):
    """Everything seen of one plan."""

    key: str  # "e17 k2=1 k5=0": the engine's global index and the knobs that were chosen
    engine: int
    knobs: tuple[tuple[int, int], ...] = ()
    source: str = ""  # "index" (default knobs), "heuristics A", "heuristics B", "heuristics FALLBACK"
    workspace: int = 0
    reproducible: bool = True  # two serial runs gave the same bits
    silent: bool = False  # a run that was waited for left its output untouched
    build_ms: float = 0.0
    run_ms: float = 0.0  # first run, synchronised, with the handle that built it
    failure: str = ""  # why it was not examined
    capture: CaptureSeen | None = None
    capture_control: CaptureSeen | None = None  # the same with the wrong handle: must alarm
    held: HeldSeen | None = None
    held_control: HeldSeen | None = None
    destroyed: DestroyedSeen | None = None
    threads: ThreadsSeen | None = None
    clone: CloneSeen | None = None
    died: str = ""  # the step in which it took the process with it, and how


# ---------------------------------------------------------------- the report

PlanVerdict = Literal["ok", "wrong-stream", "suspect", "crashed", "unknown"]


class PlanFault(Base, frozen=True, kw_only=True, omit_defaults=True):
    """A plan that is not plainly ok."""

    seen: PlanSeen
    verdict: PlanVerdict
    why: str = ""  # of the verdict; empty when that is ok
    remarks: tuple[str, ...] = ()  # what the other tests said


class EngineRow(Base, frozen=True, kw_only=True, omit_defaults=True):
    """One engine on one problem."""

    engine: int
    verdict: PlanVerdict  # the worst of its plans
    plans: int
    ok: int = 0
    wrong_stream: int = 0  # alarmed by both tests
    suspect: int = 0  # alarmed by one
    crashed: int = 0
    unknown: int = 0
    not_capturable: int = 0
    threads_tested: int = 0
    threads_differ: int = 0  # plans whose outputs differed under two threads, or that failed there
    own_tested: int = 0  # of these, those tried with a plan for each thread
    own_differ: int = 0  # and failed all the same
    left_out: int = 0  # further plans of an engine that compiles: not built
    destroyed_tested: int = 0
    destroyed_bad: int = 0  # plans that failed after their handle was destroyed
    clones_right: int = 0
    clones_wrong: int = 0
    clone_ms: float | None = None  # median
    behaviour: tuple[str, ...] = ()
    numerical: tuple[str, ...] = ()
    faults: tuple[PlanFault, ...] = ()


class Refusal(Base, frozen=True, kw_only=True, omit_defaults=True):
    """Engines that gave no plan for a problem, by status."""

    status: int
    name: str
    engines: tuple[int, ...]
    example: str = ""  # the reason that cuDNN 9 gives for the first of them


class ProblemReport(Base, frozen=True, kw_only=True, omit_defaults=True):
    """One operation, data type, layout and shape."""

    operation: str
    data_type: str
    layout: str
    shape: str
    engines: int = 0  # global count
    rows: tuple[EngineRow, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    heuristics: tuple[tuple[str, int], ...] = ()  # mode, plans proposed
    heuristics_refused: tuple[tuple[str, str], ...] = ()  # mode, why it proposed nothing
    anew_ms: float | None = None  # graph, heuristics and best plan; without measuring the plans
    autotune_ms: float | None = None  # the same with every proposed plan built and run once
    error: str = ""  # why it could not be examined (to the end)
    finished: bool = True  # False: time or patience ended first
    restarts: int = 0  # times that a child had to be replaced


class Control(Base, frozen=True, kw_only=True):
    """A positive control: how often the fault was put there, and how often it was seen."""

    planted: int = 0
    seen: int = 0


class Totals(Base, frozen=True, kw_only=True):
    problems: int = 0
    plans: int = 0
    engines: int = 0  # pairs of operation and global index that gave a plan
    ok: int = 0
    wrong_stream: int = 0
    suspect: int = 0
    crashed: int = 0
    unknown: int = 0
    not_capturable: int = 0
    unsupported: int = 0  # pairs of problem and engine that gave no plan
    left_out: int = 0
    threads_tested: int = 0
    threads_differ: int = 0
    own_tested: int = 0
    own_differ: int = 0
    destroyed_tested: int = 0
    destroyed_bad: int = 0
    clones: int = 0
    clones_wrong: int = 0


class EngineProgress(Base, frozen=True, kw_only=True):
    """How far the examination is."""

    done: int
    problems: int
    plans: int  # seen so far


class EnginesReport(Base, frozen=True, kw_only=True):
    """The one document of `cudnn-doctor engines`."""

    schema: Literal["cudnn-doctor/engines/1"] = "cudnn-doctor/engines/1"
    tool: Tool
    taken_at: str  # ISO 8601, UTC
    cudnn: str
    cudnn_version: str = ""
    device: int = 0
    device_name: str = ""
    quick: bool = False
    interrupted: bool = False
    ms: float = 0.0
    verdict: Verdict
    exit_code: int
    reason: str
    capture_control: Control = Control()
    held_control: Control = Control()
    totals: Totals = Totals()
    problems: tuple[ProblemReport, ...] = ()
