"""The HTML report: one file, nothing in it acts, everything in it is said."""

from __future__ import annotations

from html.parser import HTMLParser

import msgspec
import pytest

from cudnn_doctor.model import explanation as explain
from cudnn_doctor.model.base import Absent, known
from cudnn_doctor.model.facts import GpuProcess
from cudnn_doctor.model.live import ScenarioResult, Step, Termination
from cudnn_doctor.model.report import Evidence, Finding, Fix, Report, Status
from cudnn_doctor.render.html import render_html
from cudnn_doctor.rules import sample
from tests.render.build import OLD, healthy, report


class Page(HTMLParser):
    """Elements with their attributes, text by element, and whether every element was closed."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.texts: list[tuple[str, str]] = []
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in ("meta", "br", "hr", "wbr"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append((self.open[-1] if self.open else "", data))

    def text(self, *tags: str) -> str:
        return " ".join(data for tag, data in self.texts if not tags or tag in tags)


ALLOWED = frozenset(
    [
        "html",
        "head",
        "meta",
        "title",
        "style",
        "body",
        "main",
        "section",
        "article",
        "div",
        "p",
        "span",
        "strong",
        "code",
        "pre",
        "ul",
        "ol",
        "li",
        "h1",
        "h2",
        "h3",
        "table",
        "caption",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
        "details",
        "summary",
        "svg",
        "desc",
        "defs",
        "marker",
        "path",
        "g",
        "rect",
        "text",
    ]
)
SAFE_ATTRIBUTES = frozenset(
    [
        "lang",
        "charset",
        "http-equiv",
        "content",
        "name",
        "class",
        "style",
        "scope",
        "tabindex",
        "role",
        "aria-label",
        "aria-labelledby",
        "id",
        "title",
        "x",
        "y",
        "width",
        "height",
        "rx",
        "d",
        "viewbox",
        "refx",
        "refy",
        "markerwidth",
        "markerheight",
        "orient",
        "marker-end",
        "text-anchor",
    ]
)


def provoked(
    scenario: str, *steps: Step, fate: Termination | None = None, verdict: str = "as-expected", skipped: str = ""
) -> ScenarioResult:
    return ScenarioResult(
        scenario=scenario, device=0, cudnn=OLD, cudnn_version="9.1.0", fate=fate or Termination(kind="completed"),
        steps=steps, ms=1.0, verdict=verdict, skipped=skipped,
    )  # fmt: skip


PROVOKED = (
    provoked("same-context", Step(call="cudnnSetStream", status=0, name="CUDNN_STATUS_SUCCESS")),
    provoked("other-context", Step(call="cudnnSetStream", status=2007, name="CUDNN_STATUS_BAD_PARAM_STREAM_MISMATCH")),
    provoked(
        "full-memory", Step(call="cudnnCreate", status=4000, name="CUDNN_STATUS_INTERNAL_ERROR"), verdict="differs"
    ),
    provoked("dead-handle", fate=Termination(kind="signal", signal="SIGSEGV", last_step="cudnnSetStream")),
    provoked("illegal-address", fate=Termination(kind="not-started"), skipped="needs --faults", verdict=""),
)
EVIL = (
    "</style></title></textarea>--><script>alert(1)</script><img src=x onerror=alert(1)>' onload='x\" onclick=\"y "
    "&lt;script&gt; \x1b]0;x\x07 \x00 \ufffe \ud800 [red] javascript:alert(1) {{7*7}}"
)


def explanation(text: str) -> explain.Explanation:
    cause = explain.Cause(
        cause="vram-exhausted", title=text, confidence="likely", role="consequence", points=5,
        evidence=(explain.Evidence(line=12, text=text, because=text, file=text),),
        fixes=(explain.Fix(text=text, command=text),), avoid=text,
    )  # fmt: skip
    return explain.Explanation(
        verdict="cause-found", summary=text, causes=(cause,),
        questions=(explain.Question(id="gpu", text=text, decides=()),), facts=explain.Facts(gpu=text), doubts=(text,),
        notes=(text,),
    )  # fmt: skip


def full(text: str) -> Report:
    """`text` in every place of a report where text can stand."""
    bad = Finding(
        code="CD501", status="problem", severity="error", owner="node", subject=text, title=text, detail=text,
        evidence=(Evidence(pointer=text, value=text, source=text),), fixes=(Fix(text=text, command=text, verify=text),),
        causes=(text,),
    )  # fmt: skip
    states = ("problem", "ok", "unknown", "skipped", "crashed")
    snapshot = report().snapshot
    gpu = msgspec.structs.replace(
        snapshot.gpus.value[0],  # type: ignore[union-attr]
        name=known(text, text),
        uuid=known(text, text),
        processes=known((GpuProcess(pid=1, name=known(text, text), memory=known(2**34, text), kind="compute"),), text),
        throttle=known((text,), text),
    )
    snapshot = msgspec.structs.replace(
        snapshot,
        gpus=known((gpu,), text),
        host=msgspec.structs.replace(snapshot.host, environment={"LD_PRELOAD": text}, os=known(text, text)),
        cudnn=tuple(msgspec.structs.replace(c, directory=text, found_by=(text,)) for c in snapshot.cudnn),
        resolutions=tuple(msgspec.structs.replace(r, consumer=text, step=text) for r in snapshot.resolutions),
        patient=msgspec.structs.replace(snapshot.patient, prefix=text),
    )
    live = sample.live_check(cudnn=text, fate=Termination(kind="signal", signal=text, last_step=text, stderr=text))
    return report(
        findings=tuple(msgspec.structs.replace(bad, status=s) for s in states), snapshot=snapshot, reason=text,
        notes=(text,),
        scenarios=(live, *(msgspec.structs.replace(p, scenario=text, expected=text) for p in PROVOKED[:1])),
    )  # fmt: skip


def test_nothing_from_the_machine_becomes_markup() -> None:
    html = render_html(full(EVIL), explanation=explanation(EVIL))
    html.encode("utf-8")
    page = Page(html)
    assert {tag for tag, _ in page.elements} <= ALLOWED
    assert {name for _, attributes in page.elements for name in attributes} <= SAFE_ATTRIBUTES
    assert not set(html) & {"\x1b", "\x07", "\x00", "\ufffe"}
    assert page.text("code").count("<script>alert(1)</script>") >= 5


def test_no_request_can_leave_the_page() -> None:
    html = render_html(report(scenarios=PROVOKED), explanation=explanation("x"))
    page = Page(html)
    policies = [a["content"] for tag, a in page.elements if tag == "meta" and a.get("http-equiv")]
    assert policies == ["default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"]
    styles = page.text("style") + " ".join(a.get("style") or "" for _, a in page.elements)
    assert "url(" not in styles
    assert "@import" not in styles
    assert "<script" not in html


def test_the_page_says_what_the_report_says() -> None:
    words = " ".join(Page(render_html(report(scenarios=(*report().scenarios, *PROVOKED)))).text().split())
    for expected in (
        "✗ Problem",
        "CD301 torch 2.11.0: An older cuDNN is found before the one that it was built with",
        "Fix: Take the folder of the old copy out of LD_LIBRARY_PATH.",
        "unset LD_LIBRARY_PATH",
        "cuDNN 9.19.0 shadowed .../nvidia/cudnn/lib",
        "cuDNN 9.1.0 loaded /opt/old/lib64",
        "GPU 0: NVIDIA H200 (9.0), 140.4 GiB",
        "0 success as expected",
        "2007 BAD_PARAM_STREAM_MISMATCH cudnnSetStream as expected",
        "4000 INTERNAL_ERROR cudnnCreate differs",
        "ended by SIGSEGV in cudnnSetStream",
        "skipped needs --faults",
        "CD203 GPU 0: Memory health",
    ):
        assert expected in words, expected


def test_heat_map_colours() -> None:
    page = Page(render_html(report(scenarios=PROVOKED)))
    colours = [a.get("class") for tag, a in page.elements if tag == "td" and a.get("class")]
    assert colours == ["ok", "error", "warning", "crashed", "skipped"]


def test_memory_by_process() -> None:
    gpu = msgspec.structs.replace(
        sample.snapshot().gpus.value[0],  # type: ignore[union-attr]
        memory_total=known(100 << 30, ""),
        memory_free=known(25 << 30, ""),
        processes=known(
            (
                GpuProcess(pid=7, name=Absent(reason="no-permission"), memory=known(10 << 30, ""), kind="graphics"),
                GpuProcess(pid=8, name=known("/opt/venv/bin/python", ""), memory=known(60 << 30, ""), kind="compute"),
            ),
            "",
        ),
    )
    snapshot = msgspec.structs.replace(sample.snapshot(), gpus=known((gpu,), ""))
    page = Page(render_html(report(snapshot=snapshot)))
    bars = [a for tag, a in page.elements if a.get("class") in ("seg0", "seg1", "rest")]
    assert [(a["class"], a["style"]) for a in bars] == [
        ("seg0", "width: 60.00%"),
        ("seg1", "width: 10.00%"),
        ("rest", "width: 5.00%"),
    ]
    words = " ".join(page.text().split())
    assert "1 .../python, pid 8, compute: 60.0 GiB, 60%" in words
    assert "a process, pid 7, graphics: 10.0 GiB, 10%" in words
    assert "free: 25.0 GiB, 25%" in words


@pytest.mark.parametrize(
    "one", [healthy(), report(findings=(), verdict="no-verdict", exit_code=2, reason="nothing was examined")]
)
def test_little_to_show(one: Report) -> None:
    page = Page(render_html(one))
    assert "Problems" not in page.text("h2")


def test_three_verdicts_side_by_side() -> None:
    def answer(code: str, status: Status, title: str) -> Finding:
        return Finding(
            code=code, status=status, severity="error", owner="environment", subject="tensorflow 2.18.0", title=title
        )

    found = (answer("CD406", "ok", "accepted"), answer("CD409", "problem", "outside"), answer("CD410", "skipped", ""))
    page = Page(render_html(report(findings=found)))
    rows = " ".join(page.text("th", "td", "span", "p").split())
    assert "tensorflow 2.18.0 ✓ ok accepted ✗ error outside – not judged" in rows
