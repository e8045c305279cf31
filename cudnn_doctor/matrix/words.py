"""What the solver found, in words and commands."""

from __future__ import annotations

from collections.abc import Iterator

from cudnn_doctor.matrix.builds import Build
from cudnn_doctor.matrix.fits import said_pythons, what
from cudnn_doctor.matrix.question import Ask, Way
from cudnn_doctor.matrix.solve import Driver, Option, newest_python
from cudnn_doctor.model.versions import minor, numbers

COSTS = {
    "build": "a download of about 3 GB; the program stays as it is",
    "release": "another release: its API may differ",
    "python": "a new environment",
    "driver": "root and a restart; every program on the machine gets the new driver",
}


def way(option: Option, ask: Ask, asked: Build | None) -> Way:
    """An option as a person reads it."""
    return Way(
        changes=tuple(c for c in option.changes if c != "pin"),
        text=_title(option, asked),
        command=command(option),
        needs="; ".join(needs(option, ask)),
        costs="; ".join(COSTS[c] for c in option.changes if c in COSTS),
        notes=tuple(notes(option, ask)),
    )


def command(option: Option) -> str:
    """The pip command; that of another Python by its name."""
    python = f"python{option.python}" if option.python else "python"
    words = [w if w.startswith(("--", "https://")) else f'"{w}"' for w in option.fit.line.arguments]
    return f"{python} -m pip install {' '.join(words)}"


def _title(option: Option, asked: Build | None) -> str:
    parts = []
    if "build" in option.changes:
        parts.append(f"another build of the same release, for CUDA {minor(option.build.cuda)}")
    if "release" in option.changes:
        parts.append(what(option.build))
    if "python" in option.changes:
        parts.append(f"Python {option.python}")
    if "driver" in option.changes and option.driver:
        parts.append(f"driver branch {option.driver.branch}")
    if "pin" in option.changes and not parts:
        return f"{what(option.build)} with {option.fit.line.cudnn_wanted}"
    if not parts:
        return what(option.build)
    text = " and ".join(parts)
    return text if asked is not None else f"{text}, then {what(option.build)}" if "release" not in parts else text


def needs(option: Option, ask: Ask) -> Iterator[str]:
    """What the command needs besides."""
    if option.driver and (option.driver.least or option.driver.branch):
        yield said_driver(option.driver, ask)
    if (option.python or not ask.target.python) and option.build.pythons:
        yield f"Python {said_pythons(option.build.pythons)}"


def said_driver(need: Driver, ask: Ask) -> str:
    """ "driver 525.60.13 or newer (install branch 580)"."""
    same = need.least and ask.target.driver and numbers(need.least)[0] == numbers(ask.target.driver)[0]
    if same:
        return f"driver {need.least} or newer of its branch"
    here = f", not {ask.target.driver}" if ask.target.driver else ""
    least = f"driver {need.least} or newer{here}" if need.least else f"a driver of branch {need.branch}{here}"
    take = f" (take branch {need.branch})" if need.branch and need.least else ""
    return least + take


def notes(option: Option, ask: Ask) -> Iterator[str]:
    """What a person must know of the line."""
    build = option.build
    for warning in option.fit.warnings:
        yield f"Still so: {warning.text}."
    if build.framework == "tensorflow" and not build.brings_cuda and build.cuda:
        yield own_cuda(build, option.fit.line.cudnn)
    if build.row.constraint and ask.target.system != "macos":
        yield (
            f"{' and '.join(build.row.constraint)}: without it pip takes a newer one on Python "
            f"{newest_python(build.pythons)}, and the import fails."
        )
    if build.framework == "torch" and build.index:
        yield "That index is not PyPI: torchvision and torchaudio must come from it too."
    if build.row.note:
        note = build.row.note
        yield (note if note.startswith("tensorflow[") else note[0].upper() + note[1:]) + "."


def own_cuda(build: Build, cudnn: str) -> str:
    """What must be installed beside a TensorFlow that brings no CUDA."""
    toolkit = f"This release brings no CUDA: install the CUDA {minor(build.cuda)} toolkit"
    if build.system == "windows":
        return f"{toolkit} and cuDNN {build.built_cudnn} from NVIDIA's archive, with their bin folders on PATH."
    if not cudnn:
        return f"{toolkit} and cuDNN {build.built_cudnn} from NVIDIA's archive."
    major = numbers(build.built_cudnn)[0]
    return f"{toolkit}, and put the folder nvidia/cudnn/lib of site-packages (libcudnn.so.{major}) on LD_LIBRARY_PATH."
