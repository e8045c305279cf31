"""A key word near a value, in every syntax that logs hold: assignment, JSON, YAML, INI, URL, header, option, argv.

One pass over the signs of names (`names.SIGN`): the whole name around each is weighed, then what follows is read as an
operator and a value. Nothing here matches more than a bounded stretch after a name, so that no text makes it run away.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from cudnn_doctor.redact import names
from cudnn_doctor.redact.spans import Span

NAME_MAX = 96  # characters of a name that are weighed, from its end
VALUE_MAX = 4000

_SECOND_WORDS = frozenset({"key", "keys", "token", "tokens"})
_WORD_BEFORE = re.compile(r"([A-Za-z]{2,16})[ \t]\Z")
_LEFT = re.compile(r"[\w.$-]{1,96}\Z")
_RIGHT = re.compile(r"[\w-]{0,96}(?:\.(?=[A-Za-z_])[\w-]{1,96}){0,8}")
_BETWEEN = re.compile(
    r"""(?:\[\d{0,3}\])?(?:\\{0,7}["'`]|&(?:quot|apos|\#3[49]);)?\]?                     # what closes the name
        (?:(?P<assign>(?:(?:[ \t]{1,4}|:[ \t]?)(?:string|String|str|text|bytes|\[\]byte|varchar|SecretStr)(?=[ \t]*=))?
              [ \t]{0,40}(?:\|\|=|\?{1,2}=|[.+]=|:=|=>|->|<<<|={1,3}|!==?|:{1,2}(?!:))[ \t]{0,8})
          |(?P<coded>%(?:25){0,3}3[dDaA](?:%20|\+)?)
          |(?P<next>,[ \t]{0,4}(?=\\?["']))
          |(?P<nul>\0)
          |(?P<tag>(?:[ \t][^<>\n]{0,80})?>\s{0,60})
          |(?P<call>\.assign\(|\()(?=["'])
          |(?P<blank>[ \t]{1,40}))""",
    re.VERBOSE,
)
_QUOTED = re.compile(
    r"""(?:[rbufRBUF]{0,2}|@|\$)?(?:(\\{1,7}["']|&(?:quot|apos|\#3[49]);)(.{0,4000}?)(?:\1|$)"""
    r"""|(["'`])((?:[^\\\n]|\\.){0,4000}?)(?:\3|$))""",
    re.MULTILINE,
)
_BARE = re.compile(r"[^\s\0]{1,4000}")
_MORE_KEYS = re.compile(
    r"[;,&|][ \t]?(?=[\w.\" '%-]{1,60}(?:=|:(?!//)|%3[dD])|$|\s)|\\[nrt](?=[\w\"'-]|$)|(?:&amp;)|%26|%0[aA]"
)
_CLOSERS = "\"'`,;)]}>"
_BLOCK = re.compile(r"[|>][-+]?\d?[ \t]*\r?\n((?:[ \t]{1,40}[^\n]{1,4000}(?:\r?\n|$)){1,200})")
_NEXT_LINE = re.compile(r"[ \t\\]*\r?\n[ \t]{1,40}(?![\w.-]{1,60}(?:=[^=\s]|:))([^\s\0]{1,4000})[ \t]*(?=\r?\n|$)")
_TAG_START = re.compile(r"<(?:[\w-]{1,40}:)?\Z")
_REVERSED = re.compile(r"""([\"'`])((?:(?!\1)[^\n]){1,400})\1[ \t]{0,4}[!=]={1,2}[ \t]{0,4}\Z""")
_IDENTIFIED = re.compile(r"(?i)[ \t]{1,8}(?:with[ \t]\w{1,40}[ \t])?(?:by|as)[ \t]{1,8}(?:password[ \t]{1,4})?")
_PIPED = re.compile(
    r"(?m)\b(?:echo|printf)(?: -\w| '?%s'?)?[ \t]+([\"']?)([^\s|\"']{4,400})\1[ \t]*\|[^\n]{0,200}?(?:-stdin"
    r"|--with-token|\blogin\b|passwd|sudo -S)"
)
_ENDS_LINE = re.compile(r"[ \t]{1,3}([^\s]{6,400})[ \t]*(?=\r?\n|$)")
_REST = re.compile(r"[^\n\0]{1,4000}")
_NEXT_NAME = re.compile(r"[ \t]+(?=--?[A-Za-z]|[\w.-]{1,60}[=:]|[#(|])")
_PROSE = re.compile(
    r"""[ \t]{1,3}(?:(?:for|of|to|from|in)[ \t][^\n=:]{1,60}?)?
        (?:is|was|are|be|set[ ]to|given|provided|supplied|used|entered|equals)(?:[ \t]?[:=])?
        [ \t]{1,3}(?P<word>[^\s]{3,400})
      |[^\n=:"'{}\[\]]{0,70}:[ \t]{1,3}(?P<after>[^\s]{6,400})[ \t]*(?=\r?\n|$|\.[ ])""",
    re.VERBOSE,
)
_HEX_CONTEXT = re.compile(r"(?i)commit|sha-?\d*|hash|digest|revision|checksum|cache|uuid|fingerprint|version")
_XML_VALUE = re.compile(r"[^<\n]{0,4000}[^<\s](?=\s{0,60}<)")
_SECOND = re.compile(
    r"""["']?[\s,;}]{1,40}["']?(?i:value|val)["']?[ \t]{0,3}[=:][ \t]{0,3}|</\w{1,20}>\s{0,60}<(?:string|value|val)>"""
    r"""|["']\r?\n\r?\n(?=\S)"""
)
_SCHEME = re.compile(
    r"(?i)(bearer|basic|token|digest|negotiate|ntlm|apikey|api-key|aws4-hmac-sha256|key|ssws|splunk|hawk)[ \t:=]{1,3}"
)
_ONE_WORD = frozenset({"bearer", "basic", "token", "negotiate", "ntlm", "apikey", "api-key", "ssws", "splunk"})
_SETTERS = re.compile(
    r"(?i)(?:^|[\s;&|\"'$#>])(?:setenv|setx(?: /\w)?|set(?: -\w{1,6}){1,3}|env|arg|config(?: --\w+){0,3}|config"
    r"(?:ure)? set|secrets? set|add"
    r"|put|password|requirepass|masterauth)[ \t]{1,4}[\w.:/@-]{0,60}\Z"
)
_NETRC = re.compile(
    r"(?im)^[ \t]*\Z|(?:\blogin|\bmachine|\bdefault|\baccount|\buser)[ \t]+\S+(?:[ \t]+\S+){0,4}[ \t]+\Z"
)


def find(text: str, folded: str) -> Iterator[Span]:
    """Every value that a name in the text says to be a secret."""
    done = 0
    for sign in names.signs(folded):
        if sign < done:
            continue
        start, end = _name(text, sign)
        done = max(end, sign + 1)
        name = text[start:end]
        word = _WORD_BEFORE.search(text, max(0, start - 24), start) if name.lower() in _SECOND_WORDS else None
        if word:  # "API key", "access token"
            name = f"{word[1]}_{name}"
        weight = names.strength(name)
        if weight != "none":
            yield from _after(text, start, end, name, weight == "strong")
    if "echo" in folded or "printf" in folded:
        for piped in _PIPED.finditer(text):
            if not names.harmless("password", piped[2]):
                yield Span(piped.start(2), piped.end(2), "secret")


def _name(text: str, at: int) -> tuple[int, int]:
    """Where the name around a sign begins and ends."""
    left = _LEFT.search(text, max(0, at - NAME_MAX), at)
    start = left.start() if left else at
    right = _RIGHT.match(text, at)
    end = right.end() if right else at
    if start and text[start - 1] == "%" and re.match(r"[0-9A-Fa-f]{2}", text[start:end]):  # %3Ftoken
        start += 2
    while start < end and text[start] in "-.$":
        start += 1
    return start, end


def _after(text: str, start: int, end: int, name: str, strong: bool) -> Iterator[Span]:
    option = text[max(0, start - 2) : start].endswith("-")
    header = name.lower().endswith(("authorization", "cookie"))
    between = _BETWEEN.match(text, end)
    kind = between.lastgroup if between else None
    at = between.end() if between else end
    before = _REVERSED.search(text, max(0, start - 420), start)
    if before and _counts(name, before[2], strong):
        yield Span(before.start(2), before.end(2), "secret", strong)
    if name.lower() == "identified":
        by = _IDENTIFIED.match(text, end)
        if by:
            yield from _value(text, by.end(), "password", True)
    elif header and kind in ("assign", "next"):
        yield from _header(text, at, name)
    elif kind in ("assign", "coded"):
        yield from _assigned(text, start, at, name, strong)
    elif kind == "nul":
        yield from _value(text, at, name, strong or option)
    elif kind == "next":
        if option or text[max(0, start - 2) : start - 1] in ("(", "["):
            yield from _value(text, at, name, strong)
        else:
            yield from _paired(text, end, name, strong)
    elif kind == "tag":
        value = _XML_VALUE.match(text, at) if _TAG_START.search(text, max(0, start - 42), start) else None
        closed = value and text[value.end() : value.end() + 64].lstrip().startswith("</")
        if value and (closed or name != "secret") and _counts(name, value[0], strong):  # <secret> is our own as well
            yield Span(at, value.end(), "secret", strong)
        yield from _paired(text, end, name, strong)
    elif kind == "call":
        yield from _value(text, at, name, strong)
    elif kind == "blank" and (option or _command(text, start, name)):
        yield from _value(text, at, name, strong or option)
    else:
        yield from _prose(text, end, name, strong)
        yield from _paired(text, end, name, strong)


def _command(text: str, start: int, name: str) -> bool:
    """Whether a name and a blank make an assignment: `setenv NAME value`, `.netrc`, `IDENTIFIED BY`."""
    line = text.rfind("\n", 0, start) + 1
    before = text[max(line, start - 120) : start]
    if _SETTERS.search(before + name) and (name.isupper() or "." in name or "_" in name):
        return True
    return (
        name.lower() in ("password", "passwd", "requirepass", "masterauth", "bindpw", "rootpw")
        and bool(_NETRC.search(before))
        and _single(text, start)
    )


def _single(text: str, start: int) -> bool:
    """Whether the line holds the name and one word: `password hunter22`, not a sentence."""
    end = text.find("\n", start)
    words = text[start : end if end >= 0 else start + 200].split()
    line = text.rfind("\n", 0, start) + 1
    return len(words) == 2 or bool(re.search(r"(?i)\b(?:login|machine)\b", text[line:start]))


def _assigned(text: str, start: int, at: int, name: str, strong: bool) -> Iterator[Span]:
    block = _BLOCK.match(text, at)
    if block and strong:
        for row in re.finditer(r"[^\s][^\n]*", text[block.start(1) : block.end(1)]):
            yield Span(block.start(1) + row.start(), block.start(1) + row.end(), "secret")
        return
    wrapped = _NEXT_LINE.match(text, at)
    if wrapped:
        if _counts(name, wrapped[1], strong):
            yield Span(wrapped.start(1), wrapped.end(1), "secret")
        return
    line = text.rfind("\n", 0, start) + 1
    alone = not text[line:start].strip(" \t-#>")
    yield from _value(text, at, name, strong, whole_line=alone and names.is_password(name))


def _value(text: str, at: int, name: str, strong: bool, *, whole_line: bool = False) -> Iterator[Span]:
    quoted = _QUOTED.match(text, at)
    if quoted and (quoted[2] is not None or quoted[4] is not None):
        group = 2 if quoted[2] is not None else 4
        if _counts(name, quoted[group], strong):
            yield Span(quoted.start(group), quoted.end(group), "secret", strong)
        return
    bare = _BARE.match(text, at)
    if not bare:
        return
    end = _bare_end(text, at, bare.end())
    if whole_line and end == bare.end():
        rest = _REST.match(text, at)
        stop = _NEXT_NAME.search(text, at, rest.end() if rest else end)
        end = max(end, len(text[at : stop.start() if stop else rest.end() if rest else end].rstrip()) + at)
    if _counts(name, text[at:end], strong):
        scheme = _SCHEME.match(text, at, end + 1)
        if scheme and scheme.end() >= end:
            token = _BARE.match(text, scheme.end())
            at, end = (token.start(), token.end()) if token else (at, end)
        yield Span(at, end, "secret", strong)


def _bare_end(text: str, at: int, end: int) -> int:
    """Where an unquoted value ends: a separator ends it only where another key, or nothing, follows; so `hun;ter` and
    `a,b` stay whole, `a;b=c` does not."""
    for stop in _MORE_KEYS.finditer(text, at, end):
        if stop.start() > at and (
            stop[0][0] != ","
            or "=" in text[stop.end() : stop.end() + 60]
            or ":" in text[stop.end() : stop.end() + 60]
            or stop.end() >= end
        ):
            end = stop.start()
            break
    while end > at + 1 and text[end - 1] in _CLOSERS and not (text[end - 1] == ")" and "(" in text[at:end]):
        end -= 1
    return end


def _header(text: str, at: int, name: str) -> Iterator[Span]:
    """`Authorization: Bearer x`, `Cookie: a=b; c=d`: all to the end of the line or the closing quote."""
    quoted = _QUOTED.match(text, at)
    if quoted and (quoted[2] is not None or quoted[4] is not None):
        group = 2 if quoted[2] is not None else 4
        start, end = quoted.start(group), quoted.end(group)
    else:
        rest = _REST.match(text, at)
        if not rest:
            return
        start, end = at, rest.end()
        before = text[text.rfind("\n", 0, at) + 1 : at]
        for quote in "\"'":  # -H "Authorization: ..."
            if before.count(quote) % 2 and quote in text[start:end]:
                end = text.index(quote, start, end)
    value = text[start:end].rstrip()
    scheme = _SCHEME.match(value)
    start += scheme.end() if scheme else 0
    value = text[start : start + len(value) - (scheme.end() if scheme else 0)]
    if scheme and scheme[1].lower() in _ONE_WORD:
        value = value.split()[0] if value.split() else ""
    if value and not names.harmless(name, value) and not (value.isalpha() and value.islower() and not scheme):
        yield Span(start, start + len(value), "secret")


def _paired(text: str, end: int, name: str, strong: bool) -> Iterator[Span]:
    """`name: DB_PASSWORD` and in the next line `value: x`; `key="password" value="x"`."""
    pair = _SECOND.match(text, end)
    if pair:
        yield from _value(text, pair.end(), name, strong)


def _prose(text: str, end: int, name: str, strong: bool) -> Iterator[Span]:
    """`The password is hunter2`, `Incorrect API key provided: sk...`, `key for api.example to your file: 0123...`."""
    found = _PROSE.match(text, end)
    if not found:
        last = _ENDS_LINE.match(text, end) if strong else None
        if last and re.search(r"\d", last[1]) and names.unlike_words(last[1]) and not names.harmless(name, last[1]):
            yield Span(last.start(1), last.end(1), "secret", sure=False)
        return
    group = "word" if found["word"] else "after"
    value = found[group].rstrip(".,;:!?)\"'").lstrip("\"'(")
    start = found.start(group) + found[group].index(value) if value else 0
    if not value or names.harmless(name, value) or _HEX_CONTEXT.search(text, end, found.start(group)):
        return
    if group == "word":
        plain = names.is_password(name) and re.match(r"\.?[ \t]*(?:\r?\n|$)", text[start + len(value) :])
        if strong and (names.unlike_words(value) or (plain and len(value) > 4)):
            yield Span(start, start + len(value), "secret", sure=False)
    elif (strong and names.unlike_words(value) and "/" not in value) or names.looks_secret(value, 20):
        yield Span(start, start + len(value), "secret", sure=False)


def _counts(name: str, value: str, strong: bool) -> bool:
    """Whether a value behind a name is to go. A weak name needs a value that looks drawn at random."""
    if names.harmless(name, value):
        return False
    last = name.lower().rpartition("_")[2].rpartition(".")[2]
    if strong:
        return True
    if last == "pass":
        return names.unlike_words(value)
    if last.endswith("auth") and names.basic_pair(value):
        return True
    return names.looks_secret(value, 32 if "sig" in last else 16)
