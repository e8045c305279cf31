"""Undoes what happens to a log on its way into a ticket.

One physical line becomes zero or more clean ones (a progress bar hides several behind carriage returns). What was taken
off its front (stamp, rank, container) is kept as far as it says when or who.
"""

from __future__ import annotations

from cudnn_doctor.logs.regex import rx

# Spaces of all kinds, typographic quotes and dashes, invisible characters.
_PLAIN = {
    "\t": " ", "\u00a0": " ", "\u3000": " ", "\u2007": " ", "\u202f": " ", "\ufeff": "", "\u200b": "", "\u200c": "",
    "\u200d": "", "\u2060": "", "\u00ad": "", "\u2018": "'", "\u2019": "'", "\u201a": "'", "\u201c": '"', "\u201d": '"',
    "\u201e": '"', "\u00ab": '"', "\u00bb": '"', "\u2013": "-", "\u2014": "-", "\u2212": "-", "\u2026": "...",
    "\u3001": ", ", "\u3002": ". ", "\u300c": '"', "\u300d": '"', "\u3010": "[", "\u3011": "]", "\uff0c": ", ",
    "\uff1a": ": ", "\u0000": "",
}  # fmt: skip
# Full-width forms of ASCII (Chinese and Japanese input).
TABLE = str.maketrans({**{chr(0xFF01 + i): chr(0x21 + i) for i in range(94)}, **_PLAIN})

_ANSI = (
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]{0,512}(?:\x07|\x1b\\)|[PX^_][^\x1b]{0,512}\x1b\\|[ -/]*[0-~])"
    r"|\x9b[0-?]*[ -/]*[@-~]"
)
# Colour codes whose escape character was lost on the way: "[31m", "[0;1m"; a digit is demanded, "[m" may be meant.
_BARE_ANSI = r"\[\d{1,3}(?:;\d{1,3}){0,4}m|\[0?K(?=\W|$)"
_ENTITY = r"&(?:#\d{1,7}|#x[0-9a-fA-F]{1,6}|[a-z]{2,6}|[A-Z][a-z]{4,5});"
_TAG = (
    r"(?i)</?(?:p|pre|code|br|div|span|b|i|em|strong|li|ul|ol|h[1-6]|blockquote|table|thead|tbody|tr|td|th|a|font|tt"
    r"|details|summary|samp|kbd|img|hr)(?:\s[^<>]{0,300})?/?>"
)
_CELL_END = r"(?i)</t[dh]>\s*<t[dh][^<>]{0,80}>"
# C0, C1 and bidirectional controls; tabs and line breaks are dealt with before.
_CONTROL = dict.fromkeys((*range(0x20), *range(0x7F, 0xA0), *range(0x202A, 0x202F), *range(0x2066, 0x206A)))
_QUOTE = r"(?:>\s?)+(?!>)"

_DIGITS = tuple("0123456789")
_CAPITALS = tuple("ADFJMNOS")  # of the months
_SYSLOG = r"[A-Z][a-z]{2}\s+\d{1,2}\s\d\d:\d\d:\d\d"
# What launchers and collectors put before a line: how it begins, a cheap sign, and the pattern. Taken off in turn.
_PREFIXES = (
    ("[", "<std", r"\[\d+,\d+\]<std(?:out|err|diag)>:\s?|\[\d+(?:,\d+)?\]\s*<std(?:out|err)>:?\s?"),  # mpirun
    ("(", "pid=", r"\((?:[\w.<>]{1,64}\s)?pid=\d+(?:,[^)]{0,60})?\)\s?"),  # ray
    ("", " | ", r"[\w./-]{2,80}\s{0,30}\|\s(?=\s*\S)|[\w./-]{2,80}[_-]\d{1,3}\s{0,30}\|\s?$"),  # docker compose
    ("[pod/", "", r"\[pod/[\w./-]{1,160}\]\s?"),  # kubectl
    (_DIGITS, "Z std", r"\d{4}-\d\d-\d\dT[\d:.]{8,18}(?:Z|[+-]\d\d:\d\d)\sstd(?:out|err)\s[FP]\s"),  # cri
    (_DIGITS, "Z 0", r"\d{4}-\d\d-\d\dT[\d:.]{8,18}Z\s\d\d[OE][+ ]?\s?"),  # GitLab
    ("[", "Z] ", r"\[\d{4}-\d\d-\d\dT[\d:.]{8,15}Z\]\s"),  # Jenkins
    (_DIGITS, "Z ", r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6,9}Z\s"),  # docker
    # journald and syslog
    (_CAPITALS, ": ", rf"{_SYSLOG}(?:\.\d+)?\s[\w.-]{{1,64}}\s[\w./@:-]{{1,80}}(?:\[\d+\])?:\s"),
    (_DIGITS, "]: ", r"\d{4}-\d\d-\d\dT[\d:.]{8,15}(?:Z|[+-]\d\d:?\d\d)\s[\w.-]{1,64}\s[\w./@-]{1,80}\[\d+\]:\s"),
    (_CAPITALS, "kernel: ", rf"{_SYSLOG}\s[\w.-]{{1,64}}\skernel:\s(?:\[[\s\d.]{{5,16}}\]\s)?"),
    # srun -l, torchrun
    ((*_DIGITS, "rank", "["), ": ", r"(?:\d{1,4}|rank\s?\d{1,5}|\[rank\d{1,5}\]|\[\d{1,4}\]):(?:\s{1,12}(?=\S)|\s$)"),
    ("[default", "", r"\[default\d{1,3}\]:\s?"),
    ("[", "] ", r"\[[\w.-]{1,40}\]\s(?=\[?(?:\d{4}-\d\d-\d\d|[EWIF]\d{4}\s))"),  # an actor's name before a stamp
)


def decode(data: bytes) -> str:
    """Text of a line in whatever encoding; bytes that are no UTF-8 become replacement characters."""
    return data.decode("utf-8", "replace")


def clean(text: str) -> list[tuple[str, str]]:
    """The clean lines in one physical line, each with what was taken off its front, for the time and the rank.

    >>> [text for text, _ in clean("[1,0]<stderr>:\\x1b[31mRuntimeError:&nbsp;x\\x1b[0m")]
    ['RuntimeError: x']
    """
    if text.startswith('{"log":"'):
        text = _logged(text)
    if "\r" not in text and "\\" not in text:
        return [_clean(text)]
    lines = [line for part in text.split("\r") for line in (_unescaped(part) if "\\" in part else (part,))]
    return [_clean(line) for line in lines if line.strip()] or [("", "")]


def _clean(text: str) -> tuple[str, str]:
    if not text.isascii() or "\t" in text or "\0" in text:
        if "\uff1a" in text:  # 10:15:01, C:\\
            text = rx(r"(?<=[\d\uff10-\uff19])\uff1a(?=[\d\uff10-\uff19])|(?<=[A-Za-z])\uff1a(?=\\)").sub(":", text)
        text = text.translate(TABLE)
    if "\x1b" in text or "\x9b" in text:
        text = rx(_ANSI).sub("", text)
    if "[" in text and ("m" in text or "K" in text):
        text = rx(_BARE_ANSI).sub("", text)
    if "&" in text:
        text = _entities(text)
    cells = False
    if "<" in text and ">" in text:
        joined = rx(_CELL_END).sub(" | ", text)
        cells = joined != text
        text = rx(_TAG).sub("", joined)
    if not text.isprintable():
        text = text.translate(_CONTROL)
    text = text.strip()
    prefix = ""
    if text[:1] == ">" and text[:3] != ">>>" and (match := rx(_QUOTE).match(text)):
        prefix = match.group()
        text = text[match.end() :].lstrip()
    taken = not cells  # "CUDA | 11.2" of a table is no output of a container called CUDA
    while taken:
        taken = False
        for start, sign, pattern in _PREFIXES:
            padded = text + " "  # an empty line had its prefix as well
            if text.startswith(start) and sign in padded and (match := rx(pattern).match(padded)):
                prefix += match.group()
                text = padded[match.end() :].strip()
                taken = True
    if prefix[:1] != ">" and text[:1] == ">" and text[:3] != ">>>" and (match := rx(_QUOTE).match(text)):
        prefix += match.group()
        text = text[match.end() :].lstrip()
    return (" ".join(text.split()) if "  " in text else text), prefix


def _logged(text: str) -> str:
    """What the program printed, out of a line of docker's json-file driver."""
    import json

    try:
        return str(json.loads(text)["log"]).rstrip("\n")
    except (ValueError, RecursionError):  # cut, or no JSON after all
        return text


def _unescaped(text: str) -> list[str]:
    """The text without the backslashes of JSON, of a printed string and of markdown ("CUDNN\\_STATUS"), which would
    else be read as part of the words; Windows paths keep theirs."""
    if "\\u" in text and '{"' in text:
        text = rx(r"\\u([0-9a-fA-F]{4})").sub(lambda m: chr(int(m[1], 16)), text)
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if "\\_" in text or "\\*" in text:
        text = rx(r"(?<=\w)\\(?=_\w)|\\(?=\*)").sub("", text)
    if text.count("\\n") < 3:
        return [text]
    path = rx(r"(?<![A-Za-z])[A-Za-z]:\\(?!n)").search(text)
    return rx(r"\\n(?![a-z0-9])" if path else r"\\n").split(text)


def _entities(text: str) -> str:
    if not rx(_ENTITY).search(text):
        return text
    import html

    for _ in range(2):  # &amp;gt; happens
        text = rx(_ENTITY).sub(lambda m: html.unescape(m.group()).replace("\u00a0", " "), text)
    return text
