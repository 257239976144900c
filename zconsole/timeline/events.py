"""Events of a pool: those that the kernel reports, and changes between two samples.

If a change is reported twice, by the kernel and by the console that saw it, one event is kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from math import inf

from zconsole.pool.health import STANDING
from zconsole.pool.model import (
    APART,
    REPAIRING,
    Event,
    Placed,
    Pool,
    Sample,
    SampleFailure,
    Scan,
    Vdev,
    is_group,
)
from zconsole.pool.redundancy import REPAIRS, is_complete
from zconsole.pool.scan_outcome import started

MAX_EVENTS = 500
"""Events kept per pool."""
BROKEN = ("FAULTED", "UNAVAIL", "REMOVED")
"""States that no command sets, except ``zpool offline -f``."""
LEAST_LEAP = 60.0
"""Seconds of a change of the clock from which remembered times would be misleading."""
Tree = Mapping[str, Placed]
"""Key to vdev, as returned by ``zconsole.pool.model.placed``."""


def is_ahead(at: float | None, now: float) -> bool:
    """Return whether a time was set by a clock that was ahead, and has been set back since."""
    return at is not None and at >= now + LEAST_LEAP


def device_changes(at: float, old: Tree, new: Tree) -> Iterator[Event]:
    """Yield events for leaves that changed state, came or went, and error counters that rose.

    Devices are matched by key, else by name: without GUIDs a key is the path through the tree,
    which changes when a replacement takes a device's place. A new disk with the name of the one it
    replaces is a different device: its GUID differs, or the other is called ``sdc/old`` now. The
    events of a hot spare are those of its own row, not of the place where it is in use.
    """
    before, after = (
        {key: place for key, place in tree.items() if not place.vdev.children}
        for tree in (old, new)
    )
    names = {_role(place): place for place in before.values()}
    roles = {_role(place) for place in after.values()}
    for name, is_spare in roles - names.keys():
        if (base := (name.removesuffix("/old"), is_spare)) in names:
            names[name, is_spare] = names.pop(base)
    added = set[str]()
    for key, place in after.items():
        name, is_spare = _role(place)
        known = before.get(key)
        if known is None:
            known = names.get((name, is_spare))
            if known is not None and None not in (known.vdev.guid, place.vdev.guid):
                known = None
        if known is None:
            if (other := (name, not is_spare)) in names and other in roles:
                continue
            known = names.get(other)
        if known is None:
            added.add(name)
            yield _event(at, "vdev_added", f"{place.vdev.name} added ({place.vdev.state})", place)
        else:
            yield from _leaf_changes(at, known.vdev, place)
    still = {name.removesuffix("/old") for name, _ in roles if name not in added}
    for key, place in before.items():
        if key not in after and place.vdev.name not in still:
            yield _event(at, "vdev_gone", f"{place.vdev.name} is no longer part of the pool", place)


def _role(place: Placed) -> tuple[str, bool]:
    """Return the name, and whether this is a hot spare's own row."""
    return place.vdev.name, place.vdev.vclass == "spare"


def _leaf_changes(at: float, before: Vdev, place: Placed) -> Iterator[Event]:
    vdev = place.vdev
    if vdev.state != before.state:
        text = f"{vdev.name} went from {before.state} to {vdev.state}"
        yield _event(at, "statechange", text, place, _state_severity(vdev.state))
    if vdev.awaiting_resilver and not before.awaiting_resilver:
        yield _event(at, "resilver_deferred", f"{vdev.name} waits for the next resilver", place)
    new = []
    for word, was, now in zip(
        ("read", "write", "checksum"), before.errors, vdev.errors, strict=False
    ):
        if was is not None and now is not None and now > was:
            new.append(f"{now - was} new {word} error{'s' if now - was > 1 else ''}")
    if new:
        yield _event(at, "errors", f"{vdev.name}: {', '.join(new)}", place, "warning")


def _state_severity(state: str) -> str:
    if state in (*BROKEN, "SUSPENDED"):
        return "error"
    return "notice" if state in ("ONLINE", "AVAIL") else "warning"


def _event(at: float, name: str, text: str, place: Placed, severity: str = "notice") -> Event:
    return Event(at, name, text, severity, vdev=place.vdev.name, origin="console")


CAUSE_SECONDS = 90.0
"""Seconds before a restart within which an event may have caused it."""


def restart_cause(recent: Sequence[Event], at: float) -> str:
    """Return why a scan restarted: `` after sdc returned``; empty if no cause was seen.

    A resilver restarts when a device returns, or another is replaced or attached, or on ``zpool
    resilver`` while a device waits (vdev.c, ``vdev_online``; spa.c, ``spa_vdev_attach``).
    """
    for event in reversed(recent):
        if at - event.t > CAUSE_SECONDS or event.vdev is None:
            continue
        if event.name == "statechange" and event.text.endswith("to ONLINE"):
            return f" after {event.vdev} returned"
        if event.name == "statechange":
            return f" after {event.text}"
        if event.name == "vdev_added":
            return f" after {event.vdev} was added"
        if event.name in ("vdev.removed", "resource.fs.zfs.removed", "removed"):
            return f" after {event.vdev} was removed"
    return ""


def runs(events: Iterable[Event]) -> list[list[Event]]:
    """Group events: new errors of a device belong together until something else happens."""
    found = list[list[Event]]()
    since = dict[str | None, list[Event]]()
    for event in events:
        if event.name == "errors" and event.vdev in since:
            since[event.vdev].append(event)
            continue
        found.append([event])
        if event.name == "errors":
            since[event.vdev] = found[-1]
        else:
            since.clear()
    return found


class EventLog:
    """The newest events of ``zpool events`` and of the console itself, newest last."""

    def __init__(self) -> None:
        self.all: tuple[Event, ...] = ()
        """Every event that is kept, newest last."""
        self._apart = 0.0
        """Seconds between the last two samples."""
        self._in_gap = False

    def shift(self, seconds: float) -> None:
        """Shift the times of all events: the clock was set by so many seconds."""
        self.all = tuple(event._replace(t=event.t + seconds) for event in self.all)

    def push(self, sample: Sample, tree: Tree, last: Sample | None, old: Tree) -> None:
        """Add the kernel's events in a sample, and changes since the last sample and its tree."""
        self._in_gap = False
        if last is not None:
            reported = {_subject(event) for event in sample.events}
            seen = [*device_changes(sample.t, old, tree)] if old else []
            was, now = last.pool.state, sample.pool.state
            if was is not None and now is not None and was != now:
                text, severity = f"the pool went from {was} to {now}", _state_severity(now)
                change = Event(sample.t, "statechange", text, severity, origin="console")
                seen.insert(0, change)
            self._apart = max(0.0, sample.clock - last.clock)
            self.merge(event for event in seen if _subject(event) not in reported)
        # It is unknown when something happened that was dated by a clock that was ahead.
        self.merge(
            event._replace(t=sample.t) if is_ahead(event.t, sample.t) else event
            for event in sample.events
        )

    def merge(self, events: Iterable[Event]) -> None:
        """Add events of the newest sample, each change once."""
        if new := tuple(events):
            self.all = tuple(without_duplicates(self.all, new, self._apart)[-MAX_EVENTS:])

    def push_failure(self, failure: SampleFailure, gone: Iterable[Event]) -> None:
        """Add a failed sample (only the first in a gap of a recording), and lost devices."""
        gap = Event(failure.t, "gap", failure.text, "info", None, "console")
        new = (gap, *gone) if failure.gap and not self._in_gap else tuple(gone)
        self.all, self._in_gap = (*self.all, *new)[-MAX_EVENTS:], failure.gap


def _subject(event: Event) -> tuple[str, str | None]:
    """Return name and vdev of an event; the kernel names only the last part of a vdev's path."""
    return event.name, event.vdev and event.vdev.rpartition("/")[2]


BEGINS = 15.0
"""Seconds within which the resilver of a device that came back begins, if it missed anything.

It begins when the open txg is synced (dsl_scan_restart_resilver): after 5 s, the default of
zfs_txg_timeout, and later if much is written.
"""
WATCHED = 60.0
"""Longest time between two samples in which no device can have left and returned unnoticed."""
_MOVES = ("statechange", "removed")
"""Kernel events of a device that left or returned."""


class Absences:
    """Tracks when devices of a pool left, which have returned, and when a group was last formed."""

    def __init__(self) -> None:
        self.missing: dict[str, float] = {}
        """Epoch seconds at which a vdev was seen to leave ONLINE, by its key."""
        self.failed: dict[str, float] = {}
        """Epoch seconds at which leaves that have failed were first seen so, by key; minus infinity
        for those of the first sample, which may have failed long before."""
        self.regrouped: float | None = None
        """When a replacing or spare vdev, or a device waiting for a resilver, last appeared."""
        self._t = -inf
        """Time of the last sample."""
        self.returned: dict[str, tuple[float, float]] = {}
        """Epoch seconds at which leaves were last seen away, and first seen back, by name.

        Until a later repair has finished, they lack what was written while they were away; no
        source shows that before the first repaired byte."""
        self.whole = frozenset[str]()
        """Keys of the leaves that had all data when a replacement began, and have not left since.

        A running repair writes only those of their blocks that can't be read."""
        self._calm = False
        """Whether no repair ran at the last sample, and none had failed before it."""
        self._repair: float | None = None
        """Start of the newest repair that runs."""
        self._begun = -inf
        """Time of the sample that first showed it."""

    def shift(self, seconds: float) -> None:
        """Shift all remembered times: the clock was set by so many seconds."""
        self._t += seconds
        self._begun += seconds
        self.regrouped = self.regrouped and self.regrouped + seconds
        self.missing = {key: t + seconds for key, t in self.missing.items()}
        self.failed = {key: t + seconds for key, t in self.failed.items()}
        self.returned = {
            name: (away + seconds, back + seconds) for name, (away, back) in self.returned.items()
        }

    def push(self, sample: Sample, tree: Tree, old: Tree) -> None:
        """Add the vdevs of a sample, after those of the last one."""
        watched = sample.t - self._t <= WATCHED
        unfilled = _unfilled(tree)
        if old and not unfilled <= _unfilled(old):
            self.regrouped = sample.t
        away = {key: place.vdev for key, place in tree.items() if place.vdev.state != "ONLINE"}
        missing = {key for key, vdev in away.items() if vdev.state not in STANDING}
        self.missing = {key: since for key, since in self.missing.items() if key in missing}
        for key in missing & old.keys():
            if old[key].vdev.state == "ONLINE":
                self.missing.setdefault(key, sample.t)
        since = sample.t if old else -inf
        leaves = (key for key, vdev in away.items() if not vdev.children and vdev.state in BROKEN)
        self.failed = {key: self.failed.get(key, since) for key in leaves}
        were_away = (key for key, place in old.items() if place.vdev.state != "ONLINE")
        back = (tree[key].vdev for key in were_away if key in tree and key not in away)
        if self.returned:  # names may change on import
            now = {
                place.vdev.name: tree[key].vdev.name for key, place in old.items() if key in tree
            }
            self.returned = {now.get(name, name): when for name, when in self.returned.items()}
        self.returned |= dict.fromkeys(_leaves_with_data(back), (self._t, sample.t))
        self._t = sample.t
        gone = set(_leaves_with_data(away.values()))
        repairs = [s for s in sample.pool.scans if s.function in REPAIRS]
        self.returned = {
            name: times
            for name, times in self.returned.items()
            if name not in gone and not any(_has_filled(scan, *times) for scan in repairs)
        }
        if not unfilled:
            self.whole = frozenset()
        elif self._calm and watched and self.regrouped == sample.t:
            self.whole = frozenset(self._whole_before(tree, old))
        self._drop_leavers(sample, tree, repairs)
        self._calm = not any(s.active or s.errors or s.state == "canceled" for s in repairs)

    def _whole_before(self, tree: Tree, old: Tree) -> Iterator[str]:
        """Yield the keys of leaves that had all data at the last sample, before a replacement.

        Without GUIDs, they are known by their names: a replaced device may be ``sdc/old`` by now.
        """
        names = {place.vdev.name for place in old.values() if is_complete(place.vdev)}
        names -= self.returned.keys()
        groups = [place.vdev for place in tree.values() if is_group(place.vdev)]
        new = {
            id(leaf) for group in groups for each in group.children[1:] for leaf in each.leaves()
        }
        for key, (_, _, vdev, _, _) in tree.items():
            is_new = bool(vdev.children) or id(vdev) in new
            if not is_new and vdev.name.removesuffix("/old") in names:
                yield key

    def _drop_leavers(self, sample: Sample, tree: Tree, repairs: Sequence[Scan]) -> None:
        """Drop leaves from ``whole`` that left, or may have left, since the last sample.

        ZFS starts a resilver anew for a device that returns, or has the device wait for the next
        one (``dsl_scan_assess_vdev``). So at a start without another cause, any may have been away.
        """
        began = max((scan.start or 0.0 for scan in repairs if scan.active), default=None)
        if began is not None and began != self._repair:
            causes = (self.regrouped or -inf, *(back for _, back in self.returned.values()))
            if max(causes) <= self._begun:
                self.whole = frozenset()
            self._repair, self._begun = began, sample.t
        moved = {_subject(event)[1] for event in sample.events if event.name in _MOVES}
        vdevs = {key: tree[key].vdev for key in self.whole if key in tree}
        self.whole = frozenset(
            key
            for key, vdev in vdevs.items()
            if vdev.state == "ONLINE" and not vdev.awaiting_resilver
            if vdev.name.rpartition("/")[2] not in moved
        )

    def marked(self, root: Vdev, tree: Tree) -> Vdev:
        """Return the root with leaves of ``whole`` marked as repaired, where ZFS marks them.

        It marks every leaf that a resilver writes to (``vdev_stat_update``, vdev.c), also where it
        only writes again what could not be read.
        """
        marks = {id(tree[key].vdev) for key in self.whole if tree[key].vdev.resilvering}
        return _as_repaired(root, marks) if marks else root

    def push_failure(self, failure: SampleFailure, tree: Tree, last: Tree) -> Iterator[Event]:
        """Add a failed sample with the vdevs' remaining counters; yield events for lost devices.

        ``last`` has the same vdevs as the last sample showed them.
        """
        for key, place in tree.items():
            old, vdev = last[key].vdev, place.vdev
            lost = bool(failure.block and old.block and not vdev.block)
            if (lost or vdev.path in failure.gone) and key not in self.missing:
                self.missing[key] = failure.t
                self.whole -= {key}
                text = f"the device of {vdev.name} is missing"
                yield Event(failure.t, "device_gone", text, "error", vdev.name, "console")
            elif vdev.block and old.state == "ONLINE":
                self.missing.pop(key, None)  # it is back, although the pool does not show it yet

    def unfilled(self, sample: Sample) -> Pool:
        """Return the sample's pool with the leaves that came back and lack data marked unfilled.

        These are all while a repair runs, as they wait for a rebuild to end, else the newest.
        """
        repaired = any(s.active and s.function in REPAIRS for s in sample.pool.scans)
        lacking = {
            name
            for name, (_, back) in self.returned.items()
            if repaired or sample.t - back <= BEGINS
        }

        def _mark(vdev: Vdev) -> Vdev:
            if vdev.children:
                return vdev._replace(children=tuple(map(_mark, vdev.children)))
            return vdev._replace(unfilled=True) if vdev.name in lacking else vdev

        return replace(sample.pool, root=_mark(sample.pool.root)) if lacking else sample.pool


def _as_repaired(vdev: Vdev, marks: Set[int]) -> Vdev:
    """Return a tree in which the vdevs of these ids are marked as repaired."""
    if id(vdev) in marks:
        return vdev._replace(resilvering=False, note=vdev.note.replace("(resilvering)", REPAIRING))
    children = tuple(_as_repaired(child, marks) for child in vdev.children)
    return vdev._replace(children=children) if children else vdev


def _has_filled(repair: Scan, away: float, back: float) -> bool:
    """Return whether a finished repair filled a leaf last seen away and first seen back then.

    The kernel's times are in whole seconds, and the whole repair can lie between two samples.
    """
    if repair.end is None:
        return False
    begun = started(repair)
    return repair.end >= back or (begun is not None and begun >= int(away))


def _unfilled(tree: Tree) -> set[str]:
    """Return keys of vdevs that a repair has to fill, or that exist only until it has."""
    return {key for key, p in tree.items() if is_group(p.vdev) or p.vdev.awaiting_resilver}


def _leaves_with_data(vdevs: Iterable[Vdev]) -> Iterator[str]:
    """Yield the names of those vdevs that are devices with the pool's data."""
    return (v.name for v in vdevs if not v.children and v.vclass not in APART)


NEAR = 10.0
"""Seconds between the kernel's event and the scan's own time for the same change."""

_VERBS = {"restart": "start", "pause": "paused", "canceled": "abort"}
"""Names of the console's events where the kernel uses others."""
_PLAIN = (" started", " paused", " resumed", " finished", " canceled")
"""Ends of texts to which the console's event adds nothing."""


def without_duplicates(known: Iterable[Event], new: Iterable[Event], gap: float) -> list[Event]:
    """Merge ``known`` and ``new``, newest last; keep the kernel's event of a change reported twice.

    ``gap`` is the number of seconds between samples, within which the console sees what the kernel
    reported. If the console's event says more, it is kept: the errors at an end, or that a start is
    a restart. Events reported late are inserted in order.
    """
    events = list(known)
    for event in new:
        newest = range(len(events) - 1, -1, -1)
        same = next((i for i in newest if _same(events[i], event, NEAR + gap)), None)
        if same is None:
            at = len(events)  # the start of a scan found late comes before what followed it
            while at and event.t < events[at - 1].t:
                at -= 1
            events.insert(at, event)
        else:
            events[same] = _merged(events[same], event)
    return events


def _same(a: Event, b: Event, reach: float) -> bool:
    if (a.origin == "console") == (b.origin == "console") or abs(a.t - b.t) > reach:
        return False
    either = _subject(a)[1], _subject(b)[1]
    return _change(a) == _change(b) is not None and (either[0] == either[1] or None in either)


_BECAME = re.compile(r" (?:to|is) ([A-Z]+)\b")
"""The state in the text of a device's change, reported by the kernel or the console."""


def _change(event: Event) -> tuple[str, str] | None:
    """Return the scan and what it did, in the kernel's names, or a device's new state.

    None for an event of another kind.
    """
    if event.name == "statechange" and event.vdev and (state := _BECAME.search(event.text)):
        return event.name, state[1]
    function, _, verb = event.name.partition("_")
    if function not in ("scrub", "resilver", "rebuild", "errorscrub"):
        return None
    return "resilver" if function == "rebuild" else function, _VERBS.get(verb, verb)


def _merged(a: Event, b: Event) -> Event:
    seen, kernel = (a, b) if a.origin == "console" else (b, a)
    if seen.name == "statechange" or (seen.vdev is None and seen.text.endswith(_PLAIN)):
        return kernel
    return seen._replace(t=kernel.t, origin=kernel.origin)
