"""Processes seen from outside: the tree with how grandchildren ended, maps, counters, streams, settings."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cudnn_doctor.observe import counters, process, settings
from cudnn_doctor.observe.kernel_said import kernel_lines
from cudnn_doctor.observe.streams import HEAD, TAIL, Ring
from cudnn_doctor.observe.tree import Tree, exit_status

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="/proc")


def test_ring_keeps_the_first_and_the_last_bytes() -> None:
    ring, whole = Ring(), b""
    for n in range(900):
        piece = bytes([n % 251]) * (n * 7 % 1500)
        ring.add(piece)
        whole += piece
        if n in (10, 100, 250, 899):
            head, lost, tail = ring.kept()
            assert (head, len(head) + lost + len(tail)) == (whole[:HEAD], len(whole))
            assert tail == whole[len(head) + lost :]
    assert len(whole) > HEAD + 2 * TAIL
    assert len(tail) == TAIL


def test_ring_takes_a_piece_longer_than_itself() -> None:
    ring, piece = Ring(), os.urandom(HEAD + 2 * TAIL + 5)
    ring.add(piece)
    assert ring.kept() == (piece[:HEAD], TAIL + 5, piece[-TAIL:])


def test_how_a_grandchild_ended_that_its_parent_waited_for() -> None:
    words = "import os,time\npid=os.fork()\nif not pid:\n time.sleep(.4); os.abort()\nos.waitpid(pid,0); time.sleep(30)"
    with subprocess.Popen([sys.executable, "-c", words]) as parent:
        tree = Tree(parent.pid, time.monotonic())
        until = time.monotonic() + 20
        while not any(p.ended for p in tree.seen()) and time.monotonic() < until:
            tree.look()
            time.sleep(0.02)
        parent.kill()
        child = next(p for p in tree.seen() if p.pid != parent.pid)
        tree.close()
    assert child.parent == parent.pid
    assert (child.signal, child.exit_code) in (("SIGABRT", None), ("", None))  # the second before Linux 6.15
    assert child.ended is not None


def test_exit_status_of_our_own_child() -> None:
    child = subprocess.Popen(["sh", "-c", "read x; exit 9"], stdin=subprocess.PIPE)
    pidfd = os.pidfd_open(child.pid)
    assert exit_status(pidfd) is None  # it lives
    child.communicate(b"\n")
    assert exit_status(pidfd) in (9 << 8, None)
    os.close(pidfd)


def test_stat_of_a_process_with_a_name_like_a_field(tmp_path: Path) -> None:
    program = tmp_path / "a) R 1 (b"
    program.symlink_to(sys.executable)
    with subprocess.Popen([program, "-c", "import time; time.sleep(30)"]) as child:
        stat = process.stat_of(child.pid)
        child.kill()
    assert stat is not None
    assert (stat.name, stat.parent) == ("a) R 1 (b", os.getpid())


def test_a_process_that_is_gone_has_nothing() -> None:
    child = subprocess.Popen(["true"])
    child.wait()
    assert process.stat_of(child.pid) is None
    assert list(process.children_of(child.pid)) == []
    with pytest.raises(OSError, match=str(child.pid)):
        process.libraries_of(child.pid)


def test_libraries_in_maps(tmp_path: Path) -> None:
    folder = tmp_path / "7"
    folder.mkdir()
    line = "7f00-7f01 r--p 00000000 08:01 {} {}\n"
    paths = ["/a b/libcudnn.so.9.19.0", "/lib/libc.so.6", "/x/libcudnn_ops.so.9 (deleted)", "/x/libcudart-1a2b.so.12.0"]
    (folder / "maps").write_text("".join(line.format(i, p) for i, p in enumerate(paths)) + line.format(9, paths[0]))
    assert process.libraries_of(7, str(tmp_path)) == (paths[0], paths[2], paths[3])


def test_counters_before_and_after(tmp_path: Path) -> None:
    files = {
        "proc/self/cgroup": "0::/job\n",
        "proc/self/mountinfo": "30 20 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
        "proc/vmstat": "nr_free_pages 5\noom_kill 3\n",
        "sys/fs/cgroup/job/memory.events": "low 0\noom 1\noom_kill 0\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    before = counters.read_counters(tmp_path)
    (tmp_path / "sys/fs/cgroup/job/memory.events").write_text("oom_kill 1\n")
    found = {c.source: (c.name, c.before, c.after) for c in counters.compare(before, counters.read_counters(tmp_path))}
    assert found == {
        "/proc/vmstat": ("machine oom_kill", 3, 3),
        "/sys/fs/cgroup/job/memory.events": ("cgroup oom_kill", 0, 1),
    }


def test_settings_give_way_to_the_users_own() -> None:
    added = settings.defaults({}, "/t")
    assert added == {
        "PYTHONFAULTHANDLER": "1",
        "CUDNN_LOGDEST_DBG": "/t/cudnn-%i.log",
        "CUDNN_LOGERR_DBG": "1",
        "CUDNN_LOGLEVEL_DBG": "1",
        "CUDA_LOG_FILE": "/t/cuda.log",
    }
    mine = {"CUDNN_LOGINFO_DBG": "0", "CUDA_LOG_FILE": "", "PYTHONFAULTHANDLER": ""}
    assert settings.defaults(mine, "/t") == {}
    assert settings.defaults({}, "") == {"PYTHONFAULTHANDLER": "1"}
    assert settings.defaults({}, "/t", trace=True)["CUDA_LAUNCH_BLOCKING"] == "1"


# The kernel's own lines, Linux 6.18 and 5.10.
RING = b"""<6>[ 4801.158900] program[25144]: segfault at 8 ip 00007fb9c1e02c85 sp 0 error 6 in libx.so[1c85]
<3>[ 4900.000001] Memory cgroup out of memory: Killed process 77 (python3) total-vm:100kB, anon-rss:90kB
<6>[ 4901.0] other[9]: segfault at 0 ip 0 sp 0 error 4
"""


def test_lines_of_the_kernel_log() -> None:
    assert kernel_lines({25144, 77}, lambda _: RING) == (
        "program[25144]: segfault at 8 ip 00007fb9c1e02c85 sp 0 error 6 in libx.so[1c85]",
        "Memory cgroup out of memory: Killed process 77 (python3) total-vm:100kB, anon-rss:90kB",
    )


def test_a_log_that_is_closed_says_nothing() -> None:
    def closed(_: int) -> bytes:
        raise PermissionError(1, os.strerror(1))

    assert kernel_lines({1}, closed) == ()
