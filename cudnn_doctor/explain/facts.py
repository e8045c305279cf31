"""What the text itself states of framework, CUDA, cuDNN, driver, GPU and system. Nothing is inferred.

Lines of the person who shows the error count, and lines that nobody in particular wrote (title, template); a second
person's facts are not merged in. What nvidia-smi calls "CUDA Version" is the driver's ceiling and no statement of the
CUDA in use; the same goes for the CUDA in a wheel's name and for nvcc beside wheels.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from cudnn_doctor.explain.document import Document, Line
from cudnn_doctor.explain.signatures import WRAPPED, Event

_VERSION = r"(?:\d\.x|\d{1,4}(?:\.\d{1,3}){1,3}(?:[.-]?(?:dev|alpha|beta|rc|post|pre|a|b)\.?\d*)?(?:\+[\w.]+)?)"
_BETWEEN = r"(?:[\s\"'`:=|(,@v\[-]|\.__version__\)?|[^\x00-\x7f]|version|c\+\+|api|gpu|ver\.?|used|is|was|release|from|pip|installed|nightly|の|バージョン|版本|为|是|은|는)*"
_NUMBER = r"(\d{1,2}(?:\.\d{1,3}){0,3})(?![\d.]*(?:%|x\b|gb|gib|mb|mib|ms\b|s\b|/\d))"

_CUDA = re.compile(
    r"(?<![\w+./:-])cuda(?:[ _-]?(?:toolkit|tookit|version|runtime|ver\b|sdk|driver version|lib(?:rary)?|libraries|release))*"
    r"(?: used to build pytorch)?(?:\s?\((?:and|toolkit|version)[^)]{0,20}\))?[\s:=|(\"'`v,-]{0,5}(?:(?:is|was|used|version|:)[\s:=]{0,3})?[^\x00-\x7f]{0,5}[\s:=v]{0,3}" + _NUMBER
)
_CUDA_SHORT = re.compile(r"(?<![\w+./:-])(?:cuda|cu)[-_]?(\d{1,2}(?:\.\d{1,2})?)\b(?!\d)")
_CUDNN = re.compile(
    r"(?<![\w+./-])(?:lib)?cu ?dnn(?:[ _-]?(?:version|lib(?:rary)?|runtime|ver\b|sdk|release))*[\s:=|(\"'`v,-]{0,6}(?:(?:is|was|used|version|:)[\s:=]{0,3})?[^\x00-\x7f]{0,5}[\s:=v]{0,3}"
    r"(\d{1,2}(?:\.\d{1,3}){1,3}|\d{4,5}(?!\d)|[3-9](?![\d.,]?\d))"
)
_PAIR = re.compile(r"cuda ?(?:/|and|&|\+|,) ?cudnn[^\d\n]{0,24}(\d{1,2}(?:\.\d{1,3}){0,2})(?: ?(?:/|and|&|\+|,|;|with|und|et|y|e) ?(?:cudnn)? ?v?\.?(\d{1,2}(?:\.\d{1,3}){0,3}))?")
_WHEEL = re.compile(r"nvidia[-_]cudnn[-_]cu\d+[\s=@|:]+(\d+(?:\.\d+){1,3})")
_APT = re.compile(r"\blibcudnn\d(?:-cuda-\d+)?[\s=/|]+(\d+\.\d+(?:\.\d+){0,2})")
_CONDA = re.compile(r"^(cudatoolkit|cudnn|tensorflow(?:-gpu)?|pytorch|jaxlib|cuda-version)[\s=]+(\d+(?:\.\d+){1,3})(?:[\s=]|$)")
# What a template puts behind a field's name.
_HINT = re.compile(r"\((?:e\.? ?g\.?|i\.e|use (?:the )?command|if (?:compiling|the issue|any|applicable)|as opposed|for example|optional|output of|please)[^()]{0,120}\)")
_CELL = re.compile(r"^([^:]{0,40}\bcu ?dnn\b[^:]{0,40}) : v?(\d{1,2}(?:\.\d{1,3}){0,3})")
_IMAGE = re.compile(r"nvidia/cuda:(\d+\.\d+(?:\.\d+)?)(?:-cudnn(\d+))?")
_DRIVER = re.compile(
    r"(?:driver|treiber|drivers|驱动|ドライバー?|драйвер|드라이버|pilote)(?: ?(?:version|versions|ver\.|版本|is|was|no\.?))*[\s:=|(\"'`v,)-]{0,6}(?:nvidia |now |currently |here |\w{2,9} (?=\d{3}\.\d))?(?:file contents: \S* ?nvrm[^\n]{0,60}module )?"
    r"r?(\d{3}(?:\.\d{1,3}){0,2})(?! ?(?:mb|gb|mib|gib))"
)
_DRIVER_OTHER = re.compile(
    r"nvidia-smi:? (\d{3}(?:\.\d+){1,2})|kernel module\s+(\d{3}(?:\.\d+){1,2})|kernel reported version is: (\d{3}(?:\.\d+){1,2})|nvidia-driver-(\d{3})|nvidia (\d{3}\.\d{2,3}(?:\.\d{2})?)\b"
    r"|(?<![\d.])(\d{3}\.\d{2,3}(?:\.\d{2})?) (?:nvidia |studio |game[- ]ready |gpu )?drivers?\b"
    r"|kernel version (\d{3}(?:\.\d+){1,2}) does not match|<driver_version>(\d{3}(?:\.\d+){1,2})<"
)
_NOT_STATED = re.compile(
    r"cuda capability|compute capability|(?:requires?|needs?|need|wants?|expects?|asks? for|downloading|download|supports?(?: cuda)?|only (?:works |runs )?(?:with|on|in|from)|older than|newer than|at least|in case of|instead of|which has|works with|recommends?|should (?:be|use)|documentation|latest is|minimum)[^.;,|]{0,28}$"
)
_BUILT_FOR = re.compile(r"(?:compiled|built|build) (?:with|against|for)[^.;,|]{0,28}$")
_GPU = re.compile(
    r"(?<![\w-])(?:nvidia )?(?:geforce )?(?:"
    r"(?:rtx|gtx|gt|gts|mx)[ -]?(?:titan(?: (?:x|xp|v|z|black))?|a?\d{3,4})(?:[ -]?(?:ti super|super|ti|d|m|s|mobile|max-q))?(?: ?(?:laptop|mobile|max-q|super|ada(?: generation)?|blackwell))?(?:(?: with)? max-q(?: design)?)?(?: gpu)?"
    r"|(?<=geforce )\d{3,4}mx?|9[1-4]0mx?|8[1-4]0m|[rg]tx ?\d{2} ?series|(?<=nvidia )[pt]\d{3,4}|p[2-6]000"
    r"|rtx pro \d{4}(?: blackwell)?|rtx a\d{3,4}|rtx \d{4} ada(?: generation)?"
    r"|(?:gtx )?titan (?:x(?: ?\(pascal\)| pascal)?|xp|v|z|black|rtx)|(?:nvidia )?titan(?: rtx|xp| xp)|(?<=nvidia )titan|titan(?= gpu)|\d{4} ?(?:ti super|super|ti)\b"
    r"|quadro (?:rtx )?[a-z]{0,2}\d{3,4}[a-z]{0,2}|tesla [a-z]\d{1,3}[a-z]?|nvs \d+|grid [a-z]\d+"
    r"|(?:tesla )?(?:v100s?|p100|k80|k40[cm]?|k20[cmx]?|m60|m40|p40|p4|a100|a800|a40|a30|a10g?|a16|a6000|a5000|a4000|l40s?|l20|l4|h100|h200|h800|h20|gh200|b100|b200|b300|gb200|gb300|gb10|t4)(?:[- ](?:sxm\d?|pcie|nvl|hbm\d\w?|\d{2,3} ?gb)){0,3}"
    r"|(?:jetson )?agx (?:orin|xavier)|jetson (?:agx |orin |xavier )?(?:xavier|orin|nano|nx|tx1|tx2|tk1|thor)(?: nx| nano| agx)?|dgx spark|drive (?:px2|agx|orin)"
    r")(?![\w%])"
)
_OTHER_GPU = re.compile(
    r"(?:amd )?radeon(?: (?:pro|rx|r9|r7|vii|vega|instinct))*(?: \w{1,6})?|amd gpu|\brx ?[4-9]\d{2,3}(?: ?xtx?)?|instinct mi\d{2,3}\w?|apple m\d|intel arc(?: \w+)?"
)
_ONLY_WITH = re.compile(r"\W{0,2}(?:에서만|でのみ|でしか|才|only|or (?:newer|later|higher|above)|이상|以上|\+)")
_GPU_LOG = re.compile(
    r"name: ((?:nvidia |geforce |tesla |quadro |titan |grid )?[^,\n]{3,48}?)(?:,| major:| computecapability| pci)|gpu \d+: ((?:nvidia |geforce |tesla |quadro )[^(\n]{3,48}?)(?: \(uuid|$)|<product_name>([^<]{3,60})<|found gpu\d (.{3,48}?) which"
)
_GPU_SHORT = re.compile(
    r"(?:gpu|card|graphics|nvidia|geforce|显卡|显存|placa|karte|видеокарт|carte|tarjeta|グラボ|그래픽)[^\n]{0,24}?\b((?:10[5-8]0|20[678]0|30[5-9]0|40[5-9]0|50[5-9]0|16[56]0)(?: ?ti)?)(?!\d)"
    r"|\b((?:10[5-8]0|20[678]0|30[5-9]0|40[5-9]0|50[5-9]0|16[56]0)(?: ?ti)?) (?:gpu|card|graphics|karte)"
)
_REPL = re.compile(r"cudnn\.version\(\)\)?\n ?(\d{4,5})\b")
_HEADER = re.compile(r"#define cudnn_major (\d+)\n#define cudnn_minor (\d+)\n#define cudnn_patchlevel (\d+)")
_SMI_ROW = re.compile(r"driver version: ?\d|nvidia-smi \d")


_JAX_PATH = "external/org_tensorflow/"  # jaxlib is built from TensorFlow's tree, and its paths show it


class Stated(NamedTuple):
    """A stated value and the index of its line."""

    value: str
    line: int


class Extract(NamedTuple):
    facts: dict[str, Stated]
    others: dict[str, tuple[Stated, ...]]  # further values stated for the same key by the same person
    mentioned: tuple[str, ...]  # names of frameworks, most evidence first


def extract(document: Document, events: list[Event], lines: list[int], table: dict[str, Any]) -> Extract:
    """Facts stated on the lines with these indices."""
    chosen = list(_joined(document.lines, lines))
    found: dict[str, list[Stated]] = {}
    ranked = _frameworks(document, events, lines, table["frameworks"])
    if ranked:
        found["framework"] = [ranked[0][1]]
        words = next(f["words"] for f in table["frameworks"] if f["name"] == ranked[0][0])
        found["framework_version"] = list(_framework_version(chosen, words))
    found["cudnn_loaded"] = [*_group(events, "run", lines), *_cudnn(document, chosen, events)]
    found["cudnn_built"] = list(reversed(list(_group(events, "built", lines))))
    found["cuda"] = list(_cuda(chosen))
    found["driver"] = list(_driver(chosen))
    found["gpu"] = list(_gpu(document, chosen, events))
    found["os"] = list(_os(chosen, table["systems"]))
    facts = {key: values[0] for key, values in found.items() if values}
    return Extract(facts, {key: tuple(values) for key, values in found.items()}, tuple(name for name, _ in ranked))


def _joined(lines: list[Line], wanted: list[int]) -> Iterator[tuple[int, str, bool]]:
    """Lower-case lines, a template's heading put before the value below it and a table's header before its cells."""
    header: list[str] = []
    heading = ""
    for index in wanted:
        line = lines[index]
        text = line.text.lower()
        if "(" in text:
            text = _HINT.sub("", text)
        if text.startswith("|") and text.endswith("|"):
            cells = [c.strip(" *`") for c in text.strip("|").split("|")]
            if set(text) <= set("|-: "):
                continue
            if header and len(cells) == len(header) and len(cells) > 2:
                for name, cell in zip(header, cells, strict=True):
                    yield index, f"{name}: {cell}", line.log
                continue
            header = cells
            yield index, " : ".join(cells), line.log
            continue
        header = []
        text = text.replace("`", "") if heading or "**" not in text else _bare(text)
        bare = text.strip("#*_ :-")
        if heading and text:
            yield index, f"{heading}: {text}", line.log
            heading = ""
            continue
        if text and (text[0] == "#" or (text.startswith("**") and text.rstrip(":").endswith("**"))) and len(bare) < 60:
            heading = bare if not re.search(r"\d", bare) else ""
            if heading:
                continue
        if not line.log and len(text) > WRAPPED and text[-1] not in ".:;!?" and index + 1 < len(lines):
            following = lines[index + 1]
            if not following.log and following.text[:1].isalnum():
                text += " " + following.text[:16].lower()  # a sentence that was wrapped by hand
        yield index, text, line.log


def _bare(text: str) -> str:
    """A line without markdown's stars where they only emphasise: "**CUDA**: 10.1"."""
    return text if text.rstrip(":").endswith("**") and text.startswith("**") else text.replace("*", "").replace("`", "")


def _group(events: Iterable[Event], group: str, lines: list[int]) -> Iterator[Stated]:
    allowed = set(lines)
    for event in events:
        value = event.groups.get(group, "").strip("(). ")
        if value and event.kind in ("version", "good") and event.line in allowed:
            yield Stated(re.sub(r"\s*,\s*", ".", value), event.line)


def _cuda(lines: list[tuple[int, str, bool]]) -> Iterator[Stated]:
    later: list[Stated] = []
    for index, text, _log in lines:
        if "cu" not in text:
            continue
        if _SMI_ROW.search(text):
            continue
        for match in _PAIR.finditer(text):
            if _plausible_cuda(match[1]):
                yield Stated(match[1], index)
        for match in _CUDA.finditer(text):
            before = text[max(0, match.start() - 48) : match.start()]
            after = text[match.end() : match.end() + 16]
            if not _plausible_cuda(match[1]) or _NOT_STATED.search(before) or _ONLY_WITH.match(after) or "capability" in match[0]:
                continue
            if "driver" in before and "(" in before[before.rindex("driver") :]:  # "driver 595.71 (CUDA 13.2)": its ceiling
                continue
            if match[0].startswith("cuda:") and "." not in match[1]:  # a device
                continue
            yield Stated(match[1], index)
        if match := _CONDA.match(text):
            if match[1] in ("cudatoolkit", "cuda-version"):
                yield Stated(match[2], index)
        if match := _IMAGE.search(text):
            later.append(Stated(match[1], index))
        for match in _CUDA_SHORT.finditer(text):
            if _plausible_cuda(match[1]) and match[0].startswith("cuda"):
                later.append(Stated(match[1], index))
    yield from later


def _plausible_cuda(value: str) -> bool:
    major = int(value.split(".")[0])
    return 5 <= major <= 19


def _cudnn(document: Document, lines: list[tuple[int, str, bool]], events: list[Event]) -> Iterator[Stated]:
    allowed = {index for index, _, _ in lines}
    later: list[Stated] = []
    for match in _REPL.finditer(document.text):
        line = document.line_at(match.start(1))
        if line in allowed:
            yield Stated(match[1], line)
    for match in _HEADER.finditer(document.text):
        yield Stated(".".join(match.groups()), document.line_at(match.start()))
    for index, text, log in lines:
        if "dnn" not in text:
            continue
        for pattern in (_WHEEL, _APT):
            for match in pattern.finditer(text):
                yield Stated(match[1], index)
        for match in _PAIR.finditer(text):
            if match[2]:
                yield Stated(match[2], index)
        if match := _CONDA.match(text):
            if match[1] == "cudnn":
                yield Stated(match[2], index)
        if match := _IMAGE.search(text):
            if match[2]:
                later.append(Stated(match[2], index))
        if match := _CELL.match(text):
            yield Stated(match[2], index)
        if log and "version" not in text:  # what a log says of cuDNN it says in words of its own, matched above
            continue
        for match in _CUDNN.finditer(text):
            before = text[max(0, match.start() - 48) : match.start()]
            after = text[match.end() : match.end() + 24]
            if _NOT_STATED.search(before) or _BUILT_FOR.search(before) or after.startswith((" or later", " or newer", " from this", "+", " and above", " or above")):
                continue
            yield Stated(match[1], index)
    yield from later
    for event in events:
        if event.id == "opened-cudnn" and event.line in allowed and event.groups.get("major"):
            yield Stated(event.groups["major"], event.line)


def _driver(lines: list[tuple[int, str, bool]]) -> Iterator[Stated]:
    later: list[Stated] = []
    for index, text, _log in lines:
        for match in _DRIVER_OTHER.finditer(text):
            yield Stated(_unpadded(next(g for g in match.groups() if g)), index)
        for match in _DRIVER.finditer(text):
            value = match[1]
            if not 160 <= int(value[:3]) <= 799 or _NOT_STATED.search(text[max(0, match.start() - 48) : match.start()]):
                continue
            stated = Stated(_unpadded(value), index)
            if "insufficient" in text[: match.start()]:
                later.append(stated)
            else:
                yield stated
    yield from later


def _unpadded(driver: str) -> str:
    """TensorFlow pads a two-part driver: 396.26.0."""
    return driver.removesuffix(".0") if driver.count(".") == 2 else driver


def _capital(document: Document, line: int, name: str) -> bool:
    return name.upper() in document.lines[line].text


def _gpu(document: Document, lines: list[tuple[int, str, bool]], events: list[Event]) -> Iterator[Stated]:
    """GPUs that logs name, then those of people: the one that is said to be theirs before others, never one that works."""
    elsewhere = {e.line for e in events if e.id == "other-gpu-works"}
    prose: list[tuple[int, Stated]] = []
    fine: set[str] = set()
    for index, text, _log in lines:
        for match in _GPU_LOG.finditer(text):
            name = next(g for g in match.groups() if g).strip()
            if re.search(r"\d|titan|orin|xavier|thor", name) and not name.startswith(("conv", "model", "layer")):
                yield Stated(name, index)
        for match in (*_GPU.finditer(text), *_GPU_SHORT.finditer(text)):
            name = next((g for g in match.groups() if g), match[0]).strip(" -")
            if len(name) < 4 and not _capital(document, index, name):  # "p4", "a10" are words as well
                continue
            start = text.find(name, match.start())
            before, after = text[max(0, start - 32) : start], text[start + len(name) : start + len(name) + 32]
            if _WORKS_AFTER.match(after) or (index in elsewhere and _WORKS_BEFORE.search(before)):
                fine.add(_key(name))
            mine = 2 if _MINE.search(before) or _FAILS_AFTER.match(after) else 0
            prose.append((mine + (match.re is _GPU), Stated(name, index)))
    if not prose:
        yield from (Stated(m[0].strip(), index) for index, text, _log in lines for m in _OTHER_GPU.finditer(text))
    others = [p for p in prose if _key(p[1].value) not in fine] or prose
    for _, stated in sorted(others, key=lambda p: -p[0]):
        yield stated


def _key(name: str) -> str:
    """What identifies a GPU in its spellings: "RTX 2080 Ti" and "2080ti" are one."""
    return re.sub(r"nvidia|geforce|tesla|quadro|[gr]tx|laptop|gpu|\W", "", name)


_WORKS_AFTER = re.compile(r"[ ,:-]{0,3}(?:it )?(?:works|runs|trains|is fine|has no|goes through|passes|正常|没问题|可以|läuft|funktioniert|funciona|roda|работает|marche|動)")
_FAILS_AFTER = re.compile(r"[ ,:-]{0,3}(?:it )?(?:fails|gives|crashes|does not|doesn.t|stops|aborts|raises|shows the|throws)")
_WORKS_BEFORE = re.compile(
    r"(?:machine|server|computer|card|gpu|box|instance|works?|runs?|trains?|fine|problem\w*|roda|funciona\w*|läuft|numa|num)[^.]{0,30}$"
)
_MINE = re.compile(r"(?:my|our|this|the|meine?|minha|mi|mon|ma) (?:new )?(?:gpu|card|graphics card|karte|placa|tarjeta|carte)(?: is| =|:)?(?: an?)? ?$|(?:gpu|card|karte|placa|显卡|显存|グラボ)[^\w\n]{0,3}(?:is|:|=|是|は|model[^:]{0,20}:)? ?(?:an? )?$")


def _os(lines: list[tuple[int, str, bool]], patterns: list[str]) -> Iterator[Stated]:
    """Systems in the text's order, the bare words "Linux" and "Windows" after those that say more."""
    compiled = [re.compile(rf"(?<![a-z0-9_.\\/-])(?:{p})(?![a-z0-9_\\])") for p in patterns]
    ranked: list[tuple[bool, int, int, Stated]] = []
    for index, text, log in lines:
        if log and not text.startswith(("os:", "platform")):
            continue
        for pattern in compiled:
            if match := pattern.search(text):
                name = match[0].strip(" -(")
                ranked.append((name in _BARE_SYSTEMS, index, match.start(), Stated(name, index)))
    for *_, stated in sorted(ranked, key=lambda r: r[:3]):
        yield stated


_BARE_SYSTEMS = frozenset({"linux", "windows", "win64", "win32"})


def _frameworks(
    document: Document, events: list[Event], lines: list[int], table: list[dict[str, Any]]
) -> list[tuple[str, Stated]]:
    """Frameworks by evidence: output of their own counts most, then a mention with a version, then a mention."""
    text = {i: document.lines[i].text.lower() for i in lines}
    whole = "\n".join(text.values())
    scored: list[tuple[float, str, Stated]] = []
    spoken = [e for e in events if e.framework and e.line in text and e.kind not in ("noise", "other")]
    for entry in table:
        name = entry["name"]
        score = 0.0
        first: int | None = None
        for sign in entry["signs"]:
            if sign in whole and not (name == "tensorflow" and _JAX_PATH in whole):
                score += 3
                first = next((i for i, t in text.items() if sign in t), first)
        own = [e.line for e in spoken if e.framework == name]
        if own:
            score += 2
            first = own[0] if first is None else first
        # The first letters of a name are a cheap test before its expression is compiled.
        if any(stem in whole for stem in _stems(entry["words"])):
            words = re.compile(rf"(?<![\w/.\\-]){entry['words']}")
            for i, line in text.items():
                if match := words.search(line):
                    score += 2.5 if re.match(_BETWEEN + _VERSION, line[match.end() :]) else 1.5
                    first = i if first is None else first
                    break
        if score and entry["special"]:
            score += 2
        if score and first is not None:
            scored.append((score, name, Stated(name, first)))
    scored.sort(key=lambda s: (-s[0], s[1] == "keras"))
    return [(name, stated) for _, name, stated in scored]


def _stems(words: str) -> list[str]:
    return [w for w in re.findall(r"[a-z][a-z0-9]+", re.sub(r"\(\?[!=<][^)]*\)|\\w", "", words))]


def _framework_version(lines: list[tuple[int, str, bool]], words: str) -> Iterator[Stated]:
    pattern = re.compile(rf"(?<![\w/.\\-])(?:{words})({_BETWEEN})({_VERSION}|nightly)")
    loose = re.compile(rf"(?<![\w/.\\-])(?:{words})[- =:]{{0,2}}(\d{{1,2}}(?:\.\d+)?)(?![\d.])")
    seen = False
    printed = re.compile(r"(?:tf|torch|jax|jaxlib|mx|mxnet|tensorflow|paddle|ort|onnxruntime|keras)\.__version__\)?")
    for (_, text, _log), (index, after, _) in zip(lines, lines[1:], strict=False):
        if "__version__" in text and printed.search(text) and (match := re.match(rf"\W{{0,3}}({_VERSION})", after)):
            seen = True
            yield Stated(match[1], index)
    for index, text, _log in lines:
        for match in pattern.finditer(text):
            if re.search(r"cuda|cudnn|python|driver", text[match.start() : match.start(2)].split(":")[0]):
                continue
            seen = True
            yield Stated(match[2], index)
    if not seen:
        for index, text, _log in lines:
            if match := loose.search(text):
                yield Stated(match[1], index)
            elif "nightly" in text and re.search(rf"(?:{words})[^\n]{{0,40}}nightly|nightly[^\n]{{0,30}}(?:{words})", text):
                yield Stated("nightly", index)
