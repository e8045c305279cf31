"""Deaths that no library reports: the kernel, a scheduler, a user, another process ended the program, or it crashed in
native code, or it stood still.

Each rule is a pure function of the recording; it answers None where it has nothing to say.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from cudnn_doctor.model.explanation import Evidence
from cudnn_doctor.model.run_recording import Counter, ProcessSeen, RunRecording, SignalSeen
from cudnn_doctor.postmortem.finding import LIKELY, POSSIBLE, PROVED, Finding, event

_CRASHES = ("SIGSEGV", "SIGBUS", "SIGILL", "SIGFPE", "SIGABRT", "SIGTRAP", "SIGSYS")
_SCHEDULERS = ("slurm", "timeout", "pbs", "sge", "htcondor", "condor", "kubelet", "containerd", "lsf", "sbatchd")
_JOB = ("SLURM_JOB_ID", "SLURM_JOB_GPUS", "SLURM_STEP_GPUS", "PBS_JOBID", "LSB_JOBID")
_SCHEDULER_SAYS = re.compile(
    r"(?:slurmstepd|srun): error: .{0,200}(?:DUE TO TIME LIMIT|CANCELLED|DUE TO PREEMPTION)|\bDUE TO TIME LIMIT\b|"
    r"PBS: job killed: walltime|TERM_RUNLIMIT"
)
_HOST_MEMORY = re.compile(
    r"^(?:\w*MemoryError\b.*|.*std::bad_alloc.*|.*Cannot allocate memory.*|"
    r".*DefaultCPUAllocator: (?:can't|not enough).*|numpy\.\S*ArrayMemoryError.*|.*oom-kill event.*)$",
    re.MULTILINE,
)
_PEER = re.compile(
    r"^.*(?:remote process exited or there was a network error|Connection closed by (?:remote )?peer|"
    r"Socket closed by peer|ChildFailedError|DataLoader worker \(pid[^)]*\) (?:is killed|exited)|"
    r"BrokenProcessPool|process terminated abruptly|A process in the process pool was terminated).*$",
    re.MULTILINE,
)
_FAULT_HANDLER = re.compile(r"^Fatal Python error: (.+)$", re.MULTILINE)
INSTALLED = re.compile(r"/(?:site|dist)-packages/|/lib/python3|^<frozen ")  # files that are not the program's own
_FRAME = re.compile(r'^  File "([^"\n]+)", line (\d+) in (\S+)', re.MULTILINE)


def text_of(run: RunRecording) -> str:
    """What the program wrote, the end of each stream."""
    return "\n".join(s.tail or s.head for s in run.streams)


def out_of_memory(run: RunRecording) -> Finding | None:
    """The kernel's counters grew and somebody was ended by SIGKILL, or the text says that main memory is out."""
    grown = [c for c in run.counters if c.after > c.before]
    victim = _victim(run)
    said = [line for line in run.kernel if "Killed process" in line]
    if victim and (said or grown):
        ours = [line for line in said if _names_one(line, run)]
        own_group = any(c.name.startswith("cgroup") for c in grown)
        evidence = [event(victim)]
        evidence += [event(line, "the kernel names the process", source="kernel log") for line in ours[:1]]
        evidence += [event(_grew(c), "the out-of-memory killer's counter", source=c.source) for c in grown[:2]]
        return Finding(
            cause="host-out-of-memory", points=PROVED if ours or own_group else LIKELY + 6, evidence=tuple(evidence)
        )
    line = _HOST_MEMORY.search(text_of(run))
    if line and run.ending.exit_code:
        because = "an allocation of main memory failed"
        return Finding(
            cause="host-out-of-memory",
            points=LIKELY + 5,
            evidence=(event(line[0].strip(), because, source="its output"),),
        )
    return None


def _victim(run: RunRecording) -> str:
    if run.ending.signal == "SIGKILL":
        return f"The program was ended by SIGKILL after {run.ending.seconds:.2f} s"
    killed = next((p for p in run.processes if p.signal == "SIGKILL" and p.pid != run.pid), None)
    if killed and run.ending.exit_code:
        return f"Its process {killed.pid} ({killed.name}) was ended by SIGKILL at {killed.ended or 0:.2f} s"
    return "The program ended with exit code 137 (128 + SIGKILL)" if run.ending.exit_code == 137 else ""


def _names_one(line: str, run: RunRecording) -> bool:
    match = re.search(r"Killed process (\d+)", line)
    return match is not None and int(match[1]) in {run.pid, *(p.pid for p in run.processes)}


def _grew(counter: Counter) -> str:
    return f"{counter.name} grew from {counter.before} to {counter.after} during the run"


def scheduler(run: RunRecording) -> Finding | None:
    """A scheduler, or a time limit, told it to go."""
    said = _SCHEDULER_SAYS.search(text_of(run))
    told = [s for s in run.signals if s.signal in ("SIGTERM", "SIGXCPU", "SIGUSR1", "SIGUSR2", "SIGINT", "SIGHUP")]
    sender = next((s for s in told if s.sender_name.startswith(_SCHEDULERS)), None)
    if not run.ending.exit_code or not (said or told or run.ending.signal in ("SIGTERM", "SIGKILL", "SIGXCPU")):
        return None
    if said:
        line = event(said[0], "the scheduler's own line", source="its output")
        return Finding(cause="killed-by-scheduler", points=PROVED, evidence=(line, *map(_sent, told[:2])))
    if sender:
        return Finding(cause="killed-by-scheduler", points=PROVED, evidence=(_sent(sender), event(_ended(run))))
    if run.ending.signal == "SIGXCPU":
        limit = run.limits.get("Max cpu time", "")
        return Finding(
            cause="killed-by-scheduler",
            points=PROVED,
            evidence=(event(_ended(run), f"limit of processor time {limit}"),),
        )
    job = next((name for name in _JOB if name in run.environment), "")
    if job and told and told[-1].signal == "SIGTERM":
        evidence = (_sent(told[-1]), event(_ended(run)), event(f"{job} is set", "it runs in a job of a scheduler"))
        return Finding(cause="killed-by-scheduler", points=LIKELY + 3, evidence=evidence)
    return None


def user(run: RunRecording) -> Finding | None:
    """Ctrl-C, Ctrl-\\ or a closed terminal: the kernel sends these signals, to the whole group."""
    pressed = [s for s in run.signals if s.signal in ("SIGINT", "SIGQUIT", "SIGHUP") and not s.sender and s.group]
    if not pressed or not run.ending.exit_code:
        return None
    last = pressed[-1]
    if run.ending.seconds - last.at > 30 and not run.ending.signal:
        return None  # it went on for long; something else ended it
    key = {"SIGINT": "Ctrl-C", "SIGQUIT": "Ctrl-\\", "SIGHUP": "the terminal was closed"}[last.signal]
    return Finding(
        cause="ended-by-user",
        points=PROVED,
        evidence=(event(f"{last.signal} from the terminal at {last.at:.2f} s", key), event(_ended(run))),
    )


def from_outside(run: RunRecording) -> Finding | None:
    """A signal that no fault of its own raises."""
    signal = run.ending.signal
    if signal not in ("SIGKILL", "SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2"):
        return None
    told = [s for s in run.signals if s.signal == signal]
    if signal == "SIGKILL":
        calm = [c for c in run.counters if c.after == c.before]
        because = "no counter of the out-of-memory killer grew" if calm else "the kernel's counters cannot be read here"
        return Finding(cause="killed-from-outside", points=LIKELY if calm else POSSIBLE,
                       evidence=(event(_ended(run), because),))  # fmt: skip
    return Finding(
        cause="killed-from-outside", points=LIKELY + 1, evidence=(event(_ended(run)), *map(_sent, told[-1:]))
    )


def _sent(signal: SignalSeen) -> Evidence:
    who = (
        f"process {signal.sender} ({signal.sender_name or 'gone'})"
        if signal.sender
        else "the kernel or a process outside"
    )
    to = "the whole process group" if signal.group else "the wrapper alone, and was passed on"
    return event(f"{signal.signal} from {who} at {signal.at:.2f} s", f"it went to {to}")


def _ended(run: RunRecording) -> str:
    how = f"ended by {run.ending.signal}" if run.ending.signal else f"ended with exit code {run.ending.exit_code}"
    return f"The program {how} after {run.ending.seconds:.2f} s"


def peer(run: RunRecording) -> Finding | None:
    """A descendant died before the program gave up, or the text says that another process is gone."""
    if not run.ending.exit_code:
        return None
    first = _first_dead(run)
    said = _PEER.search(text_of(run))
    evidence = []
    if first:
        how = first.signal or f"exit code {first.exit_code}"
        evidence.append(event(f"Process {first.pid} ({first.name}) ended by {how} at {first.ended or 0:.2f} s",
                              f"before the program itself, at {run.ending.seconds:.2f} s"))  # fmt: skip
    if said:
        evidence.append(event(said[0].strip(), "what a survivor says", source="its output"))
    if not evidence:
        return None
    decided = first is not None and (said is not None or first.signal != "")
    return Finding(cause="peer-died-first", points=LIKELY + 4 if decided else LIKELY - 4, evidence=tuple(evidence))


def _first_dead(run: RunRecording) -> ProcessSeen | None:
    """The descendant that failed first, where one did before the program's end; SIGTERM is how a parent ends it."""
    failed = [p for p in run.processes if p.pid != run.pid and p.ended is not None and (p.exit_code or p.signal)]
    failed = [p for p in failed if p.signal not in ("SIGTERM", "SIGPIPE") and (p.ended or 0) < run.ending.seconds]
    same = [p for p in failed if not (p.parent == run.pid and _passes_on(run, p))]
    return min(same, key=lambda p: p.ended or 0, default=None)


def _passes_on(run: RunRecording, process: ProcessSeen) -> bool:
    """Whether the program is only a shell or launcher around this one process, whose status it passes on."""
    others = [p for p in run.processes if p.parent == run.pid and p.pid != process.pid]
    return not others and abs(run.ending.seconds - (process.ended or 0)) < 0.5


def crash(run: RunRecording) -> Finding | None:
    """A signal of the processor or abort(), in the program or in the process that decides its status."""
    number = run.ending.exit_code - 128
    signal = run.ending.signal or {11: "SIGSEGV", 6: "SIGABRT", 7: "SIGBUS", 4: "SIGILL", 8: "SIGFPE"}.get(number, "")
    if signal not in _CRASHES:
        return None
    text = text_of(run)
    evidence = [event(_ended(run))]
    handler = list(_FAULT_HANDLER.finditer(text))
    if handler:
        frames = list(_FRAME.finditer(text, handler[-1].end()))
        frame = next((f for f in frames if not INSTALLED.search(f[1])), frames[0] if frames else None)
        place = f"{frame[1]}:{frame[2]} in {frame[3]}" if frame else "no Python frame"
        because = "the innermost Python line of the program's own"
        evidence.append(event(f"{handler[-1][0]}: {place}", because, source="faulthandler"))
    kernel = [line for line in run.kernel if re.search(r"segfault at|trap |general protection", line)]
    if kernel:
        library = re.search(r" in ([^\s\[]+)\[", kernel[-1])
        because = f"it happened inside {library[1]}" if library else "what the kernel logged"
        evidence.append(event(kernel[-1], because, source="kernel log"))
    return Finding(
        cause="crash-in-library", points=LIKELY if handler or kernel else POSSIBLE + 3, evidence=tuple(evidence)
    )


def stalled(run: RunRecording) -> Finding | None:
    """It stood still until it was ended."""
    if not run.stalls or not run.ending.exit_code:
        return None
    last = run.stalls[-1]
    stack = next((line.strip() for line in last.stacks.splitlines() if re.match(r"\s+\S.* \(.+:\d+\)$", line)), "")
    evidence = [
        event(f"Nothing moved for {last.seconds:.0f} s from {last.at:.1f} s on", "no output, no processor time")
    ]
    if stack:
        evidence.append(event(stack, "the innermost Python frame then", source="py-spy"))
    return Finding(cause="stalled", points=PROVED + 2, evidence=(*evidence, event(_ended(run))))


RULES: tuple[Callable[[RunRecording], Finding | None], ...] = (
    out_of_memory, scheduler, user, from_outside, peer, crash, stalled,
)  # fmt: skip
