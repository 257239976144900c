"""The main screen's parts and what each of them shows of a frame."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from textual.app import ComposeResult
from textual.containers import Container
from textual.geometry import Size
from textual.screen import Screen
from textual.widgets import Input

from zconsole.config.settings import PANES
from zconsole.timeline.frame import Frame, Pairs
from zconsole.ui.background import begin
from zconsole.ui.dialogs.screens import Prompt
from zconsole.ui.pane_layout import SMALLEST, TALL, Heights, Wish, allot, is_crowded
from zconsole.ui.panes.balance import BalancePane
from zconsole.ui.panes.device_columns import has_failed
from zconsole.ui.panes.device_tree import SORTS
from zconsole.ui.panes.devices import DeviceView
from zconsole.ui.panes.events import EventsPane
from zconsole.ui.panes.header import HeaderStatus, first_line, header_lines, notice_line
from zconsole.ui.panes.help import footer_line, keys_line, wanted_action
from zconsole.ui.panes.overview import tab_line
from zconsole.ui.panes.pane import Pane, Scene
from zconsole.ui.panes.playback import playback_line
from zconsole.ui.panes.scan import ScanPane
from zconsole.ui.view_state import ViewState
from zconsole.ui.widgets.draw import Line, Span
from zconsole.ui.widgets.footer_view import FooterView
from zconsole.ui.widgets.lines_view import LinesView

_FILTER = "show only: name, bay, serial, path, state, note"

Details = Callable[[str, str], Awaitable[Pairs]]
"""Pool and key of a device to what its feed knows of it."""


class MainScreen(Screen[None]):
    """Header, tabs, scan, devices, balance, events and footer; the keys that arrange them."""

    # Textual would begin with the first pane, the scan; the keys of most use are the list's.
    AUTO_FOCUS = "#devices"

    def __init__(self, state: ViewState, details: Details, ready: Callable[[], None]) -> None:
        """``ready`` is called once every part is there."""
        super().__init__()
        listed = state.options.setting("panes")
        self.chosen: dict[str, bool] = {pane: False for pane in PANES if pane not in listed}
        """Panes shown or hidden by the operator; the others come and go with the room."""
        self.zoomed: str | None = None
        self._state = state
        self._details = details
        self._ready = ready
        self._status: HeaderStatus | None = None
        self._header: tuple[Line, ...] = ()
        self._drawn_for: tuple[Size, ...] = ()
        """The sizes that all was last drawn for; none where the terminal was too small."""
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
        """The parts, from the top."""
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
        """Say that frames can come."""
        self._ready()

    def waiting(self, text: str) -> None:
        """Before the first frame: say what is being waited for."""
        self._top[0].show(((Span(f" {text}", "dim"),),))
        self._resize(Heights({}), header=1, tabs=0)

    def paint(self, status: HeaderStatus) -> None:
        """Show the newest frames; only what differs from the last ones reaches the terminal."""
        state, frame, body = self._state, self._visible, self._state.body
        self._status = status
        if frame is None or body is None:
            return
        width, height = self.app.size
        if self._is_small:
            self._drawn_for = ()
            self._resize(Heights({}), header=1, tabs=0)
            self._top[0].show((notice_line(frame, state.look, width),))
            self._footer.show(((Span(" too small; q quits", "dim"),),))
            return
        self._drawn_for = self._sizes
        tabs = 1 if len(state.frames) > 1 else 0
        header = header_lines(frame, status, state.look, width, height)
        scene = Scene(body, state.look, state.source, width, height, zoomed=self.zoomed)
        scene = scene._replace(header=len(header) + tabs)
        if self._is_crowded(scene):
            scene = scene._replace(compact=True)
            if self._is_crowded(scene):
                header = header_lines(frame, status, state.look, width, height, brief=True)
                scene = scene._replace(header=len(header) + tabs)
        self._header = header
        heights = allot(width, scene.room, self._wishes(scene), self.chosen, self.zoomed)
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
        """Show only the header's first line: its age and flags move while the rest stands."""
        if (frame := self._visible) is not None and not self._is_small:
            first = first_line(frame, status, self._state.look, *self.app.size)
            self._header = (first, *self._header[1:])
            self._top[0].show(self._header)

    def on_descendant_focus(self) -> None:
        """Show the keys of the pane that took the focus."""
        if self._drawn_for and (frame := self._visible) is not None:
            self._paint_footer(frame, self.app.size.width)

    def repaint(self) -> None:
        """Show it again, after a change of size or arrangement."""
        if self._status is not None:
            self.paint(self._status)

    def on_resize(self) -> None:
        """Lay out for the new size, of which textual tells several times."""
        if self._is_whole and self._sizes != self._drawn_for:
            self.repaint()

    def on_screen_resume(self) -> None:
        """Show what came while another screen hid this one."""
        self.repaint()

    @property
    def _visible(self) -> Frame | None:
        """The frame to show, unless it would not be seen.

        Where another screen is over all of this one, textual would send that one anew each time.
        """
        top = self.app.screen
        is_hidden = top is not self and not top.has_class("side")
        return self._state.frame if self._is_whole and not is_hidden else None

    @property
    def _is_small(self) -> bool:
        """Whether there is room for a notice only."""
        width, height = self.app.size
        return width < SMALLEST[0] or height < SMALLEST[1]

    # Panes

    def action_pane(self, pane: str) -> None:
        """Show a hidden pane, hide a shown one."""
        self.chosen[pane] = not self.panes[pane].display
        self.zoomed = None
        self.repaint()

    def action_show_pane(self, pane: str) -> None:
        """Focus a pane, and show it first where it is hidden; alone if there is no room for it."""
        for zoomed in (None, pane):
            if not self.panes[pane].display:
                self.chosen[pane], self.zoomed = True, zoomed
                self.repaint()
        self.set_focus(self.panes[pane])

    def action_zoom(self) -> None:
        """Give the focused pane everything, or take it back."""
        focused = self.focused.pane_id if isinstance(self.focused, Pane) else None
        self.zoomed = None if self.zoomed else focused
        self.repaint()

    def next_pane(self, direction: int) -> None:
        """Move the focus to the next pane shown: from the devices to the scan first."""
        displayed = (pane for pane in self.panes.values() if pane.display)
        shown = sorted(displayed, key=lambda pane: pane is not self.devices)
        if not shown:
            return
        now = next((n for n, pane in enumerate(shown) if pane is self.focused), -direction)
        # At once: the next key may be here already.
        self.set_focus(shown[(now + direction) % len(shown)])

    def back(self) -> None:
        """Undo the newest of what was arranged: filter, time shown, zoom, focus, details."""
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
        """Whether an action has something to act on: in other panes no row is at the cursor."""
        match action:
            case "open":
                return self.devices.has_focus
            case "fold":
                return self.devices.has_focus or self._state.playback is not None
            case "fold_in" | "fold_out":
                return isinstance(self.focused, Pane) and self.focused.goes_sideways
        return super().check_action(action, parameters)

    def copies(self) -> Sequence[tuple[str, str]]:
        """What can be copied of the row at the cursor: its path, GUID and name."""
        item = self.devices.current
        if item is None or item.row is None:
            return ()
        vdev = item.row.vdev
        offers = (("path", vdev.path), ("GUID", vdev.guid), ("name", vdev.name))
        return tuple((what, str(text)) for what, text in offers if text)

    def action_open(self) -> None:
        """Open or close the detail of a row, and ask the feed for more about it."""
        key, frame = self.devices.toggle_detail(), self._state.frame
        self.repaint()
        if key is None or frame is None:
            return
        pool = frame.pool

        async def _look_up() -> None:
            self.devices.learn(key, await self._details(pool, key))

        begin(self, _look_up, group="facts")

    def action_to_trouble(self) -> None:
        """Go to the next device that is blamed, has failed or has errors, the blamed one first."""
        if not self.devices.display:
            self.action_show_pane("devices")
        if not self.devices.to_trouble():
            self.notify("no device is slow, has failed or has errors", timeout=3)
        self.set_focus(self.devices)

    def action_sort(self) -> None:
        """Go on to the next order."""
        orders = list(SORTS)
        now = orders.index(self.devices.arrangement.sort)
        self.devices.rearrange(sort=orders[(now + 1) % len(orders)])

    def action_sort_by(self, order: str) -> None:
        """Sort by one order."""
        self.devices.rearrange(sort=order)

    async def action_fold(self) -> None:
        """Fold or unfold the row at the cursor; pause a replay, as players do, or go on."""
        if self._state.playback is not None:
            await self.app.run_action("app.pause")
        else:
            self.devices.fold(lambda folded, row: folded ^ row)

    def action_fold_in(self) -> None:
        """Go left in the pane in focus: fold a row, or go back in time."""
        if isinstance(self.focused, Pane):
            self.focused.sideways(-1)

    def action_fold_out(self) -> None:
        """Go right in the pane in focus: unfold a row, or go on in time."""
        if isinstance(self.focused, Pane):
            self.focused.sideways(1)

    def action_filter(self) -> None:
        """Ask, above the keys, for the text to show only rows with."""
        if not self.query(Input):
            shown = self.devices.arrangement.filter
            prompt = Prompt(shown, id="prompt", placeholder=_FILTER)
            self.mount(prompt, before=self._footer)
            self.set_focus(prompt)  # at once: the next key may be here already

    def on_input_changed(self, message: Input.Changed) -> None:
        """Filter as it is typed."""
        self.devices.rearrange(filter=message.value.strip())

    def on_input_submitted(self) -> None:
        """Keep the filter, close the prompt."""
        self.query(Input).remove()
        self.devices.focus()

    # Drawing

    @property
    def _is_whole(self) -> bool:
        """Whether every part is there; on the way out a last frame may come to a bare screen."""
        return all(view.is_attached for view in self._views)

    @property
    def _sizes(self) -> tuple[Size, ...]:
        """The terminal's size, and what the last layout gave each part."""
        return (self.app.size, *(view.region.size for view in self._views))

    @property
    def _views(self) -> tuple[LinesView, ...]:
        """Every part, from the top."""
        return (*self._top, *self.panes.values(), self._footer)

    def _is_crowded(self, scene: Scene) -> bool:
        """Whether what stands above the list, as it is drawn now, leaves too few lines below it.

        This follows from what runs and what the pool consists of, not from what is said.
        """
        panes = self.panes.values()
        above = sum(pane.full(scene) for pane in panes if pane.place == "top")
        wishes = [pane.wish(scene) for pane in panes if pane.place != "top"]
        room = scene.height - scene.header - 1 - above
        return scene.height < TALL and is_crowded(scene.height, room, wishes)

    def _wishes(self, scene: Scene) -> list[Wish]:
        """What the panes want; those above the list are told what is wanted below them."""
        wishes: list[Wish] = []
        for pane in reversed(self.panes.values()):
            wishes.insert(0, pane.wish(scene._replace(below=tuple(wishes))))
        return wishes

    def _resize(self, heights: Heights, *, header: int, tabs: int) -> None:
        for view, lines in zip(self._top, (header, tabs), strict=True):
            _set_height(view, lines)
        for name, pane in self.panes.items():
            lines = heights.lines.get(name, 0)
            if pane.place == "list":  # it has what the others leave
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
            replay=played is not None,
            first=wanted_action(frame, has_failed(frame)),
            own=pane.own_keys if isinstance(pane, Pane) else (),
        )
        position = (playback_line(played, state.look, width),) if played is not None else ()
        self._footer.share(position, typing if isinstance(self.focused, Input) else footer)


def _set_height(view: LinesView, lines: int) -> None:
    """Give a view so many lines; 0 hides it."""
    view.display = lines > 0
    if lines:
        view.styles.height = lines
