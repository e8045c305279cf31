"""Turns events and facts into the tokens that ranking.yaml speaks of, each with the lines it rests on.

Ids of signatures and statements are tokens themselves. Derived here: status:..., kind:..., os:..., framework:...,
gpu:..., xid:..., and the comparisons of stated facts with what part 1's compatibility rules say of them.
"""

from __future__ import annotations

import re
from typing import Any

from cudnn_doctor.explain.document import Document
from cudnn_doctor.explain.facts import Extract
from cudnn_doctor.explain.stated import Stated
from cudnn_doctor.explain.signatures import Event
from cudnn_doctor.knowledge.versions import at_least, below, numbers

Tokens = dict[str, list[int]]  # token -> indices of lines, first first

_STATUS_8 = {1: "not-initialized", 2: "alloc-failed", 3: "bad-param", 4: "internal-error", 5: "invalid-value",
             6: "arch-mismatch", 7: "mapping-error", 8: "execution-failed", 9: "not-supported", 10: "license-error",
             11: "runtime-prerequisite-missing", 14: "version-mismatch"}  # fmt: skip
_STATUS_9 = {1001: "not-initialized", 1002: "version-mismatch", 1008: "version-mismatch", 2007: "stream-mismatch",
             4003: "alloc-failed", 4004: "alloc-failed", 3007: "arch-mismatch"}  # fmt: skip
_STATUS_WORDS = (
    ("not-initialized", "not[_ ]?init"), ("alloc-failed", "alloc"), ("stream-mismatch", "bad_param_stream"),
    ("bad-param", "bad[_ ]?param"), ("internal-error", "int?ernal"), ("arch-mismatch", "arch|architecture"),
    ("mapping-error", "map+ing"), ("execution-failed", "exec"), ("not-supported", "not[_ ]?supp"),
    ("version-mismatch", "version|sublibrary"), ("invalid-value", "invalid"),
)  # fmt: skip
_FAILING = frozenset({"cudnn", "fault", "cuda", "memory", "version", "loader", "arch", "driver", "process", "symptom"})
_SECOND = 1.0  # a CUDA fault printed this much after the cuDNN line still came first
_SILENCE = 60.0  # seconds between two lines that make a long pause
_LITTLE = 300 << 20  # bytes of free memory that are too few for a handle and its workspace
_UNITS = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


def failing(event: Event) -> bool:
    return event.kind in _FAILING


def derive(document: Document, events: list[Event], extract: Extract, tables: dict[str, Any]) -> Tokens:
    """All tokens of one case."""
    tokens: Tokens = {}

    def add(token: str, *lines: int) -> None:
        known = tokens.setdefault(token, [])
        known.extend(line for line in lines if line >= 0 and line not in known)

    for event in events:
        add(event.id, event.line)
        if failing(event) or event.kind == "noise":
            add(f"kind:{event.kind}", event.line)
        if status := status_of(event):
            add(f"status:{status}", event.line)
        if "cause" in event.groups:
            add(f"found:{event.groups['cause']}", event.line)
        if "xid" in event.groups:
            add(f"xid:{event.groups['xid']}", event.line)
        if event.groups.get("call") == "cudnncreate" or event.id == "create-handle":
            add("create-call", event.line)
    _order(document, events, add)
    _stream_after_failure(document, events, add)
    _loader(document, events, extract, add)
    _versions(document, events, extract, add)
    _memory(document, events, add)
    _machine(document, events, extract, tables, add)
    _pauses(document, add)
    return tokens


def status_of(event: Event) -> str:
    """The cuDNN status that an event names, in one spelling for all majors; "" when it names none."""
    text = event.groups.get("status", "")
    for name, pattern in _STATUS_WORDS:
        if text and re.match(rf"(?:cudnn[_ ]status[_ ])?(?:{pattern})", text):
            return name
    code = event.groups.get("code", "")
    if event.kind == "cudnn" and code.isdigit():
        number = int(code)
        if number < 100:
            return _STATUS_8.get(number, "")
        return _STATUS_9.get(number) or {2: "bad-param", 3: "not-supported", 4: "internal-error", 5: "execution-failed"}.get(number // 1000, "")
    return ""


def _order(document: Document, events: list[Event], add: Any) -> None:
    """`fault-first`: by time where both have a stamp, else by place."""
    cudnn = [e for e in events if e.kind == "cudnn"]
    if not cudnn:
        return
    first = min(cudnn, key=lambda e: (_time(document, e), e.line))
    for event in events:
        if event.kind != "fault" or event.id == "event-status":
            continue
        here, there = document.lines[event.line].time, document.lines[first.line].time
        earlier = here <= there + _SECOND if here is not None and there is not None else event.line <= first.line
        if earlier:
            add("fault-first", event.line)


def _stream_after_failure(document: Document, events: list[Event], add: Any) -> None:
    """`cudnn-failed-before`: another cuDNN call failed before the stream could not be set."""
    streams = [e for e in events if e.id in ("set-stream", "set-stream-check", "set-stream-old")]
    for event in events:
        if not streams or event.id not in ("dnn-status", "enqueue", "rnn"):
            continue
        here, there = document.lines[event.line].time, document.lines[streams[0].line].time
        if (here <= there + _SECOND) if here is not None and there is not None else event.line < streams[0].line:
            add("cudnn-failed-before", event.line)


def _time(document: Document, event: Event) -> float:
    time = document.lines[event.line].time
    return time if time is not None else float("inf")


def _loader(document: Document, events: list[Event], extract: Extract, add: Any) -> None:
    for event in events:
        missing, want = event.groups.get("missing", ""), event.groups.get("want", "")
        if event.id in ("cudnn8-part", "cnn-infer-warning") and missing and "cudnn" not in missing:
            add("helper-named", event.line)
        if event.id == "helper-own":
            add("helper-named", event.line)
        if event.id == "cudnn8-part" and event.groups.get("win") == "126":
            add("cudnn8-part-windows", event.line)
        if event.id == "cudnn8-part" and "symbol" in event.groups:
            add("part-symbol", event.line)
        if event.id == "dlopen-cudnn":
            after = document.lines[event.line].text.lower().partition("dlerror:")[2].strip()
            named = after.split(":")[0].strip()
            if named and "cannot open" in after and "cudnn" not in named:
                add("dlopen-dependency", event.line)
                add("helper-named", event.line)
        wanted = re.search(r"(?:64_|\.so\.)(\d+)", event.groups.get("list", "") or want)
        if event.kind == "loader" and wanted and "cudnn" in (event.groups.get("list", "") or want):
            for stated in extract.others.get("cudnn_loaded", ()):
                major = _major(stated.value)
                if major and major != wanted[1]:
                    add("installed-other-major", event.line, stated.line)
    if "cudnn" in document.text:
        add("cudnn-named", next(i for i, line in enumerate(document.lines) if "cudnn" in line.text.lower()))


_CUDNN_FOR = re.compile(
    r"cudnn[^.\n]{0,60}?(?:for|built for|of) cuda[- ]?(\d{1,2}(?:\.\d)?)|cudnn-(\d{1,2}\.\d)-(?:linux|windows|osx)|libcudnn\d[^\n]{0,30}\+cuda(\d{1,2}\.\d)|cudnn-[\w.-]*_cuda(\d{1,2})"
)


def _flavour(document: Document, cuda: Stated | None, add: Any) -> None:
    """`cudnn-for-other-cuda`: the text names a cuDNN built for another CUDA than the one in use."""
    if cuda is None:
        return
    for match in _CUDNN_FOR.finditer(document.text):
        flavour = next(g for g in match.groups() if g)
        length = min(flavour.count("."), cuda.value.count(".")) + 1
        line = document.line_at(match.start())
        if not document.lines[line].log and numbers(flavour)[:length] != numbers(cuda.value)[:length]:
            add("cudnn-for-other-cuda", line, cuda.line)


def _major(version: str) -> str:
    if version.isdigit() and len(version) >= 4:
        return str(int(version) // (10000 if len(version) == 5 else 1000))
    return version.split(".")[0]


def dotted(version: str) -> str:
    """7201, "7.2.1", "(8, 3, 2)" in one dotted form."""
    parts = re.findall(r"\d+", version)
    if len(parts) == 1 and len(parts[0]) in (4, 5):
        number, base = int(parts[0]), 10000 if len(parts[0]) == 5 else 1000
        return f"{number // base}.{number % base // 100}.{number % 100}"
    return ".".join(parts)


def _versions(document: Document, events: list[Event], extract: Extract, add: Any) -> None:
    built_values: set[str] = set()
    for event in events:
        if event.id == "loaded-compiled" and "built" not in event.groups:
            add("version-line-cut", event.line)
            run = numbers(dotted(event.groups["run"]))
            for stated in extract.others.get("cudnn_loaded", ()):
                if stated.line != event.line and numbers(dotted(stated.value))[:2] > run[:2]:
                    add("states-other-cudnn", stated.line)
        if event.kind != "version" or "run" not in event.groups or "built" not in event.groups:
            continue
        run, built = numbers(dotted(event.groups["run"])), numbers(dotted(event.groups["built"]))
        built_values.add(event.groups["built"])
        if run[0] != built[0]:
            add("loaded-older-major" if run[0] < built[0] else "loaded-newer-major", event.line)
        elif run[:2] != built[:2]:
            add("loaded-older-minor" if run[:2] < built[:2] else "loaded-newer-minor", event.line)
        elif run[:3] != built[:3]:
            add("loaded-older-minor" if run[:3] < built[:3] else "loaded-newer-patch", event.line)
        text = document.text[sum(len(x.text.lower()) + 1 for x in document.lines[: event.line]) :][:400]
        if "compatibility version" in text or "compiled against" in text:
            add("old-version-message", event.line)
        for index, line in enumerate(document.lines):
            if not line.log and index != event.line and _mentions(line.text, dotted(event.groups["built"])):
                add("built-is-installed", index)
        for stated in extract.others.get("cudnn_loaded", ()):
            said = numbers(dotted(stated.value))
            if stated.line != event.line and len(said) > 1 and said[: min(2, len(run))] != run[:2] and said >= built[:2]:
                add("states-other-cudnn", stated.line)
    if len(built_values) > 1:
        add("two-builds-named", *(e.line for e in events if "built" in e.groups))


def _mentions(text: str, version: str) -> bool:
    """Whether a line of prose says that this very version is there."""
    if version not in text or re.search(r"compiled|built with|loaded|requires?|needs?|runtime", text, re.IGNORECASE):
        return False
    there = r"install|brought|have|has\b|list|pip|conda|there|put|copied|unpack|download|安装|装了|入れ|インストール|установ|instal|설치"
    return re.search(rf"(?<![\d.]){re.escape(version)}(?!\d)", text) is not None and re.search(there, text, re.IGNORECASE) is not None


def _memory(document: Document, events: list[Event], add: Any) -> None:
    for event in events:
        free, total = _bytes(event.groups.get("free", "")), _bytes(event.groups.get("total", ""))
        if event.id == "memory-usage" and free < _LITTLE:
            add("little-memory-free", event.line)
        if event.id == "free-at-start" and 0 < free < max(_LITTLE, total // 10):
            add("little-memory-at-start", event.line)
        if event.id == "smi-memory" and int(event.groups["used"]) > 0.93 * int(event.groups["total"]):
            add("little-memory-free", event.line)
    sizes: dict[bool, list[tuple[int, int]]] = {True: [], False: []}
    for index, line in enumerate(document.lines):
        text = line.text.lower()
        if line.log or ("batch" not in text and "threads" not in text and "workers" not in text):
            continue
        for match in re.finditer(r"(?:batch(?:[ _-]?size)?|threads|workers|批)\D{0,8}(\d{1,5})([^,;.]{0,60})", text):
            outcome = _outcome(match[2])
            if outcome is not None:
                sizes[outcome].append((int(match[1]), index))
    if sizes[True] and sizes[False]:
        good, bad = min(sizes[True]), max(sizes[False])
        if good[0] < bad[0]:
            add("size-threshold", good[1], bad[1])
            add("smaller-works", good[1], bad[1])


def _outcome(words: str) -> bool | None:
    """Whether the words after a size say that it works; None when they say nothing."""
    if re.search(r"error|fail|crash|oom|abort|stop|not work|报错|出错|失败|エラー|오류|ошибк|fehler|erro\b|erreur", words):
        return False
    if re.search(r"works|worked|fine|trains|\bok\b|runs|passes|正常|可以|没问题|動|정상|работает|läuft|funciona|roda|marche", words):
        return True
    return None


def _bytes(text: str) -> int:
    match = re.fullmatch(r"([\d.]+) ?([kmg]?)i?b?", text)
    if match is None or match[1].count(".") > 1 or match[1] == ".":
        return 0
    return int(float(match[1]) * _UNITS.get(match[2], 1))


def _machine(document: Document, events: list[Event], extract: Extract, tables: dict[str, Any], add: Any) -> None:
    facts = extract.facts
    system = _system(document, facts.get("os"), add)
    for name in extract.mentioned:
        if name == "faster-whisper":
            add("framework:ctranslate2", facts["framework"].line)
        if name in ("tensorflow", "jax", "pytorch", "ctranslate2") or name == facts["framework"].value:
            add(f"framework:{name}", facts["framework"].line)
    if "pytorch" in extract.mentioned and extract.mentioned[0] == "pytorch":
        add("framework:pytorch-alone", facts["framework"].line)
    _flavour(document, facts.get("cuda"), add)
    gpu, cc = _capability(events, facts.get("gpu"), tables)
    _gpu_class(gpu, cc, add)
    cuda = facts.get("cuda")
    framework, version = facts.get("framework"), facts.get("framework_version")
    wheel = _wheel(framework, version, tables)
    if cc and gpu is not None:
        _gpu_against(cc, gpu, cuda, extract, events, wheel, version, tables, add)
    driver = facts.get("driver")
    used = cuda.value if cuda else (wheel.get("cuda", "") if wheel else "")
    if driver and used:
        row = tables["drivers"].get(".".join(used.split(".")[:2]))
        least = row[1 if system == "windows" else 0] if row else ""
        if least:
            enough = at_least(driver.value.split("/")[0], least)
            line = cuda.line if cuda else driver.line
            if enough is not None:
                add("driver-fits-cuda" if enough else "driver-below-cuda", driver.line, line)
    if wheel and cuda and wheel.get("cudas") and "+" not in (version.value if version else "+"):
        if all(below(cuda.value, need) for need in wheel["cudas"]) and numbers(cuda.value)[0] < max(numbers(c)[0] for c in wheel["cudas"]):
            add("flavour-differs", cuda.line, version.line if version else -1)


def _system(document: Document, stated: Stated | None, add: Any) -> str:
    said = stated.value.lower() if stated else ""
    line = stated.line if stated else -1
    text = document.text
    if "wsl" in said or "subsystem for linux" in said or re.search(r"\bwsl ?2?\b|microsoft-standard", text):
        add("os:wsl", line)
        return "windows"  # the driver is that of Windows
    if said.startswith("win") or (not said and re.search(r"[a-z]:\\|\.dll\b|\bps c:|nvlddmkm", text)):
        add("os:windows", line)
        return "windows"
    if said and "mac" not in said and "os x" not in said:
        add("os:linux", line)
    return "linux"


def _capability(events: list[Event], gpu: Stated | None, tables: dict[str, Any]) -> tuple[Stated | None, str]:
    """The GPU (or the line that names its capability) and its compute capability."""
    if gpu is not None:
        name = gpu.value.removeprefix("nvidia ")
        spellings = "\n".join((name, f"geforce {name}", f"tesla {name}", f"quadro {name}"))
        for cc, regex in tables["gpu_names"]:
            if re.search(regex, spellings, re.IGNORECASE):
                return gpu, cc
        # "3090", "GTX 3090": the number alone tells the generation of a GeForce
        if match := re.search(r"(?<!\d)(10[5-8]0|16[356]0|20[5-8]0|30[5-9]0|40[5-9]0|50[5-9]0)(?!\d)", gpu.value):
            return gpu, {"10": "6.1", "16": "7.5", "20": "7.5", "30": "8.6", "40": "8.9", "50": "12.0"}[match[1][:2]]
    for event in events:
        if event.id == "torch-arch":
            sm = event.groups["sm"].removeprefix("sm_")
            return Stated(event.groups["sm"], event.line), f"{sm[:-1]}.{sm[-1]}"
        if event.id == "capability":
            cc = event.groups.get("cc", "")
            if "major" in event.groups:
                cc = f"{event.groups['major']}.{event.groups['minor']}"
            elif cc.isdigit():  # 860 of darknet, 86
                cc = cc[:2] if len(cc) == 3 and cc[0] != "1" else cc
                cc = f"{cc[:-1]}.{cc[-1]}"
            if 2 <= int(cc.split(".")[0]) <= 13:
                return gpu or Stated(cc, event.line), cc
    return gpu, ""


def _gpu_class(gpu: Stated | None, cc: str, add: Any) -> None:
    if gpu is None:
        return
    name = gpu.value.lower()
    if re.search(r"amd|radeon|\brx ?\d|instinct|apple|intel", name):
        return
    add("gpu:named", gpu.line)
    consumer = re.search(r"geforce|\b[rg]tx|\bgt ?\d|\bmx\d|titan|^\d{4}", name) and not re.search(r"rtx a\d|quadro", name)
    if consumer:
        add("gpu:consumer", gpu.line)
    elif re.search(r"\b(?:tesla|[vptkm]\d{2,3}(?![\d])\w?|a\d{2,3}(?!\d)\w?|h\d{2,3}|b\d{3}|gh200|gb\d{3}|l4\w?|l20)\b", name):
        add("gpu:datacenter", gpu.line)
    if cc:
        if consumer and numbers(cc) >= (7, 5):
            add("gpu:turing-or-later-consumer", gpu.line)
        if numbers(cc) >= (8, 0):
            add("gpu:recent", gpu.line)
        if numbers(cc) < (5, 0):
            add("gpu:old", gpu.line)
        if numbers(cc)[0] == 3:
            add("gpu:capability-3", gpu.line)


def _wheel(framework: Stated | None, version: Stated | None, tables: dict[str, Any]) -> dict[str, Any]:
    """What the matrix knows of the framework release: CUDA, architectures."""
    if framework is None or version is None or not version.value[0].isdigit():
        return {}
    releases: dict[str, dict[str, Any]] = tables["wheels"].get(framework.value, {})
    return releases.get(".".join(version.value.split("+")[0].split(".")[:2]), {})


def _gpu_against(
    cc: str, gpu: Stated, cuda: Stated | None, extract: Extract, events: list[Event], wheel: dict[str, Any],
    version: Stated | None, tables: dict[str, Any], add: Any,
) -> None:  # fmt: skip
    first, last, cudnn_first, cudnn_last = tables["gpus"].get(cc, ("", "", "", ""))
    runs_from = {"8.6": "11.0", "8.9": "11.1"}.get(cc, first)  # machine code of 8.0 and 8.6 runs on these
    if cuda and runs_from and below(cuda.value, runs_from):
        add("gpu-newer-than-cuda", gpu.line, cuda.line)
    if cuda and last and numbers(cuda.value) > numbers(last) and not below(cuda.value, f"{last}.99"):
        add("gpu-older-than-build", gpu.line, cuda.line)
    for event in events:
        if event.id == "opened-cuda":
            opened = event.groups["opened"]
            opened = f"{opened[:-1]}.{opened[-1]}" if len(opened) == 3 and "." not in opened else opened
            if opened.split(".")[0] in ("7", "8", "9", "10") and runs_from and below(opened if "." in opened else f"{opened}.2", runs_from):
                add("gpu-newer-than-opened", event.line, gpu.line)
    served = wheel.get("serves", {}).get(cc, "")
    line = version.line if version else -1
    if not cuda and wheel.get("cudas") and runs_from and all(below(c, runs_from) for c in wheel["cudas"]):
        served = "newer"
    if served == "newer":
        add("gpu-newer-than-wheel", gpu.line, line)
    if served == "older":
        add("gpu-older-than-build", gpu.line, line)
    loaded = extract.facts.get("cudnn_loaded")
    if loaded and cudnn_first and below(dotted(loaded.value), cudnn_first) and "." in dotted(loaded.value):
        add("cudnn-older-than-gpu", gpu.line, loaded.line)
    if loaded and cudnn_last and numbers(dotted(loaded.value))[:3] > numbers(cudnn_last):
        add("gpu-older-than-build", gpu.line, loaded.line)


def _pauses(document: Document, add: Any) -> None:
    """`long-gap`: a pause of minutes between two stamped lines with next to nothing between them."""
    before: tuple[float, int] | None = None
    for index, line in enumerate(document.lines):
        if line.time is None or not line.level:
            continue
        if before and _SILENCE <= line.time - before[0] <= 3600 and index - before[1] <= 4 and line.level in "IW":
            add("long-gap", before[1], index)
            return
        before = (line.time, index)
