"""The patterns by which `redact` knows what identifies somebody. Every quantifier is bounded or runs over characters
that its successor cannot match, so that no text makes one run away. Signs are in small letters (redact_search)."""

from __future__ import annotations

import re

from cudnn_doctor.redact.search import Signed

USER_VARIABLES = ("USER", "LOGNAME", "USERNAME", "SUDO_USER", "JUPYTERHUB_USER", "SLURM_JOB_USER", "NB_USER")
HOST_VARIABLES = ("HOSTNAME", "COMPUTERNAME", "SLURMD_NODENAME", "NODE_NAME", "POD_NAME")

# Names that many machines share: they tell nothing of a person, and replacing the words would destroy the report.
NOBODY = frozenset({"user", "users", "root", "ubuntu", "ec2-user", "runner", "jovyan", "vagrant", "nobody", "me"})
COMMON_NAMES = NOBODY | {
    "cuda", "cudnn", "cublas", "nvidia", "nccl", "nvml", "nvcc", "gpu", "gpus", "cpu", "tensorflow", "tf", "torch",
    "pytorch", "jax", "keras", "mxnet", "onnx", "onnxruntime", "triton", "python", "pip", "conda", "mamba", "venv",
    "env", "linux", "debian", "windows", "docker", "container", "kubernetes", "slurm", "localhost", "local", "lib",
    "lib64", "bin", "usr", "opt", "etc", "var", "tmp", "mnt", "media", "dev", "proc", "sys", "home", "data", "work",
    "workspace", "scratch", "project", "projects", "src", "build", "test", "tests", "app", "apps", "admin",
    "administrator", "default", "system", "service", "daemon", "guest", "host", "node", "main", "model", "models",
    "train", "training", "site", "packages", "dist", "version", "driver", "kernel", "module", "error", "warning",
    "note", "problem", "unknown", "skipped", "crashed", "status", "success", "failed", "true", "false", "none",
    "null", "install", "export", "unset", "sudo", "apt", "run", "check", "report", "snapshot", "doctor", "memory",
    "stream", "handle", "context", "device", "devices", "library", "libraries", "file", "files", "path", "paths",
    "the", "and", "for", "with", "from", "not", "code",
}  # fmt: skip
SYSTEM_FOLDERS = frozenset({
    "", "/", "/usr", "/usr/local", "/opt", "/lib", "/lib64", "/bin", "/sbin", "/etc", "/var", "/var/lib", "/tmp",  # noqa: S108
    "/home", "/dev", "/proc", "/sys", "/run", "/srv", "/mnt", "/data", "/nonexistent", "/Users", "C:", "C:\\Users",
})  # fmt: skip
OPEN_ADDRESSES = frozenset({"0.0.0.0", "127.0.0.1", "127.0.1.1", "255.255.255.255"})  # noqa: S104
PUBLIC_HOSTS = frozenset({
    "nvidia.com", "nvidia.cn", "github.com", "githubusercontent.com", "pypi.org", "pythonhosted.org", "python.org",
    "pytorch.org", "tensorflow.org", "google.com", "googleapis.com", "anaconda.org", "anaconda.com", "conda.io",
    "stackoverflow.com", "readthedocs.io", "docs.rs", "apache.org", "microsoft.com", "debian.org", "ubuntu.com",
    "kernel.org", "docker.com", "docker.io", "huggingface.co", "oasis-open.org", "json-schema.org",
})  # fmt: skip

ENV_LINE = re.compile(r"(?m)^([ \t]{0,8}(?:export |declare -x |set )?)([A-Z][A-Z0-9_]{2,80})=(\S[^\n]*)$")

PRIVATE_KEY = re.compile(
    r"-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----(?:[^-]|-(?!----)){0,20000}(?:-----END [A-Z ]{0,30}PRIVATE KEY-----)?"
)
# Forms of secrets as their issuers publish them (GitHub, GitLab, Hugging Face, OpenAI, AWS, Slack, Google, NVIDIA NGC,
# npm, PyPI), and JSON web tokens.
SECRET = Signed(
    r"\b(?:gh[pousr]_[A-Za-z0-9]{16,255}|github_pat_[A-Za-z0-9_]{20,255}|glpat-[\w-]{16,64}|hf_[A-Za-z0-9]{16,64}"
    r"|sk-[A-Za-z0-9_-]{16,200}|(?:AKIA|ASIA)[A-Z0-9]{16}|xox[abprs]-[\w-]{10,200}|AIza[\w-]{30,60}"
    r"|nvapi-[\w-]{20,120}|npm_[A-Za-z0-9]{30,60}|pypi-[\w-]{40,250}|wandb_v\d_\w{20,200}"
    r"|eyJ[\w-]{8,4000}\.[\w-]{4,4000}\.[\w-]{4,4000})",
    "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "hf_", "sk-", "akia", "asia", "xox", "aiza",
    "nvapi-", "npm_", "pypi-", "wandb_v", "eyj",
)  # fmt: skip
URL_LOGIN = Signed(
    r"(\b[a-z][a-z0-9+.-]{1,15}://)([^\s/@:'\"<>]{0,100}:[^\s/@'\"<>]{1,200}|[^\s/@:'\"<>]{8,200})@", "@"
)
URL_HOST = Signed(
    r"(\b(?:(?:https?|ssh|git|ftp|grpc|s3|tcp|wss?)://(?:<secret>@)?|[a-z][a-z0-9+.-]{1,15}://<secret>@))"
    r"([A-Za-z0-9][A-Za-z0-9.-]{1,250})",
    "://",
)
AUTHORIZATION = Signed(r"(?i)(\b(?:bearer|basic)\s{1,3})([\w.~+/=-]{8,4000})", "bearer", "basic")
# `curl -u name:password`; two numbers are the ids of a user and a group (`docker run -u 1000:1000`).
USER_PASSWORD = Signed(
    r"((?<!\S)(?:-u|--user)[ =]['\"]?)(?!\d{1,9}:\d)([^\s:'\"]{1,64}:[^\s'\"]{1,200})", "-u", "--user"
)
_SENSITIVE = (
    r"(?:passw(?:or)?d|passphrase|secret|token(?!iz)|api[_-]?key|access[_-]?key|private[_-]?key|account[_-]?key|credential|authorization|sharedaccess(?:key|signature)"
    r"|(?<=[?&])(?:sig|signature|x-amz-signature|x-goog-signature)(?==)|(?<=_)(?:key|pat|pass)(?![\w-]))"
)
_SENSITIVE_SIGNS = (
    "passw", "passphrase", "secret", "token", "key", "credential", "authorization", "_pat", "_pass", "signature",
    "sig=",
)  # fmt: skip
ASSIGNMENT = Signed(
    rf"(?i)({_SENSITIVE}[\w-]{{0,40}}['\"]{{0,2}})(\s{{0,3}}[=:]\s{{0,3}}['\"]{{0,2}})([^\s'\",;<>&]{{1,4000}})",
    *_SENSITIVE_SIGNS,
)
FLAG = Signed(
    rf"(?i)(?<![\w-])(--(?=[\w-]{{0,40}}{_SENSITIVE})[\w-]{{2,80}}\s)()([^\s'\"<>-][^\s'\"<>]{{0,4000}})",
    *_SENSITIVE_SIGNS,
)
# Numbers and switches are no secrets: "max_tokens=4096", "use_auth_token: false".
HARMLESS_VALUE = re.compile(r"(?i)[-+]?\d{0,9}(?:\.\d{0,9})?|true|false|none|null|yes|no|\{|\[|\(.*")

HOME_PATH = Signed(
    r"((?:/|[A-Za-z]:[\\/]{1,2})(?:home|homes|Users|users)[\\/]{1,2})([^\\/\s:'\",;()\[\]<>|*?~$]{1,64})",
    "home",
    "users",
)
EMAIL = Signed(
    r"(?<![\w.+-])[A-Za-z0-9][\w.+-]{0,63}@[A-Za-z0-9][A-Za-z0-9-]{0,62}(?:\.[A-Za-z0-9-]{1,62}){0,5}\.[A-Za-z]{2,24}\b",
    "@",
)
LOGIN = Signed(
    r"(?<![\w@./-])([a-z_][a-z0-9_.-]{1,31})@"
    r"(?!GLIBC|GLIBCXX|CXXABI|GCC|plt\b|got\b|file\b|https?\b|lib)([A-Za-z][A-Za-z0-9.-]{1,62})(?=:[~/]|[\s\]$#,)]|$)",
    "@",
)
USER_FIELD = Signed(
    r"(?i)((?<![\w-])(?:user(?:name)?|logname|login|owner|uname|run as)['\"]?\s{0,2}[=:]\s{0,2}['\"]?"
    r"|\blogged in as:?\s{1,2}|\baccepted [a-z]{1,20} for )"
    r"([a-z_][\w.-]{1,31})(?![\w/.(-])",
    "user", "logname", "login", "owner", "uname", "run as", "logged in as", "accepted ",
)  # fmt: skip
HOST_FIELD = Signed(
    r"(?im)((?<![\w-])(?:host ?name|nodename|computer ?name|node ?name|slurmd_nodename)\s{0,2}[=:]\s{0,2}['\"]?"
    r"|^(?:[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d|\d{4}-\d\d-\d\dT[\d:.+-]{8,30}Z?)"
    r" (?=\S{1,80} (?:kernel|systemd|[\w.-]{1,40}\[\d{1,9}\]):)"  # syslog
    r"|^\[(?=[A-Za-z][\w.-]{1,80}:\d{1,9}\])"  # Open MPI
    r"|^(?=[A-Za-z][\w.-]{1,80}:\d{1,9}:\d{1,9} \[\d{1,4}\] NCCL )"
    r"|^[ \t]{0,8}host[ \t]{1,12}:[ \t]"  # torchrun
    r"|\bsrun: error: (?=[A-Za-z][\w.-]{1,80}: task)|\bon (?=\S{1,80} cancelled at)"  # Slurm
    r"|(?<![\w/])linux (?=[\w.-]{1,80} \d{1,2}\.\d{1,3}\.\S{1,80} #\d))"  # uname -a
    r"([A-Za-z][\w.-]{1,80})",
    "hostname", "host name", "nodename", "node name", "computername", "computer name", " kernel:", " systemd:", "]:",
    "] nccl ", "srun: error: ", " cancelled at", re.compile(r"host[ \t]{1,12}:"), re.compile(r"linux [\w.-]{1,80} \d"),
    re.compile(r"\[[a-z][\w.-]{1,80}:\d{1,9}\]"),
)  # fmt: skip
LIKE_A_HOST = re.compile(r"[\d.-]")  # other words that a log calls a host may stand elsewhere and mean something
PRIVATE_HOST = Signed(
    r"(?i)(?<![\w.@/-])(?:[a-z0-9][a-z0-9-]{0,62}\.){1,6}(?:internal|intra|intranet|corp|lan|local|localdomain|home|private)\b(?![\w/-]|\.\w)",
    ".internal", ".intra", ".corp", ".lan", ".local", ".home", ".private",
)  # fmt: skip

SERIAL = Signed(
    r"(?i)(\bserial(?:[ _]?(?:number|no\.?))?['\"]?\s{0,30}[=:#]\s{0,3}['\"]?)([A-Za-z0-9][A-Za-z0-9-]{5,40})", "serial"
)
UUID = Signed(
    r"(?i)(?<![\w-])(?:(?:GPU|MIG)-[0-9a-f]{4,8}(?:-[0-9a-f]{4}){0,3}(?:-[0-9a-f]{12})?"
    r"|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})(?![\w-])"
    r"|(?<=MIG-)GPU-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}",
    "gpu-",
    "mig-",
    re.compile("-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-"),
)
MAC = Signed(
    r"(?i)(?<![0-9a-f:-])(?:[0-9a-f]{2}:){5}[0-9a-f]{2}(?![0-9a-f:-])|(?<![0-9a-f:-])(?:[0-9a-f]{2}-){5}[0-9a-f]{2}(?![0-9a-f:-])",
    re.compile(":[0-9a-f]{2}:[0-9a-f]{2}:[0-9a-f]{2}:"),
    re.compile("-[0-9a-f]{2}-[0-9a-f]{2}-[0-9a-f]{2}-"),
)
QUAD = Signed(r"(?<![\d.])(?:\d{1,3}\.){3}\d{1,3}(?![\d]|\.\d)", re.compile(r"\.\d{1,3}\.\d{1,3}\."))
# What stands before a version of four parts: an operator, the end of a file or package name, a product's name.
VERSION_BEFORE = re.compile(
    r"(?i)(?:[=<>~!]=?\s?|[-_]v?|\.so\.|@v?"
    r"|\b(?:version|release|ver|v|driver|cuda|cudnn|cublas\w{0,3}|nvrtc|cufft|curand|cusolver|cusparse|nccl|tensorrt|trt|nvjitlink"
    r"|toolkit|runtime|torch|tensorflow|jax|jaxlib|(?:nvidia|tensorrt|libcudnn|libcublas|cuda)[\w-]{0,40})[:\s(]{1,3}v?)$"
)
VERSION_AFTER = re.compile(r"-\d{1,3}(?:[^\w.]|$)|\+|\.(?:dist-info|post|dev|so|whl)|-py3")
IPV6 = Signed(
    r"(?:(?<![\w:.])|(?<=ib\d:)|(?<=[g-z]\d:))(?=[0-9a-fA-F:]{0,39}[0-9])(?:[0-9a-fA-F]{1,4}(?::[0-9a-fA-F]{1,4}){7}|[0-9a-fA-F]{0,4}(?::[0-9a-fA-F]{1,4}){0,6}::(?:[0-9a-fA-F]{1,4}:){0,6}[0-9a-fA-F]{0,4})(?:%\w{1,16})?(?![\w:])",
    "::",
    re.compile(":[0-9a-f]{1,4}:[0-9a-f]{1,4}:[0-9a-f]{1,4}:"),
)
