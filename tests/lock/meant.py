"""Intended differences: lines of meant.toml, each with its issue and its reason."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

FILE = Path(__file__).parent / "meant.toml"


@dataclass(frozen=True, slots=True)
class Meant:
    """An intended difference. ``case`` is a pattern as of fnmatch(3)."""

    part: str
    case: str
    issue: int
    why: str


def read() -> tuple[Meant, ...]:
    """Return all lines of the file."""
    return tuple(Meant(**line) for line in tomllib.loads(FILE.read_text()).get("meant", ()))


def of(lines: Sequence[Meant], part: str, case: str) -> Meant | None:
    """Return the first line that allows a case to differ."""
    return next((ln for ln in lines if ln.part == part and fnmatchcase(case, ln.case)), None)
