"""Xids from the ring buffer and from log files. The log of the H200 is a real one's, driver 580.159.04."""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path

import pytest

from cudnn_doctor.model.base import Absent, known
from cudnn_doctor.model.facts import Xid
from cudnn_doctor.probe.kernel_log import probe_xids
from tests.probe.machine import put

RING = "kernel ring buffer, syslog(2)"
MMU = (
    "pid=856, name=python3, channel 0x0000000a, intr 00000000. MMU Fault: ENGINE GRAPHICS GPC1 GPCCLIENT_T1_8 faulted"
    " @ 0x0_00000000. Fault is of type FAULT_PDE ACCESS_TYPE_VIRT_WRITE"
)
H200 = f"""\
<6>[    0.000000] Linux version 6.18.44-fc-v973-gpu
<5>[    0.513453] NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build
<4>[    3.755408] NVRM: Persistence mode is deprecated and will be removed in a future release.
<3>[   46.584696] NVRM: GPU at PCI:0000:00:06: GPU-00000000-1111-2222-3333-444444444444
<3>[   46.584705] NVRM: GPU Board Serial Number: 0000000000000
<3>[   46.584706] NVRM: Xid (PCI:0000:00:06): 43, pid=749, name=python3, channel 0x0000000b
<3>[   51.129686] NVRM: Xid (PCI:0000:00:06): 31, {MMU}
"""


def ring(log: str) -> Callable[[int], bytes]:
    return lambda size: log.encode()


def refused(size: int) -> bytes:
    raise OSError(errno.EPERM, "Operation not permitted", "kernel ring buffer")


def test_h200_after_a_trap_and_an_illegal_address(tmp_path: Path) -> None:
    put(tmp_path, {"/proc/stat": "cpu  1 2 3\nbtime 1796052752\nprocesses 900\n"})
    assert probe_xids(tmp_path, ring(H200)) == known(
        (
            Xid(
                time="2026-11-30T15:33:18Z", pci="0000:00:06", code=43, text="pid=749, name=python3, channel 0x0000000b"
            ),
            Xid(time="2026-11-30T15:33:23Z", pci="0000:00:06", code=31, text=MMU),
        ),
        RING,
    )


def test_quiet_log(tmp_path: Path) -> None:
    assert probe_xids(tmp_path, ring("<6>[    0.0] Linux version 6.1\n")) == known((), RING)
    assert probe_xids(tmp_path, ring("")) == known((), RING)


@pytest.mark.parametrize(
    ("line", "pci", "code", "text"),
    [
        (
            "<3>[1.5] NVRM: Xid (0000:03:00): 79, GPU has fallen off the bus.",
            "0000:03:00",
            79,
            "GPU has fallen off the bus.",
        ),
        (
            "<3>[1.5] NVRM: Xid (PCI:0000:cb:00): 13, pid='<unknown>', name=<unknown>, Graphics SM Warp Exception",
            "0000:cb:00",
            13,
            "pid='<unknown>', name=<unknown>, Graphics SM Warp Exception",
        ),
        ("<3>[1.5][  T856] NVRM: Xid (PCI:0000:00:1e): 63", "0000:00:1e", 63, ""),
    ],
)
def test_forms_of_other_drivers(tmp_path: Path, line: str, pci: str, code: int, text: str) -> None:
    assert probe_xids(tmp_path, ring(line)) == known(
        (Xid(time="1.5 s after boot", pci=pci, code=code, text=text),), RING
    )


def test_line_without_time(tmp_path: Path) -> None:
    log = "<3>NVRM: Xid (PCI:0000:00:06): 43, channel 1\n"
    assert probe_xids(tmp_path, ring(log)) == known((Xid(time="", pci="0000:00:06", code=43, text="channel 1"),), RING)


def test_lines_that_programs_write_into_the_log_do_not_count(tmp_path: Path) -> None:
    log = "<12>[  3.0] NVRM: Xid (PCI:0000:00:06): 79, forged\nNVRM: Xid (PCI:0000:00:06): 79, cut off in front\n"
    assert probe_xids(tmp_path, ring(log)) == known((), RING)


def test_nvswitch_errors_are_no_xids(tmp_path: Path) -> None:
    log = "<3>[  3.0] nvidia-nvswitch0: SXid (PCI:0000:00:00.0): 11001, Fatal, ingress invalid command\n"
    assert probe_xids(tmp_path, ring(log)) == known((), RING)


def test_only_the_last_twenty_and_long_texts_cut(tmp_path: Path) -> None:
    log = "".join(f"<3>[ {n}.0] NVRM: Xid (PCI:0000:00:06): {n}, {'x' * 1000}\n" for n in range(1, 31))
    fact = probe_xids(tmp_path, ring(log))
    assert not isinstance(fact, Absent)
    assert [x.code for x in fact.value] == list(range(11, 31))
    assert {len(x.text) for x in fact.value} == {400}


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    log = b"\xff\xfe\n<3>[ 1.0] NVRM: Xid (PCI:0000:00:06): 43, name=\xff\n"
    xid = Xid(time="1.0 s after boot", pci="0000:00:06", code=43, text="name=\ufffd")
    assert probe_xids(tmp_path, lambda size: log) == known((xid,), RING)


# ---------------------------------------------------------------- files

OLD = "Nov 29 08:00:00 node kernel: [  100.0] NVRM: Xid (PCI:0000:00:06): 79, of the boot before\n"
BOOT = "Nov 30 08:00:00 node kernel: [    0.000000] Linux version 5.15.0-130-generic (buildd@x) #140\n"
NEW = "Nov 30 09:00:00 node kernel: [ 3600.0] NVRM: Xid (PCI:0000:00:06): 48, An uncorrectable double bit error\n"
FORGED = "Nov 30 09:00:01 node python3[77]: NVRM: Xid (PCI:0000:00:06): 79, said a program\n"
FOUND = Xid(time="Nov 30 09:00:00", pci="0000:00:06", code=48, text="An uncorrectable double bit error")


def test_file_where_the_ring_is_refused(tmp_path: Path) -> None:
    put(tmp_path, {"/var/log/kern.log": OLD + BOOT + OLD + BOOT + NEW + NEW + FORGED, "/var/log/syslog": OLD})
    assert probe_xids(tmp_path, refused) == known((FOUND, FOUND), "/var/log/kern.log")


def test_file_whose_boot_was_rotated_away_counts_whole(tmp_path: Path) -> None:
    put(tmp_path, {"/var/log/messages": NEW})
    assert probe_xids(tmp_path, refused) == known((FOUND,), "/var/log/messages")


def test_file_with_iso_times(tmp_path: Path) -> None:
    line = "2026-11-30T09:00:00.123456+00:00 node kernel: NVRM: Xid (PCI:0000:00:06): 94, Contained\n"
    put(tmp_path, {"/var/log/syslog": line})
    xid = Xid(time="2026-11-30T09:00:00.123456+00:00", pci="0000:00:06", code=94, text="Contained")
    assert probe_xids(tmp_path, refused) == known((xid,), "/var/log/syslog")


def test_only_the_end_of_a_big_file_is_read(tmp_path: Path) -> None:
    filler = "Nov 30 09:00:00 node kernel: [ 3600.0] audit: nothing\n" * 100_000  # 5.3 MB
    put(tmp_path, {"/var/log/kern.log": NEW + filler + NEW})
    assert probe_xids(tmp_path, refused) == known((FOUND,), "/var/log/kern.log")


def test_nothing_may_be_read(tmp_path: Path) -> None:
    assert probe_xids(tmp_path, refused) == Absent(
        reason="no-permission", detail="kernel ring buffer: Operation not permitted"
    )


def test_file_that_may_not_be_read(tmp_path: Path) -> None:
    (tmp_path / "var/log/kern.log").mkdir(parents=True)  # even root cannot read a folder as a file
    assert probe_xids(tmp_path, refused) == Absent(
        reason="no-permission", detail="kernel ring buffer: Operation not permitted"
    )


def test_no_ring_and_no_file(tmp_path: Path) -> None:
    def missing(size: int) -> bytes:
        raise OSError("this libc has no klogctl")

    fact = probe_xids(tmp_path, missing)
    assert fact == Absent(
        reason="error",
        detail="this libc has no klogctl; /var/log/kern.log: No such file or directory; "
        "/var/log/messages: No such file or directory; /var/log/syslog: No such file or directory",
    )
