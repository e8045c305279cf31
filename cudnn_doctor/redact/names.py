"""Which names announce a secret, and which values are none.

A name is taken to its words (`dbPassword`, `DB_PASSWORD` and `db-password` are the same two): word lists then say
whether its value is a secret whatever it looks like (`password`), only where it looks like one (`key`), or never
(`pad_token`, `primary_key`).
"""

from __future__ import annotations

import base64
import binascii
import re
from functools import lru_cache
from math import log2
from typing import Literal

Strength = Literal["strong", "weak", "none"]

# A name that can announce a secret holds one of these; small letters. Searching them one by one takes a fifth of the
# time of one pattern for all.
SIGNS = (
    "pass", "pwd", "secret", "token", "key", "cred", "auth", "cookie", "session", "sessid", "srf", "signature",
    "sig=", "sig:",
    "_sig", "jwt", "_pat", "pat=", "pat:", "webhook", "license", "licence", "accessid", "connectionst",
    "connection_st", "dsn=", "dsn:",
    "contrase", "kennwort", "senha", "identified", "otp=", "otp:", "totp", "_pw", "pw=", "pw:", "hmac", "sas=",
    "sas:", "psk", "kod=",
    "bearer", "code=", "_code",
)  # fmt: skip
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_PASSWORD = frozenset({
    "password", "passwd", "passwort", "pwd", "passphrase", "passcode", "passwords", "kennwort", "contrasena", "senha",
    "userpassword", "dbpassword", "rootpassword", "mypassword", "sshpass", "pgpass", "pgpassword", "requirepass",
    "masterauth", "userpwd", "keypass", "storepass", "passwordhash",
})  # fmt: skip
_STRONG = frozenset({
    "secret", "secrets", "token", "credential", "credentials", "cred", "creds", "bearer", "jwt", "apikey", "apitoken",
    "apisecret", "authtoken", "accesstoken", "accesskey", "secretkey", "privatekey", "clientsecret", "authkey",
    "sharedkey", "accountkey", "sharedaccesskey", "sharedaccesssignature", "sessionid", "sessiontoken", "refreshtoken",
    "idtoken", "csrftoken", "xsrftoken", "csrf", "xsrf", "jsessionid", "phpsessid", "sessid", "webhook", "hmac", "psk",
    "wlssecret", "wlsaccessid", "totp", "usertoken", "bottoken", "deploytoken", "jobtoken", "encryptionkey",
    "signingkey", "licensekey", "licencekey", "connectionstring", "mfacode",
})  # fmt: skip
# Words before `key` (and `id` after them) that make it a secret, and those that make it none.
_KEY_OF = frozenset({
    "api", "access", "secret", "private", "account", "shared", "auth", "client", "master", "encryption", "encrypt",
    "signing", "sign", "license", "licence", "service", "storage", "session", "ssh", "deploy", "app", "application",
    "consumer", "subscription", "user", "admin", "root", "rsa", "dsa", "ec", "ed25519", "pgp", "gpg", "tls", "ssl",
    "jwt",
    "hmac", "webhook", "webhooks", "bot", "data", "product", "activation", "wandb", "openai", "hf", "aws", "azure",
    "gcp", "cipher", "aes", "des", "db", "database", "host", "write", "read", "ingest", "cert", "server", "age",
})  # fmt: skip
_KEY_NOT = frozenset({
    "primary", "foreign", "cache", "sort", "state", "dict", "partition", "index", "map", "query", "num", "hash",
    "lookup", "config", "row", "column", "public", "pub", "candidate", "group", "unexpected", "missing", "dispatch",
    "rng",
    "prng", "random", "seed", "kv", "attention", "attn", "past", "join", "hot", "mon", "tur", "don", "hoc", "jac",
    "whis",
    "object", "composite", "unique", "natural", "surrogate", "graph", "kernel", "autotune", "plan", "tuning", "metric",
    "registry", "op", "node", "file", "s3", "bucket", "image", "target", "source", "feature", "label", "input",
    "output",
    "per", "each", "by", "for", "known", "host_key_checking",
})  # fmt: skip
# Tokens of a language model's text.
_TOKEN_NOT = frozenset({
    "pad", "padding", "eos", "bos", "unk", "mask", "sep", "cls", "special", "added", "image", "video", "audio", "next",
    "prev", "previous", "first", "last", "stop", "start", "end", "begin", "new", "each", "per", "prompt", "output",
    "input", "generated", "decoded", "decoder", "encoder", "text", "word", "sub", "max", "min", "num", "n", "total",
    "number", "count", "boi", "eoi", "suffix", "prefix", "middle", "fim", "eot", "eom", "system", "assistant",
    "vision", "speech", "by", "forced", "suppress", "target", "source", "single", "current", "draft", "timestamp",
})  # fmt: skip
_AFTER_NOT = frozenset({  # what a token or key has, and is not
    "id", "ids", "type", "types", "len", "length", "count", "size", "index", "indices", "map", "class", "embedding",
    "embeddings", "per", "limit", "budget", "rate", "usage", "name", "names", "file", "path", "dir", "mask", "num",
    "healing", "ring", "classification", "url", "uri", "endpoint", "pos", "position", "positions", "counts", "dim",
    "format", "algorithm", "alg", "bits", "expiry", "expires", "ttl", "value", "values", "error", "errors", "states",
    "projection", "proj", "padding", "cache", "func", "fn", "mode", "level", "lengths", "policy", "checking",
})  # fmt: skip
_PASS_NOT = frozenset({"forward", "backward", "by", "com", "sur", "tres", "first", "second", "per", "fusion", "opt",
                       "multi", "single", "all", "each", "hlo", "xla", "optimization", "one", "two", "low", "high",
                       "band", "under", "over", "en", "render", "warmup"})  # fmt: skip
_NUMBER = re.compile(r"[-+]?[\d.,_]{0,30}(?:[eE][-+]?\d{1,4})?[a-zA-Z%]{0,2}")


_DOTTED_KEY = re.compile(r"(?i)(?:account|access|secret|private|shared|auth|api)\.key(?=\.\w+\.)")


def signs(folded: str) -> list[int]:
    """Where in a text in small letters a name that announces a secret may stand."""
    found = []
    for sign in SIGNS:
        at = folded.find(sign)
        while at >= 0:
            found.append(at)
            at = folded.find(sign, at + len(sign))
    return sorted(found)


@lru_cache(maxsize=4096)
def strength(name: str) -> Strength:
    """How much a name says that its value is a secret."""
    words = [w.lower() for w in _WORDS.findall(name)] or [name.lower()]
    joined = "".join(words)
    last = words[-1]
    if joined in _PASSWORD or joined in _STRONG or joined == "identified" or _DOTTED_KEY.search(name):
        return "strong"
    if any(w in _PASSWORD for w in words) and last not in {"file", "path", "prompt", "policy", "length", "hint", "url"}:
        return "strong"
    if re.search(r"passw(?:or)?d|passphrase|kennwort|passwort", joined) and last not in {"file", "path", "prompt"}:
        return "strong"
    if joined.endswith("pass") or last == "pw":
        stem = joined.removesuffix("pass")
        return "none" if any(stem.endswith(w) for w in _PASS_NOT) or "/" in name else "strong" if stem else "weak"
    if words[0] in {"x", "set", "get", "my", "the"} and len(words) > 1:
        words = words[1:]
    return _compound(words, joined)


def _compound(words: list[str], joined: str) -> Strength:
    last = words[-1]
    if "token" in words or joined.endswith("token"):
        at = words.index("token") if "token" in words else len(words) - 1
        before = set(words[:at]) or {joined.removesuffix("token")}
        after = words[at + 1 :]
        if before & _TOKEN_NOT or (after and after[0] in _AFTER_NOT) or after[:1] == ["izer"]:
            return "none"
        return "strong"
    if "secret" in words or "secrets" in words or joined.endswith("secret"):
        return "none" if last in {"name", "names", "path", "file", "ref", "type", "sauce"} else "strong"
    if joined.startswith(("authorization", "proxyauthorization", "xauth")) or last in {"credential", "credentials"}:
        return "strong"
    if "key" in words or joined.endswith("key"):
        at = len(words) - 1 - words[::-1].index("key") if "key" in words else len(words) - 1
        stem = words[at - 1] if at and "key" in words else joined.removesuffix("key")
        after = words[at + 1 :]
        if stem in _KEY_NOT or (after and after[0] in _AFTER_NOT - {"id", "value", "file"}):
            return "none"
        if stem in _KEY_OF or any(stem.endswith(w) for w in _KEY_OF if len(w) > 2):
            return "strong" if not after or after[0] in {"id", "value", "data", "base64", "b64"} else "weak"
        return "weak"
    if joined.endswith(("sessionid", "sessid", "sessiontoken", "accessid", "licenseid", "licenceid", "licensecode")):
        return "strong"
    if last in {"pat", "sas", "auth", "cookie", "cookies", "signature", "sig", "salt", "otp", "code", "dsn", "nonce"}:
        return "weak"
    if joined in {"webhookurl", "hookurl", "databaseurl", "connectionuri", "encryptkey"} or last in {"webhook", "psk"}:
        return "strong"
    return "weak" if any(w in {"auth", "credential", "cred", "encrypted", "private"} for w in words) else "none"


def is_password(name: str) -> bool:
    """Whether even a number is a secret behind this name."""
    joined = "".join(w.lower() for w in _WORDS.findall(name))
    return bool(
        re.search(r"passw|passphrase|pwd|pass$|kennwort|secret|credential|pin$|passcode|apikey|accesskey|licen", joined)
    )


_HARMLESS_WORDS = frozenset(
    [
        "true",
        "false",
        "none",
        "null",
        "nil",
        "undefined",
        "yes",
        "no",
        "on",
        "off",
        "enabled",
        "disabled",
        "required",
        "optional",
        "missing",
        "empty",
        "unset",
        "default",
        "invalid",
        "incorrect",
        "wrong",
        "expired",
        "valid",
        "ok",
        "not",
        "is",
        "was",
        "must",
        "prompt",
        "provided",
        "found",
        "set",
        "given",
        "here",
        "accepted",
        "rejected",
        "denied",
        "failed",
        "and",
        "or",
        "auto",
        "str",
        "string",
        "bytes",
        "int",
        "bool",
        "float",
        "any",
        "object",
        "list",
        "dict",
        "tuple",
        "optional",
        "redacted",
        "removed",
        "hidden",
        "masked",
        "changed",
        "unchanged",
        "unknown",
        "n/a",
        "na",
        "inherit",
        "the",
        "a",
        "an",
        "env",
        "file",
        "ask",
        "never",
        "always",
        "basic",
        "bearer",
        "digest",
        "changeme-not",
        "self",
        "cls",
        "type",
        "os",
        "function",
        "lambda",
        "return",
        "async",
        "await",
        "mismatch",
        "error",
        "for",
        "with",
        "in",
        "from",
        "of",
        "to",
        "it",
        "be",
        "has",
        "needs",
        "may",
        "can",
        "cannot",
        "could",
        "should",
        "will",
        "will-be",
        "been",
        "being",
        "authentication",
        "authorization",
        "method",
    ]
)
_PLACEHOLDER = re.compile(
    r"<(?:secret|removed|(?:user|host|email|address|mac|serial|account)-\d+)>.*|<[\w|/ ./-]{1,40}>|\[[A-Z_]{2,12}\]"
    r"|\$\{?\w[\w.:-]{0,60}\}?|%\w{1,40}%|\{\{[^{}]{0,60}\}\}|\*{2,}|x{3,}|X{3,}|\.{2,}|[-_=.,;:!?/|<>]{0,9}"
    r"|0x[0-9a-fA-F]{0,16}"
    r"|<\|[\w-]{1,40}\|>|</?s>",
    re.DOTALL,
)
_CODE = re.compile(
    r"(?:self|cls|os|args|config|cfg|kwargs|opts|options|settings|env|request|torch|tf|np|jax|context|ctx"
    r"|params)[.\[(].*"
    r"|[A-Za-z_][\w.]{0,80}\(.*|lambda\b.*",
    re.DOTALL,
)


def harmless(name: str, value: str) -> bool:
    """Whether a value behind `name` says nothing: a switch, a placeholder, code, a number where none is secret."""
    bare = value.strip().strip("\"'`,;")
    if not bare or _PLACEHOLDER.fullmatch(bare) or bare.lower().rstrip(".:!?)") in _HARMLESS_WORDS:
        return True
    if bare[0] in "[({" and not is_password(name):  # what is in it has names of its own
        return True
    if _CODE.fullmatch(bare) and not is_password(name):
        return True
    if _NUMBER.fullmatch(bare) and not is_password(name):
        return True
    if re.fullmatch(r"[A-Za-z_][A-Za-z_.]{2,60}", bare) and any(
        sign in bare.lower() for sign in SIGNS
    ):  # token=auth_token
        return strength(bare.rpartition(".")[2]) != "none"
    return False


def entropy(text: str) -> float:
    """Bits a character, of the characters' own frequencies."""
    counts = [text.count(c) for c in set(text)]
    return -sum(n / len(text) * log2(n / len(text)) for n in counts)


_RANDOM = re.compile(r"[A-Za-z0-9+/=_~.!#$%^&*@-]{6,4000}")


def looks_secret(value: str, least: int = 16) -> bool:
    """Whether a value looks drawn at random: long, of letters and digits, no word, path or version."""
    if len(value) < least or not _RANDOM.fullmatch(value) or value.startswith(("/", "./", "0x", "http")):
        return False
    if value.count(".") >= 2 and value == value.lower():  # the name of a weight or module
        return False
    digits = sum(c.isdigit() for c in value)
    letters = sum(c.isalpha() for c in value)
    if not digits or not letters or re.fullmatch(r"v?\d+(?:[._-][\w]{1,12}){1,8}", value):
        return False
    return entropy(value) >= (3.0 if len(value) < 24 else 3.2)


def unlike_words(value: str) -> bool:
    """Whether a short value is no word of a sentence: digits in it, mixed case, or a sign."""
    word = value.strip("\"'`.,;:!?()")
    return bool(re.search(r"\d", word) and re.search(r"[A-Za-z]", word)) or bool(
        re.search(r"[a-z][A-Z]|[#$%^&*!~]", word)
    )


def basic_pair(value: str) -> bool:
    """Whether a value is base64 of `user:password`."""
    if not re.fullmatch(r"[A-Za-z0-9+/_-]{8,400}={0,2}", value):
        return False
    try:
        plain = base64.b64decode(value + "=" * (-len(value) % 4), altchars=b"-_", validate=False).decode("ascii")
    except (binascii.Error, UnicodeDecodeError, ValueError):
        return False
    return bool(re.fullmatch(r"[!-9;-~]{1,80}:[ -~]{1,200}", plain))
