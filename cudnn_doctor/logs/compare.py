"""Stated facts against each other and against what the compatibility rules of part 1 say of them (`tables`)."""

from __future__ import annotations

from cudnn_doctor.logs.document import Document
from cudnn_doctor.logs.regex import rx
from cudnn_doctor.logs.signatures import Event
from cudnn_doctor.logs.stated import Extract
from cudnn_doctor.logs.values import NOT_STATED, Stated
from cudnn_doctor.model.observations import TokenSet
from cudnn_doctor.model.versions import at_least, below, numbers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# Programs that only warn of two versions and go on: harmless by itself, a reason where a cuDNN call fails.
WARNINGS = frozenset({"trt-linked", "mxnet-linked", "paddle-warns", "opencv-warns"})
_LITTLE = 300 << 20  # bytes of free memory that are too few for a handle and its workspace
_ENOUGH = 1 << 30  # bytes with which any handle can be made
_UNITS = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
_CUDNN_FOR = (
    r"cudnn.{0,60}?(?:for|built for|of) cuda[- ]?(\d{1,2}(?:\.\d)?)|cudnn-(\d{1,2}\.\d)-(?:linux|windows|osx)"
    r"|libcudnn\d[^\n]{0,30}\+cuda(\d{1,2}\.\d)|cudnn-[\w.-]*_cuda(\d{1,2})"
)
_THERE = (
    r"install|brought|have|has\b|list|pip|conda|there|put|copied|unpack|download|安装|装了|入れ|インストール|установ"
    r"|instal|설치"
)
_NOT_THERE = r"compiled|built with|loaded|requires?|needs?|runtime"
_FAILS = r"error|fail|crash|oom|abort|stop|not work|报错|出错|失败|エラー|오류|ошибк|fehler|erro\b|erreur"
_WORKS = r"works|worked|fine|trains|\bok\b|runs|passes|正常|可以|没问题|動|정상|работает|läuft|funciona|roda|marche"
_GEFORCE = r"(?:(?<![\da-z])|(?<=tx))(10[5-8]0|16[356]0|20[5-8]0|30[5-9]0|40[5-9]0|50[5-9]0)(?!\d)"
_GENERATION = {"10": "6.1", "16": "7.5", "20": "7.5", "30": "8.6", "40": "8.9", "50": "12.0"}
_RUNS_FROM = {"8.6": "11.0", "8.9": "11.1"}  # machine code of 8.0 and of 8.6 runs on these
_OTHER_VENDOR = r"amd|radeon|\brx ?\d|instinct|apple|intel"
_DATACENTER = r"\b(?:tesla|[vptkm]\d{2,3}(?!\d)\w?|a\d{2,3}(?!\d)\w?|h\d{2,3}|b\d{3}|gh200|gb\d{3}|l4\w?|l20)\b"


def major(version: str) -> str:
    """The major version of "7.6.5", "7605" or "91900"."""
    return dotted(version).split(".")[0]


def dotted(version: str) -> str:
    """7201, "7.2.1", "(8, 3, 2)" in one dotted form."""
    parts = rx(r"\d+").findall(version)
    if len(parts) == 1 and len(parts[0]) in (4, 5):
        number, base = int(parts[0]), 10000 if len(parts[0]) == 5 else 1000
        return f"{number // base}.{number % base // 100}.{number % 100}"
    return ".".join(parts)


def versions(document: Document, events: list[Event], extract: Extract, tokens: TokenSet) -> None:
    """The loaded cuDNN against the one compiled with, and against those that the text says to be installed."""
    built_values: set[str] = set()
    for event in events:
        if event.kind != "version" or "run" not in event.groups:
            continue
        run = numbers(dotted(event.groups["run"]))
        if event.id in WARNINGS:
            if run < numbers(dotted(event.groups["built"])):
                tokens.add("warned-older", event.line)
            continue
        if "built" not in event.groups:  # the line was cut
            tokens.add("version-line-cut", event.line)
            _other_copies(event, extract, run, run, tokens)
            continue
        built_values.add(event.groups["built"])
        built = numbers(dotted(event.groups["built"]))
        if run[0] != built[0]:
            tokens.add("loaded-older-major" if run[0] < built[0] else "loaded-newer-major", event.line)
        elif run[:2] != built[:2]:
            tokens.add("loaded-older-minor" if run[:2] < built[:2] else "loaded-newer-minor", event.line)
        elif run[:3] != built[:3]:
            tokens.add("loaded-older-minor" if run[:3] < built[:3] else "loaded-newer-patch", event.line)
        text = document.text[document.starts[event.line] :][:400]
        if "compatibility version" in text or "compiled against" in text:
            tokens.add("old-version-message", event.line)
        for index, line in enumerate(document.lines):
            if not line.log and index != event.line and _says_installed(line.text, dotted(event.groups["built"])):
                tokens.add("built-is-installed", index)
        _other_copies(event, extract, run, built, tokens)
    if len(built_values) > 1:
        tokens.add("two-builds-named", *(e.line for e in events if "built" in e.groups))


def _other_copies(
    event: Event, extract: Extract, run: tuple[int, ...], least: tuple[int, ...], tokens: TokenSet
) -> None:
    """`states-other-cudnn`: a suitable version is stated that is not the loaded one."""
    for stated in extract.others.get("cudnn_loaded", ()):
        said = numbers(dotted(stated.value))
        if stated.line != event.line and len(said) > 1 and said[:2] != run[:2] and said >= least[:2]:
            tokens.add("states-other-cudnn", stated.line)


def _says_installed(text: str, version: str) -> bool:
    """Whether a line of prose says that this very version is there."""
    if version not in text or rx(_NOT_THERE, 2).search(text):
        return False
    exact = rx(rf"(?<![\d.]){version.replace('.', '[.]')}(?!\d)").search(text)
    return exact is not None and rx(_THERE, 2).search(text) is not None


def memory(document: Document, events: list[Event], tokens: TokenSet) -> None:
    """Free memory that the text shows, and sizes of which one works and a larger one does not."""
    for event in events:
        free, total = _bytes(event.groups.get("free", "")), _bytes(event.groups.get("total", ""))
        if event.id == "memory-usage" and free < _LITTLE:
            tokens.add("little-memory-free", event.line)
        if event.id == "memory-usage" and free >= _ENOUGH:
            tokens.add("memory-is-free", event.line)
        if event.id == "free-at-start" and 0 < free < max(_LITTLE, total // 10):
            tokens.add("little-memory-at-start", event.line)
        if event.id == "smi-memory" and int(event.groups["used"]) > 0.93 * int(event.groups["total"]):
            tokens.add("little-memory-free", event.line)
    sizes: dict[bool, list[tuple[int, int]]] = {True: [], False: []}
    for index, line in enumerate(document.lines):
        text = document.lowered[index]
        if line.log or not ("batch" in text or "threads" in text or "workers" in text):
            continue
        for match in rx(r"(?:batch(?:[ _-]?size)?|threads|workers)\D{0,8}(\d{1,5})([^,;.]{0,60})").finditer(text):
            for outcome, pattern in ((False, _FAILS), (True, _WORKS)):
                if rx(pattern).search(match[2]):
                    sizes[outcome].append((int(match[1]), index))
                    break
    if sizes[True] and sizes[False] and min(sizes[True])[0] < max(sizes[False])[0]:
        lines = (min(sizes[True])[1], max(sizes[False])[1])
        tokens.add("size-threshold", *lines)
        tokens.add("smaller-works", *lines)


def _bytes(text: str) -> int:
    match = text and rx(r"(\d+(?:\.\d+)?) ?([kmg]?)i?b?").fullmatch(text)
    return int(float(match[1]) * _UNITS.get(match[2], 1)) if match else 0


def machine(
    document: Document, events: list[Event], extract: Extract, tables: dict[str, Any], tokens: TokenSet
) -> None:
    """System, framework, GPU, CUDA and driver against each other."""
    facts = extract.facts
    system = _system(document, facts.get("os"), tokens)
    framework, version, cuda = (facts.get(k) for k in ("framework", "framework_version", "cuda"))
    for name in extract.mentioned:
        if framework and (name in ("tensorflow", "jax", "pytorch", "ctranslate2") or name == framework.value):
            tokens.add(f"framework:{name}", framework.line)
        if framework and name == "faster-whisper":
            tokens.add("framework:ctranslate2", framework.line)
    if framework and extract.mentioned[:1] == ["pytorch"]:
        tokens.add("framework:pytorch-alone", framework.line)
    _flavour(document, cuda, tokens)
    _served_by_torch(document, events, tokens)
    gpu, cc = _capability(events, facts.get("gpu"), tables)
    _gpu_class(gpu, cc, tokens)
    wheel = _wheel(framework, version, tables, by_pip=rx(r"\bpip3?\b").search(document.text) is not None)
    if cc and gpu is not None:
        _gpu_against(cc, gpu, extract, events, wheel, tables, tokens)
    _driver(facts.get("driver"), cuda, wheel, system, tables, tokens)
    needs = wheel.get("cudas") or []
    if cuda and version and needs and "+" not in version.value:
        older = all(below(cuda.value, need) for need in needs)
        if older and numbers(cuda.value)[0] < max(numbers(need)[0] for need in needs):
            tokens.add("flavour-differs", cuda.line, version.line)


def _driver(
    driver: Stated | None, cuda: Stated | None, wheel: dict[str, Any], system: str, tables: dict[str, Any],
    tokens: TokenSet,
) -> None:  # fmt: skip
    used = cuda.value if cuda else wheel.get("cuda", "")
    row = tables["drivers"].get(".".join(used.split(".")[:2])) if used else None
    least = row[system == "windows"] if row else ""
    if driver is None or not least:
        return
    enough = at_least(driver.value, least)
    if enough is not None:
        tokens.add("driver-fits-cuda" if enough else "driver-below-cuda", driver.line, cuda.line if cuda else -1)


def _flavour(document: Document, cuda: Stated | None, tokens: TokenSet) -> None:
    """`cudnn-for-other-cuda`: the text names a cuDNN built for another CUDA than the one in use."""
    if cuda is None or not any(word in document.text for word in ("for cuda", "of cuda", "cudnn-", "+cuda")):
        return
    for match in rx(_CUDNN_FOR).finditer(document.said):
        flavour = next(g for g in match.groups() if g)
        length = min(flavour.count("."), cuda.value.count(".")) + 1
        line = document.line_at(match.start())
        if rx(NOT_STATED).search(document.said, max(0, match.start() - 48), match.start()):  # "for instance, download"
            continue
        if not document.lines[line].log and numbers(flavour)[:length] != numbers(cuda.value)[:length]:
            tokens.add("cudnn-for-other-cuda", line, cuda.line)


def _system(document: Document, stated: Stated | None, tokens: TokenSet) -> str:
    said = stated.value if stated else ""
    line = stated.line if stated else -1
    text = document.text
    wsl = "microsoft-standard" in text or ("wsl" in text and rx(r"\bwsl ?2?\b").search(text))
    if "wsl" in said or "subsystem for linux" in said or wsl:
        tokens.add("os:wsl", line)
        return "windows"  # the driver is that of Windows
    traces = any(sign in text for sign in (".dll", "nvlddmkm", "ps c:"))
    path = ":\\" in text and rx(r"(?<![a-z])[a-z]:\\").search(text) is not None  # no "failed:\n" of a program text
    if said.startswith("win") or (not said and (traces or path)):
        tokens.add("os:windows", line)
        return "windows"
    if said and "mac" not in said and "os x" not in said:
        tokens.add("os:linux", line)
    return "linux"


def _capability(events: list[Event], gpu: Stated | None, tables: dict[str, Any]) -> tuple[Stated | None, str]:
    """The GPU (or the line that names its capability) and its compute capability; "" when that is not known."""
    if gpu is not None:
        # "3090", "GTX 3090": the number alone tells the generation of a GeForce
        number = rx(_GEFORCE).search(gpu.value)
        if number and "quadro" not in gpu.value:
            return gpu, _GENERATION[number[1][:2]]
        name = rx(r"\b([rg]tx?)[ -]?(?=\d)").sub(r"\1 ", gpu.value.removeprefix("nvidia "))  # "gtx980m", "gtx-970"
        spellings = "\n".join((name, f"geforce {name}", f"tesla {name}", f"quadro {name}"))
        for cc, regex, stems in tables["gpu_names"]:
            if any(stem in spellings for stem in stems) and rx(regex, 2).search(spellings):
                return gpu, cc
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


def _served_by_torch(document: Document, events: list[Event], tokens: TokenSet) -> None:
    """`torch-cc-older`, `torch-cc-newer`: PyTorch lists what it is built for, and code for this GPU is not of it. In
    between it only warns: code for 8.0 runs on 8.7."""
    for event in events:
        if event.id != "torch-cc-list":
            continue
        own = numbers(event.groups["cc"])
        after = document.flat[document.starts[event.line] :][:2500]
        listed = [numbers(m) for m in rx(r"- (\d{1,2}\.\d) which supports").findall(after)]
        if shown := rx(r"was built for: (\d[\d., ]+\d)").search(after):
            listed += [numbers(n) for n in rx(r"\d+\.\d").findall(shown[1])]
        if span := rx(r"supported by this version of pytorch is +\((\d{1,2}\.\d)\) ?- ?\((\d{1,2}\.\d)\)").search(
            after
        ):
            listed += [numbers(span[1]), numbers(span[2])]
        least, most = (min(listed), max(listed)) if listed else ((7, 5), (9, 0))
        if own < least or own[0] > most[0]:
            tokens.add("torch-cc-older" if own < least else "torch-cc-newer", event.line)


def _gpu_class(gpu: Stated | None, cc: str, tokens: TokenSet) -> None:
    if gpu is None or rx(_OTHER_VENDOR).search(gpu.value):
        return
    name = gpu.value
    tokens.add("gpu:named", gpu.line)
    consumer = bool(rx(r"geforce|\b[rg]tx|\bgt ?\d|\bmx\d|titan|^\d{4}").search(name))
    consumer = consumer and not rx(r"rtx a\d|quadro").search(name)
    if consumer:
        tokens.add("gpu:consumer", gpu.line)
    elif rx(_DATACENTER).search(name):
        tokens.add("gpu:datacenter", gpu.line)
    if not cc:
        return
    if consumer and numbers(cc) >= (7, 5):
        tokens.add("gpu:turing-or-later-consumer", gpu.line)
    if numbers(cc) >= (8, 0):
        tokens.add("gpu:recent", gpu.line)
    tokens.add("gpu:old" if numbers(cc) < (5, 0) else "gpu:since-maxwell", gpu.line)
    if (5, 0) <= numbers(cc) < (7, 5):
        tokens.add("gpu:fading", gpu.line)
    if numbers(cc) < (3, 0):
        tokens.add("gpu:before-cudnn", gpu.line)
    if numbers(cc)[0] == 3:
        tokens.add("gpu:capability-3", gpu.line)


def _wheel(
    framework: Stated | None, version: Stated | None, tables: dict[str, Any], *, by_pip: bool
) -> dict[str, Any]:  # fmt: skip
    """What the matrix knows of the framework release: CUDA, GPUs that it does not serve. pip installs the first CUDA's
    where nobody asks for another one."""
    if framework is None or version is None or not version.value[0].isdigit():
        return {}
    releases: dict[str, dict[str, Any]] = tables["wheels"].get(framework.value, {})
    wheel = releases.get(".".join(version.value.split("+")[0].split(".")[:2]), {})
    return {**wheel, "cudas": wheel["cudas"][:1]} if wheel and by_pip and "+" not in version.value else wheel


def _gpu_against(
    cc: str, gpu: Stated, extract: Extract, events: list[Event], wheel: dict[str, Any], tables: dict[str, Any],
    tokens: TokenSet,
) -> None:  # fmt: skip
    """The GPU against the CUDA, the framework's wheel, the opened libraries and the cuDNN in use."""
    cuda, version, loaded = (extract.facts.get(k) for k in ("cuda", "framework_version", "cudnn_loaded"))
    first, last, cudnn_first, cudnn_last = tables["gpus"].get(cc, ("", "", "", ""))
    runs_from = _RUNS_FROM.get(cc, first)
    if cuda and runs_from and below(cuda.value, runs_from):
        tokens.add("gpu-newer-than-cuda", gpu.line, cuda.line)
    if cuda and last and not below(cuda.value, last) and not below(cuda.value, f"{last}.99"):
        tokens.add("gpu-older-than-build", gpu.line, cuda.line)
    for event in events:
        opened = event.groups.get("opened", "")
        if len(opened) == 3 and "." not in opened:  # cudart64_101.dll
            opened = f"{opened[:-1]}.{opened[-1]}"
        if "." not in opened:
            opened = f"{opened}.2"  # libcublas.so.10 is of CUDA 10.1 or 10.2
        if opened.split(".")[0] in ("7", "8", "9", "10") and runs_from and below(opened, runs_from):
            tokens.add("gpu-newer-than-opened", event.line, gpu.line)
    served = wheel.get("serves", {}).get(cc, "")
    if not cuda and wheel.get("cudas") and runs_from and all(below(c, runs_from) for c in wheel["cudas"]):
        served = "newer"
    if served:
        token = "gpu-newer-than-wheel" if served == "newer" else "gpu-older-than-build"
        tokens.add(token, gpu.line, version.line if version else -1)
    if loaded and cudnn_first and "." in dotted(loaded.value) and below(dotted(loaded.value), cudnn_first):
        tokens.add("cudnn-older-than-gpu", gpu.line, loaded.line)
    if loaded and cudnn_last and "." in dotted(loaded.value) and not below(dotted(loaded.value), f"{cudnn_last}.99"):
        tokens.add("gpu-older-than-build", gpu.line, loaded.line)
