"""Events pane: damaged files, events with the newest first, and zpool's own messages."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from rich.cells import cell_len

from zconsole.pool.health import explained
from zconsole.pool.model import Event
from zconsole.timeline.events import runs
from zconsole.timeline.frame import Frame
from zconsole.ui.display_format import DisplayFormat
from zconsole.ui.panes.pane import Pane, Scene, Wish
from zconsole.ui.panes.reasons import as_called, called_names
from zconsole.ui.widgets.draw import Line, Span, beside, crop, fit, indented, middle, ruled
from zconsole.zfs.sources.base import NO_READER, Capabilities

_STATE = re.compile(r" (?:to|is) ([A-Z]+)$")
"""The new state in the text on a device."""
_TOGETHER = 30.0
"""Seconds within which the kernel and the console report the same change, between rare samples."""
_ABORTED = "scan aborted, restarting"
"""Internal history record before a restart (dsl_scan.c), which says the same with its cause."""
_NEW_ERRORS = re.compile(r"([0-9]{1,18}) new (read|write|checksum) error")
_MARKS = {"notice": "~", "warning": "!", "error": "x"}
_LEAST, _FULL = 4, 10
"""Least and usual number of lines that other panes leave it."""
_LABEL = 16
_RESUME = "bring back the devices that are out, then clear the pool (zpool clear)"
_DAMAGED = fit("damaged", _LABEL)
_WRAPPED = 6
"""Lines from which the pane shows whole messages, even if not all of them fit."""
_DAMAGED_SHOWN = 4
"""Damaged files listed above the events, unless the pane is zoomed."""


class _Message(NamedTuple):
    """A lasting condition or an event."""

    label: str
    """Its kind, or its time."""
    text: str
    role: str = ""
    mark: str = " "
    """Mark of its severity, which works without color."""
    is_path: bool = False
    """Whether the end of the text must not be cut."""


class EventsPane(Pane):
    """Pane with damaged files, events and messages."""

    pane_id = "events"
    place = "bottom"
    keys = (("up", "newer"), ("down", "older"))

    def wish(self, _: Scene) -> Wish:
        """Wish for all lines that the others leave."""
        return Wish(self.pane_id, self.place, _FULL, least=_LEAST, fills=True)

    def paint(self, scene: Scene) -> None:
        """Draw the title and the newest messages; zoomed, all of them in full."""
        look, width, every = scene.look, scene.width, scene.zoomed == self.pane_id
        room = scene.lines - 1  # below its title
        said = pane_lines(scene.frame, scene.source, look, width, room=room, every=every)
        self.show(said, ruled(" EVENTS AND MESSAGES ", "", look.glyphs.rule, width))


def pane_lines(
    frame: Frame,
    source: Capabilities | None,
    look: DisplayFormat,
    width: int,
    *,
    room: int = 0,
    every: bool = False,
) -> tuple[Line, ...]:
    """Return damaged files, events, zpool's messages, and why ``source`` is not the best one.

    Messages take one line each, or are wrapped if all fit into ``room`` then, or it is large.
    ``every``: list all damaged files, and wrap everything.
    """
    names = called_names(frame)
    events = (
        _of_event(event, fit(look.when(event.t, frame.t), _LABEL), names)
        for event in reversed(_combined(frame, look))
    )
    shown = (*_damaged(frame, every=every), *events, *_words(frame, source))
    if not shown:
        return ((Span(" no events since the console started", "dim"),),)
    whole = every or room >= _WRAPPED
    if whole or len(shown) < room:
        lines = tuple(line for m in shown for line in _message_lines(m, look, width, whole=True))
        if whole or len(lines) <= room:
            return lines
    return tuple(line for m in shown for line in _message_lines(m, look, width, whole=False))


def _combined(frame: Frame, look: DisplayFormat) -> list[Event]:
    """Merge new errors of a device into one event, until another event comes.

    A change that was told just before is left out.
    """
    shown: list[Event] = []
    for run in runs(frame.events):
        event = run[-1]
        if len(run) > 1:
            text = f"{errors_of(run)} since {look.when(run[0].t, frame.t)}"
            event = event._replace(text=text)
        if event.name.endswith("_restart") and shown and shown[-1].text == _ABORTED:
            shown.pop()
        if not _is_told(event, shown):
            shown.append(event)
    return shown


def errors_of(run: Sequence[Event]) -> str:
    """Return the sum of new errors of a device: ``sdc: 12 new read errors``."""
    counts = Counter[str]()
    for event in reversed(run):
        counts.update({kind: int(n) for n, kind in _NEW_ERRORS.findall(event.text)})
    said = ", ".join(f"{n} new {kind} error{'s' * (n > 1)}" for kind, n in counts.items())
    return f"{run[0].vdev}: {said}"


def _is_told(event: Event, shown: Sequence[Event]) -> bool:
    """Return whether the newest of these events on the same device told the same state just now."""
    state = _STATE.search(event.text)
    last = next((each for each in reversed(shown) if each.vdev == event.vdev), None)
    if state is None or event.vdev is None or last is None or event.t - last.t > _TOGETHER:
        return False
    told = _STATE.search(last.text)
    return told is not None and told[1] == state[1]


def event_line(
    event: Event, when: str, names: Mapping[str, str], look: DisplayFormat, width: int
) -> Line:
    """Return an event in one line; ``names`` are those of ``called_names``."""
    return _message_lines(_of_event(event, when, names), look, width, whole=False)[0]


def event_text(event: Event, names: Mapping[str, str]) -> str:
    """Return what happened; ``names`` are those of ``called_names``."""
    text = event.text or event.name
    if event.vdev and event.vdev not in event.text:
        text += f" ({event.vdev})"
    return as_called(text, names)


def _of_event(event: Event, when: str, names: Mapping[str, str]) -> _Message:
    """Return an event as a message: time, severity and text."""
    role = event.severity if event.severity in _MARKS else ""
    return _Message(when, event_text(event, names), role, _MARKS.get(event.severity, " "))


def _damaged(frame: Frame, *, every: bool) -> Iterator[_Message]:
    """Yield the damaged files: all of them, or a few and the number of others."""
    names = frame.seen.errors or ()
    shown = len(names) if every or len(names) <= _DAMAGED_SHOWN else _DAMAGED_SHOWN - 1
    for name in names[:shown]:
        note = explained(name, frame.seen.destroyed)
        text = f"{name}  {note}" if note else name
        yield _Message(_DAMAGED, text, "error", "x", is_path=not note)
    if frame.seen.error_count and not names and not frame.suspended:
        yield _Message(_DAMAGED, "only root is told which files: zpool status -v", "dim")
    # Not error_count: it counts damaged blocks, of which one file may have many.
    if rest := len(names) - shown:
        yield _Message(_DAMAGED, f"and {rest} more", "error", "x")


def _words(frame: Frame, source: Capabilities | None) -> Iterator[_Message]:
    """Yield zpool's messages on the pool, and why its data is not read in the best way."""
    pool = frame.seen
    words_of_zpool: tuple[tuple[str, str | None], ...]
    words_of_zpool = (("zpool says", pool.message), ("action", pool.action), ("see", pool.see))
    if frame.suspended and not pool.suspended:
        # zpool is not run on a suspended pool, as it would hang: its messages are older than that.
        words_of_zpool = (("action", _RESUME),)
    yield from (_Message(fit(label, _LABEL), text) for label, text in words_of_zpool if text)
    if source is not None and source.reason and source.name != NO_READER:
        yield _Message(fit(f"read as {source.name}", _LABEL), source.reason, "notice")


def _message_lines(
    message: _Message, look: DisplayFormat, width: int, *, whole: bool
) -> tuple[Line, ...]:
    """Return the lines of a message: one, cut if necessary, or wrapped."""
    head, mark = Span(f" {message.label}", "dim"), Span(f"{message.mark} ", message.role)
    text, ellipsis = look.text(message.text), look.glyphs.ellipsis
    if whole:
        room = max(12, width - cell_len(head.text) - 1)
        return indented(head, beside(mark, text, room, message.role))
    if message.is_path:
        text = middle(text, max(1, width - cell_len(head.text) - 3), ellipsis)
    line = (head, mark, Span(text, message.role))
    return (crop(line, width, ellipsis),)
