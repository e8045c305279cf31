"""`python -m tests.bench.broken --out FILE --wheel DIR --system DIR [--only NAME] [-n 1] DOCTOR...`: broken states.

Each state is made on this machine: variables, limits, masked device nodes, folders of cuDNN with missing, cut or
foreign files, a full GPU. `check --format json` runs in it with and without trials; its first cure, where that is a
variable or a limit, is run as a shell would, with its verify command after it. FILE is a zip: NAME.json each, and
summary.json with times, exit codes and what the verify commands answered. Needs root, a GPU, a cuDNN wheel's folder and
a system cuDNN of another release; writes below /tmp/broken alone. DOCTOR is the command that runs cudnn-doctor.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import shutil
import statistics
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

BASE = Path("/tmp/broken")  # a folder of this script alone, on a machine that is thrown away
FILL = """
import sys, time
from cuda.bindings import driver as d
d.cuInit(0); c = d.cuDevicePrimaryCtxRetain(0)[1]; d.cuCtxSetCurrent(c)
size = 1 << 36
while size >= 1 << 20:
    if int(d.cuMemAlloc(size)[0]): size //= 2
print("full", flush=True); time.sleep(60)
"""
STUB = "int cuInit(unsigned f) { return 34; } int cuDriverGetVersion(int *v) { *v = 13000; return 0; }\n"


class State(NamedTuple):
    """How to start a program in it, which code must be the one cause (the first of them where several may stand)."""

    name: str
    cause: tuple[str, ...]  # () for a healthy machine
    variables: dict[str, str] = {}  # noqa: RUF012 - never written to
    first: str = ""  # run before the program, in its shell
    private: bool = False  # in a mount namespace of its own
    during: Callable[[], Any] | None = None  # starts what must run beside it, returns what ends it


def folder(name: str, wheel: Path, *, without: str = "", cut: tuple[str, int] = ("", 0), foreign: Path | None = None,
           alone: bool = False) -> str:  # fmt: skip
    """A folder with the wheel's files, hard links of one copy of them."""
    place = BASE / name
    place.mkdir()
    for file in sorted((BASE / "whole").iterdir()):
        if (without and without in file.name) or alone:
            continue
        os.link(file, place / file.name)
    if cut[0]:
        target = next(p for p in place.iterdir() if cut[0] in p.name)
        data = target.read_bytes()[: cut[1]]
        target.unlink()
        target.write_bytes(data)
    if foreign:
        target = place / f"{foreign.name.partition('.so')[0]}.so.9"
        target.unlink(missing_ok=True)
        shutil.copy(foreign, target)
    return str(place)


def states(wheel: Path, system: Path) -> Iterator[State]:
    """All of them; `wheel` is the folder of the cuDNN wheel, `system` that of another release."""
    (BASE / "whole").mkdir(parents=True)
    for file in wheel.glob("libcudnn*.so*"):
        shutil.copy(file, BASE / "whole" / file.name)
    rest = os.environ.get("LD_LIBRARY_PATH", "")

    def path(*folders: str) -> dict[str, str]:
        return {"LD_LIBRARY_PATH": ":".join([*folders, rest]).rstrip(":")}

    yield State("healthy", ())
    for part in ("engines_precompiled", "engines_runtime_compiled", "graph", "ops", "cnn", "adv", "heuristic"):
        yield State(f"missing-{part}", ("CD307",), path(folder(f"missing-{part}", wheel, without=f"libcudnn_{part}.")))
    for part, size in (
        ("ops", 20000),
        ("graph", 4096),
        ("engines_precompiled", 1 << 20),
        ("cnn", 100000),
        ("heuristic", 0),
    ):
        cut = folder(f"cut-{part}", wheel, cut=(f"libcudnn_{part}.", size))
        yield State(f"cut-{part}", ("CD312",), path(cut))
    yield State("cut-libcudnn", ("CD312",), path(folder("cut-main", wheel, cut=("libcudnn.so", 20000))))
    foreign_ops, foreign_graph = (next(system.glob(f"libcudnn_{p}.so.9*")).resolve() for p in ("ops", "graph"))
    yield State("foreign-ops", ("CD306",), path(folder("foreign-ops", wheel, foreign=foreign_ops)))
    yield State("foreign-graph", ("CD306",), path(folder("foreign-graph", wheel, foreign=foreign_graph)))
    lone = folder("lone-ops", wheel, foreign=foreign_ops, alone=True)
    yield State("lone-foreign-ops", ("CD306", "CD307"), path(lone))
    yield State("path-on-system-cudnn", ("CD306", "CD303", "CD304"), path(str(system)))
    yield State("whole-copy-on-path", (), path(str(BASE / "whole")))
    preload = str(next(system.glob("libcudnn.so.9")))
    yield State("preload-system-cudnn", ("CD508",), {"LD_PRELOAD": preload})
    yield from driver_states(path)
    yield from variable_states()
    yield from limit_states()
    yield from mps_states()
    both = {**path(str(BASE / "missing-ops")), "CUDA_FORCE_PTX_JIT": "1"}
    yield State("two-faults", ("CD307", "CD513"), both)


def driver_states(path: Callable[..., dict[str, str]]) -> Iterator[State]:
    """Libraries and device nodes of the driver."""
    stubs = BASE / "lib64/stubs"
    stubs.mkdir(parents=True)
    subprocess.run(["cc", "-shared", "-fPIC", "-x", "c", "-", "-o", str(stubs / "libcuda.so.1")], input=STUB, text=True,
                   check=True)  # fmt: skip
    yield State("stub-libcuda", ("CD113",), path(str(stubs)))
    empty = BASE / "empty"
    empty.mkdir()
    (empty / "libcuda.so.1").touch()
    yield State("empty-libcuda", ("CD111",), path(str(empty)))
    for node in ("nvidia-uvm", "nvidiactl", "nvidia0"):
        mask = f"mount --bind /dev/null /dev/{node}"
        yield State(f"mask-{node}", ("CD108",) if node == "nvidia-uvm" else ("CD106",), first=mask, private=True)
    plain = BASE / "plain"
    plain.touch()
    yield State("mask-uvm-by-file", ("CD108",), first=f"mount --bind {plain} /dev/nvidia-uvm", private=True)
    everything = "for n in /dev/nvidia*; do [ -c $n ] && mount --bind /dev/null $n; done; true"
    yield State("mask-all", ("CD106",), first=everything, private=True)


def variable_states() -> Iterator[State]:
    """Variables of CUDA and cuDNN."""
    yield State("force-ptx", ("CD513",), {"CUDA_FORCE_PTX_JIT": "1"})
    yield State("disable-ptx", (), {"CUDA_DISABLE_PTX_JIT": "1"})
    yield State("injection", (), {"CUDA_INJECTION64_PATH": "/nonexistent.so"})
    yield State("errata", (), {"CUDNN_ERRATA_JSON_FILE": "/nonexistent.json"})
    yield State("mps-percentage", (), {"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": "10"})
    yield State("mps-no-daemon", (), {"CUDA_MPS_PIPE_DIRECTORY": "/nonexistent"})
    for name, value in (("CUDA_LAUNCH_BLOCKING", "1"), ("CUDA_MODULE_LOADING", "EAGER"), ("NVIDIA_TF32_OVERRIDE", "0"),
                        ("CUDA_DEVICE_MAX_CONNECTIONS", "1"), ("CUDNN_LOGLEVEL_DBG", "3")):  # fmt: skip
        yield State(name.lower().replace("_", "-"), (), {name: value})
    log = {"CUDNN_LOGLEVEL_DBG": "3", "CUDNN_LOGDEST_DBG": "stderr"}
    yield State("cudnn-log", (), log)
    for name, value in (("hidden", ""), ("no-such-device", "7"), ("device-twice", "0,0"), ("bad-name", "cuda:0")):
        yield State(f"visible-{name}", ("CD501",), {"CUDA_VISIBLE_DEVICES": value})


def mps_states() -> Iterator[State]:
    """The MPS daemon running, and gone with its pipes left behind."""
    if not shutil.which("nvidia-cuda-mps-control"):
        return
    pipes = {"CUDA_MPS_PIPE_DIRECTORY": str(BASE / "mps"), "CUDA_MPS_LOG_DIRECTORY": str(BASE / "mps-log")}
    for name in pipes.values():
        Path(name).mkdir()

    def start() -> Callable[[], None]:
        subprocess.run(["nvidia-cuda-mps-control", "-d"], env={**os.environ, **pipes}, check=True, timeout=20)
        time.sleep(1)
        return lambda: None

    def kill() -> Callable[[], None]:
        for name in ("nvidia-cuda-mps-server", "nvidia-cuda-mps-control"):
            subprocess.run(["pkill", "-9", "-x", name[:15]], check=False)
        time.sleep(1)
        return lambda: None

    yield State("mps-on", (), pipes, during=start)
    yield State("mps-dead", ("CD513",), pipes, during=kill)


def limit_states() -> Iterator[State]:
    """Limits of the process, and a GPU without memory."""
    for size, cause in ((4, ("CD514",)), (16, ()), (64, ())):
        yield State(f"address-space-{size}g", cause, first=f"ulimit -v {size << 20}")
    yield State("address-space-soft-4g", ("CD514",), first=f"ulimit -S -v {4 << 20}")
    for count in (24, 28, 40, 60):
        yield State(f"open-files-{count}", ("CD507",), first=f"ulimit -n {count}")
    yield State("open-files-soft-24", ("CD507",), first="ulimit -S -n 24")
    yield State("open-files-128", (), first="ulimit -n 128")
    yield State("stack-512k", (), first="ulimit -s 512")
    yield State("full-gpu", ("CD201",), during=_fill)


def _fill() -> Callable[[], None]:
    child = subprocess.Popen([sys.executable, "-c", FILL], stdout=subprocess.PIPE, text=True)
    assert child.stdout
    child.stdout.readline()

    def end() -> None:
        child.kill()
        child.wait()

    return end


def run(state: State, words: list[str], timeout: float = 90.0) -> tuple[subprocess.CompletedProcess[str], float]:
    """The program in that state, and its seconds."""
    script = f"{state.first}\nexec {shlex.join(words)}" if state.first else f"exec {shlex.join(words)}"
    command = ["bash", "-c", script]
    if state.private:
        command = ["unshare", "-m", *command]
    start = time.monotonic()
    done = subprocess.run(command, env={**os.environ, **state.variables}, capture_output=True, text=True, check=False,
                          timeout=timeout)  # fmt: skip
    return done, time.monotonic() - start


def cured(state: State, report: dict[str, Any]) -> dict[str, Any] | None:
    """The first fix of the first cause, run as printed, and then its verify command; None where it is no such fix."""
    roots = [f for f in report["findings"] if f["status"] == "problem" and not f.get("consequence_of") and f["fixes"]]
    order = {"error": 0, "warning": 1, "note": 2}
    roots.sort(
        key=lambda f: (order[f["severity"]], (f["fixes"][0].get("proof") or {}).get("outcome") != "proved", f["code"])
    )
    if not roots or order[roots[0]["severity"]] > 0:
        return None
    fix = roots[0]["fixes"][0]
    if (fix.get("change") or {}).get("kind") not in ("variable", "limit"):
        return None
    done, _ = run(state, ["bash", "-c", f"{fix['command']} && {fix['verify']}"])
    return {"code": roots[0]["code"], "command": fix["command"], "verify": fix["verify"], "exit": done.returncode,
            "said": done.stdout[:300] + done.stderr[-300:]}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", required=True)
    parser.add_argument("--wheel", required=True, type=Path)
    parser.add_argument("--system", required=True, type=Path)
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("-n", type=int, default=1)
    parser.add_argument("doctor", nargs="+")
    given = parser.parse_args()
    shutil.rmtree(BASE, ignore_errors=True)
    summary: dict[str, Any] = {}
    with zipfile.ZipFile(given.out, "w", zipfile.ZIP_DEFLATED) as out:
        try:
            every(given, out, summary)
        finally:  # also of a run that was ended: what there is
            out.writestr("summary.json", json.dumps(summary, indent=1))


def every(given: argparse.Namespace, out: zipfile.ZipFile, summary: dict[str, Any]) -> None:
    for state in states(given.wheel, given.system):
        if given.only and not any(state.name.startswith(o) for o in given.only):
            continue
        end = state.during() if state.during else lambda: None
        try:
            summary[state.name] = row = one(state, given.doctor, given.n, out)
            sys.stdout.write(f"{state.name} {json.dumps(row)[:400]}\n")
            sys.stdout.flush()
        finally:
            end()


def one(state: State, doctor: list[str], times: int, out: zipfile.ZipFile) -> dict[str, Any]:
    """The row of one state."""
    check = [*doctor, "check", "--format", "json", "--timeout", "10"]
    try:
        runs = [run(state, check) for _ in range(times)]
        bare = [run(state, [*check, "--no-trials"])[1] for _ in range(times)]
    except subprocess.TimeoutExpired:
        return {"error": "timeout"}
    done = runs[0][0]
    row: dict[str, Any] = {
        "expected": state.cause,
        "exit": done.returncode,
        "seconds": round(statistics.median(s for _, s in runs), 3),
        "no_trials": round(statistics.median(bare), 3),
        "stderr": done.stderr[-500:],
    }
    try:
        report = json.loads(done.stdout)
    except ValueError:
        return {**row, "error": done.stdout[-300:]}
    out.writestr(f"{state.name}.json", done.stdout)
    row["reason"] = report["reason"]
    roots = [f for f in report["findings"] if f["status"] == "problem" and not f.get("consequence_of")]
    row["causes"] = [f"{f['code']} {f['severity']}" for f in roots if f["severity"] != "note"]
    row["proofs"] = [f["proof"]["text"] for x in report["findings"] for f in x["fixes"] if f.get("proof")]
    row["cure"] = cured(state, report)
    return row


if __name__ == "__main__":
    main()
