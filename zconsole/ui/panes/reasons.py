"""What is said of a pool in sentences: reasons for its health, what limits its scan, what to do.

Reasons come in the order to read them. The scan pane has labeled texts: the limit of the scan, a
suggestion, and devices in trouble.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from rich.cells import cell_len

from zconsole.pool.model import MULTIHOST, HostLoad, data_vdevs
from zconsole.pool.redundancy import REPAIRS
from zconsole.timeline.events import BROKEN
from zconsole.timeline.frame import AUTOPILOT, SWAP, TOGETHER, Frame
from zconsole.ui.display_format import DisplayFormat
from zconsole.ui.panes.pane import Ink
from zconsole.ui.widgets.draw import Line, Span, at_most, beside, in_runs
from zconsole.units import counted, percent

if TYPE_CHECKING:
    from zconsole.diagnosis.bottleneck.finding import Suggestion
    from zconsole.diagnosis.device_errors.faults import CommonCause, DeviceFault


_GONE_NAME = 24
_GONE_SHOWN = 2


def all_reasons(
    frame: Frame, look: DisplayFormat, room: int, gone_shown: int = _GONE_SHOWN
) -> list[str]:
    """Return the reasons for the health, the most urgent first; ``room`` cells for a line.

    ``gone_shown`` of the missing devices are named, the others counted.
    """
    found = [
        *(
            f"redundancy left: {counted(entry.left, 'disk')}, {entry.reservation}"
            for entry in frame.redundancy
            if entry.reservation
        ),
        *frame.health.reasons,
    ]
    # Old disks that are resilvered themselves don't count as redundancy, where none is left.
    repaired = any(v.scan.active and v.scan.function in REPAIRS for v in frame.scans)
    bare = repaired and not all(entry.left for entry in frame.redundancy)
    for vdev in frame.root.walk() if frame.root is not None and bare else ():
        old = next(iter(vdev.children), None) if vdev.kind == "replacing" else None
        if old is not None and old.state == "ONLINE" and old.resilvering:
            until = "until its replacement is filled, it doesn't count"
            found.append(f"{old.name} is repaired, too: {until}")
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
    elif not frame.problem:
        unused = next((each.name for each in frame.spares if each.kind == "unused"), None)
        if unused is not None:
            spare = look.text(bays.get(unused, unused))
            reasons.insert(1, f"use {spare} ({look.keys.shown('actions')})")
        elif step := _next_step(frame, look, bays):
            reasons.append(step)
    if not reasons and frame.health.severity != "ok" and frame.seen.message:
        reasons.append(look.text(frame.seen.message))
    return reasons


def _next_step(frame: Frame, look: DisplayFormat, bays: Mapping[str, str]) -> str:
    """Return ``change bay05 (C)`` if disks have failed and none is being replaced, else empty.

    Disks that the line of an open swap names have their order there.
    """
    if frame.root is None:
        return ""
    vdevs = [vdev for top in data_vdevs(frame.root) for vdev in top.walk()]
    swaps = ", ".join(v.activity.note for v in frame.activities if v.activity.kind == SWAP)
    failed = [
        vdev
        for vdev in vdevs
        if not vdev.children and vdev.state in BROKEN
        if not re.search(rf"(?<!\w){re.escape(bays.get(vdev.name, vdev.name))}(?!\w)", swaps)
    ]
    if not failed or any(vdev.kind == "replacing" for vdev in vdevs):
        return ""
    common = frame.common_cause_of
    alone = [vdev for vdev in failed if vdev.name not in common]
    if not alone:
        return as_called(_common(common[failed[0].name], frame, look), bays)
    failed = alone
    key = look.keys.shown("swap")
    if len(failed) > 1:
        return f"change the failed disks ({key})"
    does = "change" if failed[0].state == "FAULTED" else "reconnect or change"
    return f"{does} {look.text(bays.get(failed[0].name, failed[0].name))} ({key})"


def _gone(frame: Frame, look: DisplayFormat, bays: Mapping[str, str], most: int) -> list[str]:
    """Return the devices that left after the last answer, and when."""
    gone = [row for row in frame.rows if row.gone]
    said = [
        f"{look.middle(bays.get(row.vdev.name, row.vdev.name), _GONE_NAME)} missing since "
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
"""Spread of the fills from which an idle pool should be rebalanced, as far as files cause it."""


def wanted_action(frame: Frame) -> str:
    """Return the title of the most useful action for a pool; empty for none."""
    leaves = (row.vdev for row in frame.rows if not row.vdev.children)
    bad = (leaf.name for leaf in leaves if leaf.state in BROKEN or leaf.errors.total)
    alone = any(fault.common is None for fault in frame.troubles)
    if alone or not frame.common_cause_of.keys() >= {*bad}:
        return "swap"
    is_calm = frame.health.word == "OK" and frame.work is None
    return "rebalance" if is_calm and frame.balance.most_gain >= UNEVEN else ""


_SURE = 0.5
"""Certainty (0 to 1) below which the limit is called "perhaps" one."""
_NAME = 22
"""Cells of a device's name in a text that takes more lines than there are."""
_BLANK: list[Line] = [()]


def advice_lines(ink: Ink, *, running: int) -> list[Line]:
    """Return lines on the limit of the running scan, a suggestion, and devices in trouble.

    The number of lines does not depend on what there is to say. On a low screen there are only one
    or two lines, with several ``running`` scans just one.
    """
    is_running = running > 0
    if ink.compact:
        said, rows = _low(ink, is_running), 1 + (running == 1)
        return [*said[-rows:], *_BLANK * (rows - len(said))]
    most = 2 if ink.roomy else 1
    if not is_running:
        told = ink.frame.troubles and not ink.frame.problem
        return _troubles(most, ink) if told else _BLANK * most
    if ink.frame.problem:
        said = fixed("slowed by", "unknown while the pool does not answer", 1, ink, "dim")
        return [*said, *_BLANK * (2 * most + 2 * ink.roomy)]
    lines = _limited(most, ink)
    if not ink.roomy:
        return lines
    # Lazy: the default screen size, which has no room for this, paints faster without it.
    from zconsole.tunables.catalog import BY_NAME, unusual

    found = unusual(ink.frame.tunables, ink.frame.version)
    shown = ((BY_NAME[name].rounded, name, *both) for name, both in found.items())
    values = ", ".join(
        f"{name}={show(now)} (default {show(usual)})" for show, name, now, usual in shown
    )
    if ink.frame.tunables and not values:
        values = "defaults"
    load = machine(ink.frame.host, ink.look)
    return [*lines, *fixed("tunables", values, 1, ink), *fixed("machine", load, 1, ink)]


def _low(ink: Ink, is_running: bool) -> list[Line]:
    """Return the lines for a low screen: the limit, then the worst trouble, else a suggestion."""
    if ink.frame.suspended:
        return fixed("try", resume_advice(ink.frame, ink.look, ink.width - LABEL - 2), 1, ink)
    if ink.frame.problem:
        return []
    troubles = _troubles(1, ink) if ink.frame.troubles else []
    if not is_running:
        return troubles
    return [*_limit(ink, 1), *(troubles or _suggestion(1, ink))]


def _limit(ink: Ink, rows: int) -> list[Line]:
    """Return lines on what the running scan waits for: one, or as many as needed of ``rows``."""
    limit, scan = ink.frame.limit, ink.frame.scan
    if limit is None or limit.cause == "unclear":
        is_paused = scan is not None and scan.scan.state == "paused"
        return fixed("slowed by", "" if is_paused else "not known yet", 1, ink, "dim")
    doubt = "perhaps " if limit.sure < _SURE else ""
    told = as_called(limit.text, ink.names)
    if limit.suggestion.tunable in _steered(ink.frame):
        told = told.replace("a tunable: ", "the autopilot: ", 1)
    text = _with_short_names("slowed by", f"{doubt}{ink.look.rates(told)}", 1, ink)
    lines = fixed("slowed by", text, rows, ink)
    return [line for number, line in enumerate(lines) if line or not number]


def _limited(most: int, ink: Ink) -> list[Line]:
    """Return a line for the limit, and ``most`` lines each for suggestion and troubles.

    A long limit or suggestion also gets the lines of parts that have nothing to say.
    """
    told = ink.frame.troubles
    advice = _suggestion(most if told else 2 * most, ink)
    if not told and any(advice[most:]):
        return [*_limit(ink, 1), *advice]
    if advice and told:
        return [*_limit(ink, 1), *advice[:most], *_troubles(most, ink)]
    # The lines below must not move for a longer limit; the zoomed pane shows all of it.
    limits = _limit(ink, 1 if advice and not ink.whole else 1 + most)
    rest = most + 1 - len(limits)
    if not advice:
        return [*limits, *_BLANK * rest, *_troubles(most, ink)]
    troubles = _troubles(max(1, rest), ink) if rest or ink.whole else []
    return [*limits, *advice[:most], *troubles]


def suggested(frame: Frame) -> Suggestion | None:
    """Return the suggestion on the limit; None if there is none, or the limit is unclear.

    While an autopilot runs, None also for starting it, and for setting a tunable that it sets, as
    that would end it.
    """
    limit = frame.limit
    if limit is None or limit.cause == "unclear" or not limit.suggestion.words:
        return None
    found = limit.suggestion
    steered = _steered(frame)
    return None if steered and (found.act == "hold" or found.tunable in steered) else found


def _steered(frame: Frame) -> Sequence[str]:
    """Return the names of the tunables that a running autopilot sets; empty if none runs."""
    if not any(view.activity.kind == AUTOPILOT for view in frame.activities):
        return ()
    # Lazy import: mostly no autopilot runs, and the first paint waits for all that is imported.
    from zconsole.tunables.hold_latency import LEVERS

    return LEVERS


def _suggestion(rows: int, ink: Ink) -> list[Line]:
    """Return the suggestion in exactly ``rows`` lines; no lines if there is none."""
    found = suggested(ink.frame)
    if found is None:
        return []
    text = as_called(ink.look.said(found.text), ink.names)
    return fixed("try", _with_short_names("try", text, rows, ink), rows, ink)


def _with_short_names(label: str, text: str, rows: int, ink: Ink) -> str:
    """Shorten long device names in a text that would take more than ``rows`` lines."""
    if not ink.whole and len(paragraph(label, text, ink.look, ink.width)) > rows:
        for row in ink.frame.rows:
            name = row.vdev.name
            if len(name) > _NAME and name in text:
                text = text.replace(name, ink.look.middle(name, _NAME))
    return text


def _troubles(rows: int, ink: Ink) -> list[Line]:
    """Return lines on devices with new errors or flaps, the worst first, with the likely cause."""
    found = ink.frame.troubles
    if not found:
        since = ink.frame.quiet_since
        none = "none" if since is None else f"none since {ink.look.when(since, ink.frame.t)}"
        return fixed("new errors", none, rows, ink, "dim")
    # What several have in common is one line; where there is room for all, each has its own, too.
    alone = (fault for fault in found if ink.whole or fault.common is None)
    told: list[Callable[[int, Ink], list[Line]]]
    told = [partial(_cause, each) for each in ink.frame.common_causes]
    told += [partial(_trouble, each) for each in alone]
    if len(told) == 1 or (rows == 1 and not ink.whole):
        return told[0](rows, ink)
    return [line for tell in (told if ink.whole else told[:rows]) for line in tell(1, ink)]


def _cause(cause: CommonCause, rows: int, ink: Ink) -> list[Line]:
    text = as_called(_common(cause, ink.frame, ink.look), ink.names)
    return fixed("one cause", text, rows, ink, "warning")


def _common(cause: CommonCause, frame: Frame, look: DisplayFormat) -> str:
    return cause.text(look.when(cause.since, frame.t))


def _trouble(trouble: DeviceFault, rows: int, ink: Ink) -> list[Line]:
    """Return a trouble in full if it fits, else its first clauses; the row's details have all."""

    def _fits(text: str) -> bool:
        return len(paragraph(trouble.label, text, ink.look, ink.width)) <= rows

    def _begins(text: str) -> bool:
        return _fits("; ".join((*text.split("; ")[:2], "…")))

    text = as_called(trouble.text, ink.names)
    if not ink.whole and not _fits(text):
        said = trouble.text.removeprefix(f"{trouble.name}: ").partition(" (")[0]
        name = ink.names.get(trouble.name) or ink.look.middle(trouble.name, _NAME)
        # The bay alone, without the serial number, may leave room for the errors beside the cause.
        bay = bays_of(ink.frame).get(trouble.name, name)
        told, (cause, *counts) = [said], said.split("; ")
        if counts and trouble.deltas.total and " error" in counts[0]:
            # Else their number alone, without the kinds.
            told.append("; ".join((cause, counted(trouble.deltas.total, "error"), *counts[1:])))
        ways = [f"{called}: {each}" for each in told for called in (name, bay)]
        text = next(filter(_begins, ways), ways[0])
    return fixed(trouble.label, text, rows, ink, "warning")


LABEL = 12
"""Cells of the label before a paragraph."""


def fixed(label: str, text: str, rows: int, ink: Ink, role: str = "") -> list[Line]:
    """Return a labeled text in exactly ``rows`` lines, filled with blank ones.

    Clauses that do not fit are omitted in full, then phrases of the first clause; what still does
    not fit is cut.
    """
    lines = paragraph(label, text, ink.look, ink.width)
    for shorter in () if ink.whole or len(lines) <= rows else _shorter(text):
        cut = shorter + ink.look.glyphs.ellipsis
        lines = paragraph(label, cut, ink.look, ink.width)
        if len(lines) <= rows:
            break
    shown = lines if ink.whole else at_most(rows, lines, ink.look.glyphs.ellipsis)
    blank: Line = ()
    return [  # all but the label in the role
        *((head, *(Span(span.text, role or span.role) for span in said)) for head, *said in shown),
        *[blank] * (rows - len(shown)),
    ]


def _shorter(text: str) -> Iterator[str]:
    """Yield ever shorter versions: without the last aside or clause, then without phrases.

    The last version is the whole text again, to be cut.
    """
    clauses = text.split("; ")
    for kept in range(len(clauses), 0, -1):
        said = "; ".join(clauses[:kept])
        if kept < len(clauses):
            yield f"{said}; "
        if said.endswith(")"):
            yield said.rpartition("(")[0]
    phrases = clauses[0].split(", ")
    for kept in range(len(phrases) - 1, 0, -1):
        said = ", ".join(phrases[:kept])
        if said.count("(") == said.count(")"):
            yield f"{said}, "
    yield text


def paragraph(label: str, text: str, look: DisplayFormat, width: int) -> list[Line]:
    """Return text from outside, wrapped beside its label; empty without text."""
    if not text:
        return []
    head = Span(f" {label:<{LABEL}}", "dim")
    return [*beside(head, look.text(text), max(LABEL + 11, width - 1))]


def machine(host: HostLoad | None, look: DisplayFormat) -> str:
    """Return ``processor 34 %, memory 5.10G of 16.0G used, ARC 3.20G``; empty if unknown."""
    if host is None:
        return ""
    known = [] if host.cpu is None else [f"processor {percent(host.cpu)}"]
    if host.memory_total is not None and host.memory_available is not None:
        used = look.size(host.memory_total - host.memory_available)
        known.append(f"memory {used} of {look.size(host.memory_total)} used")
    if host.arc_bytes is not None:
        known.append(f"ARC {look.size(host.arc_bytes)}")
    return ", ".join(known)
