"""Goes down to another user for good: `python -I -S become.py ACCOUNT COMMAND...`, or `become` in a child of ours.

ACCOUNT is JSON with "uid", "gid", "groups" and "name". Standard library only, and nothing of the environment.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from typing import Any

NOT_BECOME = 95  # exit code of a child that could not go down
_NO_NEW_PRIVS = 38  # PR_SET_NO_NEW_PRIVS of linux/prctl.h: for this process and all that it starts


def become(account: Mapping[str, Any]) -> None:
    """Takes the user, the groups and the promise to gain no rights. A process that cannot (a user namespace without
    that user) ends here: nothing of his runs as root."""
    import ctypes

    try:
        os.setgroups(account["groups"])
        os.setresgid(account["gid"], account["gid"], account["gid"])
        os.setresuid(account["uid"], account["uid"], account["uid"])
        if ctypes.CDLL(None, use_errno=True).prctl(_NO_NEW_PRIVS, 1, 0, 0, 0):
            raise OSError(ctypes.get_errno(), "prctl(PR_SET_NO_NEW_PRIVS)")
    except Exception as e:  # OSError, and OverflowError of an id that no system has
        _end(
            f"its environment belongs to {account['name']} (id {account['uid']}), and this process cannot become that "
            f"user: {e}; --trust-env runs it as root"
        )


def _end(why: str) -> None:
    os.write(2, f"{why}\n".encode())
    os._exit(NOT_BECOME)


def main() -> None:
    """Becomes the user and then the command."""
    become(json.loads(sys.argv[1]))
    try:
        os.execv(sys.argv[2], sys.argv[2:])  # noqa: S606 - no shell is the point
    except OSError as e:
        _end(f"{sys.argv[2]}: {e.strerror}")


if __name__ == "__main__":
    main()
