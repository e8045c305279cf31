"""What the recorder's events mean: whose context, which stream, who ended it, and what failed first.

What each state answers was measured with `reproduce` on an H200 (cuDNN 8.9.7 to 9.19).
"""

from __future__ import annotations

from cudnn_doctor.model import events as ev
from cudnn_doctor.model.explanation import Evidence
from cudnn_doctor.model.run_recording import RunRecording
from cudnn_doctor.postmortem.finding import LIKELY, PROVED, SEEN, Finding, event
from cudnn_doctor.postmortem.timeline import Timeline, size, timelines

# CUresult (cuda.h): faults after which nothing on the context works any more.
ILLEGAL, TIMEOUT, ASSERT, FAILED = 700, 702, 710, 719
_FAULTS = {ILLEGAL, 714, 715, 716, 717, 718, FAILED, 721}
_OUT_OF_MEMORY = 2
_INVALID_CONTEXT, _DESTROYED, _INVALID_HANDLE = 201, 709, 400
_GONE = {_INVALID_CONTEXT, _DESTROYED, _INVALID_HANDLE, 4, 708}
_TEARDOWN = {4, 401}  # CUDA is being unloaded: libraries end things in any order then, without harm
_MPS = {805, 806, 807, 808, 809}
_MPS_TERMINATED = 810
_SHORT = 30.0  # seconds between the end of a context and the failure that it explains
_MUCH = 0.1  # part of a card's memory that is worth a word
_OURS = 0.8  # part of a card's memory that one program holds where it has taken "nearly all"
_SMALL = 1 << 30


def findings(run: RunRecording) -> list[Finding]:
    """The causes that the events show, of every process of the run."""
    found: list[Finding] = []
    if not run.ending.exit_code:
        return found
    for line in timelines(run.recorded, run.started):
        found += [f for rule in RULES if (f := rule(line, run)) is not None]
    return found


def _first_failure(line: Timeline) -> ev.CallFailed | ev.StreamSet | None:
    failures = line.failures()
    return next((f for f in failures if f.first), failures[0] if failures else None)


def device_fault(line: Timeline, run: RunRecording) -> Finding | None:
    """A kernel faulted, and nothing had failed before."""
    fault = next((f for f in line.of(ev.CallFailed) if f.library in ("cuda", "cudart") and f.status in
                  {*_FAULTS, ASSERT, TIMEOUT, _MPS_TERMINATED}), None)  # fmt: skip
    if fault is None or _explained_before(line, fault):
        return None
    cause = {ASSERT: "device-assert-bad-index", TIMEOUT: "launch-timeout-watchdog"}.get(
        fault.status, "prior-cuda-fault"
    )
    if fault.status == _MPS_TERMINATED or _under_mps(run):
        cause = "mps-client-fault"
    evidence = [line.shown(fault, "the first report of the fault; the kernel ran before")]
    evidence += [event(f"Xid {x.code} on GPU {x.gpu} at {x.at:.2f} s", "the kernel driver reports it", source="NVML")
                 for x in run.xids[:1]]  # fmt: skip
    later = next((f for f in line.failures() if f.seq > fault.seq and f.library == "cudnn"), None)
    if later:
        evidence.append(line.shown(later, "only the messenger"))
    return Finding(cause=cause, points=PROVED - 4, evidence=tuple(evidence), role="consequence")


def _under_mps(run: RunRecording) -> bool:
    """Whether an MPS server has the GPU, which every client's fault ends for all: NVML names it among its users."""
    return any(user.name.startswith("nvidia-cuda-mps") and not user.ours for user in run.gpu_users)


def _explained_before(line: Timeline, fault: ev.Event) -> bool:
    """Whether a stream or context had been ended under a user before: the fault is its consequence then."""
    return any(e.seq < fault.seq for e in line.of(ev.EndedUsed)) or any(
        e.seq < fault.seq and (e.handle_ended_by or e.stream_ended_by) for e in line.of(ev.StreamSet)
    )


def fork(line: Timeline, _run: RunRecording) -> Finding | None:
    """A child forked after cuInit used CUDA, and it failed there."""
    for failure in line.failures():
        forked = line.forked(failure.origin.pid)
        if forked and forked.seq < failure.seq:
            return Finding(
                cause="fork-after-init",
                points=PROVED - 1,
                evidence=(
                    line.shown(forked, "CUDA cannot be used in such a child"),
                    line.shown(failure, "its first call that failed"),
                ),
            )
    return None


def ended_under_use(line: Timeline, _run: RunRecording) -> Finding | None:
    """A context, a stream or a handle was ended, and then used."""
    for use in line.events:
        if isinstance(use, (ev.StreamSet, ev.EndedUsed)):
            named: tuple[int | None, ...] = (use.handle_ended_by, use.stream_ended_by)
        elif isinstance(use, ev.CallFailed):
            named = (use.context_ended_by, use.handle_ended_by, use.stream_ended_by)
        else:
            continue
        enders = [e for n in named if (e := line.number(n)) is not None]
        if not enders:
            continue
        contexts = [e for e in enders if isinstance(e, ev.ContextEnded)]
        ender = enders[0]
        context = contexts[0] if contexts else _context_of(line, ender)
        if context is not None:
            return _reset(line, context, use)
        if getattr(use, "status", None) in _TEARDOWN:
            continue
        return Finding(
            cause="stream-or-handle-destroyed",
            points=PROVED - 2,
            evidence=(line.shown(ender, "it ended it"), *_used(line, use, "it afterwards")),
            role="primary",
        )
    return None


def _context_of(line: Timeline, ender: ev.AnyEvent) -> ev.ContextEnded | None:
    """The end of the context that took a stream or handle with it just before."""
    context = getattr(ender, "context", None)
    return line.ended_context(context, ender.seq)


def _reset(line: Timeline, end: ev.ContextEnded, use: ev.AnyEvent) -> Finding:
    shown = [line.shown(end, "it ended the context under its users"), *_used(line, use, "what had been in it")]
    return Finding(cause="context-reset", points=PROVED - 1, evidence=tuple(shown), role="consequence")


def _used(line: Timeline, use: ev.AnyEvent, what: str) -> list[Evidence]:
    """The use of something that had ended; where the library took it, also the first call that failed from then on."""
    shown = [line.shown(use, f"it still used {what}")]
    failed = next((f for f in line.failures() if f.seq > use.seq), None)
    if not getattr(use, "status", None) and failed:
        shown.append(line.shown(failed, "the first call that failed after it"))
    return shown


def context_lost(line: Timeline, run: RunRecording) -> Finding | None:
    """A context with streams or handles in it was ended, and the program failed or crashed soon after."""
    ends = [e for e in line.of(ev.ContextEnded) if (e.streams or e.handles or e.how == "reset") and not e.status]
    for end in ends:
        after = [f for f in line.failures() if f.seq > end.seq]
        gone = next((f for f in after if (f.status in _GONE and f.library in ("cuda", "cudart")) or
                     isinstance(f, ev.StreamSet) or f.library in ("cudnn", "cublas")), None)  # fmt: skip
        if gone and line.seconds(gone) - line.seconds(end) < _SHORT:
            return _reset(line, end, gone)
    crashed = run.ending.signal in ("SIGSEGV", "SIGABRT", "SIGBUS")
    if ends and crashed and run.ending.seconds - line.seconds(ends[-1]) < _SHORT:
        how = f"The program was ended by {run.ending.signal} at {run.ending.seconds:.3f} s"
        evidence = (line.shown(ends[-1], "it ended the context under its users"), event(how, "soon after"))
        return Finding(cause="context-reset", points=SEEN, evidence=evidence, role="consequence")
    return None


def foreign_context(line: Timeline, _run: RunRecording) -> Finding | None:
    """Handle and stream of two living contexts."""
    for use in line.of(ev.StreamSet):
        ours, theirs = use.handle_context, use.stream_context
        if not use.status or ours is None or theirs is None or ours == theirs:
            continue
        if line.forked(use.origin.pid) or line.ended_context(ours, use.seq) or line.ended_context(theirs, use.seq):
            continue
        evidence = [line.shown(use, "two contexts")]
        made = [e for e in line.of(ev.ContextCreated) if e.context in (ours, theirs) and e.how != "primary"]
        evidence += [line.shown(e, "who made the second context") for e in made[:1]]
        return Finding(cause="device-context-mixup", points=PROVED - 1, evidence=tuple(evidence), role="primary")
    failed = next((f for f in line.of(ev.CallFailed) if f.status in (_INVALID_HANDLE, _INVALID_CONTEXT)), None)
    made = [e for e in line.of(ev.ContextCreated) if e.how == "created"]
    foreign = failed is not None and any(e.context == failed.current_context for e in made)
    if failed is not None and foreign and not any(line.of(ev.ContextEnded)):
        shown = (line.shown(failed, "in the second context"), line.shown(made[0], "who made it"))
        return Finding(cause="device-context-mixup", points=SEEN, evidence=shown, role="primary")
    return None


def memory(line: Timeline, run: RunRecording) -> Finding | None:
    """An allocation on the GPU failed: who has the memory?"""
    failed = next((f for f in line.of(ev.CallFailed) if f.library in ("cuda", "cudart") and f.status == _OUT_OF_MEMORY
                   and f.memory_total), None)  # fmt: skip
    if failed is None or failed.memory_total is None:
        return None
    total, free = failed.memory_total, failed.memory_free or 0
    mine = max((u.peak for u in run.gpu_users if u.ours), default=0)
    before = max((g.used_before for g in run.gpus), default=0)  # before the program had a context
    others = (
        [u for u in run.gpu_users if not u.ours and u.peak > _MUCH * total] if mine or before > _MUCH * total else []
    )
    shown = line.shown(failed, "the allocation that failed")
    if failed.requested is not None and failed.requested > total:
        return Finding(cause="vram-exhausted", points=SEEN + 6, evidence=(shown,))
    used_by_others = max(total - free - mine, 0) if mine else before
    if others or used_by_others > max(mine, 3 * _MUCH * total):
        who = [event(f"Process {u.pid} ({u.name or 'name not readable'}) holds {size(u.peak)} of GPU {u.gpu}",
                     "not one of the program's", source="NVML") for u in others[:2]]  # fmt: skip
        who = who or [event(f"Processes that are not seen here hold {size(int(used_by_others))}", source="NVML")]
        return Finding(cause="vram-other-process", points=SEEN + 4, evidence=(shown, *who))
    if mine > _OURS * total and failed.requested is not None and failed.requested < _SMALL and _other_client(line):
        held = event(
            f"The program itself holds {size(mine)} of {size(total)}", "a framework's reservation", source="NVML"
        )
        return Finding(cause="vram-preallocated", points=SEEN, evidence=(shown, held))
    own = [event(f"The program itself holds {size(mine)}", "its own peak", source="NVML")] if mine else []
    return Finding(cause="vram-exhausted", points=SEEN, evidence=(shown, *own))


def _other_client(line: Timeline) -> bool:
    """Whether a cuDNN or cuBLAS call failed with it: a library went short beside the framework's reservation."""
    return any(f.library in ("cudnn", "cublas") for f in line.failures())


def mps(line: Timeline, _run: RunRecording) -> Finding | None:
    """CUDA could not become a client of the MPS server."""
    failed = next((f for f in line.failures() if f.library in ("cuda", "cudart") and f.status in _MPS), None)
    if failed is None:
        return None
    return Finding(cause="environment-restriction", points=SEEN, evidence=(line.shown(failed, "MPS refuses it"),))


def cudnn_call(line: Timeline, _run: RunRecording) -> Finding | None:
    """The first failure of all is cuDNN's own, by a status that knows its causes."""
    from cudnn_doctor.knowledge.status import cudnn_status
    from cudnn_doctor.postmortem.timeline import major_of

    first = _first_failure(line)
    if not isinstance(first, ev.CallFailed) or first.library != "cudnn":
        return None
    status = cudnn_status(major_of(first.path), first.status)
    if status is None or not 0 < len(status.causes) <= 2:
        return None
    return Finding(
        cause=status.causes[0], points=LIKELY - len(status.causes), evidence=(line.shown(first, status.meaning),)
    )


def shared_handle(line: Timeline, run: RunRecording) -> Finding | None:
    """Two threads were inside calls with one handle, and cuDNN failed or the program crashed."""
    shared = next((e for e in line.of(ev.HandleShared) if e.at_once), None)
    failed = next((f for f in line.failures() if f.library == shared.library), None) if shared else None
    if shared is None or not (failed or run.ending.signal in ("SIGSEGV", "SIGABRT", "SIGBUS")):
        return None
    shown = [line.shown(shared, "a handle is for one thread at a time")]
    shown += [line.shown(failed, "the failure")] if failed else []
    return Finding(cause="handle-shared-by-threads", points=LIKELY + 3, evidence=tuple(shown))


# Every rule is asked with the run, whether it looks at it or not.
RULES = (device_fault, fork, ended_under_use, context_lost, foreign_context, memory, mps, shared_handle, cudnn_call)


def notes(run: RunRecording) -> list[Evidence]:
    """What a program that ended well should know all the same, at most three events."""
    found: list[Evidence] = []
    for line in timelines(run.recorded, run.started):
        for use in line.of(ev.StreamSet):
            differ = use.handle_context and use.stream_context and use.handle_context != use.stream_context
            if not use.status and (use.stream_ended_by or use.handle_ended_by or differ):
                found.append(line.shown(use, "the library took it, by luck: with another version or timing it fails"))
        shared = (e for e in line.of(ev.HandleShared) if e.at_once)
        found += [line.shown(e, "a handle is for one thread at a time") for e in shared]
        forked = (e for e in line.of(ev.Forked) if e.initialised)
        found += [line.shown(e, "the child used CUDA; what it computed is not defined") for e in forked]
    return found[:3]
