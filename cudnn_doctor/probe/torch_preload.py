"""What torch/__init__.py loads by path before its own libraries, read from its text by what the code does.

PyTorch 2.0 to 2.15 each spell it another way (a dict or a list, one helper or two, single or double quotes, arguments
that come and go); the mechanism is one: libtorch_global_deps.so is opened; then, or when that fails, a list of (folder,
pattern) pairs is looked for along sys.path and opened. The text is parsed, never run. Code that does not have this form
is `None`, not "nothing". Source: torch/__init__.py of the wheels 2.0.1 to 2.15.0 on PyPI, read on 2026-12-01.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Union

from cudnn_doctor.model.base import Base

_REST = 1 << 14  # characters after the name of that library within which its function ends; it has 4,000 in 2.14
_Value = Union[str, bool, None, tuple[tuple[str, str], ...]]


class Preload(Base, frozen=True, kw_only=True):
    """One library that is looked for in `{site}`, each folder of sys.path, at the first of `places` that is there.

    Places hold {folder}, {pattern} and {cuda} (CUDA major). `guard` is a folder without which a {site} is passed over.
    A `required` one that is nowhere is an exception.
    """

    folder: str
    pattern: str
    places: tuple[str, ...]
    guard: str
    required: bool


class Plan(Base, frozen=True, kw_only=True):
    """What follows after libtorch_global_deps.so was opened, if a path in /proc/self/maps holds `if_mapped`; and what
    when it could not be opened."""

    opened: tuple[Preload, ...] = ()
    if_mapped: str = ""
    failed: tuple[Preload, ...] = ()


class _UnknownFormError(Exception):
    """The code is not of the known form."""


def read_plan(text: str) -> Plan | None:
    """The plan of a torch/__init__.py; an empty one where it has no such code; None where it is not understood."""
    here = text.find("libtorch_global_deps")
    chunks = _functions(text[: here + _REST] if here >= 0 else "")
    start = next((name for name, source in chunks.items() if "libtorch_global_deps" in source), "")
    if not start:
        return None if "CDLL" in text and "nvidia" in text else Plan()
    try:
        return _Reader(chunks).plan(start)
    except (_UnknownFormError, SyntaxError, ValueError, RecursionError):
        return None


def _functions(text: str) -> dict[str, str]:
    """The source of each function at the top level; parsing those alone costs a tenth of parsing the module."""
    found: dict[str, str] = {}
    parts: list[str] = []
    for part in re.split(r"^(?=\S)", text, flags=re.MULTILINE):
        if part.startswith((")", "#")) and parts:
            parts[-1] += part
        else:
            parts.append(part)
    for part in parts:
        named = re.match(r"def (\w+)", part)
        if named:
            found[named[1]] = part
    return found


class _Reader:
    def __init__(self, chunks: Mapping[str, str]) -> None:
        self._chunks = chunks
        self._parsed: dict[str, ast.FunctionDef] = {}

    def plan(self, start: str) -> Plan:
        tries = [s for s in self._function(start).body if isinstance(s, ast.Try) and _opens(s.body)]
        if not tries:
            return Plan()
        (attempt,) = tries[:1]
        conditions = [c for s in ast.walk(ast.Module(attempt.body, [])) if (c := _if_mapped(s))]
        handlers = [s for handler in attempt.handlers for s in handler.body]
        opened, failed = tuple(self._calls(attempt.body, {})), tuple(self._calls(handlers, {}))
        named = any("libcudnn" in self._chunks[name] for name in self._parsed)
        if named and not any(p.pattern.startswith("libcudnn") for p in (*opened, *failed)):
            raise _UnknownFormError
        return Plan(opened=opened, if_mapped=conditions[0] if conditions else "", failed=failed)

    def _function(self, name: str) -> ast.FunctionDef:
        if name not in self._parsed:
            (node,) = (n for n in ast.parse(self._chunks[name]).body if isinstance(n, ast.FunctionDef))
            self._parsed[name] = node
        return self._parsed[name]

    def _calls(self, body: Sequence[ast.stmt], known: dict[str, _Value]) -> Iterator[Preload]:
        """The preloads of these statements, in order."""
        for statement in body:
            if isinstance(statement, (ast.Assign, ast.AnnAssign)):
                target = statement.targets[0] if isinstance(statement, ast.Assign) else statement.target
                pairs = _pairs(statement.value)
                if pairs and isinstance(target, ast.Name):
                    known[target.id] = pairs
            elif isinstance(statement, ast.Expr):
                yield from self._call(statement.value, known)
            elif isinstance(statement, ast.For):
                for folder, pattern in self._listed(statement.iter, known):
                    yield from self._calls(statement.body, {**known, **_loop_names(statement, folder, pattern)})
            elif isinstance(statement, (ast.Try, ast.With)):
                yield from self._calls(statement.body, known)
            elif isinstance(statement, ast.If) and list(self._calls((*statement.body, *statement.orelse), dict(known))):
                raise _UnknownFormError

    def _listed(self, iterated: ast.expr, known: Mapping[str, _Value]) -> tuple[tuple[str, str], ...]:
        if isinstance(iterated, ast.Call) and isinstance(iterated.func, ast.Attribute):  # cuda_libs.items()
            iterated = iterated.func.value
        value = known.get(iterated.id) if isinstance(iterated, ast.Name) else None
        return value if isinstance(value, tuple) else ()

    def _call(self, node: ast.expr, known: Mapping[str, _Value]) -> Iterator[Preload]:
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in self._chunks):
            return
        function = self._function(node.func.id)
        given = _bound(function, node, known)
        if _opens(function.body):
            yield self._preload(function, given)
        else:
            yield from self._calls(function.body, dict(given))

    def _preload(self, function: ast.FunctionDef, given: Mapping[str, _Value]) -> Preload:
        """The search of a function that opens one library: it walks sys.path and takes the first that is there."""
        names = [a.arg for a in function.args.args]
        folder, pattern = (given.get(n) for n in names[:2])
        loops = [s for s in function.body if isinstance(s, ast.For) and _is_sys_path(s.iter)]
        if not (
            loops and isinstance(folder, str) and isinstance(pattern, str) and isinstance(loops[0].target, ast.Name)
        ):
            raise _UnknownFormError
        paths = {loops[0].target.id: "{site}", names[0]: "{folder}", names[1]: "{pattern}"}
        joins = list(self._joins(loops[0].body, paths))
        places = tuple(j for j in joins if j.endswith("{pattern}"))
        if not places:
            raise _UnknownFormError
        passed_over = any(isinstance(s, ast.Continue) for s in ast.walk(loops[0]))
        guard = next((j for j in joins if not j.endswith("{pattern}")), "") if passed_over else ""
        raising = [s.test for s in function.body if isinstance(s, ast.If) and _raises(s) and "lib_path" in ast.dump(s)]
        asked = [
            given.get(n.id) for test in raising for n in ast.walk(test) if isinstance(n, ast.Name) and n.id in given
        ]
        required = bool(raising) and all(value is not False for value in asked)
        return Preload(folder=folder, pattern=pattern, places=places, guard=guard, required=required)

    def _joins(self, body: Sequence[ast.stmt], paths: dict[str, str]) -> Iterator[str]:
        """Each os.path.join in these statements, written out; through helpers too."""
        for statement in body:
            for node in _in_order(statement):
                if not isinstance(node, ast.Call):
                    continue
                if isinstance(node.func, ast.Attribute) and node.func.attr == "join" and node.args:
                    joined = "/".join(_written(a, paths) for a in node.args)
                    yield joined
                    if isinstance(statement, ast.Assign) and statement.value is node:
                        paths.update({t.id: joined for t in statement.targets if isinstance(t, ast.Name)})
                elif isinstance(node.func, ast.Name) and node.func.id in self._chunks:
                    helper = self._function(node.func.id)
                    names = [a.arg for a in helper.args.args]
                    given = {n: _written(a, paths) for n, a in zip(names, node.args, strict=False)}
                    yield from self._joins(helper.body, given)


def _in_order(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes below one, in the order of the text."""
    yield node
    for child in ast.iter_child_nodes(node):
        yield from _in_order(child)


def _written(node: ast.expr, paths: Mapping[str, str]) -> str:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.Name) and node.id in paths:
        return paths[node.id]
    if isinstance(node, ast.JoinedStr):  # f"cu{maj_cuda_version}", the only number in these paths
        parts = [v.value if isinstance(v, ast.Constant) else "{cuda}" for v in node.values]
        return "".join(map(str, parts))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "join":
        return "/".join(_written(a, paths) for a in node.args)
    raise _UnknownFormError


def _opens(body: Sequence[ast.stmt]) -> bool:
    """Whether one of these statements itself is a call of ctypes.CDLL, or an `if` around one."""
    direct = [*body, *(s for b in body if isinstance(b, ast.If) for s in b.body)]
    calls = (s.value for s in direct if isinstance(s, ast.Expr) and isinstance(s.value, ast.Call))
    return any(isinstance(c.func, ast.Attribute) and c.func.attr == "CDLL" for c in calls)


def _if_mapped(node: ast.AST) -> str:
    """The text of `if "..." not in _maps: return`."""
    if isinstance(node, ast.If) and isinstance(node.test, ast.Compare) and isinstance(node.test.ops[0], ast.NotIn):
        left = node.test.left
        if isinstance(left, ast.Constant) and isinstance(left.value, str) and isinstance(node.body[0], ast.Return):
            return left.value
    return ""


def _raises(node: ast.AST) -> bool:
    return any(isinstance(n, ast.Raise) for n in ast.walk(node))


def _is_sys_path(node: ast.expr) -> bool:
    return ast.unparse(node) == "sys.path"


def _pairs(value: ast.expr | None) -> tuple[tuple[str, str], ...]:
    """A dict or a list of pairs of plain text, as pairs; () for anything else."""
    try:
        literal = ast.literal_eval(value) if value is not None else ()
    except (ValueError, TypeError, SyntaxError):
        return ()
    items = literal.items() if isinstance(literal, dict) else literal if isinstance(literal, (list, tuple)) else ()
    pairs = [i for i in items if isinstance(i, tuple) and len(i) == 2 and all(isinstance(x, str) for x in i)]
    return tuple(pairs)


def _loop_names(loop: ast.For, folder: str, pattern: str) -> dict[str, _Value]:
    elements = loop.target.elts if isinstance(loop.target, ast.Tuple) else []
    names = [e.id for e in elements if isinstance(e, ast.Name)]
    return dict(zip(names, (folder, pattern), strict=False))


def _bound(function: ast.FunctionDef, call: ast.Call, known: Mapping[str, _Value]) -> dict[str, _Value]:
    """The arguments of a call by their names, those that are constants or known; defaults where none is given."""
    arguments = function.args.args
    defaults = dict(zip([a.arg for a in arguments][::-1], function.args.defaults[::-1], strict=False))
    given = {**defaults, **dict(zip([a.arg for a in arguments], call.args, strict=False))}
    given |= {k.arg: k.value for k in call.keywords if k.arg}
    values: dict[str, _Value] = {}
    for name, node in given.items():
        if isinstance(node, ast.Constant) and isinstance(node.value, (str, bool, type(None))):
            values[name] = node.value
        elif isinstance(node, ast.Name):
            values[name] = known.get(node.id)
    return values
