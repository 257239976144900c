"""Facts of a scan for text and screen: label, value, how bad.

Decided once for both: plain text lists the facts, the screen colors them and drops those without
room.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from zconsole.pool.model import Scan
from zconsole.timeline.eta.estimate import Estimate
from zconsole.timeline.scrubs import ScrubAge
from zconsole.units import days, duration


class Fact(NamedTuple):
    """One fact: ``errors 3``, and whether that is bad (``error``) or not ("")."""

    label: str
    value: str
    severity: str = ""


Size = Callable[[float | None], str]
"""How bytes are formatted: ``units.size`` as zpool does, or in the chosen units."""


def work_name(work: str, vdev: str | None) -> str:
    """``rebuild of mirror-0``, or just ``scrub`` for work on the whole pool."""
    return f"{work} of {vdev}" if vdev else work


def repaired_fact(scan: Scan, size: Size) -> Fact:
    """``resilvered 1.12T``: what a scan wrote; a scrub repairs. ``-`` when unknown."""
    word = {"resilver": "resilvered", "rebuild": "rebuilt"}.get(scan.function, "repaired")
    return Fact(word, size(scan.processed_bytes))


def result_facts(scan: Scan, size: Size) -> Iterator[Fact]:
    """The known results of a scan so far: bytes written and skipped, errors."""
    if scan.processed_bytes is not None:  # unknown on Solaris 10, and for an error scrub
        yield repaired_fact(scan, size)
    if scan.skipped_bytes:
        yield Fact("skipped", size(scan.skipped_bytes))
    if scan.errors is not None:
        yield Fact("errors", str(scan.errors), "error" if scan.errors else "")


def seconds_taken(scan: Scan) -> float | None:
    """Seconds from a scan's start to its end; None while it runs, or when unknown."""
    if scan.duration is not None or scan.start is None or scan.end is None:
        return scan.duration
    return scan.end - scan.start


def scrub_words(scrub: ScrubAge) -> str:
    """``last scrub 12 days ago``, ``scrub overdue: 41 days``; empty where nothing is known."""
    if scrub.age is None:
        return "never scrubbed" if scrub.never else ""
    ago = days(scrub.age)
    if scrub.never:
        return f"no scrub in {ago}"
    return f"scrub overdue: {ago}" if scrub.overdue else f"last scrub {ago} ago"


def range_words(estimate: Estimate) -> str:
    """``(1h01m to 2h01m)``; empty for an estimate without a range."""
    if estimate.low is None or estimate.high is None:
        return ""
    return f"({duration(estimate.low)} to {duration(estimate.high)})"
