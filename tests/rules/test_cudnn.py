"""CD3xx: which copy wins, is it whole, does it find what it opens."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from cudnn_doctor.model.base import Absent, known
from cudnn_doctor.model.facts import CudnnCopy, Framework, Overwrite, Resolution
from cudnn_doctor.rules.base import Case
from cudnn_doctor.rules.sample import ABSENT, CUDNN_DIR, SITE, another_copy, sample, search, snapshot, with_searches
from tests.rules import judge, only

T = "test"
OWN = f"{CUDNN_DIR}/libcudnn.so.9"


def found_first(copy: CudnnCopy, step: str, **framework: Any) -> Case:
    """Torch's search ends at `copy`; its own lies behind."""
    base = snapshot()
    torch = msgspec.structs.replace(base.frameworks[0], **framework)
    return sample(
        {
            "cudnn": (base.cudnn[0], copy),
            "frameworks": (torch,),
            "resolutions.1.path": known(copy.path, T),
            "resolutions.1.real_path": known(copy.real_path, T),
            "resolutions.1.step": step,
            "resolutions.1.shadowed": (OWN,),
        }
    )


def test_nothing_there_and_nobody_wants_it() -> None:
    cpu_build = msgspec.structs.replace(snapshot().frameworks[0], cuda_build=known(False, T))
    case = sample({"cudnn": (), "resolutions": (), "frameworks": (cpu_build,)})
    assert only("CD301", case).status == "unknown"


def test_nothing_there_and_torch_wants_it() -> None:
    finding = only("CD301", sample({"cudnn": (), "resolutions": ()}))
    assert (finding.subject, finding.title) == ("torch 2.11.0", "No cuDNN anywhere on this machine")
    assert finding.fixes[0].command == (  # pip lists it as installed, and would leave it as it is
        "/opt/venv/bin/python -m pip install --force-reinstall --no-deps nvidia-cudnn-cu13==9.19.0.56"
    )
    assert finding.fixes[0].verify == "cudnn-doctor check --only CD301 --only CD302"
    without = only("CD301", sample({"cudnn": (), "resolutions": (), "packages": known((), "test")}))
    assert without.fixes[0].command == "/opt/venv/bin/python -m pip install nvidia-cudnn-cu13==9.19.0.56"
    assert only("CD302", sample({"cudnn": (), "resolutions": ()})).detail == "there is no cuDNN: CD301"


def test_only_another_major_is_there() -> None:
    old = another_copy("8.9.7", "/opt/8", soname="libcudnn.so.8", major=8)
    missing = {"resolutions.1.path": ABSENT, "resolutions.1.real_path": ABSENT, "resolutions.1.steps": ()}
    finding = only("CD302", sample({"cudnn": (old,), **missing}))
    assert finding.title == "libcudnn.so.9 is not found"
    assert finding.causes == ("cudnn-not-found", "cudnn-wrong-build")
    assert len(finding.fixes) == 1  # no path to a copy that does not count


def test_a_copy_where_torch_does_not_look() -> None:
    missing = {"resolutions.1.path": ABSENT, "resolutions.1.real_path": ABSENT}
    finding = only("CD302", sample({"cudnn": (another_copy("9.19.0", "/opt/apart"),), **missing}))
    assert finding.causes == ("cudnn-not-found",)
    assert finding.fixes[1].command == "export LD_LIBRARY_PATH=/opt/apart${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"


def test_a_search_that_could_not_be_worked_out() -> None:
    broken = Absent(reason="error", detail="libtorch_cuda.so: not an ELF file")
    finding = only("CD302", sample({"resolutions.1.path": broken, "resolutions.1.real_path": broken}))
    assert (finding.status, finding.detail) == ("unknown", "error: libtorch_cuda.so: not an ELF file")


@pytest.mark.parametrize(
    ("version", "built", "cd303", "cd304"),
    [
        ("9.1.0", "9.19.0", "problem", "skipped"),  # too old: said once
        ("9.21.0", "9.19.0", "ok", "problem"),  # newer: accepted, but not its own
        ("9.19.1", "9.19.0", "ok", "problem"),  # the patch does not count for the loader
        ("9.19.0", "9.19.0", "ok", "ok"),  # the same release elsewhere
        ("9.1.0", "9", "skipped", "problem"),  # only the major is stated
        ("8.9.7", "9.19.0", "ok", "problem"),  # another major is CD4xx's to judge
    ],
)
def test_another_copy_first(version: str, built: str, cd303: str, cd304: str) -> None:
    case = found_first(another_copy(version, "/opt/old"), "LD_LIBRARY_PATH", built_cudnn=known(built, T))
    assert (only("CD303", case).status, only("CD304", case).status) == (cd303, cd304)


def test_the_words_for_a_shadowed_copy() -> None:
    finding = only("CD303", found_first(another_copy("9.1.0", "/opt/old"), "LD_LIBRARY_PATH"))
    assert finding.title == ("finds cuDNN 9.1.0 first, which is older than its build's 9.19.0; 9.19.0 is there unused")
    assert (
        finding.fixes[0].text
        == "Take /opt/old out of LD_LIBRARY_PATH, and out of what sets it (.bashrc, a module file)."
    )
    by_cache = another_copy("9.1.0", "/usr/lib", package=known("libcudnn9-cuda-12 9.1.0.70-1", T))
    finding = only("CD303", found_first(by_cache, "ld.so.cache"))
    assert finding.fixes[0].text == "Remove or update libcudnn9-cuda-12 9.1.0.70-1: it is found by ld.so.cache."
    assert only("CD304", found_first(by_cache, "ld.so.cache")).status == "ok"


def test_a_copy_of_unknown_version_first() -> None:
    unread = another_copy("9.1.0", "/opt/old")
    unread = msgspec.structs.replace(unread, version=Absent(reason="error", detail="killed by SIGABRT"))
    finding = only("CD304", found_first(unread, "LD_LIBRARY_PATH"))
    assert (finding.status, finding.detail) == ("unknown", "error: killed by SIGABRT")


def test_a_wheels_rpath_is_no_override() -> None:
    case = found_first(another_copy("9.21.0", "/opt/new"), "DT_RPATH of libtorch_cuda.so")
    assert only("CD304", case).status == "ok"


def redirected(folder: str, version: str) -> Case:
    """As measured with torch 2.11 and a folder on LD_LIBRARY_PATH that holds another cuDNN: the shim is preloaded by
    path, all that it opens comes from there."""
    other = another_copy(version, folder)
    mine = snapshot().cudnn[0]
    mine = msgspec.structs.replace(
        mine, version=known(version, T), version_readings=(known(version, "cudnnGetVersion"), *mine.version_readings)
    )
    searches = tuple(search(s.name, f"{folder}/{s.name}") for s in mine.sublibraries)
    return sample({"cudnn": (mine, other), "resolutions": (*snapshot().resolutions, *searches)})


def test_all_sub_libraries_from_another_folder() -> None:
    case = redirected("/usr/lib/x86_64-linux-gnu", "9.14.0")
    finding, other = judge("CD306", case)
    assert finding.title == (
        "Mixed: libcudnn_graph.so.9 and 6 more come from /usr/lib/x86_64-linux-gnu (9.14.0), its own are of 9.19.0"
    )
    assert finding.severity == "error"
    assert other.status == "ok"
    reading, _ = judge("CD310", case)
    assert (reading.status, reading.detail) == ("skipped", "its sub-libraries are not its own: CD306")


def test_the_same_release_in_two_places_is_not_mixed() -> None:
    finding, _ = judge("CD306", redirected("/opt/same", "9.19.0"))
    assert finding.status == "ok"


def test_one_foreign_file_is_named() -> None:
    by_version = only("CD306", sample({"cudnn.0.sublibraries.2.version": known("9.1.0", T)}))
    assert by_version.title == "Mixed: libcudnn_cnn.so.9 is of 9.1.0, the others are of 9.19.0"
    assert by_version.fixes[0].command.endswith("pip install --force-reinstall --no-deps nvidia-cudnn-cu13==9.19.0.56")
    unowned = Absent(reason="not-found", detail="not the file that RECORD lists: 1 bytes, not 2")
    by_size = only("CD306", sample({"cudnn.0.sublibraries.0.version": unowned}))
    assert by_size.title == (
        f"Mixed: libcudnn_graph.so.9 is not of this release ({CUDNN_DIR}), the others are of 9.19.0"
    )


def test_a_link_farm_with_one_foreign_file() -> None:
    """As measured: links to the wheel's files, and libcudnn_graph.so.9 of 9.1.0 among them."""
    nothing = {f"cudnn.0.sublibraries.{i}.version": ABSENT for i in range(7)}
    case = sample({**nothing, "host.environment.LD_LIBRARY_PATH": "/opt/mixed:/usr/local/lib"})
    assert only("CD306", case).status == "unknown"
    changes = {"cudnn.0.sublibraries.0.real_path": "/opt/mixed/libcudnn_graph.so.9"}
    case = sample({**nothing, **changes, "host.environment.LD_LIBRARY_PATH": "/opt/mixed:/usr/local/lib"})
    finding = only("CD306", case)
    assert finding.title == (
        f"Mixed: libcudnn_graph.so.9 is not of this release (/opt/mixed), the others are in {CUDNN_DIR}"
    )
    assert finding.fixes[0].command == "export LD_LIBRARY_PATH=/usr/local/lib"


def test_a_broken_copy_that_nobody_loads_is_a_note() -> None:
    stray = another_copy("9.14.0", "/opt/stray")
    stray = msgspec.structs.replace(stray, sublibraries=stray.sublibraries[:3], asked=known("killed by SIGABRT", T))
    case = sample({"cudnn": (snapshot().cudnn[0], stray)})
    for code in ("CD307", "CD311"):
        mine, other = judge(code, case)
        assert (mine.status, other.status, other.severity) == ("ok", "problem", "note")


def test_missing_files_by_name() -> None:
    finding = only("CD307", sample({"cudnn.0.sublibraries": snapshot().cudnn[0].sublibraries[1:]}))
    assert finding.title == f"Incomplete: libcudnn_graph.so.9 missing in {CUDNN_DIR}"
    newer = only("CD307", sample({"cudnn.0.version": known("9.28.0", T)}))
    assert newer.title == f"Incomplete: libcudnn_engines_tensor_ir.so.9, libcudnn_ext.so.9 missing in {CUDNN_DIR}"


@pytest.mark.parametrize(
    ("on_disk", "severity"),
    [("nvidia-cudnn-cu13 9.19.0.56", "warning"), ("nvidia-cudnn-cu12 9.1.0.70", "error"), ("", "error")],
)
def test_two_wheels_in_one_folder(on_disk: str, severity: str) -> None:
    shared = Overwrite(
        packages=("nvidia-cudnn-cu12 9.1.0.70", "nvidia-cudnn-cu13 9.19.0.56"),
        directory=CUDNN_DIR,
        files=8,
        on_disk=known(on_disk, T) if on_disk else ABSENT,
    )
    finding = only("CD308", sample({"overwrites": (shared,)}))
    assert finding.severity == severity
    assert finding.fixes[0].command == (
        "/opt/venv/bin/python -m pip uninstall nvidia-cudnn-cu12 && "
        "/opt/venv/bin/python -m pip install --force-reinstall --no-deps nvidia-cudnn-cu13==9.19.0.56"
    )


def cudnn_8(*, used: bool) -> dict[str, Any]:
    """cuDNN 8.9.7 without cuBLAS 12, loaded by a plain dlopen or by nobody."""
    copy = another_copy("8.9.7", "/opt/8", soname="libcudnn.so.8", major=8, cuda_flavour=known(12, T))
    plain = Resolution(
        consumer="plain dlopen",
        wanted="libcudnn.so.8",
        path=known(copy.path, T),
        real_path=known(copy.real_path, T),
        step="LD_LIBRARY_PATH",
        shadowed=(),
        steps=(),
    )
    wishes = (search("libcublasLt.so.12", consumer=copy.path), search("libcublas.so.12", consumer=copy.path))
    return {"cudnn": (copy,), "frameworks": (), "resolutions": (*((plain,) if used else ()), *wishes)}


def test_cudnn_8_without_cublas() -> None:
    finding = only("CD309", sample(cudnn_8(used=True)))
    assert finding.title == "libcublasLt.so.12, libcublas.so.12 not found by the search of this cuDNN"
    assert finding.severity == "error"
    assert finding.fixes[0].command == (
        "/opt/venv/bin/python -m pip install nvidia-cublas-cu12 && export LD_LIBRARY_PATH="
        f"{SITE}/nvidia/cublas/lib${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}"
    )
    assert only("CD309", sample(cudnn_8(used=False))).severity == "note"


def test_helpers_that_a_framework_loads_before() -> None:
    finding = only("CD309", with_searches(search("libcublasLt.so.13")))
    assert finding.title == "torch loads libcublasLt.so.13 from its own folders before cuDNN"
    nobody = with_searches(search("libcublasLt.so.13")).snapshot
    plain = Case(msgspec.structs.replace(nobody, frameworks=()))
    assert only("CD309", plain).fixes[0].command == (
        "export LD_LIBRARY_PATH=/opt/venv/lib/python3.12/site-packages/nvidia/cu13/lib"
        "${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
    )


def test_what_a_dying_copy_lacks() -> None:
    words = (
        "killed by SIGABRT in cudnnGetVersion: Could not load library libcudnn_ops_infer.so.8. Error: "
        "libcublas.so.11: cannot open shared object file: No such file or directory"
    )
    finding = only("CD311", sample({"cudnn.0.asked": known(words, T)}))
    assert finding.title == "It cannot be loaded: libcublas.so.11 is missing"
    assert finding.causes == ("helper-library-missing",)


def framework(name: Any, version: str) -> Framework:
    return msgspec.structs.replace(snapshot().frameworks[0], name=name, version=version)


def test_two_frameworks_and_two_files() -> None:
    base = snapshot()
    other = another_copy("9.3.0", "/opt/tf")
    wish = msgspec.structs.replace(
        base.resolutions[1], consumer="tensorflow", path=known(other.path, T), real_path=known(other.real_path, T)
    )
    case = sample(
        {
            "cudnn": (base.cudnn[0], other),
            "frameworks": (base.frameworks[0], framework("tensorflow", "2.18.0")),
            "resolutions": (*base.resolutions, wish),
        }
    )
    finding = only("CD305", case)
    assert finding.subject == "torch 2.11.0 and tensorflow 2.18.0"
    assert finding.severity == "warning"
