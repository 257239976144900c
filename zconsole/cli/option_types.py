"""Command-line words as values, for argparse, and the options of every command.

Each reader raises an ``argparse.ArgumentTypeError`` that says what is expected.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from typing import Any

from zconsole import __version__
from zconsole.units import parse_size

FASTEST = 0.1
"""Seconds; shorter intervals gain nothing, and each sample makes the kernel walk the pool."""


def add_common(parser: argparse.ArgumentParser, **unset: Any) -> None:
    """Add the options of every command; ``unset`` may give another ``default``."""
    common = parser.add_argument_group("options of every command")
    themed = "use the theme of this name or in this file"
    common.add_argument("--theme", metavar="NAME|PATH", help=themed, **unset)
    switch = {"action": "store_true", **unset}
    common.add_argument("--ascii", help="print ASCII only", **{"default": None, **switch})
    common.add_argument("--read-only", help="watch only, change nothing", **switch)
    common.add_argument("--no-mouse", help="leave the mouse to the terminal", **switch)
    version, printed = f"zconsole {__version__}", "print the version and exit"
    common.add_argument("--version", action="version", version=version, help=printed)


def size_above_0(word: str) -> int:
    """Bytes: ``10M``."""
    value = parse_size(word.upper()) or 0
    check(word, "a size above 0, such as 10M", value > 0)
    return value


def whole(word: str) -> int:
    """A count: at least 1."""
    try:
        value = int(word)
    except ValueError:
        value = 0
    check(word, "a whole number above 0", value > 0)
    return value


def file_name(word: str) -> str:
    """A file, or ``-``; an empty word is an unset variable."""
    check(word, "a file name", bool(word))
    return word


def check(word: str, what: str, fits: bool) -> None:
    """Raise unless the word ``fits``; the message says what is expected."""
    if not fits:
        raise argparse.ArgumentTypeError(f"must be {what}, not {word!r}")


def number(
    what: str, fits: Callable[[float], bool], *, percent: bool = False
) -> Callable[[str], float]:
    """A reader of numbers that fit, described by ``what``; ``25%`` is 0.25 if ``percent``."""

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
