"""The direction of imports (design: one way for data) and what start-up loads, by reading the source and by trying."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import cudnn_doctor

PACKAGE = Path(cudnn_doctor.__file__).parent
# Code of the child processes, the only one that may load CUDA libraries.
CHILD_SIDE = (
    "cudnn_doctor.native.",
    "cudnn_doctor.scenarios.",
    "cudnn_doctor.live.session",
    "cudnn_doctor.live.question_tasks",
    "cudnn_doctor.live.child",
    "cudnn_doctor.live.become",
    "cudnn_doctor.live.framework_task",
    "cudnn_doctor.live.wire",
    "cudnn_doctor.engines.child_task",
    "cudnn_doctor.engines.gpu",
    "cudnn_doctor.engines.graphs",
    "cudnn_doctor.observe.relay",  # forks that end without Python's clean-up, which is the parent's
    "cudnn_doctor.observe.echo",
    "cudnn_doctor.observe.gpu_watch",
)
# The floors of the house, from the top: one way for data is one way down.
FLOORS = (
    ("__main__",),
    ("commands",),
    ("render",),
    ("reproduce", "fleet"),
    ("trials", "postmortem"),
    ("examine", "engines", "diagnose", "redact", "merge", "clone"),
    ("rules", "observe"),
    ("scenarios", "probe", "logs", "recorder"),
    ("live", "matrix"),
    ("knowledge", "recordings", "recipes"),
    ("native", "model", "schemas"),
)
IMPURE = {"os", "subprocess", "ctypes", "time", "socket", "datetime", "random", "threading", "pathlib", "shutil", "sys"}
FRAMEWORKS = {"torch", "tensorflow", "jax", "jaxlib", "cupy", "mxnet", "onnxruntime", "paddle", "ctranslate2"}


@cache
def modules() -> dict[str, ast.Module]:
    """Every module of the package by its dotted name."""
    found = {}
    for path in PACKAGE.rglob("*.py"):
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        found[".".join(parts).removesuffix(".__init__")] = ast.parse(path.read_text(encoding="utf-8"))
    return found


def imports(tree: ast.AST) -> Iterator[str]:
    """Names imported anywhere in a module, inside functions too, but not for type checkers alone."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative imports are not used here"
            yield str(node.module)
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        yield from imports(node)


def within(prefix: str) -> dict[str, set[str]]:
    """The modules at or below a dotted name, with what they import."""
    found = {n: set(imports(t)) for n, t in modules().items() if n == prefix or n.startswith(f"{prefix}.")}
    assert found, f"no module {prefix}"
    return found


def room(module: str) -> str:
    """The room of a module: the part after the package's name."""
    return f"{module}..".split(".")[1]


def links() -> Iterator[tuple[str, str]]:
    """Pairs of modules of ours, the first of which imports the second."""
    for name, tree in modules().items():
        yield from ((name, other) for other in set(imports(tree)) & modules().keys() - {name, "cudnn_doctor"})


def test_imports_go_one_way_down() -> None:
    """From a room only into rooms on lower floors; new rooms find their floor in FLOORS."""
    floor = {name: level for level, names in enumerate(FLOORS) for name in names}
    for name, other in links():
        assert room(name) in floor, f"{room(name)}: on which floor?"
        assert room(name) == room(other) or floor[room(name)] < floor[room(other)], (name, other)


def test_no_file_imports_itself_in_a_circle() -> None:
    below: dict[str, set[str]] = {}
    for name, other in links():
        if not name.startswith(f"{other}."):  # `from package import module` names the package too
            below.setdefault(name, set()).add(other)
    done: set[str] = set()

    def visit(name: str, above: tuple[str, ...]) -> None:
        assert name not in above, " -> ".join([*above[above.index(name) :], name])
        if name not in done:
            for other in sorted(below.get(name, ())):
                visit(other, (*above, name))
            done.add(name)

    for name in sorted(below):
        visit(name, ())


def test_rules_are_pure() -> None:
    for name, names in within("cudnn_doctor.rules").items():
        assert not {n.partition(".")[0] for n in names} & IMPURE, name
        assert not {room(n) for n in names} & {"probe", "live", "native"}, name


def test_the_post_mortem_is_pure() -> None:
    for name, names in within("cudnn_doctor.postmortem").items():
        assert not {n.partition(".")[0] for n in names} & IMPURE, name
        assert not {room(n) for n in names} & {"probe", "observe", "live", "native", "recorder"}, name


def test_rules_call_no_clock_and_open_no_file() -> None:
    for name, tree in modules().items():
        if name.startswith(("cudnn_doctor.rules", "cudnn_doctor.postmortem")):
            calls = {n.func.id for n in ast.walk(tree) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)}
            assert not calls & {"open", "print", "input", "exec", "eval", "__import__"}, name


def test_renderers_only_render() -> None:
    for name, names in within("cudnn_doctor.render").items():
        assert not {room(n) for n in names} & {"probe", "live", "native"}, name
        assert not {n.partition(".")[0] for n in names} & {"subprocess", "ctypes", "socket"}, name


def test_only_the_command_line_prints_and_exits() -> None:
    for name, tree in modules().items():
        if name.startswith("cudnn_doctor.commands.") or name.endswith(".__main__"):
            continue
        for node in ast.walk(tree):
            text = ast.unparse(node) if isinstance(node, (ast.Call, ast.Raise)) else ""
            assert not text.startswith(("print(", "sys.exit(", "exit(", "quit(", "raise SystemExit")), (name, text)
            if text.startswith("os._exit("):
                assert name.startswith(CHILD_SIDE), name
            assert not text.startswith(("sys.stdout.", "sys.stderr.")), (name, text)


def test_cuda_is_loaded_by_children_alone() -> None:
    for name, names in within("cudnn_doctor").items():
        loads = {n for n in names if n == "cuda" or n.startswith("cuda.")}
        assert not loads or name == "cudnn_doctor.native.cuda", (name, loads)
        if "ctypes" in names and not name.startswith(CHILD_SIDE):
            assert name == "cudnn_doctor.probe.kernel_log", name  # klogctl of libc


def test_no_framework_is_imported() -> None:
    for name, names in within("cudnn_doctor").items():
        assert not {n.partition(".")[0] for n in names} & FRAMEWORKS, name


def test_no_shell_and_no_network() -> None:
    for name, tree in modules().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.keyword) and node.arg == "shell":
                assert isinstance(node.value, ast.Constant), name
                assert node.value.value is False, name
        network = set(imports(tree)) & {"socket", "urllib.request", "http.client", "requests"}
        assert not network or name == "cudnn_doctor.redact.redactor", name  # the host's name is what it takes out


# ------------------------------------------------------------ tried


REPORT = """
import json, sys
sys.argv = ["cudnn-doctor", *json.loads(sys.argv[1])]
from cudnn_doctor.commands.app import main
try:
    main()
except SystemExit:
    pass
maps = ""
try:
    maps = open("/proc/self/maps").read()
except OSError:
    pass
named = [m for m in sorted(sys.modules) if "." not in m or m.startswith(("cuda.", "cudnn_doctor."))]
print(json.dumps({"modules": named, "cuda": [w for w in ("libcudnn", "libcublas", "libtorch") if w in maps]}),
      file=sys.stderr)
"""


def loaded(*arguments: str) -> tuple[set[str], list[str]]:
    """Modules and CUDA libraries that a command has loaded at its end."""
    command = [sys.executable, "-c", REPORT, json.dumps(arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    answer = json.loads(done.stderr.splitlines()[-1])
    return set(answer["modules"]), answer["cuda"]


@pytest.mark.parametrize("arguments", [("--version",), ("--help",), ("check", "--help"), ("matrix", "--help")])
def test_help_loads_next_to_nothing(arguments: tuple[str, ...]) -> None:
    names, _ = loaded(*arguments)
    assert names & {"rich", "yaml", "msgspec", "cuda", "pynvml", "elftools", "packaging"} == set()
    assert "cudnn_doctor.model.base" not in names
    assert "pydantic" not in names


def test_json_loads_no_rich_and_the_parent_no_cuda() -> None:
    names, libraries = loaded("check", "--no-live", "--format", "json")
    assert names & {"rich", "cuda", "pydantic", "numpy", *FRAMEWORKS} == set()
    assert {n for n in names if n.startswith("cuda.")} == set()
    assert libraries == []
    assert "cudnn_doctor.rules.driver" in names
