"""Ray: one task a node, pinned to it.

num_cpus=0 and no num_gpus: a task that asks for a GPU waits for ever while the GPUs are held. Ray hides the GPUs from a
task without any in older releases (CUDA_VISIBLE_DEVICES=""), so the variable is set back to what the raylet has. A node
that dies is not tried again (max_retries=0): its death is the answer.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from typing import Any

from cudnn_doctor.fleet.ray_task import task
from cudnn_doctor.fleet.running import Plan, failed
from cudnn_doctor.merge.collecting import Arrival
from cudnn_doctor.model.errors import UsageError


def arrivals(plan: Plan, address: str) -> Iterator[Arrival]:
    """What came of every node."""
    try:
        import ray
    except ImportError as e:
        raise UsageError("fleet ray needs Ray beside cudnn-doctor: pip install 'cudnn-doctor[ray]'.") from e
    plan.say(f"ray.init(address={address!r}); one task a node: {' '.join(plan.check)}")
    with _stdout_on_stderr():
        try:
            ray.init(address=address, log_to_driver=False, logging_level="ERROR")
            came = list(_all(plan, ray))
        except (ConnectionError, ValueError) as e:
            raise UsageError(f"no Ray cluster answers at {address!r}: {e}") from e
        finally:
            ray.shutdown()
    yield from came


@contextmanager
def _stdout_on_stderr() -> Iterator[None]:
    """Ray writes to stdout that a node has died, from Python and from its core; stdout is the picture's."""
    saved = os.dup(1)
    os.dup2(2, 1)
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        os.dup2(saved, 1)
        os.close(saved)


def _all(plan: Plan, ray: Any) -> Iterator[Arrival]:
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    nodes = _nodes(ray.nodes())
    remote = ray.remote(num_cpus=0, max_retries=0)(task())
    waiting: dict[Any, str] = {}
    for node in plan.nodes or nodes:
        if not nodes.get(node, {}).get("Alive"):
            reason = "Ray says dead" if node in nodes else "Ray knows no such node"
            yield Arrival(node, "ray", state="not-reached", reason=reason)
            continue
        pinned = NodeAffinitySchedulingStrategy(node_id=nodes[node]["NodeID"], soft=False)
        waiting[remote.options(scheduling_strategy=pinned).remote(list(plan.check), plan.timeout)] = node
    until, total = time.monotonic() + plan.timeout, len(waiting)
    try:
        while waiting and time.monotonic() < until:
            ready, _ = ray.wait(list(waiting), num_returns=1, timeout=0.5)
            plan.show(f"{total - len(waiting) + len(ready)} of {total} done")
            for one in ready:
                yield _came(ray, one, waiting.pop(one))
    except KeyboardInterrupt:
        plan.say("interrupted")
    for late, node in waiting.items():
        ray.cancel(late, force=True)
        yield Arrival(node, "ray", state="timed-out", reason=f"no report within {plan.timeout:g} s")


def _nodes(known: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Nodes by name, with the beginning of the id where several that live share it. Ray remembers the dead for ever:
    one counts where no living node has taken its name."""
    by_name: dict[str, list[dict[str, Any]]] = {}
    for node in known:
        by_name.setdefault(str(node.get("NodeName") or node["NodeManagerHostname"]), []).append(node)
    found: dict[str, dict[str, Any]] = {}
    for name, same in by_name.items():
        alive = [n for n in same if n["Alive"]] or same[:1]
        found.update({name if len(alive) == 1 else f"{name}-{n['NodeID'][:6]}": n for n in alive})
    return found


def _came(ray: Any, one: Any, node: str) -> Arrival:
    try:
        code, out, words = ray.get(one)
    except ray.exceptions.RayError as e:
        return Arrival(node, "ray", state="not-reached", reason=f"{type(e).__name__}: {str(e).splitlines()[0][:300]}")
    if code is None:
        return Arrival(node, "ray", state="timed-out", reason=words)
    return (
        Arrival(node, "ray", out) if out.strip() else Arrival(node, "ray", state="failed", reason=failed(code, words))
    )
