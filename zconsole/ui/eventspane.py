"""The events pane: what happened, newest first."""

from __future__ import annotations

from collections.abc import Sequence

from zconsole.model import Event
from zconsole.ui.draw import Line, Span, crop, fit
from zconsole.ui.look import Look

_MARKS = {"notice": "~", "warning": "!", "error": "x"}
_ROLES = {"notice": "notice", "warning": "warning", "error": "error"}
_TIME = 16


def event_lines(events: Sequence[Event], now: float, look: Look, width: int) -> tuple[Line, ...]:
    """One line an event: when, how bad, what, and who saw it where that is not zpool."""
    if not events:
        return ((Span(" nothing has happened since the console began to watch", "dim"),),)
    return tuple(_event(event, now, look, width) for event in reversed(events))


def _event(event: Event, now: float, look: Look, width: int) -> Line:
    mark = _MARKS.get(event.severity, " ")
    text = look.text(event.text or event.name)
    if event.vdev and event.vdev not in event.text:
        text += f" ({look.text(event.vdev)})"
    line = (
        Span(f" {fit(look.when(event.t, now), _TIME)}", "dim"),
        Span(f"{mark} {text}", _ROLES.get(event.severity, "")),
        Span("" if event.origin == "zpool" else f"  seen by the {event.origin}", "dim"),
    )
    return crop(line, width, look.glyphs.ellipsis)
