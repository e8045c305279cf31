"""As whom the code of an environment runs: never as root where somebody else could have written it.

A library acts when it is loaded (its constructors), before any call. Where root examines an environment that another
user owns, or could change, each child that loads something of it goes down to that user first, for good: user and
groups, no_new_privs, a working directory and variables that are nobody's. `--trust-env` leaves that out.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from cudnn_doctor.model.base import Base

BECOME = str(Path(__file__).with_name("become.py"))
_PLAIN = ("LANG", "LC_ALL", "PATH", "TMPDIR", "TZ")  # what a child needs beside settings


class Account(Base, frozen=True, kw_only=True):
    """A user to become, with the groups that the user database gives him."""

    uid: int
    gid: int
    groups: tuple[int, ...]
    name: str
    home: str
    variables: tuple[str, ...] = ()  # names of those of root's variables that he may know


_current: list[Account | None] = [None]  # of the one environment that this process examines


def examine_as_owner(prefix: str, *, trust: bool, variables: Iterable[str] = ()) -> None:
    """From now on children that load something of the environment at `prefix` run as whoever could have written it,
    with these of root's variables."""
    root = sys.platform != "win32" and os.geteuid() == 0
    found = owner_of(Path(prefix)) if root and not trust else None
    kept = tuple(sorted({*variables, *_PLAIN}))
    _current[0] = msgspec.structs.replace(found, variables=kept) if found else None


def current() -> Account | None:
    """Who children are to become; None where they stay what this process is."""
    return _current[0]


def command_as(account: Account | None, command: Sequence[str]) -> list[str]:
    """A command that runs as this account."""
    if account is None:
        return list(command)
    return [sys.executable, "-I", "-S", BECOME, msgspec.json.encode(account).decode(), *command]


def environment_for(account: Account | None, environ: Mapping[str, str]) -> dict[str, str]:
    """The variables that a child of this account gets: root's own may hold what is not for him."""
    if account is None:
        return dict(environ)
    kept = {name: environ[name] for name in account.variables if name in environ}
    return {**kept, "HOME": account.home, "USER": account.name, "LOGNAME": account.name}


def owner_of(path: Path) -> Account | None:
    """The user, other than root, who owns a folder or one above it: he could put anything there. None where nobody but
    root could. Of several the innermost; a link counts with what it leads to."""
    found: int | None = None
    for place in (Path(os.path.abspath(path)), Path(os.path.realpath(path))):
        for part in (*reversed(place.parents), place):
            try:
                uid = part.lstat().st_uid
            except OSError:
                break
            found = uid if uid != 0 else found
    return None if found is None else _account(found)


def _account(uid: int) -> Account:
    import pwd

    try:
        entry = pwd.getpwuid(uid)
    except KeyError:  # a container without an entry for the owner of a mounted folder
        return Account(uid=uid, gid=uid, groups=(), name=str(uid), home="/")
    groups = os.getgrouplist(entry.pw_name, entry.pw_gid)
    return Account(uid=uid, gid=entry.pw_gid, groups=tuple(groups), name=entry.pw_name, home=entry.pw_dir)
