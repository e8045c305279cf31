"""The states of `reproduce` for people: a table of answers, then what can give the error here and what cannot."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cudnn_doctor.model.live import ScenarioResult
from cudnn_doctor.model.reproduction import Conclusion, Reproduction, Row
from cudnn_doctor.render.clean import cells, one_line, pad
from cudnn_doctor.render.lines import Line, Style, finish
from cudnn_doctor.render.text import VERDICTS, Layout
from cudnn_doctor.reproduce.compare import ran
from cudnn_doctor.scenarios import scenarios
from cudnn_doctor.scenarios.base import Scenario

MARKS: dict[str, tuple[Style, str]] = {
    "as-expected": ("ok", "as expected"),
    "differs": ("warning", "DIFFERS"),
    "unknown-version": ("note", "not measured with this version"),
    "not-reached": ("dim", "not reached"),
}
PREFIX = "CUDNN_STATUS_"
VERDICT, LEAST_ANSWER = 13, 24  # cells


def render_reproduction(
    document: Reproduction, *, width: int = 100, color: bool = False, verbose: bool = False, encoding: str = "utf-8"
) -> str:
    """The document as text; `color` loads rich. `verbose` adds what each state shows and what every child printed."""
    return finish(_Layout(width, encoding).reproduction(document, verbose=verbose), color=color, encoding=encoding)


def render_list(*, width: int = 100, color: bool = False, encoding: str = "utf-8") -> str:
    """Every state: id, danger, summary, cause."""
    return finish(_Layout(width, encoding).states(), color=color, encoding=encoding)


def progress_line(done: int, total: int, name: str, width: int = 20) -> str:
    """One line for stderr: "[#####...............] 9 of 36 states, after-fork"."""
    filled = width * done // max(1, total)
    return f"[{'#' * filled}{'.' * (width - filled)}] {done} of {total} states, {name.split('#', 1)[0]}"


class _Layout(Layout):
    """The lines of the report of the states."""

    def reproduction(self, document: Reproduction, *, verbose: bool) -> Iterator[Line]:
        places = list(dict.fromkeys((r.cudnn, r.device) for r in document.rows))
        for device in dict.fromkeys(d for _, d in places):
            copies = [c for c, d in places if d == device]
            if len(copies) > 1 and not verbose:
                yield from self._side_by_side(document, copies, device)
        for cudnn, device in places:
            mine = [r for r in document.rows if (r.cudnn, r.device) == (cudnn, device)]
            known = next((c for c in document.conclusions if (c.cudnn, c.device) == (cudnn, device)), None)
            yield from self._place(mine, known)
            if verbose or sum(d == device for _, d in places) == 1:
                yield from self._table(mine)
                yield ()
            if known:
                yield from self._conclusion(known.text)
                yield ()
        yield from self._left_out(document)
        if verbose:
            yield from self._what_was_seen(document)
        chosen = [f for f in document.findings if f.status in ("problem", "crashed")]
        if chosen:
            yield (("bold", f"Findings ({len(chosen)})"),)
            for finding in chosen:
                yield ()
                yield from self._finding(finding)
            yield ()
        for note in document.notes:
            yield from self.block(note, first=(("dim", "Note: "),))
        yield from self._agreements(document)
        style, word = VERDICTS[document.verdict]
        yield from self.block(f"{document.reason} (exit code {document.exit_code})", first=((style, f"{word}: "),))

    def _place(self, rows: Sequence[Row], known: Conclusion | None) -> Iterator[Line]:
        first = rows[0]
        device = f"device {first.device}" + (f", {known.device_name}" if known and known.device_name else "")
        yield from self.block(one_line(f"cuDNN {first.cudnn_version or '(unknown)'} on {device}"), style="bold")
        yield from self.block(one_line(first.cudnn), style="dim")

    def _conclusion(self, text: str) -> Iterator[Line]:
        for line in text.split("\n"):
            item = line.startswith("- ")
            yield from self.block(
                one_line(line.removeprefix("- ")), indent=2 if item else 0, first=(("dim", "- "),) if item else ()
            )

    def _table(self, rows: Sequence[Row]) -> Iterator[Line]:
        """A block a state; what was done, the answer, how the process ended, and whether that was expected."""
        what = max(cells(r.label) for r in rows) + 2
        process = max((cells(f"{r.fate:7}") for r in rows if r.fate != "ok"), default=-2) + 2
        room = self.width - 2 - what - process - VERDICT
        if room < LEAST_ANSWER:
            yield from self._narrow(rows)
            return
        answer = min(room, max(cells(_answer(r, room - 2)) for r in rows) + 2)
        head = pad("state", what + 2) + pad("answer", answer) + pad("process" if process else "", process)
        yield (("dim", f"{head}verdict"),)
        before = ""
        for row in rows:
            if row.scenario != before:
                yield (("bold", row.scenario),)
            before = row.scenario
            ended = "" if row.fate == "ok" else row.fate
            head = pad(one_line(row.label), what) + pad(_answer(row, answer - 2), answer) + pad(ended, process)
            style, word = MARKS[row.verdict]
            yield from self.block(_verdict(row, word), first=(("", f"  {head}"),), style=style)

    def _side_by_side(self, document: Reproduction, copies: Sequence[str], device: int) -> Iterator[Line]:
        """A column for each copy: answer, and a mark where it is not what was measured elsewhere."""
        rows = {(r.scenario, r.label, r.cudnn): r for r in document.rows if r.device == device}
        lines = list(dict.fromkeys((scenario, label) for scenario, label, _ in rows))
        versions = {c: next(r.cudnn_version for r in document.rows if r.cudnn == c) or "?" for c in copies}
        texts = {key: _short(row) for key, row in rows.items()}
        first = max(len(f"{s}  {label}") for s, label in lines) + 2
        widths = [max([len(versions[c]), *(len(t) for k, t in texts.items() if k[2] == c)]) + 2 for c in copies]
        names = "".join(pad(versions[c], w) for c, w in zip(copies, widths, strict=True))
        yield (("bold", pad(f"device {device}", first) + names.rstrip()),)
        before = ""
        for scenario, label in lines:
            head = scenario if scenario != before else " " * len(scenario)
            before = scenario
            spans: list[tuple[Style, str]] = [("", pad(f"{head}  {label}", first))]
            for copy, width in zip(copies, widths, strict=True):
                row = rows.get((scenario, label, copy))
                style = MARKS[row.verdict][0] if row else "dim"
                spans.append((style, pad(texts.get((scenario, label, copy), ""), width)))
            yield tuple(spans)
        legend = "! differs from what was measured elsewhere; ? this version was not measured; - not reached."
        yield from self.block(legend, style="dim")
        yield ()

    def _narrow(self, rows: Sequence[Row]) -> Iterator[Line]:
        """For small screens: a line an answer below its state."""
        before = ""
        for row in rows:
            if row.scenario != before:
                yield (("bold", row.scenario),)
            before = row.scenario
            style, word = MARKS[row.verdict]
            process = "" if row.fate == "ok" else f" (process: {row.fate})"
            text = f"{row.label}: {_answer(row, 200)}{process}: {_verdict(row, word)}"
            yield from self.block(text, indent=2, style="" if style == "ok" else style)

    def _left_out(self, document: Reproduction) -> Iterator[Line]:
        reasons: dict[str, list[str]] = {}
        for result in document.scenarios:
            if result.skipped and result.scenario not in reasons.setdefault(result.skipped, []):
                reasons[result.skipped].append(result.scenario)
        for row in document.rows:
            if row.unmade and row.scenario not in reasons.setdefault(f"could not be made: {row.unmade}", []):
                reasons[f"could not be made: {row.unmade}"].append(row.scenario)
        if reasons:
            yield (("bold", "Not run"),)
            for why, names in reasons.items():
                yield from self.block(f"{', '.join(names)}: {why}", indent=2)
            yield ()

    def _what_was_seen(self, document: Reproduction) -> Iterator[Line]:
        yield (("bold", "Children"),)
        for result in document.scenarios:
            if not result.skipped:
                yield from self._child(result)
        yield ()

    def _child(self, result: ScenarioResult) -> Iterator[Line]:
        state = scenarios()[result.scenario][1]
        fate = result.fate
        end = fate.signal or fate.kind
        yield from self.block(f"{result.scenario} ({result.cudnn_version}, {result.ms:.0f} ms): {end}", indent=2)
        yield from self.block(state.shows, indent=4, style="dim")
        for text in (fate.error, fate.stderr):
            if text:
                yield from self.block(text, indent=4)

    def _agreements(self, document: Reproduction) -> Iterator[Line]:
        if not document.agreements:
            return
        yield (("bold", "The log and this box"),)
        begun = {r.scenario for r in document.scenarios if ran(r)}
        for a in document.agreements:
            style: Style = "ok" if a.agrees else "unknown" if a.agrees is None else "warning"
            undecided = "no status to compare" if a.scenario in begun else "not run"
            word = {True: "agrees", False: "does not agree", None: undecided}[a.agrees]
            text = f"{a.cause}, state {a.scenario}: {a.why}"
            yield from self.block(text, indent=2, first=((style, f"{word}: "),))
        yield ()

    def states(self) -> Iterator[Line]:
        known = [s for _, s in scenarios().values()]
        column = max(len(s.id) for s in known) + 2
        danger = ""
        for state in known:
            if state.danger != danger:
                danger = state.danger
                yield from ((), (("bold", f"{danger}{_flag(state)}"),))
            first: Line = (("", "  "), ("bold", pad(state.id, column)))
            yield from self.block(f"{state.summary} [{state.cause}]", first=first)


def _flag(state: Scenario) -> str:
    return {"faults-context": " (--faults)", "fills-memory": " (--memory)"}.get(state.danger, "")


def _short(row: Row) -> str:
    """An answer in a few cells: "2007", "SIGSEGV !", "0 4x, 2007 1x"."""
    text = ", ".join(f"{o} {n}x" for o, n in row.seen.items()) if len(row.seen) > 1 else row.outcome or "-"
    return text + {"differs": " !", "unknown-version": " ?"}.get(row.verdict, "")


def _verdict(row: Row, word: str) -> str:
    """ "as expected", with the expectation wherever the answer itself does not say it."""
    if row.verdict == "differs":
        return f"{word}, expected {row.expected}"
    return f"{word} ({row.expected})" if row.expected not in ("", row.outcome) else word


def _answer(row: Row, room: int) -> str:
    """ "2007 BAD_PARAM_STREAM_MISMATCH (bad parameter)", as much of it as there is room for, or the distribution where
    repetitions differed."""
    if len(row.seen) > 1:
        return ", ".join(f"{outcome} {times}x" for outcome, times in row.seen.items())
    text = row.outcome or "-"
    if row.name and row.outcome != "0":
        text += f" {row.name.removeprefix(PREFIX)}"
    whole = f"{text} ({row.category})" if row.category else text
    return whole if len(whole) <= room else text if len(text) <= room else f"{text[: room - 3]}..."
