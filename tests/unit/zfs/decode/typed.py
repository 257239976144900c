"""Checks that decoded dataclasses and named tuples have values of the annotated types."""

from __future__ import annotations

import types
import typing
from collections.abc import Collection, Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any


def mistyped(value: Any, where: str = "") -> Iterator[str]:
    """Yield every field below a record whose value is not of its annotated type."""
    for name, hint in _hints(type(value)).items():
        yield from _check(getattr(value, name), hint, f"{where}.{name}")


@cache
def _hints(cls: type) -> dict[str, Any]:
    hints = typing.get_type_hints(cls)
    names = [f.name for f in fields(cls)] if is_dataclass(cls) else cls._fields  # type: ignore[attr-defined]
    return {name: hints[name] for name in names}


def _check(value: Any, hint: Any, where: str) -> Iterator[str]:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        tries = [list(_check(value, one, where)) for one in arguments]
        yield from min(tries, key=len)
    elif origin is tuple:
        yield from _check_tuple(value, arguments, where)
    elif origin is Collection:
        for index, member in enumerate(value):
            yield from _check(member, arguments[0], f"{where}[{index}]")
    elif origin is Mapping:
        if not isinstance(value, Mapping):
            yield f"{where} is {value!r}"
            return
        for key, member in value.items():
            yield from _check(key, arguments[0], f"{where} key")
            yield from _check(member, arguments[1], f"{where}[{key!r}]")
    elif is_dataclass(hint) or hasattr(hint, "_fields"):
        yield from mistyped(value, where) if isinstance(value, hint) else [f"{where} is {value!r}"]
    elif not _is(value, hint):
        yield f"{where} is {value!r}"


def _is(value: Any, hint: Any) -> bool:
    if hint is type(None):
        return value is None
    if hint is float:
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    return type(value) is hint


def _check_tuple(value: Any, arguments: tuple[Any, ...], where: str) -> Iterator[str]:
    if not isinstance(value, tuple):
        yield f"{where} is {value!r}"
    elif arguments[-1] is Ellipsis:
        for index, member in enumerate(value):
            yield from _check(member, arguments[0], f"{where}[{index}]")
    elif len(value) != len(arguments):
        yield f"{where} is {value!r}"
    else:
        for member, one in zip(value, arguments, strict=True):
            yield from _check(member, one, where)
