"""What is given beside a text: facts of its machine, and what was found on it. Loads no types of snapshots."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from cudnn_doctor.diagnose.ledger import Ledger
from cudnn_doctor.model.observations import TokenSet

if TYPE_CHECKING:
    from cudnn_doctor.model.facts import Snapshot
    from cudnn_doctor.model.report import Severity

PROVED = "proved:"  # events of the very run prove this cause
FOUND = "found:"  # an error-severity finding of our own rules names this cause
HINTED = "hinted:"  # a warning does


class GivenFinding(msgspec.Struct, frozen=True, kw_only=True):
    """What another run of cudnn-doctor found: as much of a `report.Finding` as counts here."""

    code: str = ""
    status: str = ""
    severity: Severity = "error"
    title: str = ""
    causes: tuple[str, ...] = ()
    proved: bool = False  # by the events of the run that the text is of


class Given(msgspec.Struct, frozen=True, kw_only=True):
    """Facts of the machine that wrote the text, and what was found on it."""

    snapshot: Snapshot | None = None
    findings: tuple[GivenFinding, ...] = ()

    def __or__(self, other: Given) -> Given:
        """Both together; of two snapshots the first."""
        return Given(snapshot=self.snapshot or other.snapshot, findings=(*self.findings, *other.findings))


def add_findings(given: tuple[GivenFinding, ...], ledger: Ledger, found: TokenSet) -> None:
    """The causes that findings name, each with the finding as its line."""
    for finding in given:
        if finding.status != "problem":
            continue
        kind = PROVED if finding.proved else FOUND if finding.severity == "error" else HINTED
        for cause in finding.causes:
            found.add(kind + cause, ledger.line(f"{finding.code}: {finding.title}"))
