"""What a text states of the machine that wrote it: the keyhole through which a log shows a machine.

The fields mirror those of a `Snapshot`. Values are in the text's own words, in lower case; the source of each is the
line that says it ("train.log line 12"). What is not stated is `NOT_STATED`, and nothing is inferred.
"""

from __future__ import annotations

from cudnn_doctor.model.base import Absent, Base, Fact, Known

NOT_STATED = Absent(reason="not-found", detail="not stated")
NO_VERSION = "0"  # of a framework whose release is not stated: no row has it


class StatedMachine(Base, frozen=True, kw_only=True):
    """The facts of one text. Versions are as written: "7605", "7.6.5" and "8" all occur."""

    os: Fact[str] = NOT_STATED
    wsl: Fact[bool] = NOT_STATED
    windows: Fact[bool] = NOT_STATED  # paths or files of Windows are in the text
    driver: Fact[str] = NOT_STATED
    gpu: Fact[str] = NOT_STATED
    compute_capability: Fact[str] = NOT_STATED  # where a line names it: "8.6"
    framework: Fact[str] = NOT_STATED
    framework_version: Fact[str] = NOT_STATED
    installer: Fact[str] = NOT_STATED  # "pip"
    cuda: Fact[str] = NOT_STATED  # in use, not the ceiling that nvidia-smi prints
    cuda_opened: Fact[str] = NOT_STATED  # CUDA of the libraries that the log shows opened
    cudnn_loaded: Fact[str] = NOT_STATED
    cudnn_built: Fact[str] = NOT_STATED
    cudnn_for_cuda: Fact[str] = NOT_STATED  # CUDA that the package of the named cuDNN is for: "10.1", "12"
    cudnn_kind: Fact[str] = NOT_STATED  # "jit" where the run-time compiled package is named

    @property
    def comparable(self) -> bool:
        """Whether two facts are stated that the compatibility rules hold against each other."""
        known = {name for name in self.__struct_fields__ if isinstance(getattr(self, name), Known)}
        return any(known & one and known & other for one, other in _HELD_AGAINST)

    @property
    def names_gpu(self) -> bool:
        return isinstance(self.gpu, Known) or isinstance(self.compute_capability, Known)


# Of each pair, one fact of the first and one of the second.
_HELD_AGAINST = (
    ({"driver", "cudnn_for_cuda"}, {"cuda", "framework_version"}),
    ({"driver"}, {"cudnn_for_cuda"}),
    ({"gpu", "compute_capability"}, {"cuda", "cuda_opened", "framework_version", "cudnn_loaded"}),
    ({"cuda"}, {"framework_version"}),
)
