"""`try` as it is called, on real environments with small wheels: verdicts, the original untouched, the copy gone."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.clone.wheels import LIBRARY, environment, everything, wheel

TRY = [sys.executable, "-m", "cudnn_doctor", "try", "--format", "json"]
# Passes from this version on; stands for a program that needs a newer cuDNN.
NEEDS = """
import glob, sys
(path,) = glob.glob(sys.prefix + "/lib/python3*/site-packages/nvidia/cudnn/lib/libcudnn.so.9")
have = open(path).read().split("'")[1]
print("cuDNN", have)
sys.exit([int(n) for n in have.split(".")] < [int(n) for n in sys.argv[1].split(".")])
"""
FLAKY = """
import os, sys
path = os.environ["COUNTER"]
count = int(open(path).read()) if os.path.exists(path) else 0
open(path, "w").write(str(count + 1))
sys.exit(count % 3 == 0)
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment "env" with a cuDNN 9.1 that its torch pins, wheels of 9.1 to 9.8, programs, a TMPDIR."""
    folder = tmp_path_factory.mktemp("made")
    wheels = [wheel(folder / "wheels", f"9.{n}.0.1") for n in range(1, 9)]
    pin = wheel(folder / "wheels", "2.6", name="torch", requires=["nvidia-cudnn-cu12==9.1.0.1"])
    environment(folder / "env", wheels[0], pin)
    (folder / "needs.py").write_text(NEEDS)
    (folder / "flaky.py").write_text(FLAKY)
    (folder / "tmp").mkdir()
    return folder


@pytest.fixture
def place(made: Path, tmp_path: Path) -> Path:
    """The same, for one test."""
    shutil.copytree(made, tmp_path / "place", symlinks=True)
    return tmp_path / "place"


def start(place: Path, *words: str, **variables: str) -> subprocess.Popen[str]:
    environ = {k: v for k, v in os.environ.items() if not k.startswith("LD_")}
    environ |= {"TMPDIR": str(place / "tmp"), "PATH": "/usr/bin:/bin", **variables}
    command = [*TRY, "--env", str(place / "env"), "--find-links", str(place / "wheels"), *words]
    return subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def tried(place: Path, *words: str, **variables: str) -> tuple[int, Any]:
    """Exit code and document; the original must be as it was and the copy gone."""
    before = everything(place / "env")
    process = start(place, *words, **variables)
    out, err = process.communicate(timeout=120)
    assert everything(place / "env") == before
    assert list((place / "tmp").iterdir()) == []
    return process.returncode, json.loads(out) if out else err


def test_a_newer_version_is_proved_and_the_pin_in_its_way_is_named(place: Path) -> None:
    program = ("--", "python", str(place / "needs.py"), "9.5")
    code, document = tried(place, "--with", "nvidia-cudnn-cu12>=9.5,<9.7", *program)
    assert (code, document["verdict"], document["exit_code"]) == (0, "proved", 0)
    assert [a["said"] for a in document["before"]["attempts"]] == ["cuDNN 9.1.0.1"] * 3
    assert [a["said"] for a in document["after"]["attempts"]] == ["cuDNN 9.6.0.1"] * 3
    assert document["after"]["packages"] == {"nvidia-cudnn-cu12": "9.6.0.1"}
    assert document["clone"]["method"] in ("hard links", "reflinks")
    assert document["original"].startswith("identical: 2 RECORD files and ")
    commands = [f["command"] for f in document["fixes"]]
    python = place / "env/bin/python"
    assert commands[0] == f"python3 -m pip --python {python} install nvidia-cudnn-cu12==9.6.0.1"
    assert "torch 2.6 asks for nvidia-cudnn-cu12==9.1.0.1" in document["fixes"][1]["text"]
    assert commands[2] == f"{python} -m pip install --no-deps nvidia-cudnn-cu12==9.6.0.1"


def test_no_difference_worse_and_what_is_not_to_be_had(place: Path) -> None:
    with_6 = ("--with", "nvidia-cudnn-cu12==9.6.0.1", "--times", "2")
    assert tried(place, *with_6, "--", "python", str(place / "needs.py"), "9.9")[1]["verdict"] == "no-difference"
    worse = "import sys, importlib.metadata as m; sys.exit(m.version('nvidia-cudnn-cu12') > '9.2')"
    assert tried(place, *with_6, "--", "python", "-c", worse)[1]["verdict"] == "worse"
    code, document = tried(place, "--with", "nvidia-cudnn-cu12==9.99", "--", "python", "-c", "")
    assert (code, document["verdict"]) == (2, "not-comparable")
    assert document["reason"].startswith("the change could not be made: ERROR: ")


def test_a_program_that_fails_one_time_in_three_is_flaky(place: Path) -> None:
    words = ("--with", "nvidia-cudnn-cu12==9.6.0.1", "--", "python", str(place / "flaky.py"))
    code, document = tried(place, *words, COUNTER=str(place / "count"))
    assert (code, document["verdict"]) == (1, "flaky")
    assert document["reason"].startswith("it fails 1 of 3 times before and 1 of 3 times after")


def test_a_bisection_over_eight_versions_takes_three_steps(place: Path) -> None:
    words = ("--bisect", "nvidia-cudnn-cu12", "9.1..9.8", "--times", "1")
    code, document = tried(place, *words, "--", "python", str(place / "needs.py"), "9.4")
    assert (code, document["turning"]) == (0, ["9.3.0.1", "9.4.0.1"])
    assert len(document["steps"]) == 2 + 3  # both ends, then three
    assert document["reason"] == "9.4.0.1 passes and 9.3.0.1 fails"


def test_variables_alone_need_no_copy(place: Path) -> None:
    program = ("--", "python", "-c", "import os, sys; sys.exit('BAD' in os.environ)")
    code, document = tried(place, "--env-var", "BAD", *program, BAD="1")
    assert (code, document["verdict"]) == (0, "proved")
    assert "clone" not in document or document["clone"] is None
    assert document["fixes"][0]["command"] == "unset BAD"


@pytest.mark.parametrize(("number", "left"), [(signal.SIGTERM, 0), (signal.SIGINT, 0), (signal.SIGKILL, 1)])
def test_the_original_and_the_copy_when_try_is_ended(place: Path, number: signal.Signals, left: int) -> None:
    """The copy goes on SIGTERM; after SIGKILL the next call takes it away."""
    before = everything(place / "env")
    write = "import sys, time; print(1, flush=True); time.sleep(60)"
    process = start(place, "--with", "nvidia-cudnn-cu12==9.6.0.1", "--", "python", "-c", write)
    end = time.monotonic() + 60
    while time.monotonic() < end and not list((place / "tmp").glob("cudnn-doctor-try-*/env/bin/python")):
        time.sleep(0.05)
    time.sleep(0.5)
    process.send_signal(number)
    process.communicate(timeout=30)
    assert everything(place / "env") == before
    assert len(list((place / "tmp").glob("cudnn-doctor-try-*"))) == left
    if left:
        assert tried(place, "--with", "nvidia-cudnn-cu12==9.2.0.1", "--times", "1", "--", "python", "-c", "")[0] == 1


def test_what_cannot_be_cloned_is_refused_in_words(place: Path, tmp_path: Path) -> None:
    conda = tmp_path / "conda"
    (conda / "conda-meta").mkdir(parents=True)
    (conda / "bin").mkdir()
    (conda / "bin/python").touch()
    for words, said in (
        (("--env", str(conda), "--with", "a", "--", "true"), "is a conda prefix, whose files hold its own path"),
        (("--env", sys.base_prefix, "--with", "a", "--", "true"), "is an installation of Python and no virtual env"),
        (("--with", "a", "--fix", "CD302", "--", "true"), "--fix and --with are different trials"),
        (("--", "true"), "what is to be changed?"),
        (("--with", "a"), "no TensorFlow, PyTorch, JAX or CuPy in"),
        (("--bisect", "nvidia-cudnn-cu12", "9.1..9.1", "--", "true"), "1 of the known releases lie there"),
    ):
        process = start(place, *words)
        _, err = process.communicate(timeout=60)
        assert process.returncode == 2
        assert said in err.replace("\n", " "), (words, err)


def test_a_package_from_elsewhere_is_refused(place: Path) -> None:
    elsewhere = place / "elsewhere"
    (site,) = (place / "env/lib").glob("python3.*/site-packages")
    elsewhere.mkdir()
    for path in [*site.glob("nvidia*")]:
        path.rename(elsewhere / path.name)
    (site / "elsewhere.pth").write_text(f"{elsewhere}\n")
    process = start(place, "--with", "nvidia-cudnn-cu12==9.6.0.1", "--", "true")
    assert f"nvidia-cudnn-cu12 comes from {elsewhere}, outside of" in process.communicate(timeout=60)[1]
    assert process.returncode == 2


def test_a_program_that_writes_into_a_linked_file_is_found_out(place: Path) -> None:
    """The one way to reach the original through a hard link is to write in place: it is said, not hidden."""
    write = f"import glob, sys; open(glob.glob(sys.prefix + '/lib/*/site-packages/{LIBRARY}')[0], 'r+').write('x')"
    process = start(place, "--with", "nvidia-cudnn-cu12==9.6.0.1", "--times", "1", "--", "python", "-c", write)
    document = json.loads(process.communicate(timeout=60)[0])
    linked = document["clone"]["method"] == "hard links"
    assert document["original"].startswith("CHANGED while this ran: " if linked else "identical: ")
