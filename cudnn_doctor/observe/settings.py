"""Environment variables that `run` gives the program so that it says more when it dies: only ones that change no
result, and only where the user has not set anything of the kind."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

CUDNN_LOG = "cudnn-%i.log"  # cuDNN puts the PID for %i
CUDA_LOG = "cuda.log"
# Both majors' names. Version 8: https://docs.nvidia.com/deeplearning/cudnn/archives/cudnn-897/developer-guide, 9:
# https://docs.nvidia.com/deeplearning/cudnn/backend/latest/reference/error-reporting.html (read 2026-11-30).
_CUDNN_LEVEL = ("CUDNN_LOGERR_DBG", "CUDNN_LOGWARN_DBG", "CUDNN_LOGINFO_DBG", "CUDNN_LOGLEVEL_DBG")
_CUDNN = (*_CUDNN_LEVEL, "CUDNN_LOGDEST_DBG")
ERRORS, EVERYTHING = "1", "3"  # of CUDNN_LOGLEVEL_DBG


def defaults(environ: Mapping[str, str], folder: str, *, trace: bool = False) -> dict[str, str]:
    """What to add to `environ`.

    Args:
        folder: where logs may go; "" leaves them out.
        trace: also what slows the program down: cuDNN's full log (unbounded, see observe/ticks.py) and synchronous
            launches.
    """
    added: dict[str, str] = {}
    if "PYTHONFAULTHANDLER" not in environ:
        added["PYTHONFAULTHANDLER"] = "1"  # the Python line of a crash, on stderr
    if folder and not any(name in environ for name in _CUDNN):
        added["CUDNN_LOGDEST_DBG"] = f"{folder}/{CUDNN_LOG}"
        added["CUDNN_LOGERR_DBG"] = "1"
        added["CUDNN_LOGLEVEL_DBG"] = EVERYTHING if trace else ERRORS
        if trace:
            added |= {"CUDNN_LOGWARN_DBG": "1", "CUDNN_LOGINFO_DBG": "1"}
    if folder and "CUDA_LOG_FILE" not in environ:
        added["CUDA_LOG_FILE"] = f"{folder}/{CUDA_LOG}"  # read by driver 575 and newer
    if trace and "CUDA_LAUNCH_BLOCKING" not in environ:
        added["CUDA_LAUNCH_BLOCKING"] = "1"
    return added
