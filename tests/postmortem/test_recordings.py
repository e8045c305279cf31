"""What `run` saw of small programs on an H200 (driver 580.159.04, 2026-12-01), each with one hidden cause, judged
without a GPU: the cause is right in all, and none is named for a healthy one."""

from __future__ import annotations

import gzip
from functools import cache
from pathlib import Path

import pytest

from cudnn_doctor.commands.explain_text import answer
from cudnn_doctor.commands.run_report import judge
from cudnn_doctor.model.run_recording import RunRecording, decode_run
from cudnn_doctor.render.run_text import LINES, verdict_text
from tests.run_programs.__main__ import expected

FOLDER = Path(__file__).parents[1] / "recordings" / "run"
NAMES = sorted(p.name.removesuffix(".jsonl.gz") for p in FOLDER.glob("*.jsonl.gz"))


@cache
def recording(name: str) -> RunRecording:
    return decode_run(gzip.decompress((FOLDER / f"{name}.jsonl.gz").read_bytes()), name)


def test_there_are_enough() -> None:
    assert len([n for n in NAMES if recording(n).ending.exit_code]) >= 24


@pytest.mark.parametrize("name", NAMES)
def test_the_cause_is_right(name: str) -> None:
    run, causes = recording(name), expected(name)
    found = judge(run)
    text = verdict_text(run, found)
    if not run.ending.exit_code:  # it ended well, by luck in some
        assert (found.verdict, found.causes) == ("no-problem", ())
        assert bool(text) == bool(causes)  # luck is worth a note, health is not
        return
    assert found.verdict == "cause-found"
    assert found.causes[0].cause in causes
    assert len(text.splitlines()) <= LINES
    assert max(map(len, text.splitlines())) <= 130  # a command is not wrapped


# What proves it: the events, in the program's own lines.
PROOF = {
    "torch_reset_in_thread": [
        "cuDevicePrimaryCtxReset ended context",
        "programs/raw.py:12 in call < programs/torch_reset_in_thread.py:11 in janitor",
        "cudnnSetStream took it",
        "programs/torch_reset_in_thread.py:20 in <module>",
    ],
    "jax_reset": [
        "programs/jax_reset.py:13 in clean_up",
        "cuLaunchKernelEx answered 709 CUDA_ERROR_CONTEXT_IS_DESTROYED",
    ],
    "torch_foreign_stream": [
        "cudnnSetStream answered 2007 CUDNN_STATUS_BAD_PARAM_STREAM_MISMATCH",
        "programs/torch_foreign_stream.py:13 in <module>",
        "cuCtxCreate made a context",
        "programs/torch_foreign_stream.py:9 in <module>",
    ],
    "c_cudnn8_other-context": ["cudnnSetStream answered 7 CUDNN_STATUS_MAPPING_ERROR", "cuCtxCreate made a context"],
    "c_cudnn8_fork": ["was forked from", "cudnnSetStream answered 7 CUDNN_STATUS_MAPPING_ERROR"],
    "torch_illegal_address": ["answered 700 CUDA_ERROR_ILLEGAL_ADDRESS", "Xid 31 on GPU 0"],
    "torch_assert": ["answered 710 CUDA_ERROR_ASSERT", "programs/torch_assert.py:9 in <module>", "Xid 43 on GPU 0"],
    "torch_memory_neighbour": ["cuMemAlloc answered 2 CUDA_ERROR_OUT_OF_MEMORY", "holds 125.6 GiB of GPU 0"],
    "torch_memory_self": ["asked for 4.0 GiB, 3.2 GiB of 139.8 GiB were free", "The program itself holds 136.6 GiB"],
    "host_memory": [
        "ended by SIGKILL",
        "Memory cgroup out of memory: Killed process",
        "machine oom_kill grew from 0 to 1",
    ],
    "torch_segfault": ["programs/torch_segfault.py:13 in peek"],
    "torch_python_error": ["KeyError: 'images'", "programs/torch_python_error.py:9 in <module>"],
}


@pytest.mark.parametrize("name", PROOF)
def test_the_events_that_prove_it(name: str) -> None:
    evidence = "\n".join(e.text for e in judge(recording(name)).causes[0].evidence)
    assert [word for word in PROOF[name] if word not in evidence] == []


def test_the_seeds_own_line_and_its_cause(tmp_path: Path) -> None:
    run = recording("c_cudnn8_other-context")
    assert "Check failed: status == CUDNN_STATUS_SUCCESS (7 vs. 0)Failed to set cuDNN stream." in run.streams[0].head
    saved = tmp_path / "run.jsonl"
    saved.write_bytes(gzip.decompress((FOLDER / "c_cudnn8_other-context.jsonl.gz").read_bytes()))
    text = answer([str(saved)], "text")
    assert text.startswith(
        "CAUSE FOUND (confirmed): A stream, a handle or a tensor of another GPU or another context is used."
    )
    assert "cudnnSetStream answered 7 CUDNN_STATUS_MAPPING_ERROR" in text
