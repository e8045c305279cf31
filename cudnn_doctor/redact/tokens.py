"""Secrets that are known by their own form, without a name beside them: tokens of issuers, private keys, web tokens.

The issuers' forms are gitleaks' rules (gitleaks.json: source, date and licence stand in it), read when a text is first
searched, and a list of prefixes: gitleaks wants the exact length so that a report is right; a ticket must not leak a
token that was cut, or one of next year's length.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property, lru_cache
from pathlib import Path

import msgspec

from cudnn_doctor.redact.names import basic_pair, entropy, looks_secret
from cudnn_doctor.redact.search import Signed, fold
from cudnn_doctor.redact.spans import Span

RULES = Path(__file__).with_name("gitleaks.json")
# Prefixes that an issuer publishes for its tokens (GitHub, GitLab, Hugging Face, OpenAI and those who follow it, AWS,
# Google, Slack, npm, PyPI, Docker, Atlassian, HashiCorp, NVIDIA, services for machine learning).
_PREFIXES = (
    "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "gldt-", "glrt-", "glcbt-", "glptt-", "glft-",
    "glsoat-", "glimt-", "glagent-", "gloas-", "glffct-", "hf_", "api_org_", "sk-", "sk_live_", "sk_test_",
    "rk_live_", "rk_test_", "pk_live_", "whsec_", "xoxb-", "xoxa-", "xoxp-", "xoxr-", "xoxs-", "xoxe-", "xapp-",
    "nvapi-", "npm_", "pypi-", "dckr_pat_", "dckr_oat_", "GOCSPX-", "ya29.", "AIza", "AKCp", "ATATT3", "ATCTT3",
    "ATBB", "BBDC-", "hvs.", "hvb.", "hvr.", "gsk_", "r8_", "pplx-", "xai-", "fw_", "tgp_v1_", "tvly-", "jina_",
    "pcsk_", "lsv2_pt_", "lsv2_sk_", "e2b_", "rpa_", "csk-", "nvcf-", "wandb_v1_", "dapi", "dkea", "dop_v1_",
    "doo_v1_", "dor_v1_", "shpat_", "shpca_", "shppa_", "shpss_", "lin_api_", "lin_oauth_", "figd_", "figo_", "ntn_",
    "secret_", "pul-", "pscale_tkn_", "sntrys_", "sntryu_", "glsa_", "glc_", "grafana_", "rdme_", "rubygems_",
    "sgp_", "sqp_", "squ_", "sqa_", "tskey-", "SG.", "key-", "cfut_", "cfat_", "v1.0-", "PMAK-", "NRAK-", "NRII-",
    "NRJS-", "phc_", "phx_", "sbp_", "vcp_", "vck_", "rnd_", "railway_", "fo1_", "fm2_", "FlyV1", "AGE-SECRET-KEY-1",
    "ops_eyJ", "A3-", "xkeysib-", "xsmtpsib-", "mlsn.", "LTAI", "AQVN", "y0_", "t1.", "dt0c01.", "dt0s01.", "EAAC",
    "EAAM", "EZAK", "EZTK", "EAAA", "sq0atp-", "sq0csp-", "shippo_live_", "duffel_live_", "duffel_test_",
    "FLWSECK_TEST-", "FLWSECK-", "CLOJARS_", "pnu_", "pat-", "tk-us-", "dp.pt.", "dp.st.", "sm_pat_", "sm_aat_",
    "ABSK", "bedrock-api-key-", "ico-", "fio-u-", "tfp_", "API-", "HRKU-", "cio-", "ctp_", "ctx7sk-", "lf_sk_",
    "sk-lf-", "ak-", "oaat_", "b_pat_", "apify_api_", "ucat_", "nfp_", "pat_", "ddp_", "ddat_", "dsapi-", "zpka_",
    "rzp_live_", "rzp_test_", "amzn.", "amzn1.oa2-", "1//0", "AQAAAA", "whsk_", "posthog_",
    "AKIA", "ASIA", "ABIA", "ACCA", "AIDA", "AROA",
)  # fmt: skip
_LEAST = 12  # characters behind a prefix
# Behind these a word of a sentence or of a program may stand: the rest must be mixed.
_COMMON = frozenset({
    "secret_", "key-", "SG.", "sk-", "fw_", "pat-", "pat_", "API-", "hf_", "npm_", "ak-", "A3-", "t1.", "y0_", "r8_",
    "glc_",
    "ops_", "pul-", "dapi", "dkea", "ico-", "rnd_", "csk-", "gsk_", "v1.0-", "grafana_", "railway_", "jina_", "EAAA",
    "EAAC",
    "EAAM", "ATBB", "ABSK", "AQAAAA", "cio-", "pypi-", "nvcf-", "AKCp", "ntn_", "amzn.", "AIza", "vcp_", "sbp_", "xai-",
    "LTAI", "AQVN", "phc_", "phx_", "EZAK", "EZTK", "ABIA", "ACCA", "ASIA", "posthog_", "lin_api_", "ddp_", "nfp_",
})  # fmt: skip
_BODY = re.compile(r"[A-Za-z0-9_~/+.-]{0,1000}={0,2}")


class Rule(msgspec.Struct, dict=True):
    """One of gitleaks' rules."""

    id: str
    regex: str
    keywords: list[str]
    entropy: float = 0.0
    near: bool = False
    group: int = 0

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """Compiled when its keyword is first met."""
        return re.compile(self.regex)


class _File(msgspec.Struct):
    rules: list[Rule]


@lru_cache(maxsize=1)
def rules() -> tuple[tuple[str, tuple[Rule, ...]], ...]:
    """gitleaks' rules by keyword."""
    by_keyword: dict[str, list[Rule]] = {}
    for rule in msgspec.json.decode(RULES.read_bytes(), type=_File).rules:
        for keyword in rule.keywords:
            by_keyword.setdefault(keyword, []).append(rule)
    return tuple((k, tuple(found)) for k, found in by_keyword.items())


def find(text: str, folded: str) -> Iterator[Span]:
    """Every secret that is known by its form."""
    near = _near_runs(text)
    if near:
        yield from _prefixed(text, near)
        yield from _by_rules(text, folded, fold(near))
    yield from _web_tokens(text)
    yield from _keys(text)
    for pattern in (_FORMS, _AWS_PAIR, _LOGGED_IN):
        for found in pattern.finditer(text, folded):
            if pattern is _FORMS or looks_secret(found[1], 20):
                yield Span(*found.span(1), "secret", sure=pattern is _FORMS)
    for pad in _PAD.finditer(text):
        body = _BEFORE_PAD.search(text, max(0, pad.start() - 400), pad.start() + 1)
        if body and basic_pair(text[body.start() : pad.end()]):
            yield Span(body.start(), pad.end(), "secret")


# Hashes of passwords, a bot's token of Telegram and of Discord, an account of Twilio, a token in an address of conda.
_FORMS = Signed(
    r"(?<![\w$])((?:\$(?:1|2[abxy]?|5|6|y|apr1|argon2\w{1,3}|pbkdf2[\w-]{0,12}|scrypt)\$[^\s:'\"]{8,200}"
    r"|\d{8,10}:AA[\w-]{30,40}|[MNO][A-Za-z0-9_-]{23,27}\.[\w-]{6}\.[\w-]{27,38}|AC[0-9a-f]{32})(?![A-Za-z0-9])|(?<=/t/)[\w.=%~-]{8,80}(?=/))",
    "$1$", "$2", "$5$", "$6$", "$y$", "$apr1$", "$argon2", "$pbkdf2", "$scrypt", ":aa",
    re.compile(r"\.[\w-]{6}\.[\w-]{27}"), re.compile("ac[0-9a-f]{32}"), "/t/",
)  # fmt: skip
# The secret half beside a key's id, and what a program is logged in with.
_AWS_PAIR = Signed(
    r"(?:AKIA|ASIA)[A-Z0-9]{16}[^\n]{0,80}?(?<![A-Za-z0-9/+])([A-Za-z0-9/+]{36,44})(?![A-Za-z0-9/+=])", "akia", "asia"
)
_LOGGED_IN = Signed(
    r"(?m)\b(?:login|auth|authenticate|activate|register)[ \t]{1,4}(?:--?[\w-]{1,30}[ \t]{1,4}){0,3}"
    r"([\w.-]{20,400})[ \t]*$",
    "login", "auth", "activate", "register",
)  # fmt: skip
_PAD = re.compile(r"[A-Za-z0-9+/]={1,2}(?![A-Za-z0-9+/=])")
_BEFORE_PAD = re.compile(r"(?<![A-Za-z0-9+/=])[A-Za-z0-9+/]{10,400}\Z")


_RUN = re.compile(r"[A-Za-z0-9_+-]{14,}")
_DIGIT = re.compile(r"\d")
_BEFORE = 72  # characters before a run in which its prefix, or the name of its issuer, stands


def _near_runs(text: str) -> str:
    """All stretches of the text in which a token can be: long runs of letters with digits among them, or of many
    letters of both cases, and what stands before them. Searching these for 400 words is several times faster."""
    parts, done = [], 0
    for run in _RUN.finditer(text):
        start, end = run.span()
        if _DIGIT.search(text, start, end) or (
            end - start >= 24 and not (word := run[0]).islower() and not word.isupper()
        ):
            first = max(done, start - _BEFORE)
            if first > done:
                parts.append("\n")  # keeps apart what does not follow
            parts.append(text[first:end])
            done = end
    return "".join(parts)


# ------------------------------------------------------------ tokens by prefix


def _prefixed(text: str, near: str) -> Iterator[Span]:
    for prefix in _PREFIXES:
        at = text.find(prefix) if prefix in near else -1
        while at >= 0:
            end = at + len(prefix)
            if not at or not (text[at - 1].isalnum() or (text[at - 1] in "_-." and prefix in _COMMON)):
                body = _BODY.match(text, end)
                value = body[0].rstrip(".-/") if body else ""
                if len(value) >= _LEAST and (prefix not in _COMMON or _mixed(value)):
                    end += len(value)
                    yield Span(at, end, "secret")
            at = text.find(prefix, end)


def _mixed(value: str) -> bool:
    """Whether the characters are of several kinds, as a word's or a path's are not."""
    head = re.split(r"[/.]", value)[0]
    if len(head) < 12:
        return False
    digits = sum(c.isdigit() for c in head)
    upper = sum(c.isupper() for c in head)
    return (
        (digits >= 2 and (upper >= 2 or digits >= 6) and entropy(head) > 2.8)
        or (upper >= 4 and digits >= 1)
        or (upper >= 5 and any(c.islower() for c in head) and "_" not in head and "-" not in head)
    )


# ------------------------------------------------------------ web tokens


_JWT = re.compile(r"eyJ[\w-]{6,4000}")
_JWT_REST = re.compile(r"(?:\.|\r?\n[ \t]{0,40}(?=[\w.-]{20,}))[\w-]{0,4000}")


def _web_tokens(text: str) -> Iterator[Span]:
    """JSON web tokens, also when lines were wrapped in them."""
    done = 0
    while (at := text.find("eyJ", done)) >= 0:
        head = _JWT.match(text, at)
        done = at + 3
        if not head or (at and (text[at - 1].isalnum() or text[at - 1] == "_")):
            continue
        end, dots = head.end(), 0
        while dots < 4 and (more := _JWT_REST.match(text, end)):
            end = more.end()
            dots += more[0][0] == "."
        if dots or end - at >= 40:
            yield Span(at, end, "secret")
            done = end


# ------------------------------------------------------------ private keys


_BEGIN = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_END = re.compile(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_BODY_LINE = re.compile(
    r"(?:[ \t]*(?:\\[nr]|[A-Za-z0-9+/=]{1,120}|[A-Z][\w-]{2,24}: [^\n]{1,200}|[A-Z][\w-]{2,24}:)?){1,400}(?:\r?\n|$|"
    r"(?=[\"'\\]))"
)
_FULL_LINES = re.compile(r"(?m)^[ \t>|]{0,12}([A-Za-z0-9+/]{60,80}={0,2})[ \t\\]*(?:\r?\n|\Z)")
_PUTTY = re.compile(
    r"Private-Lines: (\d{1,3})[ \t]*\r?\n((?:[A-Za-z0-9+/=]{1,80}[ \t]*(?:\r?\n|$)){1,400})|Private-MAC: "
    r"([0-9a-fA-F]{8,128})"
)
_KEY_MAX = 20_000


def _keys(text: str) -> Iterator[Span]:
    """PEM, PGP, PuTTY and OpenSSH keys, whole or cut."""
    at = text.find("-----BEGIN ")
    while at >= 0:
        begin = _BEGIN.match(text, at)
        if begin:
            end = _END.search(text, begin.end(), begin.end() + _KEY_MAX)
            stop = end.end() if end else _cut(text, begin.end())
            yield Span(at, stop, "secret")
        at = text.find("-----BEGIN ", at + 11)
    at = text.find("-----END ")
    while at >= 0:
        end = _END.match(text, at)
        if end and text.rfind("-----BEGIN ", max(0, at - _KEY_MAX), at) < 0:
            yield Span(_back(text, at), end.end(), "secret")
        at = text.find("-----END ", at + 9)
    if "Private-" in text:
        for found in _PUTTY.finditer(text):
            group = 2 if found[2] else 3
            yield Span(found.start(group), found.end(group), "secret")
    yield from _full_lines(text)


def _cut(text: str, at: int) -> int:
    """Where the body of a key ends whose last line is missing."""
    first = at
    while at - first < _KEY_MAX and (line := _BODY_LINE.match(text, at)) and line.end() > at:
        at = line.end()
        if at >= len(text) or text[at] in "\"'":
            break
    return first + len(text[first:at].rstrip())


def _back(text: str, at: int) -> int:
    """Where the body of a key begins whose first line is missing."""
    start = at
    while start > 0 and at - start < _KEY_MAX:
        line = text.rfind("\n", 0, start - 1) + 1
        if not re.fullmatch(r"[ \t]*(?:[A-Za-z0-9+/=]{1,120}|[\w-]{2,24}: [^\n]{1,200})?\s*", text[line:start]):
            break
        start = line
    return start


def _full_lines(text: str) -> Iterator[Span]:
    """Two or more lines full of base64: the middle of a key or of another secret."""
    block: list[re.Match[str]] = []
    for line in _FULL_LINES.finditer(text):
        if (
            any(c.isdigit() for c in line[1])
            and any(c.isupper() for c in line[1])
            and any(c.islower() for c in line[1])
        ):
            if block and block[-1].end() != line.start():
                yield from _block(text, block)
                block = []
            block.append(line)
    yield from _block(text, block)


def _block(text: str, lines: list[re.Match[str]]) -> Iterator[Span]:
    if len(lines) >= 2:
        tail = re.compile(r"[ \t]*[A-Za-z0-9+/]{2,80}={0,2}(?=[ \t]*(?:\r?\n|$))").match(text, lines[-1].end())
        yield Span(lines[0].start(1), tail.end() if tail else lines[-1].end(1), "secret", sure=False)


# ------------------------------------------------------------ gitleaks


def _by_rules(text: str, folded: str, near: str) -> Iterator[Span]:
    for keyword, found in rules():
        if keyword not in near:
            continue
        at = folded.find(keyword)
        places = list(_lines(folded, keyword, at))
        for rule in found:
            for start, end in places:
                for match in rule.pattern.finditer(text, start, end):
                    span = _secret_of(rule, match)
                    if span:
                        yield span


def _lines(folded: str, keyword: str, at: int) -> Iterator[tuple[int, int]]:
    """The stretches around a keyword in which a rule can match, apart from each other."""
    done = 0
    while at >= 0:
        start = max(done, folded.rfind("\n", max(0, at - 400), at) + 1, at - 400)
        done = min(len(folded), at + 2048)
        yield start, done
        at = folded.find(keyword, done)


def _secret_of(rule: Rule, match: re.Match[str]) -> Span | None:
    group = rule.group or max(
        range(match.re.groups + 1), key=lambda g: (g > 0 and match.end(g) - match.start(g) > 11, -g)
    )
    value = match[group] or match[0]
    if rule.near and not (any(c.isdigit() for c in value) and entropy(value) >= max(rule.entropy, 2.5)):
        return None
    if not rule.near and entropy(value) < min(rule.entropy, 3.0):
        return None
    start = match.start(group) if match[group] else match.start()
    return Span(start, start + len(value), "secret", sure=not rule.near)
