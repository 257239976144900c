"""How long ago a pool was scrubbed in full, whatever scans came after that."""

from __future__ import annotations

from typing import NamedTuple

from zconsole.config.settings import SCRUB_OVERDUE_AFTER
from zconsole.pool.model import Sample, Scan
from zconsole.pool.version import parse_version

PARTIAL_SINCE = (2, 3)
"""The first OpenZFS whose scrubs may be of a part (``-C``, ``-S``, ``-E``)."""
SAME = 2.0
"""Seconds by which the ends of one scan may differ between sources."""
NEARLY_ALL = 0.9
"""Share of a pool that a full scrub reads at least; it was freed meanwhile if it reads less."""


class ScrubAge(NamedTuple):
    """The last full scrub of a pool that finished. Epoch seconds, seconds."""

    last: float | None = None
    """When it ended."""
    age: float | None = None
    """Since then; of a pool never scrubbed, since its creation. None where unknown."""
    overdue: bool | None = None
    """Whether that is too long ago; None where the age is unknown."""
    never: bool = False
    """Whether the pool is known never to have been scrubbed."""


UNKNOWN = ScrubAge()


class ScrubTracker:
    """Remembers a pool's last full scrub, which a later scan takes the place of in samples."""

    def __init__(self, overdue_after: float | None = SCRUB_OVERDUE_AFTER) -> None:
        """``overdue_after``: seconds; None for a pool that is not judged, as of saved output."""
        self._overdue_after = overdue_after
        self._last: float | None = None
        self._guid: str | None = None

    def recall(self, end: float | None) -> None:
        """Take in the end of a full scrub; of one that is known already, times differ a little."""
        if end is not None and (self._last is None or end > self._last + SAME):
            self._last = end

    def push(self, sample: Sample) -> ScrubAge:
        """Take in a sample; what is known with it."""
        pool = sample.pool
        before, self._guid = self._guid, pool.guid or self._guid
        if before not in (None, self._guid):  # another pool of the same name
            self._last = None
        for scan in pool.scans:
            if is_full_scrub(scan, sample.version):
                self.recall(scan.end)
        self.recall(pool.full_scrub)
        told = pool.scans_told and not pool.lacks
        never = self._last is None and (pool.created is not None or (told and not pool.scans))
        since = self._last if self._last is not None else pool.created
        if since is None or not sample.dated:
            return ScrubAge(self._last, never=never)
        age = max(0.0, sample.t - since)
        overdue = None if self._overdue_after is None else age > self._overdue_after
        return ScrubAge(self._last, age, overdue, never)


def is_full_scrub(scan: Scan, version: str | None) -> bool:
    """Whether a scan is a scrub of everything that finished, for all that is known.

    ``version``: the OpenZFS it ran on.
    """
    if scan.function != "scrub" or scan.state != "finished":
        return False
    return scan.full if scan.full is not None else may_be_full(scan, version)


def may_be_full(scan: Scan, version: str | None) -> bool:
    """Whether a finished scrub of which no history tells was of everything.

    Where there may be scrubs of a part, one that read nearly all counts; saved output of an unknown
    release does, too, unless its figures tell otherwise.
    """
    running = parse_version(version)
    if running and running < PARTIAL_SINCE:
        return True
    if scan.total_bytes is None or scan.issued_bytes is None:
        return not running
    return scan.issued_bytes >= NEARLY_ALL * scan.total_bytes
