"""A dataclass kept as JSON in a file of the state directory, which only its owner can change."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from zconsole.system.records import from_json, parse_json
from zconsole.system.state_dir import StateError, read_private, write_private

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

MOST_BYTES = 1 << 20

_T = TypeVar("_T")


def read_record(cls: type[_T], path: Path, most: int = MOST_BYTES) -> _T:
    """What the file holds, which may have ``most`` bytes.

    Raises FileNotFoundError where there is none, StateError where it is not private or damaged.
    """
    try:
        return from_json(cls, parse_json(read_private(path, most)))
    except ValueError as error:
        raise StateError(f"{path} is damaged: {error}. Remove it") from error


def write_record(path: Path, record: DataclassInstance) -> None:
    """Put it in the place of the file; on the disk when this returns. Raises StateError."""
    write_private(path, dumped(record).encode("ascii"))


def dumped(record: DataclassInstance) -> str:
    """Its JSON, as ``read_record`` reads it; ASCII."""
    return json.dumps(asdict(record))
