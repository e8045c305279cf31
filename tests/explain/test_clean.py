"""Every kind of damage that a log suffers on its way into a ticket is undone."""

from __future__ import annotations

import pytest

from cudnn_doctor.logs.clean import clean

LINE = "RuntimeError: cuDNN error: CUDNN_STATUS_MAPPING_ERROR"


@pytest.mark.parametrize(
    "damaged",
    [
        f"{LINE}\r",
        f"  {LINE}   ",
        f"\t{LINE}",
        f"> {LINE}",
        f">> > {LINE}",
        f"<p>{LINE}</p>",
        f'<span class="err">{LINE}</span><br/>',
        f"\x1b[31m{LINE}\x1b[0m",
        f"\x1b[1;31m\x1b[K{LINE}\x1b[m\x1b[K",
        f"\x1b]0;title\x07{LINE}",
        f"[31m{LINE}[0m",
        "RuntimeError:  cuDNN   error: CUDNN_STATUS_MAPPING_ERROR",
        "RuntimeError: cuDNN error: CUDNN_STATUS_MAPPING_ERROR\x00\x07",
        "RuntimeError:\u00a0cuDNN error:&nbsp;CUDNN_STATUS_MAPPING_ERROR",
        "RuntimeError\uff1acuDNN error\uff1aCUDNN_STATUS_MAPPING_ERROR",  # full-width colons
        "\uff32untimeError: cuDNN error: CUDNN\uff3fSTATUS\uff3fMAPPING\uff3fERROR",
        "RuntimeError: cu\u200bDNN error: CUDNN_STATUS_MAPPING_ERROR",
        "\u202eRuntimeError: cuDNN error: CUDNN_STATUS_MAPPING_ERROR\u202c",
        "RuntimeError&#58; cuDNN error&amp;#58; CUDNN_STATUS_MAPPING_ERROR",
        f"[1,0]<stderr>:{LINE}",
        f"[1,12]<stdout>: {LINE}",
        f"(pid=4711) {LINE}",
        f"(Trainer pid=4711, ip=10.0.0.7) {LINE}",
        f"(train.<locals>.fn pid=77) {LINE}",
        f"trainer_1  | {LINE}",
        f"compose-web.1 | {LINE}",
        f"[pod/job-x7k2p/main] {LINE}",
        f"2024-05-01T10:11:12.123456789Z {LINE}",
        f"2024-05-01T10:11:12.123456789Z stderr F {LINE}",
        f"May  1 10:11:12 node7 python3[4711]: {LINE}",
        f"May 01 10:11:12 node7 slurmstepd-train.service[99]: {LINE}",
        f"2024-05-01T10:11:12+0200 node7 python[4711]: {LINE}",
        f"3: {LINE}",
        f"3:   {LINE}",
        f"[2024-05-01T10:11:12.123Z] {LINE}",
        f"2024-05-01T10:11:12.123456Z 01O {LINE}",
        f"[rank3]: {LINE}",
        f"rank 3: {LINE}",
        f"[default0]: {LINE}",
        f"[default0]:{LINE}",
        "RuntimeError: cuDNN error: CUDNN\\_STATUS\\_MAPPING\\_ERROR",  # markdown
        f'{{"log":"{LINE}\\n","stream":"stderr","time":"2024-05-01T10:11:12.1Z"}}',
        f'{{"log":"\\u001b[31m{LINE}\\n","stream":"stderr"}}',
        f"[1,3]<stderr>:[rank3]: {LINE}",
        f"trainer_1  | 2024-05-01T10:11:12.123456789Z \x1b[31m{LINE}\x1b[0m",
    ],
)
def test_line_is_as_it_was_printed(damaged: str) -> None:
    assert [text for text, _ in clean(damaged)] == [LINE]


@pytest.mark.parametrize(
    "kept",
    [
        ">>> import torch",
        "a < b and c > d",
        "x[0] = y[i]",
        "std::vector<int> v; Foo<Bar>(x)",
        "AT&T; R&D",
        "Epoch 3: 100 | 200",
        "2018-05-29 10:47:31.840117: E tensorflow/stream_executor/cuda/cuda_dnn.cc:97] x",
        "E0000 00:00:1722222222.412077    3120 cuda_dnn.cc:454] x".replace("    ", " "),
        "PS C:\\Users\\me> python train.py",
        "C:\\new\\name\\nets\\train.py and D:\\a\\net",
        "sed -e s/a\\nb/c/",
    ],
)
def test_what_is_no_damage_stays(kept: str) -> None:
    assert [text for text, _ in clean(kept)] == [kept]


def test_progress_bar_hides_several_lines() -> None:
    assert [t for t, _ in clean("\r  1% 3/313\r 58% 180/313\rRuntimeError: x\r")] == [
        "1% 3/313",
        "58% 180/313",
        "RuntimeError: x",
    ]


def test_printed_string_hides_several_lines() -> None:
    assert [t for t, _ in clean("b'Traceback:\\n  File \"x.py\"\\nRuntimeError: x\\n'")] == [
        "b'Traceback:",
        'File "x.py"',
        "RuntimeError: x",
        "'",
    ]


def test_hostile_backslashes_end() -> None:
    assert clean("\\u005c" * 50_000)[0][0] == "\\u005c" * 50_000
    assert clean('{"' + "\\u005cu005c" * 50_000)[0][0].startswith('{"\\u005c')
    assert clean("\\" * 100_000 + "*")[0][0].endswith("*")


def test_prefix_is_kept_for_time_and_rank() -> None:
    ((text, prefix),) = clean("trainer_1  | 2024-05-01T10:11:12.123456789Z RuntimeError: x")
    assert (text, prefix) == ("RuntimeError: x", "trainer_1  | 2024-05-01T10:11:12.123456789Z ")


@pytest.mark.parametrize(
    "empty", ["\r", "2024-05-01T10:11:12.123456789Z ", "trainer_1  | ", "May  1 10:11:12 n7 x[4]: "]
)
def test_empty_line_stays_empty(empty: str) -> None:
    assert [text for text, _ in clean(empty)] == [""]


def test_table_cells_are_told_apart() -> None:
    assert clean("<tr><td>CUDA</td><td>11.2</td></tr>") == [("CUDA | 11.2", "")]


@pytest.mark.parametrize(
    ("damaged", "plain"),
    [
        ("2021-01-02 10\uff1a15\uff1a01", "2021-01-02 10:15:01"),
        ("C\uff1a\\cuda", "C:\\cuda"),
        ("CUDA\uff1a11", "CUDA: 11"),
        ("0: > x", "x"),
        ("0:", ""),
    ],
)
def test_colon_and_prefix(damaged: str, plain: str) -> None:
    assert [text for text, _ in clean(damaged)] == [plain]
