"""``zconsole balance``: how evenly data is spread over the top-level vdevs, and what if."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from zconsole.cli import event_loop, local
from zconsole.cli.output import say
from zconsole.errors import ExitCode, NotFoundError, UnavailableError, UsageError
from zconsole.monitor.facts import range_words
from zconsole.monitor.frame import Frame
from zconsole.output import json, text
from zconsole.output.what_if import duration_object, outlook_lines, outlook_object
from zconsole.pool.balance import balance
from zconsole.pool.model import Vdev
from zconsole.pool.what_if import Outlook, disk_of, grown, outlook, resize_of, shape_of
from zconsole.scan_report.resilver_time import PastRate, paces, resilver_duration
from zconsole.scan_report.store import ReportStore
from zconsole.system.state_dir import state_dirs
from zconsole.units import duration
from zconsole.zfs.decode.capacity import CapacityRow, capacities
from zconsole.zfs.sources.saved import LIST, read_text


@dataclass(frozen=True, slots=True)
class _Seen:
    """One pool, live or saved."""

    root: Vdev
    version: str | None = None
    paces: tuple[PastRate, ...] = ()


def run(args: argparse.Namespace) -> int:
    """Print the balance of each pool; returns the exit code."""
    adds, resizes = [shape_of(word) for word in args.add_vdev], dict(map(resize_of, args.resize))
    disk = disk_of(args.disk) if args.disk is not None else None
    found = _saved(args) if args.saved else event_loop.run(_live(args))
    if not found:
        say("no pools are imported")
    if len(found) > 1 and resizes:
        raise UsageError("--resize needs one POOL")
    for seen in found:
        after = grown(seen.root, adds, resizes)
        change = outlook(seen.root, after, seen.version) if adds or resizes else None
        if args.json:
            print(json.line(_object(seen, change, disk)))
        else:
            print(_text(seen, change, disk), end="")
    return ExitCode.OK


def _object(seen: _Seen, change: Outlook | None, disk: int | None) -> dict[str, Any]:
    now = balance(seen.root, seen.version)
    found: dict[str, Any] = {"version": 1, "pool": seen.root.name, **json.balance_object(now)}
    if change is not None:
        found |= outlook_object(change)
    if disk is not None:
        took = resilver_duration(seen.root, disk, seen.paces)
        found["resilver"] = duration_object(took)
    return found


def _text(seen: _Seen, change: Outlook | None, disk: int | None) -> str:
    if change is None:
        lines = text.balance_lines(balance(seen.root, seen.version))
    else:
        lines = outlook_lines(change)
    report = text.clean_lines((seen.root.name, *lines))
    return "".join(f"{line}\n" for line in (*report, *_resilver(seen, disk)))


def _resilver(seen: _Seen, disk: int | None) -> Iterator[str]:
    if disk is None:
        return
    found = resilver_duration(seen.root, disk, seen.paces)
    if found is None:
        yield "resilver of that disk: unknown (no completed scan recorded)"
    else:
        took = f"{duration(found.eta)} {range_words(found)}"
        yield f"resilver of that disk: {took}; {found.reason}"


def _saved(args: argparse.Namespace) -> Sequence[_Seen]:
    pools = capacities(read_text(args.saved, LIST))
    found = [_Seen(_tree(found)) for found in pools]
    chosen = [entry for entry in found if args.pool in (None, entry.root.name)]
    if not chosen and args.pool is not None:
        raise NotFoundError(f"no pool {args.pool!r} in that output")
    return chosen


def _tree(found: CapacityRow) -> Vdev:
    """The listing's top-level vdevs under a root."""
    return Vdev(found.name, "root", children=tuple(_vdev(row) for row in found.vdevs))


def _vdev(row: CapacityRow) -> Vdev:
    """A single device's printed size is the device's own, so alloc and free together are used."""
    # Labels and the reserved end of a disk are part of its size, and hold no data.
    size = row.space_bytes if row.kind in ("disk", "file") else row.size_bytes
    return Vdev(
        row.name,
        row.kind,
        row.vclass,
        size_bytes=size,
        alloc_bytes=row.alloc_bytes,
        free_bytes=row.free_bytes,
        fragmentation=row.fragmentation,
    )


async def _live(args: argparse.Namespace) -> Sequence[_Seen]:
    update = await local.once([args.pool] if args.pool else [])
    return [_seen(frame) for frame in update.frames]


def _seen(frame: Frame) -> _Seen:
    if frame.problem or frame.root is None:
        raise UnavailableError(f"{frame.pool}: {frame.problem or 'no sample'}")
    scans = tuple(view.scan for view in frame.scans)
    kept = ReportStore(None, state_dirs()).reports(guid=frame.guid) if frame.guid else []
    return _Seen(frame.root, frame.version, paces(frame.root, scans, kept))
