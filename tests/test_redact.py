"""Redaction: what identifies somebody goes, the vocabulary of the documents and the facts of the machine stay."""

from __future__ import annotations

import json
import time
from typing import Any

import jsonschema
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cudnn_doctor.model.base import decode, encode, known
from cudnn_doctor.model.facts import GpuProcess, Xid
from cudnn_doctor.model.report import Evidence, Finding, Report
from cudnn_doctor.redact.redactor import Identity, Redaction, Redactor, marked, redact, this_machine
from cudnn_doctor.rules import all_rules, sample
from cudnn_doctor.rules.base import Case
from cudnn_doctor.schemas import path_of
from tests.render.build import FINDINGS, report

ALICE = Identity(
    users=("alice", "Alice Liddell"), hosts=("gpubox7.corp.acme.org", "gpubox7"), homes=("/data/people/alice",)
)
UUID = "GPU-4a3b8c1d-1111-2222-3333-444455556666"
SCHEMA = json.loads(path_of("report-1").read_text())


def redacted(text: str, identity: Identity = ALICE) -> str:
    redactor = Redactor(identity)
    redactor.learn(text)
    return redactor.text(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/data/people/alice/venv/lib", "~/venv/lib"),
        ("/data/people/alice2/venv", "/data/people/<user-1>/venv"),
        ("/nfs/data/people/alice", "/nfs/data/people/<user-1>"),
        ("/home/carol/x and carol", "/home/<user-1>/x and <user-1>"),
        (r"C:\Users\Dave\venv", r"C:\Users\<user-1>\venv"),
        (r'"C:\\Users\\Dave\\venv"', r'"C:\\Users\\<user-1>\\venv"'),
        ("/home/ubuntu/venv", "/home/ubuntu/venv"),
        ("Alice Liddell, ALICE, malice", "<user-1>, <user-2>, malice"),
        ("bob@login1:~$ python t.py", "<user-1>@<host-1>:~$ python t.py"),
        ("[bob@login1 src]$ ls", "[<user-1>@<host-1> src]$ ls"),
        ("memcpy@GLIBC_2.14 nvidia-cudnn@9.1", "memcpy@GLIBC_2.14 nvidia-cudnn@9.1"),
        ("torch @ https://download.pytorch.org/whl/x.whl", "torch @ https://download.pytorch.org/whl/x.whl"),
        ("mail a.liddell@acme.org now", "mail <email-1> now"),
        ("gpubox7.corp.acme.org and gpubox7", "<host-1> and <host-2>"),
        ("n7.cluster.local:2222", "<host-1>:2222"),
        ("gpu17:42:43 [0] NCCL INFO Using ib0:fe80::1%ib0<0>", "<host-1>:42:43 [0] NCCL INFO Using ib0:<address-1><0>"),
        ("  host      : gpu17\n  rank      : 0; gpu17", "  host      : <host-1>\n  rank      : 0; <host-1>"),
        ("  host      : server\nthe server", "  host      : <host-1>\nthe server"),
        ("srun: error: gpu17: task 0: Exited", "srun: error: <host-1>: task 0: Exited"),
        ("srun: error: Unable to allocate resources", "srun: error: Unable to allocate resources"),
        ("*** JOB 123 ON gpu17 CANCELLED AT 2023", "*** JOB 123 ON <host-1> CANCELLED AT 2023"),
        ("Linux gpu17 5.15.0-86-generic #96-Ubuntu SMP", "Linux <host-1> 5.15.0-86-generic #96-Ubuntu SMP"),
        ("CentOS Linux release 7.9.2009 (Core)", "CentOS Linux release 7.9.2009 (Core)"),
        ("2024-12-12T10:11:12.1+00:00 gpu17 kernel: NVRM", "2024-12-12T10:11:12.1+00:00 <host-1> kernel: NVRM"),
        ("logged in as: bobby (x). https://wandb.ai/bobby", "logged in as: <user-1> (x). https://wandb.ai/<user-1>"),
        ('{"user": "bobby", "owner": "root"}', '{"user": "<user-1>", "owner": "root"}'),
        ("Accepted publickey for bobby from", "Accepted publickey for <user-1> from"),
        ("mysql://u:pw@db.acme.org/x", "mysql://<secret>@<host-1>/x"),
        ("Nov 30 12:00:00 node17 kernel: NVRM: Xid", "Nov 30 12:00:00 <host-1> kernel: NVRM: Xid"),
        ("[node17:4242] *** Process received signal", "[<host-1>:4242] *** Process received signal"),
        ("--index-url https://pypi.acme.org/simple", "--index-url https://<host-1>/simple"),
        ("10.0.0.12:8080 203.0.113.9", "<address-1>:8080 <address-2>"),
        ("bound to 127.0.0.1 and 0.0.0.0 and ::1", "bound to 127.0.0.1 and 0.0.0.0 and ::1"),
        ("fe80::42:acff:fe11:2 2001:db8:0:0:0:0:0:1", "<address-1> <address-2>"),
        ("c10::Error std::string 12:30:45 00000000:00:04.0", "c10::Error std::string 12:30:45 00000000:00:04.0"),
        ("aa:bb:cc:dd:ee:ff", "<mac-1>"),
        ("Serial Number                : 1654523003107", "Serial Number                : <serial-1>"),
    ],
)
def test_names_and_addresses(text: str, expected: str) -> None:
    assert redacted(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "nvidia-curand-cu12==10.3.7.77",
        "nvidia-cudnn-cu13 9.19.0.56",
        "libcublas.so.12.1.3.1",
        "nvidia_cudnn_cu12-9.1.0.70.dist-info",
        "cuDNN 8.9.7.29, TensorRT 10.3.0.26",
        "NVRM version: 580.159.04",
        "driver 535.54.03.1 is 999.1.2.3",
        "9.14.0.64-1 of libcudnn9-cuda-13=9.14.0.64-1, then 9.14.0.64 alone",
    ],
)
def test_versions_of_four_parts_are_no_addresses(text: str) -> None:
    assert redacted(text) == text


SECRETS = {
    "github": "ghp_0123456789abcdefABCDEF0123456789abcd",
    "huggingface": "hf_AbCdEfGhIjKlMnOpQrStUvWx",
    "openai": "sk-proj-0123456789abcdefghij",
    "aws": "AKIAIOSFODNN7EXAMPLE",
    "jwt": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl",
    "ngc": "nvapi-0123456789abcdefghijklmno",
    "wandb": "WANDB_API_KEY=0123456789abcdef0123456789abcdef01234567",
    "url": "https://deploy:hunter2@files.acme.org/x",
    "header": "Authorization: Bearer abcdef0123456789",
    "flag": "--password hunter2",
    "curl": "curl -u bobby:hunter2 x",
    "curl-long": "curl --user='bobby:hunter2' x",
    "azure": "AccountName=acme;AccountKey=hunter2==;EndpointSuffix=core",
    "sas": "https://acme.blob.core.windows.net/x?sv=2020&sig=hunter2",
    "presigned": "https://s3.amazonaws.com/x?X-Amz-Signature=hunter2",
    "yaml": "db_password: 'hunter2'",
    "key": "-----BEGIN OPENSSH PRIVATE KEY-----\nhunter2\n-----END OPENSSH PRIVATE KEY-----",
}
PARTS = {"wandb": "0123456789abcdef0123456789abcdef01234567", "header": "abcdef0123456789"}


@pytest.mark.parametrize("name", SECRETS)
def test_secrets(name: str) -> None:
    secret = SECRETS[name]
    gone = PARTS.get(name, "hunter2" if "hunter2" in secret else secret)
    shown = redacted(f"before {secret} after")
    assert gone not in shown
    assert shown.startswith("before ")
    assert shown.endswith(" after")


@pytest.mark.parametrize(
    "text",
    [
        "docker run -u 1000:1000 x",
        "python -u train.py",
        "max_tokens=4096",
        "use_auth_token: false",
        "tokenizer=bert",
        "token: None",
        "tokens",
    ],
)
def test_harmless_words_about_tokens(text: str) -> None:
    assert redacted(text) == text


def test_an_env_dump_keeps_the_allow_list_only() -> None:
    text = (
        'CUDA_VISIBLE_DEVICES=0,1\nexport ACME_PROJECT=manhattan\nTF_CONFIG={"a": 1}\n'
        "LD_LIBRARY_PATH=/data/people/alice/lib"
    )
    assert redacted(text).splitlines() == [
        "CUDA_VISIBLE_DEVICES=0,1",
        "export ACME_PROJECT=<removed>",
        "TF_CONFIG=<removed>",
        "LD_LIBRARY_PATH=~/lib",
    ]


def test_uuids_keep_their_form_and_abbreviations_their_full_one() -> None:
    shown = redacted(f"CUDA_VISIBLE_DEVICES=GPU-4a3b\n{UUID}\nMIG-{UUID}/1/0")
    short, full, mig = shown.splitlines()
    assert full == "GPU-a0010000-0000-0000-0000-00000000d0c7"
    assert short == "CUDA_VISIBLE_DEVICES=GPU-a001"
    assert mig == f"MIG-{full}/1/0"
    assert redacted(shown) == shown


def planted(home: str, user: str, host: str) -> Report:
    """A report with something to hide in every place where text can stand."""
    snapshot = report().snapshot
    text = f"{home}/run.sh by {user}@{host}:~$ at 10.1.2.3 aa:bb:cc:dd:ee:ff {SECRETS['github']} serial: 1654523003107"
    gpu = msgspec.structs.replace(
        sample.snapshot().gpus.value[0],  # type: ignore[union-attr]
        uuid=known(UUID, "NVML"),
        processes=known(
            (GpuProcess(pid=1, name=known(f"{home}/venv/bin/python", "NVML"), memory=known(1, ""), kind="compute"),), ""
        ),
    )
    snapshot = msgspec.structs.replace(
        snapshot,
        patient=msgspec.structs.replace(snapshot.patient, prefix=f"{home}/venv"),
        gpus=known((gpu,), "NVML"),
        xids=known((Xid(time="", pci="", code=31, text=f"Nov 30 12:00:00 {host} kernel: NVRM: Xid"),), "journal"),
        host=msgspec.structs.replace(
            snapshot.host,
            environment={"LD_LIBRARY_PATH": f"{home}/lib:/usr/local/cuda/lib64", "ACME_TOKEN": "manhattan"},
        ),
    )
    bad = Finding(
        code="CD501", status="problem", severity="error", owner="environment", subject=f"{home}/x", title=text,
        detail=text,
        evidence=(
            Evidence(pointer="/snapshot/host/environment/ACME_TOKEN", value="manhattan", source=f"{home}/.bashrc"),
            Evidence(pointer="/snapshot/cudnn/0/path", value=text, source=text),
        ),
    )  # fmt: skip
    live = sample.live_check()
    live = msgspec.structs.replace(live, fate=msgspec.structs.replace(live.fate, stderr=text))
    return report(findings=(*FINDINGS, bad), snapshot=snapshot, scenarios=(live,), notes=(text,))


PEOPLE = {
    "alice": ("/home/alice", "alice", "gpubox7"),
    "root": ("/root", "root", "gpubox7"),
    "cuda": ("/home/cuda", "cuda", "gpubox7"),
    "home in /x/cudnn": ("/x/cudnn", "mallory", "gpubox7"),
    "all words of ours": ("/snapshot/cudnn", "known", "driver"),
}


@pytest.mark.parametrize("who", PEOPLE)
def test_a_whole_report(who: str) -> None:
    home, user, host = PEOPLE[who]
    before = planted(home, user, host)
    after, redactions = redact(before, Identity(users=(user,), hosts=(host,), homes=(home,)))
    text = encode(after).decode()
    for gone in (
        f"{home}/",
        f" {user}@" if user != "root" else "no such text",
        f"@{host}",
        "10.1.2.3",
        "aa:bb:cc",
        "ghp_",
        UUID,
        "1654523003107",
        "manhattan",
    ):
        assert gone not in text.replace('"/snapshot/cudnn/', '"'), gone  # our own pointers are no paths
    if who in ("alice", "home in /x/cudnn"):
        assert user not in text
        assert host not in text
    jsonschema.Draft202012Validator(SCHEMA).validate(json.loads(text))
    assert decode(text.encode(), Report) == after
    assert after.snapshot.cuda == before.snapshot.cuda
    assert after.findings[: len(FINDINGS)] == before.findings[: len(FINDINGS)]
    assert after.snapshot.host.environment["LD_LIBRARY_PATH"] == "~/lib:/usr/local/cuda/lib64"
    assert after.snapshot.patient.prefix == "~/venv"
    assert {r.kind for r in redactions} >= {
        "home",
        "host",
        "user",
        "address",
        "mac",
        "secret",
        "uuid",
        "environment",
        "serial",
    } - ({"user"} if who == "root" else set())


def keys_of(node: Any) -> Any:
    """The skeleton of a JSON document: keys, lengths and kinds, no texts."""
    if isinstance(node, dict):
        return {k: keys_of(v) for k, v in node.items()}
    return [keys_of(v) for v in node] if isinstance(node, list) else type(node).__name__


@settings(max_examples=60, deadline=None)
@given(
    user=st.sampled_from(sorted({*json.dumps(SCHEMA).replace('"', " ").split(), "cuda", "x", "0", "9.19.0"})),
    home=st.sampled_from(["/x/cudnn", "/opt/venv", "/snapshot", "/usr/lib", "/home/cuda", "/", ""]),
)
def test_no_name_breaks_a_document(user: str, home: str) -> None:
    before = report()
    after, _ = redact(before, Identity(users=(user,), hosts=(user,), homes=(home,)))
    assert keys_of(msgspec.to_builtins(after)) == keys_of(msgspec.to_builtins(before))
    assert after.verdict == before.verdict
    assert [(f.code, f.status, f.severity) for f in after.findings] == [
        (f.code, f.status, f.severity) for f in before.findings
    ]
    jsonschema.Draft202012Validator(SCHEMA).validate(json.loads(encode(after)))


words = st.sampled_from([
    "alice", "/data/people/alice/x", UUID, "GPU-4a3b", "GPU-4a3b8c1d", "10.1.2.3", "n1.corp.local", "a@b.org", ":",
    "bob@box:~$", "user=carol", "/home/dave", "token=abc", "serial: ABC123456", "https://u:p@h.org/x", "fe80::1",
    "==9.1.0.70", "ACME_X=1y", "\n",
])  # fmt: skip


@settings(max_examples=200, deadline=None)
@given(
    st.one_of(
        st.text(max_size=200), st.lists(words, max_size=8).map(" ".join), st.lists(words, max_size=8).map("\n".join)
    )
)
def test_twice_is_once(text: str) -> None:
    once = redacted(text)
    assert redacted(once) == once


@pytest.mark.parametrize("who", ["cuda", "home in /x/cudnn"])
def test_redacted_facts_are_judged_as_before(who: str) -> None:
    home, user, host = PEOPLE[who]
    someone = Identity(users=(user,), hosts=(host,), homes=(home, sample.SITE))
    judged = 0
    for rule in all_rules():
        for status, case in rule.examples():
            clean, _ = redact(case.snapshot, someone)
            live = tuple(redact(r, someone)[0] for r in case.scenarios)
            after = rule.apply(Case(clean, live, required=case.required))
            before = rule.apply(case)
            assert [(f.status, f.severity, f.owner) for f in after] == [(f.status, f.severity, f.owner) for f in before]
            judged += status != "skipped"
    assert judged > 60


RUNAWAY = (
    "a", "a-", "-----BEGIN PRIVATE KEY-----", "eyJa", ":", "1.", "token", "/home/", "0:", "a@", "http://", " ",
    "serial", "fe:", "a.b.", "--", "--token-", "A=", "GPU-aaaa-",
)  # fmt: skip


@pytest.mark.parametrize("unit", RUNAWAY)
def test_no_text_makes_a_pattern_run_away(unit: str) -> None:
    text = unit * (200_000 // len(unit))
    start = time.perf_counter()
    redacted(text)
    assert time.perf_counter() - start < 5


def test_this_machine_reads_names_from_the_environment() -> None:
    me = this_machine({"USER": "zaphod", "HOME": "/data/zaphod", "SLURMD_NODENAME": "magrathea.hhgg.org"})
    assert "zaphod" in me.users
    assert "/data/zaphod" in me.homes
    assert {"magrathea.hhgg.org", "magrathea"} <= set(me.hosts)


def test_the_report_says_what_was_done() -> None:
    found = Redaction(kind="user", original="alice", replacement="<user-1>", count=3)
    assert marked(report(), (found,)).notes == ("Redacted: 1 user. Placeholders stand for the same thing everywhere.",)
    assert marked(report(), ()).notes[0].startswith("Redacted: nothing was found")
    assert marked(report(), None).notes[0].startswith("Not redacted (--no-redact)")


def test_a_value_apart_from_its_name() -> None:
    """In a list of words and in a tree the name stands in a text of its own."""
    redactor = Redactor(Identity())
    words = ("train.py", "--hf-token", "abc1", "--pad-token", "[PAD]", "--lr", "0.1")
    assert redactor.tree(words) == ("train.py", "--hf-token", "<secret>", "--pad-token", "[PAD]", "--lr", "0.1")
    tree = {"password": "abc", "tokens": 3, "api_key": "", "inner": [{"clientSecret": "x1"}]}
    clean = {"password": "<secret>", "tokens": 3, "api_key": "", "inner": [{"clientSecret": "<secret>"}]}
    assert redactor.tree(tree) == clean
    assert redactor.tree(clean) == clean


def test_a_secret_is_not_shown_in_the_list_either() -> None:
    redactor = Redactor(Identity())
    redactor.text(SECRETS["github"])
    assert redactor.redactions == (
        Redaction(kind="secret", original="ghp_... (40 characters)", replacement="<secret>", count=1),
    )
