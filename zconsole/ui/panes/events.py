"""The events pane: what is damaged, what happened, newest first, and what zpool says of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from zconsole.monitor.frame import Frame
from zconsole.pool.model import Event
from zconsole.ui.display_format import DisplayFormat
from zconsole.ui.panes.status_messages import (
    StatusMessage,
    damaged,
    message_line,
    message_whole,
    words,
)
from zconsole.ui.widgets.draw import Line, Span, beside, crop, fit, hung
from zconsole.zfs.sources.base import Capabilities

_MARKS = {"notice": "~", "warning": "!", "error": "x"}
_ROLES = {"notice": "notice", "warning": "warning", "error": "error"}
_TIME = 16


def pane_count(frame: Frame, source: Capabilities | None) -> int:
    """How many lines the pane has where each thing takes one."""
    return len([*damaged(frame), *frame.events, *words(frame, source)])


def pane_lines(
    frame: Frame,
    source: Capabilities | None,
    look: DisplayFormat,
    width: int,
    *,
    whole: bool = False,
) -> tuple[Line, ...]:
    """Damaged files, events, then zpool's words and why ``source`` is not the best there is.

    One line each, or, with ``whole``, as many as it takes, and every damaged file.
    """
    above = _messages(damaged(frame, whole=whole), look, width, whole=whole)
    below = _messages(words(frame, source), look, width, whole=whole)
    if not frame.events and (above or below):
        return (*above, *below)
    return (*above, *event_lines(frame.events, frame.t, look, width, whole=whole), *below)


def _messages(
    messages: Iterable[StatusMessage], look: DisplayFormat, width: int, *, whole: bool
) -> tuple[Line, ...]:
    if not whole:
        return tuple(message_line(message, look, width) for message in messages)
    return tuple(line for message in messages for line in message_whole(message, look, width))


def event_lines(
    events: Sequence[Event], now: float, look: DisplayFormat, width: int, *, whole: bool = False
) -> tuple[Line, ...]:
    """An event: when, how bad, what, and who saw it where that is not zpool.

    One line each, cut where it is too long, or, with ``whole``, as many as it takes.
    """
    if not events:
        return ((Span(" nothing has happened since the console began to watch", "dim"),),)
    shown = _whole if whole else _cut
    return tuple(line for event in reversed(events) for line in shown(event, now, look, width))


def _cut(event: Event, now: float, look: DisplayFormat, width: int) -> tuple[Line, ...]:
    text, seen, role = _said(event, look)
    line = (_when(event, now, look), Span(text, role), Span(seen, "dim"))
    return (crop(line, width, look.glyphs.ellipsis),)


def _whole(event: Event, now: float, look: DisplayFormat, width: int) -> tuple[Line, ...]:
    text, seen, role = _said(event, look)
    mark, text = text[:2], text[2:]
    lines = beside(Span(mark, role), text + seen, max(12, width - _TIME - 2), role)
    return hung(_when(event, now, look), lines)


def _when(event: Event, now: float, look: DisplayFormat) -> Span:
    return Span(f" {fit(look.when(event.t, now), _TIME)}", "dim")


def _said(event: Event, look: DisplayFormat) -> tuple[str, str, str]:
    """The mark and what happened, who saw it, and the role of the first."""
    text = look.text(event.text or event.name)
    if event.vdev and event.vdev not in event.text:
        text += f" ({look.text(event.vdev)})"
    seen = "" if event.origin == "zpool" else f"  seen by the {event.origin}"
    return f"{_MARKS.get(event.severity, ' ')} {text}", seen, _ROLES.get(event.severity, "")
