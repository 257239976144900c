"""Main screen: its panes, their layout, and the keys that arrange them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from textual import getters
from textual.app import ComposeResult
from textual.containers import Container
from textual.geometry import Size
from textual.screen import Screen
from textual.widgets import Input

from zconsole.config.settings import PANES
from zconsole.timeline.frame import Frame, Pairs, VdevRow
from zconsole.ui.dialogs.screens import Prompt
from zconsole.ui.panes.balance import BalancePane
from zconsole.ui.panes.devices import SORTS, DeviceView
from zconsole.ui.panes.events import EventsPane
from zconsole.ui.panes.header import first_line, header_lines, notice_line
from zconsole.ui.panes.help import footer_line, keys_line, playback_line
from zconsole.ui.panes.overview import tab_line
from zconsole.ui.panes.pane import SMALLEST, Heights, Pane, Scene, Wish, allot, is_crowded
from zconsole.ui.panes.reasons import wanted_action
from zconsole.ui.panes.scan import ScanPane
from zconsole.ui.themed_app import ThemedApp, begin
from zconsole.ui.view_state import HeaderStatus, ViewState
from zconsole.ui.widgets.draw import Lines, Span
from zconsole.ui.widgets.lines_view import FooterView, LinesView

_FILTER = "show only: name, bay, serial, path, state, note"

Details = Callable[[str, str], Awaitable[Pairs]]
"""Returns what the feed knows of a device, by pool and key."""


class MainScreen(Screen[None]):
    """Main screen: header, tabs, scan, devices, balance, events and footer."""

    app = getters.app(ThemedApp)
    # Textual would focus the first pane, the scan, but most keys act on the list.
    AUTO_FOCUS = "#devices"

    def __init__(self, state: ViewState, details: Details, ready: Callable[[], None]) -> None:
        """``ready`` is called once all parts are mounted."""
        super().__init__()
        listed = state.options.setting("panes")
        self.chosen: dict[str, bool] = {pane: False for pane in PANES if pane not in listed}
        """Panes that the operator has shown or hidden; the others come and go with the room."""
        self.zoomed: str | None = None
        self._state = state
        self._details = details
        self._ready = ready
        self._status: HeaderStatus | None = None
        self._header: Lines = ()
        self._drawn_for: Size | None = None
        """Size of the terminal for which everything was drawn; None if the last frames were not,
        as another screen covered this one or the terminal was too small."""
        sort, columns = map(state.options.setting, ("sort", "columns"))
        self.scan = ScanPane(repaint=self.repaint)
        self.devices = DeviceView(sort, columns)
        self.panes: dict[str, Pane] = {
            pane.pane_id: pane
            for pane in (self.scan, self.devices, BalancePane(), EventsPane())  # from the top
        }
        self._top = LinesView(id="header"), LinesView(id="tabs")
        self._footer = FooterView(id="footer")

    def compose(self) -> ComposeResult:
        """Yield the parts from the top."""
        yield from self._top
        low = []
        for pane in self.panes.values():
            if pane.place == "bottom":
                low.append(pane)
            else:
                yield pane
        yield Container(*low, id="bottom")
        yield self._footer

    def on_mount(self) -> None:
        """Report that frames can be painted."""
        self._ready()

    def waiting(self, text: str) -> None:
        """Show what is being waited for, before the first frame."""
        self._top[0].show(((Span(f" {text}", "dim"),),))
        self._resize(Heights({}), header=1, tabs=0)

    def paint(self, status: HeaderStatus) -> None:
        """Paint the newest frames; only cells that changed are sent to the terminal."""
        state, frame, body = self._state, self._visible, self._state.body
        self._status, self._drawn_for = status, None
        if frame is None or body is None:
            return
        width, height = self.app.size
        if self._is_small:
            self._resize(Heights({}), header=1, tabs=0)
            self._top[0].show((notice_line(frame, state.look, width),))
            quits = f" too small; {state.look.keys.shown('quit')} quits"
            self._footer.show(((Span(quits, "dim"),),))
            return
        self._drawn_for = self.app.size
        tabs = 1 if len(state.frames) > 1 else 0
        header = header_lines(frame, status, state.look, width, height)
        footer = 1 if state.playback is None else 2  # a replay has a line with its position
        room = height - tabs - footer - len(header)
        scene = Scene(body, state.look, state.source, width, height, room, self.zoomed)
        wishes = self._wishes(scene)
        if is_crowded(height, room, wishes):
            # First the panes save lines, then the header.
            scene = scene._replace(compact=True)
            wishes = self._wishes(scene)
            if is_crowded(height, room, wishes):
                header = header_lines(frame, status, state.look, width, height, brief=True)
                scene = scene._replace(room=height - tabs - footer - len(header))
                wishes = self._wishes(scene)
        self._header = header
        heights = allot(width, scene.room, wishes, self.chosen, self.zoomed)
        self._resize(heights, header=len(header), tabs=tabs)
        self._top[0].show(header)
        if tabs:
            self._top[1].show((tab_line(state.frames, state.index, state.look, width),))
        for name, pane in self.panes.items():
            half = heights.side and pane.place == "bottom"
            columns = width // 2 if half else width
            pane.paint(scene._replace(width=columns, lines=heights.lines[name]))
        self._paint_footer(frame, width)

    def paint_header(self, status: HeaderStatus) -> None:
        """Paint only the header's first line, whose age and flags change between frames."""
        if (frame := self._visible) is not None and not self._is_small:
            first = first_line(frame, status, self._state.look, *self.app.size)
            self._header = (first, *self._header[1:])
            self._top[0].show(self._header)

    def on_descendant_focus(self) -> None:
        """Show the keys of the pane that got the focus."""
        if self._drawn_for is not None and (frame := self._visible) is not None:
            self._paint_footer(frame, self.app.size.width)

    def repaint(self) -> None:
        """Paint again, after a change of size or arrangement."""
        if self._status is not None:
            self.paint(self._status)

    def on_resize(self) -> None:
        """Lay out for the new size; repeated events of textual are ignored."""
        if self._is_whole and self.app.size != self._drawn_for:
            self.repaint()

    def on_screen_resume(self) -> None:
        """Paint the frames that came while another screen covered this one."""
        self.repaint()

    @property
    def _visible(self) -> Frame | None:
        """Frame to paint; None if the screen is covered or not mounted.

        Textual would redraw a screen that covers this one whenever this one changes.
        """
        top = self.app.screen
        is_hidden = top is not self and not top.has_class("side")
        return self._state.frame if self._is_whole and not is_hidden else None

    @property
    def _is_small(self) -> bool:
        """Whether there is only room for a notice."""
        width, height = self.app.size
        return width < SMALLEST[0] or height < SMALLEST[1]

    # Panes

    def action_pane(self, pane: str) -> None:
        """Hide a pane, or show a hidden one and focus it, as the next keys are meant for it."""
        self.chosen[pane] = not self.panes[pane].display
        self.zoomed = None
        self.repaint()
        shown = [each for each in (self.panes[pane], self.devices) if each.display]
        self.set_focus(shown[0] if shown else None)

    def action_show_pane(self, pane: str) -> None:
        """Focus a pane; show it first if hidden, zoomed if there is no other room for it."""
        # First in the usual layout, then zoomed if that has no room for it.
        for zoomed in (None, pane):
            if not self.panes[pane].display:
                self.chosen[pane], self.zoomed = True, zoomed
                self.repaint()
        self.set_focus(self.panes[pane])

    def action_zoom(self) -> None:
        """Give the focused pane the whole screen, or undo that."""
        focused = self.focused.pane_id if isinstance(self.focused, Pane) else None
        self.zoomed = None if self.zoomed else focused
        self.repaint()

    def next_pane(self, direction: int) -> None:
        """Move the focus to the next visible pane; the order starts at the devices."""
        displayed = (pane for pane in self.panes.values() if pane.display)
        shown = sorted(displayed, key=lambda pane: pane is not self.devices)
        if not shown:
            return
        now = next((n for n, pane in enumerate(shown) if pane is self.focused), -direction)
        # Immediately, as the next key may be queued already.
        self.set_focus(shown[(now + direction) % len(shown)])

    def back(self) -> None:
        """Undo the last arrangement: filter, earlier time, zoom, focus, or open details."""
        if self.query(Input):
            self.devices.rearrange(filter="")
            self.on_input_submitted()
        elif any(pane.to_now() for pane in self.panes.values()):
            return
        elif self.zoomed:
            self.action_zoom()
        elif self.focused is not self.devices and self.devices.display:
            self.set_focus(self.devices)
        elif self.devices.arrangement.filter:
            self.devices.rearrange(filter="")
        else:
            self.devices.expanded.clear()
            self.devices.rearrange()

    # The list

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Return whether an action has something to act on; only the list has a cursor."""
        match action:
            case "open":
                return self.devices.has_focus
            case "fold":
                return self.devices.has_focus or self._state.playback is not None
            case "sideways":
                return isinstance(self.focused, Pane) and self.focused.goes_sideways
        return super().check_action(action, parameters)

    @property
    def row(self) -> VdevRow | None:
        """The vdev at the cursor; None if there is none."""
        item = self.devices.current
        return item.row if item is not None else None

    def copies(self) -> Sequence[tuple[str, str]]:
        """Return the path, GUID and name of the row at the cursor."""
        if self.row is None:
            return ()
        vdev = self.row.vdev
        offers = (("path", vdev.path), ("GUID", vdev.guid), ("name", vdev.name))
        return tuple((what, str(text)) for what, text in offers if text)

    def action_open(self) -> None:
        """Open or close the details of a row, and ask the feed for more facts."""
        key, frame = self.devices.toggle_detail(), self._state.frame
        self.repaint()
        if key is None or frame is None:
            return
        pool = frame.pool

        async def _look_up() -> None:
            self.devices.learn(key, await self._details(pool, key))

        begin(self, _look_up, group="facts")

    def action_to_trouble(self) -> None:
        """Go to the next device that limits the scan, has failed or has errors, in this order."""
        if not self.devices.display:
            self.action_show_pane("devices")
        if not self.devices.to_trouble():
            self.app.answer("no device is slow, has failed or has errors", 3)
        self.set_focus(self.devices)

    def action_sort(self) -> None:
        """Switch to the next sort order."""
        orders = list(SORTS)
        now = orders.index(self.devices.arrangement.sort)
        self.devices.rearrange(sort=orders[(now + 1) % len(orders)])

    def action_sort_by(self, order: str) -> None:
        """Sort by the given order."""
        self.devices.rearrange(sort=order)

    async def action_fold(self) -> None:
        """Fold or unfold the row at the cursor; pause or continue a replay."""
        if self._state.playback is not None:
            await self.app.run_action("app.pause")
        else:
            self.devices.fold(lambda folded, row: folded ^ row)

    def action_sideways(self, direction: int) -> None:
        """Go left (-1) or right (1) in the focused pane: fold or unfold a row, or move in time."""
        if isinstance(self.focused, Pane):
            self.focused.sideways(direction)

    def action_filter(self) -> None:
        """Open a prompt for a text; only rows with it are shown."""
        if not self.query(Input):
            shown = self.devices.arrangement.filter
            prompt = Prompt(shown, id="prompt", placeholder=_FILTER)
            self.mount(prompt, before=self._footer)
            self.set_focus(prompt)  # the next key may be queued already

    def on_input_changed(self, message: Input.Changed) -> None:
        """Filter while the text is typed."""
        self.devices.rearrange(filter=message.value.strip())

    def on_input_submitted(self) -> None:
        """Keep the filter and close the prompt."""
        self.query(Input).remove()
        self.devices.focus()

    # Drawing

    @property
    def _is_whole(self) -> bool:
        """Whether all parts are mounted; while closing, a last frame may come without them."""
        views = (*self._top, *self.panes.values(), self._footer)
        return all(view.is_attached for view in views)

    def _wishes(self, scene: Scene) -> list[Wish]:
        """Return the wishes of the panes; each pane is told the wishes of those below it."""
        wishes: list[Wish] = []
        for pane in reversed(self.panes.values()):
            wishes.insert(0, pane.wish(scene._replace(below=tuple(wishes))))
        return wishes

    def _resize(self, heights: Heights, *, header: int, tabs: int) -> None:
        for view, lines in zip(self._top, (header, tabs), strict=True):
            _set_height(view, lines)
        for name, pane in self.panes.items():
            lines = heights.lines.get(name, 0)
            if pane.place == "list":  # it gets the rest
                pane.display = lines > 0
            else:
                _set_height(pane, lines)
        bottom = self.query_one("#bottom")
        low = (pane for pane in self.panes.values() if pane.place == "bottom")
        bottom.display = any(heights.lines.get(pane.pane_id) for pane in low)
        bottom.set_class(heights.side, "side")

    def _paint_footer(self, frame: Frame, width: int) -> None:
        state, played = self._state, self._state.playback
        pane = self.focused
        typing = partial(keys_line, ("Answer",), state.look, typing=True)
        footer = partial(
            footer_line,
            state.look,
            several_pools=len(state.frames) > 1,
            denied=state.denied,
            played=played,
            ended=state.ended,
            paused=state.frozen is not None or (played is not None and played.paused),
            zoomed=self.zoomed is not None,
            first=wanted_action(frame),
            own=pane.keys if isinstance(pane, Pane) else (),
        )
        position: Lines = ()
        if played is not None:
            position = (playback_line(played, state.look, width, ended=state.ended),)
        self._footer.share(position, typing if isinstance(self.focused, Input) else footer)


def _set_height(view: LinesView, lines: int) -> None:
    """Set the height of a view in lines; 0 hides it."""
    view.display = lines > 0
    if lines:
        view.styles.height = lines
