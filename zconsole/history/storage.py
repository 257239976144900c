"""History that survives: the running scans of a pool and the sparklines, kept on disk.

One file a pool (by GUID) holds what was seen of its scans (by function, vdev and start) in a few
hundred points each, and the newest rates. The first console to come writes it; another one reads.
What cannot be read is left alone, with a note, and history starts afresh.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import Any

from zconsole.eta import Estimate, Forecast
from zconsole.eta.progress_curve import MAX_POINTS, SANE, CurvePoint, ProgressCurve, ProgressReading
from zconsole.history.pool import PoolHistory
from zconsole.history.scan_track import MAX_NOTES, ScanTrack
from zconsole.history.series import DEVICE_METRICS, SCAN_METRICS
from zconsole.pool.model import Scan
from zconsole.system import state_dir
from zconsole.system.locked_store import LockedStore
from zconsole.system.state_dir import StateError

FORMAT = 1
MOST_BYTES = 2 * 2**20
MOST_DEVICES = 64
"""Sparklines of this many vdevs are kept; of larger pools, only those of the scans."""
SAVE_SECONDS = 30.0
DIGITS = 4

DAMAGE = (ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError)
"""What reading a damaged file can run into."""


@dataclass(slots=True)
class HistoryStore(LockedStore):
    """Where the histories of pools are kept between runs."""

    _saved: dict[str, float] = field(default_factory=dict, init=False)

    def recall(self, guid: str, history: PoolHistory) -> str | None:
        """Fill an empty history with what is remembered of a pool; a note on what went wrong."""
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
                return f"history not read: {path} is damaged ({type(error).__name__})"
            return None
        return None

    def keep(self, guid: str, history: PoolHistory, t: float, at_once: bool = False) -> bool:
        """Write a pool's history if it is time (``t``: epoch seconds) and no one else does.

        Raises StateError when it cannot be written.
        """
        due = t - self._saved.get(guid, -SAVE_SECONDS) >= SAVE_SECONDS
        if self.directory is None or not (due or at_once) or not self.mine(f"{_name(guid)}.lock"):
            return False
        self._saved[guid] = t
        self.write(self.directory / _name(guid), encode(history, guid, t))
        return True


def _name(guid: str) -> str:
    """The file of a pool; a GUID is digits, anything else must not become a path."""
    if not guid.isascii() or not guid.isdigit():
        raise StateError("no history kept: the pool has no GUID")
    return f"history-{guid}.json"


def encode(history: PoolHistory, guid: str, t: float) -> bytes:
    """The file's contents, within its bound: sparklines of devices go first when it is large."""
    document = {
        "format": FORMAT,
        "guid": guid,
        "t": t,
        "scans": [_track(track) for track in history.scans.tracks if track.course.last],
        "series": _series(history),
    }
    data = json.dumps(document, separators=(",", ":")).encode()
    if len(data) > MOST_BYTES:
        document["series"] = {}
        data = json.dumps(document, separators=(",", ":")).encode()
    return data


def _series(history: PoolHistory) -> dict[str, list[list[float | None]]]:
    keys = history.series.keys()
    scans = [key for key in keys if key.startswith("scan:")]
    chosen = keys if len(keys) - len(scans) <= MOST_DEVICES else scans
    return {key: [_rounded(column) for column in history.series.dump(key)] for key in chosen}


def _rounded(column: Sequence[float | None]) -> list[float | None]:
    return [None if v is None else float(f"{v:.{DIGITS}g}") for v in column]


def _track(track: ScanTrack) -> dict[str, Any]:
    scan, last = track.scan, track.course.last
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
        "low": track.told.estimate.low,
    }


def restore(history: PoolHistory, document: Any, guid: str) -> None:
    """Fill an empty history from a file's contents; raises ValueError and such when damaged."""
    if document["format"] != FORMAT or document["guid"] != guid:
        raise ValueError("not this pool's history")
    tracks = [_restored(entry) for entry in document["scans"]]
    series = {key: _columns(key, rows) for key, rows in document["series"].items()}
    for track in tracks:
        history.scans.restore(track)
    history.series.restore(series)


def _restored(entry: Mapping[str, Any]) -> ScanTrack:
    points = [CurvePoint(*(_number(n) for n in row)) for row in entry["points"][:MAX_POINTS]]
    if not points or any(a.x >= b.x for a, b in pairwise(points)):
        raise ValueError("points out of order")
    track = ScanTrack(_scan(entry), ProgressCurve(points, _last(entry)), notes=_notes(entry))
    track.restarts = None if entry["restarts"] is None else int(_number(entry["restarts"]))
    low = _maybe(entry["low"])
    track.told = Forecast(Estimate(low, low, low, "remembered"))
    return track


def _last(entry: Mapping[str, Any]) -> ProgressReading:
    t, running, *counters = entry["last"]
    issued, scanned, processed = (_number(n) for n in counters)
    started, paused = entry["pass"]
    return ProgressReading(
        _number(t),
        0.0,
        running is True,
        issued,
        scanned,
        processed,
        _maybe(started),
        _number(paused),
    )


def _scan(entry: Mapping[str, Any]) -> Scan:
    total, skipped = _maybe(entry["total"]), _maybe(entry["skipped"])
    *_, issued, scanned, _ = entry["last"]
    return Scan(
        function=str(entry["function"]),
        state=str(entry["state"]),
        vdev=None if entry["vdev"] is None else str(entry["vdev"]),
        start=_maybe(entry["start"]),
        total_bytes=None if total is None else int(total),
        skipped_bytes=None if skipped is None else int(skipped),
        issued_bytes=int(_number(issued)),
        scanned_bytes=int(_number(scanned)),
    )


def _notes(entry: Mapping[str, Any]) -> list[str]:
    return [str(note) for note in entry["notes"][:MAX_NOTES]]


def _maybe(value: Any) -> float | None:
    return None if value is None else _number(value)


def _columns(key: str, rows: Sequence[Sequence[float | None]]) -> list[list[float | None]]:
    if len(rows) != len(SCAN_METRICS if key.startswith("scan:") else DEVICE_METRICS):
        raise ValueError("not the series this version keeps")
    return [[None if v is None else _number(v) for v in column] for column in rows]


def _number(value: Any) -> float:
    number = float(value)
    if not 0 <= number < SANE:
        raise ValueError("no counter or time")
    return number
