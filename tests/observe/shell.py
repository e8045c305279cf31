"""A shell with job control, as small as a test needs: it runs one command in a process group of its own and says on
the descriptor of its first argument which, and then what becomes of it, as `waitpid` gives it. A line on the descriptor
of its second argument continues a stopped one."""

from __future__ import annotations

import fcntl
import os
import signal
import sys
import termios


def main() -> None:
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    status_fd, orders_fd, *command = sys.argv[1:]
    say, orders = int(status_fd), int(orders_fd)
    terminal = os.isatty(0)
    if terminal:
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)  # this process begins its session
    job = os.fork()
    if not job:
        os.setpgid(0, 0)
        if terminal:
            os.tcsetpgrp(0, os.getpid())
        signal.signal(signal.SIGTTOU, signal.SIG_DFL)
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # Python ignores it, a shell does not
        os.close(say)
        os.close(orders)
        os.execvp(command[0], command)  # noqa: S606  the test's own program
    os.write(say, f"{job}\n".encode())
    while True:
        _, status = os.waitpid(job, os.WUNTRACED)
        if terminal:
            os.tcsetpgrp(0, os.getpgrp())
        os.write(say, f"{status}\n".encode())
        if not os.WIFSTOPPED(status):
            return
        os.read(orders, 3)
        if terminal:
            os.tcsetpgrp(0, job)
        os.killpg(job, signal.SIGCONT)


if __name__ == "__main__":
    main()
