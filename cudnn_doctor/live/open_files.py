"""Room for our own pipes under a small limit on open files; programs that are tried keep the limit that was given."""

from __future__ import annotations

TOO_FEW = 32  # below it no child is started: its pipes and our own modules need about as many
ROOM = 1024

_given: int | None = None  # the soft limit before it was raised


def make_room() -> None:
    """Raises the soft limit of this process as far as the hard one allows, where it is small."""
    global _given  # noqa: PLW0603 - the limit is the process's own, too
    soft, hard = _limits()
    if _given is not None or not 0 <= soft < ROOM:
        return
    import resource

    wished = ROOM if hard < 0 else min(hard, ROOM)
    if wished > soft:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wished, hard if hard >= 0 else resource.RLIM_INFINITY))
        _given = soft


def given() -> int:
    """The soft limit that a program of this user would start under; -1 where there is none."""
    return _limits()[0] if _given is None else _given


def raised() -> bool:
    """Whether a child has to be given the old limit."""
    return _given is not None


def enough() -> bool:
    """Whether children can be started."""
    soft = _limits()[0]
    return not 0 <= soft < TOO_FEW


def _limits() -> tuple[int, int]:
    """Soft and hard limit of this process; -1 is unlimited, also where the system has no such limit."""
    try:
        import resource
    except ImportError:
        return -1, -1
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return tuple(-1 if n == resource.RLIM_INFINITY else n for n in (soft, hard))  # type: ignore[return-value]  # two
