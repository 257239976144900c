"""The console app: binds keys to actions, and paints the frames of its feed on the main screen.

All of it runs in one event loop: a round is painted when it comes, unless the last paint was a
moment ago, and a timer catches up. Imports inside functions keep the first paint fast.
"""

from __future__ import annotations

import select
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, ClassVar

from textual.app import SystemCommand
from textual.binding import BindingType
from textual.driver import Driver
from textual.screen import Screen
from textual.timer import Timer
from textual.widgets import Input

from zconsole.config.settings import UNITS
from zconsole.errors import ExitCode, ZconsoleError
from zconsole.system.printable import clean
from zconsole.timeline.feed import Feed, ReplayFeed, Update
from zconsole.ui.actions.controller import ActionController
from zconsole.ui.console_options import ConsoleOptions
from zconsole.ui.dialogs.screens import Dialog, HelpScreen, PickList, PickScreen
from zconsole.ui.display_format import UNIT_WORDS, DisplayFormat
from zconsole.ui.keys import MAIN, MAIN_ONLY, bindings
from zconsole.ui.main_screen import MainScreen
from zconsole.ui.messages import PAGE
from zconsole.ui.panes.devices import DeviceView
from zconsole.ui.panes.events import event_text
from zconsole.ui.panes.header import late_age
from zconsole.ui.panes.reasons import called_names
from zconsole.ui.saved_look import choose_theme, save_look
from zconsole.ui.theme.files import ThemeFile
from zconsole.ui.themed_app import ThemedApp, begin
from zconsole.ui.view_state import HeaderStatus, ViewState
from zconsole.ui.widgets.draw import Line, Span
from zconsole.ui.widgets.lines_view import LinesView

if TYPE_CHECKING:
    from textual.notifications import SeverityLevel

    from zconsole.timeline.alerts.rules import Alert
    from zconsole.zfs.sources.replay import Playback

INTERVALS = (0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0)
"""Intervals in seconds that the keys ``+`` and ``-`` step through."""
TMUX_HINT = "tmux drops it unless its set-clipboard is on: tmux set -s set-clipboard on"
ALERT_SECONDS = 30.0
"""Seconds for which the message about an alert is shown."""
NO_PLACES = "in a compressed recording or a pipe one cannot move about"
REPORTS = (
    "Reports of past scans: run zconsole report in a shell (--list names them). One is kept for"
    " each scan that a console or zconsole watch saw; a demo keeps none."
)
_SEVERITIES: dict[str, SeverityLevel] = {"error": "error", "warning": "warning"}
_PAINT_GAP = _TICK = 1.0
_REPLAY_GAP = 0.1
"""Seconds between two paints of a replay, which may read hundreds of rounds a second."""
_REST = 5.0
"""Seconds of the source's clock during which an unchanged screen is not redrawn: its ages and
sparklines are late by as much."""


def terminal_ready() -> bool:
    """Return whether the terminal accepts output now; False while a slow line lags behind."""
    if sys.__stderr__ is None:
        return False
    try:
        return bool(select.select([], [sys.__stderr__.fileno()], [], 0)[1])
    except (OSError, ValueError):  # can't tell
        return True


def _brief(text: str) -> str:
    """Return a text of one line, or how many lines it has."""
    more = text.count("\n")
    return f"{more + 1} lines" if more else text


class Console(ThemedApp):
    """The live screens over one feed, with keys that change the pools it shows."""

    TITLE = "zconsole"
    CSS_PATH = "console.tcss"
    BINDINGS: ClassVar[list[BindingType]] = bindings(*MAIN)

    def __init__(
        self,
        feed: Feed,
        options: ConsoleOptions,
        look: DisplayFormat,
        themes: Iterable[ThemeFile],
        actions: ActionController | None = None,
        *,
        writable: Callable[[], bool] = terminal_ready,
        notices: Sequence[str] = (),
        ansi_color: bool | None = None,
    ) -> None:
        """Without ``actions`` the keys that change something have no effect and are not offered."""
        super().__init__(ViewState(options, look), themes, ansi_color)
        self.feed = feed
        self.view_state.playback = feed.playback
        self.actions = actions
        self.main_screen = MainScreen(self.view_state, feed.details, self._begin)
        self.failure: ZconsoleError | None = None
        """Error that ended the feed."""
        self._clock = options.clock
        self._writable = writable
        self._notices = tuple(notices)
        self._behind = False
        self._painted = float("-inf")
        self._status: HeaderStatus | None = None
        """Status as of the last look at it; None before the first frame."""
        self._shown: HeaderStatus | None = None
        """Status in the header when everything was drawn last; None after only the header was."""
        self._timer: Timer | None = None

    def get_default_screen(self) -> MainScreen:
        """Return the main screen, which stays below all others."""
        return self.main_screen

    def get_driver_class(self) -> type[Driver]:
        """Return the driver that reads keys with the console's own parser."""
        from zconsole.ui.terminal_driver import TerminalDriver

        return TerminalDriver

    @property
    def devices(self) -> DeviceView:
        """The device list."""
        return self.main_screen.devices

    def _begin(self) -> None:
        """Start reading the feed and ticking, now that the main screen exists."""
        look = self.view_state.look
        self.set_class(look.glyphs.is_ascii, "ascii")
        self.set_keymap(look.keys.keymap)
        # The shell used the terminal after Ctrl-Z: send every cell again.
        self.app_resume_signal.subscribe(self, lambda _: self.screen.refresh())
        self.main_screen.waiting("waiting for the first sample")
        begin(self, self._poll, group="poll", exclusive=True)
        self.set_interval(_TICK, self._tick)
        if self.feed.faster is not None:
            slower, faster = map(look.keys.shown, ("slower", "faster"))
            self.notify(f"{slower} {faster} demo speed", timeout=15)
        if self._notices:
            self.notify("\n".join(self._notices), severity="warning")

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Return whether an action may run: those of the main screen only while that is on top.

        An action that has nothing to act on is disabled, too.
        """
        if action in MAIN_ONLY and not self.main_on_top:
            return False
        match action:
            case "pool":
                return len(self.view_state.frames) > 1
            case "seek" | "step" | "event" | "go_to":
                return self.feed.playback is not None
            case "speed":
                return self._faster is not None
        return super().check_action(action, parameters)

    # Frames

    async def _poll(self) -> None:
        """Read the feed; nothing else waits for a sample."""
        try:
            while (update := await self.feed.next()) is not None:
                self._show_alerts(update)
                self.take(update)
        except ZconsoleError as error:
            self.failure = error
            self.exit(return_code=error.code)
        else:
            self.view_state.ended = True  # the last frames stay on the screen
            self.paint()

    def _show_alerts(self, update: Update) -> None:
        """Show the alerts and notes of a round; ring or notify the desktop as the feed asks."""
        key = self.view_state.look.keys.shown("swap")
        for alert in update.alerts:
            words = alert.words
            if alert.kind == "device-error" and self.view_state.denied == "":
                words = f"{alert.text}. {key} leads through changing the disk"
            severity = _SEVERITIES.get(alert.severity, "information")
            said = clean(f"{alert.pool}: {words}")
            still = partial(self._still, alert, said)
            self.notify(said, severity=severity, timeout=ALERT_SECONDS, follows=still)
        for note in update.notes:
            self.notify(clean(note), severity="warning", timeout=ALERT_SECONDS)
        if update.reached:
            self._name_event(update)
        if update.ring and self._driver is not None and self._writable():
            self._driver.write(update.ring)
            self._driver.flush()

    def _name_event(self, update: Update) -> None:
        """Say which event of a recording was gone to, until the next key."""
        first, *others = update.reached
        names = (called_names(frame) for frame in update.frames if first in frame.events)
        said = event_text(first, next(names, {}))
        which = f" 1 of {1 + len(others)}" * bool(others)
        self.answer(clean(f"event{which}: {said}"), ALERT_SECONDS)

    def _still(self, alert: Alert, said: str) -> str:
        """Return what was said of an alert; empty once its condition has passed."""
        alerts = self.feed.alerts
        return "" if alerts is not None and alerts.rules.has_passed(alert) else said

    def take(self, update: Update) -> None:
        """Process a round, and paint it unless the last paint was a moment ago."""
        if self.actions is not None:
            self.actions.take(self, update)
        self.view_state.take(update, self._clock())
        if any(each.follows is not None for each in self.messages):
            self.update_messages()
        gap = _REPLAY_GAP if self.feed.playback else min(_PAINT_GAP, self.feed.interval)
        # Rounds vary a little: one that comes early must not wait a whole second to be painted.
        wait = self._painted + gap * 0.9 - self._clock()
        if self._rests(self._header_status()):
            pass
        elif wait <= 0:
            self.paint()
        elif self._timer is None:
            self._timer = self.set_timer(wait, self.paint)
        self.go_on()

    def _rests(self, status: HeaderStatus | None) -> bool:
        """Return whether the screen can stay as it is for a while, since nothing has changed."""
        shown = self._shown
        if status is None or shown is None or not self.view_state.at_rest or self._behind:
            return False
        if self.devices.awaits_filled:  # each painted frame counts
            return False
        same = status._replace(age=shown.age, now=shown.now) == shown
        return same and status.fresh and shown.fresh and abs(status.now - shown.now) < _REST

    def paint(self) -> None:
        """Paint the newest round, unless the terminal is still busy with earlier output."""
        if self._timer is not None:
            self._timer.stop()
            self._timer = None
        was_behind, self._behind = self._behind, not self._writable()
        if self._behind or not self.screen_stack:  # screens end before timers do
            return
        if was_behind:
            self.update_messages()
        status = self._header_status()
        if status is not None:
            self._painted, self._shown = self._clock(), status
            self.main_screen.paint(status)
            self._update_list()
        elif self.view_state.latest is not None:
            self.main_screen.waiting("no pools are imported; waiting for one")

    def update_messages(self) -> None:
        """Draw the messages, unless the terminal is busy, too: then the next paint does.

        Textual queues what it draws, and a full queue would keep samples and alerts waiting.
        """
        if self._writable():
            super().update_messages()
        else:
            self._behind = True

    def _header_status(self) -> HeaderStatus | None:
        self._status = self.view_state.status(self._clock(), self.feed.pace)
        return self._status

    @property
    def late(self) -> Line:
        """Age of the data, as of the last look at it, once it is late; else empty."""
        return late_age(self._status) if self._status else ()

    def _update_list(self) -> None:
        """Redraw a list over the main screen, with its new data or age."""
        if isinstance(self.screen, Dialog) and self.screen.lives:
            self.screen.update()

    def _tick(self) -> None:
        """Keep the age in the header current between rounds, and catch up after a slow line."""
        if self._behind:
            self.paint()
            return
        if self._clock() - self._painted < _TICK:
            return  # a round was painted meanwhile, with its own age
        status = self._header_status()
        if self._rests(status):
            return
        if self.screen_stack and status is not None and self._writable():
            self._shown = None  # only the header is current now
            self.main_screen.paint_header(status)
            self._update_list()

    # Moving about

    def await_filled(self) -> None:
        """Move the cursor to the disk that a replacement begins to fill, once it does."""
        self.devices.await_filled()

    def _view(self) -> LinesView | None:
        """Return the view that cursor keys move: the focused one, else the screen's main one."""
        if isinstance(self.focused, LinesView):
            return self.focused
        return self.devices if self.main_on_top else next(iter(self.screen.query(LinesView)), None)

    def action_move(self, lines: int) -> None:
        """Move the cursor or scroll by lines."""
        if view := self._view():
            view.move(lines)

    def action_page(self, pages: int) -> None:
        """Move the cursor or scroll by screenfuls."""
        if view := self._view():
            view.page(pages)

    def action_edge(self, direction: int) -> None:
        """Go to the first line (-1) or the last one (1)."""
        if view := self._view():
            view.edge(direction)

    def action_next_pane(self, direction: int) -> None:
        """Move the focus to the next pane, or to the next part of a dialog."""
        if self.main_on_top:
            self.main_screen.next_pane(direction)
        else:
            (self.screen.focus_next if direction > 0 else self.screen.focus_previous)()

    def action_pool(self, step: int) -> None:
        """Show the next or previous pool."""
        self.view_state.select(self.view_state.index + step)
        self.paint()

    def action_overview(self) -> None:
        """List all pools, and show the chosen one."""
        if not self.view_state.frames:
            return
        from zconsole.ui.panes.overview import OverviewScreen

        self.push_screen(OverviewScreen(self.view_state), self.action_show_pool)

    def action_show_pool(self, index: int | None) -> None:
        """Show the pool at an index; None keeps the present one."""
        if index is not None:
            self.view_state.select(index)
            self.paint()

    def action_chassis(self) -> None:
        """Show the slots of the enclosures; go to the device chosen there."""
        from zconsole.ui.panes.chassis import NO_CHASSIS, ChassisScreen, bays

        def _go(found: tuple[str, str] | None) -> None:
            if found is not None:
                self.view_state.pool = found[0]
                self.paint()
                self.devices.go_to(found[1])

        if not bays(self.view_state.frames):
            self.answer(NO_CHASSIS, 6)
            return
        row = self.main_screen.row
        start = row.vdev.disk if row is not None else None
        self.push_screen(ChassisScreen(self.view_state, start, self.feed.lights), _go)

    def action_what_if(self) -> None:
        """Predict what more vdevs or larger disks would bring."""
        from zconsole.ui.dialogs.what_if_screen import Question, WhatIfScreen

        if (frame := self.view_state.frame) is not None:
            question = Question("", frame, row=self.main_screen.row)
            self.push_screen(WhatIfScreen(self.view_state, question))

    def action_zpool(self) -> None:
        """Show what zpool itself says about the pool on show."""
        from zconsole.ui.dialogs.zpool_screen import ZpoolScreen

        if (frame := self.view_state.frame) is not None:
            ask = partial(self.feed.zpool_outputs, frame.pool)
            self.push_screen(ZpoolScreen(self.view_state.look.text(frame.pool), ask))

    # Copies and pictures

    def action_copy(self) -> None:
        """Copy a text about the row or screen to the terminal's clipboard; ask which of several.

        This uses OSC 52, which works over ssh, too. No terminal confirms it, and tmux ignores it
        unless it is configured.
        """
        top, options, look = self.screen, self.view_state.options, self.view_state.look
        offers = top.copies() if isinstance(top, (MainScreen, Dialog)) else ()
        lines = isinstance(top, Dialog) and top.copies_lines

        def _copy(index: int | None) -> None:
            if index is not None:
                what, text = offers[index]
                safe = text if lines else clean(text)
                self.copy_to_clipboard(safe)
                said = f"{what} sent to the terminal's clipboard: {_brief(safe)}"
                self.answer(f"{said}\n{TMUX_HINT}" if options.in_tmux else said, 4)

        if not offers:
            self.answer("nothing to copy here", 4)
        elif len(offers) == 1:
            _copy(0)
        else:
            brief = ((what, _brief(text) if lines else text) for what, text in offers)
            listed = [(Span(f" {what:<9} {look.text(text)}"),) for what, text in brief]
            self.push_screen(PickScreen(PickList("COPY", lambda *_: listed)), _copy)

    def action_picture(self) -> None:
        """Save a picture of the screen to the directory where the console was started."""
        from zconsole.ui.new_file import portable, save_new

        save_new(self, portable(self.export_screenshot()), "picture", "svg")

    def action_act(self, flow: str) -> None:
        """Start the flow of an action key for the row at the cursor."""
        if self.actions is not None:
            row = self.main_screen.row
            self.actions.start(self, flow, row.key if row is not None else "")

    # The console

    def action_help(self) -> None:
        """Show the keys of the screen on top."""
        if not isinstance(self.screen, HelpScreen):
            about = self.screen if isinstance(self.screen, Dialog) else None
            typing = isinstance(self.screen.focused, Input)
            help_screen = HelpScreen(about, self.feed.interval, typing=typing)
            self.push_screen(help_screen)

    def action_pause(self) -> None:
        """Freeze the panes or continue, with a live header; pause, continue or repeat a replay."""
        if (playback := self.feed.playback) is None:
            self.view_state.toggle_pause()
        elif self.view_state.ended and playback.span is not None:
            self._move_in_recording(False, lambda playback: playback.play_again())
        elif not self._has_ended():
            playback.toggle()
        self.paint()

    def action_seek(self, share: float) -> None:
        """Move within a recording by a share of its length."""
        self._move_in_recording(share > 0, lambda playback: playback.seek(share))

    def action_step(self, direction: int) -> None:
        """Pause a recording one sample later (1) or earlier (-1)."""
        self._move_in_recording(direction > 0, lambda playback: playback.step(direction))

    def action_event(self, direction: int) -> None:
        """Pause a recording at the next event (1) or the previous one (-1)."""
        self._move_in_recording(direction > 0, lambda playback: playback.search(direction))

    def action_go_to(self) -> None:
        """List the events of a recording; pause at the one chosen, or at the time typed."""
        from zconsole.ui.dialogs.go_to_screen import GoToScreen

        def _go(at: float | None) -> None:
            if at is not None:
                self._move_in_recording(False, lambda playback: playback.pause_at(at))

        if isinstance(self.feed, ReplayFeed):
            if (span := self.feed.playback.span) is None:
                self.answer(NO_PLACES, 4)
            else:
                self.push_screen(GoToScreen(self.feed, span), _go)

    def _move_in_recording(self, is_on: bool, move: Callable[[Playback], bool]) -> None:
        playback = self.feed.playback
        if playback is None or (is_on and self._has_ended()):
            return
        if not move(playback):
            self.answer(NO_PLACES, 4)
        elif self.view_state.ended:
            # The feed had ended: read it again, from the new place.
            self.view_state.ended = False
            begin(self, self._poll, group="poll", exclusive=True)
        self.paint()

    def _has_ended(self) -> bool:
        """Return whether the recording was played to its end; notify the operator if so."""
        if self.view_state.ended:
            back = self.view_state.look.keys.shown("back-10")
            self.answer(f"the recording has ended; {back} goes back 10 %", 4)
        return self.view_state.ended

    def action_speed(self, step: int) -> None:
        """Play a recording or a demo faster or slower."""
        if self._faster is not None and not self._has_ended():
            speed = self._faster(step)
            self.paint()
            if not self.main_on_top:  # other screens do not show it
                self.answer(f"speed {speed:g}x", 3)

    @property
    def _faster(self) -> Callable[[int], float] | None:
        """Function that changes the speed of a recording or demo by steps; None in real time."""
        played = self.feed.playback
        return self.feed.faster if played is None else played.faster

    def action_interval(self, step: int) -> None:
        """Sample less often or more often."""
        now = self.feed.interval
        if not now:
            keys = self.view_state.look.keys
            speed = f"{keys.shown('slower')} {keys.shown('faster')}"
            said = f"a recording has its own interval; {speed} set the speed it is played at"
            self.answer(said, 3)
            return
        further = [s for s in INTERVALS if (s > now if step > 0 else s < now)]
        if further:
            self.feed.set_interval(further[0] if step > 0 else further[-1])
            self.paint()

    def action_units(self) -> None:
        """Switch to the next unit of sizes."""
        look = self.view_state.look
        unit = UNITS[(UNITS.index(look.unit) + 1) % len(UNITS)]
        self.view_state.look = replace(look, unit=unit)
        self.answer(f"sizes {UNIT_WORDS[unit]}", 4)
        self.paint()

    def action_themes(self) -> None:
        """Choose a theme, with a preview of the one at the cursor."""
        choose_theme(self)

    def action_save_look(self) -> None:
        """Save the present look of the console to the configuration."""
        save_look(self, self.main_screen)

    async def action_back(self) -> None:
        """Go back one step, but never leave the console."""
        if self.main_on_top:
            self.messages.forget_before(self.screen, monotonic() - PAGE)
            self.update_messages()
            self.main_screen.back()
        elif not (isinstance(self.screen, Dialog) and self.screen.step_back()):
            self.screen.dismiss(None)

    async def action_leave(self) -> None:
        """Leave the screen on top, or the console; ask first if work would be left behind."""
        if not self.main_on_top:
            await self.action_back()
        else:
            self._leave(ExitCode.OK)

    def action_interrupt(self) -> None:
        """Quit from any screen: at once if nothing is left behind, else when pressed again."""
        self._leave(ExitCode.INTERRUPTED)

    def _leave(self, code: ExitCode) -> None:
        if self.actions is None or not self.actions.asks_to_leave(code):
            self.exit(return_code=code)

    def get_system_commands(self, _: Screen[object]) -> Iterable[SystemCommand]:
        """Yield the commands of the palette: all with a key, and some without."""
        state = self.view_state
        for title, about, action in state.look.keys.choices(state.denied):
            yield SystemCommand(title, about, partial(self.call_later, self.run_action, action))
        if (config := state.options.config) is not None and state.options.saves:
            about = f"theme, units, sort and panes, to {config.path}"
            yield SystemCommand("Save how the console looks", about, self.action_save_look)
        tell = partial(self.notify, REPORTS, timeout=12)
        yield SystemCommand("Report of a past scan", "how to write, list and compare them", tell)
