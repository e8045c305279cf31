"""Markdown for issues: bounded, and nothing in it can act."""

from __future__ import annotations

import re

import msgspec
import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token

from cudnn_doctor.model.report import Evidence, Finding, Fix
from cudnn_doctor.render.markdown import LIMIT, render_markdown
from cudnn_doctor.render.markdown_parts import block, code, text
from tests.render.build import FINDINGS, report

PARSER = MarkdownIt("gfm-like", {"linkify": False})


def tokens(markdown: str) -> list[Token]:
    flat = []
    for token in PARSER.parse(markdown):
        flat += [token, *(token.children or [])]
    return flat


def test_the_head_comes_first_and_details_are_folded() -> None:
    lines = render_markdown(report()).splitlines()
    assert lines[0] == "# cudnn-doctor 0.1.0: ❌ problem"
    assert lines[2] == (
        "**CD301 torch 2.11.0: An older cuDNN is found before the one that it was built with** (exit code 1)"
    )
    assert lines.index("## Problems (2)") < lines.index("<details>")
    assert lines.count("<details>") == lines.count("</details>") == 8


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("9.19.0 in /opt/x_y/lib-64", "9.19.0 in /opt/x_y/lib-64"),
        ("(7 vs. 0)Failed to set cuDNN stream.", "(7 vs. 0)Failed to set cuDNN stream."),
        ("<b>&amp;", "&lt;b&gt;&amp;amp;"),
        ("*a* _b_ `c` [d](e) ~f~ #1 @me |", r"\*a\* \_b\_ \`c\` \[d\](e) \~f\~ \#1 \@me \|"),
        ("- item", r"\- item"),
        ("1. item", r"1\. item"),
        ("580.159.04", "580.159.04"),
        ("https://evil.example www.evil.example", r"https\://evil.example www\.evil.example"),
        ("$x$ a\nb", r"\$x\$ a b"),
    ],
)
def test_prose(value: str, expected: str) -> None:
    assert text(value) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [("a`b", "``a`b``"), ("`a`", "`` `a` ``"), ("a|b", "`a¦b`"), ("a\n@b", "`a @b`"), ("", "")],
)
def test_code_spans(value: str, expected: str) -> None:
    assert code(value) == expected


def test_a_block_is_fenced_longer_than_what_is_in_it() -> None:
    assert block("a\n````\nb") == "`````\na\n````\nb\n`````"


EVIL = (
    "<script>alert(1)</script> <img src=x onerror=alert(1)> [x](javascript:alert(1)) ![i](https://evil.example/i.png) "
    "<https://evil.example> @torvalds #1 **b** `c` ```\n```\n# head\n\n</details>\n- [ ] task\n> quote\n"
    "| a | b |\n|---|"
)


def test_markup_from_the_machine_stays_text() -> None:
    bad = Finding(
        code="CD501", status="problem", severity="error", owner="node", subject=EVIL, title=EVIL, detail=EVIL,
        evidence=(Evidence(pointer="/x", value=EVIL, source=EVIL),), fixes=(Fix(text=EVIL, command=EVIL, verify=EVIL),),
    )  # fmt: skip
    unknown = msgspec.structs.replace(bad, status="unknown")
    plain = report()
    hostile = report(findings=(*FINDINGS, bad, unknown), reason=EVIL, notes=(EVIL,))
    found = tokens(render_markdown(hostile))
    assert not [t for t in found if t.type in ("link_open", "image")]
    assert {t.content for t in found if t.type == "html_inline"} <= {"<br>", "<sub>", "</sub>"}
    own = re.compile(r"<details>\n<summary>[\w ()]+</summary>\n|</details>\n")
    assert not [t.content for t in found if t.type == "html_block" and not own.fullmatch(t.content)]
    headings = [t for t in found if t.type == "heading_open"]
    assert len(headings) == len([t for t in tokens(render_markdown(plain)) if t.type == "heading_open"]) + 1
    mentions = [t.content for t in found if t.type == "text" and "@torvalds" in t.content]
    assert mentions  # shown, but behind a backslash in the source, which keeps GitHub from pinging
    assert "\\@torvalds" in render_markdown(hostile)


def test_a_huge_report_stays_under_the_limit_and_says_so() -> None:
    many = tuple(
        msgspec.structs.replace(FINDINGS[3], subject=f"copy {i}", title=f"Title {i}", detail="word " * 300)
        for i in range(200)
    )
    markdown = render_markdown(report(findings=many))
    assert len(markdown) <= LIMIT
    assert "parts are left out to stay under 60000 characters" in markdown
    assert markdown.count("<details>") == markdown.count("</details>")
    assert markdown.startswith("# cudnn-doctor 0.1.0: ❌ problem")


def test_one_huge_text_is_cut() -> None:
    huge = msgspec.structs.replace(FINDINGS[3], detail="x" * 1_000_000, fixes=(Fix(text="y", command="z\n" * 500_000),))
    markdown = render_markdown(report(findings=(huge,)))
    assert len(markdown) <= LIMIT
    assert "… (998000 more characters)" in markdown
