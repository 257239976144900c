"""Timelines on disk: the scans of a pool, sparklines, the damage seen, and finished scans.

Each pool has two files. ``history-GUID.json`` holds its scans (by function, vdev and start) in a
few hundred points each, the newest rates and the damage seen. ``past-GUID.json`` holds finished
scans for predicting the next ones; it is a separate file, so that versions that do not know it
ignore it, and damage to it does not affect the running scan. The first console writes both; others
read them. An unreadable file is left alone, with a note, and the timeline starts from scratch.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from zconsole.pool.model import Scan
from zconsole.system.host import is_due
from zconsole.system.record_file import DamagedError, LockedStore
from zconsole.system.records import RecordError, from_json, parse_json
from zconsole.system.state_dir import StateError
from zconsole.timeline.eta.estimate import Estimate, Forecast
from zconsole.timeline.eta.pace import HOURS, SLOWEST
from zconsole.timeline.eta.past import LONGEST_SCAN, MOST_POINTS, SHORTEST, PastScan
from zconsole.timeline.eta.progress import (
    MAX_POINTS,
    SANE,
    CurvePoint,
    ProgressCurve,
    ProgressReading,
)
from zconsole.timeline.pool import PoolTimeline
from zconsole.timeline.rates import DEVICE_METRICS, SCAN_METRICS
from zconsole.timeline.scan_rate import MOST_MARKS, MOST_STEPS, PastRates
from zconsole.timeline.scans import MAX_NOTES, MOST_PAST, ScanTrack
from zconsole.timeline.scrubs import Damage

FORMAT = 1
MOST_BYTES = 2 * 2**20
"""FORMAT and this are version and largest size in bytes of the file of scans and rates."""
PAST_FORMAT = 1
MOST_PAST_BYTES = 2**18
"""PAST_FORMAT and this are version and largest size in bytes of the file of finished scans."""
MOST_DEVICES = 64
"""Number of vdevs up to which sparklines are stored; for larger pools, only those of scans."""
SAVE_SECONDS = 120.0
"""Seconds between two writes while a scan runs. A crash only loses its newest rates, as its
counters are the kernel's. When they were written more often, the histories of five pools took a
tenth of the console's CPU time."""
REST_SECONDS = 300.0
"""Seconds between two writes while no scan runs: a crash then only loses the end of the
sparklines."""
DIGITS = 4
"""Significant digits of stored rates."""

NONE_KEPT = PastRates()
"""Rates of a scan in files of an earlier version, which stored none."""


class LaterVersionError(StateError):
    """The file was written by a later version: this one neither understands nor replaces it."""


@dataclass(slots=True)
class HistoryStore(LockedStore):
    """Stores the histories of pools between runs."""

    _saved: dict[str, float] = field(default_factory=dict, init=False)
    _past: dict[str, tuple[PastScan, ...]] = field(default_factory=dict, init=False)
    """Finished scans of each pool, as in its file."""
    _foreign: set[str] = field(default_factory=set, init=False)
    """Pools whose file of finished scans must not be replaced."""

    def recall(self, guid: str, timeline: PoolTimeline) -> str | None:
        """Fill an empty history from a pool's files; return a note on problems, or None."""
        notes = (self._recall_past(guid, timeline), self._recall_scans(guid, timeline))
        return "; ".join(note for note in notes if note) or None

    def _recall_past(self, guid: str, timeline: PoolTimeline) -> str | None:
        """Load the finished scans from every directory."""
        failed = None
        for directory in self.readable:
            try:
                found = self.read_file(
                    _past_name(guid),
                    lambda path, data: decode_past(parse_json(data), guid, path),
                    MOST_PAST_BYTES,
                    (directory,),
                )
            except FileNotFoundError:
                continue
            except StateError as error:
                failed = f"earlier scans not read: {_why(error)}"
                if isinstance(error, LaterVersionError):
                    self._foreign.add(guid)
                continue
            for past in found:
                timeline.scans.learn(past)
        self._past[guid] = timeline.scans.past
        return failed

    def _recall_scans(self, guid: str, timeline: PoolTimeline) -> str | None:
        """Load the running scans and the sparklines from the first directory that has them."""
        try:
            found = self.read_file(
                _name(guid), lambda _, data: decode_history(parse_json(data), guid), MOST_BYTES
            )
        except FileNotFoundError:
            return None
        except StateError as error:
            return f"history not read: {_why(error)}"
        restore_history(timeline, *found)
        return None

    def keep(self, guid: str, timeline: PoolTimeline, at: float, at_once: bool = False) -> bool:
        """Write a pool's history if it is due (``at`` in epoch seconds) and no one else does.

        Raises StateError if it cannot be written.
        """
        past = timeline.scans.past
        at_rest = past == self._past.get(guid, ()) and timeline.scans.over_since is not None
        saved = self._saved.get(guid, float("-inf"))
        due = is_due(at, saved, REST_SECONDS if at_rest else SAVE_SECONDS)
        lock = f"{_name(guid)}.lock"
        if not (due or at_once) or not self.mine(lock):
            return False
        self._saved[guid] = at  # before writing: a failing disk is not tried every second
        self.put(_name(guid), encode_history(timeline, guid, at), lock)
        # Finished scans only if there are new ones, but always at the end: a failed write shows
        # only at the next one.
        if past and guid not in self._foreign and (past != self._past.get(guid, ()) or at_once):
            self._past[guid] = past
            self.put(_past_name(guid), encode_past(past, guid), lock)
        return True


def _why(error: StateError) -> str:
    """Return the message for a file that is not moved away, as the next write replaces it."""
    if not isinstance(error, DamagedError):
        return str(error)
    cause = error.__cause__
    why = cause if isinstance(cause, RecordError) else type(cause).__name__
    return f"{error.path} is damaged ({why})"


def _name(guid: str) -> str:
    """Return the file name for a pool; a GUID is digits, anything else must not become a path."""
    if not guid.isascii() or not guid.isdigit():
        raise StateError("no history kept: the pool has no GUID")
    return f"history-{guid}.json"


def _past_name(guid: str) -> str:
    return _name(guid).replace("history", "past", 1)


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
    """Time at which the pass began, and the seconds it was paused; ``pass`` in the file."""
    low: float | None
    """Low end of the estimate, in seconds."""
    past: PastRates = NONE_KEPT


@dataclass(frozen=True, slots=True)
class SavedHistory:
    """The contents of a file."""

    format: int
    guid: str
    t: float
    scans: tuple[SavedScan, ...]
    series: Mapping[str, tuple[tuple[float | None, ...], ...]]
    damage: Damage | None = None
    """Omitted if there was none: earlier versions do not know it."""


def encode_history(timeline: PoolTimeline, guid: str, at: float) -> bytes:
    """Return the contents of a pool's file, without sparklines if it would be too large."""
    tracks = [_saved(track) for track in timeline.scans.tracks if track.course.last]
    document = {"format": FORMAT, "guid": guid, "t": at, "scans": tracks}
    damage = timeline.damage.last
    if damage.errors or damage.checksum or damage.risen is not None:
        document["damage"] = asdict(damage)
    past = timeline.rates.series
    keys = past.keys()
    scans = [key for key in keys if key.startswith("scan:")]
    chosen = keys if len(keys) - len(scans) <= MOST_DEVICES else scans
    series = {key: [_rounded(column) for column in past.dump(key)] for key in chosen}
    data = json.dumps({**document, "series": series}, separators=(",", ":")).encode()
    if len(data) > MOST_BYTES:
        data = json.dumps({**document, "series": {}}, separators=(",", ":")).encode()
    return data


def _rounded(column: Sequence[float | None]) -> list[float | None]:
    return [None if v is None else float(f"{v:.{DIGITS}g}") for v in column]


def _saved(track: ScanTrack) -> dict[str, Any]:
    scan, last, past = track.scan, track.course.last, track.rates.past
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


def decode_history(document: Any, guid: str) -> tuple[SavedHistory, list[ScanTrack]]:
    """Return a file's contents, and the scans in it; raise ValueError and such if damaged."""
    scans = [{"current_pass": entry.pop("pass"), **entry} for entry in document["scans"]]
    saved = from_json(SavedHistory, {**document, "scans": scans})
    if saved.format != FORMAT or saved.guid != guid:
        raise ValueError("another pool's history")
    tracks = [_restored(each) for each in saved.scans]
    for key, rows in saved.series.items():
        if len(rows) != len(SCAN_METRICS if key.startswith("scan:") else DEVICE_METRICS):
            raise ValueError("series of another version")
        _check(*(value for row in rows for value in row))
    if (damage := saved.damage) is not None:
        counts = (damage.errors, damage.errors_cleared, damage.checksum_cleared)
        _check(damage.t, damage.risen, damage.cleared, *counts, *damage.checksum.values())
    return saved, tracks


def restore_history(
    timeline: PoolTimeline, saved: SavedHistory, tracks: Iterable[ScanTrack]
) -> None:
    """Fill an empty history with what was saved."""
    for track in tracks:
        timeline.scans.restore(track)
    timeline.rates.series.restore(saved.series)
    if saved.damage is not None:
        timeline.damage.last = saved.damage


def _restored(saved: SavedScan) -> ScanTrack:
    points = saved.points[:MAX_POINTS]
    if not points or any(a.x > b.x for a, b in pairwise(points)):
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
    # The clock of the earlier run means nothing now (``ProgressCurve._remembered``).
    last = ProgressReading(t, 0.0, running, issued, scanned, processed, began, paused)
    # Rounding may have made two of them equal in x, which must rise: the later one counts.
    curve = ProgressCurve({point.x: point for point in points}.values(), last)
    track = ScanTrack(scan, curve, saved.restarts, saved.notes[:MAX_NOTES], past)
    # Only to know whether it can have ended unseen: a range would be as old as the file.
    track.forecast = Forecast(Estimate(None, saved.low, None, "remembered"))
    return track


def _check(*numbers: float | None) -> None:
    """Raise ValueError for anything that is neither a counter nor a time."""
    if not all(number is None or 0 <= number < SANE for number in numbers):
        raise ValueError("neither a counter nor a time")


@dataclass(frozen=True, slots=True)
class _PastFile:
    format: int
    guid: str
    finished: tuple[PastScan, ...]


def encode_past(finished: Iterable[PastScan], guid: str) -> bytes:
    """Return the contents of a pool's file of finished scans."""
    scans = [
        past._replace(
            points=tuple((round(at, 5), round(x, 1)) for at, x in past.points),
            pace=tuple(round(factor, 3) for factor in past.pace),
        )
        for past in finished
    ]
    document = {"format": PAST_FORMAT, "guid": guid, "finished": scans}
    return json.dumps(document, separators=(",", ":")).encode()


def decode_past(document: Any, guid: str, path: Path) -> tuple[PastScan, ...]:
    """Return the finished scans in a file's contents, newest first.

    Raises LaterVersionError for a file of a later version, ValueError and such if damaged.
    """
    known = document["format"]
    if isinstance(known, int) and known > PAST_FORMAT:
        raise LaterVersionError(f"a later version wrote {path}")
    found = from_json(_PastFile, document)
    if found.format != PAST_FORMAT or found.guid != guid:
        raise ValueError("finished scans of another pool")
    return tuple(_checked(each) for each in found.finished[:MOST_PAST])


def _checked(past: PastScan) -> PastScan:
    """Return a finished scan if this version could have written it; raise ValueError if not."""
    points = past.points
    _check(past.start, past.seconds, past.total, past.watched)
    ends = ((points[0][0] if points else 0.0, 0.0), (1.0, round(past.seconds, 1)))
    rising = all(a[0] <= b[0] and a[1] <= b[1] for a, b in pairwise(points))
    if len(points) > MOST_POINTS or points[:1] + points[-1:] != ends or not rising:
        raise ValueError("not a scan that this version keeps")
    if points[0][0] not in (-1.0, 0.0) or len(past.pace) != HOURS:
        raise ValueError("not a scan that this version keeps")
    if not all(SLOWEST / 2 <= factor <= HOURS for factor in past.pace):
        raise ValueError("not a finished scan's pace")
    if not SHORTEST <= past.seconds <= LONGEST_SCAN or past.total < 1:
        raise ValueError("not a finished scan's length")
    return past
