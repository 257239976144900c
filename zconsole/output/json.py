"""Frames as the contract's JSON: one object a pool and sample, version 1."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from zconsole.history.views import ScanView
from zconsole.monitor.frame import Frame, VdevRow
from zconsole.pool.balance import Balance
from zconsole.pool.model import Scan

if TYPE_CHECKING:
    from zconsole.diagnosis.bottleneck.finding import Ceiling, Verdict
    from zconsole.diagnosis.device_errors.faults import DeviceFault, SmartCounts

VERSION = 1


def line(data: Mapping[str, Any]) -> str:
    """One line of ASCII JSON; what is not UTF-8 stays surrogate-escaped, nan and inf are null."""
    return json.dumps(_finite(data), ensure_ascii=True, allow_nan=False, separators=(", ", ": "))


def sample_object(frame: Frame) -> dict[str, Any]:
    """A frame as a ``status``/``watch``/``replay``/``demo`` object.

    Bytes, seconds and epoch seconds as numbers, shares 0…1, unknown as None.
    """
    scans = [scan_object(view) for view in frame.scans]
    if scans:
        scans[0] |= {"limit": _limit(frame.limit), "ceiling": _ceiling(frame.ceiling)}
    return {
        "version": VERSION,
        "t": frame.t,
        "source": frame.source,
        "exact": frame.exact,
        "pool": frame.pool or None,
        "guid": frame.guid,
        "state": frame.state,
        "message": frame.message,
        "action": frame.action,
        "error_count": frame.error_count,
        "errors": None if frame.errors is None else list(frame.errors),
        "health": {"word": frame.health.word, "reasons": list(frame.health.reasons)},
        "stale_seconds": frame.stale_seconds,
        "problem": frame.problem,
        "scan": scans[0] if scans else _no_scan(),
        "scans": scans,
        "activities": [_activity_object(frame, i) for i in range(len(frame.activities))],
        "troubles": [_trouble(trouble) for trouble in frame.troubles],
        "redundancy": {entry.vdev: entry.left for entry in frame.redundancy},
        "topology": _tree(frame.rows),
        "balance": balance_object(frame.balance),
    }


def _limit(found: Verdict | None) -> dict[str, Any] | None:
    if found is None:
        return None
    return {
        "cause": found.cause,
        "text": found.text,
        "sure": found.sure,
        "figures": dict(found.figures),
        "advice": found.advice,
    }


def _trouble(found: DeviceFault) -> dict[str, Any]:
    deltas = found.deltas
    return {
        "device": found.name,
        "read": deltas.read,
        "write": deltas.write,
        "cksum": deltas.cksum,
        "slow": deltas.slow,
        "seconds": deltas.seconds,
        "last": found.last,
        "flaps": found.flaps,
        "gone": found.gone,
        "restarts": found.restarts,
        "cause": found.cause,
        "text": found.text,
        "smart": _smart(found.signs.smart) if found.signs and found.signs.smart else None,
        "kernel": list(found.signs.kernel) if found.signs else None,
    }


def _smart(found: SmartCounts) -> dict[str, Any]:
    from dataclasses import asdict  # only here: most pools are never in trouble

    return asdict(found)


def _ceiling(found: Ceiling | None) -> dict[str, Any] | None:
    if found is None:
        return None
    return {"rate": found.rate, "share": found.share, "text": found.text}


def scan_object(view: ScanView) -> dict[str, Any]:
    """A scan with its windowed rates and estimate; ``percent`` is what this ZFS version prints."""
    estimate = view.estimate
    return _scan_counters(view.scan) | {
        "stage": view.stage,
        "percent": view.percent,
        "scan_rate": view.scan_rate,
        "issue_rate": view.issue_rate if view.scan.two_stage else None,
        "eta_seconds": estimate.eta,
        "eta_low_seconds": estimate.low,
        "eta_high_seconds": estimate.high,
        "eta_reason": estimate.reason,
        "zpool_eta_seconds": view.scan.zpool_eta,
        "restarts": view.restarts,
        "stalled_seconds": view.stalled,
        "full_eta_seconds": view.full.eta if view.full else None,
        "notes": list(view.notes),
    }


def _scan_counters(scan: Scan) -> dict[str, Any]:
    return {
        "function": scan.function,
        "state": scan.state,
        "stage": None,
        "vdev": scan.vdev,
        "start": scan.start,
        "end": scan.end,
        "total_bytes": scan.total_bytes,
        "scanned_bytes": scan.scanned_bytes,
        "issued_bytes": scan.issued_bytes,
        "skipped_bytes": scan.skipped_bytes,
        "processed_bytes": scan.processed_bytes,
        "errors": scan.errors,
    }


def _no_scan() -> dict[str, Any]:
    nothing = (
        "percent",
        "scan_rate",
        "issue_rate",
        "eta_seconds",
        "eta_low_seconds",
        "eta_high_seconds",
        "zpool_eta_seconds",
        "restarts",
        "stalled_seconds",
        "full_eta_seconds",
        "limit",
        "ceiling",
    )
    return (
        _scan_counters(Scan())
        | dict.fromkeys(nothing)
        | {"notes": [], "eta_reason": "nothing runs"}
    )


def _activity_object(frame: Frame, index: int) -> dict[str, Any]:
    view = frame.activities[index]
    activity = view.activity
    return {
        "kind": activity.kind,
        "state": activity.state,
        "vdev": activity.vdev,
        "start": activity.start,
        "end": activity.end,
        "done_bytes": activity.done_bytes,
        "total_bytes": activity.total_bytes,
        "percent": activity.percent,
        "rate": view.rate,
        "eta_seconds": view.estimate.eta,
        "zpool_eta_seconds": activity.zpool_eta,
    }


def balance_object(found: Balance) -> dict[str, Any]:
    """The contract's BALANCE."""
    return {
        "target_fill": found.target_fill,
        "spread": found.spread,
        "imbalance_bytes": _whole(found.imbalance_bytes),
        "vdevs": [
            {
                "name": vdev.name,
                "kind": vdev.kind,
                "size_bytes": vdev.size_bytes,
                "alloc_bytes": vdev.alloc_bytes,
                "free_bytes": vdev.free_bytes,
                "fill": vdev.fill,
                "frag": vdev.frag,
                "surplus_bytes": _whole(vdev.surplus_bytes),
                "new_write_share": vdev.new_write_share,
            }
            for vdev in found.vdevs
        ],
    }


def _tree(rows: tuple[VdevRow, ...]) -> dict[str, Any] | None:
    """The nested NODEs of rows that are in pre-order with their depths."""
    stack: list[dict[str, Any]] = []
    for row in rows:
        node = _node(row)
        del stack[row.depth :]
        if stack:
            stack[-1]["children"].append(node)
        stack.append(node)
    return stack[0] if stack else None


def _node(row: VdevRow) -> dict[str, Any]:
    vdev, rates = row.vdev, row.rates
    return {
        "name": vdev.name,
        "guid": vdev.guid,
        "kind": vdev.kind,
        "class": vdev.vclass,
        "state": vdev.state,
        "read": vdev.errors.read,
        "write": vdev.errors.write,
        "cksum": vdev.errors.cksum,
        "slow": vdev.errors.slow,
        "note": vdev.note,
        "path": vdev.path,
        "resilvering": vdev.resilvering,
        "awaiting_resilver": vdev.awaiting_resilver,
        "alloc_bytes": vdev.alloc_bytes,
        "size_bytes": vdev.size_bytes,
        "read_rate": rates.read,
        "write_rate": rates.write,
        "latency_seconds": rates.latency,
        "busy": rates.busy,
        "children": [],
    }


def _whole(value: float | None) -> int | None:
    return None if value is None else round(value)


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return value
