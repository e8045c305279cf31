"""The examination of the engines for people: engine by operation in a table, what is wrong in full, the verdict."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cudnn_doctor.engines.problems import OPERATIONS
from cudnn_doctor.model.engines import EngineProgress, EngineRow, EnginesReport
from cudnn_doctor.model.report import Finding
from cudnn_doctor.render.clean import one_line, pad, time
from cudnn_doctor.render.lines import Line, Style, finish
from cudnn_doctor.render.text import VERDICTS, Layout

HEADS = {
    "conv-forward": "forward",
    "conv-backward-data": "bwd-data",
    "conv-backward-filter": "bwd-filter",
    "conv-bias-relu": "bias-relu",
    "matmul": "matmul",
    "attention": "attention",
}
STYLES: dict[str, Style] = {
    "ok": "ok",
    "unknown": "unknown",
    "crashed": "crashed",
    "suspect": "warning",
    "wrong-stream": "error",
}
COLUMN = 12  # cells of an operation's column
WORDS = {"unknown": "?", "crashed": "crash", "suspect": "suspect", "wrong-stream": "WRONG"}
COUNTS = {"unknown": "unknown", "crashed": "crashed", "suspect": "suspect", "wrong-stream": "wrong_stream"}
RANK = ("ok", "unknown", "crashed", "suspect", "wrong-stream")


def render_engines(
    report: EnginesReport, findings: Sequence[Finding], *, width: int = 80, color: bool = False, encoding: str = "utf-8"
) -> str:
    """The report with the findings of `rules.engines`; `color` loads rich."""
    return finish(_Layout(width, encoding).engines(report, findings), color=color, encoding=encoding)


def progress_line(progress: EngineProgress, width: int = 20) -> str:
    """One line for stderr: "[#####...............] 29 of 116 problems, 812 plans"."""
    filled = width * progress.done // max(1, progress.problems)
    bar = "#" * filled + "." * (width - filled)
    return f"[{bar}] {progress.done} of {progress.problems} problems, {progress.plans} plans"


class _Layout(Layout):
    """The lines of the report of the engines."""

    def engines(self, report: EnginesReport, findings: Sequence[Finding]) -> Iterator[Line]:
        device = f"{report.device_name or 'GPU'} (device {report.device})"
        form = "quick form" if report.quick else "full form"
        head = f"Engines of cuDNN {report.cudnn_version or '?'} on {device}: {form}, {time(report.ms)}"
        yield from self.block(one_line(head), style="bold")
        yield from self.block(one_line(report.cudnn), style="dim")
        if report.interrupted:
            yield from self.block("Interrupted: this is what there was by then.", style="warning")
        yield ()
        yield from self._table(report)
        yield from self._numbers(report)
        yield from self._at_fault(report)
        chosen = [f for f in findings if f.status in ("problem", "crashed")]
        if chosen:
            yield from ((), (("bold", f"Findings ({len(chosen)})"),))
            for finding in chosen:
                yield ()
                yield from self._finding(finding)
        for finding in findings:
            if finding.status == "unknown":
                yield ()
                yield from self._short(finding)
        yield from self._not_examined(report)
        yield ()
        style, word = VERDICTS[report.verdict]
        yield from self.block(f"{report.reason} (exit code {report.exit_code})", first=((style, f"{word}: "),))

    def _table(self, report: EnginesReport) -> Iterator[Line]:
        operations = [o for o in OPERATIONS if any(p.operation == o for p in report.problems)]
        rows: dict[int, dict[str, list[EngineRow]]] = {}
        refused: set[tuple[int, str]] = set()
        for part in report.problems:
            for row in part.rows:
                rows.setdefault(row.engine, {}).setdefault(part.operation, []).append(row)
            refused.update((e, part.operation) for refusal in part.refusals for e in refusal.engines)
        if not rows:
            return
        yield (("bold", pad("engine", 8) + "".join(pad(HEADS[o], COLUMN) for o in operations)),)
        for engine, by_operation in sorted(rows.items()):
            line: list[tuple[Style, str]] = [("", pad(str(engine), 8))]
            for operation in operations:
                nothing = "." if (engine, operation) in refused else ""
                style, text = _cell(by_operation[operation]) if operation in by_operation else ("dim", nothing)
                line.append((style, pad(text, COLUMN)))
            yield tuple(line)
        legend = "Numbers are plans in the given stream; '.' is an engine that does not support what was asked."
        yield from self.block(legend, style="dim")

    def _numbers(self, report: EnginesReport) -> Iterator[Line]:
        t, capture, held = report.totals, report.capture_control, report.held_control
        yield ()
        yield from self.block(
            f"{t.plans} plans of {t.engines} engines on {t.problems} problems: {t.ok} in the given stream, "
            f"{t.wrong_stream} in a wrong one, {t.suspect} suspect, {t.crashed} ended the process, {t.unknown} could "
            f"not be judged; {t.not_capturable} cannot be captured; {t.unsupported} times an engine gave no plan."
        )
        yield from self.block(
            f"Controls: the fault was put there and seen {capture.seen} of {capture.planted} times by capture, "
            f"{held.seen} of {held.planted} times by a held stream."
        )
        if t.threads_tested or t.destroyed_tested or t.clones:
            yield from self.block(
                f"Two threads on one plan: {t.threads_differ} of {t.threads_tested} gave other results. Handle "
                f"destroyed before: {t.destroyed_bad} of {t.destroyed_tested} failed. Clones: "
                f"{t.clones - t.clones_wrong} of {t.clones} right."
            )
        clone = sorted(row.clone_ms for p in report.problems for row in p.rows if row.clone_ms)
        anew = sorted(p.anew_ms for p in report.problems if p.anew_ms)
        tuned = sorted(p.autotune_ms for p in report.problems if p.autotune_ms)
        if clone and anew and tuned:
            yield from self.block(
                f"Cost (medians): a clone {time(_middle(clone))}, building anew {time(_middle(anew))}, building anew "
                f"and measuring all {time(_middle(tuned))}."
            )

    def _at_fault(self, report: EnginesReport) -> Iterator[Line]:
        shown: set[tuple[int, str]] = set()
        for part in report.problems:
            for row in part.rows:
                if row.verdict in ("ok", "unknown") or (row.engine, part.operation) in shown:
                    continue
                if not shown:
                    yield from ((), (("bold", "Engines at fault"),))
                shown.add((row.engine, part.operation))
                notes = ", ".join((*row.behaviour, *row.numerical)) or "none"
                text = f"engine {row.engine} of {part.operation}: {row.verdict}; behaviour and numerical notes: {notes}"
                yield from self.block(text, indent=2, style=STYLES[row.verdict])

    def _not_examined(self, report: EnginesReport) -> Iterator[Line]:
        reasons: dict[str, list[str]] = {}
        for part in report.problems:
            if part.error:
                reasons.setdefault(part.error, []).append(
                    f"{part.operation} {part.data_type} {part.layout} {part.shape}"
                )
        if reasons:
            yield from ((), (("bold", "Not examined, or not to the end"),))
        for reason, places in reasons.items():
            more = f" and {len(places) - 2} more" if len(places) > 2 else ""
            yield from self.block(f"{', '.join(places[:2])}{more}: {reason}", indent=2)


def _cell(rows: Sequence[EngineRow]) -> tuple[Style, str]:
    worst = max((row.verdict for row in rows), key=RANK.index)
    plans = sum(row.plans for row in rows)
    if worst == "ok":
        return "ok", str(plans)
    bad = sum(int(getattr(row, COUNTS[worst])) for row in rows)
    return STYLES[worst], f"{WORDS[worst]} {bad}/{plans}"


def _middle(values: Sequence[float]) -> float:
    return values[len(values) // 2]
