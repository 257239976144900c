"""The screen to move within a recording: a time to type, above the list of events."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime, timedelta, tzinfo

from textual import getters
from textual.app import ComposeResult
from textual.widgets import Input

from zconsole.errors import UsageError, ZconsoleError
from zconsole.pool.model import Event
from zconsole.system.printable import clean
from zconsole.timeline.events import runs
from zconsole.timeline.feed import ReplayFeed
from zconsole.ui.dialogs.screens import PickView, Prompt, TextScreen
from zconsole.ui.display_format import DisplayFormat
from zconsole.ui.panes.events import errors_of, event_line
from zconsole.ui.panes.reasons import called_names
from zconsole.ui.themed_app import begin
from zconsole.ui.widgets.draw import Line, Span
from zconsole.ui.widgets.lines_view import FooterView
from zconsole.units import counted, date_of, parse_duration, percent

EXAMPLES = "14:05, 2026-03-01 14:05, +10m, -1h30m, 50%"
_CLOCK = re.compile(r"([0-9]{1,2}):([0-9]{2})(?::([0-9]{2}))?")
_SECONDS = re.compile(r"[0-9]:[0-9]{2}:[0-9]{2}")
_SHARE = re.compile(r"([0-9]{1,3}(?:\.[0-9]+)?) ?%")
_REDRAWN = 0.5
"""Seconds between two drawings while events are found."""


def time_typed(typed: str, now: float, span: tuple[float, float], zone: tzinfo | None) -> float:
    """Return the time that was typed, in epoch seconds. Raises UsageError.

    A time of day is that of the day nearest to the present position, ``now``; ``+10m`` is relative
    to that. ``span`` is the first and the last time of the recording.
    """
    first, last = span
    if (share := _SHARE.fullmatch(typed)) and float(share[1]) <= 100:
        return first + float(share[1]) / 100 * (last - first)
    distance = parse_duration(typed[1:])
    if typed[:1] in ("+", "-") and distance is not None:
        dated: tuple[float, ...] = (now + distance * (1 if typed[0] == "+" else -1),)
        meant = 1.0
    else:
        dated = _dated(typed, now, zone)
        meant = 1.0 if _SECONDS.search(typed) else 60.0
    # What was typed means the whole minute or second, in which the recording may begin.
    times = [max(first, t) for t in dated if first < t + meant and t <= last]
    if not times:
        begin, end = (date_of(t, zone) for t in (first, last))
        form = "%H:%M" if begin.date() == end.date() else "%Y-%m-%d %H:%M"
        raise UsageError(
            f"{typed}: the recording is from {begin:%Y-%m-%d %H:%M} to {end.strftime(form)}"
        )
    return min(times, key=lambda t: abs(t - now))


def _dated(typed: str, now: float, zone: tzinfo | None) -> tuple[float, ...]:
    """Return the times that a date, or a time of day near ``now``, may mean. Raises UsageError."""
    today = date_of(now, zone).replace(microsecond=0)
    try:
        if clock := _CLOCK.fullmatch(typed):
            hour, minute, second = (int(part or 0) for part in clock.groups())
            then = today.replace(hour=hour, minute=minute, second=second)
            return tuple((then + timedelta(days=days)).timestamp() for days in (-1, 0, 1))
        then = datetime.fromisoformat(typed)
        return ((then if then.tzinfo else then.replace(tzinfo=zone)).timestamp(),)
    except ValueError:
        raise UsageError(f"type a time as in {EXAMPLES}") from None


class GoToScreen(TextScreen[float | None], groups=("Answer",)):
    """Returns the time that was typed, or that of the event at the cursor; None after Esc."""

    AUTO_FOCUS = "#prompt"
    view = getters.query_one(PickView)
    topics = (
        ("14:05", "that time of day, nearest to what is shown now; also 14:05:30"),
        ("2026-03-01 14:05", "that date and time"),
        ("+10m", "so much later; -1h30m: so much earlier"),
        ("50%", "that share of the recording"),
        ("nothing typed", "the event at the cursor, which Up and Down move"),
    )

    def __init__(self, feed: ReplayFeed, span: tuple[float, float]) -> None:
        """``span`` is the first and the last time of the recording."""
        super().__init__("GO TO", self._lines)
        self._feed, self._span = feed, span
        self._events: Sequence[tuple[str, Event]] = ()
        """Pool and event of each line."""
        self._moved = False
        self._failure = ""
        """Why no more events can be read; empty if they can."""
        self._drawn: tuple[float, float] | None = None
        """What ``_reached`` was when it was drawn."""

    def compose(self) -> ComposeResult:
        """Yield the prompt, and the list below it."""
        yield Prompt(id="prompt", placeholder=f"{EXAMPLES}; or choose an event")
        yield PickView(0, self._note_moved)
        yield FooterView(id="keys")

    def on_mount(self) -> None:
        """Start to look for events; textual then also calls the handler of Dialog."""
        begin(self, self._read, group="events")
        self.set_interval(_REDRAWN, self._draw_newer)

    async def _read(self) -> None:
        try:
            await self._feed.read_events()
        except ZconsoleError as error:  # the file may be gone since the replay began
            self._failure = clean(str(error))
            self.update()

    def _draw_newer(self) -> None:
        if self._drawn != self._reached:
            self.update()

    def _note_moved(self, _: int) -> None:
        self._moved = True

    def draw(self) -> None:
        """Draw the events found so far, with the cursor at ``_start`` until it is moved."""
        view, self._drawn = self.view, self._reached
        found = [
            (pool, self._of_run(run))
            for pool, events in self._feed.events.items()
            for run in runs(event for event in events if event.t >= self._span[0])
        ]
        self._events = sorted(found, key=lambda pair: pair[1].t)
        if not self._moved:
            view.cursor = self._start
        width = self.app.size.width
        view.show(self._lines(self.look, width), self.title_line(width))
        view.reveal()
        self.show_keys()

    def _of_run(self, run: Sequence[Event]) -> Event:
        """Return an event; the first of new errors of a device that follow each other, with all."""
        if len(run) == 1:
            return run[0]
        until = date_of(run[-1].t, self.look.zone)
        return run[0]._replace(text=f"{errors_of(run)} until {until:%H:%M:%S}")

    @property
    def _start(self) -> int:
        """Line of the event that was gone to, while the replay is paused there; else the last past.

        The samples that show an event come after it, and may show later ones.
        """
        chosen, played = self._feed.chosen, self._feed.playback
        if chosen and chosen in self._events and played.paused and played.sought == chosen[1].t:
            return self._events.index(chosen)
        return max(0, sum(event.t <= self._now for _, event in self._events) - 1)

    @property
    def _reached(self) -> tuple[float, float]:
        """The time up to which events were read, and the present position."""
        return self._feed.read_until, self._now

    @property
    def _now(self) -> float:
        """The present position of the replay."""
        return self._feed.playback.t or self._span[0]

    def title_line(self, _: int) -> Line:
        """Return the number of events, and how far the recording was read for them."""
        (first, last), until = self._span, self._feed.read_until
        said = counted(len(self._events), "event")
        if self._failure:
            said += f"; events not read: {self._failure}"
        elif first < last and until < last:
            share = max(0.0, (until - first) / (last - first))
            said += f" so far, {percent(share)} of the recording read"
        return (Span(f" GO TO  {said}", "title"),)

    def _lines(self, look: DisplayFormat, width: int) -> Sequence[Line]:
        names = {frame.pool: called_names(frame) for frame in self.app.view_state.frames}
        several = len(self._feed.events.keys() | names.keys()) > 1  # also one that has left
        days = {date_of(t, look.zone).date() for t in self._span}
        form = "%H:%M:%S " if len(days) == 1 else "%d %b %H:%M:%S "
        return tuple(
            event_line(
                event._replace(text=f"{pool}: {event.text}") if several else event,
                date_of(event.t, look.zone).strftime(form),
                names.get(pool, {}),
                look,
                width,
            )
            for pool, event in self._events
        )

    def on_input_submitted(self, message: Input.Submitted) -> None:
        """Close the screen with the time that was chosen, or say why there is none."""
        if typed := message.value.strip():
            try:
                self.dismiss(time_typed(typed, self._now, self._span, self.look.zone))
            except UsageError as error:
                self.app.notify(str(error), severity="warning")
                message.input.select_all()  # the next key replaces it
        else:
            self.action_open()

    def action_open(self) -> None:
        """Close the screen with the event at the cursor, also after a double click."""
        if self._events:
            self._feed.chosen = chosen = self._events[self.view.cursor]
            self.dismiss(chosen[1].t)
