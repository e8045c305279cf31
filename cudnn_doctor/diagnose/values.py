"""Values of the text that a fix's words and commands are filled with, so that they run as they stand. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from cudnn_doctor.logs.gpu_names import capability
from cudnn_doctor.logs.patterns import Knowledge
from cudnn_doctor.logs.regex import rx
from cudnn_doctor.model.explanation import Fix
from cudnn_doctor.model.versions import at_least, numbers

FIRST_WHEEL = {"11": "8.5.0", "12": "8.9.0", "13": "9.12.0"}  # first nvidia-cudnn-cuNN on PyPI, 2026-12-01


def values(facts: Mapping[str, str], wanted: str, knowledge: Knowledge) -> dict[str, str]:
    """What is known, by the names that causes.yaml uses; `wanted` is the major version in a missing file's name."""
    found = {k: v for k, v in facts.items() if k == "framework_version" and rx(r"\d+(?:\.\d+)+$").match(v)}
    if wanted:
        found["wanted_major"] = wanted
    built = facts.get("cudnn_built", "")
    if rx(r"\d+(?:\.\d+)+$").match(built):
        major = numbers(built)[0]
        found |= {"cudnn_built": built, "cudnn_major": str(major), "cudnn_next": str(major + 1)}
        if cuda := _flavour(built, facts.get("cuda", "")):
            found["cuda_major"] = cuda
    if lowest := _lowest_cuda(facts.get("gpu", "").lower(), knowledge):
        found |= {"gpu_cuda": lowest, "gpu_cu": lowest.replace(".", "")}
    return found


def tokens(found: Mapping[str, str]) -> dict[str, list[int]]:
    """Tokens for what is known, without lines."""
    named = {"built-known": "cudnn_built", "built-known-pip": "cuda_major", "gpu-cuda-known": "gpu_cuda"}
    result: dict[str, list[int]] = {token: [] for token, value in named.items() if value in found}
    if "wanted_major" in found:
        result[f"wants-{found['wanted_major']}"] = []
    return result


def filled(step: Fix, found: Mapping[str, str]) -> Fix | None:
    """The step with its values; None where one of them is not known."""
    texts = (step.text, step.command, step.verify)
    names = {name for text in texts for name in _names(text)}
    if not names <= found.keys():
        return None
    text, command, verify = (_put(text, found, names) for text in texts)
    return Fix(text=text, command=command, verify=verify)


def _names(text: str) -> Collection[str]:
    """The names in braces; a lone brace of awk or Python is none."""
    return set(rx(r"\{([a-z]+_[a-z]+)\}").findall(text))


def _put(text: str, found: Mapping[str, str], names: Collection[str]) -> str:
    for name in names:
        text = text.replace("{" + name + "}", found[name])
    return text


def _flavour(built: str, cuda: str) -> str:
    """The CUDA major of the cuDNN wheel to take: the stated one, else the oldest that has this cuDNN."""
    stated = cuda.partition(".")[0]
    if stated in FIRST_WHEEL:
        return stated if at_least(built, FIRST_WHEEL[stated]) else ""
    return next((c for c in ("12", "11") if not cuda and at_least(built, FIRST_WHEEL[c])), "")


def _lowest_cuda(gpu: str, knowledge: Knowledge) -> str:
    """The first CUDA toolkit that knows the named GPU."""
    row = knowledge.matrix.gpu(capability(gpu, knowledge)) if gpu else None
    return row.cuda_min if row else ""
