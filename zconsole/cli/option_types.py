"""Command-line words as values, for argparse, and the options of every command.

Each reader raises an ``argparse.ArgumentTypeError`` that says what is expected.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from zconsole import __version__
from zconsole.config.settings import FLOOR, INTERVAL, POSITIVE, SLIP, NumberRange
from zconsole.units import parse_size


def add_common(parser: argparse.ArgumentParser, **unset: Any) -> None:
    """Add the options of every command; ``unset`` may give another ``default``."""
    common = parser.add_argument_group("options of every command")
    themed = "use the theme of this name (see zconsole themes) or in this file"
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


def number(allowed: NumberRange) -> Callable[[str], float]:
    """A reader of numbers in a range."""

    def _read(word: str) -> float:
        try:
            return allowed.read(word)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return _read


positive = number(POSITIVE)
seconds = number(INTERVAL)
"""Between samples."""
share = number(NumberRange("a share from 0 to 1", lambda n: 0 <= n <= 1))
slip = number(SLIP)
floor = number(FLOOR)
within_a_day = number(NumberRange("above 0, at most 86400 seconds", lambda n: 0 < n <= 86_400))
