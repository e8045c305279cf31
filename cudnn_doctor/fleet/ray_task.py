"""What Ray runs on a node."""

from __future__ import annotations

from collections.abc import Callable


def task() -> Callable[[list[str], float], tuple[int | None, bytes, str]]:
    """A function of no module, so that Ray sends it whole: the workers need no cudnn_doctor to unpickle it. It gives
    the exit status (None: out of time), stdout and stderr."""

    def check(command: list[str], timeout: float) -> tuple[int | None, bytes, str]:
        import os
        import subprocess

        environment = {name: value for name, value in os.environ.items() if name != "CUDA_VISIBLE_DEVICES"}
        try:
            with open(f"/proc/{os.getppid()}/environ", "rb") as file:  # the raylet's: what the node itself has
                pairs = [item.decode().partition("=") for item in file.read().split(b"\0")]
            environment.update({name: value for name, _, value in pairs if name == "CUDA_VISIBLE_DEVICES"})
        except (OSError, UnicodeDecodeError):
            pass  # not Linux, or a parent of another user: then no mask is the better guess
        try:
            done = subprocess.run(
                command, stdin=subprocess.DEVNULL, capture_output=True, timeout=timeout, env=environment, check=False
            )
        except subprocess.TimeoutExpired:
            return None, b"", f"no report within {timeout:g} s"
        except OSError as e:
            return 127, b"", f"{command[0]}: {e.strerror}"
        return done.returncode, done.stdout, done.stderr.decode("utf-8", "replace")

    return check
