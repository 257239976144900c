"""The console: keys to actions, frames to the board. Sampling and painting are two clocks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import ClassVar

from textual.app import ComposeResult, SystemCommand
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.timer import Timer

from zconsole.errors import ExitCode, ZconsoleError
from zconsole.monitor.feed import Feed
from zconsole.ui.actions.keys import ACTIONS
from zconsole.ui.actions.loader import ActionLoader
from zconsole.ui.alerting import tell
from zconsole.ui.background import begin
from zconsole.ui.console_options import ConsoleOptions
from zconsole.ui.dialogs.screens import PickScreen, TextScreen
from zconsole.ui.dialogs.theme_list import open_theme_list
from zconsole.ui.display_format import UNIT_MODES, DisplayFormat
from zconsole.ui.environment import terminal_ready
from zconsole.ui.keys import TABLE, choices
from zconsole.ui.main_screen import MainScreen
from zconsole.ui.messages import FactsFound, FeedEnded, FramesReady
from zconsole.ui.panes.device_tree import SORTS
from zconsole.ui.panes.devices import DeviceView
from zconsole.ui.panes.help import help_lines
from zconsole.ui.panes.overview import overview_lines
from zconsole.ui.theme.files import ThemeFile
from zconsole.ui.themed_app import ThemedApp
from zconsole.ui.view_state import ViewState
from zconsole.ui.widgets.filter_prompt import FilterPrompt
from zconsole.ui.widgets.lines_view import LinesView

INTERVALS = (0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0)
"""Seconds that ``+`` and ``-`` go through."""
_PAINT_GAP = 1.0
_TICK = 1.0


class Console(ThemedApp):
    """The live screen over one feed, with keys that change the pools it shows."""

    TITLE = "zconsole"
    CSS_PATH = "console.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(",".join(key.keys), key.action, key.text, show=False, priority=key.priority)
        for key in (*TABLE, *ACTIONS)
    ]

    def __init__(
        self,
        feed: Feed,
        options: ConsoleOptions,
        look: DisplayFormat,
        themes: Iterable[ThemeFile],
        actions: ActionLoader | None = None,
        *,
        writable: Callable[[], bool] = terminal_ready,
        notices: Sequence[str] = (),
        ansi_color: bool | None = None,
    ) -> None:
        """Without ``actions`` the keys that change something do nothing and are not offered."""
        super().__init__(ViewState(options, look), themes, ansi_color)
        self.feed = feed
        self.actions = actions
        self.failure: ZconsoleError | None = None
        """What ended the feed before it gave anything."""
        self._clock = options.clock
        self._writable = writable
        self._notices = tuple(notices)
        self._behind = False
        self._painted = float("-inf")
        self._timer: Timer | None = None

    def compose(self) -> ComposeResult:
        """The board is all there is."""
        yield MainScreen()

    @property
    def main_screen(self) -> MainScreen:
        """The main screen's parts, also while another screen is over it."""
        return self.screen_stack[0].query_one(MainScreen)

    @property
    def _is_open(self) -> bool:
        """Whether there is a main screen: as a console closes, screens end before timers."""
        return bool(self.screen_stack and self.screen_stack[0].query(MainScreen))

    @property
    def devices(self) -> DeviceView:
        """The device list."""
        return self.main_screen.devices

    def on_mount(self) -> None:
        """Dress, start listening to the feed and ticking."""
        self.set_class(self.view_state.look.glyphs.is_ascii, "ascii")
        self._dress()
        self.theme_changed_signal.subscribe(self, lambda _: self._dress())
        self.app_resume_signal.subscribe(self, lambda _: self._redraw())
        self.main_screen.waiting("waiting for the first sample")
        self.devices.focus()
        begin(self, self._poll, group="poll", exclusive=True)
        self.set_interval(_TICK, self._tick)
        if self._notices:
            self.notify("\n".join(self._notices), severity="warning", markup=False)

    # Frames

    async def _poll(self) -> None:
        """Await the feed; nothing else waits for a sample."""
        try:
            while (update := await self.feed.next()) is not None:
                tell(self, update)
                self.post_message(FramesReady(update, self._clock()))
        except ZconsoleError as error:
            self.failure = error
            self.exit(return_code=error.code)
        else:
            self.post_message(FeedEnded())

    def on_frames_ready(self, message: FramesReady) -> None:
        """Take the round, and paint it unless one was painted a moment ago."""
        update = message.update if self.actions is None else self.actions.take(self, message.update)
        self.view_state.take(update, message.arrived)
        gap = min(_PAINT_GAP, self.feed.interval)
        wait = self._painted + gap * 0.9 - self._clock()
        if wait <= 0:
            self.paint()
        elif self._timer is None:
            self._timer = self.set_timer(wait, self.paint)

    def on_feed_ended(self) -> None:
        """Say so; what was shown last stays."""
        self.view_state.ended = True
        self.paint()

    def paint(self) -> None:
        """Show the newest round, unless the terminal is still busy with what it got before."""
        if self._timer is not None:
            self._timer.stop()
            self._timer = None
        if not self._is_open:
            return
        self._behind = not self._writable()
        view_model = self.view_state.view_model(self._clock(), self.feed.interval)
        if self._behind or view_model is None:
            if not self._behind and self.view_state.poolless:
                self.main_screen.waiting("no pools are imported; waiting for one")
            return
        self._painted = self._clock()
        self.main_screen.paint(view_model)
        if isinstance(self.screen, PickScreen):
            self.screen.update()

    def _tick(self) -> None:
        """Keep the age of the sample true between rounds, and catch up after a slow line."""
        if not self._is_open:
            return
        if self._behind:
            self.paint()
            return
        view_model = self.view_state.view_model(self._clock(), self.feed.interval)
        if view_model is not None and self._writable():
            self.main_screen.paint_header(view_model)

    def _redraw(self) -> None:
        """Send every cell again: the shell has had the terminal."""
        self.screen.refresh()

    # Moving about

    def action_move(self, lines: int) -> None:
        """Move the cursor, or scroll; from the filter prompt, the cursor of the list."""
        view = self.focused if isinstance(self.focused, LinesView) else self.devices
        view.move(lines)

    def action_page(self, pages: int) -> None:
        """Move by a screen full."""
        if isinstance(self.focused, LinesView):
            self.focused.page(pages)

    def action_edge(self, direction: int) -> None:
        """Go to one end."""
        if isinstance(self.focused, LinesView):
            self.focused.edge(direction)

    def action_next_pane(self, direction: int) -> None:
        """Move the focus between panes, or between the parts of a question."""
        if self.main_on_top:
            self.main_screen.focus_next(direction)
        else:
            (self.screen.focus_next if direction > 0 else self.screen.focus_previous)()

    def action_pane(self, pane: str) -> None:
        """Show or hide a pane."""
        if self.main_on_top:
            self.main_screen.toggle(pane)

    def action_zoom(self) -> None:
        """Give the focused pane everything, or take it back."""
        if self.main_on_top:
            self.main_screen.zoomed = (
                None if self.main_screen.zoomed else self.main_screen.focused_pane()
            )
            self.main_screen.repaint()

    # The list

    def action_detail(self) -> None:
        """Open or close the detail of a row; on a list to pick from, pick."""
        if isinstance(self.screen, PickScreen):
            self.screen.choose()
        elif self.main_on_top and (key := self.devices.toggle_detail()) and self.view_state.frame:
            begin(self, partial(self._look_up, self.view_state.frame.pool, key), group="facts")

    async def _look_up(self, pool: str, key: str) -> None:
        facts = await self.feed.details(pool, key)
        self.post_message(FactsFound(pool, key, facts))

    def on_facts_found(self, message: FactsFound) -> None:
        """Show what was found about a device."""
        self.devices.set_facts(message.key, message.facts)

    def action_sort(self) -> None:
        """Go on to the next order."""
        names = list(SORTS)
        after = names[(names.index(self.devices.arrangement.sort) + 1) % len(names)]
        self._rearrange(sort=after)

    def action_fold(self) -> None:
        """Fold or unfold the row at the cursor."""
        self._fold(lambda key, folded: folded ^ {key})

    def action_fold_in(self) -> None:
        """Fold the row at the cursor; from one without rows below it, go to the one above."""
        item = self.devices.current
        if item is None or item.row is None or not item.row.vdev.children or item.folded:
            self.devices.to_parent()
        else:
            self._fold(lambda key, folded: folded | {key})

    def action_fold_out(self) -> None:
        """Unfold the row at the cursor."""
        self._fold(lambda key, folded: folded - {key})

    def _fold(self, change: Callable[[str, frozenset[str]], frozenset[str]]) -> None:
        item = self.devices.current
        if self.main_on_top and item is not None and item.row is not None:
            self._rearrange(folded=change(item.key, self.devices.arrangement.folded))

    def action_filter(self) -> None:
        """Ask for the text to show only rows with."""
        if self.main_on_top and not self.query(FilterPrompt):
            prompt = FilterPrompt(self.devices.arrangement.filter)
            self.main_screen.show_prompt(prompt)

    def on_input_changed(self, message: FilterPrompt.Changed) -> None:
        """Filter as it is typed."""
        self._rearrange(filter=message.value.strip())

    def on_input_submitted(self, message: FilterPrompt.Submitted) -> None:
        """Keep the filter, close the prompt."""
        self._close_prompt()

    def _close_prompt(self) -> None:
        self.main_screen.close_prompt()
        self.devices.focus()

    def _rearrange(self, **change: object) -> None:
        self.devices.arrangement = replace(self.devices.arrangement, **change)  # type: ignore[arg-type]
        self.devices.rearrange()

    # Pools

    def action_pool(self, step: int) -> None:
        """Show the next pool."""
        self.view_state.select(self.view_state.index + step)
        self.paint()

    def action_overview(self) -> None:
        """List all pools, to open one."""
        if not self.main_on_top or not self.view_state.frames:
            return
        screen = PickScreen(
            "POOLS",
            lambda width: overview_lines(self.view_state.frames, self.view_state.look, width),
            self.palette,
            start=self.view_state.index,
            wide=True,
        )
        self.push_screen(screen, self._open_pool)

    def _open_pool(self, index: int | None) -> None:
        if index is not None:
            self.view_state.select(index)
            self.paint()

    def action_what_if(self) -> None:
        """Ask what more vdevs or larger disks would bring."""
        # Only here: few ask, and everybody waits for the first paint.
        from zconsole.ui.dialogs.what_if_screen import open_what_if

        if self.main_on_top:
            item = self.devices.current
            open_what_if(self, item.row if item is not None else None)

    # What changes something

    def action_act(self, flow: str) -> None:
        """Start what an action key asks for, about the row at the cursor."""
        if self.actions is not None:
            item = self.devices.current
            key = item.key if item is not None and item.row is not None else None
            self.actions.start(self, flow, key)

    # The console

    def action_help(self) -> None:
        """Show every key."""
        if self.main_on_top:
            look, offers = self.view_state.look, self.view_state.offers
            self.push_screen(
                TextScreen("HELP", lambda width: help_lines(look, width, offers), self.palette)
            )

    def action_pause(self) -> None:
        """Freeze the body or go on; the header keeps telling the truth."""
        self.view_state.toggle_pause()
        self.paint()

    def action_interval(self, step: int) -> None:
        """Sample less or more often."""
        now = self.feed.interval
        if not now:
            self.notify("the source sets its own pace", timeout=3)
            return
        further = [s for s in INTERVALS if (s > now if step > 0 else s < now)]
        if further:
            self.feed.set_interval(further[0] if step > 0 else further[-1])
            self.paint()

    def action_units(self) -> None:
        """Write sizes the next way."""
        look = self.view_state.look
        unit = UNIT_MODES[(UNIT_MODES.index(look.unit) + 1) % len(UNIT_MODES)]
        self.view_state.look = replace(look, unit=unit)
        self.paint()

    def action_themes(self) -> None:
        """Choose a theme; each is put on as the cursor comes to it."""
        if self.main_on_top:
            open_theme_list(self)

    def action_change_theme(self) -> None:
        """What textual's own palette calls for a theme."""
        self.action_themes()

    async def action_back(self) -> None:
        """One step back; never out of the console."""
        if isinstance(self.screen, PickScreen):
            self.screen.dismiss(None)
        elif isinstance(self.screen, TextScreen):
            self.screen.dismiss()
        elif self.query(FilterPrompt):
            self._rearrange(filter="")
            self._close_prompt()
        elif self.main_screen.zoomed:
            self.action_zoom()
        elif self.devices.arrangement.filter:
            self._rearrange(filter="")
        elif self.devices.expanded:
            self.devices.expanded.clear()
            self.devices.rearrange()

    async def action_leave(self) -> None:
        """Leave the screen on top, or the console: after asking, if something is left behind."""
        if not self.main_on_top:
            await self.action_back()
        elif self.actions is not None and self.actions.left_behind():
            self.actions.start(self, "leave", None)
        else:
            self.exit(return_code=ExitCode.OK)

    def action_interrupt(self) -> None:
        """Leave at once, whatever is on top."""
        self.exit(return_code=ExitCode.INTERRUPTED)

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """What the palette offers."""
        for title, about, action in choices(self.view_state.offers):
            run = partial(self.call_later, self.run_action, action)
            yield SystemCommand(title, about, run)

    def _dress(self) -> None:
        """Paint everything in the present theme."""
        self.main_screen.dress(self.palette)
        if isinstance(self.screen, PickScreen):
            self.screen.dress(self.palette)
