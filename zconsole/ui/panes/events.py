"""The events pane: what is damaged, what happened, newest first, and what zpool says of it."""

from __future__ import annotations

from zconsole.monitor.frame import Frame
from zconsole.pool.model import Event
from zconsole.ui.display_format import DisplayFormat
from zconsole.ui.panes.status_messages import StatusMessage, damaged, message_lines, words
from zconsole.ui.widgets.draw import Line, Span, fit
from zconsole.zfs.sources.base import Capabilities

_MARKS = {"notice": "~", "warning": "!", "error": "x"}
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
    events = (_of_event(event, frame.t, look) for event in reversed(frame.events))
    shown = (*damaged(frame, whole=whole), *events, *words(frame, source))
    if not shown:
        return ((Span(" nothing has happened since the console began to watch", "dim"),),)
    return tuple(line for m in shown for line in message_lines(m, look, width, whole=whole))


def _of_event(event: Event, now: float, look: DisplayFormat) -> StatusMessage:
    """When, how bad, what, and who saw it where that is not zpool."""
    text = event.text or event.name
    if event.vdev and event.vdev not in event.text:
        text += f" ({event.vdev})"
    seen = "" if event.origin == "zpool" else f"  seen by the {event.origin}"
    role = event.severity if event.severity in _MARKS else ""
    when = fit(look.when(event.t, now), _TIME)
    return StatusMessage(when, text, role, _MARKS.get(event.severity, " "), seen)
