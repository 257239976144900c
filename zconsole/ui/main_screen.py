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
from zconsole.ui.pane_layout import (
    SMALLEST,
    TALL,
    Heights,
    WantedHeights,
    allot,
    graph_rows,
    is_crowded,
    past_graph_rows,
)
from zconsole.ui.panes.balance import balance_lines, balance_title
from zconsole.ui.panes.device_columns import has_failed
from zconsole.ui.panes.device_tree import SORTS, tree_height
from zconsole.ui.panes.devices import DeviceView
from zconsole.ui.panes.events import pane_lines
from zconsole.ui.panes.header import HeaderStatus, first_line, header_lines, notice_line
from zconsole.ui.panes.help import footer_line, keys_line, wanted_action
from zconsole.ui.panes.overview import tab_line
from zconsole.ui.panes.playback import playback_line
from zconsole.ui.panes.scan import ScanPane, graphed_scan, scan_lines
from zconsole.ui.view_state import ViewState
from zconsole.ui.widgets.draw import Line, Span, ruled
from zconsole.ui.widgets.footer_view import FooterView
from zconsole.ui.widgets.lines_view import WAYS, LinesView

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
        self._is_compact = False
        """Whether the scan leaves out what can be done without."""
        self._drawn_for: tuple[Size, ...] = ()
        """The sizes that all was last drawn for; none where the terminal was too small."""
        sort, columns = map(state.options.setting, ("sort", "columns"))
        self.scan = ScanPane(id="scan", repaint=self.repaint)
        self.devices = DeviceView(id="devices", sort=sort, columns=columns)
        self._footer = FooterView(id="footer")
        self._views: dict[str, LinesView] = {
            "header": LinesView(id="header"),
            "tabs": LinesView(id="tabs"),
            "scan": self.scan,
            "devices": self.devices,
            "balance": LinesView(id="balance", focusable=True),
            "events": LinesView(id="events", focusable=True),
            "footer": self._footer,
        }
        self._bottom = Container(self._views["balance"], self._views["events"], id="bottom")

    def compose(self) -> ComposeResult:
        """The parts, from the top."""
        for name in ("header", "tabs", "scan", "devices"):
            yield self._views[name]
        yield self._bottom
        yield self._footer

    def on_mount(self) -> None:
        """Say that frames can come."""
        self._ready()

    def waiting(self, text: str) -> None:
        """Before the first frame: say what is being waited for."""
        self._views["header"].show(((Span(f" {text}", "dim"),),))
        self._resize(Heights(0, 0, 0, 0), header=1, tabs=0)

    def paint(self, status: HeaderStatus) -> None:
        """Show the newest frames; only what differs from the last ones reaches the terminal."""
        state, frame, body = self._state, self._visible, self._state.body
        self._status = status
        if frame is None or body is None:
            return
        width, height = self.app.size
        if self._is_small:
            self._drawn_for = ()
            self._resize(Heights(0, 0, 0, 0), header=1, tabs=0)
            self._views["header"].show((notice_line(frame, state.look, width),))
            self._footer.show(((Span(" too small; q quits", "dim"),),))
            return
        self._drawn_for = self._sizes
        tabs = 1 if len(state.frames) > 1 else 0
        header = header_lines(frame, status, state.look, width, height)
        self._is_compact = False
        self._is_compact = self._is_crowded(body, len(header) + tabs)
        if self._is_compact and self._is_crowded(body, len(header) + tabs):
            header = header_lines(frame, status, state.look, width, height, brief=True)
        self._header = header
        scan, heights = self._arranged(body, len(header) + tabs)
        self._resize(heights, header=len(header), tabs=tabs)
        self._views["header"].show(header)
        if tabs:
            self._views["tabs"].show((tab_line(state.frames, state.index, state.look, width),))
        self.scan.show_scan(scan)
        self.devices.show_frame(body, state.look, width)
        self._paint_bottom(body, width // 2 if heights.side else width, heights)
        self._paint_footer(frame, width)

    def paint_header(self, status: HeaderStatus) -> None:
        """Show only the header's first line: its age and flags move while the rest stands."""
        if (frame := self._visible) is not None and not self._is_small:
            first = first_line(frame, status, self._state.look, *self.app.size)
            self._header = (first, *self._header[1:])
            self._views["header"].show(self._header)

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
        self.chosen[pane] = not self._views[pane].display
        self.zoomed = None
        self.repaint()

    def action_show_pane(self, pane: str) -> None:
        """Focus a pane, and show it first where it is hidden; alone if there is no room for it."""
        for zoomed in (None, pane):
            if not self._views[pane].display:
                self.chosen[pane], self.zoomed = True, zoomed
                self.repaint()
        self.set_focus(self._views[pane])

    def action_zoom(self) -> None:
        """Give the focused pane everything, or take it back."""
        self.zoomed = None if self.zoomed else self._focused_pane()
        self.repaint()

    def next_pane(self, direction: int) -> None:
        """Move the focus to the next pane shown: from the devices to the scan first."""
        shown = [p for p in sorted(PANES, key="devices".__ne__) if self._views[p].display]
        if not shown:
            return
        focused = self._focused_pane()
        now = shown.index(focused) if focused in shown else -direction
        # At once: the next key may be here already.
        self.set_focus(self._views[shown[(now + direction) % len(shown)]])

    def _focused_pane(self) -> str | None:
        """The pane in focus; what it says itself comes later than the next key."""
        return next((pane for pane in PANES if self._views[pane] is self.focused), None)

    def back(self) -> None:
        """Undo the newest of what was arranged: filter, time shown, zoom, focus, details."""
        if self.query(Input):
            self.devices.rearrange(filter="")
            self.on_input_submitted()
        elif self.scan.until is not None:
            self.scan.edge(1)
        elif self.devices.until is not None:
            self.devices.until = None
            self.devices.rearrange()
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
                return self.devices.has_focus or self.scan.has_focus
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
        """Fold the row at the cursor; from one without rows below it, go to the one above.

        In the scan pane and in an open detail: go back in time.
        """
        if self.scan.has_focus:
            self.scan.scroll_time(-1)
        if not self.devices.has_focus or self.devices.scroll_time(-1):
            return
        item = self.devices.current
        if item is None or item.row is None or not item.row.vdev.children or item.folded:
            self.devices.to_parent()
        else:
            self.devices.fold(lambda folded, row: folded | row)

    def action_fold_out(self) -> None:
        """Unfold the row at the cursor; in the scan pane and in a detail: go on in time."""
        if self.scan.has_focus:
            self.scan.scroll_time(1)
        if self.devices.has_focus and not self.devices.scroll_time(1):
            self.devices.fold(lambda folded, row: folded - row)

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
        return all(view.is_attached for view in self._views.values())

    @property
    def _sizes(self) -> tuple[Size, ...]:
        """The terminal's size, and what the last layout gave each part."""
        return (self.app.size, *(view.region.size for view in self._views.values()))

    def _is_crowded(self, body: Frame, header: int) -> bool:
        """Whether devices and balance have too few lines beside the scan as it is drawn now.

        This follows from what runs and what the pool consists of, not from what is said.
        """
        height = self.app.size.height
        return height < TALL and is_crowded(height, self._wanted(body, header, self._scan(body, 1)))

    def _wanted(self, body: Frame, header: int, scan: Sequence[Line]) -> WantedHeights:
        balance = len(body.balance.vdevs) + 1 if body.balance.vdevs else 0
        return WantedHeights(header, len(scan), tree_height(body.rows) + 1, balance)

    def _arranged(self, body: Frame, header: int) -> tuple[tuple[Line, ...], Heights]:
        """The scan's lines, and the lines each pane gets below ``header`` of them."""
        (width, height), zoomed = self.app.size, self.zoomed
        graphed = graphed_scan(body)
        running = graphed is not None and graphed.scan.active
        scan = self._scan(body, int(running))
        wanted = self._wanted(body, header, scan)
        rows = 0
        if graphed is not None:
            share = graph_rows if running else past_graph_rows
            rows = share(width, height, wanted, zoomed=zoomed == "scan")
        past = graphed.past if graphed and rows else None
        self.scan.follow(past, self._scan_width, rows, self._state.look)
        if rows != running:
            scan = self._scan(body, rows)
        # Details take room from the events, never from the graph: they come and go.
        listed = max(wanted.devices, self.devices.line_count() + 1)
        wanted = wanted._replace(scan=len(scan), devices=listed)
        heights = allot(width, height, wanted, self.chosen, zoomed)
        if 0 < heights.scan < len(scan) and zoomed is None:
            scan = self._scan(body, rows, heights.scan)
        return scan, heights

    def _scan(self, body: Frame, graph: int, room: int | None = None) -> tuple[Line, ...]:
        height, whole = self.app.size.height, self.zoomed == "scan"
        return scan_lines(
            body,
            self._state.look,
            self._scan_width,
            compact=self._is_compact and not whole,
            roomy=height >= TALL or whole,
            whole=whole,
            graph=graph,
            until=self.scan.until,
            room=room,
        )

    @property
    def _scan_width(self) -> int:
        """The columns of the scan; zoomed, it can be scrolled, and its title says so at its end."""
        return self.app.size.width - WAYS * (self.zoomed == "scan")

    def _resize(self, heights: Heights, *, header: int, tabs: int) -> None:
        sizes = {
            "header": header,
            "tabs": tabs,
            "scan": heights.scan,
            "balance": heights.balance,
            "events": heights.events,
        }
        for name, lines in sizes.items():
            view = self._views[name]
            view.display = lines > 0
            if lines:
                view.styles.height = lines
        self.devices.display = heights.devices > 0
        self._bottom.display = heights.balance + heights.events > 0
        self._bottom.set_class(heights.side, "side")

    def _paint_bottom(self, body: Frame, width: int, heights: Heights) -> None:
        look, balance, rows = self._state.look, body.balance, heights.balance - 1
        vdevs = balance_lines(balance, look, width, rows)
        self._views["balance"].show(vdevs, balance_title(balance, look, width, rows))
        every = self.zoomed == "events"
        room = heights.events - 1  # below its title
        lines = pane_lines(body, self._state.source, look, width, room=room, every=every)
        title = ruled(" EVENTS AND MESSAGES ", "", look.glyphs.rule, width)
        self._views["events"].show(lines, title)

    def _paint_footer(self, frame: Frame, width: int) -> None:
        state, played = self._state, self._state.playback
        pane = self._focused_pane() or ""
        typing = partial(keys_line, ("Answer",), state.look, typing=True)
        footer = partial(
            footer_line,
            state.look,
            several_pools=len(state.frames) > 1,
            denied=state.denied,
            replay=played is not None,
            first=wanted_action(frame, has_failed(frame)),
            pane="" if pane == "scan" and not self.scan.has_past else pane,
        )
        position = (playback_line(played, state.look, width),) if played is not None else ()
        self._footer.share(position, typing if isinstance(self.focused, Input) else footer)
