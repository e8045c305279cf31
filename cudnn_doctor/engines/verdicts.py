"""Judgement of what was seen of a plan. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from statistics import median

from cudnn_doctor.model.engines import (
    CaptureSeen,
    CloneSeen,
    Control,
    DestroyedSeen,
    EngineRow,
    HeldSeen,
    PlanFault,
    PlanSeen,
    PlanVerdict,
)

WAITS = "test 2 decided nothing: the call, or the work in the other stream, waits for the held stream"
RANK: dict[PlanVerdict, int] = {"ok": 0, "unknown": 1, "crashed": 2, "suspect": 3, "wrong-stream": 4}


def capture_alarm(seen: CaptureSeen, expected: int | None = None) -> str:
    """Why a capture is not that of a right plan; empty when it is.

    `expected` is the number of nodes that the same plan gave elsewhere.
    """
    if seen.plan or seen.other:
        place = "the stream of the handle that built the plan" if seen.plan else "a third stream"
        return f"{seen.plan or seen.other} of {seen.given + seen.plan + seen.other} graph nodes are in {place}"
    if not seen.given:
        return "no graph node in any captured stream: the work went to a stream that nobody gave"
    if expected is not None and seen.given < expected:
        return f"{seen.given} graph nodes in the given stream, {expected} in the control: some went elsewhere"
    return ""


def held_alarm(seen: HeldSeen) -> str:
    """Why an execution with the stream held is not that of a right plan; empty when it is."""
    if seen.early:
        return "output or workspace was written while the given stream was held"
    if seen.equal is False:
        return "the output differs from the reference after the given stream was released"
    return ""


def judge_plan(seen: PlanSeen) -> tuple[PlanVerdict, str]:
    """Verdict and reason. A control that was run and did not see the planted fault leaves the plan unknown."""
    if seen.died:
        return "crashed", seen.died
    if seen.failure:
        return "unknown", seen.failure
    alarms: list[str] = []
    decided = 0
    capture, control = seen.capture, seen.capture_control
    if capture and control and not capture.error and not control.error:
        if not capture_alarm(control):
            return "unknown", "the capture control did not see the fault that was put there"
        decided += 1
        alarms.append(capture_alarm(capture, control.given + control.plan + control.other))
    held, held_control = seen.held, seen.held_control
    if held and held_control and not (held.error or held_control.error or held.waited or held_control.waited):
        if not held_control.early:
            return "unknown", "the held-stream control did not see the fault that was put there"
        decided += 1
        alarms.append(held_alarm(held))
    raised = [a for a in alarms if a]
    if not decided:
        reasons = [e for e in (capture and capture.error, held and held.error) if e]
        if (held and held.waited) or (held_control and held_control.waited):
            reasons.append(WAITS)
        return "unknown", "; ".join(reasons) or "the tests did not come to an end"
    if len(raised) > 1:
        return "wrong-stream", "; ".join(raised)
    if raised:
        return "suspect", raised[0]
    if seen.silent:
        return "unknown", "a run that was waited for left its output untouched"
    return "ok", ""


def alarmed(verdict: PlanVerdict) -> bool:
    """Whether a test of the stream alarmed; the same alarm after the handle's destruction is no news then."""
    return verdict in ("wrong-stream", "suspect")


def destroyed_bad(seen: DestroyedSeen) -> str:
    """What went wrong after the plan's handle was destroyed; empty when nothing did."""
    if seen.error:
        return seen.error
    if seen.capture and not seen.capture.error and capture_alarm(seen.capture):
        return capture_alarm(seen.capture)
    return "the output differs from the reference" if seen.equal is False else ""


def clone_right(seen: CloneSeen) -> bool:
    """Whether a clone is what the cure promises: same engine and knobs, given stream, same output."""
    captured = seen.capture is None or bool(seen.capture.error) or not capture_alarm(seen.capture)
    return not seen.error and seen.same_choice and captured and seen.equal is not False


def engine_row(
    engine: int,
    plans: Iterable[PlanSeen],
    behaviour: tuple[str, ...] = (),
    numerical: tuple[str, ...] = (),
    *,
    left_out: int = 0,
) -> EngineRow:
    """One engine's plans in one line; the plans that are not plainly ok in full."""
    seen = list(plans)
    judged = [(p, *judge_plan(p)) for p in seen]
    verdicts = [v for _, v, _ in judged]
    clones = [p.clone for p in seen if p.clone]
    times = [c.ms for c in clones if c.ms]
    told = [PlanFault(seen=p, verdict=v, why=why, remarks=tuple(remarks(p))) for p, v, why in judged]
    faults = [f for f in told if f.verdict != "ok" or f.remarks]
    return EngineRow(
        engine=engine,
        verdict=max(verdicts, key=lambda v: RANK[v]),
        plans=len(seen),
        ok=verdicts.count("ok"),
        wrong_stream=verdicts.count("wrong-stream"),
        suspect=verdicts.count("suspect"),
        crashed=verdicts.count("crashed"),
        unknown=verdicts.count("unknown"),
        not_capturable=sum(1 for p in seen if p.capture and p.capture.error),
        threads_tested=sum(1 for p in seen if p.threads),
        threads_differ=sum(1 for p in seen if p.threads and (p.threads.different or p.threads.error)),
        own_tested=sum(1 for p in seen if p.threads and p.threads.own_different is not None),
        own_differ=sum(1 for p in seen if p.threads and (p.threads.own_different or p.threads.own_error)),
        left_out=left_out,
        destroyed_tested=sum(1 for p in seen if p.destroyed),
        destroyed_bad=sum(1 for p, v, _ in judged if p.destroyed and destroyed_bad(p.destroyed) and not alarmed(v)),
        clones_right=sum(1 for c in clones if clone_right(c)),
        clones_wrong=sum(1 for c in clones if not clone_right(c)),
        clone_ms=round(median(times), 3) if times else None,
        behaviour=behaviour,
        numerical=numerical,
        faults=tuple(faults),
    )


def remarks(seen: PlanSeen) -> list[str]:
    """What is worth telling of a plan beside its verdict."""
    found = []
    if seen.threads and (seen.threads.different or seen.threads.error):
        count = f"{seen.threads.different} of {seen.threads.runs} outputs differ when two threads share the plan"
        found.append(f"two threads: {seen.threads.error}" if seen.threads.error else count)
        if seen.threads.own_different is not None:
            own = seen.threads.own_error or f"{seen.threads.own_different} differ"
            found.append(f"two threads with a plan each: {own}")
    if seen.destroyed and destroyed_bad(seen.destroyed):
        found.append(f"after its handle was destroyed: {destroyed_bad(seen.destroyed)}")
    if seen.clone and not clone_right(seen.clone):
        found.append(f"clone: {seen.clone.error or 'not the same plan in the given stream'}")
    if (seen.held and seen.held.waited) or (seen.held_control and seen.held_control.waited):
        found.append(WAITS)
    if seen.capture and seen.capture.error:
        found.append(f"not capturable: {seen.capture.error}")
    return found


def controls(plans: Iterable[PlanSeen]) -> tuple[Control, Control]:
    """How often the fault was put there and seen, by capture and by the held stream."""
    all_plans = list(plans)
    captures = [p.capture_control for p in all_plans if p.capture_control and not p.capture_control.error]
    held = [c for p in all_plans if (c := p.held_control) and not (c.error or c.waited)]
    return (
        Control(planted=len(captures), seen=sum(1 for c in captures if capture_alarm(c))),
        Control(planted=len(held), seen=sum(1 for h in held if h.early)),
    )
