"""The events pane: what happened, newest first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from zconsole.model import Event
from zconsole.ui.draw import Line, Span, broken, crop, fit
from zconsole.ui.look import Look

_MARKS = {"notice": "~", "warning": "!", "error": "x"}
_ROLES = {"notice": "notice", "warning": "warning", "error": "error"}
_TIME = 16


def event_lines(
    events: Sequence[Event], now: float, look: Look, width: int, *, whole: bool = False
) -> tuple[Line, ...]:
    """An event: when, how bad, what, and who saw it where that is not zpool.

    One line each, cut where it is too long, or, with ``whole``, as many as it takes.
    """
    if not events:
        return ((Span(" nothing has happened since the console began to watch", "dim"),),)
    shown = _whole if whole else _cut
    return tuple(line for event in reversed(events) for line in shown(event, now, look, width))


def _cut(event: Event, now: float, look: Look, width: int) -> tuple[Line, ...]:
    text, seen, role = _said(event, look)
    line = (_when(event, now, look), Span(text, role), Span(seen, "dim"))
    return (crop(line, width, look.glyphs.ellipsis),)


def _whole(event: Event, now: float, look: Look, width: int) -> Iterator[Line]:
    text, seen, role = _said(event, look)
    first, *more = broken(text[2:] + seen, max(10, width - _TIME - 4))
    yield (_when(event, now, look), Span(text[:2] + first, role))
    for line in more:
        yield (Span(" " * (_TIME + 3)), Span(line, role))


def _when(event: Event, now: float, look: Look) -> Span:
    return Span(f" {fit(look.when(event.t, now), _TIME)}", "dim")


def _said(event: Event, look: Look) -> tuple[str, str, str]:
    """The mark and what happened, who saw it, and the role of the first."""
    text = look.text(event.text or event.name)
    if event.vdev and event.vdev not in event.text:
        text += f" ({look.text(event.vdev)})"
    seen = "" if event.origin == "zpool" else f"  seen by the {event.origin}"
    return f"{_MARKS.get(event.severity, ' ')} {text}", seen, _ROLES.get(event.severity, "")
