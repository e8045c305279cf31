"""Runs the programs of this folder under `cudnn-doctor run` on a machine with a GPU, and keeps their recordings.

python -m tests.run_programs OUT [--doctor COMMAND] [--only WORD]
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent / "programs"
STATES = {
    "healthy": "-",
    "other-context": "device-context-mixup",
    "reset": "context-reset",
    "destroyed": "stream-or-handle-destroyed",
    "fork": "fork-after-init",
}  # of the C client
PARTS = "cudnn-sublibs-mixed|cudnn-not-found"  # of the C client with broken installs
LONG = 120.0
AT_ONCE = 5


class Program(NamedTuple):
    """One program: how it is run and what must be named."""

    name: str
    command: list[str]
    cause: str  # "-": none; several that are right are joined by "|"
    options: list[str]
    before: list[str]  # a command in front
    alone: bool  # it takes the whole card
    neighbour: bool
    cgroup: str
    mps: bool


def programs(python: str, client: str) -> list[Program]:
    """Those of this folder, and the C client's states. `client`: its path, compiled."""
    files = [p for p in sorted(HERE.glob("*.py")) if "# cause:" in p.read_text()]
    files = [p for p in files if os.environ.get("TF_PYTHON") or not p.stem.startswith("tf_")]
    found = [_program(path, python) for path in files]
    for state, cause in STATES.items():
        for name, library in libraries().items():
            environment = ["env", f"CUDNN={library}", f"LD_LIBRARY_PATH={_folders(library)}"]
            words = [*environment, client, state]
            found.append(Program(f"c_{name}_{state}", words, cause, [], [], False, False, "", False))
    for name, folder in broken(libraries().get("cudnn9", "")).items():
        words = ["env", f"LD_LIBRARY_PATH={folder}", f"CUDNN={folder}/libcudnn.so.9", client, "healthy"]
        found.append(Program(f"c_{name}", words, PARTS, [], [], False, False, "", False))
    return found


def expected(name: str) -> tuple[str, ...]:
    """The causes that are right for a program of this name; none where it is healthy."""
    if name.startswith("c_"):
        cause = PARTS if name.startswith("c_part_") else STATES[name.rpartition("_")[2]]
    else:
        cause = _program(HERE / f"{name}.py", "").cause
    return () if cause == "-" else tuple(cause.split("|"))


def _program(path: Path, python: str) -> Program:
    text = path.read_text(encoding="utf-8")

    def said(word: str) -> str:
        match = re.search(rf"^# {word}(?:: (.*))?$", text, re.MULTILINE)
        return (match[1] or "yes") if match else ""

    python = (os.environ.get("TF_PYTHON") if path.stem.startswith("tf_") else None) or python
    return Program(
        path.stem, [python, str(path)], said("cause"), shlex.split(said("options")), shlex.split(said("before")),
        bool(said("alone")), bool(said("neighbour")), said("cgroup"), bool(said("mps")),
    )  # fmt: skip


def libraries() -> dict[str, str]:
    """Copies of cuDNN to try: $CUDNN9 and $CUDNN8, paths of libcudnn.so.N."""
    return {f"cudnn{n}": os.environ[f"CUDNN{n}"] for n in (8, 9) if os.environ.get(f"CUDNN{n}")}


def _folders(library: str) -> str:
    """Where the library and the cuBLAS beside it lie."""
    folder = Path(library).parent
    return f"{folder}:{folder.parent.parent / 'cublas' / 'lib'}"


def broken(library: str) -> dict[str, str]:
    """Folders made of links to a copy: one without libcudnn_ops, one with that of $CUDNN_OTHER."""
    other = os.environ.get("CUDNN_OTHER")
    if not library or not other:
        return {}
    made = {}
    for name in ("part_missing", "part_foreign"):
        folder = Path(f"/tmp/{name}")
        folder.mkdir(exist_ok=True)
        for part in Path(library).parent.glob("libcudnn*.so.9"):
            target = folder / part.name
            target.unlink(missing_ok=True)
            if part.name != "libcudnn_ops.so.9":
                target.symlink_to(part)
            elif name == "part_foreign":
                target.symlink_to(Path(other) / part.name)
        made[name] = str(folder)
    return made


def run(program: Program, doctor: list[str], out: Path) -> dict[str, object]:
    """Runs one; what it said and how long it took."""
    recording = out / f"{program.name}.jsonl"
    words = [*program.before, *doctor, "run", *program.options, "--recording", str(recording), "--", *program.command]
    environment = dict(os.environ)
    if program.cgroup:
        group = Path("/sys/fs/cgroup") / f"cudnn-doctor-{program.name}"
        try:
            group.mkdir(exist_ok=True)
            (group.parent / "cgroup.subtree_control").write_text("+memory")
            (group / "memory.max").write_text(program.cgroup)
        except OSError as error:
            return {"name": program.name, "cause": program.cause, "code": f"no cgroup: {error}", "seconds": 0}
        words = ["sh", "-c", f'echo $$ > {group}/cgroup.procs; exec "$@"', "sh", *words]
    if program.mps:
        environment |= {"CUDA_MPS_PIPE_DIRECTORY": "/tmp/mps", "CUDA_MPS_LOG_DIRECTORY": "/tmp/mps"}
    begun = time.monotonic()
    with (out / f"{program.name}.txt").open("w") as said:
        try:
            code = subprocess.run(words, stdout=said, stderr=subprocess.STDOUT, env=environment, timeout=LONG,
                                  check=False, cwd=HERE, stdin=subprocess.DEVNULL).returncode  # fmt: skip
        except subprocess.TimeoutExpired:
            code = -999
    return {"name": program.name, "cause": program.cause, "code": code, "seconds": round(time.monotonic() - begun, 1)}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=Path)
    parser.add_argument("--doctor", default="cudnn-doctor")
    parser.add_argument("--only", default="")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    client = str(given.out / "client")
    subprocess.run(["cc", "-O1", "-o", client, HERE / "client.c", "-ldl", "-lpthread"], check=True)
    chosen = [p for p in programs(sys.executable, client) if given.only in p.name]
    doctor = shlex.split(given.doctor)
    together = [p for p in chosen if not (p.alone or p.mps)]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        results = list(pool.map(lambda p: run(p, doctor, given.out), together))
    results += [_alone(p, doctor, given.out) for p in chosen if p.alone]
    results += [_under_mps(p, doctor, given.out) for p in chosen if p.mps]
    Path(client).unlink()
    (given.out / "results.json").write_text(json.dumps(results, indent=1))


def _alone(program: Program, doctor: list[str], out: Path) -> dict[str, object]:
    if not program.neighbour:
        return run(program, doctor, out)
    words = "x=torch.zeros(125<<30,dtype=torch.uint8,device='cuda');print('full',flush=True);time.sleep(99)"
    words = f"import time, torch; {words}"
    with subprocess.Popen([sys.executable, "-c", words], stdout=subprocess.PIPE) as neighbour:
        assert neighbour.stdout is not None
        neighbour.stdout.readline()
        try:
            return run(program, doctor, out)
        finally:
            neighbour.kill()


def _under_mps(program: Program, doctor: list[str], out: Path) -> dict[str, object]:
    environment = {**os.environ, "CUDA_MPS_PIPE_DIRECTORY": "/tmp/mps", "CUDA_MPS_LOG_DIRECTORY": "/tmp/mps"}
    Path("/tmp/mps").mkdir(exist_ok=True)
    if subprocess.run(["nvidia-cuda-mps-control", "-d"], env=environment, check=False).returncode:
        return {"name": program.name, "cause": program.cause, "code": "no MPS", "seconds": 0}
    fault = f"import time,runpy;time.sleep(12);runpy.run_path('{HERE}/cupy_illegal_address.py')"
    try:
        with subprocess.Popen([sys.executable, "-c", fault], env=environment, stderr=subprocess.DEVNULL):
            return run(program, doctor, out)
    finally:
        subprocess.run(["nvidia-cuda-mps-control"], input=b"quit\n", env=environment, check=False, timeout=20)


if __name__ == "__main__":
    main()
