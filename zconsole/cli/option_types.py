"""Words of a command line as values, for argparse, and the options that every command takes.

Each reader raises ``argparse.ArgumentTypeError`` that says what the word must be.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
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


def whole(word: str) -> int:
    """How many: at least 1."""
    try:
        value = int(word)
    except ValueError:
        value = 0
    check(word, "a whole number above 0", value > 0)
    return value


def file_name(word: str) -> str:
    """A file, or ``-``; an empty word is a variable that was not set."""
    check(word, "a file", bool(word))
    return word


def check(word: str, what: str, fits: bool) -> None:
    """Raise unless the word ``fits``, saying what it must be."""
    if not fits:
        raise argparse.ArgumentTypeError(f"must be {what}, not {word!r}")


def number(
    what: str, fits: Callable[[float], bool], *, percent: bool = False
) -> Callable[[str], float]:
    """A reader of the numbers that fit, ``what`` they are in words; of ``25%``, too, as 0.25."""

    def _read(word: str) -> float:
        digits = word.removesuffix("%") if percent else word
        try:
            value = float(digits) / (1 if digits == word else 100)
        except ValueError:
            value = math.nan  # in no range
        check(word, what, fits(value))
        return value

    return _read


positive = number("a number above 0", lambda n: 0 < n < math.inf)
seconds = number(f"at least {FASTEST:g} seconds", lambda n: FASTEST <= n < math.inf)
"""Between samples."""
share = number("a share from 0 to 1", lambda n: 0 <= n <= 1)
slip = number("a share above 0: 0.25 or 25%", lambda n: 0 < n <= 10, percent=True)
floor = number("a share of a pool: 0.05 or 5%", lambda n: 0 <= n < 1, percent=True)
within_a_day = number("above 0, at most 86400 seconds", lambda n: 0 < n <= 86_400)
