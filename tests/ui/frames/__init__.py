"""Hand-made frames: situations that an operator meets, and some that should never occur."""

from __future__ import annotations

from tests.ui.frames.busy import rebuilds, swap
from tests.ui.frames.calm import healthy, imbalance, many, odd_names
from tests.ui.frames.making import NOW, Past
from tests.ui.frames.resilvering import deserted, flaky, of_scan, resilver, suspended, unrestored

ALL = {
    made.__name__: made
    for made in (
        resilver,
        flaky,
        healthy,
        imbalance,
        swap,
        suspended,
        deserted,
        many,
        rebuilds,
        unrestored,
        odd_names,
    )
}
"""Every situation by name."""

__all__ = [
    "ALL",
    "NOW",
    "Past",
    "deserted",
    "flaky",
    "healthy",
    "imbalance",
    "many",
    "odd_names",
    "of_scan",
    "rebuilds",
    "resilver",
    "suspended",
    "swap",
    "unrestored",
]
