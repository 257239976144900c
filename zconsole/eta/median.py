"""The median, for modules that every start loads.

``statistics`` brings fractions, decimal numbers and random ones along, a tenth of a start.
"""

from __future__ import annotations

from collections.abc import Iterable


def median(values: Iterable[float]) -> float:
    """The middle one, of an even number the mean of the two; raises IndexError for none."""
    ordered = sorted(values)
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2
