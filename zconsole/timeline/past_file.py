"""Finished scans of a pool on disk, to predict the next ones by.

They have a file of their own, ``past-GUID.json``: versions that know nothing of them ignore it, and
one that is damaged costs nothing of the scan that runs.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from zconsole.system.records import from_json
from zconsole.timeline.eta.pace import HOURS, SLOWEST
from zconsole.timeline.eta.past import LEAST_SECONDS, MOST_POINTS, MOST_SECONDS, PastScan
from zconsole.timeline.eta.progress import SANE
from zconsole.timeline.scans import MOST_PAST

FORMAT = 1
MOST_BYTES = 2**18


class LaterVersionError(Exception):
    """A later version wrote a file: this one neither understands nor replaces it."""


@dataclass(frozen=True, slots=True)
class _File:
    format: int
    guid: str
    finished: tuple[PastScan, ...]


def encoded(finished: Iterable[PastScan], guid: str) -> bytes:
    """The file's contents."""
    scans = [_brief(past) for past in finished]
    document = {"format": FORMAT, "guid": guid, "finished": scans}
    return json.dumps(document, separators=(",", ":")).encode()


def _brief(past: PastScan) -> PastScan:
    points = tuple((round(at, 5), round(x, 1)) for at, x in past.points)
    return past._replace(points=points, pace=tuple(round(factor, 3) for factor in past.pace))


def decoded(document: Any, guid: str) -> tuple[PastScan, ...]:
    """The scans in a file's contents, newest first.

    Raises LaterVersionError for what a later version wrote, ValueError and such when damaged.
    """
    known = document["format"]
    if isinstance(known, int) and known > FORMAT:
        raise LaterVersionError
    found = from_json(_File, document)
    if found.format != FORMAT or found.guid != guid:
        raise ValueError("finished scans of another pool")
    return tuple(_checked(each) for each in found.finished[:MOST_PAST])


def _checked(past: PastScan) -> PastScan:
    """A finished scan as this version keeps it; raises ValueError for any other."""
    points = past.points
    if not all(0 <= n < SANE for n in (past.start, past.seconds, past.total, past.watched)):
        raise ValueError("neither a counter nor a time")
    ends = ((points[0][0] if points else 0.0, 0.0), (1.0, round(past.seconds, 1)))
    rising = all(a[0] <= b[0] and a[1] <= b[1] for a, b in pairwise(points))
    if len(points) > MOST_POINTS or points[:1] + points[-1:] != ends or not rising:
        raise ValueError("not a scan that this version keeps")
    if points[0][0] not in (-1.0, 0.0) or len(past.pace) != HOURS:
        raise ValueError("not a scan that this version keeps")
    if not all(SLOWEST / 2 <= factor <= HOURS for factor in past.pace):
        raise ValueError("not a finished scan's pace")
    if not LEAST_SECONDS <= past.seconds <= MOST_SECONDS or past.total < 1:
        raise ValueError("not a finished scan's length")
    return past
