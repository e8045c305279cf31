"""GPUs' names as people write them, and the compute capability that each stands for."""

from __future__ import annotations

import re

from cudnn_doctor.logs.patterns import Knowledge
from cudnn_doctor.logs.regex import rx

# "3090", "GTX 3090": the number alone tells the generation of a GeForce.
_GEFORCE = r"(?:(?<![\da-z])|(?<=tx))(10[5-8]0|16[356]0|20[5-8]0|30[5-9]0|40[5-9]0|50[5-9]0)(?!\d)"
_GENERATION = {"10": "6.1", "16": "7.5", "20": "7.5", "30": "8.6", "40": "8.9", "50": "12.0"}


def capability(name: str, knowledge: Knowledge) -> str:
    """The compute capability of a GPU's name as people write it, in lower case; "" when it is not known."""
    number = rx(_GEFORCE).search(name)
    if number and "quadro" not in name:
        return _GENERATION[number[1][:2]]
    plain = rx(r"\b([rg]tx?)[ -]?(?=\d)").sub(r"\1 ", name.removeprefix("nvidia "))  # "gtx980m", "gtx-970"
    spellings = "\n".join((plain, f"geforce {plain}", f"tesla {plain}", f"quadro {plain}"))
    for row in knowledge.gpu_names:
        if any(stem in spellings for stem in row.stems) and rx(row.words, re.IGNORECASE).search(spellings):
            return row.cc
    return ""
