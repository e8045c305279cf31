"""Lines of cuDNN's own loaders, as the wheels printed them."""

from __future__ import annotations

import pytest

from cudnn_doctor.rules.messages import loader_message

CANNOT = "cannot open shared object file: No such file or directory"


@pytest.mark.parametrize(
    ("line", "missing", "misfit"),
    [
        (f"Could not load library libcublasLt.so.12. Error: libcublasLt.so.12: {CANNOT}", "libcublasLt.so.12", ""),
        (f"Could not load library libcudnn_ops_infer.so.8. Error: libcublas.so.11: {CANNOT}", "libcublas.so.11", ""),
        # 8.5 blames its sub-library; what it lacks is the unversioned link
        (f"Could not load library libcudnn_cnn_infer.so.8. Error: libcuda.so: {CANNOT}", "libcuda.so", ""),
        (
            "Could not load library libcudnn_cnn_infer.so.8. Error: /opt/old/libcudnn_ops_infer.so.8: undefined symbol:"
            " _ZN11nvrtcHelper4loadEb, version libcudnn_ops_infer.so.8",
            "",
            "/opt/old/libcudnn_ops_infer.so.8",
        ),
        (
            "Could not load symbol cudnnGetMaxDeviceVersion from libcudnn_ops_infer.so.8. Error: "
            "/a/libcudnn_ops_infer.so.8: undefined symbol: cudnnGetMaxDeviceVersion",
            "",
            "/a/libcudnn_ops_infer.so.8",
        ),
        (
            "Unable to load any of {libcudnn_ops.so.9.1.0, libcudnn_ops.so.9.1, libcudnn_ops.so.9, libcudnn_ops.so}",
            "libcudnn_ops.so.9",
            "",
        ),
        ("Invalid handle. Cannot load symbol cudnnCreateTensorDescriptor", "", ""),
        (
            "Could not load symbol cudnnGetLibConfig. Error: /tmp/mixed/libcudnn_graph.so.9: undefined symbol: "
            "cudnnGetLibConfig",
            "",
            "/tmp/mixed/libcudnn_graph.so.9",
        ),
        (f"OSError: /opt/x/libcudart.so.12: {CANNOT}", "libcudart.so.12", ""),
    ],
)
def test_what_is_missing_or_does_not_fit(line: str, missing: str, misfit: str) -> None:
    message = loader_message(f"something else\n  {line}\nFatal Python error: Aborted")
    assert message is not None
    assert (message.missing, message.misfit, message.line) == (missing, misfit, line)


@pytest.mark.parametrize("text", ["", "WARNING: all is well", "Fatal Python error: Aborted", "Unable to load any of {"])
def test_other_output(text: str) -> None:
    assert loader_message(text) is None


def test_hostile_output_takes_no_time() -> None:
    assert loader_message("Unable to load any of {" + "a" * 20000) is None
    assert loader_message("Could not load library " * 2000 + ". Error: ") is None
