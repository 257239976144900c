"""Mistakes that people make in any code; the engine's operators are about its durable calls.

Each is a function of an expression and its context; it returns the expression with the mistake, or
None if the mistake is not possible there.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable

SECONDS = re.compile(r"(^|_)(seconds|elapsed|duration|interval|timeout|remaining|delay|age|now)$")
BYTES = re.compile(r"(^|_)(bytes|size|total|free|used|allocated|rate|copied|written|capacity)$")
PAIRS = {
    "read": "write", "reads": "writes", "used": "total", "allocated": "size", "first": "last",
    "start": "end", "begin": "end", "minimum": "maximum", "old": "new", "before": "after",
    "width": "height", "name": "path", "parent": "name", "state": "name", "issued": "examined",
    "free": "allocated",
}  # fmt: skip
"""Fields that are confused with each other."""
OTHERS = PAIRS | {other: name for name, other in PAIRS.items() if other not in PAIRS}
BOUNDARIES = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt}
ARITHMETIC = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult}
EXTREMES = {"min": "max", "max": "min"}
NO_FIELDS = {"isinstance", "issubclass", *EXTREMES}
"""Functions whose arguments nobody confuses, or whose order does not matter."""


def _boundary(node: ast.expr, _: ast.AST) -> ast.expr | None:
    if isinstance(node, ast.Compare) and (other := BOUNDARIES.get(type(node.ops[0]))):
        return ast.Compare(node.left, [other(), *node.ops[1:]], node.comparators)
    return None


def _shorter(node: ast.expr, left: slice) -> ast.expr | None:
    if not isinstance(node, ast.BoolOp):
        return None
    values = node.values[left]
    return ast.BoolOp(node.op, values) if len(values) > 1 else values[0]


def _one_more(node: ast.expr, _: ast.AST) -> ast.expr | None:
    return ast.Constant(node.value + 1) if _is_number(node) else None


def _unit(node: ast.expr, parent: ast.AST) -> ast.expr | None:
    name = getattr(node, "id", "") or getattr(node, "attr", "")
    read = isinstance(getattr(node, "ctx", None), ast.Load)
    owner = isinstance(parent, ast.Attribute) or getattr(parent, "func", None) is node
    if not read or owner:
        return None
    if SECONDS.search(name):
        return ast.BinOp(node, ast.Mult(), ast.Constant(1000))
    return ast.BinOp(node, ast.Div(), ast.Constant(1024)) if BYTES.search(name) else None


def _not_awaited(node: ast.expr, _: ast.AST) -> ast.expr | None:
    return node.value if isinstance(node, ast.Await) else None


def _swapped(values: list[ast.expr]) -> list[ast.expr]:
    """Swap the first two values; empty if that changes nothing or is not possible."""
    plain = not any(isinstance(each, ast.Starred | ast.Constant) for each in values[:2])
    if len(values) < 2 or not plain or ast.dump(values[0]) == ast.dump(values[1]):
        return []
    return [values[1], values[0], *values[2:]]


def _swap_fields(node: ast.expr, parent: ast.AST) -> ast.expr | None:
    if isinstance(node, ast.Call) and getattr(node.func, "id", "") not in NO_FIELDS:
        if args := _swapped(node.args):
            return ast.Call(node.func, args, node.keywords)
        if values := _swapped([each.value for each in node.keywords]):
            named = zip(node.keywords, values, strict=True)
            keywords = [ast.keyword(each.arg, value) for each, value in named]
            return ast.Call(node.func, node.args, keywords)
    whole = isinstance(parent, ast.Return | ast.Assign | ast.Yield)
    if isinstance(node, ast.Tuple) and isinstance(node.ctx, ast.Load) and whole:
        elements = _swapped(node.elts)
        return ast.Tuple(elements, node.ctx) if elements else None
    return None


def _other_field(node: ast.expr, parent: ast.AST) -> ast.expr | None:
    called = getattr(parent, "func", None) is node
    read = isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load) and not called
    if read and node.attr in OTHERS:  # type: ignore[attr-defined]
        return ast.Attribute(node.value, OTHERS[node.attr], node.ctx)  # type: ignore[attr-defined]
    return None


def _arithmetic(node: ast.expr, _: ast.AST) -> ast.expr | None:
    if not isinstance(node, ast.BinOp) or type(node.op) not in ARITHMETIC:
        return None
    text = (ast.JoinedStr, ast.Tuple, ast.List)
    for side in (node.left, node.right):
        if isinstance(side, text) or (isinstance(side, ast.Constant) and not _is_number(side)):
            return None
    return ast.BinOp(node.left, ARITHMETIC[type(node.op)](), node.right)


def _other_extreme(node: ast.expr, _: ast.AST) -> ast.expr | None:
    if isinstance(node, ast.Call) and getattr(node.func, "id", "") in EXTREMES:
        other = ast.Name(EXTREMES[node.func.id], ast.Load())  # type: ignore[attr-defined]
        return ast.Call(other, node.args, node.keywords)
    return None


def _is_number(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) in (int, float)


CHANGES: dict[str, Callable[[ast.expr, ast.AST], ast.expr | None]] = {
    "boundary": _boundary,
    "without first": lambda node, _: _shorter(node, slice(1, None)),
    "without last": lambda node, _: _shorter(node, slice(-1)),
    "one more": _one_more,
    "unit": _unit,
    "not awaited": _not_awaited,
    "swap fields": _swap_fields,
    "other field": _other_field,
    "arithmetic": _arithmetic,
    "other extreme": _other_extreme,
}
