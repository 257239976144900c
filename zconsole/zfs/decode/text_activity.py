"""The ``remove:``, ``checkpoint:``, ``expand:`` and ``condense:`` lines of ``zpool status``.

Source: print_removal_status, print_checkpoint_status and print_raidz_expand_status in
cmd/zpool/zpool_main.c (2.3.9); ``condense:`` from its 2026 development branch.
"""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import tzinfo

from zconsole.pool.model import Activity
from zconsole.units import parse_duration, parse_size, size_resolution
from zconsole.zfs.decode.names import disk_name
from zconsole.zfs.decode.values import parse_date, unbroken

_N = r"\d+(?:[.,]\d+)?[BKMGTPE]?"
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
    r"(?P<type>\S+): (?P<state>condensing|cancell?ed|done)(?:, (?P<done>\d+)/(?P<tot>\d+))?"
)
_CONDENSE_STATES = {"condensing": "running", "done": "finished"}


def activity_of(tag: str, lines: list[str], zone: tzinfo) -> Activity | None:
    """The activity of one section; None for a line of no known form."""
    stripped = [line.strip() for line in lines if line.strip()]
    if not stripped:
        return None
    found = (_activity_of(tag, whole, zone) for whole in unbroken(stripped))
    return next((activity for activity in found if activity is not None), None)


def _activity_of(tag: str, stripped: list[str], zone: tzinfo) -> Activity | None:
    readers = {"remove": _removal, "expand": _expansion}
    if tag in readers:
        activity = readers[tag](stripped[0], zone)
        return activity and _with_copied(activity, stripped[1:])
    return _checkpoint(stripped[0], zone) if tag == "checkpoint" else _condense(stripped[0])


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
        return replace(
            activity,
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


def _checkpoint(head: str, zone: tzinfo) -> Activity | None:
    if match := _CHECKPOINT.match(head):
        start = parse_date(match["date"], zone)
        return Activity("checkpoint", "exists", start=start, total_bytes=parse_size(match["n"]))
    if match := _DISCARDING.match(head):
        return Activity("checkpoint", "running", total_bytes=parse_size(match["n"]))
    return None


def _condense(head: str) -> Activity | None:
    """Counts are blocks or entries, not bytes, so that only the percentage is kept."""
    match = _CONDENSE.match(head)
    if match is None:
        return None
    done, total = int(match["done"] or 0), int(match["tot"] or 0)
    return Activity(
        kind="condense",
        state=_CONDENSE_STATES.get(match["state"], "canceled"),
        vdev=match["type"],
        percent=100.0 * done / total if total else None,
        note=head,
    )
