"""What was said wrong of real installs, each kind as a case; made and mended with real wheels before."""

from __future__ import annotations

from msgspec.structs import replace

from cudnn_doctor.model.base import Absent, known
from cudnn_doctor.model.report import Finding
from cudnn_doctor.rules import all_rules
from cudnn_doctor.rules.base import Case
from cudnn_doctor.rules.remedies import installation, pip, satisfied, wheel_for
from cudnn_doctor.rules.sample import EX, another_copy, sample, search, with_searches

GONE = Absent(reason="not-found", detail="libcudnn.so.9 is in none of 24 places")
NOT_FOUND = {f"resolutions.{i}.{n}": GONE for i in (0, 1) for n in ("path", "real_path")}
NO_GPU = {"gpus": known((), EX), "driver.pci": known((), EX), "driver.init": Absent(reason="not-found")}


def only(code: str, case: Case) -> Finding:
    (rule,) = (r for r in all_rules() if r.code == code)
    (finding,) = rule.apply(case)
    return finding


def test_a_file_that_cannot_be_opened_is_a_problem_and_its_wheel_is_put_back() -> None:
    (rule,) = (r for r in all_rules() if r.code == "CD302")
    damaged = rule.examples()[2][1]
    finding = only("CD302", damaged)
    assert (finding.status, finding.severity) == ("problem", "error")
    assert finding.title == "libcudnn.so.9 cannot be opened: file too short"
    assert finding.fixes[0].command == (
        "/opt/venv/bin/python -m pip install --force-reinstall --no-deps nvidia-cudnn-cu13==9.19.0.56"
    )


def test_an_old_copy_that_only_a_plain_dlopen_would_find_is_no_error_beside_torch() -> None:
    old = another_copy("8.9.7", "/opt/8", soname="libcudnn.so.8", major=8)
    base = sample().snapshot
    plain = replace(
        base.resolutions[0], wanted="libcudnn.so.8", path=known(old.path, EX), real_path=known(old.path, EX)
    )
    mine = replace(search("libcublasLt.so.12"), consumer=old.real_path)
    case = sample({"cudnn": (*base.cudnn, old), "resolutions": (*base.resolutions, plain, mine)})
    (rule,) = (r for r in all_rules() if r.code == "CD309")
    (finding,) = (f for f in rule.apply(case) if f.status == "problem")
    assert finding.severity == "note"
    alone = sample({"cudnn": (old,), "resolutions": (plain, mine), "frameworks": ()})
    assert only("CD309", alone).severity == "error"


def test_a_framework_that_does_without_cudnn_or_without_a_gpu_raises_no_alarm() -> None:
    assert only("CD302", sample(NOT_FOUND)).severity == "error"
    assert only("CD302", sample({**NOT_FOUND, "frameworks.0.cudnn_need": "optional"})).severity == "note"
    opened = {**NOT_FOUND, "frameworks.0.cudnn_need": "opened"}
    assert only("CD302", sample(opened)).severity == "error"
    assert only("CD302", sample({**opened, **NO_GPU})).severity == "note"
    assert only("CD301", sample({"cudnn": (), "frameworks.0.cudnn_need": "opened", **NO_GPU})).severity == "note"


def test_onnxruntime_is_told_of_its_own_call() -> None:
    changes = {
        **NOT_FOUND,
        "frameworks.0.cudnn_need": "opened",
        "frameworks.0.call_before": "onnxruntime.preload_dlls()",
    }
    finding = only("CD302", sample(changes))
    assert finding.severity == "warning"
    assert finding.fixes[0].text.startswith("In the program, call onnxruntime.preload_dlls() before the first session")


def test_leftovers_that_the_release_never_opens_do_not_count_as_mixed() -> None:
    base = sample().snapshot.cudnn[0]
    left = replace(
        base.sublibraries[0], name="libcudnn_ext.so.9", path="/x", real_path="/x", version=known("9.28.0", EX)
    )
    own = [search(s.name, s.path) for s in base.sublibraries]
    case = with_searches(*own)
    mixed = Case(replace(case.snapshot, cudnn=(replace(base, sublibraries=(*base.sublibraries, left)),)))
    assert only("CD306", mixed).status == "ok"
    opened = [*own, search("libcudnn_ext.so.9", "/x")]
    counted = Case(replace(with_searches(*opened).snapshot, cudnn=mixed.snapshot.cudnn))
    assert only("CD306", counted).status == "problem"


def test_the_same_release_for_another_cuda_is_foreign() -> None:
    base = sample().snapshot.cudnn[0]
    other = another_copy("9.19.0", "/opt/cu12")
    parts = tuple(replace(s, path=f"/opt/cu12/{s.name}", real_path=f"/opt/cu12/{s.name}") for s in base.sublibraries)
    other = replace(other, sublibraries=parts, cuda_flavour=known(12, EX))
    case = with_searches(*(search(s.name, s.path) for s in parts))
    both = Case(replace(case.snapshot, cudnn=(replace(base, cuda_flavour=known(13, EX)), other)))
    (rule,) = (r for r in all_rules() if r.code == "CD306")
    finding = rule.apply(both)[0]
    assert (finding.status, finding.title) == (
        "problem",
        "Mixed: libcudnn_graph.so.9 and 6 more come from /opt/cu12 (9.19.0), its own are of 9.19.0",
    )


def test_the_installer_is_the_one_that_is_there() -> None:
    uv, none = sample({"patient.installer": "uv"}), sample({"patient.installer": ""})
    assert pip(uv, "install", "--no-deps", "a<2") == "uv pip install --python /opt/venv/bin/python --no-deps 'a<2'"
    assert pip(none, "install", "a") == "python3 -m pip --python /opt/venv/bin/python install a"


def test_what_is_installed_already_is_put_back_and_not_asked_for() -> None:
    case = sample()
    assert satisfied(case, "nvidia-cudnn-cu13<10.0,>=9.3") == "9.19.0.56"
    assert satisfied(case, "nvidia-cudnn-cu13>=9.20") == satisfied(case, "nvidia-cudnn-cu12") == ""
    assert installation(case, "nvidia-cudnn-cu13>=9.20").endswith("-m pip install 'nvidia-cudnn-cu13>=9.20'")


def test_a_wheel_is_asked_for_with_the_major_of_the_soname() -> None:
    """nvidia-cudnn-cu11 alone would bring 9.10, whose libcudnn.so.9 TensorFlow 2.10 does not look for."""
    (torch,) = sample().snapshot.frameworks
    old = replace(torch, built_cuda=known("11.2", EX), cudnn_soname=known("libcudnn.so.8", EX))
    assert wheel_for(old) == "nvidia-cudnn-cu11>=8,<9"
    assert wheel_for(replace(old, built_cuda=known("10.1", EX))) == ""
