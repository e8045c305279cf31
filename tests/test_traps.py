"""What made other diagnostics fail, once each: ../shared/anchors/peers.md, section 5."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest

from cudnn_doctor.live.choose import devices_to_check
from cudnn_doctor.model.base import Absent, known, value_or
from cudnn_doctor.model.facts import CudaInit, Snapshot
from cudnn_doctor.model.options import Options
from cudnn_doctor.model.report import Examination, Finding, Report
from cudnn_doctor.probe import collect
from cudnn_doctor.probe.target_env import find_target_env
from cudnn_doctor.rules.base import Case
from cudnn_doctor.rules.judge import judge
from cudnn_doctor.rules.sample import EX, live_check, live_steps, sample
from cudnn_doctor.schemas import path_of
from tests import _cli
from tests._cli import call, run, save
from tests.native import build
from tests.probe.machine import link, put
from tests.probe.site import venv, wheel
from tests.probe.test_cudnn_copies import DEBIAN, PARTS, cudnn_wheel, debian
from tests.probe.test_frameworks import BUILD_INFO, TF_2_17
from tests.rules.test_compat import machine, tensorflow

TODAY = date(2026, 12, 1)


def judged(case: Case, **options: Any) -> Report:
    return judge(Examination(snapshot=case.snapshot, scenarios=case.scenarios), Options(**options), TODAY)


def problems(report: Report) -> dict[str, Finding]:
    return {f.code: f for f in report.findings if f.status == "problem"}


def look(tmp_path: Path, environ: Mapping[str, str] | None = None) -> Snapshot:
    """The machine below `tmp_path/root`, and the environment in `tmp_path/env` (made here unless it is there)."""
    if not (tmp_path / "env").exists():
        venv(tmp_path / "env")
    environ = environ or {}
    found = collect(find_target_env(str(tmp_path / "env"), environ), environ, root=tmp_path / "root")
    assert found.failures == ()
    return found


# ---------------------------------------------------------------- the machine


def test_no_driver_at_all(tmp_path: Path) -> None:
    put(
        tmp_path / "root",
        {"/proc/version": "Linux", "/sys/module/x": "", "/dev/null": "", "/sys/bus/pci/devices/x": ""},
    )
    report = judged(Case(look(tmp_path)))
    assert (report.verdict, report.exit_code) == ("no-verdict", 2)
    assert report.reason.startswith("CD101 No NVIDIA GPU on this machine")
    assert problems(report) == {}
    assert {f.status for f in report.findings if f.code[:3] in ("CD1", "CD2", "CD6")} <= {"skipped", "unknown"}


@pytest.mark.parametrize("hidden", ["", "-1", "NoDevFiles"])
def test_gpus_that_nvml_shows_and_cuda_visible_devices_hides(tmp_path: Path, hidden: str) -> None:
    put(tmp_path, {"/dev/nvidia0": "", "/dev/nvidia1": ""})
    assert devices_to_check({"CUDA_VISIBLE_DEVICES": hidden}, root=tmp_path) == ()
    case = sample({"host.environment.CUDA_VISIBLE_DEVICES": hidden}, live=())
    report = judged(case)
    assert report.verdict == "problem"
    assert [f.fixes[0].command for f in problems(report).values() if f.code == "CD501"] == [
        "unset CUDA_VISIBLE_DEVICES"
    ]
    assert "CD101" not in problems(report)  # the hardware is there


def test_root_is_nobody_special(tmp_path: Path) -> None:
    case = sample({"patient.prefix": "/root/venv", "host.os": known("roots and root cause", EX)})
    path = tmp_path / "report.json"
    env = {"HOME": "/root", "USER": "root", "LOGNAME": "root"}
    done = call("report", "--replay", save(tmp_path, case), "-o", path, **env)
    assert done.returncode == 0
    document = json.loads(path.read_text())
    assert document["snapshot"]["patient"]["prefix"] == "~/venv"
    assert document["snapshot"]["host"]["os"]["value"] == "roots and root cause"
    assert document["findings"][0]["causes"] == []


@pytest.mark.parametrize(("user", "home"), [("cuda", "/snapshot"), ("known", "/x/cudnn"), ("driver", "/problem/ok")])
def test_a_home_that_contains_a_word_of_the_schema(tmp_path: Path, user: str, home: str) -> None:
    path = tmp_path / "report.json"
    env = {"HOME": home, "USER": user, "LOGNAME": user}
    case = sample({"patient.prefix": f"{home}/venv"})
    done = call("report", "--replay", save(tmp_path, case), "-o", path, **env)
    assert (done.returncode, done.stdout) == (0, "")
    document = json.loads(path.read_text())
    jsonschema.Draft202012Validator(json.loads(path_of("report-1").read_text())).validate(document)
    assert document["snapshot"]["patient"]["prefix"] == "~/venv"
    raw = judged(case)
    assert [(f["code"], f["status"]) for f in document["findings"]] == [(f.code, f.status) for f in raw.findings]


SECRET = "planted-9f8e7d"  # noqa: S105


def test_secrets_of_the_environment_get_nowhere(tmp_path: Path) -> None:
    names = (
        "AWS_SECRET_ACCESS_KEY",
        "HF_TOKEN",
        "PIP_INDEX_URL",
        "CUDA_SECRET",
        "NVIDIA_API_KEY",
        "TF_CONFIG",
        "PATH_X",
    )
    env = dict.fromkeys(names, SECRET)
    box, ticket = tmp_path / "box.json", tmp_path / "ticket.md"
    said = [run("check", "--no-live", "--format", fmt, env=env).stdout for fmt in ("json", "markdown")]
    said.append(run("snapshot", "--no-live", "--no-redact", "-o", box, env=env).stderr + box.read_text())
    said.append(run("report", "--no-live", "--no-redact", "-o", ticket, env=env).stderr + ticket.read_text())
    assert [SECRET in text for text in said] == [False] * 4
    assert '"LD_LIBRARY_PATH"' in run("check", "--no-live", "--format", "json", env={"LD_LIBRARY_PATH": "/x"}).stdout


WATCHED = """
import sys
sys.dont_write_bytecode = True
events = []
def watch(name, args):
    if name == "open":
        path, mode, flags = args
        if flags & 3 and path != "/dev/null":
            events.append(f"open {path}")
    elif name.split(".")[0] == "socket" and name != "socket.gethostname":
        events.append(name)
    elif name in ("os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.link", "os.symlink", "os.chmod", "os.truncate",
                  "os.utime", "os.kill", "os.system", "os.setxattr", "shutil.rmtree", "tempfile.mkstemp"):
        events.append(f"{name} {args}")
    elif name == "subprocess.Popen":
        assert args[0] == sys.executable or args[1][0] == sys.executable, args
sys.addaudithook(watch)
sys.argv = ["cudnn-doctor", *sys.argv[1:]]
import runpy
try:
    runpy.run_module("cudnn_doctor", run_name="__main__")
except SystemExit as e:
    print(f"exit {e.code}", file=sys.stderr)
print("\\n".join(events), file=sys.stderr)
"""


@pytest.mark.parametrize(
    "words", [("check", "--format", "json"), ("check", "--timeout", "5", "--quiet"), ("report",), ("explain", "7")]
)
def test_no_network_and_nothing_written_with_a_read_only_home(words: Sequence[str]) -> None:
    """Run with a cuDNN to ask, so that children start; /proc is a HOME in which nobody can write."""
    env = _cli.environment(
        HOME="/proc", TMPDIR="/proc", XDG_CACHE_HOME="/proc", LD_LIBRARY_PATH=str(build.cudnn().parent)
    )
    done = subprocess.run(
        [sys.executable, "-c", WATCHED, *words], capture_output=True, text=True, timeout=60, env=env, check=False
    )
    first, *events = done.stderr.splitlines()
    assert re.fullmatch("exit [012]", first), done.stderr
    assert [e for e in events if e] == []


# ---------------------------------------------------------------- output


def test_json_is_alone_on_stdout_with_every_warning_on(tmp_path: Path) -> None:
    env = {"PYTHONWARNINGS": "always", "PYTHONDEVMODE": "1", "LD_LIBRARY_PATH": str(build.cudnn().parent),
           "STUB_DO": "cudnnGetVersion:spam"}  # fmt: skip
    done = run("check", "--format", "json", env=env)
    assert json.loads(done.stdout)["exit_code"] == done.returncode
    jq = shutil.which("jq")
    if jq:
        asked = subprocess.run([jq, "-r", ".verdict"], input=done.stdout, capture_output=True, text=True, check=True)
        assert asked.stdout.strip() in ("ok", "problem", "no-verdict")


def test_the_exit_code_is_the_same_in_every_format() -> None:
    """Of this machine, with an incomplete cuDNN on the path: a problem."""
    env = {"LD_LIBRARY_PATH": str(build.cudnn().parent)}
    codes = {fmt: run("check", "--format", fmt, env=env).returncode for fmt in ("text", "json", "markdown", "sarif")}
    assert codes == dict.fromkeys(codes, 1)


# ---------------------------------------------------------------- copies of cuDNN


def places(snapshot: Snapshot) -> list[tuple[str, str, tuple[str, ...]]]:
    return [(c.directory, value_or(c.version, "?"), c.found_by) for c in snapshot.cudnn]


def runtime_only(folder: Path, version: str = "9.14.0") -> Path:
    """libcudnn as the runtime packages bring it: no libcudnn.so, no header."""
    files = {f"libcudnn{part}.so.{version}": b"x" for part in ("", *(f"_{p}" for p in PARTS))}
    put(folder, dict(files))
    for name in files:
        link(folder, name.replace(f".so.{version}", ".so.9"), name)
    return folder


def test_a_runtime_only_cudnn_counts(tmp_path: Path) -> None:
    folder = runtime_only(tmp_path / "cudnn")
    found = look(tmp_path, {"LD_LIBRARY_PATH": str(folder)})
    assert places(found) == [(str(folder), "9.14.0", ("LD_LIBRARY_PATH",))]
    assert not (folder / "libcudnn.so").exists()
    report = judged(Case(found))
    assert {f.code: f.status for f in report.findings if f.code in ("CD301", "CD307")} == {"CD301": "ok", "CD307": "ok"}


@pytest.mark.parametrize("where", ["site-packages", "cudnn_jit", "LD_LIBRARY_PATH", "system", "two"])
def test_every_place_of_a_cudnn(tmp_path: Path, where: str) -> None:
    site, environ = venv(tmp_path / "env"), {}
    expected: list[tuple[str, str, tuple[str, ...]]] = []
    if where in ("site-packages", "two"):
        folder = cudnn_wheel(site, "nvidia-cudnn-cu12", "9.1.0.70")
        expected.append((str(folder), "9.1.0", ("site-packages",)))
    if where == "cudnn_jit":
        folder = cudnn_wheel(site, "nvidia-cudnn-jit-cu12", "9.27.0.42")
        expected.append((str(folder), "9.27.0", ("site-packages",)))
    if where in ("LD_LIBRARY_PATH", "two"):
        folder = runtime_only(tmp_path / "own")
        environ["LD_LIBRARY_PATH"] = str(folder)
        expected.append((str(folder), "9.14.0", ("LD_LIBRARY_PATH",)))
    if where == "system":
        debian(tmp_path / "root")
        expected.append((f"{tmp_path}/root{DEBIAN}", "9.14.0", ("ld.so.cache",)))
    found = look(tmp_path, environ)
    # The same places by any further way that leads there (the default folders of the loader, a link).
    assert sorted((d, v, by[:1]) for d, v, by in places(found)) == sorted(expected)
    assert [c.kind for c in found.cudnn] == (["jit"] if where == "cudnn_jit" else ["full"] * len(expected))


def test_a_link_to_the_toolkit_is_not_counted_twice(tmp_path: Path) -> None:
    root = tmp_path / "root"
    put(root, {"/usr/local/cuda-12.4/version.json": '{"cuda": {"version": "12.4.1"}}'})
    runtime_only(root / "usr/local/cuda-12.4/lib64")
    link(root, "/usr/local/cuda", "cuda-12.4")
    link(root, "/usr/local/cuda-12", "cuda")
    found = look(tmp_path)
    toolkit = f"{root}/usr/local/cuda-12.4"
    assert [(t.real_path, value_or(t.version, "")) for t in found.cuda.toolkits] == [(toolkit, "12.4.1")]
    assert [(d, v) for d, v, _ in places(found)] == [(f"{toolkit}/lib64", "9.14.0")]
    assert "CD305" not in problems(judged(Case(found)))


@pytest.mark.parametrize(
    ("major", "version", "code", "name"),
    [
        (8, "8.9.7", 7, "CUDNN_STATUS_MAPPING_ERROR"),
        (9, "9.19.0", 2007, "CUDNN_STATUS_BAD_PARAM_STREAM_MISMATCH"),
    ],
)
def test_a_status_is_read_by_the_major_that_gave_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, major: int, version: str, code: int, name: str
) -> None:
    steps = live_steps(fails="cudnnSetStream", status=code, name=name)
    case = sample(live=(live_check(steps=steps, cudnn_version=version),))
    assert problems(judged(case))["CD606"].title == f"cudnnSetStream answers {code} {name}"
    done = call("explain", str(code), "--format", "json")
    meanings = json.loads(done.stdout)
    assert name in json.dumps(meanings)
    other = sample(live=(live_check(steps=live_steps(fails="cudnnSetStream", status=code), cudnn_version="9.19.0"),))
    told = problems(judged(other))["CD606"].title
    assert ("MAPPING_ERROR" in told) is False  # 7 means nothing in cuDNN 9


# ---------------------------------------------------------------- versions


@pytest.mark.parametrize("version", ["2.20.0", "2.21.0"])
@pytest.mark.parametrize(("cudnn", "fits"), [("9.3.0.75", True), ("9.28.0.42", True), ("9.1.0.70", False)])
def test_range_pins_of_tensorflow_2_20_and_2_21(version: str, cudnn: str, fits: bool) -> None:
    dotted = cudnn.rpartition(".")[0]
    case = machine(tensorflow(version), dotted, f"nvidia-cudnn-cu12 {cudnn}")
    report = judged(Case(case.snapshot), live=False, only=("compatibility",))
    declared = [f.status for f in report.findings if f.code == "CD409"]
    assert declared == ["ok" if fits else "problem"]
    accepted = [f.status for f in report.findings if f.code == "CD406"]
    assert accepted == ["ok" if fits else "problem"]
    assert report.verdict == ("ok" if fits else "problem")


@pytest.mark.parametrize("folder", ["3.13", "3.13t"])
def test_python_3_13(tmp_path: Path, folder: str) -> None:
    config = "home = /usr/bin\nversion = 3.13.1\n"
    site = venv(tmp_path / "env", folder, config)
    cudnn_wheel(site, "nvidia-cudnn-cu12", "9.3.0.75")
    requires = ["nvidia-cudnn-cu12<10.0,>=9.3.0.75; extra == 'and-cuda'"]
    wheel(site, "tensorflow", "2.20.0", {BUILD_INFO: TF_2_17.encode()}, requires)
    found = look(tmp_path)
    assert value_or(found.patient.python_version, "") == "3.13.1"
    assert [(f.name, f.version) for f in found.frameworks] == [("tensorflow", "2.20.0")]
    assert places(found)[0][:2] == (f"{site}/nvidia/cudnn/lib", "9.3.0")
    fits = {v: call("matrix", "tensorflow", v, "--python", "3.13").returncode for v in ("2.18", "2.20")}
    assert fits == {"2.18": 1, "2.20": 0}


def test_zero_checks_run_is_no_pass(tmp_path: Path) -> None:
    for words in (("--only", "CD413"), ("--only", "compatibility"), ("--only", "live")):
        done = call("check", "--replay", save(tmp_path, _cli.no_gpu()), *words)
        assert done.returncode == 2
        assert "NO VERDICT: " in done.stdout
        assert "[✓]" not in done.stdout


@pytest.mark.parametrize(
    ("driver", "cuda", "cudnn"), [("999.99.01", "20.1", "9.19.0"), ("580.159.04", "13.0", "9.99.0")]
)
def test_newer_than_every_row_is_unknown_and_no_failure(driver: str, cuda: str, cudnn: str) -> None:
    init = CudaInit(code=0, name="CUDA_SUCCESS", driver_cuda=known(cuda, EX), library="libcuda.so.1")
    case = sample(
        {
            "driver.version": known(driver, EX),
            "driver.kernel_module": known(driver, EX),
            "driver.cuda": known(cuda, EX),
            "driver.init": known(init, EX),
            "cudnn.0.version": known(cudnn, EX),
            "cudnn.0.version_readings": (known(cudnn, EX),),
            "cudnn.0.package": Absent(reason="not-found"),
            "cudnn.0.sublibraries": tuple(
                msgspec.structs.replace(s, version=known(cudnn, EX)) for s in sample().snapshot.cudnn[0].sublibraries
            ),
        },
        live=(live_check(cudnn_version=cudnn),),
    )
    report = judged(case)
    assert [(f.code, f.title) for f in problems(report).values() if f.severity == "error"] == []
    assert report.verdict == "ok"


def test_a_driver_newer_than_the_matrix_on_the_command_line() -> None:
    done = call("matrix", "driver", "999")
    assert done.returncode == 0
    assert "[?]    driver 999 is newer than the matrix" in done.stdout


# ---------------------------------------------------------------- libraries that misbehave while they are asked


@pytest.mark.parametrize(
    ("trouble", "told"),
    [
        ("cudnnGetVersion:hang", "no answer before the deadline in cudnnGetVersion"),
        ("cudnnGetVersion:abort", "killed by SIGABRT in cudnnGetVersion"),
        ("cudnnGetVersion:kill", "killed by SIGKILL in cudnnGetVersion"),
    ],
)
def test_a_hang_and_a_crash_in_a_probe(trouble: str, told: str) -> None:
    start = time.monotonic()
    env = {"LD_LIBRARY_PATH": str(build.cudnn().parent), "STUB_DO": trouble}
    done = run("check", "--timeout", "1", "--format", "json", env=env)
    assert time.monotonic() - start < 5
    assert (done.returncode, done.stderr) == (1, "")
    document = json.loads(done.stdout)
    (copy,) = (c for c in document["snapshot"]["cudnn"] if c["real_path"] == str(build.cudnn().resolve()))
    assert copy["asked"]["value"].startswith(told)
    assert "CD311" in {f["code"] for f in document["findings"] if f["status"] == "problem"}


def test_an_nvml_that_aborts(tmp_path: Path) -> None:
    source = "#include <stdlib.h>\nint nvmlInitWithFlags(unsigned f) { abort(); }\n"
    flags = ["-shared", "-fPIC", "-x", "c", "-", "-o", str(tmp_path / "libnvidia-ml.so.1")]
    subprocess.run([os.environ.get("CC") or "cc", *flags], input=source, text=True, check=True)
    done = run("check", "--format", "json", env={"LD_LIBRARY_PATH": str(tmp_path)})
    assert done.returncode in (1, 2)
    nvml = json.loads(done.stdout)["snapshot"]["driver"]["nvml"]
    assert (nvml["kind"], nvml["reason"]) == ("absent", "error")
    assert "killed by SIGABRT in nvmlInit" in nvml["detail"]


def test_the_stub_is_told_apart_from_this_machine() -> None:
    """The traps above rest on it: without trouble the same copy is asked and answers."""
    done = run("check", "--format", "json", env={"LD_LIBRARY_PATH": str(build.cudnn().parent)})
    (copy,) = (
        c for c in json.loads(done.stdout)["snapshot"]["cudnn"] if c["real_path"] == str(build.cudnn().resolve())
    )
    assert (copy["asked"]["value"], copy["version"]["value"]) == ("ok", "9.19.0")
