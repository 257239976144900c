"""A change of a scan that the kernel reports and the console sees is one event."""

from __future__ import annotations

from collections.abc import Iterable
from math import inf

from zconsole.pool.model import Event

NEAR = 10.0
"""Seconds between the kernel's event and what the scan's own figures say of the same change."""

_VERBS = {"restart": "start", "pause": "paused", "canceled": "abort"}
"""The console's words that are not the kernel's."""
_PLAIN = (" started", " paused", " resumed", " finished", " canceled")
"""What the console sees and has nothing to add to."""


def without_duplicates(
    known: Iterable[Event], new: Iterable[Event], gap: float, now: float = -inf
) -> list[Event]:
    """``known`` and ``new`` together, newest last; of a change reported twice, the kernel's event.

    ``gap``: seconds between samples, within which the console sees what the kernel reported. Where
    the console says more, that is the event: the errors at an end, that a start is a restart.
    ``now``: what is reported late is put in its place among what is dated until then; what is dated
    later is of before a clock was set back.
    """
    events = list(known)
    for event in new:
        at = range(len(events) - 1, -1, -1)
        same = next((i for i in at if _same(events[i], event, NEAR + gap)), None)
        if same is None:
            events.insert(_place(events, event, now), event)
        else:
            events[same] = _one(events[same], event)
    return events


def _place(events: list[Event], event: Event, now: float) -> int:
    """Where it belongs: the start of a scan found late is reported after what followed that."""
    at = len(events)
    while at and event.t < events[at - 1].t <= now:
        at -= 1
    return at


def _same(a: Event, b: Event, reach: float) -> bool:
    if (a.origin == "console") == (b.origin == "console") or abs(a.t - b.t) > reach:
        return False
    return _change(a) == _change(b) is not None and (a.vdev == b.vdev or None in (a.vdev, b.vdev))


def _change(event: Event) -> tuple[str, str] | None:
    """The scan and what it did, as the kernel names both; None for an event of another kind."""
    function, _, verb = event.name.partition("_")
    if function not in ("scrub", "resilver", "rebuild", "errorscrub"):
        return None
    return "resilver" if function == "rebuild" else function, _VERBS.get(verb, verb)


def _one(a: Event, b: Event) -> Event:
    seen, kernel = (a, b) if a.origin == "console" else (b, a)
    if seen.vdev is None and seen.text.endswith(_PLAIN):
        return kernel
    return seen._replace(t=kernel.t, origin=kernel.origin)
