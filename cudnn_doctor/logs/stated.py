"""What the text itself states of framework, CUDA, cuDNN, driver, GPU and system. Nothing is inferred.

Lines of the person who shows the error count, and lines that nobody in particular wrote (title, template); a second
person's facts are not merged in. What nvidia-smi calls "CUDA Version" is the driver's ceiling and no statement of the
CUDA in use; the same goes for the CUDA in a wheel's name and for nvcc beside wheels.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from itertools import accumulate

import msgspec

from cudnn_doctor.logs import stated_hardware as hardware
from cudnn_doctor.logs import stated_versions as versions
from cudnn_doctor.logs.document import WRAPPED, Document, Line
from cudnn_doctor.logs.patterns import FrameworkName, Names
from cudnn_doctor.logs.regex import rx
from cudnn_doctor.logs.signatures import Event, occurrences
from cudnn_doctor.logs.values import FactLine, Stated, upgraded

_VERSION = r"(?:\d\.x|\d{1,4}(?:\.\d{1,3}){1,3}(?:[.-]?(?:dev|alpha|beta|rc|post|pre|a|b)\.?\d*)?(?:\+[\w.]+)?)"
# One class for all single characters: two that overlap (Unicode has spaces beyond ASCII) can be walked in 2**n ways.
# White space, quotes, ":=|(,@v[-" and all beyond ASCII, said by what is not of it: a class that ends beyond ASCII takes
# milliseconds to compile.
_BETWEEN = (
    r"(?:[^\x00-\x08\x0e-\x1b!#-&)*+./0-9;<>?A-Z\\\]^_a-uw-z{}~\x7f]|\.__version__\)?|version|c\+\+|api|gpu|ver\.?|used"
    r"|is|was|release|from|pip|installed|nightly|or commit id)*"
)
_BETWEEN_AND_VERSION = rf"({_BETWEEN})({_VERSION}|nightly)"
_NAMED = r"(?<![\w/.\\-])(?:{})"
_PRINTED = r"(?:tf|torch|jax|jaxlib|mx|mxnet|tensorflow|paddle|ort|onnxruntime|keras)\.__version__\)?"
_OTHER_SUBJECT = r"(?<!-)cuda|cudnn|python|driver"
# What a template puts behind a field's name.
_HINTS = ("(e", "(i.e", "(use", "(if ", "(as op", "(for ex", "(optional", "(output of", "(please")
_HINT = (
    r"\((?:e\.? ?g\.?|i\.e|use (?:the )?command|if (?:compiling|the issue|any|applicable)|as opposed|for example"
    r"|optional|output of|please)[^()]{0,120}\)"
)
# Maven's and Gradle's names: "nd4j-cuda-9.2-platform" is nd4j, whose version stands on the next line.
_ARTIFACT = r"<artifactid>([a-z][a-z0-9_]{1,40}?)(?:[-_](?:cuda-\d+\.\d+|platform|gpu|native|core))*</artifactid>"
_ARTIFACT_VERSION = r"<version>([^<$]{1,40})</version>"
_INSTALLED = r"requirement already satisfied: (?:{})[^\n]{{0,200}}\(({})\)(?!\S)"  # pip's
_IMAGE = r"(?<=/)(?<!nvidia/)(?:{}):v?({})"  # NVIDIA's images have releases of their own
_BRACKETS = r"(?:{}) ?\((?:[a-z][a-z-]{{1,15}},? ){{1,2}}v?({})\)"  # "Caffe (BVLC, 1.0.0)"
_OVER = 12.0  # a language's own library is named before the language
NEAR = 48  # characters around the letters in which a name lies
_JAX_PATH = "external/org_tensorflow/"  # jaxlib is built from TensorFlow's tree, and its paths show it


class Extract(msgspec.Struct, frozen=True):
    """What is stated: all values for each key by the same person, the one that counts first."""

    others: dict[str, list[Stated]]
    mentioned: list[str]  # names of frameworks, most evidence first

    @property
    def facts(self) -> dict[str, Stated]:
        """The value that counts for each key."""
        return {key: stated[0] for key, stated in self.others.items() if stated}


def extract(document: Document, events: list[Event], lines: list[int], names: Names) -> Extract:
    """Facts stated on the lines with these indices."""
    chosen = list(_joined(document.lines, lines))
    found: dict[str, list[Stated]] = {}
    ranked = _frameworks(document, events, lines, names.frameworks)
    if ranked:
        found["framework"] = [ranked[0][1]]
        entry = next(f for f in names.frameworks if f.name == ranked[0][0])
        found["framework_version"] = list(_framework_version(chosen, entry))
    mixed = list(versions.cudnn_mixed(chosen))
    found["cudnn_loaded"] = [*_group(events, "run", lines), *(Stated(run, at) for run, _, at in mixed if run)]
    found["cudnn_loaded"] += versions.cudnn(document, chosen, events)
    found["cudnn_built"] = list(reversed(list(_group(events, "built", lines))))
    found["cudnn_built"] += [Stated(built, at) for _, built, at in mixed]
    found["cuda"] = list(versions.cuda(chosen))
    found["driver"] = list(versions.driver(chosen))
    found["gpu"] = list(hardware.gpus(document, chosen, events))
    found["os"] = list(hardware.systems(document, chosen, names.systems))
    return Extract(found, [name for name, _ in ranked])


def _joined(lines: list[Line], wanted: list[int]) -> Iterator[FactLine]:
    """Lower-case lines, a template's heading put before the value below it and a table's header before its cells."""
    header: list[str] = []
    heading = artifact = ""
    after = 0  # the line after one that was put together
    for index in wanted:
        if index < after:
            continue
        line = lines[index]
        text = line.text.lower()
        if line.cut is not None:
            text, after = _whole(lines, index)
        if " => " in text:  # OpenCV's template
            text = text.replace(" => ", ": ")
        if "(" in text and any(hint in text for hint in _HINTS):
            text = rx(_HINT).sub("", text)
        if text.startswith("|") and text.endswith("|"):
            cells = [c.strip(" *`") for c in text.strip("|").split("|")]
            if set(text) <= set("|-: "):
                continue
            if header and len(cells) == len(header) > 2:
                for name, cell in zip(header, cells, strict=True):
                    yield FactLine(index, f"{name}: {cell}", line.log)
            else:
                header = cells
                yield FactLine(index, " : ".join(cells), line.log)
            continue
        header = []
        if "artifact" in text and (named := rx(_ARTIFACT).search(text)):
            artifact = named[1]
        elif artifact and (version := rx(_ARTIFACT_VERSION).match(text)):
            yield FactLine(index, f"{artifact} {version[1]}", line.log)
            artifact = ""
            continue
        if heading and rx(r"\*\*[^*]{2,60}\*\*\s*:").match(text):  # the field above was left empty
            heading = ""
        text = _bare(text) if "**" in text else text.replace("`", "")
        if heading and text:
            yield FactLine(index, f"{heading}: {text}", line.log)
            heading = ""
            continue
        if _is_heading(text):
            heading = text.strip("#*_ :-")
            continue
        rest = "" if line.cut is not None else _wrapped_rest(lines, index)
        yield FactLine(index, text + rest, line.log)


def _whole(lines: list[Line], index: int) -> tuple[str, int]:
    """A line that a terminal broke put together again, and the index of the next one."""
    parts = [lines[index].text]
    while (glue := lines[index].cut) is not None and index + 1 < len(lines):
        index += 1
        parts += [glue, lines[index].text]
    return "".join(parts).lower(), index + 1


def _is_heading(text: str) -> bool:
    """A markdown heading or a bold line that names a field and holds no value."""
    if not text or len(text) > 60 or rx(r"\d").search(text):
        return False
    return text[0] == "#" or (text.startswith("**") and text.rstrip(":").endswith("**"))


def _wrapped_rest(lines: list[Line], index: int) -> str:
    """The first words of the next line where a sentence was wrapped by hand."""
    line = lines[index]
    if line.log or len(line.text) <= WRAPPED or line.text[-1] in ".:;!?" or index + 1 >= len(lines):
        return ""
    following = lines[index + 1]
    text = following.text
    return "" if following.log or not text[:1].isalnum() else " " + text[: text.find(" ", 12) % (len(text) + 1)].lower()


def _bare(text: str) -> str:
    """A line without markdown's stars where they only emphasise: "**CUDA**: 10.1"."""
    if text.startswith("**") and text.rstrip(":").endswith("**"):
        return text
    return text.replace("*", "").replace("`", "")


def _group(events: Iterable[Event], group: str, lines: list[int]) -> Iterator[Stated]:
    allowed = set(lines)
    for event in events:
        value = event.groups.get(group, "").strip("(). ")
        if value and event.kind in ("version", "good") and event.line in allowed:
            yield Stated(re.sub(r"\s*,\s*", ".", value), event.line)


def _frameworks(
    document: Document, events: list[Event], lines: list[int], table: list[FrameworkName]
) -> list[tuple[str, Stated]]:
    """Frameworks by evidence: output of their own counts most, then a mention with a version, then a mention."""
    ends = ("\n" if (cut := document.lines[i].cut) is None else cut for i in lines)
    texts = [document.lowered[i] + end for i, end in zip(lines, ends, strict=True)]
    whole = "".join(texts)
    starts = list(accumulate(map(len, texts), initial=0))

    def line_at(offset: int) -> int:
        return lines[bisect_right(starts, offset) - 1]

    allowed = set(lines)
    scored: list[tuple[float, str, Stated]] = []
    of_jax = _JAX_PATH in whole and "tf2tensorrt" not in whole
    spoken = [e for e in events if e.framework and e.line in allowed and e.kind not in ("noise", "other")]
    for entry in table:
        name = entry.name
        if entry.beside and not any(sign in whole for sign in entry.beside):
            continue
        signs = [s for s in entry.signs if s in whole and not (name == "tensorflow" and of_jax)]
        own = [e.line for e in spoken if e.framework == name]
        mention = _mention(entry, whole)
        score = 3.0 * len(signs) + 2 * bool(own) + (mention[0] if mention else 0)
        if name == "tensorflow" and score == 2 and "jax" in whole:  # what it prints, XLA prints for JAX
            score = 1.0
        if not score:
            continue
        places = [line_at(whole.index(s)) for s in signs[:1]]
        places += own[:1] + ([line_at(mention[1])] if mention else [])
        weight = 2 * entry.special + (_OVER if entry.beside else 0)
        scored.append((score + weight, name, Stated(name, places[0])))
    scored.sort(key=lambda s: (-s[0], s[1] == "keras"))
    return [(name, stated) for _, name, stated in scored]


def _mention(entry: FrameworkName, whole: str) -> tuple[float, int] | None:
    """The weight of the first mention by name and its place in the text; with a version it weighs more."""
    # The letters of a name are a cheap test before its expression is compiled, and a place to try it at.
    places = sorted(at for stem in entry.stems for at in occurrences(whole, stem))
    tried = (rx(_NAMED.format(entry.words)).search(whole, max(0, at - NEAR), at + NEAR) for at in places)
    match = next((m for m in tried if m), None)
    if match is None:
        return None
    version = rx(_BETWEEN_AND_VERSION).match(whole, match.end(), whole.find("\n", match.end()) % (len(whole) + 1))
    return (2.5 if version else 1.5), match.start()


def _framework_version(lines: list[FactLine], entry: FrameworkName) -> Iterator[Stated]:
    named, version = rx(_NAMED.format(entry.words)), rx(_BETWEEN_AND_VERSION)
    seen = False
    for index, line in enumerate(lines):
        if "__version__" in line.text and rx(_PRINTED).search(line.text):
            # Importing it may log before the version is printed.
            after = next((n for n in lines[index + 1 : index + 16] if n.text and not n.log), None)
            match = after and rx(rf"(?:out\[\d+\]: )?\W{{0,3}}({_VERSION})").match(after.text)
            if after and match:
                seen = True
                yield Stated(match[1], after.place)
    lines = [line for line in lines if any(stem in line.text for stem in entry.stems)]
    stated: list[Stated] = []
    for line in lines:
        for name in named.finditer(line.text):
            match = version.match(line.text, name.end())
            if match and not rx(_OTHER_SUBJECT).search(line.text[name.start() : match.start(2)].split(":")[0]):
                stated.append(Stated(upgraded(line.text, name.start(), match.start(2), match[2]), line.place))
    yield from sorted(stated, key=lambda s: s.value == "nightly")  # a template asks: "reproduced with nightly?"
    if stated or seen:
        return
    words = entry.words
    brackets = tuple(f"{stem} (" for stem in entry.stems)
    images = tuple(f"/{stem}:" for stem in entry.stems)
    for signs, pattern in ((("already satisfied",), _INSTALLED), (images, _IMAGE), (brackets, _BRACKETS)):
        for line in lines:
            if any(sign in line.text for sign in signs) and (
                match := rx(pattern.format(words, _VERSION)).search(line.text)
            ):
                seen = True
                yield Stated(match[1], line.place)
    if seen:
        return
    loose = rx(r"[- =:]{0,2}(\d{1,2}(?:\.\d+)?)(?![\d.])")
    for line in lines:
        names = list(named.finditer(line.text))
        if found := next((m for n in names if (m := loose.match(line.text, n.end()))), None):
            yield Stated(found[1], line.place)
        elif names and "nightly" in line.text[max(0, names[0].start() - 40) : names[-1].end() + 48]:
            yield Stated("nightly", line.place)


def in_wsl(document: Document, said: str) -> bool:
    """Whether the text is of Windows' Linux. `said`: the system as stated, "" for none."""
    text = document.text
    if "wsl" in said or "subsystem for linux" in said or "microsoft-standard" in text:
        return True
    return "wsl" in text and rx(r"\bwsl ?2?\b").search(text) is not None


def in_windows(document: Document, said: str) -> bool:
    """Whether the text is of Windows itself, by what it states or by its files and paths."""
    text = document.text
    if said:
        return said.startswith("win")
    traces = any(sign in text for sign in (".dll", "nvlddmkm", "ps c:"))
    return traces or (":\\" in text and rx(r"(?<![a-z])[a-z]:\\").search(text) is not None)  # no "failed:\n" of code
