"""Who: users in paths, prompts, tables and fields, mail addresses, names of authors, accounts and projects."""

from __future__ import annotations

import re
from collections.abc import Iterator

from cudnn_doctor.redact import patterns as p
from cudnn_doctor.redact.search import Signed
from cudnn_doctor.redact.spans import Kind, Span

_S = r"[\\/]{1,4}"  # one separator, as written or escaped
_NAME = r"[^\\/\s:'\",;()\[\]<>|*?~$&=]"
# Folders whose next component is a person, and those between that name a group, a letter or a mount.
_HOMES = (
    r"(?i:home\d{0,2}|homes|users|user|people|staff|students|scratch|homedirs?|profiles|nfshome|u|jusers|accounts"
    r"|media)"
)
_HOME_WORD = re.compile(_HOMES)
_GROUP = re.compile(
    r"(?i)[a-z0-9]|(?:.*[-_.])?(?:team|group|grp|labs?|dept|staff|students?|faculty|phd|users|people|members?|homes?"
    r"|shared"
    r"|projects?|research|interns?|eng|infra|ml|ai|local|nfs|vol\d+|hpc|dfs|fs\d+)(?:[-_.]?\d+)?"
)
_PERSON = rf"(?:{_NAME}{{1,64}}(?:'{_NAME}{{1,40}})?)"
HOME_PATH = Signed(
    rf"((?:(?<![\w.-])(?:[A-Za-z]:)?|(?<=\w)|(?<=[=:]))(?:[\\/]{{1,4}}[\w.-]{{1,40}}){{0,5}}?{_S}{_HOMES}{_S})"
    rf"({_PERSON})",
    re.compile(r"home\d{0,2}[/\\]"), "homes/", "users/", "user/", "people/", "staff/", "students/", "scratch/",
    "homedir",
    "profiles/", "/u/", "accounts/", "media/",
    "users\\", "profiles\\",
)  # fmt: skip
_SPACED = re.compile(r"(?:[ ][A-ZÀ-Þ][\w.'-]{0,40}){1,3}(?=[\\/])")
_IN_QUOTES = re.compile(r"(?:[ ][^\\/'\"\n]{1,40})(?=[\\/])")
_NEXT = re.compile(rf"{_S}({_PERSON})")
_DATA_WORDS = frozenset({
    "data", "datasets", "dataset", "proj", "project", "projects", "src", "code", "lib", "lib64", "bin", "venv", ".venv",
    "env", "envs", "work", "workspace", "tmp", "temp", "cache", ".cache", ".local", ".conda", "miniconda3", "anaconda3",
    "miniforge3", "mambaforge", "conda", "feedstock_root", "build_artifacts", "x", "share", "opt", "include", "models",
    "checkpoints", "logs", "log", "train.py", "repos", "git", "dev", "app", "common", "public", "modules", "software",
})  # fmt: skip
TILDE = Signed(r"((?<![\w/.~])~)([A-Za-z_][\w.-]{1,31})(?=/)", "~")
# Folders of programs that end in the user's name, and of a site's projects.
TEMPORARY = Signed(
    r"(/(?:torchinductor|hsperfdata|ray|triton|jax|pymp|dask|krb5cc|vllm|inductor|tmp|matplotlib|numba)_)"
    r"([a-z][a-z0-9]{2,31})\b",
    *(
        f"/{w}_"
        for w in (
            "torchinductor",
            "hsperfdata",
            "ray",
            "triton",
            "jax",
            "pymp",
            "dask",
            "krb5cc",
            "vllm",
            "inductor",
            "tmp",
            "matplotlib",
            "numba",
        )
    ),
)
WORK = Signed(r"((?<![\w./-])/(?:[a-z]{1,8}/)?work/)([a-z][\w.-]{2,31})(?=/)", "/work/")
PROJECT = Signed(r"((?<![\w./-])/(?:[a-z]{1,8}/)?(?:projects?|proj)/)([\w.-]{2,64})", "/proj")
NESTED_USER = Signed(
    r"(?i)(\b(?:user|owner|author|account)\\?['\"]?\s?[:=]\s?\{[^{}\n]{0,200}?\\?['\"](?:name|login|username|id"
    r"|email)\\?['\"]\s?[:=]\s?\\?['\"])([\w.@ -]{2,80})(?=\\?['\"])",
    *(re.compile(w + r"[\\'\"]{0,3}\s?[:=]\s?\{") for w in ("user", "owner", "author", "account")),
)
USER_PROSE = Signed(
    r"(?i)(\buser )(['\"]?[a-z][\w.-]{1,31}['\"]?)(?=\s(?:not|logged|has|is|does|cannot|from|on|at|with|via|quota"
    r"|exceeded|was|ran)\b|['\".,;)]|[ \t]*$)",
    "user ",
)  # fmt: skip

EMAIL = Signed(
    r"(?<![\w.+-])[^\W_][\w.+'-]{0,63}(?:@|%40)[^\W_][^\W_-]?(?:[^\W_]|-(?=[^\W_])){0,60}(?:\.(?:[^\W_]"
    r"|-){1,62}){0,5}\.(?:[^\W\d_]){2,24}\b"
    r"(?!/|:[\w./-]{1,200}\.git\b)",
    "@",
    "%40",
)
SPELT_EMAIL = Signed(
    r"(?i)(?<![\w.])[\w.+-]{2,64}\s{0,2}[\[({<]\s?at\s?[\])}>]\s{0,2}[\w-]{2,63}(?:\s{0,2}(?:[\[({<]\s?(?:dot|punkt"
    r"|point)\s?[\])}>]|\.)\s{0,2}[\w-]{2,63}){1,4}",
    "(at)", "[at]", "{at}", "<at>", "( at", "[ at",
)  # fmt: skip
LOGIN = Signed(
    r"(?<![\w@./+-])([A-Za-z_][A-Za-z0-9_.-]{1,31})@"
    r"(?!GLIBC|GLIBCXX|CXXABI|GCC|plt\b|got\b|file\b|https?\b|lib|entry\b|sha256|v?\d+(?:\.\d+){0,2}(?:\s|$))"
    r"([A-Za-z0-9][\w-]{1,62}(?:\.[\w-]{1,62}){0,8})(?=:[~/\w]|[\s\]$#,)'\"]|$)",
    "@",
)
USER_FIELD = Signed(
    r"(?i)((?<![\w-])(?:--?)?(?:(?:[a-z]{1,12}[_ -])?user(?:[_ -]?(?:name|id))?|logname|login(?:[_ ]name)?|owner"
    r"|uname|uid|run as|"
    r"(?:author|principal|cn))"
    r"\\?['\"]?\s{0,2}(?:[=:]|=>|%3d)\s{0,2}\\?['\"]?"
    r"|<(?:user(?:name)?|owner|login|author)>|\blogged in as:?\s{1,2}|\baccepted [a-z/-]{1,30} for "
    r"(?:invalid user )?|\bsession (?:opened|closed) for user "
    r"|\b(?:failed|invalid) (?:password|publickey) for (?:invalid user )?|--(?:[a-z]{1,8}-)?user(?:name)?[ =]"
    r"|\bsudo:\s{1,4}|\bsu: \(to \w+\) "
    r"|\blogin[ \t]{1,4}(?=[\w.-]{2,32}[ \t\r\n]{1,8}(?:[ \t]*password|passwd))|\bsu - |\bon behalf of "
    r"|\blast login: \S{1,20}\s)"
    r"([a-zA-Z_][\w.-]{0,31}\b(?:@[\w.-]{1,80})?)(?![\w/.-]|\((?!\d))",
    *(re.compile(w + r"[\w -]{0,8}[\\'\"]{0,3}\s{0,2}(?:[=:]|%3d)") for w in (
        "user", "logname", "login", "owner", "uname", "run as", "uid", "acct", "author", "principal", "cn",
    )),
    "<user", "<owner", "<login", "<author", "logged in as", "accepted ", "for user ", "publickey for",
    "password for", "user ",
    "login ", "login\t", "sudo:", "su: (", "su - ", "on behalf of", "last login",
)  # fmt: skip
_ATTACHED = Signed(
    r"(\b(?:mysql\w{0,12}|mariadb\w{0,12}|mongo\w{0,8}|psql|redis-cli|clickhouse-client)\b[^\n]{0,200}?\s-[uU] ?)"
    r"([A-Za-z][\w.-]{1,31})",
    "mysql",
    "mariadb",
    "mongo",
    "psql",
    "clickhouse-client",
)
AUTHOR = Signed(
    r"(?im)(^[ \t]*(?:author|committer|commit|tagger|signed-off-by|co-authored-by|reviewed-by|acked-by|reported-by"
    r"|tested-by|from|by):[ \t]{1,8})"
    r"([^\n<]{2,80}?)(?=[ \t]*<[^\n>]{3,100}>)",
    "author:", "committer:", "tagger:", "-by:", "from:", "commit:", "by:",
)  # fmt: skip
_CHOWN = Signed(r"(\bchown(?: -\w{1,4}){0,3} )([a-z_][\w.-]{1,31})(?=:| )", "chown ")
_GPUSTAT = Signed(r"((?<![\w.]))([a-z_][\w.-]{1,31})(?=\(\d{1,7}M\))", re.compile(r"\(\d{1,7}m\)"))
_IDENTITY = Signed(r"(?<![\w.-])([ug]id=\d{1,10}|\d{1,10})\(([a-z_][\w.-]{0,31})\)", "id=")
_PASSWD = Signed(
    r"(?m)^([a-z_][\w.-]{0,31}):[x*!]?:\d{1,10}:\d{1,10}:([^:\n]{0,80}):/[^:\n]{0,200}:/", ":x:", ":*:", "::"
)
_LS = Signed(
    r"(?m)(?:^|(?<=\s))[-dlcbps](?:[r-][w-][xsStT-]){3}[.+@]?[ \t]+\d{1,9}[ \t]+([A-Za-z_][\w.@\\-]{0,63})[ \t]+"
    r"([A-Za-z_][\w.@ \\-]{0,63}?)[ \t]+\d",
    "-rw", "drw", "-r-", "dr-", "lrwx", "srw", "prw", "crw", "brw",
)  # fmt: skip
_PS = re.compile(
    r"(?m)^[ \t]*([a-z_][\w.+-]{0,31})[ \t]+\d{1,9}[ \t]+(?:\d{1,9}[ \t]+)?\d{1,3}(?:\.\d)?[ \t]+"
    r"(?:\d{1,3}\.\d[ \t]+\d{3,12}[ \t]|\d\d:\d\d\b|[A-Z][a-z]{2}\d\d)"
    r"|^[ \t]*\d{1,9}[ \t]+([a-z_][\w.+-]{0,31})[ \t]+-?\d{1,3}[ \t]+-?\d{1,3}[ \t]+[\d.]{1,12}[kmgt]?[ \t]"  # top
    r"|^([a-z_][\w.-]{0,31})[ \t]+(?:pts/\d{1,4}|tty\d{0,3}|:\d)[ \t]"  # who, w, last
)
_HEAD = re.compile(r"[^\n]*")
_HEAD_WORDS = ("USER", "OWNER", "ACCOUNT", "NODE", "HOST", "UID", "User", "Account", "NodeList")
_HEADS: dict[str, Kind] = {
    "USER": "user", "USERNAME": "user", "OWNER": "user", "UID": "user", "ACCOUNT": "account", "NODELIST": "host",
    "NODE": "host", "HOSTNAMES": "host", "HOSTNAME": "host", "HOST": "host", "NODEHOST": "host",
    "NODELIST(REASON)": "host",
}  # fmt: skip
# Slurm's and the clouds' accounts and projects.
ACCOUNT = Signed(
    r"(?im)((?<![\w-])(?:slurm_\w{0,20}account|sbatch_account|salloc_account|slurm_\w{0,10}project|account"
    r"|project[_-]?id|gcp_project|google_cloud_project|"
    r"cloudsdk_core_project|wckey|tenant(?:[_-]?id)?|subscription(?:[_-]?id)?|organi[sz]ation(?:[_-]?id)?"
    r"|workspace[_-]?id|customer[_-]?id|client[_-]?id|charge[_-]?account)"
    r"\\?['\"]?\s{0,2}[=:]\s{0,2}\\?['\"]?|--(?:account|project|wckey)[ =]|^#SBATCH[ \t]{1,4}-A[ \t]{0,4}|\b"
    r"(?:sbatch|srun|salloc)\b[^\n]{0,120}?[ \t]-A[ \t]{0,2}|\bprojects/)"
    r"([A-Za-z0-9][\w.@-]{1,63})",
    "account", "project", "wckey", "tenant", "subscription", "organi", "workspace", "customer", "client", "sbatch",
    "srun", "salloc",
)  # fmt: skip
CLOUD_NUMBER = Signed(
    r"(?i)(\barn:aws[\w-]{0,12}:[\w-]{1,30}:[\w-]{0,30}:|\baccount(?:[ _-]?(?:id|number))?\W{1,4}"
    r"|(?<![\d.])(?=\d{12}\.dkr\.ecr\.))(\d{12})(?!\d)",
    "arn:aws", "account", ".dkr.ecr.",
)  # fmt: skip
ARN_ROLE = Signed(r"(\barn:aws[\w-]{0,12}:(?:iam|sts)::[^\s:]{0,40}:(?:[a-z-]{2,20}/))([\w+=,.@/-]{1,128})", "arn:aws")
_WANDB_TEAM = Signed(r"(?i)(\blogged in as:?\s{1,2}[\w.<>-]{1,40} \()([\w.-]{1,64})(?=\))", "logged in as")
# Where a service's address names who: https://wandb.ai/NAME/PROJECT, git@host:NAME/REPOSITORY.git.
SERVICE = Signed(
    r"(https?://(?:[\w.-]{0,40}\.)?(?:wandb\.ai|app\.neptune\.ai|(?:www\.)?comet\.com|comet\.ml|app\.clear\.ml"
    r"|kaggle\.com)/)(?!docs|site|authorize|guides|quickstart|api/|settings|home\b)([\w.-]{1,64})(?:/([\w.-]{1,80}))?",
    "wandb.ai/", "neptune.ai/", "comet.com/", "comet.ml/", "clear.ml/", "kaggle.com/",
)  # fmt: skip
REMOTE = Signed(
    r"((?:\bgit@|\bhg@|ssh://(?:[\w.-]{1,40}@)?|git\+(?:ssh|https?)://(?:[^\s@/]{1,200}@)?|\bgit://|https?://"
    r"(?:[^\s@/]{1,300}@)?)(?:[\w-]{1,63}\.){1,6}[a-z]{2,24}(?::\d{1,5})?[:/])"
    r"((?:[\w.~-]{1,80}/){1,5})([\w.-]{1,100}?)(\.git\b|(?=@[0-9a-f]{7,40}\b)|(?=[ \t]*\((?:fetch|push)\)))",
    ".git", "(fetch)", "(push)", "git@", "git+",
)  # fmt: skip
_BUCKET_USER = Signed(r"(?i)\b((?:uid|cn)=)([^,\s=]{2,64})(?=,\s?(?:ou|dc|cn|o)=)", "ou=", "dc=", "cn=")


def find(text: str, folded: str) -> Iterator[Span]:
    """Everybody and every account that the text names."""
    yield from _homes(text, folded)
    for pattern in (EMAIL, SPELT_EMAIL):
        for m in pattern.finditer(text, folded):
            if not _public_mail(m[0]):
                yield Span(m.start(), m.end(), "email")
    yield from _logins(text, folded)
    yield from _fields(text, folded)
    yield from _tables(text, folded)
    yield from _accounts(text, folded)
    yield from _remotes(text, folded)


def _homes(text: str, folded: str) -> Iterator[Span]:
    for m in HOME_PATH.finditer(text, folded):
        start, end = m.span(2)
        quote = text[m.start() - 1 : m.start()]
        spaced = (_IN_QUOTES if quote in ("'", '"') and m[2] not in p.NOBODY else _SPACED).match(text, end)
        end = spaced.end() if spaced else end
        more = _NEXT.match(text, end)
        if more and _HOME_WORD.fullmatch(m[2]) and not _nobody(m[2]):
            yield from _person(text, *more.span(1))
            continue
        yield from _person(text, start, end)
        if more and _GROUP.fullmatch(m[2]) and more[1].lower() not in _DATA_WORDS and not more[1].startswith("."):
            yield from _person(text, *more.span(1))
    for pattern in (TILDE, TEMPORARY, WORK, NESTED_USER):
        for m in pattern.finditer(text, folded):
            if pattern is not WORK or m[2].lower() not in _DATA_WORDS | p.COMMON_NAMES:
                yield from _person(text, *m.span(2))
    for m in USER_PROSE.finditer(text, folded):
        name = m[2].strip("'\"")
        if name.lower() not in p.NO_NAMES and not _nobody(name):
            at = m.start(2) + m[2].index(name)
            yield Span(at, at + len(name), "user", sure=False)
    for m in PROJECT.finditer(text, folded):
        if m[2].lower() not in _DATA_WORDS:
            yield Span(m.start(2), m.end(2), "account")


def _person(text: str, start: int, end: int) -> Iterator[Span]:
    name = text[start:end]
    if name.startswith("<") or _nobody(name) or len(name) < 2 or name.isdigit():
        return
    yield Span(start, end, "user", learn=bool(re.fullmatch(r"[^\W\d_][\w.@ '-]{1,63}|.*\d.*", name)))


def _nobody(name: str) -> bool:
    return name.lower() in p.NOBODY or name.lower() in p.OUR_WORDS


def _public_mail(mail: str) -> bool:
    user, _, host = mail.replace("%40", "@").partition("@")
    return user.lower() in ("git", "hg", "svn", "noreply", "no-reply") or bool(
        re.fullmatch(r"v?\d+(\.\d+)*[\w.]*", host)
    )


def _logins(text: str, folded: str) -> Iterator[Span]:
    for m in LOGIN.finditer(text, folded):
        host = m[2]
        if re.fullmatch(r"(?:v?\d+[\w.]*)|[\d.]+", host) and not re.fullmatch(r"(?:\d{1,3}\.){3}\d{1,3}", host):
            continue
        if not _nobody(m[1]) and m[1] not in ("git", "hg", "svn"):
            yield Span(m.start(1), m.end(1), "user", learn=True)
        if (
            not p.public_host(host)
            and (host.lower() not in p.NO_HOSTS or text.startswith((":~", ":/"), m.end()))
            and not re.fullmatch(r"[\d.]+", host)
        ):
            yield Span(m.start(2), m.end(2), "host", learn=True)


def _fields(text: str, folded: str) -> Iterator[Span]:
    for m in USER_FIELD.finditer(text, folded):
        name = m[2].rstrip(".")
        if not _nobody(name) and name.lower() not in p.NO_NAMES and len(name) > 1 and not name.isdigit():
            learn = m[1].lower().startswith(("logged in", "accepted", "user=", "login", "logname"))
            yield Span(m.start(2), m.start(2) + len(name), "user", learn=learn)
    for pattern in (_ATTACHED, _BUCKET_USER, _IDENTITY, _CHOWN, _GPUSTAT):
        for m in pattern.finditer(text, folded):
            yield from _person(text, *m.span(2))
    for m in AUTHOR.finditer(text, folded):
        yield Span(m.start(2), m.end(2), "user", learn=True)
    for m in _PASSWD.finditer(text, folded):
        if not _nobody(m[1]) and int(text[m.start() : m.end()].split(":")[2]) >= 1000:
            yield from _person(text, *m.span(1))
            if m[2]:
                yield Span(m.start(2), m.end(2), "user", learn=True)


def _tables(text: str, folded: str) -> Iterator[Span]:
    for m in _LS.finditer(text, folded):
        yield from _person(text, *m.span(1))
        if m[2].lower() not in p.NO_NAMES:
            yield from _person(text, *m.span(2))
    for m in _PS.finditer(text):
        group = next(g for g in (1, 2, 3) if m[g])
        if not _nobody(m[group]) and m[group].lower() not in p.COMMON_NAMES:
            yield from _person(text, *m.span(group))
    starts = set()
    for word in _HEAD_WORDS:
        at = text.find(word)
        while at >= 0:
            starts.add(text.rfind("\n", 0, at) + 1)
            at = text.find("\n", at)
            at = text.find(word, at) if at >= 0 else -1
    for start in sorted(starts):
        head = _HEAD.match(text, start)
        if head and len(head[0]) < 400:
            yield from _columns(text, head)


def _columns(text: str, head: re.Match[str]) -> Iterator[Span]:
    """Values below the heads USER, ACCOUNT and NODELIST, by where they stand: what overlaps the head's own place."""
    found = [(w.start(), w.end(), w[0]) for w in re.finditer(r"[^\s|]+", head[0])]
    heads = [(a, b, _HEADS[w.upper()]) for a, b, w in found if w.upper() in _HEADS]
    words = head[0].split()
    if len(words) < 3 or not heads or sum(w.isupper() or w.istitle() for w in words) < len(words) * 0.6:
        return
    at = head.end() + 1
    for _ in range(500):
        end = text.find("\n", at)
        line = text[at : end if end >= 0 else len(text)]
        if not line.strip() or at >= len(text):
            return
        for a, b, kind in heads:
            for word in re.finditer(r"[A-Za-z_][\w.,@\[\]+-]{1,80}(?![^\s|])", line):
                below = word.start() < b and word.end() > a
                if below and (kind != "user" or not _nobody(word[0])):
                    yield Span(at + word.start(), at + word.end(), kind, learn=kind != "account")
        if end < 0:
            return
        at = end + 1


def _accounts(text: str, folded: str) -> Iterator[Span]:
    for pattern in (ACCOUNT, CLOUD_NUMBER, ARN_ROLE, _WANDB_TEAM):
        for m in pattern.finditer(text, folded):
            if m[2].lower() not in p.NO_NAMES and not _nobody(m[2]):
                yield Span(m.start(2), m.end(2), "account")


def _remotes(text: str, folded: str) -> Iterator[Span]:
    for m in SERVICE.finditer(text, folded):
        for group in (2, 3):
            if m[group]:
                yield Span(m.start(group), m.end(group), "user" if group == 2 else "account")
    for m in REMOTE.finditer(text, folded):
        owner = m[2].split("/")[0].lower()
        if owner in p.PUBLIC_OWNERS:
            continue
        yield Span(m.start(2), m.end(2) - 1, "account")
        yield Span(m.start(3), m.end(3), "account")
