"""A report of a box with trouble, built by hand: what the renderers are shown to."""

from __future__ import annotations

from typing import Any

import msgspec

from cudnn_doctor.model.base import known
from cudnn_doctor.model.facts import CudnnCopy
from cudnn_doctor.model.report import Evidence, Finding, Fix, Report, Tool
from cudnn_doctor.model.verdict import exit_code
from cudnn_doctor.model.verdict import verdict_of as judge
from cudnn_doctor.rules import sample

OLD = "/opt/old/lib64/libcudnn.so.9"
FINDINGS = (
    Finding(
        code="CD101",
        status="ok",
        severity="error",
        owner="node",
        subject="driver 580.159.04",
        title="The NVIDIA driver answers",
        evidence=(Evidence(pointer="/snapshot/driver/nvml", value="NVML_SUCCESS", source="nvmlInit_v2"),),
    ),
    Finding(code="CD105", status="skipped", severity="error", owner="node", subject="", title="", detail="not WSL"),
    Finding(
        code="CD203",
        status="unknown",
        severity="warning",
        owner="node",
        subject="GPU 0",
        title="Memory health",
        detail="/snapshot/gpus/0/remapped_rows is absent (no-permission)",
    ),
    Finding(
        code="CD301",
        status="problem",
        severity="error",
        owner="environment",
        subject="torch 2.11.0",
        title="An older cuDNN is found before the one that it was built with",
        detail="torch was built with 9.19.0; the loader finds 9.1.0 first, because LD_LIBRARY_PATH names its folder.",
        evidence=(
            Evidence(pointer="/snapshot/cudnn/1/version", value="9.1.0", source="cudnnGetVersion of " + OLD),
            Evidence(
                pointer="/snapshot/host/environment/LD_LIBRARY_PATH", value="/opt/old/lib64", source="environment"
            ),
        ),
        fixes=(
            Fix(
                text="Take the folder of the old copy out of LD_LIBRARY_PATH.",
                command="unset LD_LIBRARY_PATH",
                verify="cudnn-doctor check --only CD301",
            ),
        ),
        causes=("cudnn-shadowed",),
    ),
    Finding(
        code="CD402",
        status="problem",
        severity="warning",
        owner="environment",
        subject="torch 2.11.0",
        title="The wheel pins another cuDNN than the one that it loads",
        evidence=(Evidence(pointer="/snapshot/frameworks/0/requires/0", value="9.19.0.56", source="METADATA"),),
        fixes=(Fix(text="Install the pinned wheel.", command="pip install nvidia-cudnn-cu13==9.19.0.56"),),
    ),
    Finding(
        code="CD503",
        status="problem",
        severity="note",
        owner="program",
        subject="TF_FORCE_GPU_ALLOW_GROWTH",
        title="TensorFlow reserves nearly the whole card",
        evidence=(Evidence(pointer="/snapshot/host/environment", value="not set", source="environment"),),
        fixes=(Fix(text="Let it grow.", command="export TF_FORCE_GPU_ALLOW_GROWTH=true"),),
    ),
    Finding(
        code="CD601",
        status="ok",
        severity="error",
        owner="node",
        subject="GPU 0, cuDNN 9.1.0",
        title="cudnnSetStream and a convolution work",
        evidence=(Evidence(pointer="/scenarios/0", value="420 ms", source="live check"),),
    ),
)


def old_copy() -> CudnnCopy:
    good = sample.snapshot().cudnn[0]
    return msgspec.structs.replace(
        good,
        path=OLD,
        real_path=OLD,
        directory="/opt/old/lib64",
        found_by=("LD_LIBRARY_PATH",),
        version=known("9.1.0", "cudnnGetVersion"),
    )


def report(*, findings: tuple[Finding, ...] = FINDINGS, **changes: Any) -> Report:
    """torch loads an old cuDNN from LD_LIBRARY_PATH; fields of the report can be replaced."""
    healthy = sample.snapshot()
    snapshot = msgspec.structs.replace(
        healthy,
        cudnn=(healthy.cudnn[0], old_copy()),
        host=msgspec.structs.replace(healthy.host, environment={"LD_LIBRARY_PATH": "/opt/old/lib64"}),
        resolutions=tuple(
            msgspec.structs.replace(
                r,
                path=known(OLD, "example"),
                real_path=known(OLD, "example"),
                step="LD_LIBRARY_PATH",
                shadowed=(healthy.cudnn[0].real_path,),
            )
            for r in healthy.resolutions
        ),
    )
    verdict, reason = judge(findings)
    made = Report(
        tool=Tool(version="0.1.0", matrix_checked_on="2026-11-30"),
        verdict=verdict,
        exit_code=exit_code(verdict, findings),
        reason=reason,
        findings=findings,
        scenarios=(sample.live_check(cudnn=OLD, cudnn_version="9.1.0"),),
        snapshot=snapshot,
    )
    return msgspec.structs.replace(made, **changes)


def healthy() -> Report:
    """The sample machine, all well."""
    ok = tuple(f for f in FINDINGS if f.status == "ok")
    return report(findings=ok, snapshot=sample.snapshot(), scenarios=(sample.live_check(),))
