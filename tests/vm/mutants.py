"""Deliberate breaks of a module: one comparison, constant, result or field of it at a time."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass

OPPOSITE = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.GtE,
    ast.GtE: ast.Lt,
    ast.Gt: ast.LtE,
    ast.LtE: ast.Gt,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
}
"""What stands in for an operator."""

NOT_CODE = (ast.Raise, ast.arg, ast.Import, ast.ImportFrom)
"""Nodes whose constants say nothing of a pool: words of errors, annotations, imports."""


@dataclass(frozen=True)
class Mutant:
    """One break: where it is, what it does, and how to do it to the tree it was found in."""

    function: str
    """The innermost function, class or assigned name."""
    line: int
    lines: range
    """Where its statement, or the head of it, is written."""
    what: str
    apply: Callable[[], None]


def mutants(tree: ast.Module) -> Iterator[Mutant]:
    """Every break of a module, in the order of its lines; apply one only to a tree."""
    for statement in tree.body:
        yield from _below(statement, "", range(0))


def _below(node: ast.AST, place: str, lines: range) -> Iterator[Mutant]:
    if isinstance(node, NOT_CODE) or _is_text(node):
        return
    place = _name(node) or place
    lines = _head(node) if isinstance(node, ast.stmt) else lines
    for what, apply in _changes(node):
        yield Mutant(place, getattr(node, "lineno", lines.start), lines, what, apply)
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns", "decorator_list"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from _below(child, place, lines)


def _head(statement: ast.stmt) -> range:
    body = getattr(statement, "body", None)
    end = body[0].lineno if body else (statement.end_lineno or statement.lineno) + 1
    return range(statement.lineno, end)


def _is_text(node: ast.AST) -> bool:
    """Whether it is a docstring."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _name(node: ast.AST) -> str | None:
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return node.name
    target = node.targets[0] if isinstance(node, ast.Assign) else None
    return target.id if isinstance(target, ast.Name) and target.id.isupper() else None


def _changes(node: ast.AST) -> Iterator[tuple[str, Callable[[], None]]]:
    """What can be broken in one node, without what is below it."""
    if isinstance(node, ast.Compare):
        for index, operator in enumerate(node.ops):
            other = OPPOSITE[type(operator)]()
            yield _written(node), lambda i=index, o=other: node.ops.__setitem__(i, o)  # type: ignore[misc]
    elif isinstance(node, ast.BoolOp | ast.BinOp) and type(node.op) in OPPOSITE:
        yield _written(node), lambda: setattr(node, "op", OPPOSITE[type(node.op)]())
    elif isinstance(node, ast.If | ast.IfExp | ast.While) and not isinstance(
        node.test, ast.Compare | ast.BoolOp
    ):
        negated = ast.UnaryOp(ast.Not(), node.test)
        yield f"if {_written(node.test)}", lambda: setattr(node, "test", negated)
    elif isinstance(node, ast.Return | ast.Yield) and not _is_nothing(node.value):
        yield _written(node), lambda: setattr(node, "value", ast.Constant(None))
    elif isinstance(node, ast.keyword) and node.arg and not _is_nothing(node.value):
        yield f"{node.arg}=", lambda: setattr(node, "value", ast.Constant(None))
    elif isinstance(node, ast.Constant) and (changed := _other(node.value)) is not None:
        yield repr(node.value), lambda: setattr(node, "value", changed)


def _written(node: ast.AST) -> str:
    return ast.unparse(node).partition("\n")[0]


def _is_nothing(node: ast.AST | None) -> bool:
    return node is None or (isinstance(node, ast.Constant) and node.value is None)


def _other(value: object) -> object:
    """Another constant; None where there is none to take."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    return f"!{value}" if isinstance(value, str) else None
