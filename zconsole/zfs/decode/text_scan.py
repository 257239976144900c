"""Parses the ``scan:`` (Solaris 10: ``scrub:``) section of ``zpool status`` in every dialect.

Source: print_scan_scrub_resilver_status, print_rebuild_status_impl and print_err_scrub_status in
cmd/zpool/zpool_main.c (0.6.5, 0.7.13, 0.8.6, 2.1.15, 2.3.9); Solaris 10 and 11.2 from samples.

Also parses the ``remove:``, ``checkpoint:``, ``expand:`` and ``condense:`` lines:
print_removal_status, print_checkpoint_status and print_raidz_expand_status there (2.3.9),
print_condense_status (master of August 2026).

Groups of the patterns are named like the fields of ``Scan`` and ``Activity`` that they set
(``_fields_of``).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import tzinfo
from typing import Any

from zconsole.pool.model import Activity, Scan
from zconsole.units import parse_duration, parse_size, size_resolution
from zconsole.zfs.decode.scans import condense
from zconsole.zfs.decode.values import disk_name, parse_date, rejoined

_LONGEST = 100 * 365 * 86400
"""Seconds; a longer time to go is a fault of the program that printed it."""
_N = r"\d+(?:[.,]\d+)?[BKMGTPE]?"
_P = r"-?(?:nan|inf|\d+(?:[.,]\d+)?)"
_CLOCK = r"(?:\d+ days? )?\d+:\d\d:\d\d"
_TIME = rf"(?:{_CLOCK}|[\dhdms]+)"
_WHAT = r"(?P<thorough>thorough )?(?P<what>error scrub|scrub|resilver)(?: \((?P<vdev>.+?)\))?"

_STARTED = re.compile(
    rf"{_WHAT} (?:in progress since (?P<start>.+?)|paused since (?P<paused_since>.+?))"
    r"(?P<held> \(paused\))?$"
)
_OLD: Mapping[str, bool | None] = {"two_stage": False, "thorough": None}
"""Fields for dialects without thorough scrubs."""
_OLD_END = (
    r"(?: after (?P<duration>[\dhdms]+))?(?: with (?P<errors>\d+) errors)?(?: on (?P<end>.+))?"
)
_HEADS: Sequence[tuple[re.Pattern[str], str, Mapping[str, Any]]] = tuple(
    (re.compile(pattern), state, more)
    for pattern, state, more in (
        (
            r"(?:(?P<thorough>thorough )?(?P<what>scrub) repaired"
            r"|resilvered(?: \((?P<vdev>.+?)\))?)"
            rf" (?P<processed_bytes>{_N})(?: in (?P<duration>{_TIME}))?"
            r"(?: with (?P<errors>\d+) errors)?(?: on (?P<end>.+))?",
            "finished",
            {},
        ),
        (
            rf"{_WHAT} in progress(?: for (?P<duration>[\dhdms]+))?, (?P<percent>{_P})% done"
            r"(?:, (?P<zpool_eta>[\dhdms]+) to go)?",
            "running",
            _OLD,
        ),
        (rf"{_WHAT} canceled(?: on (?P<end>.+))?", "canceled", {}),
        (rf"{_WHAT} completed{_OLD_END}", "finished", _OLD),
        (rf"{_WHAT} stopped{_OLD_END}", "canceled", _OLD),
        (
            rf"scrubbed \d+ error blocks in (?P<duration>{_CLOCK})(?: on (?P<end>.+))?",
            "finished",
            {"function": "errorscrub", "two_stage": False},
        ),
    )
)
"""Patterns of first lines that describe a whole scan, with its state and further fields."""
_BEGAN = re.compile(r"(?:thorough )?(?:error )?scrub started on\s+(?P<start>.+)")
_ONE_STAGE = re.compile(
    rf"(?P<scanned_bytes>{_N}) scanned out of (?P<total_bytes>{_N})"
    rf"(?: at (?P<zpool_scan_rate>{_N})/s)?(?:, (?P<zpool_eta>[\dhdms]+) to go)?"
)
_TWO_STAGE = re.compile(
    rf"(?P<scanned_bytes>{_N}) scanned(?: at (?P<zpool_scan_rate>{_N})/s)?,"
    rf" (?P<issued_bytes>{_N}) issued(?: (?:at )?(?P<zpool_issue_rate>{_N})/s)?"
    rf"(?:, (?P<total_bytes>{_N}) total)?"
)
_SLASHED = re.compile(
    rf"(?P<scanned_bytes>{_N}) / (?P<total_bytes>{_N}) scanned"
    rf"(?: at (?P<zpool_scan_rate>{_N})/s)?(?:, (?P<issued_bytes>{_N}) / (?P<to_issue>{_N}) issued"
    rf"(?: at (?P<zpool_issue_rate>{_N})/s)?)?"
)
_SOLARIS_SCANNED = re.compile(rf"(?P<scanned_bytes>{_N}) scanned")
_DONE_SO_FAR = re.compile(
    rf"(?P<processed_bytes>{_N}) (?:resilvered|repaired)(?: at (?P<zpool_issue_rate>{_N})/s)?"
    rf"(?:, (?P<percent>{_P})% done)?(?:, (?P<zpool_eta>{_TIME}) to go)?"
)
_ERROR_BLOCKS = re.compile(rf"(?P<percent>{_P})% done")

_ACTIVITIES = tuple(
    (kind, state, re.compile(pattern))
    for kind, state, pattern in (
        ("removal", "running", r"Evacuation of (?P<vdev>.+?) in progress since (?P<start>.+)"),
        (
            "removal",
            "finished",
            rf"Removal of vdev (?P<vdev>\d+) copied (?P<done_bytes>{_N}) in \S+?,"
            r" completed on (?P<end>.+)",
        ),
        ("removal", "canceled", r"Removal of (?P<vdev>.+?) canceled on (?P<end>.+)"),
        ("expansion", "running", r"expansion of (?P<vdev>.+?) in progress since (?P<start>.+)"),
        (
            "expansion",
            "finished",
            rf"expanded (?P<vdev>.+?) copied (?P<done_bytes>{_N}) in {_TIME}, on (?P<end>.+)",
        ),
        ("checkpoint", "exists", rf"created (?P<start>.+?), consumes (?P<total_bytes>{_N})"),
        ("checkpoint", "running", rf"discarding, (?P<total_bytes>{_N}) remaining"),
    )
)
"""Kind and state of an activity, and the pattern of its line."""
_COPIED = re.compile(
    rf"(?P<done_bytes>{_N}) (?:copied out of|/) (?P<total_bytes>{_N})(?: copied)?"
    rf"(?: at (?P<zpool_rate>{_N})/s)?(?:, (?P<percent>{_P})% done)?"
    rf"(?:, (?P<zpool_eta>{_TIME}) to go)?(?P<rest>.*)"
)
_CONDENSE = re.compile(
    rf"(?P<type>\S+): (?P<state>condensing|cancelled|done), (?P<done>{_N})(?:/(?P<total>{_N}))?"
    r" (?P<unit>\S+) done"
)
_CONDENSE_STATES = {"condensing": "running", "cancelled": "canceled", "done": "finished"}


def _percent(text: str) -> float | None:
    """Convert a printed percentage; None for nan and inf, which a total of zero gives."""
    return None if text.endswith(("nan", "inf")) else float(text.replace(",", "."))


def _eta(text: str) -> float | None:
    """Return the seconds left.

    None for the hundreds of thousands of years that Solaris 10 can print.
    """
    seconds = parse_duration(text)
    return seconds if seconds is not None and seconds < _LONGEST else None


_SIZES = (
    *("scanned_bytes", "issued_bytes", "total_bytes", "processed_bytes", "done_bytes"),
    *("zpool_scan_rate", "zpool_issue_rate", "zpool_rate"),
)
_READ: Mapping[str, Callable[[str], Any]] = {
    "vdev": str,
    "errors": int,
    "percent": _percent,
    "duration": parse_duration,
    "zpool_eta": _eta,
    **dict.fromkeys(_SIZES, parse_size),
}
_DATES = ("start", "end", "paused_since")


def _fields_of(match: re.Match[str], zone: tzinfo) -> dict[str, Any]:
    """Return the fields that a line sets, by the names of its groups."""
    found = {name: text for name, text in match.groupdict().items() if text is not None}
    dates = {name: parse_date(found[name], zone) for name in _DATES if name in found}
    return {**{name: _READ[name](text) for name, text in found.items() if name in _READ}, **dates}


def scan_of(lines: list[str], zone: tzinfo) -> Scan | None:
    """Parse the scan in a section's lines; None for ``none requested`` and anything else."""
    whole: list[str] = []
    for line in (line.strip() for line in lines if line.strip()):
        if whole and whole[-1].endswith(","):
            whole[-1] += f" {line}"  # a narrow window or a mail broke the line there
        else:
            whole.append(line)
    if not whole:
        return None
    tried = [_scan_of(each, zone) for each in rejoined(whole)]
    dated = (s for s in tried if s is not None and (s.start or s.paused_since or s.end))
    return next(dated, tried[-1])


def _scan_of(stripped: list[str], zone: tzinfo) -> Scan | None:
    head, *details = stripped
    if match := _STARTED.match(head):
        state = "paused" if match["held"] or match["paused_since"] else "running"
        scan = _scan(match, zone, state, {"two_stage": match["what"] != "error scrub"})
        for line in details:
            scan = scan._replace(**_detail(scan, line, zone))
        return scan
    matches = ((pattern.match(head), state, more) for pattern, state, more in _HEADS)
    found = (_scan(match, zone, state, more) for match, state, more in matches if match)
    return next(found, None)


def _scan(match: re.Match[str], zone: tzinfo, state: str, more: Mapping[str, Any]) -> Scan:
    groups = match.groupdict()
    what = groups.get("what") or "resilver"
    repair = "rebuild" if groups.get("vdev") else "resilver"
    function = {"error scrub": "errorscrub", "resilver": repair}.get(what, what)
    thorough = groups.get("thorough") is not None if function == "scrub" else None
    known = {"function": function, "thorough": thorough, **_fields_of(match, zone), **more}
    return Scan(state=state, **known)


def _detail(scan: Scan, line: str, zone: tzinfo) -> dict[str, Any]:
    """Return the fields that a line below the first adds; an unknown line adds nothing."""
    running = scan.state == "running"
    more: dict[str, Any] = {}
    if match := _BEGAN.match(line):
        pass
    elif match := _ONE_STAGE.match(line):
        rounding = size_resolution(match["scanned_bytes"])
        more = {"resolution": rounding, "printed": True, "two_stage": False}
    elif match := _TWO_STAGE.match(line) or _SLASHED.match(line):
        more = _two_stages(scan, match)
    elif match := _DONE_SO_FAR.match(line):
        if match["percent"] is None and not scan.two_stage:  # the first stage of Solaris 11.2
            more = {"stage": "scanning" if running else None, "two_stage": True}
    elif match := _SOLARIS_SCANNED.fullmatch(line):
        # Solaris 11.2's second stage: the walk is over; the amount left is not printed.
        more = {"stage": "issuing" if running else None}
    elif scan.function == "errorscrub":
        match = _ERROR_BLOCKS.match(line)
    return {**_fields_of(match, zone), **more} if match else {}


def _two_stages(scan: Scan, match: re.Match[str]) -> dict[str, Any]:
    """Return the fields of a two-stage scan.

    0.8 to 2.1 print ``X scanned, Y issued, T total``; 2.2+ ``X / T scanned, Y / U issued``.
    """
    slashed = "to_issue" in match.groupdict()
    scanned, total = parse_size(match["scanned_bytes"]), match["total_bytes"]
    walked = match["scanned_bytes"] == total or (
        slashed and match["zpool_scan_rate"] is None and bool(scanned)
    )
    to_issue = match["to_issue"] if slashed else None
    skipped = None
    if to_issue is not None and to_issue != total:
        skipped = max(0, (parse_size(total) or 0) - (parse_size(to_issue) or 0))
    stage = "issuing" if walked else "scanning"
    return {
        "stage": stage if scan.state == "running" else None,
        "skipped_bytes": skipped,
        "issues_skipped": not slashed and scan.function != "rebuild",
        "resolution": size_resolution(match["issued_bytes"] or ""),
        "printed": True,
    }


def activity_of(lines: list[str], zone: tzinfo) -> Activity | None:
    """Parse the activity in a section; None if no line has a known format."""
    stripped = [line.strip() for line in lines if line.strip()]
    if not stripped:
        return None
    found = (_activity_of(whole, zone) for whole in rejoined(stripped))
    return next((activity for activity in found if activity is not None), None)


def _activity_of(stripped: list[str], zone: tzinfo) -> Activity | None:
    head, *details = stripped
    for kind, state, pattern in _ACTIVITIES:
        if (match := pattern.match(head)) is None:
            continue
        found = _fields_of(match, zone)
        if kind == "removal":
            # Its remains have the name that vdev_get_name (lib/libzfs) gives them.
            left = f"indirect-{found['vdev']}"
            found["vdev"] = left if state == "finished" else disk_name(found["vdev"], None)
        return _with_copied(Activity(kind, state, **found), details, zone)
    if match := _CONDENSE.match(head):
        done = parse_size(match["done"]) or 0
        counts = done, parse_size(match["total"] or "") or done
        return condense(match["type"], _CONDENSE_STATES[match["state"]], counts, match["unit"])
    return None


def _with_copied(activity: Activity, details: list[str], zone: tzinfo) -> Activity:
    match = next((match for line in details if (match := _COPIED.match(line))), None)
    if match is None:
        return activity
    waiting = "paused" in match["rest"]
    return activity._replace(
        **_fields_of(match, zone),
        state="paused" if waiting else activity.state,
        note=match["rest"].strip(" ,") if waiting else "",
        resolution=size_resolution(match["done_bytes"]),
    )
