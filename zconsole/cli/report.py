"""``zconsole report``: prints reports of past and running scans, or compares two of them."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from datetime import UTC, datetime, tzinfo
from itertools import islice
from pathlib import Path

from zconsole.cli import event_loop
from zconsole.cli.output import print_row, say, say_gaps, say_problems
from zconsole.errors import ExitCode, NotFoundError, NotUnderstoodError, UsageError, ZconsoleError
from zconsole.output import json
from zconsole.scan_report.recorder import ReportKeeper
from zconsole.scan_report.renderer import compared, markdown, svg
from zconsole.scan_report.report import ScanReport, differences, different_tunables, dumped
from zconsole.scan_report.store import ReportStore, read_report
from zconsole.system.state_dir import state_dirs
from zconsole.timeline.feed import SessionFeed
from zconsole.timeline.session import Session
from zconsole.units import duration, parse_whole, size
from zconsole.zfs.sources.open_text import lines, reading
from zconsole.zfs.sources.recording import Gaps, is_raw
from zconsole.zfs.sources.replay import ReplaySource

SUMMARY = (
    *("pool", "guid", "function", "vdev", "state", "start", "end", "duration"),
    *("issued_bytes", "errors"),
)
"""Fields of a report that are in each row of ``--list``."""
FARTHEST = 4096
"""Lines of a file that are searched for a sample, to tell whether it is a recording."""


def run(args: argparse.Namespace) -> int:
    """Print a report, the list of reports or a comparison; return the exit code."""
    if args.svg and (args.list or args.compare):
        raise UsageError("--svg draws one scan: not with --list or --compare")
    zone = UTC if args.recording else None
    if args.compare:
        return _compare(args, zone)
    reports = _reports(args)
    if args.list:
        _list(reports, args.json, zone)
        if not reports:
            say(_none_message(args))
    else:
        _print(_numbered(reports, args.scan, _none_message(args)), args, zone)
    return ExitCode.OK


def _reports(args: argparse.Namespace) -> Sequence[ScanReport]:
    """Return all reports, newest first, from the recording if given, else the state directories."""
    if args.recording:
        found = event_loop.run(reports_of_recording(args.recording))
        return [report for report in found if args.pool in (None, report.pool)]
    store = ReportStore(None, state_dirs())
    reports = store.reports(args.pool)
    say_problems(store)
    return reports


async def reports_of_recording(path: str) -> Sequence[ScanReport]:
    """Return the reports of every scan in a recording, newest first, including running ones.

    Unreadable parts are reported on stderr. Raises NotUnderstoodError if nothing is readable.
    """
    # The same pipeline as for live pools, so that a recording gives the report of its scan.
    gaps = Gaps()
    session, keeper = Session(zone=UTC, gaps=gaps), ReportKeeper()
    done: list[ScanReport] = []
    feed = SessionFeed(ReplaySource(path, None, gaps), session, 0.0)
    async for update in event_loop.rounds(feed):
        for frame in update.frames:
            done.extend(keeper.push(frame))
    say_gaps(gaps)
    return sorted((*done, *keeper.current()), key=lambda report: -report.start)


def _none_message(args: argparse.Namespace) -> str:
    """Return the message that there is no report, and how to get one."""
    whose = f" of {args.pool}" if args.pool else ""
    if args.recording:
        return f"{args.recording} has no scan{whose}"
    return f"no scan reports{whose} yet: zconsole keeps one for each scan it watches"


def _numbered(reports: Sequence[ScanReport], number: int, none: str) -> ScanReport:
    """Return the report of that number; 1 is the newest.

    Raises NotFoundError, with the message ``none`` if there are no reports at all.
    """
    if not reports:
        raise NotFoundError(none)
    if number > len(reports):
        raise NotFoundError(f"no scan {number}: there are {len(reports)}, 1 is the newest")
    return reports[number - 1]


def _print(report: ScanReport, args: argparse.Namespace, zone: tzinfo | None) -> None:
    if args.json:
        print(dumped(report))
    elif args.svg:
        print(svg(report, zone), end="")
    else:
        print(markdown(report, zone), end="")


def _list(reports: Sequence[ScanReport], as_json: bool, zone: tzinfo | None) -> None:
    for number, report in enumerate(reports, 1):
        words = [f"{number:>3}", report.pool, report.function, report.state]
        words.append(datetime.fromtimestamp(report.start, zone).strftime("%Y-%m-%d %H:%M"))
        words += [duration(report.duration), size(report.issued_bytes)]
        record = {"scan": number, **{name: getattr(report, name) for name in SUMMARY}}
        print_row(record, "  ".join(words), as_json)


def _compare(args: argparse.Namespace, zone: tzinfo | None) -> int:
    words: list[str] = args.compare
    known = _reports(args) if any(parse_whole(word) is not None for word in words) else ()
    first, second = (_report_of(word, known, _none_message(args)) for word in words)
    if not args.json:
        print(compared(first, second, zone), end="")
        return ExitCode.OK
    rows = [
        {"name": d.name, "unit": d.unit, "first": d.first, "second": d.second, "change": d.change}
        for d in differences(first, second)
    ]
    apart = {name: list(pair) for name, pair in different_tunables(first, second).items()}
    print(json.line({"version": 1, "compared": rows, "tunables": apart}))
    return ExitCode.OK


def _report_of(word: str, known: Sequence[ScanReport], none: str) -> ScanReport:
    """Return a report by its number, or from a file: a report as JSON, or a recording."""
    if (number := parse_whole(word)) is not None:
        if number == 0:
            raise UsageError("scans are numbered from 1, the newest")
        return _numbered(known, number, none)
    path = Path(word)
    if _is_recording(path):
        return _numbered(event_loop.run(reports_of_recording(word)), 1, f"{word} has no scan")
    return read_report(path)


def _is_recording(path: Path) -> bool:
    """Return whether a file is a recording: one of its first lines is a sample."""
    try:
        with reading(str(path)) as file:
            return any(is_raw(line) for line in islice(lines(file), FARTHEST))
    except NotUnderstoodError:
        return False
    except ZconsoleError as error:
        raise NotFoundError(str(error)) from None
