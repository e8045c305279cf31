"""Slurm: one step over all nodes that are up, and each node once more by itself where that step failed.

Files are named by SLURMD_NODENAME: srun's %N is the host's name, and several slurmd of one host write one file then.
One slurmd that is dead ends the whole step with exit status 233, and one node that is not free keeps it waiting (srun
of Slurm 22.05.8, 2026-12-01), so the other nodes get a second chance. In an allocation the step overlaps its others.
"""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from cudnn_doctor.fleet.running import SCRIPT, Ended, Plan, ended, from_files, progress, run
from cudnn_doctor.merge.collecting import Arrival
from cudnn_doctor.merge.nodeset import expand, fold, natural
from cudnn_doctor.model.errors import UsageError
from cudnn_doctor.model.fleet import NodeState

UP = ("idle", "mixed", "completing")
AT_ONCE = 16  # nodes that are tried by themselves at the same time
_SAID = re.compile(r"(?:on node |error: )([\w.-]+): (.+)")


def arrivals(plan: Plan) -> Iterator[Arrival]:
    """What came of every node."""
    until = time.monotonic() + plan.timeout
    inside = os.environ.get("SLURM_JOB_NODELIST") if os.environ.get("SLURM_JOB_ID") else None
    states = dict.fromkeys(expand(inside), "idle") if inside else _states()
    nodes = plan.nodes or tuple(sorted(states, key=natural))
    why = {n: _why(states.get(n, "")) for n in nodes if not states.get(n, "").startswith(UP) or "*" in states[n]}
    able = [n for n in nodes if n not in why]
    if able:
        first = run(_srun(able, plan, inside), plan, until, progress=lambda: progress(able, plan.folder))
        why.update(_said(first))
        missing = [n for n in able if not ended(n, plan.folder)]
        if first.code and not first.interrupted and missing:
            plan.say(f"the step failed on a node (exit {first.code}); each by itself: {fold(missing)}")
            with ThreadPoolExecutor(AT_ONCE) as pool:
                again = pool.map(lambda n: run(_srun([n], plan, inside), plan, until, quiet=True), missing)
                for node, second in zip(missing, again, strict=True):
                    why.setdefault(node, _by_itself(second))
    yield from from_files(nodes, plan, why, late=time.monotonic() >= until)


def _states() -> dict[str, str]:
    ask = ["sinfo", "--noheader", "--Node", "--format=%N %T"]
    try:
        told = subprocess.run(ask, capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired) as e:
        raise UsageError(f"sinfo does not answer ({e}): is this a machine of a Slurm cluster?") from e
    if told.returncode:
        raise UsageError(f"sinfo failed: {told.stderr.strip()}")
    return dict(line.split(None, 1) for line in told.stdout.splitlines() if line.strip())


def _why(state: str) -> tuple[NodeState, str]:
    if not state:
        return "not-reached", "Slurm knows no such node"
    busy = state.startswith("alloc")
    return "busy" if busy else "not-reached", f"Slurm says {state.strip()}"


def _srun(nodes: list[str], plan: Plan, inside: str | None) -> list[str]:
    number = len(nodes)
    seconds = max(1, round(plan.timeout))
    here = ["--overlap"] if inside else [f"--immediate={max(1, seconds // 4)}"]
    return [
        "srun", f"--nodes={number}", f"--ntasks={number}", "--ntasks-per-node=1", f"--nodelist={fold(nodes)}", *here,
        f"--wait={seconds}", "--kill-on-bad-exit=0", "--job-name=cudnn-doctor", "--quiet", *plan.options,
        "sh", "-c", SCRIPT.replace("$2", "$SLURMD_NODENAME").replace("shift 2", "shift"), "sh",
        str(plan.folder), *plan.check,
    ]  # fmt: skip


def _said(step: Ended) -> dict[str, tuple[NodeState, str]]:
    """What srun said of single nodes that it did not reach."""
    return {n: ("not-reached", words) for n, words in _SAID.findall(step.errors) if "Exited with" not in words}


def _by_itself(step: Ended) -> tuple[NodeState, str]:
    lines = step.errors.strip().splitlines()
    busy = "busy" in step.errors or "queued" in step.errors
    return "busy" if busy else "not-reached", lines[-1][:300] if lines else "srun gave no reason"
