"""Reasons for a pool's health in the order to read them, and what to do next."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from rich.cells import cell_len

from zconsole.pool.model import MULTIHOST, data_vdevs
from zconsole.pool.redundancy import REPAIRS
from zconsole.timeline.events import BROKEN
from zconsole.timeline.frame import TOGETHER, Frame
from zconsole.ui.display_format import DisplayFormat
from zconsole.ui.panes.headline import shown_work
from zconsole.ui.widgets.draw import in_runs

_NAME = 24
_GONE_SHOWN = 2


def all_reasons(
    frame: Frame, look: DisplayFormat, room: int, gone_shown: int = _GONE_SHOWN
) -> list[str]:
    """Return the reasons for the health, the most urgent first; ``room`` cells for a line.

    ``gone_shown`` of the missing devices are named, the others counted.
    """
    found = (*frame.health.reasons, *_uncounted(frame))
    bays = bays_of(frame) if found or frame.problem else {}
    reasons = [look.text(as_called(look.said(reason), bays)) for reason in found]
    if frame.problem and look.text(frame.problem) not in reasons:
        reasons.insert(0, look.text(frame.problem))
    more = _gone(frame, look, bays, gone_shown) if frame.problem else []
    if frame.kstat and (frame.problem or frame.kstat not in ("ONLINE", frame.state)):
        more.append(f"kernel says {look.text(frame.kstat)}")
    reasons[1:1] = more  # before the data's age, which the first line has, too
    if frame.suspended:
        others = (reason for reason in reasons if reason not in more)
        reasons = [resume_advice(frame, look, room), *more, *others]
    elif step := _next_step(frame, look, bays):
        reasons.append(step)
    if not reasons and frame.health.severity != "ok" and frame.seen.message:
        reasons.append(look.text(frame.seen.message))
    return reasons


def _uncounted(frame: Frame) -> Iterator[str]:
    """Yield old disks that are resilvered themselves, so that they don't count as redundancy."""
    repaired = any(v.scan.active and v.scan.function in REPAIRS for v in frame.scans)
    if frame.root is None or not repaired or all(entry.left for entry in frame.redundancy):
        return  # saves looking at all vdevs with every round
    for vdev in frame.root.walk():
        old = next(iter(vdev.children), None) if vdev.kind == "replacing" else None
        if old is not None and old.state == "ONLINE" and old.resilvering:
            yield f"{old.name} is repaired, too: until its replacement is filled, it doesn't count"


def _next_step(frame: Frame, look: DisplayFormat, bays: Mapping[str, str]) -> str:
    """Return ``replace bay05 (C)`` if disks have failed and none is being replaced, else empty."""
    if frame.root is None or frame.problem:
        return ""
    vdevs = [vdev for top in data_vdevs(frame.root) for vdev in top.walk()]
    failed = [vdev for vdev in vdevs if not vdev.children and vdev.state in BROKEN]
    if not failed or any(vdev.kind == "replacing" for vdev in vdevs):
        return ""
    key = look.keys.shown("swap")
    if len(failed) > 1:
        return f"replace the failed disks ({key})"
    does = "replace" if failed[0].state == "FAULTED" else "reconnect or replace"
    return f"{does} {look.text(bays.get(failed[0].name, failed[0].name))} ({key})"


def _gone(frame: Frame, look: DisplayFormat, bays: Mapping[str, str], most: int) -> list[str]:
    """Return the devices that left after the last answer, and when."""
    gone = [row for row in frame.rows if row.gone]
    said = [
        f"{look.middle(bays.get(row.vdev.name, row.vdev.name), _NAME)} missing since "
        f"{look.when(row.missing_since or 0.0, frame.t)}"
        for row in gone[:most]
    ]
    rest = len(gone) - len(said)
    return [*said, f"{rest} more missing"] if rest else said


def bays_of(frame: Frame) -> dict[str, str]:
    """Return the bays of devices, by name; only those whose name doesn't tell the bay."""
    disks = ((row.vdev.name, row.vdev.disk) for row in frame.rows)
    return {name: disk.bay for name, disk in disks if disk and disk.bay and disk.bay != name}


_WORD = re.compile(r"[\w/@+:.-]+")
_ENDS = "/@+:.-"
"""Punctuation after a name, which is not part of it."""


def called_names(frame: Frame) -> dict[str, str]:
    """Return displayed names of devices, by name and path; only if they differ from the name."""
    found = ((row.vdev, row.vdev.called) for row in frame.rows)
    pairs = [(vdev, called) for vdev, called in found if called != vdev.name]
    return {word: called for vdev, called in pairs for word in (vdev.name, vdev.path) if word}


def as_called(text: str, names: Mapping[str, str]) -> str:
    """Return a text with the device names in it replaced as ``names`` says."""

    def called(word: re.Match[str]) -> str:
        name = word[0].rstrip(_ENDS)
        return names.get(name, name) + word[0][len(name) :]

    return _WORD.sub(called, text) if names else text


_NAME_TO_RECONNECT = 17
_NAMED = 2
"""Most devices without a bay that are named; the others are counted."""


def resume_advice(frame: Frame, look: DisplayFormat, room: int) -> str:
    """Return how to resume a suspended pool.

    ``reconnect Slot 04 (serial S5R), then clear the pool (A)``; a single disk is named by bay and
    serial number, several by their bays. If the names take more than ``room`` cells, the disks are
    counted instead, so that the key isn't cut.
    """
    if frame.seen.suspension == MULTIHOST:
        ways = [
            "make sure no other host has the pool, then reboot and import it; do not clear it",
            "no other host has it? then reboot and import",
            "reboot, then import",
        ]
        return next((way for way in ways if cell_len(way) <= room), ways[-1])
    key, disks = look.keys.shown("actions"), [row.vdev for row in frame.missing_devices]
    if not disks:
        there = "once its disks are back,"
        if frame.has_every_device:
            back = look.text(_back(frame))
            there = f"{back} is back:" if back else "its disks are there:"
        ways = [f"{each} clear the pool ({key})" for each in (there, "its disks are there:")]
        return ways[0] if cell_len(ways[0]) <= room else ways[1]
    bays = [look.text(vdev.disk.bay) for vdev in disks if vdev.disk and vdev.disk.bay]
    bare = [look.text(vdev.name) for vdev in disks if not (vdev.disk and vdev.disk.bay)]
    names = [look.middle(name, _NAME_TO_RECONNECT) for name in bare[:_NAMED]]
    more = [f"{len(bare) - _NAMED} more"] if len(bare) > _NAMED else []
    listed = [*in_runs(bays), *names, *more]
    *first, last = listed
    said = f"{', '.join(first)} and {last}" if first else last
    counts = f"{len(disks)} disks" if len(disks) > 1 else "the disk"
    alone = [look.text(disks[0].called)] if bays and len(disks) == 1 else []
    ways = [f"reconnect {each}, then clear the pool ({key})" for each in (*alone, said, counts)]
    return next((way for way in ways if cell_len(way) <= room), ways[-1])


def _back(frame: Frame) -> str:
    """Return how to find the disk that suspended the pool and is back; empty if not just one."""
    left = [event for event in frame.events if event.name == "device_gone"]
    last = {event.vdev for event in left if left[-1].t - event.t <= TOGETHER}
    called = [row.vdev.called for row in frame.rows if row.vdev.name in last]
    return called[0] if len(called) == 1 else ""


UNEVEN = 0.2
"""Spread of the fills from which an idle pool should be rebalanced."""


def wanted_action(frame: Frame) -> str:
    """Return the title of the most useful action for a pool; empty for none."""
    leaves = (row.vdev for row in frame.rows if not row.vdev.children)
    if frame.troubles or any(leaf.state in BROKEN or leaf.errors.total for leaf in leaves):
        return "swap"
    is_calm = frame.health.word == "OK" and shown_work(frame) is None
    return "rebalance" if is_calm and (frame.balance.spread or 0.0) >= UNEVEN else ""
