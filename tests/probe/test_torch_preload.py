"""What torch's own preload is read as, release by release, from the code's form and not its spelling."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from cudnn_doctor.probe.torch_preload import Plan, Preload, read_plan
from tests.probe.test_loader import TORCH_2_1, TORCH_2_6, TORCH_2_11, TORCH_2_14

OLD = {"places": ("{site}/nvidia/{folder}/lib/{pattern}",), "guard": "{site}/nvidia"}
NEW = {
    "places": (
        "{site}/nvidia/{folder}/lib/{pattern}",
        "{site}/nvidia/cu{cuda}/lib/{pattern}",
        "{site}/{folder}/lib/{pattern}",
    ),
    "guard": "",
}


def one(folder: str, name: str, form: Mapping[str, object], *, required: bool = True) -> Preload:
    return Preload(folder=folder, pattern=f"{name}.so.*[0-9]", required=required, **form)  # type: ignore[arg-type]


def test_2_1_preloads_after_a_failure_only() -> None:
    failed = (one("cublas", "libcublas", OLD), one("cudnn", "libcudnn", OLD))
    assert read_plan(TORCH_2_1) == Plan(failed=failed)


def test_2_6_preloads_nvrtc_when_the_runtime_wheel_is_mapped() -> None:
    assert read_plan(TORCH_2_6) == Plan(
        opened=(one("cuda_nvrtc", "libnvrtc", OLD),),
        if_mapped="nvidia/cuda_runtime/lib/libcudart.so",
        failed=(
            one("cublas", "libcublas", OLD),
            one("cudnn", "libcudnn", OLD),
            one("cuda_runtime", "libcudart", OLD),
        ),
    )


@pytest.mark.parametrize(("text", "required"), [(TORCH_2_11, True), (TORCH_2_14, False)])
def test_2_11_and_2_14_preload_all_in_both_cases(text: str, required: bool) -> None:
    def listed(*, required: bool) -> tuple[Preload, ...]:
        return (
            one("cublas", "libcublasLt", NEW, required=required),
            one("cudnn", "libcudnn", NEW, required=required),
            one("nvtx", "libnvToolsExt", NEW, required=False),
        )

    assert read_plan(text) == Plan(
        opened=listed(required=required), if_mapped="libcudart.so", failed=listed(required=True)
    )


def test_no_such_code_is_nothing_and_other_code_is_not_known() -> None:
    assert read_plan("import torch._C\n") == Plan()
    assert read_plan("") == Plan()
    assert read_plan("ctypes.CDLL(f'{site}/nvidia/cudnn/lib/libcudnn.so.9')\n") is None
    assert read_plan(TORCH_2_11.replace("_preload_cuda_lib(lib_folder", "self.open(lib_folder")) is None
    assert read_plan(TORCH_2_1.replace("'lib', lib_name", "lib_name.folder()")) is None
