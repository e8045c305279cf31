"""The report for people, in a terminal and out of it."""

from __future__ import annotations

import re
from io import StringIO

import msgspec
import pytest
from rich.console import Console

from cudnn_doctor.model.base import NOT_EXAMINED, Absent, known
from cudnn_doctor.model.live import Termination
from cudnn_doctor.model.report import Finding
from cudnn_doctor.render.clean import cells
from cudnn_doctor.render.text import render_text
from cudnn_doctor.rules import sample
from tests.render.build import FINDINGS, healthy, report

ANSI = re.compile(r"\x1b\[[0-9;]*m")


def test_the_whole_text() -> None:
    assert render_text(report(), width=100) == (
        "PROBLEM: CD301 torch 2.11.0: An older cuDNN is found before the one that it was built with\n"
        "cudnn-doctor 0.1.0 on Ubuntu 24.04.3 LTS, Python 3.12.3 in /opt/venv (VIRTUAL_ENV)\n"
        "\n"
        "[✓] Driver         580.159.04 (open kernel module), serves CUDA up to 13.0\n"
        "[?] GPU            GPU 0 NVIDIA H200 (9.0), 139.8 GiB free of 140.4 GiB\n"
        "[✗] cuDNN          9.1.0 in /opt/old/lib64 is loaded by plain dlopen (LD_LIBRARY_PATH), torch\n"
        "                   (LD_LIBRARY_PATH)\n"
        "                   9.19.0 in .../nvidia/cudnn/lib is shadowed\n"
        "                   CD301 torch 2.11.0: An older cuDNN is found before the one that it was built with\n"
        "[!] Compatibility  torch 2.11.0, built with CUDA 13.0 and cuDNN 9.19.0\n"
        "                   CD402 torch 2.11.0: The wheel pins another cuDNN than the one that it loads\n"
        "[✓] Environment    kernel 6.18.0, glibc 2.39\n"
        "                   set: LD_LIBRARY_PATH\n"
        "[✓] Live           device 0, cuDNN 9.1.0: works, 420 ms (context 1.0 ms, cudnnCreate 1.0 ms,\n"
        "                   cudnnSetStream 1.0 ms, convolution 1.0 ms)\n"
        "\n"
        "Problems (2)\n"
        "\n"
        "[✗] CD301 torch 2.11.0: An older cuDNN is found before the one that it was built with\n"
        "    torch was built with 9.19.0; the loader finds 9.1.0 first, because LD_LIBRARY_PATH names its\n"
        "    folder.\n"
        "    seen:   9.1.0 (cudnnGetVersion of /opt/old/lib64/libcudnn.so.9)\n"
        "    seen:   /opt/old/lib64 (environment)\n"
        "    fix:    Take the folder of the old copy out of LD_LIBRARY_PATH.\n"
        "            unset LD_LIBRARY_PATH\n"
        "    verify: cudnn-doctor check --only CD301\n"
        "\n"
        "[!] CD402 torch 2.11.0: The wheel pins another cuDNN than the one that it loads\n"
        "    seen:   9.19.0.56 (METADATA)\n"
        "    fix:    Install the pinned wheel.\n"
        "            pip install nvidia-cudnn-cu13==9.19.0.56\n"
        "\n"
        "Notes (1)\n"
        "\n"
        "[i] CD503 TF_FORCE_GPU_ALLOW_GROWTH: TensorFlow reserves nearly the whole card\n"
        "    seen:   not set (environment)\n"
        "    fix:    Let it grow.\n"
        "            export TF_FORCE_GPU_ALLOW_GROWTH=true\n"
        "\n"
        "Could not be decided (1)\n"
        "[?] CD203 GPU 0: Memory health: /snapshot/gpus/0/remapped_rows is absent (no-permission)\n"
        "\n"
        "PROBLEM (exit code 1): 1 error, 1 warning, 1 unknown, 1 note, 2 ok, 1 skipped.\n"
        "Start with CD301: Take the folder of the old copy out of LD_LIBRARY_PATH. Then run the check again.\n"
    )


def test_a_healthy_machine_is_told_in_few_lines() -> None:
    text = render_text(healthy(), width=100)
    assert text.startswith("OK: examined, nothing wrong\n")
    assert "\nOK (exit code 0): " in text
    assert len(text.splitlines()) == 10
    assert "Problems" not in text


def test_a_title_that_names_its_subject_is_not_doubled() -> None:
    f = msgspec.structs.replace(FINDINGS[3], title="torch 2.11.0 would load cuDNN 9.1.0")
    assert "\n[✗] CD301 torch 2.11.0 would load cuDNN 9.1.0\n" in render_text(report(findings=(f,)), width=100)


def test_verbose_shows_every_answer() -> None:
    text = render_text(report(), width=100, verbose=True)
    assert "In order (2)\n[✓] CD101 driver 580.159.04: The NVIDIA driver answers\n" in text
    assert "Did not apply (1)\n[–] CD105 not WSL\n" in text


@pytest.mark.parametrize("width", [1, 40, 63, 64, 80, 120, 200, 500])
def test_lines_fit_but_for_what_must_be_copied_whole(width: int) -> None:
    wide = max(40, min(width, 200))
    for line in render_text(report(), width=width, verbose=True).splitlines():
        if cells(line) > wide:
            first, *more = line.removeprefix("    verify: ").split()
            assert not more or first in ("unset", "export", "pip", "cudnn-doctor"), line


@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "cp437", "latin-1"])
def test_streams_without_the_signs_get_words(encoding: str) -> None:
    text = render_text(report(), width=100, encoding=encoding, verbose=True)
    text.encode(encoding)
    for word in ("[ok]", "[FAIL]", "[warn]", "[?]", "[note]", "[-]"):
        assert word in text
    assert "[ok]    Driver         580" in text


def test_colour_adds_nothing_but_colour() -> None:
    plain, painted = render_text(report(), width=100), render_text(report(), width=100, color=True)
    assert ANSI.sub("", painted).splitlines() == [line.rstrip() for line in plain.splitlines()]
    assert "\x1b[1;31m[✗]\x1b[0m" in painted
    assert not re.search(r"\x1b\[(?:4[0-9]|10[0-7]|48)", painted)  # no background of ours on the user's palette


def test_hostile_text_cannot_act_in_a_terminal_or_a_ci_log() -> None:
    evil = "\x1b]0;owned\x07[bold red]x[/] :skull:\n::error::gotcha\n##[add-mask]y\r\u202e"
    bad = msgspec.structs.replace(FINDINGS[3], title=evil, detail=evil, subject=evil)
    for color in (False, True):
        text = ANSI.sub("", render_text(report(findings=(bad,), reason=evil, notes=(evil,)), width=100, color=color))
        assert not set(text) & {"\x1b", "\x07", "\r", "\u202e"}
        assert "[bold red]x[/] :skull:" in text
        assert not [line for line in text.splitlines() if line.lstrip().startswith("::") or "##[" in line]


def test_a_box_without_gpu_is_told_what_to_do() -> None:
    snapshot = sample.snapshot()
    nothing = Absent(reason="not-found")
    driver = msgspec.structs.replace(
        snapshot.driver, pci=known((), "/sys"), version=nothing, nvml=nothing, kernel_module=nothing, init=NOT_EXAMINED
    )
    snapshot = msgspec.structs.replace(snapshot, driver=driver, gpus=nothing, cudnn=(), resolutions=(), frameworks=())
    finding = Finding(
        code="CD101", status="unknown", severity="error", owner="node", subject="", title="No NVIDIA hardware"
    )
    text = render_text(
        report(
            findings=(finding,), snapshot=snapshot, scenarios=(), verdict="no-verdict", exit_code=2, reason="nothing"
        ),
        width=100,
    )
    assert "[?] Driver  no NVIDIA device\n" in text
    assert text.startswith("NO VERDICT: nothing\n")
    assert "\nNO VERDICT (exit code 2): " in text
    assert "cudnn-doctor snapshot -o FILE" in text


def test_eight_gpus_alike_are_one_line_and_two_are_two() -> None:
    snapshot = sample.snapshot()
    one = sample.snapshot().gpus.value[0]  # type: ignore[union-attr]
    for n, expected in (
        (8, "GPU 0 to 7: NVIDIA H200 (9.0), at least 139.8 GiB free of 140.4 GiB"),
        (2, "GPU 1 NVIDIA H200"),
    ):
        gpus = tuple(msgspec.structs.replace(one, index=i) for i in range(n))
        text = render_text(report(snapshot=msgspec.structs.replace(snapshot, gpus=known(gpus, "NVML"))), width=120)
        assert expected in text


def test_a_live_check_that_died_says_where() -> None:
    dead = sample.live_check(
        fate=Termination(kind="signal", signal="SIGABRT", last_step="cudnnCreate"), cudnn_version=""
    )
    text = render_text(report(scenarios=(dead,)), width=120)
    assert "[✓] Live           device 0, cuDNN .../cudnn/lib/libcudnn.so.9: ended by SIGABRT in cudnnCreate\n" in text


def test_a_crashed_rule_is_named_as_ours() -> None:
    crashed = Finding(
        code="CD102",
        status="crashed",
        severity="error",
        owner="node",
        subject="",
        title="Driver version",
        detail="KeyError: 'x'",
    )
    text = render_text(report(findings=(crashed, *FINDINGS)), width=100)
    assert "[☠] Driver" in text
    assert "a fault of cudnn-doctor, please report it" in text


def test_rich_is_loaded_for_colour_only() -> None:
    import subprocess
    import sys

    code = (
        "import sys; from tests.render.build import report; from cudnn_doctor.render import render; "
        "[render(report(), f) for f in ('text', 'json', 'markdown', 'junit', 'github', 'quiet', 'nagios')]; "
        "print([m for m in sys.modules if m.split('.')[0] == 'rich'])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_what_is_painted_shows_the_same_words_when_a_terminal_reads_it() -> None:
    out = StringIO()
    words = ANSI.sub("", render_text(report(), width=80, color=True))
    Console(file=out, width=300, force_terminal=False).print(words, markup=False, end="")
    assert out.getvalue() == render_text(report(), width=80)
