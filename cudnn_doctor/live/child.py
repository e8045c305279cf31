"""The child's main program: `python -I -S child.py COMMANDS RESULTS [NAME=LIMIT ...]`, two descriptor numbers.

The first command is the module path to use; each further one names a body, `module:function`, and its arguments.
Bodies of one child share the dictionary that they are given as third argument (an open context, a loaded library);
"more" in it reads one further line, for a body that was started before all its arguments were known.

A limit is a soft one, by its name in `resource` ("STACK=262144"; -1 lifts it). The program starts itself again under
it, as a launcher would: a stack limit of a running process changes neither its threads' default nor what its parent
would have given it.
"""

from __future__ import annotations

import _thread
import faulthandler
import json
import os
import resource
import select
import signal
import sys
import time
from importlib import import_module
from typing import Any


def _end_with_parent(results_fd: int) -> None:
    """Kills this child's group once nobody can read its results: the parent ended (Ctrl-C, the kill of a scheduler)
    while a library hangs here. Ours is a session of its own, which no signal to the parent's group reaches."""
    poll = select.poll()
    poll.register(results_fd, 0)  # an error is always told: the reading end is closed
    if any(event & select.POLLERR for _, event in poll.poll()):
        os.killpg(0, signal.SIGKILL)


def _limit(which: int, soft: int) -> None:
    """Sets a soft limit; the hard one rises only where it is in the way."""
    hard = resource.getrlimit(which)[1]
    enough = hard == resource.RLIM_INFINITY or (soft != resource.RLIM_INFINITY and soft <= hard)
    resource.setrlimit(which, (soft, hard if enough else soft))


def _become(account: dict[str, Any], bodies: list[str]) -> None:
    """Goes down to another user, before anything of his is loaded. What this tool needs is imported before: its folder
    may be one that he may not read."""
    import pkgutil
    from contextlib import suppress

    from cudnn_doctor.live.become import become

    states = import_module("cudnn_doctor.scenarios")
    for name in (*bodies, *(f"{states.__name__}.{m.name}" for m in pkgutil.iter_modules(states.__path__))):
        import_module(name)
    with suppress(Exception):  # whatever it raises, the body meets it again and tells
        import_module("cuda.bindings.driver")
    become(account)


def main() -> None:
    """Runs the commands until their channel ends, then leaves without the interpreter's and the libraries' teardown."""
    commands_fd, results_fd = int(sys.argv[1]), int(sys.argv[2])
    if len(sys.argv) > 3:
        for name, _, value in (limit.partition("=") for limit in sys.argv[3:]):
            _limit(getattr(resource, f"RLIMIT_{name}"), int(value))
        os.execv(sys.executable, [sys.executable, "-I", "-S", *sys.argv[:3]])  # noqa: S606 - no shell is the point
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    faulthandler.enable(all_threads=False)
    for fd in (commands_fd, results_fd):
        os.set_inheritable(fd, False)
    _thread.stack_size(256 << 10)  # whatever the stack limit is
    _thread.start_new_thread(_end_with_parent, (results_fd,))
    _thread.stack_size(0)
    with open(commands_fd, "rb") as commands:
        first = json.loads(commands.readline())
        sys.path[:] = first["path"]
        if first["become"]:
            _become(first["become"], first["bodies"])
        from cudnn_doctor.live.wire import StopTask, Wire

        wire = Wire(results_fd)
        shared: dict[str, Any] = {"more": lambda: json.loads(next(commands, b"null"))}
        for line in commands:
            task = json.loads(line)
            wire.send(begin=task["id"])
            start = time.perf_counter_ns()
            error = ""
            try:
                module, _, function = task["body"].partition(":")
                getattr(import_module(module), function)(wire, task["args"], shared)
            except StopTask:
                pass
            except BaseException as e:
                error = f"{type(e).__name__}: {e}"[:2000]
            wire.send(end=task["id"], ms=round((time.perf_counter_ns() - start) / 1e6, 3), error=error)
    wire.send(done=True)
    os._exit(0)


if __name__ == "__main__":
    main()
