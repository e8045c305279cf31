"""Commands that mend: for the examined environment, quoted for a shell (a snapshot may come from anybody), and none
that takes away what it does not put back."""

from __future__ import annotations

import re
from shlex import quote

from cudnn_doctor.model.base import Known, value_or
from cudnn_doctor.model.facts import CudnnCopy, Framework, Resolution
from cudnn_doctor.model.live import Change
from cudnn_doctor.model.report import Fix
from cudnn_doctor.rules.base import Case
from cudnn_doctor.rules.facts import numbers, requirement_name, same_version

# Libraries that cuDNN opens, by the beginning of their names, and the wheels that bring them. Their files are in
# nvidia/cublas/lib and the like up to CUDA 12, all in nvidia/cu13/lib from 13 on.
ASKED = ("tensorflow", "torch", "jax")  # frameworks that `cudnn-doctor matrix` answers for
PROVIDERS = (
    ("libcublas", "nvidia-cublas"),
    ("libnvrtc", "nvidia-cuda-nvrtc"),
    ("libnvJitLink", "nvidia-nvjitlink"),
    ("libcudart", "nvidia-cuda-runtime"),
)
SHOW_PATH = "echo $LD_LIBRARY_PATH | tr : '\\n'"
ARCHIVE = "https://developer.nvidia.com/cudnn-archive"


def fix(text: str, command: str = "", *, verify: str = "", change: Change | None = None) -> Fix:
    return Fix(text=text, command=command, verify=verify, change=change or _packages(command))


def _packages(command: str) -> Change | None:
    installs = " install " in command and any(tool in command for tool in ("pip", "conda", "apt-get"))
    return Change(kind="packages") if installs else None


def cure(text: str, change: Change, *, verify: str) -> Fix:
    """A fix that is one change of a variable or a limit; its command follows from that."""
    return Fix(text=text, command=command_of(change), verify=verify, change=change)


FLAGS = {"address_space": ("v", 1024), "stack": ("s", 1024), "open_files": ("n", 1)}  # of ulimit, and its unit


def command_of(change: Change) -> str:
    """For a shell: "unset NAME", "export NAME=VALUE", "ulimit -s 8192"."""
    if change.kind == "limit":
        flag, unit = FLAGS[change.name]
        return f"ulimit -{flag} {'unlimited' if change.value is None else int(change.value) // unit}"
    return f"unset {change.name}" if change.value is None else f"export {change.name}={quoted(change.value)}"


def unset(name: str) -> Change:
    """The variable is not set."""
    return Change(kind="variable", name=name)


def limit_to(name: str, value: int | None = None) -> Change:
    """The limit is set, or lifted where no value is given."""
    return Change(kind="limit", name=name, value=None if value is None else str(value))


def again(code: str) -> str:
    """The command that shows whether a fix worked."""
    return f"cudnn-doctor check --only {code}"


def quoted(text: str) -> str:
    """One word for a shell; `~` in front, of a redacted snapshot, still means the home."""
    return "~/" + quote(text[2:]) if text.startswith("~/") and len(text) > 2 else quote(text)


def pip(case: Case, *words: str) -> str:
    """What installs in the examined environment, as it is there: `python -m pip`; `uv pip` where uv made it without
    pip; another pip that is told of it where it has neither. The words are quoted."""
    patient = case.snapshot.patient
    python = quoted(patient.python.value) if isinstance(patient.python, Known) else "python"
    if patient.installer == "uv":
        start, words = f"uv pip {words[0]} --python {python}", words[1:]
    elif patient.installer == "pip":
        start = f"{python} -m pip"
    else:
        start = f"python3 -m pip --python {python}"
    return " ".join((start, *map(quoted, words)))


def satisfied(case: Case, requirement: str) -> str:
    """The installed version that already satisfies a requirement: installing it again would change nothing. "" where
    none does."""
    from packaging.requirements import InvalidRequirement, Requirement

    try:
        wanted = Requirement(requirement)
    except InvalidRequirement:
        return ""
    name = requirement_name(requirement)  # a text of hundreds of digits is no version, and int() refuses it
    found = (p.version for p in value_or(case.snapshot.packages, ()) if p.name == name and len(p.version) < 100)
    return next((v for v in found if wanted.specifier.contains(v, prereleases=True)), "")


def installation(case: Case, requirement: str) -> str:
    """Installs a wheel; one that is there already is put back file by file, since pip would leave it as it is."""
    there = satisfied(case, requirement)
    if there:
        return pip(case, "install", "--force-reinstall", "--no-deps", f"{requirement_name(requirement)}=={there}")
    return pip(case, "install", requirement)


def unshadow(case: Case, copy: CudnnCopy, resolution: Resolution, code: str) -> Fix:
    """Lets another copy than the one that wins be found, by the step that found it."""
    if resolution.step.startswith("LD_PRELOAD"):
        return cure("Take it out of LD_PRELOAD.", unset("LD_PRELOAD"), verify=again(code))
    if resolution.step.startswith("LD_LIBRARY_PATH"):
        text = f"Take {copy.directory} out of LD_LIBRARY_PATH, and out of what sets it (.bashrc, a module file)."
        leave = without_folders(case, copy.directory, copy.path.rpartition("/")[0])
        return cure(text, leave, verify=again(code)) if leave else fix(text, SHOW_PATH, verify=again(code))
    owner = value_or(copy.package, "")
    text = f"Remove or update {owner or copy.path}: it is found by {resolution.step}."
    path = quoted(copy.real_path)
    return fix(text, f"dpkg -S {path}; rpm -qf {path}", verify=again(code))


def with_folder(folder: str) -> str:
    """Puts a folder, or several with colons between, in front of LD_LIBRARY_PATH, in which an empty entry would mean
    the current folder."""
    return f"export LD_LIBRARY_PATH={quoted(folder)}${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}"


def without_folders(case: Case, *folders: str) -> Change | None:
    """Takes folders out of LD_LIBRARY_PATH as it was; None where they are not in it."""
    listed = [p for p in case.snapshot.host.environment.get("LD_LIBRARY_PATH", "").split(":") if p]
    gone = {f.rstrip("/") for f in folders}
    rest = ":".join(p for p in listed if p.rstrip("/") not in gone)
    if rest == ":".join(listed):
        return None
    return Change(kind="variable", name="LD_LIBRARY_PATH", value=rest or None)


def in_front(case: Case, folder: str) -> Change:
    """What `with_folder` does here."""
    listed = case.snapshot.host.environment.get("LD_LIBRARY_PATH", "")
    return Change(kind="variable", name="LD_LIBRARY_PATH", value=f"{folder}:{listed}" if listed else folder)


_OLD_FORM = re.compile(r"^([\w.-]+) \(([^()]*)\)$")  # "nvidia-cudnn-cu12 (==9.1.0.70)" of older wheels


def install(case: Case, framework: Framework) -> str:
    """The command that installs the cuDNN wheel that the framework's own metadata asks for; where it asks for none, the
    question to the matrix."""
    asked = (r for r in framework.requires if requirement_name(r).startswith("nvidia-cudnn"))
    wanted = next((_OLD_FORM.sub(r"\1\2", r.partition(";")[0].strip()) for r in asked), "")
    if not wanted and (wanted := wheel_for(framework)) == "":
        return f"cudnn-doctor matrix {framework.name} {quoted(framework.version)}" if framework.name in ASKED else ""
    return installation(case, wanted)


def wheel_for(framework: Framework) -> str:
    """A requirement on the cuDNN wheel of the CUDA and the major that a framework names; "" where either is unknown."""
    cuda = numbers(value_or(framework.built_cuda, ""))[:1]
    major = value_or(framework.cudnn_soname, "").rpartition(".so.")[2]
    if not cuda or cuda[0] not in (11, 12, 13) or not major.isdigit():
        return ""
    return f"nvidia-cudnn-cu{cuda[0]}>={major},<{int(major) + 1}"


def bring(case: Case, cudnn: str, cuda: int, *wheels: str) -> str:
    """Installs wheels of NVIDIA's for a CUDA major. A `cudnn` that is no wheel itself does not look into site-packages:
    their folders then go on the path."""
    command = pip(case, "install", *(w if cuda >= 13 else f"{w}-cu{cuda}" for w in wheels))
    patient = case.snapshot.patient
    site = next((s for s in patient.site_packages if s.startswith(patient.prefix) and s.endswith("-packages")), "")
    if not site or any(cudnn.startswith(f"{s}/") for s in patient.site_packages):
        return command
    names = (f"cu{cuda}" if cuda >= 13 else w.removeprefix("nvidia-").replace("-", "_") for w in wheels)
    return f"{command} && {with_folder(':'.join(dict.fromkeys(f'{site}/nvidia/{n}/lib' for n in names)))}"


def wheel_of(soname: str) -> str:
    """The wheel, without its CUDA, that brings a library; "" for libraries of other makers."""
    return next((w for start, w in PROVIDERS if soname.startswith(start)), "")


def provide(case: Case, missing: str, cudnn: str, code: str) -> tuple[Fix, ...]:
    """Brings a library that a cuDNN opens; () for its own, which belong to a copy, and where none is named."""
    if not missing or missing.startswith("libcudnn"):
        return ()
    name, _, major = missing.partition(".so.")
    here = next((x.path for x in case.snapshot.cuda.libraries if (x.name, str(x.major)) == (name, major)), "")
    if here:
        folder = here.rpartition("/")[0]
        text = f"It is in {folder}, where this cuDNN does not look: put that on the path."
        return (fix(text, with_folder(folder), verify=again(code), change=in_front(case, folder)),)
    wheel = wheel_of(missing)
    if not wheel or major not in ("11", "12", "13"):
        text = f"Install what provides {missing}, or put its folder on LD_LIBRARY_PATH."
        return (fix(text, f"ldconfig -p | grep {quoted(name)}", verify=again(code)),)
    return (fix(f"Install {missing}.", bring(case, cudnn, int(major), wheel), verify=again(code)),)


def reinstall(case: Case, copy: CudnnCopy, code: str) -> tuple[Fix, ...]:
    """Makes a copy whole and of one release again, by whatever put it there; before that, where LD_LIBRARY_PATH leads
    to it and there is another one, leaving it out."""
    return (*_left_out(case, copy, code), *_put_back(case, copy, code))


def _left_out(case: Case, copy: CudnnCopy, code: str) -> tuple[Fix, ...]:
    leave = without_folders(case, copy.directory, copy.path.rpartition("/")[0])
    others = [c for c in case.snapshot.cudnn if c.soname == copy.soname and c.directory != copy.directory]
    if not leave or not others:
        return ()
    text = f"Take {copy.directory} out of LD_LIBRARY_PATH: there is another {copy.soname} in {others[0].directory}."
    return (cure(text, leave, verify=again(code)),)


def _put_back(case: Case, copy: CudnnCopy, code: str) -> tuple[Fix, ...]:
    package = value_or(copy.package, "") or copy.claimed_by
    name, _, version = package.partition(" ")
    if isinstance(copy.package, Known) and copy.package.source.startswith("dpkg"):
        command = f"sudo apt-get install --reinstall {quoted(f'{name}={version}' if version else name)}"
        return (fix(f"Install the package {name} again.", command, verify=again(code)),)
    if package.endswith("(conda)"):
        wanted = quoted(f"{name}={version.partition(' ')[0]}")
        command = f"conda install -p {quoted(case.snapshot.patient.prefix)} --force-reinstall {wanted}"
        return (fix(f"Install conda's {name} again.", command, verify=again(code)),)
    if package:
        command = pip(case, "install", "--force-reinstall", "--no-deps", f"{name}=={version}")
        return (fix("Install the wheel again.", command, verify=again(code)),)
    return _unowned(case, copy, code)


def _unowned(case: Case, copy: CudnnCopy, code: str) -> tuple[Fix, ...]:
    """For files that were copied there by hand: a whole copy in a folder of its own."""
    version = value_or(copy.version, "")
    release = wheel_of_release(case, copy, version)
    what = f"cuDNN {version}".strip()
    if release:
        place = f"cudnn-{version}"
        text = (
            f"No package owns {copy.directory}, so nothing can repair it: put a whole {what} into a folder of its own, "
            "and let that one be found."
        )
        command = pip(case, "install", "--no-deps", "--target", place, release)
        path = f'export LD_LIBRARY_PATH="$PWD/{place}/nvidia/cudnn/lib${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}"'
        return (fix(text, f"{command} && {path}", verify=again(code)),)
    text = f"No package owns {copy.directory}: unpack a whole {what} for your CUDA there again, from {ARCHIVE}"
    return (fix(text, f"ls -l {quoted(copy.directory)}", verify=again(code)),)


def wheel_of_release(case: Case, copy: CudnnCopy, version: str) -> str:
    """The requirement of the wheel with that release, for the CUDA of the copy; "" when there is none."""
    if len(numbers(version)) < 3:
        return ""
    said = [value_or(copy.cuda_flavour, 0), *numbers(value_or(copy.cudart, ""))[:1], 12]
    distribution = f"nvidia-cudnn-cu{next(n for n in said if n)}"
    wheels = case.matrix.wheels(distribution)
    fitting = [v for v in wheels.versions if same_version(v, version) and v not in wheels.yanked] if wheels else []
    if case.snapshot.host.machine != "aarch64":
        fitting = [v for v in fitting if ".post" not in v]  # 9.1.0.70.post1 on PyPI has a wheel for aarch64 alone
    return f"{distribution}=={fitting[-1]}" if fitting else ""
