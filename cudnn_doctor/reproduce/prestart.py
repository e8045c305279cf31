"""The shared child of the first copy, started before it is known which copy that is.

cuInit and the context take 0.2 s in the driver, as long as it takes to read the machine: they run beside each other.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

import msgspec

from cudnn_doctor.live.parent import Job
from cudnn_doctor.live.process import Child
from cudnn_doctor.model.reproduction import Copy, Device, Request
from cudnn_doctor.reproduce.plan import CHILD_SECONDS, child_job, wanted_states

LATER = ("cudnn", "preload")  # arguments that are told when they are known


class EarlyStates:
    """Children that have begun the first shared state, one a device; what is not taken must be given to `abandon`."""

    def __init__(self, request: Request, ordinals: Sequence[int], environ: Mapping[str, str]) -> None:
        """Starts them; none where states are repeated or none of them shares a child, and none where memory is to be
        filled: who else uses the device is asked then, and they would be among the users.

        Raises:
            UnknownStateError: a state is asked for that there is not.
        """
        states = [s for s in wanted_states(request) if s[1].danger == "harmless" and s[1].shares_a_child]
        early = bool(states) and request.repeat == 1 and not request.memory
        devices = [Device(ordinal=o) for o in ordinals] if early else []
        nowhere = Copy(path="", major=9)
        self.children: dict[int, Child] = {}
        for device in devices:
            job = child_job(states, 1, nowhere, device, devices, environ)
            # The first state alone: it opens the driver and then reads its next line, which must not be another state.
            first = job.tasks[0]
            args = {k: v for k, v in first.args.items() if k not in LATER}
            alone = msgspec.structs.replace(job, tasks=(msgspec.structs.replace(first, args=args),))
            self.children[device.ordinal] = Child(alone, time.monotonic() + CHILD_SECONDS, hold=True)

    def take(self, job: Job) -> Child | None:
        """The child that runs already for this job, told what it lacks; None where there is none for it."""
        child = self.children.pop(job.device, None) if job.device is not None else None
        if child is None:
            return None
        if child.job.tasks[0].id != job.tasks[0].id or child.job.set_env != job.set_env:
            child.abandon()
            return None
        child.tell({k: job.tasks[0].args[k] for k in LATER}, job)
        return child

    def abandon(self) -> None:
        """Ends every child that nobody took."""
        while self.children:
            self.children.popitem()[1].abandon()
