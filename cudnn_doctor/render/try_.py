"""A trial of packages for people: the verdict, what ran, what it mapped, what to do for good."""

from __future__ import annotations

from collections.abc import Iterator
from shlex import join

from cudnn_doctor.model.base import encode
from cudnn_doctor.model.package_trial import PackageTrial, Series
from cudnn_doctor.render.clean import pad
from cudnn_doctor.render.lines import Line, Style, finish
from cudnn_doctor.render.text import Layout

WORDS: dict[str, tuple[Style, str]] = {
    "proved": ("ok", "PROVED"),
    "no-difference": ("note", "NO DIFFERENCE"),
    "worse": ("error", "WORSE"),
    "flaky": ("warning", "FLAKY"),
    "not-comparable": ("unknown", "NOT COMPARABLE"),
}


def render_trial(
    document: PackageTrial, form: str, *, width: int = 100, color: bool = False, encoding: str = "utf-8"
) -> str:
    """The document as JSON or as text."""
    if form == "json":
        return encode(document).decode()
    return finish(_Layout(width, encoding).trial(document), color=color, encoding=encoding)


class _Layout(Layout):
    def trial(self, document: PackageTrial) -> Iterator[Line]:
        style, word = WORDS[document.verdict]
        if document.steps:
            style, word = ("ok", "FOUND") if document.turning else ("note", "NOT FOUND")
        yield from self.block(f"{document.reason}.", first=((style, f"{word}: "),))
        yield ()
        if document.command:
            yield from self.block(f"{join(document.command)}", first=(("", "command  "),))
        for words in document.change.packages if not document.steps else ():
            yield from self.block(f"{join(words)}{self._origin(document)}", first=(("", "change   "),))
        for one in document.change.variables:
            said = f"without {one.name}" if one.value is None else f"{one.name}={one.value}"
            yield from self.block(f"{said}{self._origin(document)}", first=(("", "change   "),))
        for label, series in (("before", document.before), ("after", document.after)):
            if series:
                yield from self._series(label, series)
        for step in document.steps:
            result = step.error or f"fails {step.failed} of {step.of}"
            yield (("", f"tried    {pad(step.version, 14)} "), ("error" if step.failed or step.error else "ok", result))
        if document.clone:
            one_ = document.clone
            how = (
                f"{one_.files} files, {one_.bytes / (1 << 30):.1f} GiB by {one_.method} in {one_.seconds:g} s; removed"
            )
            yield from self.block(how, first=(("", "copy     "),))
        if document.original:
            bad = document.original.startswith("CHANGED")
            yield from self.block(document.original, style="error" if bad else "", first=(("", "original "),))
        for remark in document.remarks:
            yield from self.block(remark, first=(("", "note     "),))
        if document.fixes:
            yield ()
            yield (("bold", "For good"),)
        for fix in document.fixes:
            yield from self.block(fix.text, indent=2)
            yield (("command", f"  {fix.command}"),)
        if document.fixes and document.fixes[0].verify:
            yield (("", "  verify: "), ("command", document.fixes[0].verify))

    @staticmethod
    def _origin(document: PackageTrial) -> str:
        return f"  (the fix of {document.change.origin})" if document.change.origin else ""

    def _series(self, label: str, series: Series) -> Iterator[Line]:
        k = len(series.attempts)
        times = ", ".join(f"{a.seconds:g}" for a in series.attempts)
        style: Style = "ok" if not series.failed else "error" if series.failed == k else "warning"
        said = f"passes {k} of {k}" if not series.failed else f"fails {series.failed} of {k}"
        yield (("", f"{pad(label, 8)} "), (style, said), ("", f"  ({times} s)"))
        for name, version in series.packages.items():
            yield (("", f"         {name} {version}"),)
        cudnn = sorted({p for a in series.attempts for p in a.cudnn})
        if cudnn:
            more = f" and {len(cudnn) - 1} more" if len(cudnn) > 1 else ""
            yield from self.block(f"maps {cudnn[0]}{more}", indent=9)
        failed = next((a for a in series.attempts if not a.ok), None)
        if failed:
            yield from self.block(f"{failed.ending}: {failed.said or 'nothing printed'}", indent=9)
