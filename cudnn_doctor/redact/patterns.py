"""Names that say nothing of anybody: of system accounts, public hosts and owners, and words of the field."""

from __future__ import annotations

import re

USER_VARIABLES = ("USER", "LOGNAME", "USERNAME", "SUDO_USER", "JUPYTERHUB_USER", "SLURM_JOB_USER", "NB_USER")
HOST_VARIABLES = ("HOSTNAME", "COMPUTERNAME", "SLURMD_NODENAME", "NODE_NAME", "POD_NAME")

# Names that many machines share: they tell nothing of a person, and replacing the words would destroy the report.
NOBODY = frozenset({
    "user", "users", "root", "ubuntu", "ec2-user", "runner", "jovyan", "vagrant", "nobody", "me", "conda", "shared",
    "public",
    "default", "all users", "default user", "administrator", "admin", "centos", "debian", "fedora", "rocky",
    "almalinux", "opc",
    "azureuser", "gitpod", "codespace", "vscode", "coder", "node", "jenkins", "gitlab-runner", "circleci", "travis",
    "builder",
    "build", "docker", "daemon", "www-data", "systemd", "systemd-network", "systemd-resolve", "messagebus", "sshd",
    "munge", "slurm",
    "postgres", "mysql", "redis", "mongodb", "nginx", "app", "git", "test", "guest", "sync", "bin", "sys",
    "mambauser", "micromamba",
    "tensorflow", "pytorch", "nvidia", "triton-server", "ray", "spark", "hadoop", "hdfs", "airflow", "container",
    "linuxbrew",
    "someone", "somebody", "username", "your_username", "your-username", "yourname", "you", "your_user", "name",
    "xxx", "none", "null", "true", "false",
})  # fmt: skip
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
# What fields called "user" or "owner" hold that is no name, our own words among them ("owner: environment").
OUR_WORDS = frozenset({"environment", "program", "node", "owner"})
NO_NAMES = frozenset({
    "environment", "program", "node", "system", "default", "id", "ids", "name", "names", "is", "not", "none", "null",
    "nil", "the", "a", "an", "must", "to", "and", "or", "input",
    "error", "defined", "mode", "space", "agent", "interrupt", "warning", "code", "function", "guide", "manual",
    "specified", "level", "data", "true", "false", "yes", "no", "str",
    "string", "int", "bool", "required", "optional", "unknown", "missing", "anonymous", "local", "global", "self",
    "this", "request", "cancelled", "abort", "exit", "all",
    "info", "debug", "service", "cuda", "cpu", "gpu", "x", "shell", "site", "base", "python", "driver", "kernel",
    "password", "key", "token", "secret", "type",
})  # fmt: skip
NO_HOSTS = frozenset({
    "localhost", "example", "localhost.localdomain", "localhost4", "localhost6", "ip6-localhost", "ip6-loopback",
    "broadcasthost", "cpu", "cuda", "gpu", "host", "device", "none", "null", "nil", "true",
    "false", "unknown", "auto", "env", "any", "default", "all", "example.com", "example.org", "example.net",
    "host.docker.internal", "kubernetes.default.svc", "is", "was", "the", "a", "an", "not",
    "and", "or", "memory", "to", "in", "on", "for", "of", "with", "from", "failed", "error", "errors", "unavailable",
    "timeout", "refused", "closed", "lost", "reset", "by", "name", "names", "type", "side", "id",
    "pinned", "pageable", "mapped", "process", "thread", "code", "driver", "compiler", "stream", "platform", "cpus",
    "cores", "os", "address", "server", "client", "master", "worker", "node",
    "nodes", "string", "str", "bool", "int", "required", "optional", "exited", "down", "up", "started", "starting",
    "stopped", "running", "ready", "version", "linux", "kernel", "x86_64", "aarch64", "tcp", "udp", "http", "https",
    "nccl", "gloo", "mpi", "static", "c10d", "etcd",
})  # fmt: skip
# Owners of public repositories of the field.
PUBLIC_OWNERS = frozenset({
    "pytorch", "tensorflow", "nvidia", "nvidia-merlin", "google", "google-deepmind", "deepmind", "jax-ml", "openxla",
    "keras-team", "huggingface", "microsoft", "openai", "facebookresearch", "meta-llama",
    "apache", "numpy", "scipy", "conda", "conda-forge", "onnx", "rapidsai", "cupy", "numba", "paddlepaddle", "dmlc",
    "mxnet", "horovod", "ray-project", "vllm-project", "dao-ailab", "triton-lang", "openmm",
    "lightning-ai", "pytorchlightning", "bitsandbytes-foundation", "timdettmers", "ultralytics", "open-mmlab",
    "automatic1111", "comfyanonymous", "opennmt", "ggerganov", "ggml-org", "pypa", "python", "cython",
    "docker", "kubernetes", "actions", "gitleaks", "yelp", "torch", "deepspeedai", "databricks", "mlflow", "wandb",
    "slurm", "schedmd", "spack", "easybuilders", "llvm", "gcc-mirror", "torvalds", "git", "boostorg",
    "protocolbuffers", "grpc", "abseil",
})  # fmt: skip
SYSTEM_FOLDERS = frozenset({
    "", "/", "/usr", "/usr/local", "/opt", "/lib", "/lib64", "/bin", "/sbin", "/etc", "/var", "/var/lib", "/tmp",  # noqa: S108
    "/home", "/dev", "/proc", "/sys", "/run", "/srv", "/mnt", "/data", "/nonexistent", "/Users", "C:", "C:\\Users",
})  # fmt: skip
OPEN_ADDRESSES = frozenset({"0.0.0.0", "127.0.0.1", "127.0.1.1", "255.255.255.255"})  # noqa: S104
PUBLIC_HOSTS = frozenset({
    "nvidia.com", "nvidia.cn", "nvcr.io", "github.com", "github.io", "githubusercontent.com", "githubassets.com",
    "gitlab.com", "bitbucket.org", "ghcr.io", "pypi.org", "pythonhosted.org", "python.org",
    "pytorch.org", "tensorflow.org", "keras.io", "jax.dev", "openxla.org", "onnx.ai", "onnxruntime.ai", "google.com",
    "googlesource.com", "anaconda.org", "anaconda.com", "conda.io", "anaconda.cloud", "conda-forge.org", "mamba.pm",
    "prefix.dev",
    "stackoverflow.com", "stackexchange.com", "askubuntu.com", "serverfault.com", "superuser.com", "reddit.com",
    "medium.com", "readthedocs.io", "readthedocs.org", "docs.rs", "crates.io", "rust-lang.org", "apache.org",
    "microsoft.com", "visualstudio.com", "debian.org", "ubuntu.com",
    "launchpad.net", "centos.org", "redhat.com", "fedoraproject.org", "rockylinux.org", "almalinux.org",
    "archlinux.org", "alpinelinux.org", "opensuse.org", "suse.com", "kernel.org", "docker.com", "docker.io",
    "quay.io", "gcr.io", "mcr.microsoft.com", "public.ecr.aws",
    "huggingface.co", "hf.co", "oasis-open.org", "json-schema.org", "w3.org", "xmlsoap.org", "gnu.org", "gnome.org",
    "freedesktop.org", "sourceware.org", "llvm.org", "cmake.org", "kitware.com", "boost.org", "numpy.org",
    "scipy.org", "scikit-learn.org", "pydata.org", "matplotlib.org", "ipython.org", "jupyter.org",
    "rapids.ai", "cupy.dev", "ray.io", "kaggle.com", "colab.research.google.com", "paperswithcode.com", "arxiv.org",
    "doi.org", "openai.com", "anthropic.com", "wandb.ai", "mlflow.org", "comet.com", "neptune.ai", "lightning.ai",
    "deepspeed.ai", "vllm.ai", "spacy.io", "fast.ai", "paddlepaddle.org.cn", "modelscope.cn",
    "tsinghua.edu.cn", "ustc.edu.cn", "sjtu.edu.cn", "zju.edu.cn", "bfsu.edu.cn", "aliyun.com", "aliyuncs.com",
    "tencent.com", "tencentyun.com", "huaweicloud.com", "163.com", "douban.com", "baidu.com", "bcebos.com",
    "gitee.com", "csdn.net", "zhihu.com", "jihulab.com",
    "npmjs.org", "npmjs.com", "nodejs.org", "yarnpkg.com", "golang.org", "go.dev", "oracle.com", "openjdk.org",
    "maven.org", "sonatype.org", "rubygems.org", "cran.r-project.org", "r-project.org", "julialang.org",
    "wikipedia.org", "youtube.com", "twitter.com", "x.com", "linkedin.com", "slideshare.net",
    "slurm.schedmd.com", "schedmd.com", "open-mpi.org", "openucx.org", "kubernetes.io", "k8s.io", "helm.sh",
    "intel.com", "amd.com", "arm.com", "ibm.com", "amazon.com", "amazonaws.com", "googleapis.com", "azure.com",
    "windows.net", "cloudflare.com", "letsencrypt.org", "example.com", "example.org", "example.net",
    "hooks.slack.com", "slack.com", "discord.com", "telegram.org", "api.wandb.ai", "sentry.io", "tabnine.com",
    "mozilla.org", "apple.com", "brew.sh", "spdx.org", "opensource.org", "creativecommons.org", "openssl.org",
    "zlib.net", "sqlite.org", "protobuf.dev", "grpc.io", "bazel.build", "jfrog.io",
})  # fmt: skip
# Of these only what stands before says whose it is: a bucket, a store, a tenant.
_TENANTS = (
    "amazonaws.com",
    "windows.net",
    "azure.com",
    "jfrog.io",
    "aliyuncs.com",
    "slack.com",
    "visualstudio.com",
    "googleapis.com",
    "github.io",
    "cloudflare.com",
    "bcebos.com",
    "ibm.com",
    "oracle.com",
)
_SERVICES = re.compile(
    r"(?:(?:www|api|docs|download|developer|s3|sts|ec2|ecr|storage|www\.|raw|index|files|mirrors?|cdn|registry|hub"
    r"|login|management|dev|packages|repo|[a-z]{2}-[a-z]{4,9}-\d|dualstack)[.-]?){1,4}"
)


def public_host(host: str) -> bool:
    """Whether a host is one that everybody uses; below a provider's name only its own services are."""
    name = host.lower().rstrip(".")
    for tenant in _TENANTS:
        if name.endswith("." + tenant):
            return bool(_SERVICES.fullmatch(name.removesuffix("." + tenant)))
    parts = name.split(".")
    return any(".".join(parts[i:]) in PUBLIC_HOSTS for i in range(len(parts)))
