"""GPU names as people type them: "rtx4090", "4090", "1080 ti", "A6000", "compute_86", "SM 8.6", "MI300X".

`spellings` turns a typed name into the spellings that the driver prints; the patterns of gpu_names decide. A name that
means several cards, a card of another vendor and a name that nobody knows are told apart: a wrong guess is worse than
none, so that a hint stays within one model line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

# What stands in a name and says nothing of the chip.
NOISE = re.compile(
    r"""\(r\)|\(tm\)|[®™]|\bnvidia(?:\s+corporation)?\b|\bcorporation\b|\bgraphics\b|\bgpu\b|\bcard\b|\bdesktop\b|
    \b\d+\s*(?:x|gib|gb|g)\b|\bpcie?\b|\bsxm\d?\b|\bhbm\w*\b|\bnvl\d*\b|\bwith\s+max-?q(?:\s+design)?\b|\bmax[ -]?q\b|
    \blaptop\b|\bmobile\b|\bnotebook\b|\blhr\b|\bfounders?\s+edition\b|\bfe\b|\brev\.?\s*\w+\b|\bdual\b|\bfounders\b""",
    re.IGNORECASE | re.VERBOSE,
)
CAPABILITY = re.compile(
    r"(?:cc|sm|compute|compute[ _]?capability|capability)?[ _:=]*(\d{1,2})\.(\d)[af]?"
    r"|(?:sm|compute|cc)[ _-]*(\d{1,2})(\d)[af]?",
    re.IGNORECASE,
)
GEFORCE = {
    "7": "GTX",
    "9": "GTX",
    "6": "GTX",
    "10": "GTX",
    "16": "GTX",
    "20": "RTX",
    "30": "RTX",
    "40": "RTX",
    "50": "RTX",
}
AMPERE_WORKSTATION = "400|500|1000|2000|3000|4000|4500|5000|5500|6000"
# A number that several products share, and what they are called.
SHARED = {
    "RTX 3000": "Quadro RTX 3000 (7.5), RTX A3000 (8.6), RTX 3000 Ada (8.9)",
    "RTX 4000": "Quadro RTX 4000 (7.5), RTX A4000 (8.6), RTX 4000 Ada (8.9), RTX PRO 4000 Blackwell (12.0)",
    "RTX 5000": "Quadro RTX 5000 (7.5), RTX A5000 (8.6), RTX 5000 Ada (8.9), RTX PRO 5000 Blackwell (12.0)",
    "RTX 6000": "Quadro RTX 6000 (7.5), RTX A6000 (8.6), RTX 6000 Ada (8.9), RTX PRO 6000 Blackwell (12.0)",
    "RTX 2000": "RTX A2000 (8.6), RTX 2000 Ada (8.9), RTX PRO 2000 Blackwell (12.0)",
    "RTX 4500": "RTX A4500 (8.6), RTX 4500 Ada (8.9), RTX PRO 4500 Blackwell (12.0)",
    "TITAN": "GTX TITAN (3.5), GTX TITAN X (5.2), TITAN X (Pascal) (6.1), TITAN V (7.0), TITAN RTX (7.5)",
    "GT 730": "GT 730 of 2014 with GF108 (2.1) or with GK208 (3.5)",
    "GTX 860M": "GTX 860M with GK104 (3.0) or with GM107 (5.0)",
    "M4": "Tesla M4 (5.2); Apple's M4 is no NVIDIA GPU",
    "JETSON": "Jetson Nano and TX1 (5.3), TX2 (6.2), Xavier (7.2), Orin (8.7), Thor (11.0)",
}
OTHER_VENDORS = (
    (
        "AMD",
        r"\b(?:amd|radeon|instinct|rocm|firepro)\b|\bmi\s?\d{2,3}[ax]?\b|\brx\s?\d{3,4}\b|\bgfx\d{3,4}\w?\b|\bw[67]\d00\b|\bvega\b",
    ),
    ("Intel", r"\bintel\b|\barc\b|\biris\b|\buhd\b|\bgaudi\b|\bponte vecchio\b|\bmax 1\d\d0\b"),
    ("Apple", r"\bapple\b|\bm[1-4] ?(?:pro|max|ultra)\b|\bm[123]\b"),
    ("Google", r"\btpu\b"),
    ("AWS", r"\btrainium\d?\b|\binferentia\d?\b"),
    ("Huawei", r"\bascend\b"),
    ("Qualcomm", r"\badreno\b"),
)


def capability_of(name: str) -> str:
    """ "SM 8.6", "compute_86", "sm_90a", "cc 8.6" -> "8.6"; "" for a name that is no compute capability."""
    found = CAPABILITY.fullmatch(" ".join(re.sub(r"(?i)\bnvidia\b|\(r\)|[-_]", " ", name).split()))
    if found is None:
        return ""
    return f"{int(found[1])}.{found[2]}" if found[1] else f"{int(found[3])}.{found[4]}"


def vendor(name: str) -> str:
    """The other vendor that a name belongs to, "" for none that is known."""
    if re.search(r"\bnvidia\b|\btesla\b|\bgeforce\b|\bquadro\b", name, re.IGNORECASE):
        return ""
    plain = re.sub(r"[^a-z0-9.]+", " ", name.lower())
    return next((v for v, pattern in OTHER_VENDORS if re.search(pattern, plain)), "")


def plain_name(name: str) -> str:
    """The tokens that name the chip, single spaces between them: "NVIDIA A100-SXM4-80GB" -> "A100"."""
    text = NOISE.sub(" ", re.sub(r"[-_/,;:]+", " ", name))
    text = re.sub(r"(?i)\b(geforce|quadro|tesla|titan|jetson|nvs|grid|rtx|gtx|gts|gt)(?=[a-z]?\d)", r"\1 ", text)
    text = re.sub(r"(?i)\b(rtx|quadro|tesla|grid)\s*pro\s*(?=\d)", r"\1 PRO ", text)
    text = re.sub(r"(?i)(\d{3,4})\s*-?(ti|super|ada|d|xp|max|m)\b", r"\1 \2", text)
    text = re.sub(r"(?i)\b(titan)(x|v|xp|rtx|z|black)\b", r"\1 \2", text)
    return " ".join(re.sub(r"[()]", " ", text).split())


def spellings(name: str) -> Iterator[str]:
    """The spellings to look for, the typed one first."""
    yield name
    plain = plain_name(name)
    if not plain:
        return
    plain = re.sub(r"(?i)(\d{3}) m\b", r"\1M", plain)  # 780M is another chip than 780
    yield plain
    bare = re.fullmatch(r"(?i)(?:geforce )?(rtx |gtx )?(\d{1,2})(\d\d)(M?)( (?:ti|super|ti super|d|boost))*", plain)
    if bare and bare[2] in GEFORCE:
        if bare[1] and bare[1].strip().upper() != GEFORCE[bare[2]]:
            return  # there is no GTX 2080
        yield f"GeForce {GEFORCE[bare[2]]} {bare[2]}{bare[3]}{bare[4]}"
    workstation = re.fullmatch(rf"(?i)(?:nvidia )?(?:rtx |quadro )?a ?({AMPERE_WORKSTATION})(?: ada)?", plain)
    if workstation:
        yield f"RTX A{workstation[1]}"
    if not re.match(r"(?i)geforce|quadro|tesla|rtx|gtx|titan|grid|jetson", plain):
        for line in ("Tesla", "GeForce", "Quadro", "Jetson"):
            yield f"{line} {plain}"


def shared(name: str) -> str:
    """The products that a name may mean; "" when it means one or none."""
    plain = plain_name(name).upper().removeprefix("GEFORCE ")
    return SHARED.get(plain) or SHARED.get(f"RTX {plain}" if re.fullmatch(r"\d000|\d500", plain) else "", "")


def model_line(name: str) -> str:
    """The names of the model line that a name seems to belong to, for a hint; "" when it belongs to none."""
    plain = plain_name(name).upper()
    found = re.search(r"\b(?:(?:RTX|GTX) )?(10|16|20|30|40|50)\d\d\b", plain)
    if not found:
        return ""
    models = {
        "10": "GTX 1050, 1060, 1070, 1080 (Ti)",
        "16": "GTX 1630, 1650, 1660 (Ti, SUPER)",
        "20": "RTX 2050, 2060, 2070, 2080 (Ti, SUPER)",
        "30": "RTX 3050, 3060, 3070, 3080, 3090 (Ti)",
        "40": "RTX 4050, 4060, 4070, 4080, 4090 (Ti, SUPER)",
        "50": "RTX 5050, 5060, 5070, 5080, 5090 (Ti)",
    }
    return f"The {found[1]} series has {models[found[1]]}."
