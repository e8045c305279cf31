"""Lines with what is known of them: log or prose, script or not, when, by whom."""

from __future__ import annotations

import pytest

from cudnn_doctor.logs.document import Document, build, is_code, is_log
from cudnn_doctor.logs.scan import Raw


def document(*lines: str) -> Document:
    return build([("test", [Raw(i + 1, line.encode()) for i, line in enumerate(lines)])])


@pytest.mark.parametrize(
    "line",
    [
        "2018-05-29 10:47:31.840117: E tensorflow/stream_executor/cuda/cuda_dnn.cc:97] x",
        "E0529 10:47:31.840117  4711 cuda_dnn.cc:97] x",
        "F tensorflow/stream_executor/cuda/cuda_dnn.cc:427] could not set cudnn filter descriptor",
        "RuntimeError: CUDA error: out of memory",
        "tensorflow.python.framework.errors_impl.InternalError: cuDNN launch failure",
        "Traceback (most recent call last):",
        '  File "train.py", line 3, in <module>'.strip(),
        "[10:11:12] src/operator/nn/convolution.cu:148: Check failed",
        "#5 0x00007f3b in c10::Error",
        "| NVIDIA-SMI 535.54    Driver Version: 535.54    CUDA Version: 12.2 |",
        "Segmentation fault (core dumped)",
        "user@host:~$ python train.py",
        " 45%|####5     | 120/266".strip(),
        "name: GeForce GTX 1080 major: 6 minor: 1 memoryClockRate(GHz): 1.8",
    ],
)
def test_printed_by_a_program(line: str) -> None:
    assert is_log(line)


@pytest.mark.parametrize(
    "line",
    [
        "",
        "I get a mapping error after an hour.",
        "CUDA: 11.2",
        "- GPU: RTX 3090",
        "Interestingly the error goes away with batch 2",
        "Errors like this are new to me",
        "3090 with driver 470",
    ],
)
def test_written_by_people(line: str) -> None:
    assert not is_log(line)


@pytest.mark.parametrize(
    "line",
    [
        "grep -c 'CUDNN_STATUS_MAPPING_ERROR' train.log",
        "if 'CUDNN_STATUS_MAPPING_ERROR' in line:",
        'PATTERN = re.compile("CUDNN_STATUS_(\\w+)")',
        "except RuntimeError as CUDNN_STATUS_MAPPING_ERROR:",
        'if [[ "$line" =~ "CUDNN_STATUS_MAPPING_ERROR" ]]; then if x in "$(cat log)" then'[:54],
    ],
)
def test_script_that_only_names_an_error(line: str) -> None:
    assert is_code(line)


@pytest.mark.parametrize(
    "line", ["the match failed with CUDNN_STATUS_MAPPING_ERROR", "if you set it to 1, then it works", "in case: x"]
)
def test_prose_is_no_script(line: str) -> None:
    assert not is_code(line)


def test_time_comes_from_stamps_of_all_kinds_and_goes_on() -> None:
    text = document(
        "2024-05-01 10:00:00.500000: I tensorflow/core/x.cc:1] a",
        "no stamp",
        "2024-05-01T10:00:02.500000000Z b",
        "[2024-05-01 10:00:03,500] c",
        "May  1 10:00:03 node python[1]: d",
    )
    first = text.lines[0].time
    assert first is not None
    assert [line.time and round(line.time - first, 3) for line in text.lines] == [0.0, 0.0, 2.0, 3.0, 3.0]


def test_level_is_read() -> None:
    text = document(
        "2018-05-29 10:47:31.840117: E tensorflow/stream_executor/cuda/cuda_dnn.cc:97] x",
        "W0529 10:47:31.840117  4711 cuda_dnn.cc:97] x",
        "I0000 00:00:1722222222.412077    3120 cuda_dnn.cc:454] x",
        "I think so",
    )
    assert [line.level for line in text.lines] == ["E", "W", "I", ""]


def test_sentences_end_at_dots_and_not_in_versions_or_wrapped_lines() -> None:
    text = document("It works with 11.2 and", "fails with 11.3. Then", "- libcudnn.so.8 is new")
    assert text.said == "it works with 11.2 and fails with 11.3\n then\n- libcudnn.so.8 is new"
    assert len(text.said) == len(text.text) == len(text.flat)


@pytest.mark.parametrize(
    "header",
    [
        "**octocat** commented on May 3, 2021",
        "octocat commented on May 3",
        "@octocat wrote:",
        "### octocat commented",
        "octocat \u00b7 comment",
        "-- octocat, later --",
        "=== octocat ===",
        "From: octocat",
        "#### Comment by octocat",
        "~~~ octocat ~~~",
        "+++ octocat +++",
        "### octo_cat",
    ],
)
def test_speaker_is_named_before_what_is_said(header: str) -> None:
    text = document("The title", header, "my error", "**Second** commented 2 days ago", "mine")
    speakers = [line.speaker for line in text.lines]
    assert speakers[0] == 0
    assert 0 < speakers[2] != speakers[4] > 0


def test_chat_names_each_line() -> None:
    text = document("[10:11] <ann> my GPU is a T4", "10:12 <bob> mine is a P100", "10:13 ann: and 11.2")
    assert [(line.speaker, line.text) for line in text.lines] == [
        (1, "my GPU is a T4"),
        (2, "mine is a P100"),
        (1, "and 11.2"),
    ]


def test_level_after_a_time_is_no_person() -> None:
    text = document("[10:11:12] INFO: starts", "[10:11:13] ERROR: fails", "10:11:14 WARNING: slow")
    assert [(n.speaker, n.text) for n in text.lines] == [
        (0, "[10:11:12] INFO: starts"),
        (0, "[10:11:13] ERROR: fails"),
        (0, "10:11:14 WARNING: slow"),
    ]


@pytest.mark.parametrize("line", ["Same here with a 1080", "+1, on Windows", "me too", "I have the same problem"])
def test_me_too_is_another_person(line: str) -> None:
    text = document("CUDA 9.0, fails", line)
    assert [n.speaker for n in text.lines] == [0, 1]


@pytest.mark.parametrize(
    "line", ["**Environment**", "## CUDA", "Describe the bug", "**Versions**:", "# GPU", "### Platform", "### urgency"]
)
def test_heading_is_no_person(line: str) -> None:
    assert document(line, "x").lines[1].speaker == 0


@pytest.mark.parametrize("prefix", ["", "[pod/a/b] "])
def test_after_a_quotation_the_one_who_quoted_goes_on(prefix: str) -> None:
    text = document(
        *(prefix + n for n in (">> From: ann", ">> it fails", ">", "> bob wrote:", "> mine not", "I am ann again")),
        *(prefix + n for n in ("**cid** commented", "x", "> it fails", "y", "ann wrote:", "> it fails", "z")),
    )
    assert [(n.text, n.speaker) for n in text.lines if len(n.text) in (1, 8, 14) or n.text == "mine not"] == [
        ("it fails", 1),
        ("mine not", 2),
        ("I am ann again", 0),
        ("x", 3),
        ("it fails", 3),
        ("y", 3),
        ("it fails", 1),
        ("z", 3),
    ]


def test_offsets_and_lines() -> None:
    text = document("ab", "", "cde")
    assert text.text == "ab\n\ncde"
    assert [text.line_at(n) for n in range(7)] == [0, 0, 0, 1, 2, 2, 2]
