"""Where: hosts in addresses, fields, prompts and lists of nodes; logins in addresses."""

from __future__ import annotations

import re
from collections.abc import Iterator

from cudnn_doctor.redact import patterns as p
from cudnn_doctor.redact.search import Signed
from cudnn_doctor.redact.spans import Span

# What stands before the host in a URL: a scheme, and what may be a login. The password may hold `@` and `/`.
URL = Signed(
    r"(?i)(?<![\w.+-])((?:[a-z][a-z0-9]{1,15}[+:.]){0,3}[a-z][a-z0-9-]{1,15}):(?:[a-z]{2,12}:@?)?//"
    r"([^\s/?#'\"<>]{1,400}@)?([^\s/:?#'\"<>@,;()\[\]\\]{1,253})?",
    "://",
)
_SLASH_LOGIN = Signed(
    r"(?i)(\b[a-z][a-z0-9+.-]{1,20}://)([^\s:/@'\"<>]{1,80}:(?!\d{1,5}/)[^\s@'\"<>]{1,200})@(?=[\w.\[-])", "://"
)
BARE_LOGIN = Signed(
    r"(?:(?<![\w/@:.+-])|(?<=[\s'\"]//)|(?<=\A//))([\w.+-]{1,64}:[^\s@/'\"<>]{1,200})@(?!sha256)(?=(?:tcp|unix)\("
    r"|[A-Za-z0-9][\w-]{0,62}(?:\.[\w-]{1,62}){0,8}"
    r"(?::\d{2,5}\b|/|\s|$|['\"]))",
    "@",
)
ORACLE_LOGIN = Signed(
    r"((?:thin:|oci:|sqlplus(?: -\w+){0,3} |\bexpdp |\bimpdp |\bsqlldr ))([\w.$#-]{1,64}/[^\s@'\"]{1,200})(?=@)",
    "thin:",
    "oci:",
    "sqlplus",
    "expdp",
    "impdp",
    "sqlldr",
)
# Schemes behind which no host stands.
_NO_HOST = frozenset({"file", "npm", "pkg", "about", "data", "urn", "mailto", "tel", "javascript", "otpauth"})
_KEEP_LOGIN = frozenset({"git", "hg", "svn", "anonymous", "root", "www", "user", "-", "%s", "<secret>"})
USER_PASSWORD = Signed(
    r"((?<!\S)(?:-u|--user|--proxy-user|-U)(?:[ =]|(?=[\w.]))['\"]?)(?!\d{1,9}:\d)(?!root:root\b)"
    r"([^\s:'\"]{1,64}['\"]?:['\"]?[^\s'\"]{1,200})",
    "-u", "--user", "--proxy-user",
)  # fmt: skip
# Commands and the options behind which they take a password.
SHORT_OPTION = Signed(
    r"(?m)((?:^|[\s;&|$\"'])(?:mysql\w{0,12}|mariadb\w{0,12}|mongo\w{0,8}|docker login|podman login"
    r"|helm registry login|az login|oc login|cqlsh|sqlcmd|bcp|isql|"
    r"impala-shell|beeline|influx|vncviewer|net use|xfreerdp|rdesktop|snmpwalk|ipmitool|racadm)\b[^\n]{0,300}?\s"
    r"(?:-p|-P)(?:[ =](?=[^\s-])|(?=[^\s=-])))"
    r"(\"[^\"\n]{1,200}\"|'[^'\n]{1,200}'|[^\s'\"]{1,200})"
    r"|((?:^|[\s;&|$\"'])(?:sshpass|7z\w? \w|unzip|zip|rar|unrar|plink|pscp|putty|redis-cli|ldap(?:search|modify|add"
    r"|delete|whoami)|smbclient|openssl \w+)\b[^\n]{0,300}?\s"
    r"(?:-pw |-p ?|-P ?|-a ?|-w ?|--pass(?:in|out)? pass:|-pass(?:in|out) pass:|-U [\w.\\-]{1,40}%))"
    r"(\"[^\"\n]{1,200}\"|'[^'\n]{1,200}'|[^\s'\"-][^\s'\"]{0,200})",
    " -p", " -a", " -w", "pass:", "%",
)  # fmt: skip
WEBHOOK = Signed(
    r"(?i)(https?://[^\s'\"<>]{0,200}(?:hooks?\.|/hooks?/|/webhooks?/|webhookb2/|/services/hooks/"
    r"|/incoming-?webhook/|hooks\.slack\.com/(?:services|workflows|triggers)/|api\.telegram\.org/bot|/bot\d"
    r"|/triggers/|sentry\.io/|logic\.azure\.com|maker\.ifttt\.com/trigger/))([^\s'\"<>]{6,400})",
    "hook", "telegram", "/bot", "triggers", "ifttt", "sentry.io",
)  # fmt: skip
SAS = Signed(
    r"(?i)([?&](?:sig|se|sp|st|spr|x-(?:amz|goog)-[\w-]{3,40}|signature|key-pair-id|policy|awsaccesskeyid"
    r"|googleaccessid|code|state|ticket|sid|auth|key|hmac|jwt|sso|otp)=)([^\s&'\"<>]{1,2000})",
    "?",
    "&",
)

_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
FQDN = Signed(
    rf"(?i)(?<![\w@%.+-])(?<![\w)\]]\.)((?:{_LABEL}\.){{1,8}}(?:com|org|net|edu|gov|mil|int|io|ai|cloud|dev|app|info"
    rf"|biz|eu|internal|intra|intranet|corp|lan|local|localdomain"
    r"|home|private|arpa|onion|test|invalid|hpc|cluster|de|uk|fr|ch|at|nl|be|se|no|dk|fi|es|it|pl|cz|pt|gr|hu|ro|ru"
    r"|ua|cn|jp|kr|tw|hk|sg|au|nz|ca|us|br|mx|za|il|tr|ie|lu|sk|si|hr|ee|lt|lv|ir|ar|cl|sa|ae|my|th|vn|kz))"
    r"(?![\w-]|\.[\w]|\()",
    ".com", ".org", ".net", ".edu", ".gov", ".mil", ".int", ".io", ".ai", ".cloud", ".dev", ".app", ".info", ".biz",
    ".eu", ".corp", ".lan", ".local", ".home",
    ".private", ".arpa", ".onion", ".test", ".invalid", ".hpc", ".cluster",
    re.compile(r"\.(?:de|uk|fr|ch|at|nl|be|se|no|dk|fi|es|it|pl|cz|pt|gr|hu|ro|ru|ua|cn|jp|kr|tw|hk|sg|au|nz|ca|us"
    r"|br|mx|za|il|tr|ie|lu|sk|si|hr|ee|lt|lv|ir|ar|cl|sa|ae|my|th|vn|kz)(?![\w-])"),
)  # fmt: skip
# Last labels that are attributes and files of programs as well: a host then has three labels, a digit or a port.
_PRIVATE_ENDS = frozenset(
    [
        "internal",
        "intra",
        "intranet",
        "corp",
        "lan",
        "local",
        "localdomain",
        "home",
        "private",
        "arpa",
        "test",
        "invalid",
        "hpc",
        "cluster",
    ]
)
_SURE_ENDS = frozenset(["com", "org", "net", "edu", "gov", "mil"])
_PROGRAM = re.compile(
    r"(?i)(?:torch\w*|tensorflow|tf|jax\w*|np|numpy|self|cls|os|sys|py\w*|keras|flax|optax|scipy|sklearn|pandas"
    r"|nvidia|cuda|cudnn|cublas|nccl|module|model|config|args|math|"
    r"threading|logging|multiprocessing|concurrent|asyncio|importlib|collections|typing|transformers|datasets"
    r"|accelerate|deepspeed|triton|apex|onnx\w*|mxnet|paddle|cupy|"
    r"numba|ray|horovod|lightning|pytorch_lightning|google|com|org|net|java|javax|node|system|core|lib\w*|std|at|c10"
    r"|aten|absl|grpc|protobuf|distributed|rank|conf|x|a|b)\.(?:.*)"
)
BUCKET = Signed(
    r"(?i)((?:s3[an]?|gs|gcs|oss|cos|swift|abfss?|wasbs?|adl|hdfs|viewfs|dbfs|r2|b2|obs)://)([^\s/'\"<>]{1,200})", "://"
)
HOST_FIELD = Signed(
    r"(?im)((?<![\w-])(?:(?:static |transient |pretty )?host ?name|nodename|computer ?name|node ?name|machine ?name"
    r"|slurmd_nodename|batchhost|(?:slurm_\w{0,12})?node_?lists?(?:\(\w+\))?|req_?node_?list|"
    r"exc_?node_?list|(?:slurm_)?(?:submit|launch|alloc_?)_?(?:host|node)|(?:master|coordinator|head|scheduler"
    r"|server|remote|peer|db|redis|mongo|mysql|pg|proxy|smtp|ldap|nfs|mail|rdzv)"
    r"_?(?:addr(?:ess)?|host|endpoint|server|node|ip)|data source|hostlist|pghost|dbhost|display|ssh_connection"
    r"|\bserver|\bhost)\\?['\"]?\]?\s{0,2}(?:[=:]|=>)\s{0,2}\\?['\"]?(?:tcp:|https?://|rediss?://)?"
    r"|<(?:host ?name|node ?name|computer ?name|machine ?name|host|node|server)>"
    r"|^\[(?=[A-Za-z][\w.-]{1,80}:\d{1,9}\])"  # Open MPI
    r"|^(?=[A-Za-z][\w.-]{1,80}:\d{1,9}:\d{1,9} \[\d{1,4}\] NCCL )"
    r"|^[ \t]{0,8}host[ \t]{1,12}:[ \t]"  # torchrun
    r"|\bsrun: error: (?=[A-Za-z][\w.-]{1,80}: task)|\bon (?=\S{1,80} cancelled at)|\bslurmd: "
    r"(?=[\w.-]{1,80}: )"  # Slurm
    r"|\b(?:on|from|to|at|of|by) (?:the )?(?:host|node|machine|server|worker node|compute node)s? ['\"]?(?!\w{1,8} "
    r"(?:is|was|has)\b)(?=[\w.-]{0,60}[\d.-])"
    r"|\b(?:connect(?:ed|ing|ion)?(?: to| from)?|listening on|reach|resolve|lookup|ping|ssh(?: -\w"
    r"(?: ?[\w./~-]{1,40})?){0,4}|route to|login to|bind to) (?:host |server )?['\"]?(?=[\w-]{0,60}[\d-][\w.-]{0,60}"
    r"(?::\d{2,5}\b|['\"]|\s|$)|[a-z][\w-]{1,60}:\d{2,5}\b)"
    r"|(?<![\w/])linux (?=[\w.-]{1,80} \d{1,2}\.\d{1,3}\.\S{1,80} (?:#\d|x86|smp))"  # uname -a
    r"|--(?:nodelist|nodefile-host|host|hostname|server|master[_-]addr|rdzv[_-]endpoint|exclude"
    r"|coordinator[_-]address|address)[ =]"
    r"|\b(?:sbatch|srun|salloc|squeue|sinfo)\b[^\n]{0,120}? -[wx] ?|\b(?:mysql|mariadb|mongo|psql|redis-cli|pg_dump"
    r"|mysqldump|ldapsearch)\b[^\n]{0,200}? -h ?)"
    r"([A-Za-z][\w.-]{0,80}(?:\[[\d,-]{1,200}\][\w.-]{0,40}(?:,[A-Za-z][\w.-]{1,80}(?:\[[\d,-]{1,100}\])?){0,20})?)"
    r"(?![\w(])",
    *(re.compile(w + r"[\w ()-]{0,16}[\\'\"\]]{0,4}\s{0,2}[=:]") for w in (
        "host", "node", "computer", "machine", "server", "endpoint", "data source", "display", "ssh_connection",
    )),
    "_addr=", "_addr:", "_addr\"", "_addr'", "_addr ", "_address=",
    "<host", "<node", "<computer", "<machine", "<server", " host ", " hosts ", " node ", " nodes ", " machine ",
    " server ", "] nccl ", "srun: error", " -w", " -x ", " -h",
    "slurmd: ", " cancelled at", "connect", "listening on", "reach ", "resolve ", "lookup ", "ping ", "ssh ",
    "route to", "login to", "bind to", "--exclude", "--address", "--host", "--server",
    "--node", "--master", "--coordinator", "--rdzv", "]:",
    re.compile(r"linux [\w.-]{1,80} \d"), re.compile(r"\[[a-z][\w.-]{1,80}:\d{1,9}\]"),
)  # fmt: skip
SYSLOG = re.compile(
    r"(?m)^(?:<\d{1,3}>)?(?:[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d(?:\.\d{1,9})? "
    r"(?=\S{1,80} (?:kernel|systemd|[\w./@-]{1,40}\[\d{1,9}\]|[a-z][\w.-]{1,30}):)"
    r"|\d{4}-\d\d-\d\d[T ][\d:.,+-]{7,29}\dZ? (?=\S{1,80} (?:kernel|systemd|[\w./@-]{1,40}\[\d{1,9}\]):))"
    r"([A-Za-z][\w.-]{0,80})(?![\w(])"
)
_CONSTANT = re.compile(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+")  # CUDA_ERROR_INVALID_VALUE
_TRIPLET = re.compile(r"(?:x86_64|i[3-6]86|aarch64|arm\w{0,6}|ppc64le|powerpc\w{0,4}|riscv64|s390x)\b")
LIKE_A_HOST = re.compile(r"[\d.-]")  # other words that a log calls a host may stand elsewhere and mean something
_NUMBERED = (
    r"(?!(?:gpu|cuda|cpu|rank|stage|layer|device|job|task|worker|epoch|step|line|node|numa|mlx\d_|eth|ib|cudnn|block"
    r"|conv|thread|core|sm|fp|int|utf|python|py)[-_]?\d)[A-Za-z][A-Za-z-]{1,40}\d{1,5}[\w-]{0,20}"
)
# A short name with a number, where a host stands: `node: box17`, `box17:29500`, `-H box17:4,box18:4`.
NODE = Signed(rf"(?i)(\bnodes?['\"]?\s?[=:]\s?['\"]?|\bnode )({_NUMBERED})(?![\w(])", "node")
SHORT_PORT = Signed(rf"(?i)((?<![\w./@-]))({_NUMBERED})(?=:\d{{4,5}}\b)", re.compile(r":\d{4}"))
HOST_LIST = Signed(
    r"(?i)((?<![\w-])(?:-H|--?hosts?|-host|--hostlist|hosts['\"]?\s?[=:]|host_?list['\"]?\s?[=:]"
    r"|exec_host\s?=)[ =]?\s?['\"\[ ]{0,3})"
    r"([A-Za-z][\w.-]{1,60}\d[\w.-]{0,40}(?::\d{1,5})?(?:['\"]?, ?['\"]?[A-Za-z][\w.-]{1,60}(?::\d{1,5})?){0,64})"
    r"(?=[\s'\"\]]|$)",
    "-h ", "host",
)  # fmt: skip
# A host's name alone where a sentence says that one stands there.
SAID_HOST = Signed(
    r"(?im)(\b(?:host|server|node) (?=[\w.-]{2,80} port \d)|\b(?:for|to|at|from|on|with|reach) (?-i:"
    r"(?=[a-z][a-z0-9-]{2,40}:\d{4,5}\b))"
    r"|\[(?=[a-z][\w.-]{1,80}\]:\d{2,5}\b)|\bnode:[ \t]{1,30}(?=[\w.-]{2,80}/\d)|\bexec_host\s?[=:]\s?"
    r"(?=[\w.-]{2,80}/\d)"
    r"|(?<=/\d\+)(?=[\w.-]{2,80}/\d)|^SERVER[ \t]{1,8}(?=[\w.-]{2,80}[ \t]{1,8}[\w=]{3,40}[ \t]{1,8}\d{4,5}))"
    r"([A-Za-z][\w.-]{1,80})",
    " port ", re.compile(r":\d{4}"), "]:", "node:", "exec_host", re.compile(r"/\d\+"), "server",
)  # fmt: skip
FROM_LITERAL = Signed(r"(--from-literal=[\w.-]{1,80}=)(['\"]?[^\s'\"]{1,400})", "--from-literal")
WINDOWS_LOGIN = Signed(
    r"(?i)(\b(?:xfreerdp|wfreerdp|rdesktop|psexec|mstsc)\b[^\n]{0,200}?\s/p:|\bnet use \S{1,80} (?=\S{1,80} /user)"
    r"|\bsnmp\w{2,8}\b[^\n]{0,80}?\s-c ?"
    r"|\bsecurestring[ \t]{1,4}(?:-string )?)(['\"]?[^\s'\"]{1,200})",
    "freerdp", "rdesktop", "psexec", "mstsc", "net use", "snmp", "securestring",
)  # fmt: skip
NETRC_MACHINE = Signed(r"(?m)(^[ \t]*machine[ \t\n]{1,8})([\w.-]{2,80})", "machine")
QUOTED_PORT = Signed(r"(['\"])([A-Za-z][\w-]{1,62}):(\d{2,5})\1", re.compile(r":\d{2,5}['\"]"))
SHARE = Signed(r"(?<![\w\\:])\\\\{1,3}([A-Za-z0-9][\w.-]{1,80})\\{1,2}(?=[\w$])", "\\\\")
NFS = Signed(
    r"(?m)((?:^|\s))([A-Za-z][\w.-]{1,80})(?=:/[^\s]{0,200} (?:on |/)[^\n]{0,200}(?:nfs|ceph|lustre|smb|fuse))",
    ":/",
)
ETC_HOSTS = re.compile(
    r"(?m)^[ \t]*(?:\d{1,3}\.){3}\d{1,3}[ \t]+([A-Za-z][\w.-]{1,80}(?:[ \t]+[A-Za-z][\w.-]{1,80}){0,6})[ \t]*$"
)
SCP = Signed(r"(?m)(\b(?:scp|rsync|sftp)\b[^\n]{0,200}?[ \t])([A-Za-z][\w.-]{1,80})(?=:[~/\w])", "scp", "rsync", "sftp")


def find(text: str, folded: str) -> Iterator[Span]:
    """Every host; logins in addresses as secrets."""
    yield from _urls(text, folded)
    yield from _logins(text, folded)
    yield from _names(text, folded)


def _urls(text: str, folded: str) -> Iterator[Span]:
    for m in URL.finditer(text, folded):
        if m[2]:
            login = m[2][:-1]
            tells = ":" in login or (login.lower() not in _KEEP_LOGIN and not login.startswith("<"))
            if tells and set(login) - set(":"):
                yield Span(m.start(2), m.end(2) - 1, "secret")
        host = (m[3] or "").rstrip(".")
        scheme = re.split(r"[+:]", m[1].lower())[-1]
        if host and scheme not in _NO_HOST and _names_a_host(host, login=bool(m[2])):
            yield Span(m.start(3), m.start(3) + len(host), "host", learn=bool(LIKE_A_HOST.search(host)))


def _names_a_host(host: str, *, login: bool) -> bool:
    if p.public_host(host) or re.fullmatch(r"[\d.]+|[$%{*].*|localhost|<.*", host) or host.lower() in p.NO_HOSTS:
        return False
    return "." in host or login or bool(re.fullmatch(r"[A-Za-z0-9][\w-]{1,62}", host))


def _logins(text: str, folded: str) -> Iterator[Span]:
    for pattern, group in (
        (_SLASH_LOGIN, 2),
        (BARE_LOGIN, 1),
        (ORACLE_LOGIN, 2),
        (USER_PASSWORD, 2),
        (WEBHOOK, 2),
        (FROM_LITERAL, 2),
        (WINDOWS_LOGIN, 2),
    ):
        for m in pattern.finditer(text, folded):
            if pattern is WEBHOOK and not re.search(r"\d", m[2]):
                continue
            if "<secret>" not in m[group]:
                yield Span(m.start(group), m.end(group), "secret")
    for m in SHORT_OPTION.finditer(text, folded):
        group = 2 if m[2] else 4
        value = m[group].strip("\"'")
        if value and not (value.isdigit() and len(value) <= 5):
            start = m.start(group) + m[group].index(value)
            yield Span(start, start + len(value), "secret")
    for m in SAS.finditer(text, folded):
        key = m[1][1:-1].lower()
        url = "://" in text[max(0, m.start() - 1500) : m.start()].rpartition(" ")[2]
        telling = key in (
            "sig",
            "signature",
            "key",
            "code",
            "auth",
            "hmac",
            "jwt",
            "ticket",
            "sso",
            "otp",
            "policy",
            "key-pair-id",
            "awsaccesskeyid",
            "googleaccessid",
            "sid",
        ) or key.endswith(("credential", "signature", "security-token", "algorithm"))
        if (url or m[1][0] == "&") and telling and not re.fullmatch(r"\d{0,6}", m[2]):
            yield Span(m.start(2), m.end(2), "secret")


def _names(text: str, folded: str) -> Iterator[Span]:
    for m in BUCKET.finditer(text, folded):
        if "<" not in m[2]:
            yield Span(m.start(2), m.end(2), "host")
    for m in FQDN.finditer(text, folded):
        if _is_host(text, m):
            yield Span(m.start(1), m.end(1), "host", learn=False)
    for m in SYSLOG.finditer(text):
        if m[1].lower() not in p.COMMON_NAMES | p.NO_HOSTS:
            yield Span(m.start(1), m.end(1), "host", learn=bool(LIKE_A_HOST.search(m[1])))
    for m in HOST_FIELD.finditer(text, folded):
        host = m[2].rstrip(".-")
        torchrun = re.fullmatch(r"[ \t]{0,8}host[ \t]{1,12}:[ \t]", m[1])
        common = host.lower() in p.COMMON_NAMES or host.lower() in p.NO_HOSTS or p.public_host(host) or len(host) < 2
        weak = re.search(r"(?i)(?<![\w-])(?:server|host)\s{0,2}:\s{0,2}$", m[1]) and not LIKE_A_HOST.search(host)
        if weak and text[m.end() : m.end() + 2].strip(" \t\r")[:1] not in ("", "\n"):
            continue  # "policy server: none found"
        if (
            host.lower() == "localhost"
            or _TRIPLET.match(host)
            or _CONSTANT.fullmatch(host)
            or (common and not torchrun)
        ):
            continue
        if re.search(r"(?i)^\W*host\W*$", m[1]) and not re.search(r"[=:]\s?\\?['\"]?$", m[1]):
            continue
        yield Span(m.start(2), m.start(2) + len(host), "host", learn=bool(LIKE_A_HOST.search(host) and "[" not in host))
    for m in HOST_LIST.finditer(text, folded):
        for word in re.finditer(r"([A-Za-z][\w.-]{1,80})(?::\d+)?", m[2]):
            if word[1].lower() not in p.NO_HOSTS | p.COMMON_NAMES and not p.public_host(word[1]):
                yield Span(
                    m.start(2) + word.start(1),
                    m.start(2) + word.end(1),
                    "host",
                    learn=bool(LIKE_A_HOST.search(word[1])),
                )
    for pattern, group in (
        (NETRC_MACHINE, 2),
        (SHARE, 1),
        (NFS, 2),
        (SCP, 2),
        (NODE, 2),
        (SHORT_PORT, 2),
        (SAID_HOST, 2),
    ):
        for m in pattern.finditer(text, folded):
            never = p.NO_HOSTS | ({"server", "host"} if pattern is not SAID_HOST else p.COMMON_NAMES)
            if m[group].lower() not in never and not p.public_host(m[group]):
                yield Span(m.start(group), m.end(group), "host", learn=bool(LIKE_A_HOST.search(m[group])))
    for m in QUOTED_PORT.finditer(text, folded):
        if m[2].lower() not in p.NO_HOSTS and m[2].lower() not in p.COMMON_NAMES and int(m[3]) > 20:
            yield Span(m.start(2), m.end(2), "host", sure=False)
    for m in ETC_HOSTS.finditer(text):
        for word in re.finditer(r"[\w.-]+", m[1]):
            if word[0].lower() not in p.NO_HOSTS | p.COMMON_NAMES:
                yield Span(m.start(1) + word.start(), m.start(1) + word.end(), "host", learn=True)


def _is_host(text: str, m: re.Match[str]) -> bool:
    """Whether dotted labels are a host and no attribute (`threading.local`), file or public address."""
    name = m[1]
    labels = name.lower().split(".")
    if not re.search(r"[a-z]", name.lower().rpartition(".")[0]):  # 2.11.0.dev
        return False
    if p.public_host(name) or name.lower() in p.NO_HOSTS:
        return False
    before, after = text[max(0, m.start() - 1) : m.start()], text[m.end() : m.end() + 6]
    port = bool(re.match(r":\d{2,5}\b", after))
    if before in ("/", "\\") and not text[max(0, m.start() - 3) : m.start()].endswith("://"):
        return False
    if labels[-1] in _SURE_ENDS and (len(labels) > 2 or "-" in name or port) and not _PROGRAM.fullmatch(name):
        return True
    if _PROGRAM.fullmatch(name) and not port:
        return False
    if labels[-1] in _SURE_ENDS:
        return True
    if name != name.lower() and not name.isupper():
        return port
    if labels[-1] in _PRIVATE_ENDS:
        return port or len(labels) > 2 or bool(re.search(r"[\d-]", labels[0]) and len(labels[0]) > 1)
    return port or len(labels) > 2 or (bool(re.search(r"\d|-", labels[0])) and len(labels[0]) > 3)
