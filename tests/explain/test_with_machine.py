"""A text beside the machine that wrote it: what the machine tells is not asked, and every verdict uses it."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cudnn_doctor import recordings
from cudnn_doctor.commands.explain_text import answer
from cudnn_doctor.diagnose import InputError, explain
from cudnn_doctor.diagnose.answered import ANSWERS, answered_by_machine
from cudnn_doctor.model.base import Absent, known
from cudnn_doctor.model.explanation import Explanation
from cudnn_doctor.model.facts import GpuProcess, Xid
from cudnn_doctor.rules.sample import EX, sample
from tests._cli import call

HERE = Path(__file__).parent
TICKETS = sorted([*(HERE / "tickets").glob("*.txt"), *(HERE / "authors").glob("*/*.txt")])
RECORDED = recordings.load(str(HERE.parent / "recordings" / "h200-check-report.json")).snapshot
MAPPING = "RuntimeError: cuDNN error: CUDNN_STATUS_MAPPING_ERROR\n"


def with_machine(tmp_path: Path, text: str, changes: dict[str, Any] | None = None) -> Explanation:
    """The text explained beside the healthy machine with these changes: an H200 with torch 2.11.0 and cuDNN 9.19.0."""
    log = tmp_path / "a.log"
    log.write_text(text, encoding="utf-8")
    return explain([log], snapshot=sample(changes or {}).snapshot)


def points(told: Explanation, cause: str) -> int:
    return next((c.points for c in told.causes if c.cause == cause), 0)


def test_what_the_machine_tells_is_not_asked() -> None:
    # Of several frameworks installed, as here, a machine does not tell which ones the program imports.
    held = ANSWERS.keys() - {"other-frameworks"}
    without = [t for t in TICKETS if held & {q.id for q in explain([t]).questions}]
    assert len(without) >= 120
    still = [t.stem for t in without if held & {q.id for q in explain([t], snapshot=RECORDED).questions}]
    assert len(still) <= 5, still
    told = answered_by_machine(RECORDED)
    assert not [t for t in TICKETS if told & {q.id for q in explain([t], snapshot=RECORDED).questions}]


def test_an_undetermined_text_is_never_left_without_a_question() -> None:
    for ticket in TICKETS:
        told = explain([ticket], snapshot=RECORDED)
        assert told.questions or told.verdict != "undetermined", ticket


@pytest.mark.parametrize("question", ANSWERS)
def test_an_absent_fact_answers_nothing(question: str) -> None:
    absent = Absent(reason="no-permission", detail=EX)
    blind = {
        "gpus": absent, "driver.version": absent, "driver.device_nodes": absent, "host.os": absent,
        "host.container": absent, "xids": absent, "packages": absent, "frameworks": (), "resolutions": (),
    }  # fmt: skip
    healthy, nothing = sample().snapshot, sample(blind).snapshot
    assert ANSWERS[question](healthy)
    assert not ANSWERS[question](nothing) or question == "cudnn-copies"  # those were looked for, and there are some


FULL = {"gpus.0.memory_used": known(150 << 30, EX), "gpus.0.memory_total": known(151 << 30, EX)}
TRAINER = GpuProcess(pid=7, name=known("python", EX), memory=known(1 << 30, EX), kind="compute")


@pytest.mark.parametrize(
    ("changes", "cause", "fact"),
    [
        (FULL, "vram-exhausted", "GPU 0: 153600 MiB of 154624 MiB in use"),
        ({"gpus.0.display_active": known(True, EX)}, "launch-timeout-watchdog", "GPU 0: a display is active on it"),
        ({"gpus.0.processes": known((TRAINER,), EX)}, "vram-other-process", "GPU 0: in use by python"),
        (
            {"xids": known((Xid(time="", pci="0000:00:04", code=31, text="MMU Fault"),), EX)},
            "prior-cuda-fault",
            "NVRM: Xid (PCI:0000:00:04): 31, MMU Fault",
        ),
        (
            {"driver.kernel_module": known("570.86.10", EX)},
            "driver-lib-skew",
            "CD103: ",
        ),
    ],
)
def test_a_fact_of_the_machine_counts_and_is_quoted(
    tmp_path: Path, changes: dict[str, Any], cause: str, fact: str
) -> None:
    before, after = with_machine(tmp_path, MAPPING), with_machine(tmp_path, MAPPING, changes)
    assert points(after, cause) > points(before, cause)
    quoted = [e for c in after.causes for e in c.evidence if e.text.startswith(fact)]
    assert quoted
    assert {(e.line, e.file) for e in quoted} == {(0, "this machine")}


def test_rules_judge_text_and_machine_together(tmp_path: Path) -> None:
    told = with_machine(tmp_path, f"CUDA 13.0\n{MAPPING}", {"driver.version": known("535.104.05", EX),
                        "driver.cuda": known("12.2", EX), "driver.init": Absent(reason="not-examined")})  # fmt: skip
    assert (told.verdict, told.causes[0].cause) == ("cause-found", "driver-too-old")
    assert [(e.line, e.text) for e in told.causes[0].evidence][:2] == [
        (1, "CUDA 13.0"),
        (0, "driver/version: 535.104.05 (example)"),
    ]


def test_a_finding_decides_only_where_the_text_speaks_for_the_cause_too(tmp_path: Path) -> None:
    skew = {"driver.kernel_module": known("570.86.10", EX)}
    alone = with_machine(tmp_path, MAPPING, skew)
    assert points(alone, "driver-lib-skew") == 4
    both = with_machine(tmp_path, f"Failed to initialize NVML: Driver/library version mismatch\n{MAPPING}", skew)
    assert (both.verdict, both.causes[0].cause, both.causes[0].points) == ("cause-found", "driver-lib-skew", 9 + 8)


@pytest.mark.parametrize(
    ("line", "doubt"),
    [
        ("NVIDIA driver 470.57.02", "the text names driver 470.57.02, the machine has 580.159.04: was it this machine"),
        ("GPU: RTX 3090", "the text names the GPU rtx 3090, the machine has NVIDIA H200: was it this machine?"),
        ("torch 1.13.1", "the text is of pytorch 1.13.1, the machine has torch 2.11.0: was it this environment?"),
    ],
)
def test_a_machine_that_contradicts_the_text_is_doubted(tmp_path: Path, line: str, doubt: str) -> None:
    told = with_machine(tmp_path, f"{line}\n{MAPPING}", FULL)
    assert [d for d in told.doubts if d.startswith(doubt)]
    assert with_machine(tmp_path, MAPPING).doubts == ()


def test_another_environment_s_libraries_are_not_judged_with_the_text(tmp_path: Path) -> None:
    told = with_machine(tmp_path, f"torch 1.13.1\n{MAPPING}")
    assert points(told, "cudnn-wrong-build") == 0
    assert "cudnn/" not in " ".join(e.text for c in told.causes for e in c.evidence)


def test_a_text_in_which_nothing_fails_stays_without_fault(tmp_path: Path) -> None:
    noise = "I tensorflow/core/platform/cpu_feature_guard.cc:141] This TensorFlow binary is optimized with oneDNN\n"
    told = with_machine(tmp_path, noise, {"driver.kernel_module": known("570.86.10", EX)})
    assert told.verdict == "no-problem"


def recorded(tmp_path: Path, name: str) -> str:
    """A recording of `run`, made on an H200."""
    file = tmp_path / f"{name}.jsonl"
    packed = HERE.parent / "recordings" / "run" / f"{name}.jsonl.gz"
    file.write_bytes(gzip.decompress(packed.read_bytes()))
    return str(file)


def test_a_run_beside_a_log_tells_what_the_log_does_not(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text(MAPPING, encoding="utf-8")
    assert explain([log]).verdict == "undetermined"
    run = recorded(tmp_path, "c_cudnn8_reset")
    told = msgspec.json.decode(answer([str(log), run], "json"), type=Explanation)
    best = told.causes[0]
    assert (told.verdict, best.cause, best.confidence) == ("cause-found", "context-reset", "confirmed")
    assert best.evidence[0].text.startswith("run: 0.993 s: cuDevicePrimaryCtxReset ended context 0x55a225d4c5f0")
    assert best.evidence[0].because == "the run's events prove it"


def test_a_run_alone_is_a_case_and_two_are_two(tmp_path: Path) -> None:
    reset, fork = recorded(tmp_path, "c_cudnn8_reset"), recorded(tmp_path, "c_cudnn8_fork")
    assert "[context-reset]" in answer([reset], "text")
    assert answer([reset, fork], "text", separate=True).count("CAUSE FOUND") == 2
    with pytest.raises(InputError, match="2 recordings of `run` are 2 cases: add --separate"):
        answer([reset, fork], "text")


def test_fixes_are_for_the_framework_of_the_machine(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    log.write_text("CUDA error: initialization error\n", encoding="utf-8")
    own = "Start workers with spawn, or touch CUDA only inside them"  # PyTorch's
    with_torch = explain([log], snapshot=sample().snapshot).causes[0]
    assert (with_torch.cause, with_torch.fixes[0].text.startswith(own)) == ("fork-after-init", True)
    assert not explain([log]).causes[0].fixes[0].text.startswith(own)


def test_a_packed_recording_of_run_is_the_same_as_an_unpacked_one(tmp_path: Path) -> None:
    packed = Path(__file__).parents[1] / "recordings" / "run" / "torch_foreign_stream.jsonl.gz"
    plain = tmp_path / "run.jsonl"
    plain.write_bytes(gzip.decompress(packed.read_bytes()))
    said = [call("explain", path).stdout for path in (packed, plain)]
    assert said[0] == said[1]
    assert said[0].startswith(
        "CAUSE FOUND (confirmed): A stream, a handle or a tensor of another GPU or another context"
    )


def test_a_damaged_packed_file_is_told_and_no_error_of_ours(tmp_path: Path) -> None:
    packed = gzip.compress(b'{"schema":"cudnn-doctor/run/1"' + b"x" * 5000)
    damaged = tmp_path / "run.jsonl.gz"
    damaged.write_bytes(packed[:12] + b"\xff\xff\xff\xff" + packed[16:])
    done = call("explain", damaged)
    assert done.returncode == 2
    assert "internal error" not in done.stderr
    assert str(damaged) in done.stderr
