"""Decoding dataclasses from JSON that may be damaged or foreign: each value's type is checked.

Fields may be text, numbers, booleans, other dataclasses or named tuples, ``X | None``, tuples, and
mappings from text to any of these.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from types import NoneType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

LARGEST = 2.0**65
"""Bound for numbers, twice what 64 bits hold: no counter, time or rate is larger."""
_WORDS = {str: "text", bool: "true or false", int: "a whole number", float: "a number"}

_T = TypeVar("_T")


class RecordError(ValueError):
    """A record has a wrong value; the message says where, and what should be there."""


def parse_json(text: str | bytes) -> Any:
    """Return the value of a JSON text. Raises ValueError, also for one nested too deep."""
    try:
        return json.loads(text)
    except RecursionError:
        raise RecordError("nested too deep") from None


def from_json(cls: type[_T], data: Any, where: str = "") -> _T:
    """Decode a dataclass from a JSON object with its fields; those with a default may be missing.

    Raises RecordError for a value of another type, and for a missing or unknown field, so that a
    record of another version is not read in part. ``where`` is the object's path in the error.
    """
    if not isinstance(data, Mapping):
        raise RecordError(f"{where or 'the record'} is not an object")
    hints = _hints(cls)  # type: ignore[arg-type]  # mypy takes no class for hashable
    for name in data.keys() - hints.keys():
        raise RecordError(f"{where}{'.' if where else ''}{name} is unknown")
    for name in _needed(cls):  # type: ignore[arg-type]
        if name not in data:
            raise RecordError(f"{_inner(where, name)} is missing")
    return cls(**{n: value_of(hints[n], data[n], _inner(where, n)) for n in data})


def value_of(kind: Any, data: Any, where: str) -> Any:
    """Convert ``data`` to the type ``kind``. Raises RecordError, which names ``where``."""
    inner = get_args(kind)
    if NoneType in inner:
        (kind,) = (each for each in inner if each is not NoneType)
        return None if data is None else value_of(kind, data, where)
    if is_dataclass(kind):
        return from_json(kind, data, where)  # type: ignore[arg-type]
    origin = get_origin(kind) or kind
    if issubclass(origin, tuple):
        values = _members(origin, inner, data, where)
        return tuple(values) if origin is tuple else origin(*values)
    if inner:
        if not isinstance(data, dict):
            raise RecordError(f"{where} is not an object")
        return {
            name: value_of(inner[1], value, _inner(where, name)) for name, value in data.items()
        }
    return _plain(kind, data, where)


def _members(kind: type, inner: tuple[Any, ...], data: Any, where: str) -> Iterator[Any]:
    """Yield the members of a tuple from a list: ``tuple[X, ...]``, ``tuple[X, Y]`` or named."""
    kinds = inner or tuple(get_type_hints(kind).values())
    if not isinstance(data, list):
        raise RecordError(f"{where} is not a list")
    if kinds[1:] == (...,):
        kinds = kinds[:1] * len(data)
    if len(kinds) != len(data):
        raise RecordError(f"{where} has {len(data)} values, not {len(kinds)}")
    for index, (each, value) in enumerate(zip(kinds, data, strict=True)):
        yield value_of(each, value, f"{where}[{index}]")


def _plain(kind: Any, data: Any, where: str) -> Any:
    # JSON may have a float without a fraction as an integer. Python's bool is an int: excluded.
    accepted = (int, float) if kind is float else kind
    if not isinstance(data, accepted) or (isinstance(data, bool) and kind is not bool):
        raise RecordError(f"{where} is not {_WORDS[kind]}")
    if kind in (int, float) and not -LARGEST < data < LARGEST:  # excludes NaN
        raise RecordError(f"{where} is out of range")
    return data


def _inner(where: str, name: str) -> str:
    return f"{where}.{name}" if where else name


@cache
def _hints(cls: Any) -> dict[str, Any]:
    hints = get_type_hints(cls)
    return {each.name: hints[each.name] for each in fields(cls)}


@cache
def _needed(cls: Any) -> tuple[str, ...]:
    every = fields(cls)
    return tuple(f.name for f in every if f.default is MISSING and f.default_factory is MISSING)
