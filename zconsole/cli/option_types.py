"""Numbers as words of a command line, for argparse.

Each raises ``argparse.ArgumentTypeError`` in words of the user's.
"""

from __future__ import annotations

import argparse
import math

from zconsole.units import parse_size


def size_above_0(word: str) -> int:
    """Bytes: ``10M``."""
    value = parse_size(word.upper())
    check(word, "size above 0, as 10M", bool(value))
    return value or 0


def positive(word: str) -> float:
    """A finite number above 0."""
    value = _number(word)
    check(word, "number above 0", 0 < value < math.inf)
    return value


def share(word: str) -> float:
    """A number from 0 to 1."""
    value = _number(word)
    check(word, "share from 0 to 1", 0 <= value <= 1)
    return value


def file_name(word: str) -> str:
    """A file, or ``-``; an empty word is a variable that was not set."""
    check(word, "file", bool(word))
    return word


def check(word: str, what: str, fits: bool) -> None:
    """Raise unless the word ``fits``, saying what it is not."""
    if not fits:
        raise argparse.ArgumentTypeError(f"{word!r} is no {what}")


def _number(word: str) -> float:
    try:
        return float(word)
    except ValueError:
        return math.nan
