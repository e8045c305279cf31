"""`inspect` on live processes: what they have mapped, in namespaces, of another user, after an upgrade, as they end."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from cudnn_doctor.model.base import Absent, Known
from cudnn_doctor.observe import inspect as outside
from cudnn_doctor.observe import process
from cudnn_doctor.postmortem.living import judge_processes
from cudnn_doctor.schemas import path_of
from tests.native import build

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="/proc")
NO_GPU: outside.Memory = Absent(reason="not-found")
ROOT = os.getuid() == 0
WAIT = "import sys, ctypes; [ctypes.CDLL(p) for p in sys.argv[1:]]; print('ready', flush=True); sys.stdin.read()"


@contextmanager
def running(*words: str, front: tuple[str, ...] = (), **environ: str) -> Iterator[subprocess.Popen[bytes]]:
    """A Python program that loads the libraries and waits."""
    command = [*front, sys.executable, "-c", WAIT, *words]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ, **environ}
    ) as child:
        assert child.stdout
        assert child.stdout.readline() == b"ready\n"
        try:
            yield child
        finally:
            child.kill()


def cudnn_at(folder: Path, version: int) -> Path:
    """A folder with a stub libcudnn and a sub-library that exports its version, as NVIDIA's do."""
    folder.mkdir()
    shutil.copy(build.cudnn(), folder / "libcudnn.so.9")
    build.exporting(folder / "libcudnn_graph.so.9", "cudnn_graph_version", version)
    return folder


def names(found: Any) -> list[tuple[str, str, bool]]:
    assert isinstance(found.libraries, Known)
    return [
        (lib.name, lib.version.value if isinstance(lib.version, Known) else "", lib.deleted)
        for lib in found.libraries.value
    ]


def cli(*words: str) -> tuple[int, dict[str, Any]]:
    command = [sys.executable, "-m", "cudnn_doctor", "inspect", *words, "--format", "json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, json.loads(done.stdout) if done.stdout else {"said": done.stderr}


def test_a_process_with_one_cudnn(tmp_path: Path) -> None:
    folder = cudnn_at(tmp_path / "a", 0x091300)
    with running(*map(str, sorted(folder.glob("*.so.9"))), CUDA_VISIBLE_DEVICES="1") as child:
        found = outside.inspect_process(child.pid, NO_GPU)
        code, document = cli(str(child.pid))
    assert sorted(names(found)) == [("libcudnn", "9.19.0", False), ("libcudnn_graph", "9.19.0", False)]
    assert (found.parent, found.namespaces, found.threads) == (os.getpid(), (), 1)
    assert isinstance(found.visible_devices, Known)
    assert found.visible_devices.value == "1"
    assert (code, document["verdict"]) == (0, "ok")
    jsonschema.Draft202012Validator(json.loads(path_of("inspection-1").read_text())).validate(document)
    assert document["processes"][0]["would_load"]["kind"] == "absent"  # check finds no such library for plain dlopen


def test_two_copies_in_one_process_are_a_problem(tmp_path: Path) -> None:
    first, second = cudnn_at(tmp_path / "a", 0x091300), cudnn_at(tmp_path / "b", 0x090E00)
    files = [str(f) for folder in (first, second) for f in sorted(folder.glob("*.so.9"))]
    with running(*files) as child:
        code, document = cli(str(child.pid))
    (finding,) = [f for f in document["findings"] if f["severity"] == "error"]
    assert (code, finding["title"]) == (1, "Two copies of cuDNN are loaded in one process")
    assert sorted(e["value"] for e in finding["evidence"]) == [
        f"{first}/libcudnn.so.9 9.19.0",
        f"{second}/libcudnn.so.9 9.14.0",
    ]


def test_parts_of_two_installs_are_a_problem(tmp_path: Path) -> None:
    first, second = cudnn_at(tmp_path / "a", 0x091300), cudnn_at(tmp_path / "b", 0x090E00)
    ops = build.exporting(second / "libcudnn_ops.so.9", "cudnn_ops_version", 0x090E00)
    with running(*map(str, sorted(first.glob("*.so.9"))), str(ops)) as child:
        code, document = cli(str(child.pid))
    assert (code, document["reason"].partition(": ")[2]) == (1, "Its parts of cuDNN come from two installs")


def test_an_upgrade_under_a_live_process(tmp_path: Path) -> None:
    folder = cudnn_at(tmp_path / "a", 0x091300)
    files = sorted(folder.glob("*.so.9"))
    with running(*map(str, files)) as child:
        for file in files:
            file.unlink()
        build.exporting(folder / "libcudnn_graph.so.9", "cudnn_graph_version", 0x091C00)
        found = outside.inspect_process(child.pid, NO_GPU)
    judged = judge_processes([found])
    assert [deleted for _, _, deleted in names(found)] == [True, True]
    if ROOT:  # map_files is closed to others
        assert {version for _, version, _ in names(found)} == {"9.19.0"}
    assert judged.findings[0].title == "2 of its libraries were replaced or removed while it runs"
    assert (judged.verdict, judged.findings[0].severity) == ("ok", "warning")


def test_a_fork_after_cuda_was_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outside, "_cuda_at", lambda pid, proc: "7f00")
    monkeypatch.setattr(outside, "_driver_files", lambda pid, proc: {("5", "/dev/nvidiactl")})
    found = outside.inspect_process(os.getpid(), NO_GPU)
    assert isinstance(found.forked_from, Known)
    assert found.forked_from.value == os.getppid()
    assert judge_processes([found]).findings[0].causes == ("fork-after-init",)


@pytest.mark.skipif(not (ROOT and shutil.which("setpriv")), reason="needs root to become somebody else")
def test_another_users_process_is_not_readable_and_not_healthy() -> None:
    with running() as child:
        command = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", sys.executable, "-c"]
        words = f"import sys; sys.path.insert(0, {str(Path.cwd())!r}); sys.argv = ['x', 'inspect', '{child.pid}']"
        words += "; from cudnn_doctor.commands.app import main; main()"
        done = subprocess.run([*command, words], capture_output=True, text=True, check=False)
    if "ModuleNotFoundError" in done.stderr or "Permission denied" in done.stderr:
        pytest.skip("the interpreter lies where nobody may read")
    assert done.returncode == 2
    assert "not readable as this user" in done.stdout
    assert "NO VERDICT (exit code 2)" in done.stdout


@pytest.mark.skipif(not (ROOT and shutil.which("unshare")), reason="namespaces need root")
def test_a_container_is_seen_as_it_sees_itself(tmp_path: Path) -> None:
    folder = cudnn_at(tmp_path / "a", 0x091300)
    front = ("unshare", "--mount", "--pid", "--fork", "--kill-child")
    with running(str(folder / "libcudnn_graph.so.9"), front=front) as child:
        inner = next(process.children_of(child.pid))
        found = outside.inspect_process(inner, NO_GPU)
    assert found.namespaces == ("mnt", "pid")
    assert names(found) == [("libcudnn_graph", "9.19.0", False)]


def test_a_thousand_threads() -> None:
    words = (
        "import threading, time, sys\nthreading.stack_size(1 << 16)\n"
        "for _ in range(1000): threading.Thread(target=time.sleep, args=(60,), daemon=True).start()\n"
        "print('ready', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen([sys.executable, "-c", words], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout
        assert child.stdout.readline() == b"ready\n"
        found = outside.inspect_process(child.pid, NO_GPU)
        child.kill()
    assert found.threads == 1001


@pytest.mark.parametrize("step", range(12))
def test_a_target_that_ends_at_any_step(step: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed before the n-th file that is read: the process is gone, never half of one."""
    count = 0
    real = os.readlink, os.listdir, open
    with running() as child:

        def dying(call: Any) -> Any:
            def called(*arguments: Any, **named: Any) -> Any:
                nonlocal count
                if f"/{child.pid}/" in str(arguments[0]):
                    count += 1
                    if count == step + 1:
                        child.kill()
                        child.wait()
                return call(*arguments, **named)

            return called

        monkeypatch.setattr(os, "readlink", dying(real[0]))
        monkeypatch.setattr(os, "listdir", dying(real[1]))
        monkeypatch.setattr("builtins.open", dying(real[2]))
        with pytest.raises(outside.GoneError, match=str(child.pid)):
            outside.inspect_process(child.pid, NO_GPU)
        monkeypatch.undo()


def test_a_number_that_is_anothers_now(monkeypatch: pytest.MonkeyPatch) -> None:
    first = process.stat_of(os.getpid())
    assert first
    answers = iter([first, first._replace(started=first.started + 1)])
    monkeypatch.setattr(process, "stat_of", lambda pid, proc: next(answers))
    with pytest.raises(outside.GoneError, match="ended while it was looked at"):
        outside.inspect_process(os.getpid(), NO_GPU)


def test_nobody_there() -> None:
    child = subprocess.Popen(["true"])
    child.wait()
    code, document = cli(str(child.pid))
    assert (code, document["reason"]) == (2, f"there is no process {child.pid}.")


def test_all_finds_whoever_has_libcuda_mapped() -> None:
    with running(str(build.cuda())) as child:
        time.sleep(0.01)
        found = outside.gpu_processes(NO_GPU)
        code, document = cli("--all")
    assert child.pid in found
    assert os.getpid() not in found
    assert code in (0, 1)  # other tests' processes may be there
    assert child.pid in [p["pid"] for p in document["processes"]]


def test_a_pid_or_all() -> None:
    assert cli()[1]["said"].startswith("cudnn-doctor: name one or more PIDs, or --all")
    assert cli("1", "--all")[0] == 2
