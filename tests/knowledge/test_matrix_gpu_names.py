"""GPU names, as nvidia-smi prints them, against the compute capability that the matrix reads from them."""

from __future__ import annotations

import re

import pytest

from cudnn_doctor.matrix.load import load_matrix

MATRIX = load_matrix()
GPU_NAMES = {
    "3.0": (
        "GeForce GTX 680",
        "GeForce GTX 770",
        "Quadro K4000",
    ),
    "3.5": (
        "Tesla K40m",
        "Tesla K20Xm",
        "GeForce GTX 780 Ti",
        "GeForce GT 710",
        "GeForce GTX TITAN Black",
    ),
    "3.7": ("Tesla K80",),
    "5.0": (
        "Quadro M2000M",
        "GeForce GTX 750 Ti",
        "GeForce GTX 960M",
        "GeForce 940MX",
        "NVIDIA GeForce MX130",
    ),
    "5.2": (
        "GeForce GTX TITAN X",
        "GeForce GTX 980 Ti",
        "Tesla M60",
        "Quadro M4000",
        "GeForce GTX 970M",
        "GeForce GTX 960",
        "Tesla M40 24GB",
    ),
    "6.0": ("Tesla P100-PCIE-16GB",),
    "6.1": (
        "GeForce GTX 1080 Ti",
        "NVIDIA GeForce GTX 1060 6GB",
        "TITAN X (Pascal)",
        "NVIDIA TITAN X (Pascal)",
        "TITAN Xp",
        "Tesla P40",
        "Tesla P4",
        "Quadro P2000",
        "GeForce GT 1030",
        "GeForce MX150",
        "NVIDIA P106-100",
    ),
    "7.0": (
        "Tesla V100-SXM2-16GB",
        "Tesla V100S-PCIE-32GB",
        "TITAN V",
        "Quadro GV100",
    ),
    "7.2": ("Xavier",),
    "7.5": (
        "Tesla T4",
        "NVIDIA T4",
        "GRID T4-16Q",
        "NVIDIA GeForce RTX 2080 Ti",
        "GeForce GTX 1660 Ti",
        "NVIDIA GeForce GTX 1650",
        "TITAN RTX",
        "Quadro RTX 8000",
        "NVIDIA T1000 8GB",
        "NVIDIA T400 4GB",
        "NVIDIA GeForce MX450",
        "NVIDIA GeForce GTX 1630",
    ),
    "8.0": (
        "NVIDIA A100-SXM4-40GB",
        "NVIDIA A100 80GB PCIe",
        "A100-SXM4-40GB",
        "NVIDIA A100-SXM4-40GB MIG 1g.5gb",
        "NVIDIA A30",
        "NVIDIA A800-SXM4-80GB",
        "NVIDIA A30 MIG 1g.6gb",
    ),
    "8.6": (
        "NVIDIA GeForce RTX 3090",
        "NVIDIA GeForce RTX 3050 Ti Laptop GPU",
        "NVIDIA GeForce RTX 2050",
        "NVIDIA RTX A6000",
        "NVIDIA RTX A400",
        "NVIDIA A10",
        "NVIDIA A10G",
        "NVIDIA A2",
        "NVIDIA A16",
        "NVIDIA A40",
        "NVIDIA A40-48Q",
        "NVIDIA RTX A5000 Laptop GPU",
    ),
    "8.7": ("Orin (nvgpu)",),
    "8.9": (
        "NVIDIA GeForce RTX 4090",
        "NVIDIA GeForce RTX 4070 Ti SUPER",
        "NVIDIA RTX 6000 Ada Generation",
        "NVIDIA RTX 4000 SFF Ada Generation",
        "NVIDIA L4",
        "NVIDIA L40S",
        "NVIDIA RTX 5000 Ada Generation Laptop GPU",
    ),
    "9.0": (
        "NVIDIA H100 80GB HBM3",
        "NVIDIA H100 PCIe",
        "NVIDIA H100 NVL",
        "NVIDIA H200",
        "NVIDIA H20",
        "NVIDIA H800",
        "NVIDIA GH200 480GB",
    ),
    "10.0": (
        "NVIDIA B200",
        "NVIDIA GB200",
    ),
    "10.3": (
        "NVIDIA B300 SXM6 AC",
        "NVIDIA GB300",
    ),
    "11.0": ("NVIDIA Thor",),
    "12.0": (
        "NVIDIA GeForce RTX 5090",
        "NVIDIA GeForce RTX 5080 Laptop GPU",
        "NVIDIA RTX PRO 6000 Blackwell Workstation Edition",
        "NVIDIA RTX PRO 1000 Blackwell Generation Laptop GPU",
    ),
    "12.1": ("NVIDIA GB10",),
}


@pytest.mark.parametrize(("cc", "name"), [(cc, name) for cc, names in GPU_NAMES.items() for name in names])
def test_capability_by_name(cc: str, name: str) -> None:
    row = MATRIX.gpu_by_name(name)
    assert row is not None
    assert row.cc == cc


@pytest.mark.parametrize("name", ["", "AMD Instinct MI300X", "GeForce RTX 6090", "NVIDIA X100", "Arc A770"])
def test_names_that_say_nothing(name: str) -> None:
    assert MATRIX.gpu_by_name(name) is None


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("NVIDIA GeForce RTX 5090", "consumer"),
        ("GeForce GTX 1080 Ti", "consumer"),
        ("NVIDIA TITAN X (Pascal)", "consumer"),
        ("NVIDIA RTX A6000", "workstation"),
        ("NVIDIA RTX 6000 Ada Generation", "workstation"),
        ("Quadro RTX 8000", "workstation"),
        ("NVIDIA T400 4GB", "workstation"),
        ("Tesla T4", "data-center"),
        ("NVIDIA T4", "data-center"),
        ("NVIDIA H200", "data-center"),
        ("NVIDIA A100-SXM4-40GB MIG 1g.5gb", "data-center"),
        ("NVIDIA L40S", "data-center"),
        ("NVIDIA GB200", "data-center"),
        ("Orin (nvgpu)", "jetson"),
        ("NVIDIA Thor", "jetson"),
        ("Something", None),
    ],
)
def test_who_may_use_forward_compatibility(name: str, kind: str | None) -> None:
    assert MATRIX.gpu_class(name) == kind


def test_the_shipped_patterns_are_regular_expressions() -> None:
    patterns = [r.regex for r in MATRIX.gpu_names] + [r.regex for r in MATRIX.gpu_classes]
    assert len(patterns) == 27
    for pattern in patterns:
        re.compile(pattern, re.IGNORECASE)
