"""ssh: clush or pdsh where one is installed, else ssh itself, so many at once.

clush and pdsh print every line with its node in front, which is a form that `merge -` reads. Both end with 0 where a
node failed or timed out unless told -S (clush 1.9.1, pdsh 2.34, 2026-12-01), so nodes are judged by what they sent.
"""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Literal

from cudnn_doctor.fleet.running import Plan, failed, run
from cudnn_doctor.merge.collecting import Arrival
from cudnn_doctor.merge.nodeset import fold
from cudnn_doctor.merge.streams import documents
from cudnn_doctor.model.errors import UsageError
from cudnn_doctor.model.fleet import NodeState

Via = Literal["clush", "pdsh", "ssh"]
TOOLS: tuple[Via, ...] = ("clush", "pdsh")
AT_ONCE = 64
_SAID = re.compile(r"^(?:clush|pdsh@\S+): ([\w.-]+): (.+)$", re.MULTILINE)
_WROTE = re.compile(r"^([\w.-]+): (.+)$", re.MULTILINE)  # stderr of a node
_EXIT = re.compile(r"exited with exit code (\d+)")


def arrivals(plan: Plan, via: Via | None) -> Iterator[Arrival]:
    """What came of every node."""
    if not plan.nodes:
        raise UsageError("fleet ssh needs --nodes: ssh knows no cluster.")
    found: list[Via] = [t for t in TOOLS if shutil.which(t)]
    tool = via or (*found, "ssh")[0]
    yield from _each(plan) if tool == "ssh" else _labelled(plan, tool)


def _labelled(plan: Plan, tool: str) -> Iterator[Arrival]:
    seconds = str(max(1, round(plan.timeout)))
    where = ",".join(plan.nodes) if tool == "pdsh" else fold(plan.nodes)
    limits = ["-S", "-w", where, "-u", seconds, "-f", str(AT_ONCE)]
    what = plan.check if tool == "pdsh" else [shlex.join(plan.check)]  # pdsh joins the words itself
    command = [tool, *limits, *plan.options, *what]
    with (plan.folder / "labelled").open("w+b") as output:
        ended = run(command, plan, time.monotonic() + plan.timeout + 5, output=output)
        output.seek(0)
        came = {a.node: a for a in documents(output, tool)}
    said: dict[str, list[str]] = {}
    for node, words in (*_SAID.findall(ended.errors), *_WROTE.findall(ended.errors)):
        said.setdefault(node, []).append(words)
    for node in plan.nodes:
        whole = node in came and came[node].data
        yield came[node] if whole else Arrival(node, tool, b"", *_why(said.get(node, [])))


def _why(words: list[str]) -> tuple[NodeState, str]:
    """From what the engine and the node said: the exit status is the engine's word, the rest the node's."""
    exits = [m[1] for w in words if (m := _EXIT.search(w))]
    rest = [w for w in words if not _EXIT.search(w)]
    if any("timeout" in w or "timed out" in w for w in rest):
        return "timed-out", rest[-1][:300]
    if exits == ["255"] or not exits:
        return "not-reached", rest[-1][:300] if rest else "nothing came from it"
    return "failed", failed(exits[-1], "\n".join(rest))


def _each(plan: Plan) -> Iterator[Arrival]:
    start = ["ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10", *plan.options]
    plan.say(f"{shlex.join(start)} NODE {shlex.join(plan.check)}   # {AT_ONCE} at once: {fold(plan.nodes)}")
    until = time.monotonic() + plan.timeout
    with ThreadPoolExecutor(AT_ONCE) as pool:
        yield from pool.map(lambda node: _one(node, [*start, node, shlex.join(plan.check)], until), plan.nodes)


def _one(node: str, command: list[str], until: float) -> Arrival:
    try:
        left = max(0.1, until - time.monotonic())
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=left, check=False)
    except subprocess.TimeoutExpired:
        return Arrival(node, "ssh", state="timed-out", reason="no report in time")
    except OSError as e:
        return Arrival(node, "ssh", state="not-reached", reason=f"ssh: {e.strerror}")
    words = done.stderr.decode("utf-8", "replace")
    if done.stdout.strip():
        return Arrival(node, "ssh", done.stdout)
    if done.returncode == 255:
        return Arrival(node, "ssh", state="not-reached", reason=words.strip()[-300:])
    return Arrival(node, "ssh", state="failed", reason=failed(done.returncode, words))
