"""Explanations as text, JSON and markdown: what is told, and that nothing of a hostile log acts."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import Literal

import msgspec
import pytest
from markdown_it import MarkdownIt
from msgspec.structs import replace
from rich.console import Console

from cudnn_doctor.diagnose import explain
from cudnn_doctor.model.explanation import Explanation
from cudnn_doctor.render.clean import cells
from cudnn_doctor.render.explain import render

LOGS = Path(__file__).parents[1] / "explain" / "logs"
HOSTILE = (
    "\x1b[2J\x1b]0;owned\x07[bold red]RuntimeError[/bold red]: cuDNN error: CUDNN_STATUS_MAPPING_ERROR \x9b31m\u202e"
    "<script>alert(1)</script> [link](http://x) ``` | `code` ::error::no"
)


def told(tmp_path: Path, text: str) -> Explanation:
    file = tmp_path / "a.log"
    file.write_text(text, encoding="utf-8")
    return explain([file])


def test_cause_found_is_told_with_lines_fixes_and_what_not_to_do() -> None:
    text = render(explain([LOGS / "torch_fork.log"]), "text", width=100)
    assert text == (
        "CAUSE FOUND (confirmed): CUDA was used before fork(); the child process cannot use it. The quoted\n"
        "                         line proves it.\n"
        "The failing line is the fault itself. [fork-after-init]\n"
        "\n"
        "Why\n"
        "  line 26: RuntimeError: Cannot re-initialize CUDA in forked subprocess. To use CUDA with\n"
        "           multiprocessing, you must use the 'spawn' start method\n"
        "    -> PyTorch itself says so\n"
        "\n"
        "What to do\n"
        "  1. Start workers with spawn, or touch CUDA only inside them; keep CUDA tensors out of the dataset\n"
        "     and collate function\n"
        "     Verify: With num_workers=0 the error is gone as well, which proves the fork\n"
        '  2. Use the start method spawn (or forkserver; multiprocessing.set_start_method("spawn") at the\n'
        "     start of the program), or initialise CUDA only in the child\n"
        "     Verify: The child's first GPU operation passes\n"
        "  Does not help: Reinstalling CUDA, cuDNN or the driver.\n"
        "\n"
        "Stated: framework pytorch; version 2.11.0+cu130\n"
    )


def test_undetermined_lists_what_is_possible_and_asks() -> None:
    text = render(explain([LOGS / "torch_memory.log"]), "text", width=100)
    assert text.startswith("NOT DECIDED BY THIS TEXT: The text does not decide. Possible, best first: vram-exhausted")
    assert "\nPossible, best first\n  - The job needs more GPU memory than there is" in text
    assert "\nWhat decides, best first\n  1. " in text
    assert "\nPlease tell\n  1. " in text


def test_silence_is_told() -> None:
    assert render(explain([LOGS / "jax_healthy.log"]), "text").startswith(
        "NOT A cuDNN PROBLEM: This is not about cuDNN"
    )


@pytest.mark.parametrize("width", [1, 40, 60, 100, 200, 10_000])
@pytest.mark.parametrize("name", ["torch_fork", "torch_memory", "jax_memory", "jax_shadow"])
def test_lines_fit_the_width_but_for_what_is_copied(name: str, width: int) -> None:
    document = explain([LOGS / f"{name}.log"])
    commands = {fix.command for cause in document.causes for fix in cause.fixes}
    commands |= {experiment.command for experiment in document.experiments}
    for line in render(document, "text", width=width).splitlines():
        longest = max((cells(word) for word in line.split()), default=0)
        fits = cells(line) <= max(40, min(width, 200)) or line.strip() in commands or " " not in line.strip()
        assert fits or cells(line.strip()) - longest < 40, line


def test_json_is_the_document_itself() -> None:
    document = explain([LOGS / "torch_fork.log"])
    text = render(document, "json")
    assert msgspec.json.decode(text, type=Explanation) == document
    assert text.isascii()


@pytest.mark.parametrize("fmt", ["text", "markdown"])
def test_nothing_of_a_hostile_log_reaches_the_terminal(tmp_path: Path, fmt: Literal["text", "markdown"]) -> None:
    document = told(tmp_path, f"{HOSTILE}\n")
    text = render(document, fmt)
    assert text.replace("\n", "").isprintable()
    assert "CUDNN_STATUS_MAPPING_ERROR" in text
    document = told(tmp_path, "torch 1.4.0\x1b[31m\nGPU: RTX 3090\x07\x1b[0m\n::error::x\nRuntimeError: cuDNN error: "
                    "CUDNN_STATUS_MAPPING_ERROR")  # fmt: skip
    assert render(document, fmt).replace("\n", "").isprintable()


def test_ci_commands_and_lone_surrogates_are_disarmed(tmp_path: Path) -> None:
    document = told(tmp_path, "##[error]RuntimeError: cuDNN error: CUDNN_STATUS_MAPPING_ERROR ##vso[task.x]\n")
    document = replace(document, notes=("::set-output name=x::y", "\ud800 lone"))
    text = render(document, "text")
    assert "##[" not in text
    assert "##vso[" not in text
    assert not any(line.lstrip().startswith("::") for line in text.splitlines())
    text.encode()
    json.loads(render(document, "json"))


def test_rich_markup_of_a_log_is_text(tmp_path: Path) -> None:
    document = told(tmp_path, "[bold]RuntimeError[/]: cuDNN error: CUDNN_STATUS_MAPPING_ERROR [red]x[/red][/nothing]\n")
    text = render(document, "text", color=True)
    assert "[/]" in text
    assert "[red]x[/red]" in text
    Console(file=io.StringIO()).print("ok")  # rich itself is there and was not confused


def test_colour_is_only_colour(tmp_path: Path) -> None:
    document = explain([LOGS / "torch_fork.log"])
    plain, coloured = render(document, "text"), render(document, "text", color=True)
    assert "\x1b[" in coloured
    assert [n.rstrip() for n in re.sub(r"\x1b\[[0-9;]*m", "", coloured).splitlines()] == plain.splitlines()


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252", "nonsense"])
def test_stream_of_any_encoding_can_say_it(tmp_path: Path, encoding: str) -> None:
    document = told(tmp_path, "显存 RuntimeError: cuDNN error: CUDNN_STATUS_MAPPING_ERROR 😀\n")
    text = render(document, "text", encoding=encoding)
    text.encode("ascii" if encoding == "nonsense" else encoding)
    assert "CUDNN_STATUS_MAPPING_ERROR" in text


def test_markdown_is_an_answer_to_paste() -> None:
    text = render(explain([LOGS / "torch_fork.log"]), "markdown")
    assert text.startswith("**Cause (confirmed):** CUDA was used before fork()")
    assert "- line 26: `RuntimeError: Cannot re-initialize CUDA in forked subprocess." in text
    assert "1. Start workers with spawn" in text
    shadowed = render(explain([LOGS / "jax_shadow.log"]), "markdown")
    assert "\n   `" in shadowed  # a command is code, on a line of its own
    silent = render(explain([LOGS / "jax_healthy.log"]), "markdown")
    assert silent.startswith("**Not a cuDNN problem:** This is not about cuDNN: no error of NVIDIA's")
    asked = render(explain([LOGS / "torch_memory.log"]), "markdown")
    assert "(`prior-cuda-fault`); line 19: `RuntimeError: cuDNN error: CUDNN_STATUS_INTERNAL_ERROR`\n" in asked
    assert "Please tell:\n\n1. Please send the 30 lines" in asked


def test_markdown_of_a_hostile_log_makes_no_markup(tmp_path: Path) -> None:
    parsed = MarkdownIt("commonmark", {"html": True}).parse(render(told(tmp_path, f"{HOSTILE}\n"), "markdown"))
    kinds = {child.type for token in parsed for child in (token, *(token.children or ()))}
    assert {"code_inline", "text"} <= kinds
    assert not kinds & {"html_inline", "html_block", "link_open", "image", "fence"}


def test_long_line_is_cut_for_people_and_marked(tmp_path: Path) -> None:
    document = told(tmp_path, f"RuntimeError: cuDNN error: CUDNN_STATUS_MAPPING_ERROR {'x' * 5000}\n")
    quoted = document.causes[0].evidence[0]
    assert len(quoted.text) == 300
    longer = replace(document.causes[0], evidence=(replace(quoted, text="y" * 400),))
    document = replace(document, causes=(longer, *document.causes[1:]))
    assert "y" * 297 + "..." in render(document, "text").replace("\n", "")
