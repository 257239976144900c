"""Words of a command line as values, for argparse, and the options that every command takes.

Each reader raises ``argparse.ArgumentTypeError`` that says what the word must be.
"""

from __future__ import annotations

import argparse
import math
from typing import Any

from zconsole import __version__
from zconsole.units import parse_size

FASTEST = 0.1
"""Seconds: nobody needs samples more often, and every one costs the kernel a walk."""


def add_common(parser: argparse.ArgumentParser, **unset: Any) -> None:
    """The options of every command. ``unset`` may name another ``default``."""
    common = parser.add_argument_group("everywhere")
    common.add_argument("--theme", metavar="NAME|PATH", help="a theme by name or file", **unset)
    switch = {"action": "store_true", **unset}
    common.add_argument("--ascii", help="ASCII characters only", **{"default": None, **switch})
    common.add_argument("--read-only", help="watch only, change nothing", **switch)
    common.add_argument("--no-mouse", help="leave the mouse to the terminal", **switch)
    common.add_argument("--version", action="version", version=f"zconsole {__version__}")


def size_above_0(word: str) -> int:
    """Bytes: ``10M``."""
    value = parse_size(word.upper()) or 0
    check(word, "a size above 0, as 10M", value > 0)
    return value


def positive(word: str) -> float:
    """A finite number above 0."""
    value = _number(word)
    check(word, "a number above 0", 0 < value < math.inf)
    return value


def seconds(word: str) -> float:
    """Seconds between samples: a tenth at the least."""
    value = _number(word)
    check(word, f"at least {FASTEST:g} seconds", FASTEST <= value < math.inf)
    return value


def whole(word: str) -> int:
    """How many: at least 1."""
    try:
        value = int(word)
    except ValueError:
        value = 0
    check(word, "a whole number above 0", value > 0)
    return value


def share(word: str) -> float:
    """A number from 0 to 1."""
    value = _number(word)
    check(word, "a share from 0 to 1", 0 <= value <= 1)
    return value


def slip(word: str) -> float:
    """A share above 0, at most 10; ``25%`` is 0.25."""
    value = _percent(word)
    check(word, "a share above 0: 0.25 or 25%", 0 < value <= 10)
    return value


def floor(word: str) -> float:
    """A share from 0 to under 1; ``5%`` is 0.05."""
    value = _percent(word)
    check(word, "a share of a pool: 0.05 or 5%", 0 <= value < 1)
    return value


def within_a_day(word: str) -> float:
    """Seconds above 0, at most a day."""
    value = _number(word)
    check(word, "above 0, at most 86400 seconds", 0 < value <= 86_400)
    return value


def file_name(word: str) -> str:
    """A file, or ``-``; an empty word is a variable that was not set."""
    check(word, "a file", bool(word))
    return word


def check(word: str, what: str, fits: bool) -> None:
    """Raise unless the word ``fits``, saying what it must be."""
    if not fits:
        raise argparse.ArgumentTypeError(f"must be {what}, not {word!r}")


def _percent(word: str) -> float:
    return _number(word.removesuffix("%")) / (100 if word.endswith("%") else 1)


def _number(word: str) -> float:
    """NaN, which is in no range, for what is no number."""
    try:
        return float(word)
    except ValueError:
        return math.nan
