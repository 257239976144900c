"""Mutants of zconsole's modules: one small mistake each, made in the syntax tree."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from importlib.util import find_spec
from itertools import chain
from pathlib import Path

from tests.mutants.wider import CHANGES

PACKAGE = Path(str(find_spec("zconsole").origin)).parent  # type: ignore[union-attr]
ENGINE = "rebalance.engine."
MODULES = tuple(ENGINE + name for name in (
    "copy_engine", "file_copy", "swap", "recovery", "withdrawal", "journal", "journal_database",
    "link_names", "rewrite_engine", "verify", "directories", "versions", "leases", "results",
))  # fmt: skip
"""Modules in which every mutant is tried."""
DURABLE = frozenset(
    {
        # System calls that change something, or make a change durable.
        "open_new", "pwrite", "ftruncate", "fchown", "fchmod", "set_times", "setxattr",
        "removexattr", "link_fd", "link", "rename", "exchange", "unlink", "fsync", "sync", "syncfs",
        "rewrite",
        # The journal.
        "begin", "commit", "record", "execute", "executemany", "executescript", "flush", "jot",
        "set", "set_offset", "leave_directory", "close_directories", "lazily_durable",
    }
)  # fmt: skip
"""Names of calls that make or order durable changes."""
NOT_RUN = ("decorator_list", "returns", "annotation", "args")
"""Fields of a function that are not part of its body."""
TEXT = 70
"""Characters of a statement that a mutant's name shows."""
Path_ = tuple[tuple[str, int | None], ...]
"""Field and position of every node, from the module down."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """One mistake. ``function`` is the function it is in, by qualified name.

    ``module`` is relative to zconsole.
    """

    module: str
    function: str
    operator: str
    text: str
    """The original statement or condition, in normalized layout."""
    line: int
    column: int
    end: int
    path: Path_
    number: int = 1
    """Number among the mutants of the same function with the same text."""

    @property
    def name(self) -> str:
        """Return a name that helps people find it."""
        text = self.text if len(self.text) <= TEXT else self.text[:TEXT] + "…"
        return f"{self.module.rpartition('.')[2]}.py:{self.line} {self.operator} {text}"

    @property
    def position(self) -> tuple[int, int]:
        """Return line and column where the change begins."""
        return self.line, self.column

    @property
    def identity(self) -> str:
        """Return an identity that does not change when lines are added elsewhere."""
        number = f" #{self.number}" if self.number > 1 else ""
        module = self.module.removeprefix(ENGINE)
        return f"{module}.{self.function}: {self.operator} {self.text}{number}"

    @property
    def file(self) -> str:
        """Return its file, relative to zconsole."""
        return self.module.replace(".", "/") + ".py"


def source(module: str) -> Path:
    """Return the file of a module."""
    return PACKAGE / (module.replace(".", "/") + ".py")


def mutants(module: str, wider: bool = False) -> list[Mutant]:
    """Return the mutants of a module in text order; ``wider`` uses the operators for any code."""
    found: list[Mutant] = []
    counts: Counter[str] = Counter()
    for mutant in sorted(_of_module(module, wider), key=lambda each: (each.line, each.path)):
        counts[mutant.identity] += 1
        found.append(replace(mutant, number=counts[mutant.identity]))
    return found


def mutated(mutant: Mutant) -> ast.Module:
    """Return the module with the mistake."""
    tree = _tree(mutant.module)
    node: ast.AST = tree
    for step in mutant.path[:-1]:
        node = _child(node, step)
    field, at = mutant.path[-1]
    if mutant.operator == "swap":
        assert at is not None
        body = getattr(node, field)
        body[at], body[at + 1] = body[at + 1], body[at]
        return tree
    new = _instead(mutant.operator, _child(node, (field, at)), node)
    if at is None:
        setattr(node, field, new)
    else:
        getattr(node, field)[at] = new
    return ast.fix_missing_locations(tree)


def durable_calls(tree: ast.AST) -> Iterator[ast.expr]:
    """Yield every durable call, and every durable method that is passed to somebody to call."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield from (each for each in (node, *node.args) if _is_durable(each))


@cache
def _text(module: str) -> str:
    return source(module).read_text()


def _tree(module: str) -> ast.Module:
    return ast.parse(_text(module))


def _child(node: ast.AST, step: tuple[str, int | None]) -> ast.AST:
    field, at = step
    value = getattr(node, field)
    child = value if at is None else value[at]
    assert isinstance(child, ast.AST)
    return child


def _is_durable(node: ast.AST) -> bool:
    """Return whether a node is a durable call, or a durable method passed as a value."""
    if isinstance(node, ast.Call):
        called = node.func
        return isinstance(called, ast.Attribute) and called.attr in DURABLE
    return isinstance(node, ast.Attribute) and node.attr in DURABLE


def _instead(operator: str, node: ast.AST, parent: ast.AST) -> ast.AST:
    if change := CHANGES.get(operator):
        assert isinstance(node, ast.expr)
        changed = change(node, parent)
        assert changed is not None
        return changed
    match operator:
        case "always True" | "always False":
            return ast.Constant(operator == "always True")
        case "invert":
            assert isinstance(node, ast.expr)
            negated = isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)
            return node.operand if negated else ast.UnaryOp(ast.Not(), node)  # type: ignore[attr-defined]
        case "ignore" if isinstance(node, ast.ExceptHandler):
            node.body = [ast.Pass()]
            return node
    if isinstance(node, ast.stmt):
        # A method that calls super() has a cell for its class, which its mutated code needs as
        # well.
        names = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
        return ast.Expr(ast.Name("__class__", ast.Load())) if "super" in names else ast.Pass()
    nothing = "None" if isinstance(node, ast.Call) else "lambda *_: None"
    return ast.parse(nothing, mode="eval").body


def _of_module(module: str, wider: bool) -> Iterator[Mutant]:
    tree = _tree(module)
    for path, function, parents in _functions(tree, (), ()):
        name = ".".join((*parents, function.name))
        returns_bool = isinstance(function.returns, ast.Name) and function.returns.id == "bool"
        for at, node in _below(function, path):
            found = _operators(node, returns_bool)
            for operator, step, what in chain(found, (_wider if wider else _of_calls)(node)):
                first, end = what[0], what[-1].end_lineno or 0
                small = (
                    wider and isinstance(first, SMALL) and isinstance(node, ast.expr | ast.Return)
                )
                text = " <> ".join(_shown(each) for each in ((node,) if small else what))
                where = first.lineno, first.col_offset, end
                yield Mutant(module, name, operator, text, *where, (*at, *step))


def _functions(
    node: ast.AST, path: Path_, parents: tuple[str, ...]
) -> Iterator[tuple[Path_, Function, tuple[str, ...]]]:
    """Yield functions and methods; nested functions belong to the outer one."""
    for at, child in enumerate(getattr(node, "body", ())):
        here: Path_ = (*path, ("body", at))
        if isinstance(child, Function):
            yield here, child, parents
        elif isinstance(child, ast.ClassDef):
            yield from _functions(child, here, (*parents, child.name))


def _below(node: ast.AST, path: Path_) -> Iterator[tuple[Path_, ast.AST]]:
    yield path, node
    for field, value in ast.iter_fields(node):
        if field in NOT_RUN and not isinstance(node, ast.Call):
            continue
        children = enumerate(value) if isinstance(value, list) else [(None, value)]
        for at, child in children:
            if isinstance(child, ast.AST):
                yield from _below(child, (*path, (field, at)))


Function = ast.FunctionDef | ast.AsyncFunctionDef
SMALL = (ast.Constant, ast.Name)
"""Nodes that say nothing without their context."""
Located = ast.stmt | ast.expr | ast.ExceptHandler
Found = tuple[str, Path_, tuple[Located, ...]]
"""An operator, the path to the node it changes, and that node."""


def _operators(node: ast.AST, returns_bool: bool) -> Iterator[Found]:
    """Yield mistakes at the children of one node."""
    for field in ("body", "orelse", "finalbody"):
        body = getattr(node, field, None)
        if isinstance(body, list):
            yield from _of_body(field, body)
    for at, handler in enumerate(getattr(node, "handlers", ())):
        if not all(isinstance(each, ast.Pass | ast.Raise) for each in handler.body):
            yield "ignore", (("handlers", at),), (handler,)
    yield from _of_conditions(node)
    if returns_bool and isinstance(node, ast.Return) and node.value is not None:
        for constant in (True, False):
            if not (isinstance(node.value, ast.Constant) and node.value.value is constant):
                yield f"always {constant}", (("value", None),), (node.value,)


def _of_body(field: str, body: list[ast.stmt]) -> Iterator[Found]:
    for at, statement in enumerate(body):
        if isinstance(statement, ast.Raise):
            yield "ignore", ((field, at),), (statement,)
        elif _is_call(statement):
            yield "drop", ((field, at),), (statement,)
        if at + 1 < len(body) and _is_call(statement) and _is_call(body[at + 1]):
            yield "swap", ((field, at),), (statement, body[at + 1])


def _is_call(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call)


def _of_calls(node: ast.AST) -> Iterator[Found]:
    """Yield durable calls that are not whole statements, because their results are used."""
    for field, value in ast.iter_fields(node):
        if isinstance(node, ast.Expr) or (isinstance(node, ast.Call) and field == "func"):
            continue
        children = enumerate(value) if isinstance(value, list) else [(None, value)]
        for at, child in children:
            handed = isinstance(node, ast.Call) and field == "args"
            if isinstance(child, ast.Call if not handed else ast.expr) and _is_durable(child):
                yield "drop", ((field, at),), (child,)


def _wider(node: ast.AST) -> Iterator[Found]:
    """Yield mistakes in the expressions of one node that the engine's operators do not make."""
    for field, value in ast.iter_fields(node):
        for at, child in enumerate(value) if isinstance(value, list) else [(None, value)]:
            if isinstance(child, ast.expr) and (field not in NOT_RUN or isinstance(node, ast.Call)):
                for operator, change in CHANGES.items():
                    if change(child, node) is not None:
                        yield operator, ((field, at),), (child,)


def _of_conditions(node: ast.AST) -> Iterator[Found]:
    match node:
        case ast.If() | ast.While() | ast.IfExp():
            yield from _atoms(node.test, (("test", None),))
        case ast.comprehension():
            for at, test in enumerate(node.ifs):
                yield from _atoms(test, (("ifs", at),))
        case ast.Assign() | ast.Return() | ast.keyword() | ast.Call() | ast.NamedExpr():
            args = [(("args", at), each) for at, each in enumerate(getattr(node, "args", ()))]
            for step, value in [(("value", None), getattr(node, "value", None)), *args]:
                if isinstance(value, ast.Compare | ast.BoolOp) and not _is_default(value):
                    yield from _atoms(value, (step,))


def _is_default(value: ast.expr) -> bool:
    """Return whether an expression is ``x or y`` used for its value, not for its truth."""
    if not isinstance(value, ast.BoolOp) or isinstance(value.op, ast.And):
        return False
    last = value.values[-1]
    builtin = isinstance(last, ast.Call) and isinstance(last.func, ast.Name)
    return builtin or isinstance(last, ast.Constant | ast.Name | ast.Attribute)


def _atoms(test: ast.expr, path: Path_) -> Iterator[Found]:
    """Yield the parts of a condition that ``and`` and ``or`` join."""
    if isinstance(test, ast.BoolOp):
        for at, value in enumerate(test.values):
            yield from _atoms(value, (*path, ("values", at)))
    else:
        yield "invert", path, (test,)


def _shown(node: Located) -> str:
    """Return the text of a node on one line; for a compound statement, only its head."""
    lines = ast.unparse(node).splitlines()
    return lines[0] if isinstance(node, ast.ExceptHandler) else " ".join(map(str.strip, lines))
