"""Who writes a line of a ticket: threads hold several people's cases, and their facts must not be mixed."""

from __future__ import annotations

from cudnn_doctor.logs.regex import rx

_NAME = r"@?([A-Za-z][\w.-]{1,39})"
# How a header begins, a word that it holds, and its pattern.
_HEADERS = (
    (
        ("**", "__"),
        "",
        rf"(?:\*\*|__){_NAME}(?:\*\*|__)?(?: (?:commented|wrote|said|replied|posted)\b.{{0,80}})?:?$",
    ),
    # A heading of one plain word is a template's ("### Platform"), not a name.
    (
        "#",
        "",
        r"#{1,6} (?:@?(?=[A-Za-z.-]{0,39}[\d_])|@|(?=\S{2,40} (?:commented|wrote|said|replied|posted)\b))"
        r"([A-Za-z][\w.-]{1,39})(?: (?:commented|wrote|said|replied|posted)\b.{0,80})?:?$",
    ),
    ("", "ed", rf"{_NAME} (?:commented|replied|posted)(?: (?:on|at|\d).{{0,60}})?:?$"),
    ("", "wrote", rf"{_NAME} wrote(?: (?:on|at|\d).{{0,60}})?:?$"),
    ("", "sa", rf"{_NAME} (?:says|said)(?: (?:on|at|\d).{{0,60}})?:?$"),
    ("", "·", rf"{_NAME} · (?:comment|description|reply)\b"),
    (
        "--",
        "",
        rf"-{{2,}} ?(?:reply|comment|post|answer)?(?: (?:by|from|of) )?{_NAME}"
        r"(?:,? (?:later|wrote|again|commented|on|at|\d).{0,60})? ?-{2,}$",
    ),
    (("==", "~~", "++"), "", rf"(?:={{2,}}|~{{2,}}|\+{{2,}}) ?{_NAME} ?(?:={{2,}}|~{{2,}}|\+{{2,}})$"),
    (("From: ", "Von: ", "De: ", "От: "), "", r"(?:From|Von|De|От): (.{1,60})$"),
    ("#", "", r"#{1,6} (?:Comment|Reply|Answer|Post)(?: (?:by|from|of|#|no\.?))? ?@?([\w.-]{1,40})"),
)
_CHAT = (
    r"(?:\[\d\d:\d\d(?::\d\d)?(?: ?[AP]M)?\]|\d\d:\d\d(?::\d\d)?) ?"
    r"(?:<?@?([A-Za-z][\w.-]{0,39})>?: |<@?([A-Za-z][\w.-]{0,39})> )|<@?([A-Za-z][\w.-]{0,39})> "
)
_METOO_STARTS = (
    "same ", "me too", "+1", "seeing this", "i also", "i too", "i have", "i get", "i got", "i see", "i am ", "i face",
    "also ", "i'm ", "im ", "so am i",
)  # fmt: skip
_METOO = (
    r"(?:same (?:here|problem|issue|error|for me|on)|me too|\+1\b|seeing this (?:here )?too"
    r"|i (?:also |too )?(?:have|get|got|see|am getting|face) (?:the|this) (?:same|exact)"
    r"|also (?:getting|seeing|have|having) (?:this|the same)|i.?m (?:also )?having the same|so am i)"
)
# Headings of templates that look like names.
_NO_NAMES = frozenset({
    "system", "describe", "other", "environment", "code", "bug", "expected", "steps", "additional", "versions",
    "your", "issue", "source", "custom", "relevant", "current", "standalone", "os", "python", "gpu", "cuda", "cudnn",
    "tensorflow", "pytorch", "log", "logs", "error", "errors", "output", "question", "problem", "solution", "update",
    "edit", "note", "notes", "setup", "hardware", "software", "details", "summary", "description", "title", "result",
    "results", "thanks", "info", "information", "background", "what", "version", "driver", "command", "reproduce",
    "reproduction", "context", "traceback", "screenshots", "desktop", "warning", "configuration", "debug", "fatal",
    "critical", "notice", "trace", "warn", "exception", "train", "main", "epoch", "step",
})  # fmt: skip
_SELF = frozenset({"author", "op", "reporter"})


class Speakers:
    """Follows the speaker through the lines. 0 is nobody in particular, the first one named is 1."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._now = 0
        self._depth = 0
        self._outer: list[tuple[int, int]] = []  # who spoke at which depth before a quotation began
        self._introduced: int | None = None  # who spoke before the header just read

    def of(self, text: str, depth: int = 0) -> tuple[int, str]:
        """The speaker of this line, and the line without a chat's stamp and name. `depth` counts the marks of quotation
        before it: after a quotation the one who quoted goes on."""
        if text and depth != self._depth:
            self._quote(depth)
        before = self._now
        speaker, said = self._of(text)
        if text:
            self._introduced = before if self._now != before else None
        return speaker, said

    def _quote(self, depth: int) -> None:
        if depth > self._depth:  # "ann wrote:" before a quotation tells whose words it holds, not who goes on after it
            outer = self._now if self._introduced is None else self._introduced
            self._outer.append((self._depth, outer))
        elif not any(level == depth for level, _ in self._outer):  # nobody was seen at this depth
            self._outer = [entry for entry in self._outer if entry[0] < depth]
            self._now = self._outer[-1][1] if self._outer else 0
        while self._outer and self._outer[-1][0] >= depth:
            self._now = self._outer.pop()[1]
        self._depth = depth

    def _of(self, text: str) -> tuple[int, str]:
        if not text or len(text) >= 200:
            return self._now, text
        first = text[0]
        if (first == "<" or ":" in text[2:4]) and (match := rx(_CHAT).match(text)):
            name = next(g for g in match.groups() if g).lower()
            if name not in _NO_NAMES:
                return self._number(name), text[match.end() :]
        if first in "*_#-=~+FVDО" or "·" in text or " said" in text or " wrote" in text or " commented" in text:
            for start, word, pattern in _HEADERS:
                if not text.startswith(start) or word not in text:
                    continue
                match = rx(pattern).match(text)
                if match and match[1].lower() not in _NO_NAMES:
                    self._now = self._number(match[1].lower())
                    return self._now, text
        if text.lower().startswith(_METOO_STARTS) and rx(_METOO).match(text.lower()):
            self._now = self._number(f"me too {len(self._numbers)}")
        return self._now, text

    def _number(self, name: str) -> int:
        if name in _SELF:  # the one who opened the thread
            return 0
        return self._numbers.setdefault(name, len(self._numbers) + 1)
