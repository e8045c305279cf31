"""The states as text: the table, several copies side by side, small screens, hostile names."""

from __future__ import annotations

import msgspec
import pytest

from cudnn_doctor.model.live import ScenarioResult, Step, Termination
from cudnn_doctor.model.reproduction import Copy, Device, Reproduction
from cudnn_doctor.render.reproduce import progress_line, render_list, render_reproduction
from cudnn_doctor.reproduce.compare import judged
from cudnn_doctor.reproduce.report import report
from cudnn_doctor.scenarios import scenarios

NINE, EIGHT = "/a/libcudnn.so.9", "/b/libcudnn.so.8"
NAMES = {0: "CUDNN_STATUS_SUCCESS", 7: "CUDNN_STATUS_MAPPING_ERROR", 2007: "CUDNN_STATUS_BAD_PARAM_STREAM_MISMATCH"}


def made(scenario: str, cudnn: str = NINE, fate: Termination | None = None, **answers: int) -> ScenarioResult:
    steps = [
        Step(
            call="cudnnSetStream", label=k.replace("_", " ").replace("s context", "'s context"), status=v, name=NAMES[v]
        )
        for k, v in answers.items()
    ]
    if scenario == "valid-stream":
        steps.append(Step(call="cudnnSetStream", label="per-thread stream", status=0, name=NAMES[0]))
        steps.append(Step(call="stream kept", label="own stream kept", value=1))
    return judged(
        ScenarioResult(
            scenario=scenario,
            device=0,
            cudnn=cudnn,
            cudnn_version="9.19.0" if cudnn == NINE else "8.9.7",
            fate=fate or Termination(kind="completed"),
            steps=tuple(steps),
            ms=3.0,
        )
    )


def valid(cudnn: str) -> ScenarioResult:
    return made("valid-stream", cudnn, own_stream=0, NULL_stream=0, legacy_stream=0)


CRASH = Termination(
    kind="signal", signal="SIGSEGV", last_step="cudnnSetStream", last_label="destroyed stream", stderr="\x1b[2Jx"
)


def document(*, both: bool = False) -> Reproduction:
    results = [
        valid(NINE),
        made("other-context", streams_context_current=2007, handles_context_current=2007),
        made("stream-destroyed", fate=CRASH),
        msgspec.structs.replace(made("trap"), skipped="not asked for: --faults", fate=Termination(kind="not-started")),
    ]
    copies = [Copy(path=NINE, major=9, version="9.19.0")]
    if both:
        results += [
            valid(EIGHT),
            made("other-context", EIGHT, streams_context_current=7, handles_context_current=7),
            made("stream-destroyed", EIGHT, destroyed_stream=0),
        ]
        copies.append(Copy(path=EIGHT, major=8, version="8.9.7"))
    return report(results, copies, [Device(ordinal=0, name="NVIDIA H200")])


def test_the_table_of_one_copy() -> None:
    lines = render_reproduction(document(), width=160).splitlines()
    assert lines[0] == "cuDNN 9.19.0 on device 0, NVIDIA H200"
    row = lines[lines.index("other-context") + 1]
    assert " ".join(row.split()) == (
        "stream's context current 2007 BAD_PARAM_STREAM_MISMATCH (bad parameter) as expected"
    )
    dead = lines[lines.index("stream-destroyed") + 1]
    assert " ".join(dead.split()) == "destroyed stream SIGSEGV SIGSEGV as expected (2007 or SIGSEGV)"
    at = lines.index("On NVIDIA H200 with cuDNN 9.19.0, status 2007 from cudnnSetStream can come from:")
    assert lines[at + 1].startswith("  - a stream of another context of the same GPU (pycuda, TensorRT")
    assert "  trap: not asked for: --faults" in lines


def test_copies_side_by_side() -> None:
    lines = render_reproduction(document(both=True), width=160).splitlines()
    assert lines[0].split() == ["device", "0", "9.19.0", "8.9.7"]
    cells = {" ".join(line.split()) for line in lines}
    assert "other-context stream's context current 2007 7" in cells
    assert "handle's context current 2007 7" in cells
    assert "stream-destroyed destroyed stream SIGSEGV 0 !" in cells
    assert sum("from cudnnSetStream" in line for line in lines) == 2
    assert not any("as expected" in line for line in lines)
    assert any(
        "as expected" in line for line in render_reproduction(document(both=True), width=160, verbose=True).splitlines()
    )


@pytest.mark.parametrize("width", [40, 64, 80])
def test_small_screens(width: int) -> None:
    text = render_reproduction(document(), width=width)
    assert max(map(len, text.splitlines())) <= width
    words = " ".join(text.split())
    if width < 80:
        assert "destroyed stream: SIGSEGV (process: SIGSEGV): as expected (2007 or SIGSEGV)" in words
    else:
        assert "stream's context current 2007 BAD_PARAM_STREAM" in words


def test_what_a_library_printed_cannot_act() -> None:
    text = render_reproduction(document(), width=120, verbose=True)
    assert "\x1b" not in text
    assert "\\x1b[2Jx" in text


def test_every_state_is_listed_with_its_flag() -> None:
    text = render_list(width=200)
    assert all(any(line.split()[:1] == [k] for line in text.splitlines()) for k in scenarios())
    assert "faults-context (--faults)" in text
    assert "fills-memory (--memory)" in text


def test_progress() -> None:
    assert progress_line(9, 36, "after-fork#2") == "[#####...............] 9 of 36 states, after-fork"
    assert progress_line(0, 0, "x").startswith("[....................] 0 of 0")
