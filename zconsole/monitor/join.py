"""What comes to a frame from beside its samples: SMART, what consoles did, jobs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from zconsole.history.views import ActivityView
from zconsole.monitor.frame import Frame
from zconsole.pool.model import Event

if TYPE_CHECKING:
    from zconsole.diagnosis.device_errors.faults import DeviceFault


@dataclass(frozen=True, slots=True)
class Extras:
    """What one of them has to add to a frame; nothing unless it says so."""

    events: tuple[Event, ...] = ()
    activities: tuple[ActivityView, ...] = ()
    flags: tuple[str, ...] = ()
    troubles: tuple[DeviceFault, ...] = ()
    """The frame's own, each judged anew, in the same order."""


NO_EXTRAS = Extras()


def joined(frame: Frame, *extras: Extras) -> Frame:
    """The frame with all that is added to it; its events stay in the order of time."""
    for more in extras:
        if more == NO_EXTRAS:
            continue
        events = (*frame.events, *more.events)
        frame = replace(
            frame,
            events=tuple(sorted(events, key=lambda e: e.t)) if more.events else frame.events,
            activities=(*frame.activities, *more.activities),
            flags=(*frame.flags, *more.flags),
            troubles=more.troubles or frame.troubles,
        )
    return frame
