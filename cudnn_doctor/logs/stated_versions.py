"""CUDA, cuDNN and driver versions as people, templates, package lists and logs state them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from cudnn_doctor.logs.document import Document
from cudnn_doctor.logs.regex import rx
from cudnn_doctor.logs.signatures import Event
from cudnn_doctor.logs.values import WISHED, FactLine, Stated, upgraded

_LINK = r"(?:(?:is|was|used|version|:)[\s:=]{0,3})?[^\x00-\x7f]{0,5}[\s:=v]{0,3}"  # between a name and its version
_NUMBER = r"(\d{1,2}(?:\.\d{1,3}){0,3})(?!\d|\.\*|[\d.]*(?:%|x\b|gb|gib|mb|mib|ms\b|s\b|/\d))"
_CUDA = (
    r"(?<![\w./:-])(?:(?<!\d\+)cuda|cuda(?=\d+\.\d))"
    r"(?:[ _-]?(?:toolkit|tookit|version;?|runtime|ver\b|sdk|driver version|lib(?:rary)?"
    r"|libraries|release|build))*(?: used to build pytorch)?(?:\s?\((?:and|toolkit|version)[^)]{0,20}\))?"
    r"[\s:=|(\"'`v,-]{0,5}" + _LINK + _NUMBER
)  # fmt: skip
# CuPy, darknet, cuda.h: 9000, 11020
_CODE_SIGNS = ("cuda runtime version", "cuda-version", "cuda_version", "cudart_version")
_CUDA_CODE = r"(?:cuda[-_ ](?:runtime[-_ ])?version|cudart_version)\W{1,4}(\d{1,2})0(\d)0\b"
_TORCH = r"version\.cuda[\s:=|(\"'`)#]{1,6}(\d{1,2}\.\d)"
_TORCH_BELOW = r"version\.cuda\)?\n(?:out\[\d+\]: )?['\"]?(\d{1,2}\.\d)\b"  # what an interpreter answers
_CMAKE = (
    r"cuda ?: yes \(ver\.? (\d{1,2}\.\d)|cuda detected: (\d{1,2}\.\d)"
    r"|found cuda(?:toolkit)?: [^()]{1,120}\(found (?:suitable )?version \"(\d{1,2}\.\d)"
)
_FOLDER = r"/usr/local/cuda-(\d{1,2}\.\d{1,2})(?![\d.])|cuda\\v(\d{1,2}\.\d{1,2})(?!\d)"
# Packages for one CUDA, which they do not bring.
_WHEEL_CUDA = r"(?<!\w)(?:(?:mxnet|cupy)[-_]cu(?:da)?|(?:nd4j|deeplearning4j)-cuda-)(7|8|9|1\d)\.?(\d)(?![\d.])"
_FILE = r"libcudnn\.so\.(\d{1,2}\.\d{1,2}\.\d{1,3})(?!\d)"
_MISSING = r"cannot|could ?n.t|could not|not found|no such|unable|missing"
_SMI_BEFORE = (
    r"nvidia[- ]smi\b[^.;,]{0,24}(?:show|say|print|report|display|list|give|tell|claim|output|zeigt|sagt|meldet"
    r"|显示|表示|muestra|mostra|affiche|показывает|pokazuje|:|=|\()[^.;,]{0,48}$"
)
_CUDA_JL = r"\[052768ef\]|\bpkg> |\b(?:flux|lux|knet|nnlibcuda) v\d"  # the package's version, not CUDA's
_SMI_AFTER = r"[^.;\n]{0,12}\b(?:nvidia-smi|from smi)\b"
_PADDLE = r"runtime api version: (\d{1,2}\.\d{1,2})"
_CUDA_SHORT = r"(?<![\w./:-])(?<!\d\+)cuda[-_]?(\d{1,2}(?:\.\d{1,2})?)\b(?!\d)|(?<![\w.])(\d{1,2}\.\d)cuda\b"
_CUDA_DIGITS = r"(?<![\w./:+-])cuda ?(7[05]|80|9[0-2]|1[0-2]\d)\b(?!\.)"  # "cuda80", "cuda101"
_MODULE = r"(?<![\w./-])(cuda|cudnn)/(\d{1,2}\.\d{1,2}(?:\.\d{1,3}){0,2})(?![\w./])"  # environment modules
_ONLY_WITH = (
    r"\W{0,2}(?:에서만|でのみ|でしか|才|only|or (?:newer|later|higher|above)|이상|以上"
    r"|\+(?! ?(?:cudnn|tf|tensorflow|pytorch|torch)))"
)
_CUDNN = (
    r"(?<![\w/-])(?<!(?<!backends)\.)(?:(?<!\d\+)(?:lib)?cu ?dnn|cudnn(?=\d+\.\d))"
    r"(?:[ _-]?(?:version;?|lib(?:rary)?|runtime|ver\b|sdk|release)|\.version\(\)\)?`?(?: returns)?)*"
    r"[\s:=|(\"'`v,-]{0,6}" + _LINK + r"(\d{1,2}(?:\.\d{1,3}){1,3}|\d{4,5}(?!\d)|[3-9](?![\d.,]?\d))"
    r"(?!\d|-(?:windows|linux|osx))"
)  # fmt: skip
_BUILT_FOR = r"(?:compiled|built|build) (?:with|against|for)[^.;,|]{0,28}$"
_V = r"(\d{1,5}(?:\.\d{1,3}){0,3})"
_RUN, _MADE = _V.replace("(", "(?P<run>", 1), _V.replace("(", "(?P<built>", 1)
_BUILT = (
    ("mixed dnn", rf"header is version {_MADE} while the library is version {_RUN}"),  # Theano
    ("unmatched", rf"libcudnn v{_RUN} with header v{_MADE} unmatched"),  # Paddle before 1.0
    (
        " but ",  # Paddle, TensorRT
        rf"(?:compiled|built|linked) (?:with|against) cudnn v?{_MADE},? but (?:\w+ )?"
        rf"(?:cudnn version in your machine is|loaded|runs? with|found|finds)(?: cudnn)? v?{_RUN}",
    ),
    ("cudnn build version", rf"^cudnn build version ?: {_MADE}"),  # CuPy
    # CMake of OpenCV and Caffe, then of others
    (": yes", rf"cudnn ?: yes \(ver\.? ?{_MADE}"),
    ("found cu", rf"found cu ?dnn: (?:[^()]{{1,160}}\(found (?:suitable )?version \"|v(?=\d)|ver\.? ){_MADE}"),
    ("built with cudnn", rf"^(?:- )?built with cudnn {_MADE}$"),  # torch.__config__.show()
)
_OWN_BUILD = r"\b(?:i|we|my|our)\b[^.;]{0,40} (?:compiled?|built|build) (?:it )?(?:with|against)[^.;|\d]{0,28}\bcu ?dnn"
_PAIR = (
    r"cuda ?(?:/|and|&|\+|,) ?cudnn(?!\.\w)[^\d\n]{0,24}(\d{1,2}(?:\.\d{1,3}){0,2})(?!\d)"
    r"(?: ?\([^()]{1,24}\))?(?: ?(?:/|and|&|\+|,|;|with|und|et|y|e) ?(?:cudnn)? ?v?\.?(\d{1,2}(?:\.\d{1,3}){0,3}))?"
)
_WHEEL = (
    r"nvidia[-_]cudnn(?:[-_]jit)?[-_]cu\d+(?:[\s=@|:]+|-(?=\d)|[^\n]{0,120}\((?=[\d.]+\)(?!\S)))(\d+(?:\.\d+){1,3})"
)
_ARCHIVE = r"cudnn-\d+\.\d-(?:windows|linux|osx)[\w-]*?-v(\d+(?:\.\d+){1,3})"  # names the CUDA first
_APT = r"\blibcudnn\d(?:-cuda-\d+)?[\s=/|]+(\d+\.\d+(?:\.\d+){0,2})"
_CONDA = r"(cudatoolkit|cudnn|cuda-version)[\s=]+(\d+(?:\.\d+){1,3})(?:[\s=]|$)"
_CELL = r"([^:]{0,40}\bcu ?dnn\b[^:]{0,40}) : v?(\d{4,5}(?!\d)|\d{1,2}(?:\.\d{1,3}){0,3}(?!\d))"
_IMAGE = r"nvidia/cuda:(\d+\.\d+(?:\.\d+)?)(?:-cudnn(\d+))?"
_TAG = r"[\w.-]+/[\w./-]+:[\w.-]*?[-_](?:cuda|cu)-?(\d{1,2}\.\d{1,2})(?:[-_.]cudnn(\d(?:\.\d{1,2}){0,2}))?"
_REPL = r"cudnn\.version\(\)\)?\n ?(\d{4,5})\b"
_PIP_SHOW = r"name: nvidia-cudnn-cu\d+\nversion: (\d+(?:\.\d+){1,3})"
_HEADER = r"#define cudnn_major (\d+)\n+#define cudnn_minor (\d+)\n+#define cudnn_patchlevel (\d+)"
_NEWER = (" or later", " or newer", " from this", "+", " and above", " or above")
_SMI_ROW = r"driver version: ?\d|nvidia-smi \d"
_SMI_DRIVER = r"nvidia-smi [\d.]+ +driver version: (\d{3}(?:\.\d+){1,2})"
_DRIVER_WORDS = (
    "driver",
    "geforce experience",
    "geforce game",
    "geforce studio",
    "was detected",
    "nvml",
    "nvidia",
    "kernel",
    "treiber",
    "驱动",
    "ドライバ",
    "драйвер",
    "드라이버",
    "pilote",
)
_DRIVER = (
    r"(?:driver|treiber|drivers|驱动|ドライバー?|драйвер|드라이버|pilote)"
    r"(?: ?(?:version|versions|ver\.|版本|is|was|no\.?))*[\s:=|(\"'`v,)-]{0,6}"
    r"(?:nvidia |now |currently |here |[^\s\d]{2,9} (?=\d{3}\.\d))?r?(\d{3}(?:\.\d{1,3}){0,2})(?! ?(?:mb|gb|mib|gib))"
)
_CONTAINER = r"with kernel driver version (\d{3}(?:\.\d+){1,2})|version (\d{3}(?:\.\d+){1,2}) was detected"
_DRIVER_OTHER = (
    r"nvidia-smi:? (\d{3}(?:\.\d+){1,2})|kernel module\s+(\d{3}(?:\.\d+){1,2})"
    r"|kernel reported version is: (\d{3}(?:\.\d+){1,2})|nvidia-(?:driver-)?(\d{3})(?!\d|\.\d)"
    r"|nvidia (\d{3}\.\d{2,3}(?:\.\d{2})?)\b"
    r"|geforce (?:experience|game[- ]ready|studio)[^\d.;\n]{0,32}(\d{3}\.\d{2})(?![\d.])"
    r"|(?<![\d.])(\d{3}\.\d{2,3}(?:\.\d{2})?) (?:nvidia |studio |game[- ]ready |gpu )?drivers?\b"
    r"|nvidia-linux-x86_64-(\d{3}(?:\.\d+){1,2})\.run|nvml library version: (\d{3}(?:\.\d+){1,2})"
    r"|kernel version (\d{3}(?:\.\d+){1,2}) does not match|<driver_version>(\d{3}(?:\.\d+){1,2})<"
)


def cuda(lines: list[FactLine]) -> Iterator[Stated]:
    """CUDA versions in use, as stated; then those of image names, and last those that folders and packages show.

    A runtime that a log opened is no statement: what it is called (cudart64_110.dll) says less than its version.
    """
    later: list[Stated] = []
    last: list[Stated] = []
    for number, line in enumerate(lines):
        text = line.text
        if "runtime api version: " in text and (paddle := rx(_PADDLE).search(text)):
            yield Stated(paddle[1], line.place)
        if "-cu" in text or "_cu" in text:
            last.extend(Stated(f"{m[1]}.{m[2]}", line.place) for m in rx(_WHEEL_CUDA).finditer(text))
        if "cuda" not in text or rx(_SMI_ROW).search(text) or _smi_query(lines, number):
            continue
        if any(sign in text for sign in _CODE_SIGNS) and (code := rx(_CUDA_CODE).search(text)):
            yield Stated(f"{code[1]}.{code[2]}", line.place)
        if "version.cuda" in text:
            below = lines[number + 1].text if number + 1 < len(lines) else ""
            if told := rx(_TORCH).search(text):
                yield Stated(told[1], line.place)
            elif told := rx(_TORCH_BELOW).search(f"{text}\n{below}"):
                yield Stated(told[1], lines[number + 1].place)
        if ("yes" in text or "found" in text or "detected" in text) and (made := rx(_CMAKE).search(text)):
            yield Stated(made[1] or made[2] or made[3], line.place)
        for match in _pairs(text):
            if _plausible(match[1]):
                yield Stated(match[1], line.place)
        for match in rx(_CUDA).finditer(text):
            if _says_cuda(text, match.start(), match.end(), match[0], match[1]):
                stated = Stated(upgraded(text, match.start(), match.start(1), match[1]), line.place)
                if text[match.start() - 1 : match.start()] == "+":  # what a package of cuDNN was made for
                    later.append(stated)
                else:
                    yield stated
        if text.startswith(("cudatoolkit", "cuda-version")) and (listed := rx(_CONDA).match(text)):
            yield Stated(listed[2], line.place)
        later.extend(Stated(image[1], line.place) for image in _images(text))
        short = (m[1] or m[2] for m in rx(_CUDA_SHORT).finditer(text))
        later.extend(Stated(value, line.place) for value in short if _plausible(value))
        later.extend(_modules(line, "cuda"))
        later.extend(Stated(f"{m[1][:-1]}.{m[1][-1]}", line.place) for m in rx(_CUDA_DIGITS).finditer(text))
    yield from later
    yield from _only(lines, ("/cuda-", "cuda\\v"), _FOLDER)
    yield from last


def _smi_query(lines: list[FactLine], number: int) -> bool:
    """Whether this is the "CUDA Version" of `nvidia-smi -q`: the driver's ceiling, as in its table."""
    if not lines[number].text.startswith("cuda version"):
        return False
    around = [n.text for n in lines[max(0, number - 8) : number + 2]]
    return any("nvsmi log" in text or text.startswith("attached gpus") for text in around)


def _only(lines: list[FactLine], signs: tuple[str, ...], pattern: str) -> Iterator[Stated]:
    """The version in the names of files or folders, where all name the same one."""
    found = {
        next(g for g in m.groups() if g): line.place
        for line in reversed(lines)
        if any(sign in line.text for sign in signs) and not (pattern == _FILE and rx(_MISSING).search(line.text))
        for m in rx(pattern).finditer(line.text)
    }
    if len(found) == 1:
        yield from (Stated(value, place) for value, place in found.items())


def _images(text: str) -> Iterator[re.Match[str]]:
    """Names of images that hold the CUDA and the cuDNN in them."""
    if "nvidia/cuda:" in text:
        yield from rx(_IMAGE).finditer(text)
    if "/" in text and ":" in text and any(sign in text for sign in ("-cu", "_cu")):
        yield from rx(_TAG).finditer(text)


def _modules(line: FactLine, name: str) -> Iterator[Stated]:
    """Versions of environment modules: "module load cuda/12.1.1"."""
    if f"{name}/" in line.text:
        yield from (Stated(m[2], line.place) for m in rx(_MODULE).finditer(line.text) if m[1] == name)


def _pairs(text: str) -> Iterator[re.Match[str]]:
    """ "CUDA/cuDNN version: 10.0 / 7.6" in its spellings."""
    close = text.replace(" ", "")
    if any(f"cuda{sign}cudnn" in close for sign in ("/", "and", "&", "+", ",")):
        yield from rx(_PAIR).finditer(text)


def _says_cuda(text: str, start: int, end: int, found: str, value: str) -> bool:
    before = text[max(0, start - 48) : start]
    if not _plausible(value) or "capability" in found or rx(WISHED).search(before):
        return False
    if rx(_ONLY_WITH).match(text, end):
        return False
    if "smi" in text and (rx(_SMI_BEFORE).search(text[:start]) or rx(_SMI_AFTER).match(text, end)):
        return False
    if "v" in found and rx(_CUDA_JL).search(text):
        return False
    if "driver" in before and "(" in before[before.rindex("driver") :]:  # "driver 595.71 (CUDA 13.2)": its ceiling
        return False
    return not (found.startswith(f"cuda:{value}") and "." not in value)  # a device


def _plausible(value: str) -> bool:
    return 5 <= int(value.partition(".")[0]) <= 19


def cudnn(document: Document, lines: list[FactLine], events: list[Event]) -> Iterator[Stated]:
    """cuDNN versions that are there, as stated; those of image names and of files last. That a log opened
    "libcudnn.so.7" is no statement by itself; where the person speaks of that file, it is.
    """
    allowed = {line.place for line in lines}
    if "cudnn.version" in document.text:
        for match in rx(_REPL).finditer(document.text):
            if (at := document.line_at(match.start(1))) in allowed:
                yield Stated(match[1], at)
    if "#define cudnn_major" in document.text:
        for match in rx(_HEADER).finditer(document.text):
            yield Stated(".".join(match.groups()), document.line_at(match.start()))
    if "name: nvidia-cudnn" in document.text:
        for match in rx(_PIP_SHOW).finditer(document.text):
            if (at := document.line_at(match.start(1))) in allowed:
                yield Stated(match[1], at)
    later: list[Stated] = []
    for line in lines:
        if "dnn" not in line.text:
            continue
        yield from _cudnn_on(line)
        later.extend(_modules(line, "cudnn"))
        later.extend(Stated(image[2], line.place) for image in _images(line.text) if image[2])
        if not line.log and ("compile" in line.text or "buil" in line.text) and rx(_OWN_BUILD).search(line.text):
            later.extend(Stated(m[1], line.place) for m in rx(_CUDNN).finditer(line.text))
    yield from later
    yield from _only(lines, ("libcudnn.so.",), _FILE)
    for event in events:
        if event.id == "opened-cudnn" and event.line in allowed and (number := event.groups.get("major")):
            names = (f"libcudnn.so.{number}", f"cudnn64_{number}")
            if any(name in line.text for line in _said(lines) for name in names):
                yield Stated(number, event.line)


def _said(lines: list[FactLine]) -> Iterator[FactLine]:
    """What people wrote, and not the rest of a log's line that was broken."""
    yield from (line for line in lines if not line.log and "opened dynamic" not in line.text)


def cudnn_mixed(lines: list[FactLine]) -> Iterator[tuple[str, str, int]]:
    """The cuDNN loaded ("" where it is not said) and the one built with, where one line tells the latter."""
    for line in lines:
        text = line.text
        if "dnn" not in text:
            continue
        for sign, pattern in _BUILT:
            if sign in text and (match := rx(pattern).search(text)):
                told = match.groupdict()
                yield (told.get("run") or ""), told["built"], line.place


def _cudnn_on(line: FactLine) -> Iterator[Stated]:
    text, index = line.text, line.place
    for sign, pattern in (("nvidia", _WHEEL), ("libcudnn", _APT), ("cudnn-", _ARCHIVE)):
        if sign in text:
            for match in rx(pattern).finditer(text):
                if not rx(WISHED).search(text[max(0, match.start() - 48) : match.start()]):
                    yield Stated(match[1], index)
    for match in _pairs(text):
        if match[2]:
            yield Stated(match[2], index)
    if text.startswith("cudnn") and (listed := rx(_CONDA).match(text)):
        yield Stated(listed[2], index)
    if " : " in text and (cell := rx(_CELL).match(text)) and "build" not in cell[1]:
        yield Stated(cell[2], index)
    if line.log and "version" not in text:  # what a log says of cuDNN it says in words of its own, matched elsewhere
        return
    for match in rx(_CUDNN).finditer(text):
        before = text[max(0, match.start() - 48) : match.start()]
        demanded = rx(WISHED).search(before) or rx(_BUILT_FOR).search(before)
        if not demanded and not text.startswith(_NEWER, match.end()):
            yield Stated(upgraded(text, match.start(), match.start(1), match[1]), index)


def driver(lines: list[FactLine]) -> Iterator[Stated]:
    """Driver releases; the one that TensorFlow only guesses to be insufficient last."""
    later: list[Stated] = []
    for line in lines:
        text = line.text
        if not any(word in text for word in _DRIVER_WORDS):
            continue
        if ("detected" in text or "kernel driver" in text) and (
            both := rx(_CONTAINER).search(text)
        ):  # the driver's own libraries of a container, and the driver
            yield Stated(both[1] or both[2], line.place)
            continue
        if table := rx(_SMI_DRIVER).search(text):  # under WSL nvidia-smi has a release of its own
            yield Stated(_unpadded(table[1]), line.place)
        for match in rx(_DRIVER_OTHER).finditer(text):
            yield Stated(_unpadded(next(g for g in match.groups() if g)), line.place)
        for match in rx(_DRIVER).finditer(text):
            before = text[max(0, match.start() - 48) : match.start()]
            if text.startswith(_NEWER, match.end()):
                continue
            if not 160 <= int(match[1][:3]) <= 799 or rx(WISHED).search(before):
                continue
            stated = Stated(_unpadded(upgraded(text, match.start(), match.start(1), match[1])), line.place)
            if "insufficient" in before:
                later.append(stated)
            else:
                yield stated
    yield from later


def _unpadded(release: str) -> str:
    """TensorFlow pads a two-part driver: 396.26.0."""
    return release.removesuffix(".0") if release.count(".") == 2 else release
