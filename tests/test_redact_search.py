"""The search near signs finds what a search at every character finds."""

from __future__ import annotations

import re
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cudnn_doctor.redact import devices, environment, hosts, people
from cudnn_doctor.redact.search import AHEAD, BACK, Signed, fold

SIGNED = {
    name.strip("_"): p
    for module in (devices, environment, hosts, people)
    for name, p in vars(module).items()
    if isinstance(p, Signed)
}
LOGS = Path(__file__).parent / "explain" / "logs"
PIECES = (
    "ghp_0123456789abcdefABCD", "hf_AbCdEfGhIjKlMnOpQr", "sk-0123456789abcdefghij", "AKIAIOSFODNN7EXAMPLE", "sk-",
    "eyJhbGciOiJI.eyJzdWIi.c2lnbmF0", "https://deploy:hunter2@files.acme.org/x", "ssh://", "://", "@", "Bearer",
    "BASIC", "abcdef0123456789", "--password", "--hf-token", "hunter2", "db_password", "PA\u017f\u017fWORD",
    "API_KEY", "_key", "token", "tokenizer", "=", ":", " : ", "'", '"', "/home/carol", "C:\\Users\\Dave", "a.b@c.org",
    "bob@login1:~$", "user=carol", "RUN AS", "owner", "u\u017fer", "logname", "hostname", "NODE NAME",
    "Nov 30 12:00:00 node17 kernel: NVRM", "Nov 30 12:00:00 node17 sshd[12]: x", "[node17:4242]", "n7.cluster.local",
    "b.pr\u0130vate", "\u0131nternal", "x.LAN", "Serial Number", "ser\u0131al", "1654523003107",
    "GPU-4a3b8c1d-1111-2222-3333-444455556666", "MIG-", "GPU-4a3b", "01234567-89ab-cdef-0123-456789abcdef",
    "aa:bb:cc:dd:ee:ff", "AA-BB-CC-DD-EE-FF", "10.0.0.12", "9.1.0.70.", "::", "fe80::42:acff:fe11:2%eth0",
    "2001:db8:0:0:0:0:0:1", "1", "f", ".", "-", "_", " ", "\t", "\n", "\n\n \n", "\r\n", "\u2028", "serial", "passwd",
    "gpu17:42:43 [0] NCCL INFO", "  host      : gpu17", "srun: error: gpu17: task", "ON gpu17 CANCELLED AT",
    "Linux gpu17 5.15.0-86 #9", "2024-12-12T10:11:12.1+00:00 gpu17 kernel:", "logged in as: ",
    "Accepted publickey for ", " -u ", "--user ", "a:b", "AccountKey=x", "?sig=abc", "mysql://<secret>@db", "ib0:",
    "x1:", "-H n1:4,n2:4", "hosts: a1,b2", "node: box17", "box17:29500", "user alice", "@SBATCH", "--account=p",
    "srun -A p", "UserId=a(1)", "uid=1(a)", "arn:aws:iam::123456789012:role/x", "scp x a:/b", "machine a",
    "/tmp/ray_bob", "~bob/", "/work/bob/", "/project/p/", '"user": {"name": "bob"}', "a:x:1000:1000:A B:/home/a:/x",
    "-rw-r--r-- 1 a b 1", "from: A B <a@b.org>", "\\\\srv\\x", "s3://b", "guid: 0x506b4b0300c21b5e",
    "0242.ac11.0004", "ip-10-1-2-3", "curl -u a:b", "mysql -u a -pb", "(at)", " -w x", "on host a1", "uid=a,ou=b",
    "git@h.org:a/b.git", "https://wandb.ai/a/b", "a:b@c:22", "environ({", "connect to a1:22", "=", "cn=a,dc=b",
)  # fmt: skip
texts = st.one_of(
    st.lists(st.sampled_from(PIECES), max_size=12).map("".join),
    st.lists(st.sampled_from(PIECES), max_size=12).map(" ".join),
    st.text(alphabet="\u0130\u0131\u017f\u00df:.-@/=[]\n 0aG", max_size=60),
)


def spans(matches: object) -> list[tuple[int, int]]:
    return [m.span() for m in matches]  # type: ignore[attr-defined]


@settings(max_examples=200, deadline=None)
@given(texts)
def test_as_a_search_at_every_character(text: str) -> None:
    for name, signed in SIGNED.items():
        assert spans(signed.finditer(text)) == spans(signed.pattern.finditer(text)), name
        assert signed.sub(lambda m: f"<{m[0]}>", text) == signed.pattern.sub(lambda m: f"<{m[0]}>", text), name


@pytest.mark.parametrize("name", SIGNED)
def test_in_real_logs(name: str) -> None:
    signed, found = SIGNED[name], 0
    for log in sorted(LOGS.iterdir()):
        text = log.read_text(encoding="utf-8", errors="replace")
        for whole in (text, text.replace("\n", " "), text.replace("\n", "\r\n\r\n")):
            there = spans(signed.pattern.finditer(whole))
            assert spans(signed.finditer(whole)) == there
            found += len(there)
    assert found or name not in ("HOME_PATH", "QUAD", "URL", "UUID")


LONGEST = {
    "USER_PASSWORD": f"--user='{'u' * 64}:{'p' * 200}",
    "EMAIL": f"{'u' * 64}@{'h' * 60}{('.' + 'd' * 62) * 5}.{'c' * 24}",
    "FQDN": f"{('h' * 63 + '.') * 6}localdomain",
    "SERIAL": f"serial number'{' ' * 30}:   '{'S' * 41}",
}


@pytest.mark.parametrize("name", LONGEST)
@pytest.mark.parametrize("pad", [" ", "\n", " x" * AHEAD + " "])
def test_the_longest_matches_in_one_long_line(name: str, pad: str) -> None:
    signed = SIGNED[name]
    text = f"{pad}{LONGEST[name]} {pad}"
    assert spans(signed.pattern.finditer(text)) == [(len(pad), len(text) - len(pad) - 1)]
    assert spans(signed.finditer(text)) == [(len(pad), len(text) - len(pad) - 1)]


def test_a_value_after_blank_lines() -> None:
    signed = SIGNED["SERIAL"]
    text = "a serial\nserial\n\n \n:\n ABC1234\nserial"
    assert spans(signed.finditer(text)) == spans(signed.pattern.finditer(text)) == [(9, 29)]


def test_folding_keeps_every_place_and_no_other_character_changes_the_length() -> None:
    grown = [c for c in map(chr, range(sys.maxunicode + 1)) if len(c.lower()) != 1]
    assert grown == ["\u0130"]
    assert fold("A\u0130\u0131\u017f\u212aB") == "aiiskb"


@pytest.mark.parametrize("letter", "is")
def test_what_a_search_without_case_takes_for_a_letter_is_folded_to_it(letter: str) -> None:
    same = [c for c in map(chr, range(sys.maxunicode + 1)) if re.fullmatch(letter, c, re.IGNORECASE)]
    assert {fold(c) for c in same} == {letter}


def test_many_signs_in_one_line_take_no_long() -> None:
    text = "a::key@[" * (1 << 17)
    start = time.perf_counter()
    for name in ("IPV6", "HOST_FIELD", "EMAIL"):
        SIGNED[name].sub(lambda m: m[0], text)
    assert time.perf_counter() - start < 10
    assert BACK < AHEAD
