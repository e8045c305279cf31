"""Variables of an environment in a log: the values of those that are not known to be harmless go, whatever they are."""

from __future__ import annotations

import re
from collections.abc import Iterator

from cudnn_doctor.probe.environment import ALLOWED
from cudnn_doctor.redact import names
from cudnn_doctor.redact.search import Signed
from cudnn_doctor.redact.spans import Span

# Settings of the field, by how their names begin; a name that announces a secret is none of them.
_FAMILIES = re.compile(
    r"(?:CUDA|CUDNN|CUBLAS|CUBLASLT|CUFFT|CUSOLVER|CUTLASS|NCCL|NVIDIA|NVTE|NVRTC|NVSHMEM|NV|TF|XLA|TORCH|PYTORCH"
    r"|TORCHINDUCTOR"
    r"|TORCHELASTIC|DYNAMO|JAX|OMP|KMP|MKL|GOMP|OPENBLAS|NUMEXPR|OMPI|OPAL|UCX|UCC|LD|PYTHON|KERAS|MXNET|TRITON|GLOO"
    r"|HIP|ROCM|LC"
    r"|MALLOC|CMAKE|DEEPSPEED|VLLM|FLASH|ACCELERATE|TOKENIZERS|TRANSFORMERS|ORT|TRT|TENSORRT|NUMBA|CUPY|CC|CXX|GCC"
    r"|GPU|QT|SSL)_?\w*"
    r"|\w{0,40}_(?:VERSION|DEVICES|DEVICE|LEVEL|DEBUG|PORT|RANK|SIZE|THREADS|BACKEND|TIMEOUT|FLAGS|PARALLELISM"
    r"|DISABLE|ENABLE)"
    r"|PATH|MANPATH|SHELL|TERM|COLORTERM|LANG|LANGUAGE|TZ|PAGER|EDITOR|SHLVL|RANK|LOCAL_RANK|WORLD_SIZE|COLUMNS"
    r"|LINES|DISPLAY"
    r"|PWD|OLDPWD|HOME|TMPDIR|CFLAGS|CXXFLAGS|LDFLAGS|CI|DEBUG|VERBOSE|SEED|EPOCHS?|BATCH_?SIZE|LR|MODE|DTYPE|PRECISION"
)
_OPTION = re.compile(r"[\w.,:/+=@~${}\[\]() %*;-]{0,2000}")
_HIDDEN = frozenset({"TF_CONFIG"})  # of a known family, and holds hosts
_QUOTED = r"\"(?:[^\"\\]|\\.){0,4000}?(?:\"|\Z)|'[^']{0,4000}?(?:'|\Z)"
_ASSIGNED = re.compile(r"[A-Z0-9_]=")
_NAME = re.compile(r"(?<![A-Za-z0-9_])[A-Z][A-Z0-9_]{2,80}\Z")
# What stands before `NAME=value` that is a whole line, and before one that a command follows; a value in quotes may go
# on over lines.
_LINE_START = re.compile(r"[ \t]{0,8}(?:- )?(?:export |declare -x |set |setx |ENV |ARG |Environment=)?[\"']?")
_INLINE = re.compile(r"(?:[$#>] |\benv |-e |--env[ =]|sudo |export |&& |; )\Z")
_LINE_VALUE = re.compile(rf"{_QUOTED}|[^\n]*[^\s]")
_WORD_VALUE = re.compile(rf"{_QUOTED}|[^\s'\"]*")
# "Env": ["A=b", ...], environ({'A': 'b', ...}), and a process's own, which NUL separates.
_LIST = re.compile(r"(?i)\"env(?:ironment)?\"\s{0,4}:\s{0,4}\[")
_ITEM = re.compile(r"\s*\"([A-Za-z_]\w{0,80})=((?:[^\"\\]|\\.){0,4000})\",?")
_DICT = Signed(
    r"environ\(\{|(?i:\b(?:os\.environ|env(?:ironment)?(?:_vars)?|variables)['\"]?\s{0,2}[:=]\s{0,2}\{)",
    "environ", "env'", 'env"', "env:", "env=", "env_vars", "variables",
)  # fmt: skip
_ENTRY = re.compile(
    r"\s*['\"]([A-Za-z_]\w{0,80})['\"]\s?:\s?(?:'((?:[^'\\]|\\.){0,4000})'|\"((?:[^\"\\]|\\.){0,4000})\"),?"
)
_NUL = re.compile(r"(?:^|\0)([A-Z][A-Z0-9_]{1,80})=([^\0\n]{1,4000})(?=\0)")
# `env:` of YAML.
_YAML = re.compile(
    r"(?m)^([ \t]*)(?:env|environment|env_vars|environment_variables|variables|build_args|args):[ \t]*\r?\n"
)
_YAML_ENTRY = re.compile(r"([ \t]+)(?:- )?([A-Z][A-Z0-9_]{1,80})[ \t]*[:=][ \t]*([^\n]+?)[ \t]*(?:\r?\n|$)")
_POWERSHELL = re.compile(r"\$env:([A-Za-z]\w{1,80})[ \t]*=[ \t]*(\"[^\"\n]*\"|'[^'\n]*'|\S+)")


def kept(name: str, value: str) -> bool:
    """Whether the value of a variable may stay: it is a setting that is known to say nothing of a person."""
    value = value.strip("\"'")
    if names.harmless(name, value) and (value[:1] not in tuple("[({") or len(value) < 3):
        return True
    if name in ALLOWED:
        return True
    known = _FAMILIES.fullmatch(name) and name not in _HIDDEN and names.strength(name) == "none"
    return bool(known and _OPTION.fullmatch(value))


def find(text: str, folded: str) -> Iterator[Span]:
    """The values of all other variables."""
    if "=" in text:
        yield from _assignments(text)
        for m in _LIST.finditer(text):
            yield from _items(text, m.end())
        if "\0" in text:
            for m in _NUL.finditer(text):
                yield from _variable(m[1], m[2], m.start(2))
        if "$env:" in text:
            for m in _POWERSHELL.finditer(text):
                yield from _variable(m[1], m[2], m.start(2))
    if "env" in text or "variables" in text:
        for m in _DICT.finditer(text, folded):
            yield from _entries(text, m.end())
        for m in _YAML.finditer(text):
            yield from _yaml(text, m.end(), len(m[1]))


def _assignments(text: str) -> Iterator[Span]:
    """`NAME=value` as a whole line, before a command, behind an option."""
    chained = -1  # where the value before ended, if that was one
    for sign in _ASSIGNED.finditer(text):
        name = _NAME.search(text, max(0, sign.start() - 82), sign.start() + 1)
        if not name or sign.start() < chained:
            continue
        line = text.rfind("\n", 0, name.start()) + 1
        if _LINE_START.fullmatch(text, line, name.start()):
            value = _LINE_VALUE.match(text, sign.end())
        elif _INLINE.search(text, max(line, name.start() - 12), name.start()) or (
            chained >= line and not text[chained : name.start()].strip()
        ):
            value = _WORD_VALUE.match(text, sign.end())
            chained = value.end() if value else -1
        else:
            value = None
        if value and value[0]:
            yield from _variable(name[0], value[0], value.start())


def _variable(name: str, value: str, at: int) -> Iterator[Span]:
    if value and not kept(name, value):
        end = at + len(value)
        if value[0] in "\"'":
            at += 1
            end -= value[-1] == value[0] and len(value) > 1
        if at < end:
            yield Span(at, end, "environment")


def _items(text: str, at: int) -> Iterator[Span]:
    while item := _ITEM.match(text, at):
        yield from _variable(item[1], item[2], item.start(2))
        at = item.end()


def _entries(text: str, at: int) -> Iterator[Span]:
    while entry := _ENTRY.match(text, at):
        group = 2 if entry[2] is not None else 3
        yield from _variable(entry[1], entry[group], entry.start(group))
        at = entry.end()


def _yaml(text: str, at: int, indent: int) -> Iterator[Span]:
    while (entry := _YAML_ENTRY.match(text, at)) and len(entry[1]) > indent:
        yield from _variable(entry[2], entry[3], entry.start(3))
        at = entry.end()
