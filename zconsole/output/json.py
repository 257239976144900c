"""Frames as the JSON that commands print: one object per pool and sample, format version 1."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from zconsole.pool.balance import Balance
from zconsole.pool.chassis import LeafDisk
from zconsole.pool.health import notes
from zconsole.pool.model import Scan
from zconsole.timeline.eta.estimate import Estimate
from zconsole.timeline.frame import SCRUB_HOURS, ActivityView, Frame, ScanView, VdevRow

if TYPE_CHECKING:
    from zconsole.diagnosis.device_errors.faults import DeviceFault

VERSION = 1
_NO_SCAN = ScanView(
    Scan(), "", None, None, None, None, None, Estimate(None, None, None, "no scan running"), None
)
_BALANCE = "name kind size_bytes alloc_bytes free_bytes fill frag surplus_bytes new_write_share"
_DISK = "bay enclosure slot serial wwn"


def line(data: Mapping[str, Any], digits: int | None = None) -> str:
    """Return one line of ASCII JSON; invalid UTF-8 stays surrogate-escaped, nan and inf are null.

    Floats are rounded to ``digits`` significant digits, if given.
    """
    return json.dumps(
        _finite(data, digits), ensure_ascii=True, allow_nan=False, separators=(", ", ": ")
    )


def sample_object(frame: Frame) -> dict[str, Any]:
    """Return a frame as the object that ``status``, ``watch``, ``replay`` and ``demo`` print.

    Bytes, seconds and epoch seconds are numbers, shares are 0…1, unknown values are None.
    """
    # "scan" repeats the first of "scans", and has all its keys even without a scan.
    scans = [scan_object(view) for view in frame.scans]
    first = scans[0] if scans else scan_object(_NO_SCAN)
    if not scans and not frame.seen.scans_known:
        first |= {"function": None, "state": None, "eta_reason": "scan unknown"}
    limit, ceiling, busiest = frame.limit, frame.ceiling, frame.busiest_datasets
    first["limit"] = limit and {
        **_picked(limit, "cause text sure figures"),
        "advice": limit.suggestion.text,
    }
    first["ceiling"] = ceiling and _picked(ceiling, "rate share text")
    work = [(view.activity.kind, view.activity.state) for view in frame.activities]
    return {
        "version": VERSION,
        "t": frame.t,
        "source": frame.sample.source if frame.sample else None,
        "exact": frame.sample is not None and frame.sample.exact,
        "pool": frame.pool or None,
        "guid": frame.guid,
        "state": frame.state,
        **_picked(frame.seen, "message action error_count errors"),
        "error_notes": notes(frame.seen.errors, frame.seen.destroyed),
        "health": {"word": frame.health.word, "reasons": list(frame.health.reasons)},
        "stale_seconds": frame.stale_seconds,
        "problem": frame.problem,
        "scan": first,
        "scans": scans,
        "last_scrub": frame.scrub.last,
        "scrub_overdue": frame.scrub.overdue,
        "scrub_hours": next((hours for kind, hours in work if kind == SCRUB_HOURS), None),
        "activities": [_activity_object(view) for view in frame.activities],
        "busiest_datasets": busiest and [load._asdict() for load in busiest],
        "troubles": [_trouble(trouble) for trouble in frame.troubles],
        "spares": [
            _picked(spare, "name kind severity text device command zed") for spare in frame.spares
        ],
        "redundancy": {entry.vdev: entry.left for entry in frame.redundancy},
        "topology": _tree(frame.rows),
        "balance": balance_object(frame.balance),
    }


def _picked(source: object, names: str) -> dict[str, Any]:
    """Return the attributes of these names, which are also the keys of the output, in order."""
    return {name: getattr(source, name) for name in names.split()}


def _trouble(found: DeviceFault) -> dict[str, Any]:
    smart = found.signs.smart if found.signs else None
    return {
        "device": found.name,
        **_picked(found.deltas, "read write cksum slow seconds"),
        **_picked(found, "last flaps gone restarts cause text"),
        "common": found.common and _picked(found.common, "kind hub since devices"),
        "smart": smart._asdict() if smart else None,
        "kernel": list(found.signs.kernel) if found.signs else None,
    }


def scan_object(view: ScanView) -> dict[str, Any]:
    """Return a scan with recent rates and its estimate; ``percent`` is as this ZFS prints it."""
    scan, estimate, past = view.scan, view.estimate, view.comparison
    return {
        **_picked(scan, "function state"),
        "stage": view.stage,
        **_picked(scan, "vdev start end total_bytes scanned_bytes issued_bytes skipped_bytes"),
        **(_picked(scan, "paused_since") if scan.state == "paused" else {}),
        **_picked(scan, "processed_bytes errors thorough full"),
        **_picked(view, "percent scan_rate"),
        "issue_rate": view.issue_rate if scan.two_stage else None,
        "eta_seconds": estimate.eta,
        "eta_low_seconds": estimate.low,
        "eta_high_seconds": estimate.high,
        "eta_reason": estimate.reason,
        "zpool_eta_seconds": scan.zpool_eta,
        "past": past
        and {
            "function": past.function,
            "seconds": past.took,
            "ahead_seconds": past.ahead,
        },
        "restarts": view.restarts,
        "stalled_seconds": view.stalled,
        "full_eta_seconds": view.full.eta if view.full and view.full_redundancy else None,
        "notes": list(view.notes),
    }


def _activity_object(view: ActivityView) -> dict[str, Any]:
    activity = view.activity
    return {
        **_picked(activity, "kind state vdev start end done_bytes total_bytes percent note"),
        "rate": view.rate,
        "eta_seconds": view.estimate.eta,
        "zpool_eta_seconds": activity.zpool_eta,
        "stalled_seconds": view.stalled,
        "advice": view.advice,
    }


def balance_object(found: Balance) -> dict[str, Any]:
    """Return a pool's balance: common fill, spread, bytes to move, volumes, and each vdev."""
    return {
        "target_fill": found.target_fill,
        "spread": found.spread,
        "imbalance_bytes": _whole(found.imbalance_bytes),
        "volumes": found.volumes and asdict(found.volumes),
        "vdevs": [
            _picked(vdev, _BALANCE) | {"surplus_bytes": _whole(vdev.surplus_bytes)}
            for vdev in found.vdevs
        ],
    }


def _tree(rows: tuple[VdevRow, ...]) -> dict[str, Any] | None:
    """Nest rows, which are in pre-order with depths, into one tree of nodes; None without rows."""
    stack: list[dict[str, Any]] = []
    for row in rows:
        node = _node(row)
        del stack[row.depth :]
        if stack:
            stack[-1]["children"].append(node)
        stack.append(node)
    return stack[0] if stack else None


def _node(row: VdevRow) -> dict[str, Any]:
    vdev, rates, disk = row.vdev, row.rates, row.vdev.disk or LeafDisk()
    return {
        **_picked(vdev, "name guid kind"),
        "class": vdev.vclass,
        "state": vdev.state or None,
        **_picked(vdev.errors, "read write cksum slow"),
        **_picked(vdev, "note path resilvering awaiting_resilver alloc_bytes size_bytes"),
        "read_rate": rates.read,
        "write_rate": rates.write,
        "latency_seconds": rates.latency,
        "busy": rates.busy,
        **{name: found or None for name, found in _picked(disk, _DISK).items()},
        "temperature_celsius": disk.temperature,
        "children": [],
    }


def _whole(value: float | None) -> int | None:
    return None if value is None else round(value)


def _finite(value: Any, digits: int | None) -> Any:
    if isinstance(value, float):
        shorter = float(f"{value:.{digits}g}") if digits else value
        return shorter if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _finite(item, digits) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item, digits) for item in value]
    return value
