"""The stated machine and the machine itself, judged together. Loads the rules; a text that states little needs none."""

from __future__ import annotations

from cudnn_doctor.diagnose.as_snapshot import as_snapshot, differences, of_the_text
from cudnn_doctor.diagnose.from_machine import findings, observe_machine
from cudnn_doctor.diagnose.given import add_findings
from cudnn_doctor.diagnose.gpu_class import classify
from cudnn_doctor.diagnose.ledger import Ledger
from cudnn_doctor.logs.patterns import Knowledge
from cudnn_doctor.model.facts import Snapshot
from cudnn_doctor.model.observations import TokenSet
from cudnn_doctor.model.stated import StatedMachine


def together(
    stated: StatedMachine, machine: Snapshot | None, knowledge: Knowledge, ledger: Ledger, found: TokenSet
) -> Snapshot:
    """Adds what text and machine show together to `found`.

    Returns:
        the stated facts over those of the machine.
    """
    machine = of_the_text(machine, stated) if machine is not None else None
    view = as_snapshot(stated, knowledge, machine)
    if machine is not None or stated.comparable:
        from cudnn_doctor.diagnose.judged import judge

        judge(view, stated, machine, knowledge, ledger, found)
    classify(view, ledger, found)
    if machine is not None:
        observe_machine(machine, ledger, found)
        add_findings(findings(machine, view, knowledge), ledger, found)
    return view


__all__ = ["differences", "together"]
