"""``zconsole balance``: how evenly data is spread over the top-level vdevs.

It also predicts the balance after a change of the layout, and how long a new disk would resilver.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from zconsole.cli import event_loop, local
from zconsole.cli.output import NO_POOLS, say
from zconsole.errors import ExitCode, NotFoundError, NotUnderstoodError, UsageError
from zconsole.output import json, text
from zconsole.output.what_if import duration_object, outlook_lines, outlook_object
from zconsole.pool.balance import balance
from zconsole.pool.model import Vdev, Volumes
from zconsole.pool.what_if import Outlook, disk_of, grown, outlook, resize_of, shape_of
from zconsole.scan_report.report import ScanReport
from zconsole.scan_report.resilver_time import PastRate, paces, resilver_duration
from zconsole.scan_report.store import ReportStore
from zconsole.system.state_dir import StateError, state_dirs
from zconsole.timeline.frame import Frame, range_words
from zconsole.units import duration
from zconsole.zfs.decode.listing import capacities, space_of
from zconsole.zfs.sources.saved import LIST, read_text


@dataclass(frozen=True, slots=True)
class _Seen:
    """A pool, live or from saved output."""

    root: Vdev
    version: str | None = None
    paces: tuple[PastRate, ...] = ()
    volumes: Volumes | None = None


def run(args: argparse.Namespace) -> int:
    """Print the balance of each pool; return the exit code."""
    adds, resizes = [shape_of(word) for word in args.add_vdev], dict(map(resize_of, args.resize))
    disk = disk_of(args.disk) if args.disk is not None else None
    found, code = (_saved(args), ExitCode.OK) if args.saved else _live(args)
    if not found and not code:
        say(NO_POOLS)
    if len(found) > 1 and resizes:
        raise UsageError("--resize needs one POOL")
    for seen in found:
        after = grown(seen.root, adds, resizes)
        change = outlook(seen.root, after, seen.version, seen.volumes) if adds or resizes else None
        if args.json:
            print(json.line(_object(seen, change, disk)))
        else:
            print(_text(seen, change, disk), end="")
    return code


def _object(seen: _Seen, change: Outlook | None, disk: int | None) -> dict[str, Any]:
    now = balance(seen.root, seen.version, seen.volumes)
    found: dict[str, Any] = {"version": 1, "pool": seen.root.name, **json.balance_object(now)}
    if change is not None:
        found |= outlook_object(change)
    if disk is not None:
        found["resilver"] = duration_object(resilver_duration(seen.root, disk, seen.paces))
    return found


def _text(seen: _Seen, change: Outlook | None, disk: int | None) -> str:
    now = balance(seen.root, seen.version, seen.volumes)
    told = outlook_lines(change) if change else text.balance_lines(now)
    lines = [*text.clean_lines((seen.root.name, *told))]
    if disk is not None:
        found = resilver_duration(seen.root, disk, seen.paces)
        took = "unknown (no completed scan recorded)"
        if found is not None:
            took = f"{duration(found.eta)} {range_words(found)}; {found.reason}"
        lines.append(f"resilver of that disk: {took}")
    return "".join(f"{line}\n" for line in lines)


def _saved(args: argparse.Namespace) -> Sequence[_Seen]:
    output = read_text(args.saved, LIST)
    try:
        pools = capacities(output)
    except NotUnderstoodError as error:
        source = "standard input" if args.saved == "-" else args.saved
        raise NotUnderstoodError(f"{source}: {error}. Save it with: zpool list -v") from None
    chosen = [_Seen(_spacious(root)) for root in pools if args.pool in (None, root.name)]
    if not chosen and args.pool is not None:
        raise NotFoundError(f"no pool {args.pool!r} in that output")
    return chosen


def _spacious(root: Vdev) -> Vdev:
    """Return the tree with the size of each single device replaced by its allocatable bytes."""
    # Of a single device, zpool list -v has the device's own size: labels and the reserved end of
    # a disk are part of it, though they hold no data.
    tops = (
        top._replace(size_bytes=space_of(top)) if top.kind in ("disk", "file") else top
        for top in root.children
    )
    return root._replace(children=tuple(tops))


def _live(args: argparse.Namespace) -> tuple[Sequence[_Seen], ExitCode]:
    """Return the pools that answer, and an exit code that reports any that doesn't."""
    frames = event_loop.run(local.once([args.pool] if args.pool else [])).frames
    found, code = [], ExitCode.OK
    for frame in frames:
        if frame.problem or frame.root is None:
            say(f"{frame.pool}: {frame.problem or 'no sample'}")
            code = ExitCode.UNAVAILABLE
        else:
            scans = tuple(view.scan for view in frame.scans)
            past = paces(frame.root, scans, _reports(frame))
            found.append(_Seen(frame.root, frame.version, past, frame.seen.volumes))
    return found, code


def _reports(frame: Frame) -> Sequence[ScanReport]:
    """Return the reports of a pool's scans; none if their disk does not answer in time."""
    try:
        return ReportStore(None, state_dirs()).reports(guid=frame.guid) if frame.guid else ()
    except StateError:
        return ()
