"""True logs of provoked states (logs/README.md): what was done is known, so the answer can be wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.explain.plain import answer

LOGS = Path(__file__).parent / "logs"
TOLD = {
    "torch_index": ("device-assert-bad-index", "consequence"),
    "torch_label": ("device-assert-bad-index", "consequence"),
    "torch_fork": ("fork-after-init", "primary"),
    "torch_dataloader": ("fork-after-init", "primary"),
    "torch_reset": ("context-reset", "consequence"),
    "torch_stream": ("device-context-mixup", "primary"),
    "torch_poison": ("prior-cuda-fault", "consequence"),
    "torch_shadow": ("cudnn-shadowed", "primary"),
    "torch_nocuda": ("environment-restriction", "primary"),
    "jax_fork": ("fork-after-init", "primary"),
    "jax_memory": ("vram-exhausted", "consequence"),
    "jax_reset": ("context-reset", "consequence"),
    "jax_poison": ("prior-cuda-fault", "consequence"),
    "jax_shadow": ("cudnn-runtime-too-old", "primary"),  # what the lines say; they do not show where it came from
}
SILENT = ("torch_healthy", "jax_healthy", "jax_index")


@pytest.mark.parametrize("name", TOLD)
def test_the_provoked_cause_is_named(name: str) -> None:
    told = answer([LOGS / f"{name}.log"])
    cause, role = TOLD[name]
    assert (told["verdict"], told["causes"][0]["cause"], told["causes"][0]["role"]) == ("cause-found", cause, role)


@pytest.mark.parametrize("name", SILENT)
def test_no_cause_is_named_where_nothing_failed(name: str) -> None:
    told = answer([LOGS / f"{name}.log"])
    assert told["verdict"] in ("no-problem", "not-cudnn")
    assert told["causes"] == []


def test_full_memory_without_any_sign_of_it_is_not_decided() -> None:
    """PyTorch says nothing but INTERNAL_ERROR: memory must be among the possible causes, and asked for."""
    told = answer([LOGS / "torch_memory.log"])
    assert told["verdict"] == "undetermined"
    assert "vram-exhausted" in [c["cause"] for c in told["causes"]]
    assert "gpu-memory" in [q["id"] for q in told["questions"]]


def test_every_log_is_used() -> None:
    assert {p.stem for p in LOGS.glob("*.log")} == {*TOLD, *SILENT, "torch_memory"}


def test_kernel_log_beside_the_program_log_confirms_the_fault() -> None:
    told = answer([LOGS / "torch_poison.log", LOGS / "dmesg.txt"])
    assert told["causes"][0]["cause"] == "prior-cuda-fault"
    assert any("Xid" in e["text"] for e in told["causes"][0]["evidence"])
    assert told["sources"] == [str(LOGS / "torch_poison.log"), str(LOGS / "dmesg.txt")]
