"""How to make cuDNN log, by its major.

cuDNN 8 has a switch for each level and ignores CUDNN_LOGLEVEL_DBG; a failing cudnnSetStream shows at level info alone.
cuDNN 9 has one level, 0 to 3. Source: "Error Reporting and API Logging" of the cuDNN developer guides 8.9.7
(https://docs.nvidia.com/deeplearning/cudnn/archives/cudnn-897/developer-guide/) and 9
(https://docs.nvidia.com/deeplearning/cudnn/backend/latest/reference/troubleshooting.html), read 2026-12-01.
"""

from __future__ import annotations

_TO_STDERR = "CUDNN_LOGDEST_DBG=stderr"
_LEVELS = {8: "CUDNN_LOGINFO_DBG=1 CUDNN_LOGWARN_DBG=1 CUDNN_LOGERR_DBG=1", 9: "CUDNN_LOGLEVEL_DBG=3"}


def log_variables(major: int) -> str:
    """The variables in front of a command, as a shell takes them."""
    return f"{_LEVELS[8 if major <= 8 else 9]} {_TO_STDERR}"
