"""Deaths that no library reports, from what the kernel, the wrapper and the output show."""

from __future__ import annotations

from typing import Any

import pytest

from cudnn_doctor.logs.patterns import load
from cudnn_doctor.model.explanation import Cause, Evidence, Explanation, Facts
from cudnn_doctor.model.run_recording import (
    Counter,
    Ending,
    ProcessSeen,
    RunRecording,
    SignalSeen,
    Stall,
    StreamText,
    decode_run,
    encode_run,
)
from cudnn_doctor.postmortem.conclude import conclude
from cudnn_doctor.render.run_text import LINES, verdict_text

CAUSES = load().causes
KILLED = Ending(exit_code=137, signal="SIGKILL", seconds=9.0)
TERMINATED = Ending(exit_code=143, signal="SIGTERM", seconds=9.0)
CALM = (Counter(name="machine oom_kill", before=3, after=3, source="/proc/vmstat"),)
GREW = (Counter(name="cgroup oom_kill", before=0, after=1, source="/sys/fs/cgroup/job/memory.events"),)


def run(ending: Ending, text: str = "", **more: Any) -> RunRecording:
    streams = (StreamText(descriptors=(1, 2), kind="pipe", head=text),)
    return RunRecording(ending=ending, pid=10, streams=streams, **more)


def judged(recording: RunRecording) -> Explanation:
    """The answer, from the recording as it is after being saved and read."""
    return conclude(decode_run(encode_run(recording), "run.jsonl"), None, CAUSES)


def sent(signal: str, *, group: bool, sender: int = 0, name: str = "") -> tuple[SignalSeen, ...]:
    return (SignalSeen(at=8.9, signal=signal, sender=sender, sender_name=name, group=group),)


def child(**more: Any) -> ProcessSeen:
    return ProcessSeen(pid=11, parent=10, name="python3", started=0.1, **more)


TRACEBACK = """Traceback (most recent call last):
  File "/home/u/train.py", line 7, in main
    load(path)
  File "/usr/lib/python3.12/json/decoder.py", line 355, in raw_decode
    raise JSONDecodeError("Expecting value", s, err.value) from None
json.decoder.JSONDecodeError: Expecting value: line 1 column 1 (char 0)
"""
CRASH = """Fatal Python error: Segmentation fault

Current thread 0x00007f (most recent call first):
  File "/usr/lib/python3.12/ctypes/__init__.py", line 519 in string_at
  File "/home/u/train.py", line 3 in peek
"""
STACKS = "Thread 10 (idle): MainThread\n    wait (threading.py:355)\n    main (train.py:3)\n"
CASES: dict[str, tuple[RunRecording, str, str]] = {
    "counter of the cgroup": (run(KILLED, counters=GREW), "host-out-of-memory", "confirmed"),
    "the kernel names it": (
        run(KILLED, kernel=("Out of memory: Killed process 10 (python3) total-vm:1kB",)),
        "host-out-of-memory",
        "confirmed",
    ),
    "a worker was killed for memory": (
        run(Ending(exit_code=1, seconds=9.0), counters=GREW, processes=(child(ended=8.0, signal="SIGKILL"),)),
        "host-out-of-memory",
        "confirmed",
    ),
    "MemoryError": (
        run(Ending(exit_code=1), 'Traceback (most recent call last):\n  File "a.py", line 1\nMemoryError\n'),
        "host-out-of-memory",
        "likely",
    ),
    "SIGKILL and calm counters": (run(KILLED, counters=CALM), "killed-from-outside", "likely"),
    "timeout": (
        run(TERMINATED, signals=sent("SIGTERM", group=True, sender=5, name="timeout")),
        "killed-by-scheduler",
        "confirmed",
    ),
    "Slurm's own line": (
        run(TERMINATED, "slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2026-11-30T10:00:00 DUE TO TIME LIMIT ***\n"),
        "killed-by-scheduler",
        "confirmed",
    ),
    "kill by somebody": (
        run(TERMINATED, signals=sent("SIGTERM", group=False, sender=5, name="bash")),
        "killed-from-outside",
        "likely",
    ),
    "Ctrl-C": (
        run(Ending(exit_code=130, signal="SIGINT", seconds=9.0), signals=sent("SIGINT", group=True)),
        "ended-by-user",
        "confirmed",
    ),
    "Ctrl-C with a traceback": (
        run(
            Ending(exit_code=1, seconds=9.0),
            'Traceback (most recent call last):\n  File "a.py", line 1, in <module>\nKeyboardInterrupt\n',
            signals=sent("SIGINT", group=True),
        ),
        "ended-by-user",
        "confirmed",
    ),
    "an exception": (run(Ending(exit_code=1), TRACEBACK), "python-error", "likely"),
    "a crash": (run(Ending(exit_code=139, signal="SIGSEGV"), CRASH), "crash-in-library", "likely"),
    "a stall that was ended": (
        run(
            Ending(exit_code=130, signal="SIGINT", seconds=99.0),
            signals=(SignalSeen(at=98.0, signal="SIGINT", group=True),),
            stalls=(Stall(at=20.0, seconds=60.0, gpu_idle=True, stacks=STACKS),),
        ),
        "stalled",
        "confirmed",
    ),
    "a rank that died first": (
        run(
            Ending(exit_code=1, seconds=9.0),
            "torch.distributed.DistBackendError: NCCL error: remote process exited or there was a network error\n",
            processes=(child(ended=5.0, signal="SIGSEGV"), child(ended=8.9, exit_code=1)),
        ),
        "peer-died-first",
        "likely",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_cause_of_death(name: str) -> None:
    recording, cause, confidence = CASES[name]
    found = judged(recording)
    assert found.verdict == "cause-found"
    assert (found.causes[0].cause, found.causes[0].confidence) == (cause, confidence)
    assert found.causes[0].evidence
    text = verdict_text(recording, found)
    assert text.startswith("cudnn-doctor: The program ended with ")
    assert f"[{cause}]" in " ".join(text.split())
    assert len(text.splitlines()) <= LINES


@pytest.mark.parametrize(
    "recording",
    [
        run(Ending(exit_code=3), "nothing special\n"),
        run(
            Ending(exit_code=1), 'Traceback (most recent call last):\n  File "a.py", line 1\nRuntimeError: CUDA error\n'
        ),
        run(Ending(exit_code=1), counters=GREW),  # somebody else was killed
    ],
)
def test_no_cause_is_named_where_none_is_shown(recording: RunRecording) -> None:
    found = judged(recording)
    assert found.verdict == "undetermined"
    assert found.causes == ()


def test_a_program_that_ended_well_has_no_cause() -> None:
    found = judged(run(Ending(exit_code=0), TRACEBACK, counters=GREW, signals=sent("SIGTERM", group=False)))
    assert (found.verdict, found.causes, found.notes) == ("no-problem", (), ())
    assert verdict_text(run(Ending(exit_code=0)), found) == ""


def test_the_exception_and_the_programs_own_line_are_quoted() -> None:
    evidence = judged(run(Ending(exit_code=1), TRACEBACK)).causes[0].evidence
    assert [e.text for e in evidence] == [
        "json.decoder.JSONDecodeError: Expecting value: line 1 column 1 (char 0)",
        "/home/u/train.py:7 in main",
    ]


def test_the_crash_names_the_programs_own_line() -> None:
    evidence = judged(run(Ending(exit_code=139, signal="SIGSEGV"), CRASH)).causes[0].evidence
    assert evidence[1].text == "Fatal Python error: Segmentation fault: /home/u/train.py:3 in peek"


def test_what_the_output_shows_counts_where_nothing_else_does() -> None:
    cause = Cause(
        cause="cudnn-not-found", title="x", confidence="likely", role="primary", points=8,
        evidence=(Evidence(line=4, text="x"),), fixes=(), avoid="",
    )  # fmt: skip
    facts = Facts(framework="jax")
    told = Explanation(verdict="cause-found", summary="x", causes=(cause,), questions=(), facts=facts)
    found = conclude(run(Ending(exit_code=1), "x\n"), told, CAUSES)
    assert (found.verdict, found.causes[0].cause, found.facts.framework) == ("cause-found", "cudnn-not-found", "jax")
    assert found.causes[0].evidence[0].line == 4
    ctrl_c = run(Ending(exit_code=130, signal="SIGINT", seconds=9.0), "x\n", signals=sent("SIGINT", group=True))
    assert conclude(ctrl_c, told, CAUSES).causes[0].cause == "ended-by-user"


def test_a_recording_that_was_cut_gives_what_stands_before_the_cut() -> None:
    whole = run(KILLED, "text", counters=GREW)
    data = encode_run(whole)
    assert decode_run(data, "x") == whole
    assert decode_run(data[:-20], "x").streams == whole.streams
    with pytest.raises(ValueError, match=r"^x is no recording of `cudnn-doctor run`"):
        decode_run(b"{}", "x")
