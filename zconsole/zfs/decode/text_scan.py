"""The ``scan:`` (Solaris 10: ``scrub:``) section of ``zpool status`` text, in every dialect.

Source: print_scan_scrub_resilver_status, print_rebuild_status_impl and print_err_scrub_status in
cmd/zpool/zpool_main.c (0.6.5, 0.7.13, 0.8.6, 2.1.15, 2.3.9); Solaris 10 and 11.2 from samples.
And the ``remove:``, ``checkpoint:``, ``expand:`` and ``condense:`` lines: print_removal_status,
print_checkpoint_status and print_raidz_expand_status there (2.3.9), print_condense_status (master
of August 2026).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import tzinfo

from zconsole.pool.model import Activity, Scan
from zconsole.units import parse_duration, parse_size, size_resolution
from zconsole.zfs.decode.scans import condense
from zconsole.zfs.decode.values import parse_date, unbroken
from zconsole.zfs.decode.words import disk_name

_LONGEST = 100 * 365 * 86400
_N = r"\d+(?:[.,]\d+)?[BKMGTPE]?"
_P = r"-?(?:nan|inf|\d+(?:[.,]\d+)?)"
_WHAT = r"(?P<thorough>thorough )?(?P<what>error scrub|scrub|resilver)(?: \((?P<vdev>.+?)\))?"

_STARTED = re.compile(
    rf"{_WHAT} (?P<state>in progress|paused) since (?P<date>.+?)(?P<held> \(paused\))?$"
)
_CANCELED = re.compile(rf"{_WHAT} canceled(?: on (?P<date>.+))?")
_OLD_RUNNING = re.compile(
    rf"{_WHAT} in progress(?: for (?P<dur>[\dhdms]+))?, (?P<pct>{_P})% done"
    r"(?:, (?P<eta>[\dhdms]+) to go)?"
)
_OLD_DONE = re.compile(
    rf"{_WHAT} (?P<how>completed|stopped)(?: after (?P<dur>[\dhdms]+))?"
    r"(?: with (?P<err>\d+) errors)?(?: on (?P<date>.+))?"
)
_DONE = re.compile(
    r"(?:(?P<thorough>thorough )?scrub repaired|(?P<res>resilvered)(?: \((?P<vdev>.+?)\))?)"
    rf" (?P<proc>{_N})"
    r"(?: in (?P<dur>(?:\d+ days? )?\d+:\d\d:\d\d|[\dhdms]+))?"
    r"(?: with (?P<err>\d+) errors)?(?: on (?P<date>.+))?"
)
_ERROR_SCRUBBED = re.compile(
    r"scrubbed \d+ error blocks in (?P<dur>(?:\d+ days? )?\d+:\d\d:\d\d)(?: on (?P<date>.+))?"
)
_BEGAN = re.compile(r"(?:thorough )?(?:error )?scrub started on\s+(?P<date>.+)")
_ONE_STAGE = re.compile(
    rf"(?P<sc>{_N}) scanned out of (?P<tot>{_N})(?: at (?P<sr>{_N})/s)?"
    r"(?:, (?P<eta>[\dhdms]+) to go)?"
)
_TWO_STAGE = re.compile(
    rf"(?P<sc>{_N}) scanned(?: at (?P<sr>{_N})/s)?, (?P<is>{_N}) issued"
    rf"(?: (?:at )?(?P<ir>{_N})/s)?(?:, (?P<tot>{_N}) total)?"
)
_SLASHED = re.compile(
    rf"(?P<sc>{_N}) / (?P<tot>{_N}) scanned(?: at (?P<sr>{_N})/s)?"
    rf"(?:, (?P<is>{_N}) / (?P<itot>{_N}) issued(?: at (?P<ir>{_N})/s)?)?"
)
_SOLARIS_SCANNED = re.compile(rf"(?P<sc>{_N}) scanned")
_DONE_SO_FAR = re.compile(
    rf"(?P<proc>{_N}) (?:resilvered|repaired)(?: at (?P<ir>{_N})/s)?"
    rf"(?:, (?P<pct>{_P})% done)?(?:, (?P<eta>(?:\d+ days? )?\d+:\d\d:\d\d|[\dhdms]+) to go)?"
)
_ERROR_BLOCKS = re.compile(rf"(?P<pct>{_P})% done")

_TIME = r"(?:\d+ days? )?\d+:\d\d:\d\d|[\dhdms]+"

_EVACUATION = re.compile(r"Evacuation of (?P<vdev>.+?) in progress since (?P<date>.+)")
_REMOVED = re.compile(
    rf"Removal of vdev (?P<vdev>\d+) copied (?P<n>{_N}) in (?P<dur>\S+?), completed on (?P<date>.+)"
)
_REMOVAL_CANCELED = re.compile(r"Removal of (?P<vdev>.+?) canceled on (?P<date>.+)")
_EXPANSION = re.compile(r"expansion of (?P<vdev>.+?) in progress since (?P<date>.+)")
_EXPANDED = re.compile(
    rf"expanded (?P<vdev>.+?) copied (?P<n>{_N}) in (?P<dur>{_TIME}), on (?P<date>.+)"
)
_COPIED = re.compile(
    rf"(?P<n>{_N}) (?:copied out of|/) (?P<tot>{_N})(?: copied)?(?: at (?P<rate>{_N})/s)?"
    rf"(?:, (?P<pct>\d+(?:[.,]\d+)?)% done)?(?:, (?P<eta>{_TIME}) to go)?(?P<rest>.*)"
)
_CHECKPOINT = re.compile(rf"created (?P<date>.+?), consumes (?P<n>{_N})")
_DISCARDING = re.compile(rf"discarding, (?P<n>{_N}) remaining")
_CONDENSE = re.compile(
    rf"(?P<type>\S+): (?P<state>condensing|cancelled|done), (?P<done>{_N})(?:/(?P<tot>{_N}))?"
    r" (?P<unit>\S+) done"
)
_CONDENSE_STATES = {"condensing": "running", "cancelled": "canceled", "done": "finished"}


def scan_of(lines: list[str], zone: tzinfo) -> Scan | None:
    """The scan of one section's lines; None for ``none requested`` and anything else."""
    stripped = _unwrapped(line.strip() for line in lines if line.strip())
    if not stripped:
        return None
    tried = [_scan_of(whole, zone) for whole in unbroken(stripped)]
    dated = (s for s in tried if s is not None and (s.start or s.paused_since or s.end))
    return next(dated, tried[-1])


def _scan_of(stripped: list[str], zone: tzinfo) -> Scan | None:
    head, *details = stripped
    if match := _STARTED.match(head):
        return _running(match, details, zone)
    if match := _DONE.match(head):
        return _finished(match, zone)
    return _rarer(head, zone)


def _unwrapped(lines: Iterable[str]) -> list[str]:
    """The lines with each put back on one that a narrow window or a mail broke after a comma."""
    whole: list[list[str]] = []
    for line in lines:
        if whole and whole[-1][-1].endswith(","):
            whole[-1].append(line)
        else:
            whole.append([line])
    return [" ".join(pieces) for pieces in whole]


def _rarer(head: str, zone: tzinfo) -> Scan | None:
    if match := _OLD_RUNNING.match(head):
        return Scan(
            function=_function(match),
            state="running",
            percent=_percent(match["pct"]),
            zpool_eta=_eta(match["eta"]),
            duration=parse_duration(match["dur"] or ""),
            two_stage=False,
        )
    if match := _CANCELED.match(head):
        end = parse_date(match["date"] or "", zone)
        function = _function(match)
        thorough = _is_thorough(match, function)
        return Scan(function, "canceled", vdev=match["vdev"], end=end, thorough=thorough)
    if match := _OLD_DONE.match(head):
        return Scan(
            function=_function(match),
            state="finished" if match["how"] == "completed" else "canceled",
            end=parse_date(match["date"] or "", zone),
            errors=_count(match["err"]),
            duration=parse_duration(match["dur"] or ""),
            two_stage=False,
        )
    if match := _ERROR_SCRUBBED.match(head):
        end, taken = parse_date(match["date"] or "", zone), parse_duration(match["dur"])
        return Scan("errorscrub", "finished", end=end, duration=taken, two_stage=False)
    return None


def _function(match: re.Match[str]) -> str:
    what = match["what"]
    if what == "error scrub":
        return "errorscrub"
    return "rebuild" if what == "resilver" and match["vdev"] else what


def _is_thorough(match: re.Match[str], function: str) -> bool | None:
    return match["thorough"] is not None if function == "scrub" else None


def _count(text: str | None) -> int | None:
    return None if text is None else int(text)


def _percent(text: str | None) -> float | None:
    """A printed percentage; None for nan and inf, which a zero total gives."""
    if text is None or text.endswith(("nan", "inf")):
        return None
    return float(text.replace(",", "."))


def _bytes(text: str | None) -> int | None:
    return None if text is None else parse_size(text)


def _eta(text: str | None) -> float | None:
    """Seconds left; None for the hundred thousands of years that Solaris 10 can print."""
    seconds = parse_duration(text or "")
    return seconds if seconds is not None and seconds < _LONGEST else None


def _finished(match: re.Match[str], zone: tzinfo) -> Scan:
    rebuilt = "rebuild" if match["vdev"] else "resilver"
    function = rebuilt if match["res"] else "scrub"
    return Scan(
        function=function,
        state="finished",
        vdev=match["vdev"],
        end=parse_date(match["date"] or "", zone),
        processed_bytes=_bytes(match["proc"]),
        errors=_count(match["err"]),
        duration=parse_duration(match["dur"] or ""),
        thorough=_is_thorough(match, function),
    )


def _running(head: re.Match[str], details: list[str], zone: tzinfo) -> Scan:
    date = parse_date(head["date"], zone)
    paused = head["state"] == "paused"
    scan = Scan(
        function=_function(head),
        state="paused" if paused or head["held"] else "running",
        vdev=head["vdev"],
        start=None if paused else date,
        paused_since=date if paused else None,
        two_stage=head["what"] != "error scrub",
        thorough=_is_thorough(head, _function(head)),
    )
    for line in details:
        scan = _with_line(scan, line, zone)
    return scan


def _with_line(scan: Scan, line: str, zone: tzinfo) -> Scan:
    """The scan with what one detail line adds; a line of no known form adds nothing."""
    if match := _BEGAN.match(line):
        scan = scan._replace(start=parse_date(match["date"], zone))
    elif match := _ONE_STAGE.match(line):
        scan = _with_one_stage(scan, match)
    elif match := _TWO_STAGE.match(line) or _SLASHED.match(line):
        scan = _with_two_stages(scan, match)
    elif match := _DONE_SO_FAR.match(line):
        scan = _with_progress(scan, match)
    elif scan.function == "errorscrub" and (match := _ERROR_BLOCKS.match(line)):
        scan = scan._replace(percent=_percent(match["pct"]))
    elif match := _SOLARIS_SCANNED.fullmatch(line):
        # Solaris 11.2's second stage: the walk is over, what is left is not printed.
        stage = _if_running(scan, "issuing")
        scan = scan._replace(scanned_bytes=_bytes(match["sc"]), stage=stage)
    return scan


def _if_running(scan: Scan, stage: str) -> str | None:
    return stage if scan.state == "running" else None


def _with_one_stage(scan: Scan, match: re.Match[str]) -> Scan:
    return scan._replace(
        scanned_bytes=_bytes(match["sc"]),
        total_bytes=_bytes(match["tot"]),
        zpool_scan_rate=_bytes(match["sr"]),
        zpool_eta=_eta(match["eta"]),
        resolution=size_resolution(match["sc"]),
        printed=True,
        two_stage=False,
    )


def _with_two_stages(scan: Scan, match: re.Match[str]) -> Scan:
    """0.8 to 2.1 print ``X scanned, Y issued, T total``; 2.2+ ``X / T scanned, Y / U issued``."""
    fields = match.groupdict()
    scanned, total, to_issue = _bytes(match["sc"]), _bytes(match["tot"]), fields.get("itot")
    walked = match["sc"] == match["tot"] or (
        "itot" in fields and match["sr"] is None and bool(scanned)
    )
    differs = to_issue is not None and to_issue != match["tot"] and total is not None
    return scan._replace(
        stage=_if_running(scan, "issuing" if walked else "scanning"),
        scanned_bytes=scanned,
        total_bytes=total,
        issued_bytes=_bytes(match["is"]),
        skipped_bytes=max(0, (total or 0) - (_bytes(to_issue) or 0)) if differs else None,
        issues_skipped="itot" not in fields and scan.function != "rebuild",
        zpool_scan_rate=_bytes(match["sr"]),
        zpool_issue_rate=_bytes(match["ir"]),
        resolution=size_resolution(match["is"] or ""),
        printed=True,
    )


def _with_progress(scan: Scan, match: re.Match[str]) -> Scan:
    """The last detail line; without a percentage it is the first stage of Solaris 11.2."""
    solaris_walk = match["pct"] is None and not scan.two_stage
    return scan._replace(
        stage=_if_running(scan, "scanning") if solaris_walk else scan.stage,
        two_stage=scan.two_stage or solaris_walk,
        processed_bytes=_bytes(match["proc"]),
        percent=_percent(match["pct"]),
        zpool_issue_rate=_bytes(match["ir"]) or scan.zpool_issue_rate,
        zpool_eta=_eta(match["eta"]) if match["eta"] else scan.zpool_eta,
    )


def activity_of(tag: str, lines: list[str], zone: tzinfo) -> Activity | None:
    """The activity of one section; None for a line of no known form."""
    stripped = [line.strip() for line in lines if line.strip()]
    if not stripped:
        return None
    found = (_activity_of(tag, whole, zone) for whole in unbroken(stripped))
    return next((activity for activity in found if activity is not None), None)


def _activity_of(tag: str, stripped: list[str], zone: tzinfo) -> Activity | None:
    head, *details = stripped
    if tag in ("remove", "expand"):
        activity = (_removal if tag == "remove" else _expansion)(head, zone)
        return activity and _with_copied(activity, details)
    if match := _CHECKPOINT.match(head):
        start = parse_date(match["date"], zone)
        return Activity("checkpoint", "exists", start=start, total_bytes=parse_size(match["n"]))
    if match := _DISCARDING.match(head):
        return Activity("checkpoint", "running", total_bytes=parse_size(match["n"]))
    if match := _CONDENSE.match(head):
        done = _bytes(match["done"]) or 0
        counts = done, _bytes(match["tot"]) or done
        state = _CONDENSE_STATES[match["state"]]
        return condense(match["type"], state, counts, match["unit"])
    return None


def _removal(head: str, zone: tzinfo) -> Activity | None:
    if match := _EVACUATION.match(head):
        start = parse_date(match["date"], zone)
        return Activity("removal", "running", vdev=disk_name(match["vdev"], None), start=start)
    if match := _REMOVED.match(head):
        # What is left of it, by the name that vdev_get_name (lib/libzfs) gives an indirect vdev.
        end, left = parse_date(match["date"], zone), f"indirect-{match['vdev']}"
        size = parse_size(match["n"])
        return Activity("removal", "finished", vdev=left, end=end, done_bytes=size)
    if match := _REMOVAL_CANCELED.match(head):
        end = parse_date(match["date"], zone)
        return Activity("removal", "canceled", vdev=disk_name(match["vdev"], None), end=end)
    return None


def _expansion(head: str, zone: tzinfo) -> Activity | None:
    if match := _EXPANSION.match(head):
        start = parse_date(match["date"], zone)
        return Activity("expansion", "running", vdev=match["vdev"], start=start)
    if match := _EXPANDED.match(head):
        end, done = parse_date(match["date"], zone), parse_size(match["n"])
        return Activity("expansion", "finished", vdev=match["vdev"], end=end, done_bytes=done)
    return None


def _with_copied(activity: Activity, details: list[str]) -> Activity:
    for line in details:
        match = _COPIED.match(line)
        if match is None:
            continue
        waiting = "paused" in match["rest"]
        return activity._replace(
            state="paused" if waiting else activity.state,
            done_bytes=parse_size(match["n"]),
            total_bytes=parse_size(match["tot"]),
            percent=float(match["pct"].replace(",", ".")) if match["pct"] else None,
            zpool_eta=parse_duration(match["eta"] or ""),
            zpool_rate=parse_size(match["rate"] or ""),
            note=match["rest"].strip(" ,") if waiting else "",
            resolution=size_resolution(match["n"]),
        )
    return activity
