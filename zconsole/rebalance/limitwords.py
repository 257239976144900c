"""The limits of a job as words of a command line, for argparse.

Each raises ``argparse.ArgumentTypeError`` in words of the user's.
"""

from __future__ import annotations

import argparse
import contextlib
import math

from zconsole.units import parse_size


def size_above_0(word: str) -> int:
    """Bytes: ``10M``."""
    value = parse_size(word.upper())
    _check(word, "size above 0, as 10M", bool(value))
    return value or 0


def share(word: str) -> float:
    """A number from 0 to 1."""
    value = math.nan
    with contextlib.suppress(ValueError):
        value = float(word)
    _check(word, "share from 0 to 1", 0 <= value <= 1)
    return value


def window(word: str) -> str:
    """Two times of the day, ``22:00-06:00``."""
    from zconsole.rebalance.pacing import window_gate

    fits = False
    with contextlib.suppress(ValueError):
        fits = bool(window_gate(word, lambda: 0))
    _check(word, "window, as 22:00-06:00", fits)
    return word


def _check(word: str, what: str, fits: bool) -> None:
    if not fits:
        raise argparse.ArgumentTypeError(f"{word!r} is no {what}")
