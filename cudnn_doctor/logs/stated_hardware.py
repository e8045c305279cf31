"""GPUs and operating systems as people, templates and logs name them."""

from __future__ import annotations

from collections.abc import Iterator

from cudnn_doctor.logs.document import Document
from cudnn_doctor.logs.patterns import Name
from cudnn_doctor.logs.regex import rx
from cudnn_doctor.logs.signatures import Event
from cudnn_doctor.logs.values import FactLine, Stated

# How products are written, by family, each with a cheap test: the expressions are large, and a text needs few.
_PRODUCT = r"(?<![\w-])(?:nvidia )?(?:geforce )?(?:{})(?![\w%])"
_FAMILIES = (
    (
        ("tx", "gt ", "gt-", "gts", *(f"{line}{digit}" for line in ("gt", "mx") for digit in range(1, 9))),
        r"(?:rtx|gtx|gt|gts|mx)[ -]?(?:titan(?: (?:x|xp|v|z|black))?|a?\d{3,4})"
        r"(?:[ -]?(?:ti super|super|ti|d|m|s|mobile|max-q))?"
        r"(?: ?(?:laptop|mobile|max-q|super|ada(?: generation)?|blackwell))?(?:(?: with)? max-q(?: design)?)?"
        r"(?: gpu)?|[rg]tx ?\d{2} ?series|rtx pro \d{4}(?: blackwell)?|rtx a\d{3,4}|rtx \d{4} ada(?: generation)?",
    ),
    (
        ("geforce ", "0m", "0ti", "0 ti", "0super", "0 super"),
        r"(?<=geforce )\d{3,4}mx?|9[1-4]0mx?|8[1-4]0m|\d{4} ?(?:ti super|super|ti)\b",
    ),
    (
        ("titan",),
        r"(?:gtx )?titan[ -](?:x(?: ?\(pascal\)| pascal)?|xp|v|z|black|rtx)|titan(?: rtx|xp| xp)|(?<=nvidia )titan"
        r"|titan(?= gpu)",
    ),
    (
        ("quadro", "tesla", "nvs", "grid", "nvidia ", "000"),
        r"quadro (?:rtx )?[a-z]{0,2}\d{3,4}[a-z]{0,2}|tesla [a-z]\d{1,4}[a-z]?|nvs \d+|grid [a-z]\d+"
        r"|(?<=nvidia )[pt]\d{3,4}|p[2-6]000",
    ),
    (
        ("jetson", "agx", "dgx", "drive"),
        r"(?:jetson )?agx (?:orin|xavier)"
        r"|jetson (?:orin |xavier )?(?:xavier|orin|nano|nx|tx1|tx2|tk1|thor)(?: nx| nano)?"
        r"|dgx spark|drive (?:px2|agx|orin)",
    ),
)
_CODES = ("v100", "p100", "k80", "k40", "k20", "m60", "m40", "p40", "p4", "a100", "a800", "a40", "a30", "a10", "a16",
          "a6000", "a5000", "a4000", "l40", "l20", "l4", "h100", "h200", "h800", "h20", "b100", "b200", "b300", "gb10",
          "t4")  # fmt: skip
_SERIES = ("1050", "1060", "1070", "1080", "2060", "2070", "2080", "3050", "3060", "3070", "3080", "3090", "4050",
           "4060", "4070", "4080", "4090", "5050", "5060", "5070", "5080", "5090", "1650", "1660")  # fmt: skip
_VENDORS = ("radeon", "amd", "apple m", "intel arc", "instinct", "rx ", "rx5", "rx6", "rx7")
_DATACENTER = (
    r"(?<![\w-])(?:nvidia |tesla )?(?:v100s?|p100|k80|k40[cm]?|k20[cmx]?|m60|m40|p40|p4|a100|a800|a40|a30|a10g?|a16"
    r"|a6000|a5000|a4000|l40s?|l20|l4|h100|h200|h800|h20|gh200|b100|b200|b300|gb200|gb300|gb10|t4)"
    r"(?:[- ](?:sxm\d?|pcie|nvl|hbm\d\w?|\d{2,3} ?gb)){0,3}(?![\w%])"
)
_LOGGED = (
    r"name: ((?:nvidia |geforce |tesla |quadro |titan |grid )?[^,\n]{3,48}?)(?:,| major:| computecapability| pci)"
    r"|gpu \d+: ((?:nvidia |geforce |tesla |quadro )[^(\n]{3,48}?)(?: \(uuid|$)|<product_name>([^<]{3,60})<"
    r"|found gpu\d (.{3,48}?) which"
)
_NUMBERS = r"(?:10[5-8]0|20[678]0|30[5-9]0|40[5-9]0|50[5-9]0|16[56]0)(?: ?ti)?"
_SHORT = (
    r"(?:gpu|card|graphics|nvidia|geforce|显卡|显存|placa|karte|видеокарт|carte|tarjeta|グラボ|그래픽)[^\n]{0,24}?\b("
    + _NUMBERS + r")(?!\d)|\b(" + _NUMBERS + r") (?:gpu|card|graphics|karte)"
)  # fmt: skip
_OTHER_VENDOR = (
    r"(?:amd )?(?<!with )radeon(?: (?:pro|rx|r9|r7|vii|vega|instinct))*(?: \w{1,6})?|amd gpu"
    r"|\brx ?[4-9]\d{2,3}(?: ?xtx?)?"
    r"|instinct mi\d{2,3}\w?|apple m\d|intel arc(?: \w+)?"
)
_WORKS_AFTER = (
    r"[ ,:-]{0,3}(?:it )?(?:works|runs|trains|is fine|has no|goes through|passes|正常|没问题|可以|läuft|funktioniert"
    r"|funciona|roda|работает|marche|動)"
)
_FAILS_AFTER = r"[ ,:-]{0,3}(?:it )?(?:fails|gives|crashes|does not|doesn.t|stops|aborts|raises|shows the|throws)"
_WORKS_BEFORE = (
    r"(?:machine|server|computer|card|gpu|box|instance|works?|runs?|trains?|fine|problem\w*|roda|funciona\w*|läuft"
    r"|numa|num)[^.]{0,30}$"
)
_MINE = (
    r"(?:my|our|this|the|meine?|minha|mi|mon|ma) (?:new )?(?:gpu|card|graphics card|karte|placa|tarjeta|carte)"
    r"(?: is| =|:)?(?: an?)? ?$|(?:gpu|card|karte|placa|显卡|显存|グラボ)[^\w\n]{0,3}(?:is|:|=|是|は|model[^:]{0,20}:)?"
    r" ?(?:an? )?$"
)
_NO_WORDS = ("k80", "k40", "k20")
_OF_A_CARD = r"(?:tesla|nvidia|gpu|gpus|card|karte|instance)[:= (]{1,3}$"
_A_CARD = r"s? (?:gpu|card|instance|node|machine|karte)"
# Where nobody names the system: the image a container is made from, a prompt or a path of Windows.
_IMAGE = r"[\w.-]+(?:/[\w.-]+)+:[\w.-]*?-((?:ubuntu|debian|centos|rockylinux|ubi|fedora)[\d.]*\d)"
_IMAGES = ("-ubuntu", "-debian", "-centos", "-rockylinux", "-ubi", "-fedora")
_WINDOWS = r"(?<![\w/.\\])[a-z]:\\(?!n)\w"
_BARE_SYSTEMS = frozenset({"linux", "windows", "win64", "win32"})


def gpus(document: Document, lines: list[FactLine], events: list[Event]) -> Iterator[Stated]:
    """GPUs that logs name, then those of people: what is said to be theirs before others, never one that works."""
    elsewhere = {e.line for e in events if e.id == "other-gpu-works"}
    prose: list[tuple[int, Stated]] = []
    fine: set[str] = set()
    signs = _present(lines)
    for line in lines:
        text = line.text
        if "name" in text or ("gpu" in text and (": " in text or "found" in text)):
            yield from _logged(line)
        for name, start, exact in _named(document, line, signs):
            before, after = text[max(0, start - 32) : start], text[start + len(name) : start + len(name) + 32]
            if rx(_WORKS_AFTER).match(after) or (line.place in elsewhere and rx(_WORKS_BEFORE).search(before)):
                fine.add(_key(name))
            mine = rx(_MINE).search(before) or rx(_FAILS_AFTER).match(after)
            prose.append(((2 if mine else 0) + exact, Stated(name, line.place)))
    if not prose:
        others = [n for n in lines if any(v in n.text for v in _VENDORS)]
        yield from (Stated(m[0].strip(), n.place) for n in others for m in rx(_OTHER_VENDOR).finditer(n.text))
    failing = [p for p in prose if _key(p[1].value) not in fine] or prose
    for _, stated in sorted(failing, key=lambda p: -p[0]):
        yield stated


def _logged(line: FactLine) -> Iterator[Stated]:
    for match in rx(_LOGGED).finditer(line.text):
        name = next(g for g in match.groups() if g).strip()
        if rx(r"\d|titan|orin|xavier|thor").search(name) and not name.startswith(("conv", "model", "layer")):
            yield Stated(name, line.place)


def _present(lines: list[FactLine]) -> list[tuple[list[str], str, bool]]:
    """The expressions worth trying, each with the signs of it that occur at all: a large log holds few. The last of
    each says whether the product line is named as well (not only "3090")."""
    whole = "\n".join(line.text for line in lines)
    products = ((signs, _PRODUCT.format(body), True) for signs, body in _FAMILIES)
    table = (*products, (_CODES, _DATACENTER, True), (_SERIES, _SHORT, False))
    found = (([sign for sign in signs if sign in whole], pattern, exact) for signs, pattern, exact in table)
    return [entry for entry in found if entry[0]]


def _named(
    document: Document, line: FactLine, present: list[tuple[list[str], str, bool]]
) -> Iterator[tuple[str, int, bool]]:  # fmt: skip
    """Names, where they begin, and whether they are exact; exact ones first."""
    text = line.text
    found: list[tuple[bool, int, int, str]] = []
    for signs, pattern, exact in present:
        if not any(sign in text for sign in signs):
            continue
        for match in rx(pattern).finditer(text):
            name = next((g for g in match.groups() if g), match[0]).strip(" -")
            start = text.find(name, match.start())
            if _is_name(name, text, start, document.lines[line.place].text):
                found.append((not exact, start, -len(name), name))
    end = 0
    for short, start, _, name in sorted(found):
        if short or start >= end:  # "gtx 1080 ti" is no "1080 ti" as well
            end = max(end, start + len(name))
            yield name, start, not short


def _is_name(name: str, text: str, start: int, spelled: str) -> bool:
    """Whether it is a GPU's name: "p4" and "a10" are words as well, unless capital or said of a card."""
    if len(name) >= 4 or name in _NO_WORDS or name.upper() in spelled:
        return True
    before, after = text[max(0, start - 16) : start], text[start + len(name) : start + len(name) + 12]
    return bool(rx(_OF_A_CARD).search(before) or rx(_A_CARD).match(after))


def _key(name: str) -> str:
    """What identifies a GPU in its spellings: "RTX 2080 Ti" and "2080ti" are one."""
    return rx(r"nvidia|geforce|tesla|quadro|[gr]tx|laptop|gpu|\W").sub("", name)


def systems(document: Document, lines: list[FactLine], table: list[Name]) -> Iterator[Stated]:
    """Systems in the text's order, the bare words "Linux" and "Windows" after those that say more; then the one that an
    image, a path or the system's own journal shows."""
    lines = [line for line in lines if not rx(r"[- ]*(?:linux|windows|mac): set \w+ by ").match(line.text)]  # Paddle's
    whole = "\n".join(line.text for line in lines if not line.log or line.text.startswith(("os:", "platform")))
    ranked: list[tuple[bool, int, int, Stated]] = []
    for system in table:
        if not any(stem in whole for stem in system.stems):
            continue
        bounded = rx(rf"(?<![a-z0-9_.\\/-])(?:{system.words})(?![a-z0-9_\\])")
        for line in lines:
            if line.log and not line.text.startswith(("os:", "platform")):
                continue
            if match := bounded.search(line.text):
                name = match[0].strip(" -(")
                ranked.append((name in _BARE_SYSTEMS, line.place, match.start(), Stated(name, line.place)))
    for *_, stated in sorted(ranked, key=lambda r: r[:3]):
        yield stated
    if not ranked:
        yield from _shown(document, lines)


def _shown(document: Document, lines: list[FactLine]) -> Iterator[Stated]:
    for line in lines:
        if ":" in line.text and any(sign in line.text for sign in _IMAGES) and (image := rx(_IMAGE).search(line.text)):
            yield Stated(image[1], line.place)
    for line in lines:
        if ":\\" in line.text and rx(_WINDOWS).search(line.text):
            yield Stated("windows", line.place)
        elif document.lines[line.place].linux:
            yield Stated("linux", line.place)
