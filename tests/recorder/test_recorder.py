"""The recorder on the stub libraries: exact events for each thing that a program can do to a handle."""

from __future__ import annotations

import os
import re
import resource
import shutil
import signal
import subprocess
from pathlib import Path
from typing import TypeVar

import pytest

from cudnn_doctor.model import events
from cudnn_doctor.model.events import Recording
from cudnn_doctor.recorder import environment
from cudnn_doctor.recorder.read import read_folder
from tests.native import build
from tests.recorder.program import WAYS, kinds, program, record, recorder, run, tag_of

HEALTHY = ["cuda-initialised", "context-created", "handle-created", "stream-created", "stream-set"]
E = TypeVar("E", bound=events.Event)


def only(recording: Recording, kind: type[E]) -> E:
    (event,) = [e for e in recording.events if isinstance(e, kind)]
    return event


def last(recording: Recording, kind: type[E]) -> E:
    return [e for e in recording.events if isinstance(e, kind)][-1]


@pytest.mark.parametrize("way", WAYS)
def test_a_healthy_program(tmp_path: Path, way: str) -> None:
    recording = record(tmp_path, "healthy", way)
    assert kinds(recording) == HEALTHY
    assert (recording.dropped, recording.incomplete) == (0, 0)
    context, handle = only(recording, events.ContextCreated), only(recording, events.HandleCreated)
    stream, pair = only(recording, events.StreamCreated), only(recording, events.StreamSet)
    assert (context.how, context.device, context.function) == ("primary", 0, "cuDevicePrimaryCtxRetain")
    assert (handle.context, stream.context) == (context.context, context.context)
    assert (handle.library, handle.path) == ("cudnn", str(build.cudnn()))
    assert (pair.status, pair.handle, pair.stream) == (0, handle.handle, stream.stream)
    assert (pair.handle_created_by, pair.stream_created_by) == (handle.seq, stream.seq)
    assert (pair.handle_context, pair.stream_context) == (context.context, context.context)
    assert (pair.handle_ended_by, pair.stream_ended_by, pair.first) == (None, None, False)
    assert recording.process.program == str(program(way))
    assert recording.process.pid == pair.origin.pid == pair.origin.tid


@pytest.mark.parametrize("way", WAYS)
def test_a_stream_of_another_context(tmp_path: Path, way: str) -> None:
    recording = record(tmp_path, "foreign", way)
    assert kinds(recording) == [*HEALTHY, "context-created", "stream-created", "stream-set"]
    pair, context = last(recording, events.StreamSet), last(recording, events.ContextCreated)
    assert (context.how, context.device, context.current) == ("created", 0, context.context)
    assert (pair.status, pair.first, pair.function) == (2007, True, "cudnnSetStream")
    assert pair.stream_context == context.context
    assert pair.handle_context == only(recording, events.HandleCreated).context != pair.stream_context


@pytest.mark.parametrize("way", WAYS)
def test_a_reset_by_another_thread(tmp_path: Path, way: str) -> None:
    recording = record(tmp_path, "reset", way)
    assert kinds(recording) == [*HEALTHY, "context-ended", "stream-set"]
    end, pair = only(recording, events.ContextEnded), last(recording, events.StreamSet)
    assert (end.how, end.device, end.status, end.streams, end.handles) == ("reset", 0, 0, 1, 1)
    assert end.created_by == only(recording, events.ContextCreated).seq
    assert end.origin.tid != pair.origin.tid == end.origin.pid
    assert (pair.status, pair.handle_ended_by, pair.stream_ended_by) == (2007, end.seq, end.seq)


def test_only_the_last_release_ends_the_primary_context(tmp_path: Path) -> None:
    recording = record(tmp_path, "release")
    assert kinds(recording) == [*HEALTHY, "context-released", "context-ended", "stream-set"]
    end = only(recording, events.ContextEnded)
    assert (end.how, end.status, end.streams, end.handles) == ("released", 0, 1, 1)
    assert last(recording, events.StreamSet).stream_ended_by == end.seq


def test_a_stream_that_was_destroyed(tmp_path: Path) -> None:
    recording = record(tmp_path, "stream-destroyed", STUB_STATUS="cudnnConvolutionForward:5000")
    assert kinds(recording) == [*HEALTHY, "stream-ended", "stream-set", "ended-used", "call-failed"]
    end, pair = only(recording, events.StreamEnded), last(recording, events.StreamSet)
    assert (end.status, end.created_by, end.ended_before_by) == (0, only(recording, events.StreamCreated).seq, None)
    assert (pair.status, pair.stream_ended_by, pair.handle_ended_by) == (2007, end.seq, None)
    used, failed = only(recording, events.EndedUsed), only(recording, events.CallFailed)
    assert (used.function, used.status, used.stream_ended_by) == ("cudnnConvolutionForward", 5000, end.seq)
    assert (failed.status, failed.stream_ended_by, failed.count, failed.first) == (5000, end.seq, 1, False)


def test_a_handle_that_was_destroyed(tmp_path: Path) -> None:
    recording = record(tmp_path, "handle-destroyed")
    assert kinds(recording) == [*HEALTHY, "handle-ended", "stream-set"]
    assert last(recording, events.StreamSet).handle_ended_by == only(recording, events.HandleEnded).seq


def test_a_call_that_never_returned(tmp_path: Path) -> None:
    """The library crashes on what has ended: the call was written down before it was made."""
    recording = record(tmp_path, "stream-destroyed", code=-signal.SIGSEGV, STUB_DO="cudnnConvolutionForward:segv")
    used = only(recording, events.EndedUsed)
    assert (used.status, used.stream_ended_by) == (None, only(recording, events.StreamEnded).seq)


def test_allocations_that_fail(tmp_path: Path) -> None:
    recording = record(tmp_path, "allocate")
    failed = [e for e in recording.events if isinstance(e, events.CallFailed)]
    assert [(e.function, e.status, e.requested) for e in failed] == [("cuMemAlloc", 2, 1 << 30)] * 8
    assert [e.count for e in failed] == [20, 1, 1, 1, 1, 1, 1, 1]
    assert [e.first for e in failed] == [True] + [False] * 7
    assert (failed[0].memory_free, failed[0].memory_total) == ((64 << 20) - (1 << 20), 64 << 20)
    assert failed[0].current_context == only(recording, events.ContextCreated).context


def test_a_forked_child_writes_into_the_same_file(tmp_path: Path) -> None:
    recording = record(tmp_path, "fork")
    assert kinds(recording) == [*HEALTHY, "forked", "stream-set"]
    fork, pair = only(recording, events.Forked), last(recording, events.StreamSet)
    assert (fork.parent, fork.initialised) == (recording.process.pid, True)
    assert pair.status == 2007
    assert fork.origin.pid == pair.origin.pid != recording.process.pid


def test_a_killed_process(tmp_path: Path) -> None:
    done = run(tmp_path, program(), "killed")
    assert done.returncode == -signal.SIGKILL
    (recording,) = read_folder(tmp_path)
    assert kinds(recording) == HEALTHY
    assert not any(isinstance(e, events.LibraryUnloaded) for e in recording.events)  # no orderly end


def test_descriptors_closed_directory_and_environment_gone(tmp_path: Path) -> None:
    assert kinds(record(tmp_path, "closed")) == [*HEALTHY, "context-ended"]


def test_two_thousand_threads(tmp_path: Path) -> None:
    recording = record(tmp_path, "threads")
    assert recording.incomplete == 0
    seqs = [e.seq for e in recording.events]
    assert seqs == sorted(set(seqs))
    assert recording.dropped + len(seqs) > 4 * 2000
    assert len({e.origin.tid for e in recording.events}) > 100


def test_the_file_is_bounded_and_keeps_what_decides(tmp_path: Path) -> None:
    recording = record(tmp_path, "many")
    (file,) = tmp_path.iterdir()
    assert file.stat().st_size == 1 << 20
    assert kinds(recording)[:5] == HEALTHY
    assert isinstance(recording.events[-3], events.ContextEnded)  # then the libraries are unloaded
    assert len(recording.events) + recording.dropped == max(e.seq for e in recording.events) - _unnamed(recording)
    assert recording.dropped > 9000


def _unnamed(recording: Recording) -> int:
    """Records that name other libraries for the frames, and are no events."""
    return len({f.module for e in recording.events for f in e.origin.native} - {str(build.cuda()), str(build.cudnn())})


def test_two_copies_of_cudnn_are_told_apart(tmp_path: Path) -> None:
    script = f"""if True:
        import ctypes
        cuda = ctypes.CDLL({str(build.cuda())!r})
        cuda.cuInit(0); context = ctypes.c_void_p()
        cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0); cuda.cuCtxSetCurrent(context)
        for path in {str(build.cudnn(8))!r}, {str(build.cudnn(9))!r}:
            library, handle = ctypes.CDLL(path), ctypes.c_void_p()
            library.cudnnCreate(ctypes.byref(handle))
            assert library.cudnnSetStream(handle, None) == 0
    """
    python = shutil.which("python3") or "python3"
    assert run(tmp_path, python, "-c", script).returncode == 0
    (recording,) = read_folder(tmp_path)
    made = [e for e in recording.events if isinstance(e, events.HandleCreated)]
    assert [e.path for e in made] == [str(build.cudnn(8)), str(build.cudnn(9))]
    pairs = [e for e in recording.events if isinstance(e, events.StreamSet)]
    assert [(e.path, e.handle) for e in pairs] == [(e.path, e.handle) for e in made]


def test_a_handle_used_by_two_threads_at_once(tmp_path: Path) -> None:
    recording = record(tmp_path, "shared", STUB_DO="cudnnConvolutionForward:hang")
    one_after_the_other, at_once = (e for e in recording.events if isinstance(e, events.HandleShared))
    assert (one_after_the_other.at_once, at_once.at_once) == (False, True)
    assert one_after_the_other.first_tid == recording.process.pid
    assert at_once.origin.tid not in (recording.process.pid, one_after_the_other.origin.tid)


def test_after_exec_there_is_a_second_recording(tmp_path: Path) -> None:
    run(tmp_path, program(), "exec")
    first, second = read_folder(tmp_path)
    assert first.process.pid == second.process.pid
    assert (first.process.file, second.process.file) == (
        f"{first.process.pid}-0.events",
        f"{first.process.pid}-1.events",
    )
    assert kinds(first) == HEALTHY
    assert kinds(second)[-1] == "stream-set"


def test_a_program_without_cuda_leaves_no_file(tmp_path: Path) -> None:
    assert run(tmp_path, "/bin/true").returncode == 0
    assert not list(tmp_path.iterdir())


def test_no_folder_no_effect(tmp_path: Path) -> None:
    done = run(tmp_path, program(), "foreign", CUDNN_DOCTOR_EVENTS=str(tmp_path / "gone"))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "cudnnSetStream 0\ncudnnSetStream 2007\n"
    assert not list(tmp_path.iterdir())


def test_no_room_for_the_file_no_effect(tmp_path: Path) -> None:
    def limit() -> None:  # a write beyond it would send SIGXFSZ
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 19, resource.RLIM_INFINITY))

    env = {**os.environ, "LD_LIBRARY_PATH": f"{build.cudnn().parent}:{build.cuda().parent}"}
    env |= environment(recorder(), str(tmp_path), {})
    done = subprocess.run(
        [program(), "foreign"], env=env, preexec_fn=limit, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "cudnnSetStream 0\ncudnnSetStream 2007\n", "")
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: mounts a small tmpfs")
def test_a_full_disk_no_effect(tmp_path: Path) -> None:
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=512k", "none", tmp_path], check=False).returncode:
        pytest.skip("mount is not allowed here")
    try:
        done = run(tmp_path, program(), "foreign")
        assert (done.returncode, done.stdout, done.stderr) == (0, "cudnnSetStream 0\ncudnnSetStream 2007\n", "")
        assert not list(tmp_path.iterdir())
    finally:
        subprocess.run(["umount", tmp_path], check=True)


def test_a_static_program_has_no_recording(tmp_path: Path) -> None:
    source, target = tmp_path / "s.c", tmp_path / "static"
    source.write_text("int main(void) { return 5; }")
    if subprocess.run(["cc", "-static", "-o", target, source], capture_output=True, check=False).returncode:
        pytest.skip("no static libc here")
    (tmp_path / "events").mkdir()
    assert run(tmp_path / "events", target).returncode == 5
    assert read_folder(tmp_path / "events") == ()


def test_the_library_needs_no_other() -> None:
    """No libc, no versioned symbol: it loads with every glibc, as the wheel's tag says."""
    needed = subprocess.run(["readelf", "-dW", recorder()], capture_output=True, text=True, check=True).stdout
    assert "NEEDED" not in needed
    symbols = subprocess.run(
        ["readelf", "--dyn-syms", "-W", recorder()], capture_output=True, text=True, check=True
    ).stdout
    assert sorted(re.findall(r"GLOBAL +DEFAULT +\d+ (\w+)", symbols)) == [
        "la_objclose",
        "la_objopen",
        "la_symbind64",
        "la_version",
    ]
    assert "UND la_" not in symbols


def test_every_event_is_written_to_json_and_back(tmp_path: Path) -> None:
    import msgspec

    recording = record(tmp_path, "reset")
    assert msgspec.json.decode(msgspec.json.encode(recording), type=Recording) == recording
    assert {tag_of(e) for e in recording.events} > {"library-loaded", "context-ended"}


def test_the_stack_unwinds_through_it(tmp_path: Path) -> None:
    """A crash handler's backtrace reaches the user's function, a cancelled thread its destructors (glibc 2.35 on)."""
    if tuple(map(int, (os.confstr("CS_GNU_LIBC_VERSION") or "glibc 0.0").split()[1].split("."))) < (2, 35):
        pytest.skip("unwinders cannot see an audit library before _dl_find_object")
    if not shutil.which("g++"):
        pytest.skip("no g++ here")
    source, target = Path(__file__).with_name("unwind.cc"), tmp_path / "unwind"
    libraries = [str(build.cudnn()), str(build.cuda()), "-lpthread"]
    subprocess.run(["g++", "-O1", "-rdynamic", "-o", target, source, *libraries], check=True)
    (tmp_path / "events").mkdir()
    done = run(tmp_path / "events", target, STUB_DO="cudnnCreate:segv")
    names = re.findall(r"(\S+)\((?:(\w+)\+|)", done.stdout)
    assert [n for _, n in names if n in ("cudnnCreate", "user_function", "main")] == [
        "cudnnCreate",
        "user_function",
        "main",
    ]
    assert [n for n, _ in names].count(recorder()) == 1
    done = run(tmp_path / "events", target, "cancel", STUB_DO="cudnnSetStream:hang")
    assert done.stdout == "destructor ran\njoined\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: makes a program setuid")
def test_a_setuid_program_has_no_recording(tmp_path: Path) -> None:
    target, folder = tmp_path / "setuid", tmp_path / "events"
    shutil.copy(program("dlsym"), target)
    folder.mkdir()
    run(folder, target, "load")
    assert len(read_folder(folder)) == 1
    os.chown(target, 65534, 65534)
    target.chmod(0o4755)  # ld.so ignores LD_AUDIT now, and LD_LIBRARY_PATH
    run(folder, target, "load")
    assert len(read_folder(folder)) == 1


def test_a_program_with_musl_has_no_recording(tmp_path: Path) -> None:
    if not shutil.which("musl-gcc"):
        pytest.skip("no musl-gcc here")
    source, target = tmp_path / "m.c", tmp_path / "musl"
    source.write_text("int main(void) { return 5; }")
    subprocess.run(["musl-gcc", "-o", target, source], check=True)
    (tmp_path / "events").mkdir()
    done = run(tmp_path / "events", target)
    assert (done.returncode, done.stderr) == (5, "")
    assert read_folder(tmp_path / "events") == ()
