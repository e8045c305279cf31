"""Which environment is examined and where its packages are, in the folders of venv, conda, Debian and Windows."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from cudnn_doctor.model.base import Absent, Known
from cudnn_doctor.probe.target_env import NoEnvironmentError, find_target_env
from tests.probe.site import venv


def conda(prefix: Path) -> Path:
    site = prefix / "lib/python3.11/site-packages"
    site.mkdir(parents=True)
    (prefix / "bin").mkdir()
    (prefix / "bin/python").write_text("")
    (prefix / "conda-meta").mkdir()
    (prefix / "conda-meta/python-3.11.9-h955ad1f_0.json").write_text("{}")
    (prefix / "conda-meta/python-dateutil-2.9.0-py311_0.json").write_text("{}")
    return site


def test_a_venv(tmp_path: Path) -> None:
    site = venv(tmp_path / "env")
    for named in (tmp_path / "env", tmp_path / "env/bin/python"):
        patient = find_target_env(str(named), {"HOME": str(tmp_path)})
        assert (patient.prefix, patient.kind, patient.chosen_by) == (str(tmp_path / "env"), "venv", "--env")
        assert patient.python == Known(value=str(tmp_path / "env/bin/python"), source="file")
        assert patient.python_version == Known(value="3.12.3", source=f"{tmp_path}/env/pyvenv.cfg")
        assert patient.site_packages == (str(site),)


def test_a_venv_whose_python_is_a_link_is_not_followed_to_the_installation(tmp_path: Path) -> None:
    site = venv(tmp_path / "env")
    (tmp_path / "env/bin/python").unlink()
    (tmp_path / "env/bin/python").symlink_to(sys.executable)
    assert find_target_env(str(tmp_path / "env/bin/python"), {}).site_packages == (str(site),)


@pytest.mark.parametrize("line", ["version_info = 3.12.3", "version_info = 3.12.3.final.0", "version = 3.12.3"])
def test_versions_as_uv_virtualenv_and_venv_write_them(tmp_path: Path, line: str) -> None:
    venv(tmp_path, config=f"home = /usr/bin\n{line}\n")
    assert find_target_env(str(tmp_path), {}).python_version.value == "3.12.3"  # type: ignore[union-attr]


def test_system_site_packages_follow_with_the_users_own(tmp_path: Path) -> None:
    base = tmp_path / "base"
    user = tmp_path / "home/.local/lib/python3.12/site-packages"
    folders = [base / "local/lib/python3.12/dist-packages", base / "lib/python3/dist-packages", user]
    for folder in folders:
        folder.mkdir(parents=True)
    (base / "lib/python3.12").mkdir(parents=True)
    config = f"home = {base}/bin\ninclude-system-site-packages = {{}}\nversion = 3.12.3\n"
    environ = {"HOME": str(tmp_path / "home")}
    closed = venv(tmp_path / "closed", config=config.format("false"))
    assert find_target_env(str(tmp_path / "closed"), environ).site_packages == (str(closed),)
    opened = venv(tmp_path / "opened", config=config.format("true"))
    expected = (str(opened), str(user), str(folders[0]), str(folders[1]))
    assert find_target_env(str(tmp_path / "opened"), environ).site_packages == expected
    without = {**environ, "PYTHONNOUSERSITE": "1"}
    assert find_target_env(str(tmp_path / "opened"), without).site_packages == (expected[0], *expected[2:])


def test_conda(tmp_path: Path) -> None:
    site = conda(tmp_path / "env")
    patient = find_target_env(None, {"CONDA_PREFIX": str(tmp_path / "env")})
    assert (patient.kind, patient.chosen_by, patient.site_packages) == ("conda", "CONDA_PREFIX", (str(site),))
    assert patient.python_version == Known(
        value="3.11.9", source=f"{tmp_path}/env/conda-meta/python-3.11.9-h955ad1f_0.json"
    )


def test_an_installation_and_its_python_by_a_link(tmp_path: Path) -> None:
    prefix = tmp_path / "opt/python"
    site = prefix / "lib/python3.13/site-packages"
    site.mkdir(parents=True)
    (prefix / "bin").mkdir()
    (prefix / "bin/python3.13").write_text("")
    (prefix / "bin/python3.13").chmod(0o755)
    (prefix / "bin/python3").symlink_to("python3.13")
    (tmp_path / "python3").symlink_to(prefix / "bin/python3")
    patient = find_target_env(str(tmp_path / "python3"), {})
    assert (patient.prefix, patient.kind, patient.site_packages) == (str(prefix), "system", (str(site),))
    assert patient.python_version == Known(value="3.13", source=str(prefix / "lib/python3.13"))


def test_windows_layout(tmp_path: Path) -> None:
    site = tmp_path / "Lib/site-packages"
    site.mkdir(parents=True)
    (tmp_path / "Scripts").mkdir()
    (tmp_path / "Scripts/python.exe").write_text("")
    (tmp_path / "pyvenv.cfg").write_text("home = C:\\Python312\nversion = 3.12.3\n")
    patient = find_target_env(str(tmp_path), {})
    assert patient.python == Known(value=str(tmp_path / "Scripts/python.exe"), source="file")
    assert patient.site_packages == (str(site),)


def test_python_path_comes_first(tmp_path: Path) -> None:
    site = venv(tmp_path / "env")
    (tmp_path / "more").mkdir()
    environ = {"PYTHONPATH": os.pathsep.join([str(tmp_path / "more"), "/nowhere"])}
    assert find_target_env(str(tmp_path / "env"), environ).site_packages == (str(tmp_path / "more"), str(site))


def test_virtual_env_before_conda_before_the_own_interpreter(tmp_path: Path) -> None:
    venv(tmp_path / "venv")
    conda(tmp_path / "conda")
    both = {"VIRTUAL_ENV": str(tmp_path / "venv"), "CONDA_PREFIX": str(tmp_path / "conda")}
    assert find_target_env(None, both).chosen_by == "VIRTUAL_ENV"
    stale = {"VIRTUAL_ENV": str(tmp_path / "gone")}
    patient = find_target_env(None, stale)
    assert patient.prefix == sys.prefix
    assert patient.chosen_by == f"own interpreter; VIRTUAL_ENV names no environment: {tmp_path}/gone"
    assert patient.python_version == Known(value=".".join(map(str, sys.version_info[:3])), source="own interpreter")


def test_the_own_package_folder_is_the_true_one() -> None:
    import msgspec

    own = os.path.dirname(os.path.dirname(msgspec.__file__))
    patient = find_target_env(None, {"PYTHONPATH": os.environ.get("PYTHONPATH", "")})
    assert os.path.realpath(own) in {os.path.realpath(s) for s in patient.site_packages}


def test_what_is_no_environment_is_refused_in_words(tmp_path: Path) -> None:
    venv(tmp_path / "project/.venv")
    (tmp_path / "notes.txt").write_text("")
    (tmp_path / "python3").write_text("")
    (tmp_path / "python3").chmod(0o755)
    takes = "It takes a virtual environment, a conda prefix or a python executable."
    for named, words in {
        "gone": f"--env {tmp_path}/gone: not there. {takes}",
        "project": f"--env {tmp_path}/project: a folder without pyvenv.cfg, conda-meta or bin/python. {takes} "
        f"Did you mean {tmp_path}/project/.venv?",
        "notes.txt": f"--env {tmp_path}/notes.txt: a file, but no python executable by its name and mode. {takes}",
        "python3": f"--env {tmp_path}/python3: no library folder (lib/pythonX.Y) belongs to this executable. {takes}",
    }.items():
        with pytest.raises(NoEnvironmentError) as caught:
            find_target_env(str(tmp_path / named), {})
        assert str(caught.value) == words


def test_a_venv_without_its_python_is_still_examined(tmp_path: Path) -> None:
    site = venv(tmp_path)
    (tmp_path / "bin/python").unlink()
    patient = find_target_env(str(tmp_path), {})
    assert patient.site_packages == (str(site),)
    assert isinstance(patient.python, Absent)
