"""Pictures: the cuDNN copies and who loads which (inline SVG), and a GPU's memory by process (a bar)."""

from __future__ import annotations

from collections.abc import Sequence

from cudnn_doctor.model.base import Known, value_or
from cudnn_doctor.model.facts import CudnnCopy, Gpu, GpuProcess, Resolution, Snapshot
from cudnn_doctor.render.category_facts import loads, short_step
from cudnn_doctor.render.clean import one_line, short_path, size
from cudnn_doctor.render.html_elements import Markup, join, tag

WIDTH, ROW, BOX = 860, 84, 66
LEFT, RIGHT, RIGHT_AT = 290, 420, 440  # widths of the two columns, and where the second begins
SEGMENTS = 6


def cudnn_picture(snapshot: Snapshot) -> Markup:
    """Left who wants a cuDNN, right every copy; a line leads to the copy that is loaded. The tables beside it say the
    same in words."""
    copies, users = snapshot.cudnn, loads(snapshot)
    if not copies:
        return Markup("")
    height = ROW * max(len(copies), len(users)) + 30
    at = {c.real_path: 30 + i * ROW for i, c in enumerate(copies)}
    winners = {r.real_path.value for r in users if isinstance(r.real_path, Known)}
    edges = [
        _edge(30 + i * ROW, at[r.real_path.value])
        for i, r in enumerate(users)
        if isinstance(r.real_path, Known) and r.real_path.value in at
    ]
    arrow = tag(
        "marker",
        tag("path", d="M0 0 L10 5 L0 10 z", class_="arrow"),
        id="arrow", viewBox="0 0 10 10", refX=9, refY=5, markerWidth=7, markerHeight=7, orient="auto",
    )  # fmt: skip
    return tag(
        "svg",
        tag("title", "Which cuDNN copy is loaded by whom", id="picture-title"),
        tag("desc", _in_words(copies, users), id="picture-words"),
        tag("defs", arrow),
        tag("text", "Loaded by", x=2, y=18, class_="strong"),
        tag("text", "cuDNN copies on this machine", x=RIGHT_AT, y=18, class_="strong"),
        *edges,
        *(_user(r, 30 + i * ROW) for i, r in enumerate(users)),
        *(_copy(c, at[c.real_path], c.real_path in winners, users) for c in copies),
        class_="picture", viewBox=f"0 0 {WIDTH + 2} {height}", role="img",
        aria_labelledby="picture-title picture-words",
    )  # fmt: skip


def _in_words(copies: Sequence[CudnnCopy], users: Sequence[Resolution]) -> str:
    names = {c.real_path: f"{value_or(c.version, 'unknown version')} in {c.directory}" for c in copies}
    loads = [
        f"{r.consumer} loads {names.get(r.real_path.value, r.real_path.value)}"
        if isinstance(r.real_path, Known)
        else f"{r.consumer} finds no {r.wanted}"
        for r in users
    ]
    return one_line("; ".join(loads) or "nothing here loads a cuDNN")


def _edge(y1: int, y2: int) -> Markup:
    x1, x2, a, b = LEFT, RIGHT_AT - 2, y1 + BOX // 2, y2 + BOX // 2
    d = f"M{x1} {a} C{x1 + 70} {a} {x2 - 80} {b} {x2} {b}"
    return tag("path", d=d, class_="edge", marker_end="url(#arrow)")


def _user(r: Resolution, y: int) -> Markup:
    found = isinstance(r.real_path, Known)
    return tag(
        "g",
        tag("title", f"{r.consumer}: {r.step}"),
        tag("rect", x=1, y=y, width=LEFT - 2, height=BOX, rx=8, class_="box"),
        tag("text", _fit(r.consumer, 34), x=14, y=y + 24, class_="strong"),
        tag("text", _fit(f"wants {r.wanted}", 37), x=14, y=y + 42, class_="fine"),
        tag("text", _fit(short_step(r.step) if found else "finds none", 37), x=14, y=y + 58, class_="fine"),
    )


def _copy(c: CudnnCopy, y: int, wins: bool, users: Sequence[Resolution]) -> Markup:
    lost = any(c.real_path in r.shadowed for r in users)
    word = "loaded" if wins else "shadowed" if lost else "not loaded"
    kind = "" if c.kind == "full" else f" ({c.kind})"
    return tag(
        "g",
        tag("title", c.real_path),
        tag("rect", x=RIGHT_AT, y=y, width=RIGHT, height=BOX, rx=8, class_=f"box {'wins' if wins else 'loses'}"),
        tag("text", _fit(f"cuDNN {value_or(c.version, 'unknown version')}{kind}", 34), x=RIGHT_AT + 14, y=y + 24,
            class_="strong"),
        tag("text", word, x=RIGHT_AT + RIGHT - 14, y=y + 24, text_anchor="end",
            class_="tag-wins" if wins else "tag-loses"),
        tag("text", _fit(c.directory, 54), x=RIGHT_AT + 14, y=y + 42, class_="fine"),
        tag("text", _fit(f"found by {', '.join(c.found_by)}", 54), x=RIGHT_AT + 14, y=y + 58, class_="fine"),
    )  # fmt: skip


def _fit(text: str, most: int) -> str:
    """At most `most` characters; of a path the end, which tells more, of anything else the beginning."""
    shown = one_line(text)
    if len(shown) <= most:
        return shown
    short = short_path(shown) if shown.startswith("/") else shown
    if len(short) <= most:
        return short
    return f"...{shown[3 - most :]}" if shown.startswith("/") else f"{shown[: most - 3]}..."


# ---------------------------------------------------------------- memory


def memory_bar(gpu: Gpu) -> Markup:
    """Who holds a GPU's memory: a bar and its key. Nothing where the total is not known."""
    if not isinstance(gpu.memory_total, Known) or not gpu.memory_total.value:
        return Markup("")
    total = gpu.memory_total.value
    parts: list[tuple[str, str, int]] = []  # class, label, bytes
    processes: tuple[GpuProcess, ...] = value_or(gpu.processes, ())
    by_size = sorted(processes, key=lambda p: -value_or(p.memory, 0))
    for i, process in enumerate(by_size):
        name = f"{short_path(value_or(process.name, 'a process'), 1)}, pid {process.pid}, {process.kind}"
        kind = f"seg{i}" if i < SEGMENTS else "rest"
        parts.append((kind, name, value_or(process.memory, 0)))
    named = sum(n for _, _, n in parts)
    free = value_or(gpu.memory_free, 0)
    other = max(0, total - free - named)
    if isinstance(gpu.memory_free, Known):
        parts.append(("rest", "driver, and processes that are not shown", other))
    return join((_bar(gpu, parts, total), _key(parts, free if isinstance(gpu.memory_free, Known) else None, total)))


def _bar(gpu: Gpu, parts: Sequence[tuple[str, str, int]], total: int) -> Markup:
    shown, left = [], 100.0
    for i, (kind, label, amount) in enumerate(parts):
        share = round(min(100 * amount / total, left), 2)
        left -= share
        if share > 0:
            number = str(i + 1) if share >= 3 else ""  # narrower ones have no room for it
            title = f"{one_line(label)}: {size(amount)}"
            shown.append(tag("span", number, class_=kind, style=f"width: {share:.2f}%", title=title))
    label = f"Memory of GPU {gpu.index}: {size(sum(n for _, _, n in parts))} used of {size(total)}"
    return tag("div", *shown, class_="bar", role="img", aria_label=label)


def _key(parts: Sequence[tuple[str, str, int]], free: int | None, total: int) -> Markup:
    rows = [
        tag("li", tag("span", str(i + 1), class_=f"key {kind}"), f" {one_line(label)}: {size(n)}, {n / total:.0%}")
        for i, (kind, label, n) in enumerate(parts)
    ]
    if free is not None:
        rows.append(tag("li", f"free: {size(free)}, {free / total:.0%}"))
    return tag("ul", *rows, class_="small", style="list-style: none; padding: 0")
