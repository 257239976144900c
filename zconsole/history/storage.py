"""History that survives: the running scans of a pool and the sparklines, kept on disk.

One file per pool (by GUID) holds its scans (by function, vdev and start) in a few hundred points
each, and the newest rates. The first console writes it; others read it. An unreadable file is left
alone, with a note, and history starts again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import Any

from zconsole.eta.daily import HOURS, SLOWEST
from zconsole.eta.estimate import Estimate, Forecast
from zconsole.eta.past import LEAST_SECONDS, MOST_POINTS, PastScan
from zconsole.eta.progress_curve import MAX_POINTS, SANE, CurvePoint, ProgressCurve, ProgressReading
from zconsole.history.past_rates import MOST_MARKS, MOST_STEPS, PastRates
from zconsole.history.pool import PoolHistory
from zconsole.history.scan_track import MAX_NOTES, ScanTrack
from zconsole.history.scans import MOST_PAST
from zconsole.history.series import DEVICE_METRICS, SCAN_METRICS
from zconsole.pool.model import Scan
from zconsole.system import state_dir
from zconsole.system.async_writer import LockedStore
from zconsole.system.records import RecordError, from_json
from zconsole.system.state_dir import StateError

FORMAT = 1
MOST_BYTES = 2 * 2**20
MOST_DEVICES = 64
"""Sparklines of this many vdevs are stored; for larger pools, only those of the scans."""
SAVE_SECONDS = 30.0
DIGITS = 4

DAMAGE = (ValueError, TypeError, KeyError, AttributeError)
"""What reading a damaged file can run into."""
NONE_KEPT = PastRates()
"""What an earlier version kept of the rates of a scan."""


@dataclass(slots=True)
class HistoryStore(LockedStore):
    """Stores the histories of pools between runs."""

    _saved: dict[str, float] = field(default_factory=dict, init=False)

    def recall(self, guid: str, history: PoolHistory) -> str | None:
        """Fill an empty history from a pool's file; returns a note on what went wrong."""
        for directory in self.readable:
            path = directory / _name(guid)
            try:
                data = self.patient.call(partial(state_dir.read_private, path, MOST_BYTES))
                restore(history, json.loads(data), guid)
            except FileNotFoundError:
                continue
            except StateError as error:
                return f"history not read: {error}"
            except (*DAMAGE, RecursionError) as error:
                why = error if isinstance(error, RecordError) else type(error).__name__
                return f"history not read: {path} is damaged ({why})"
            return None
        return None

    def keep(self, guid: str, history: PoolHistory, t: float, at_once: bool = False) -> bool:
        """Write a pool's history if it is time (``t``: epoch seconds) and no one else does.

        Raises StateError when it cannot be written.
        """
        due = t - self._saved.get(guid, -SAVE_SECONDS) >= SAVE_SECONDS
        if self.directory is None or not (due or at_once) or not self.mine(f"{_name(guid)}.lock"):
            return False
        self._saved[guid] = t  # before it is written: a disk that fails is not asked every second
        self.write(self.directory / _name(guid), encode(history, guid, t))
        return True


def _name(guid: str) -> str:
    """The file of a pool; a GUID is digits, anything else must not become a path."""
    if not guid.isascii() or not guid.isdigit():
        raise StateError("no history kept: the pool has no GUID")
    return f"history-{guid}.json"


@dataclass(frozen=True, slots=True)
class SavedScan:
    """One scan in a file."""

    function: str
    vdev: str | None
    start: float | None
    state: str
    total: int | None
    skipped: int | None
    restarts: int | None
    notes: tuple[str, ...]
    points: tuple[CurvePoint, ...]
    last: tuple[float, bool, float, float, float]
    """Its newest reading: time, whether it ran, bytes issued, scanned and processed."""
    current_pass: tuple[float | None, float]
    """When the pass began, and the seconds it was paused; ``pass`` in the file."""
    low: float | None
    """The least that was left, in seconds."""
    past: PastRates = NONE_KEPT


@dataclass(frozen=True, slots=True)
class SavedHistory:
    """The contents of a file."""

    format: int
    guid: str
    t: float
    scans: tuple[SavedScan, ...]
    series: Mapping[str, tuple[tuple[float | None, ...], ...]]
    finished: tuple[PastScan, ...] = ()


def encode(history: PoolHistory, guid: str, t: float) -> bytes:
    """The file's contents, within its bound: sparklines of devices go first when it is large."""
    tracks = [_saved(track) for track in history.scans.tracks if track.course.last]
    finished = [_brief(past) for past in history.scans.past]
    document = {"format": FORMAT, "guid": guid, "t": t, "scans": tracks, "finished": finished}
    series = _series(history)
    data = json.dumps({**document, "series": series}, separators=(",", ":")).encode()
    if len(data) > MOST_BYTES:
        data = json.dumps({**document, "series": {}}, separators=(",", ":")).encode()
    return data


def _brief(past: PastScan) -> PastScan:
    points = tuple((round(at, 5), round(x, 1)) for at, x in past.points)
    return past._replace(points=points, pace=tuple(round(factor, 3) for factor in past.pace))


def _series(history: PoolHistory) -> dict[str, list[list[float | None]]]:
    keys = history.series.keys()
    scans = [key for key in keys if key.startswith("scan:")]
    chosen = keys if len(keys) - len(scans) <= MOST_DEVICES else scans
    return {key: [_rounded(column) for column in history.series.dump(key)] for key in chosen}


def _rounded(column: Sequence[float | None]) -> list[float | None]:
    return [None if v is None else float(f"{v:.{DIGITS}g}") for v in column]


def _saved(track: ScanTrack) -> dict[str, Any]:
    scan, last, past = track.scan, track.course.last, track.past.past
    return {
        "function": scan.function,
        "vdev": scan.vdev,
        "start": scan.start,
        "state": scan.state,
        "total": scan.total_bytes,
        "skipped": scan.skipped_bytes,
        "restarts": track.restarts,
        "notes": track.notes,
        "points": [[round(n, 2) for n in point] for point in track.course.points],
        "last": last and [last.t, last.running, last.issued, last.scanned, last.processed],
        "pass": last and [last.pass_start, last.paused],
        "low": track.forecast.estimate.low,
        "past": past._replace(rates=tuple(_rounded(past.rates))),
    }


def restore(history: PoolHistory, document: Any, guid: str) -> None:
    """Fill an empty history from a file's contents; raises ValueError and such when damaged."""
    scans = [{"current_pass": entry.pop("pass"), **entry} for entry in document["scans"]]
    saved = from_json(SavedHistory, {**document, "scans": scans})
    if saved.format != FORMAT or saved.guid != guid:
        raise ValueError("another pool's history")
    tracks = [_restored(each) for each in saved.scans]
    for key, rows in saved.series.items():
        if len(rows) != len(SCAN_METRICS if key.startswith("scan:") else DEVICE_METRICS):
            raise ValueError("series of another version")
        _check(*(value for row in rows for value in row))
    past = tuple(_checked(each) for each in saved.finished[:MOST_PAST])
    # Only now, when all of it was found good: half a history would be worse than none.
    history.scans.past = past
    for track in tracks:
        history.scans.restore(track)
    history.series.restore(saved.series)


def _restored(saved: SavedScan) -> ScanTrack:
    points = saved.points[:MAX_POINTS]
    if not points or any(a.x >= b.x for a, b in pairwise(points)):
        raise ValueError("points out of order")
    t, running, issued, scanned, processed = saved.last
    began, paused = saved.current_pass
    _check(*(n for point in points for n in point), t, issued, scanned, processed, began, paused)
    _check(saved.start, saved.total, saved.skipped, saved.restarts, saved.low)
    past = saved.past
    _check(past.begin, past.step, *past.rates, *(mark.t for mark in past.marks))
    if past.step < 1 or len(past.rates) > MOST_STEPS or len(past.marks) > MOST_MARKS:
        raise ValueError("not the rates this version keeps")
    scan = Scan(
        function=saved.function,
        state=saved.state,
        vdev=saved.vdev,
        start=saved.start,
        total_bytes=saved.total,
        skipped_bytes=saved.skipped,
        issued_bytes=int(issued),
        scanned_bytes=int(scanned),
    )
    last = ProgressReading(t, 0.0, running, issued, scanned, processed, began, paused)
    curve = ProgressCurve(points, last)
    track = ScanTrack(scan, curve, saved.restarts, saved.notes[:MAX_NOTES], past)
    track.forecast = Forecast(Estimate(saved.low, saved.low, saved.low, "remembered"))
    return track


def _checked(past: PastScan) -> PastScan:
    """A finished scan that can be told by; raises ValueError for one that goes back in time."""
    _check(past.start, past.seconds, past.total, past.watched, *(x for _, x in past.points))
    points = past.points
    ends = ((points[0][0] if points else 0.0, 0.0), (1.0, round(past.seconds, 1)))
    rising = all(a[0] <= b[0] and a[1] <= b[1] for a, b in pairwise(points))
    if len(points) > MOST_POINTS or points[:1] + points[-1:] != ends or not rising:
        raise ValueError("not a scan that this version keeps")
    if points[0][0] not in (-1.0, 0.0) or len(past.pace) != HOURS:
        raise ValueError("not a scan that this version keeps")
    if not all(SLOWEST / 2 <= factor <= HOURS for factor in past.pace):
        raise ValueError("not a finished scan's pace")
    if past.seconds < LEAST_SECONDS or past.total < 1:
        raise ValueError("a finished scan of nothing")
    return past


def _check(*numbers: float | None) -> None:
    """Raises ValueError for anything that is neither a counter nor a time."""
    if not all(number is None or 0 <= number < SANE for number in numbers):
        raise ValueError("neither a counter nor a time")
