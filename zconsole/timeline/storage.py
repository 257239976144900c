"""History that survives: the running scans of a pool and the sparklines, kept on disk.

One file per pool (by GUID) holds its scans (by function, vdev and start) in a few hundred points
each, the newest rates, and the damage seen; another its finished scans (``past_file``). The first
console writes them; others read them. An unreadable file is left alone, with a note, and history
starts again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

from zconsole.pool.model import Scan
from zconsole.system import state_dir
from zconsole.system.async_writer import LockedStore
from zconsole.system.records import RecordError, from_json, parse_json
from zconsole.system.state_dir import StateError
from zconsole.timeline import past_file
from zconsole.timeline.damage import Damage
from zconsole.timeline.eta.estimate import Estimate, Forecast
from zconsole.timeline.eta.past import PastScan
from zconsole.timeline.eta.progress import (
    MAX_POINTS,
    SANE,
    CurvePoint,
    ProgressCurve,
    ProgressReading,
)
from zconsole.timeline.past_rates import MOST_MARKS, MOST_STEPS, PastRates
from zconsole.timeline.pool import PoolHistory
from zconsole.timeline.scan_track import MAX_NOTES, ScanTrack
from zconsole.timeline.series import DEVICE_METRICS, SCAN_METRICS

FORMAT = 1
MOST_BYTES = 2 * 2**20
MOST_DEVICES = 64
"""Sparklines of this many vdevs are stored; for larger pools, only those of the scans."""
SAVE_SECONDS = 120.0
"""A crash takes the newest rates of a scan, no more: its counters are the kernel's. Written more
often, the histories of five pools took a tenth of the console's time."""
REST_SECONDS = 300.0
"""… and while no scan runs: all that a crash takes then is the end of the sparklines."""
DIGITS = 4

DAMAGE = (ValueError, TypeError, KeyError, AttributeError)
"""What reading a damaged file can run into."""
NONE_KEPT = PastRates()
"""What an earlier version kept of the rates of a scan."""


@dataclass(slots=True)
class HistoryStore(LockedStore):
    """Stores the histories of pools between runs."""

    _saved: dict[str, float] = field(default_factory=dict, init=False)
    _past: dict[str, tuple[PastScan, ...]] = field(default_factory=dict, init=False)
    """Finished scans of each pool as its file has them."""
    _foreign: set[str] = field(default_factory=set, init=False)
    """Pools whose file of finished scans must not be replaced."""

    def recall(self, guid: str, history: PoolHistory) -> str | None:
        """Fill an empty history from a pool's files; returns a note on what went wrong."""
        notes = (self._recall_past(guid, history), self._recall_scans(guid, history))
        return "; ".join(note for note in notes if note) or None

    def _recall_past(self, guid: str, history: PoolHistory) -> str | None:
        """Take in the finished scans that each directory has."""
        failed = None
        for directory in self.readable:
            path = directory / _past_name(guid)
            try:
                read = partial(state_dir.read_private, path, past_file.MOST_BYTES)
                for past in past_file.decoded(parse_json(self.patient.call(read)), guid):
                    history.scans.learn(past)
            except FileNotFoundError:
                continue
            except StateError as error:
                failed = f"earlier scans not read: {error}"
            except past_file.LaterVersionError:
                failed = f"earlier scans not read: a later version wrote {path}"
                self._foreign.add(guid)
            except DAMAGE as error:
                failed = f"earlier scans not read: {path} is damaged ({_why(error)})"
        self._past[guid] = history.scans.past
        return failed

    def _recall_scans(self, guid: str, history: PoolHistory) -> str | None:
        """Take in the running scans and the sparklines of the first directory that has them."""
        for directory in self.readable:
            path = directory / _name(guid)
            try:
                data = self.patient.call(partial(state_dir.read_private, path, MOST_BYTES))
                restore(history, parse_json(data), guid)
            except FileNotFoundError:
                continue
            except StateError as error:
                return f"history not read: {error}"
            except DAMAGE as error:
                return f"history not read: {path} is damaged ({_why(error)})"
            return None
        return None

    def keep(self, guid: str, history: PoolHistory, t: float, at_once: bool = False) -> bool:
        """Write a pool's history if it is time (``t``: epoch seconds) and no one else does.

        Raises StateError when it cannot be written.
        """
        past = history.scans.past
        at_rest = past == self._past.get(guid, ()) and not any(
            view.scan.active for view in history.scan_views
        )
        saved = self._saved.get(guid, float("-inf"))
        due = t - saved >= (REST_SECONDS if at_rest else SAVE_SECONDS)
        if self.directory is None or not (due or at_once) or not self.mine(f"{_name(guid)}.lock"):
            return False
        self._saved[guid] = t  # before it is written: a disk that fails is not asked every second
        self.write(self.directory / _name(guid), encode(history, guid, t))
        self._keep_past(self.directory, guid, past, at_once)
        return True

    def _keep_past(
        self, directory: Path, guid: str, past: tuple[PastScan, ...], at_once: bool
    ) -> None:
        """Write finished scans that the file does not have yet.

        With ``at_once`` the others, too: a write that failed shows only at the next one.
        """
        is_new = past != self._past.get(guid, ())
        if not past or guid in self._foreign or not (is_new or at_once):
            return
        self._past[guid] = past
        self.write(directory / _past_name(guid), past_file.encoded(past, guid))


def _why(error: Exception) -> str:
    return str(error) if isinstance(error, RecordError) else type(error).__name__


def _name(guid: str) -> str:
    """The file of a pool; a GUID is digits, anything else must not become a path."""
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
    damage: Damage | None = None
    """Left out where none was seen: earlier versions don't know it."""


def encode(history: PoolHistory, guid: str, t: float) -> bytes:
    """The file's contents, within its bound: sparklines of devices go first when it is large."""
    tracks = [_saved(track) for track in history.scans.tracks if track.course.last]
    document = {"format": FORMAT, "guid": guid, "t": t, "scans": tracks}
    damage = history.damage.last
    if damage.errors or damage.checksum or damage.risen is not None:
        document["damage"] = asdict(damage)
    series = _series(history)
    data = json.dumps({**document, "series": series}, separators=(",", ":")).encode()
    if len(data) > MOST_BYTES:
        data = json.dumps({**document, "series": {}}, separators=(",", ":")).encode()
    return data


def _series(history: PoolHistory) -> dict[str, list[list[float | None]]]:
    keys = history.series.keys()
    scans = [key for key in keys if key.startswith("scan:")]
    chosen = keys if len(keys) - len(scans) <= MOST_DEVICES else scans
    return {key: [_rounded(column) for column in history.series.dump(key)] for key in chosen}


def _rounded(column: Sequence[float | None]) -> list[float | None]:
    return [None if v is None else float(f"{v:.{DIGITS}g}") for v in column]


def _saved(track: ScanTrack) -> dict[str, Any]:
    scan, last, past = track.scan, track.course.last, track.timeline.past
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
    if (damage := saved.damage) is not None:
        counts = (damage.errors, damage.errors_cleared, damage.checksum_cleared)
        _check(damage.t, damage.risen, damage.cleared, *counts, *damage.checksum.values())
    # Only now, when all of it was found good: half a history would be worse than none.
    for track in tracks:
        history.scans.restore(track)
    history.series.restore(saved.series)
    if damage is not None:
        history.damage.last = damage


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


def _check(*numbers: float | None) -> None:
    """Raises ValueError for anything that is neither a counter nor a time."""
    if not all(number is None or 0 <= number < SANE for number in numbers):
        raise ValueError("neither a counter nor a time")
