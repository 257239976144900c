"""The main screen's parts and what each of them shows of a frame."""

from __future__ import annotations

from dataclasses import dataclass, field

from textual.app import ComposeResult
from textual.containers import Container, Vertical
from textual.widget import Widget

from zconsole import units
from zconsole.monitor.frame import Frame
from zconsole.ui.display_format import DisplayFormat, percent
from zconsole.ui.keys import Offer
from zconsole.ui.pane_layout import COMPACT, PANES, ROOMY, SMALLEST, Heights, WantedHeights, allot
from zconsole.ui.panes.balance import balance_lines, balance_title
from zconsole.ui.panes.devices import DeviceView
from zconsole.ui.panes.events import pane_count, pane_lines
from zconsole.ui.panes.header import HeaderStatus, header_lines, health_word
from zconsole.ui.panes.help import footer_line
from zconsole.ui.panes.overview import tab_line
from zconsole.ui.panes.scan import scan_lines
from zconsole.ui.theme.styles import Palette
from zconsole.ui.widgets.draw import Line, Span, crop
from zconsole.ui.widgets.lines_view import LinesView
from zconsole.zfs.sources.base import Capabilities


@dataclass(frozen=True, slots=True)
class ViewModel:
    """Everything one painting of the board depends on."""

    frames: tuple[Frame, ...]
    index: int
    """Which of the frames is shown."""
    body: Frame
    """The frame below the header; an older one while the display is paused."""
    status: HeaderStatus
    look: DisplayFormat = field(default_factory=DisplayFormat)
    offers: tuple[Offer, ...] = ()
    source: Capabilities | None = None
    """What the pools are read with."""


class MainScreen(Vertical):
    """Header, tabs, scan, devices, balance, events and footer."""

    def __init__(self) -> None:
        super().__init__()
        self.chosen: dict[str, bool] = {}
        """Panes shown or hidden by the operator; the others come and go with the room."""
        self.zoomed: str | None = None
        self._view_model: ViewModel | None = None

    def compose(self) -> ComposeResult:
        """The parts, from the top."""
        yield LinesView(id="header")
        yield LinesView(id="tabs")
        yield LinesView(id="scan", focusable=True)
        yield DeviceView(id="devices")
        with Container(id="bottom"):
            yield LinesView(id="balance", focusable=True)
            yield LinesView(id="events", focusable=True)
        yield LinesView(id="footer")

    @property
    def devices(self) -> DeviceView:
        """The device list."""
        return self.query_one("#devices", DeviceView)

    @property
    def _alive(self) -> bool:
        """Whether every part is there; on the way out a last frame may come to a bare board."""
        return {view.id for view in self.query(LinesView)} >= {"header", "tabs", "footer", *PANES}

    def dress(self, palette: Palette) -> None:
        """Paint with these styles from now on."""
        for view in self.query(LinesView):
            view.dress(palette)

    def waiting(self, text: str) -> None:
        """Before the first frame: say what is being waited for."""
        self._view("header").show(((Span(f" {text}", "dim"),),))
        self._resize(Heights(0, 0, 0, 0), header=1, tabs=0)

    def paint(self, view_model: ViewModel) -> None:
        """Show a scene; only what differs from the last one reaches the terminal."""
        if not self._alive:
            return
        self._view_model = view_model
        width, height = self.app.size
        if width < SMALLEST[0] or height < SMALLEST[1]:
            self._paint_notice(view_model, width)
            return
        header = self._header(view_model)
        tabs = 1 if len(view_model.frames) > 1 else 0
        scan = self._scan(view_model)
        heights = self._heights(view_model, len(header) + tabs, len(scan))
        if 0 < heights.scan < len(scan) and self.zoomed is None:
            scan = self._scan(view_model, heights.scan)
            heights = self._heights(view_model, len(header) + tabs, len(scan))
        self._resize(heights, header=len(header), tabs=tabs)
        self._view("header").show(header)
        self._paint_tabs(view_model, width)
        self._view("scan").show(scan)
        self.devices.show_frame(view_model.body, view_model.look, width)
        self._paint_bottom(view_model, width // 2 if heights.side else width)
        self._view("footer").show(
            (footer_line(view_model.look, width, several_pools=tabs > 0, offers=view_model.offers),)
        )

    def paint_header(self, view_model: ViewModel) -> None:
        """Show only the header of a scene: its age and flags move while the rest stands."""
        width, height = self.app.size
        if not self._alive or width < SMALLEST[0] or height < SMALLEST[1]:
            return
        header = self._header(view_model)
        view = self._view("header")
        if len(header) != view.size.height:
            self.paint(view_model)
            return
        view.show(header)

    def repaint(self) -> None:
        """Show the last scene again, after a change of size or arrangement."""
        if self._view_model is not None:
            self.paint(self._view_model)

    def on_resize(self) -> None:
        """Lay out for the new size."""
        self.repaint()

    def show_prompt(self, prompt: Widget) -> None:
        """Put a prompt in the footer's place, and the focus in it."""
        self._view("footer").display = False
        self.mount(prompt)
        self.screen.set_focus(prompt)  # at once: the next key may be here already

    def close_prompt(self) -> None:
        """The footer comes back."""
        self.query("#prompt").remove()
        self._view("footer").display = True

    def toggle(self, pane: str) -> None:
        """Show a hidden pane, hide a shown one."""
        self.chosen[pane] = not self._view(pane).display
        self.zoomed = None
        self.repaint()

    def focus_next(self, direction: int) -> None:
        """Move the focus to the next pane shown."""
        shown = [pane for pane in PANES if self._view(pane).display]
        if not shown:
            return
        focused = self.focused_pane()
        now = shown.index(focused) if focused in shown else -direction
        self.screen.set_focus(self._view(shown[(now + direction) % len(shown)]))  # at once, too

    def focused_pane(self) -> str | None:
        """The pane in focus; what it says itself comes later than the next key."""
        return next((pane for pane in PANES if self._view(pane) is self.screen.focused), None)

    def _header(self, view_model: ViewModel) -> tuple[Line, ...]:
        width, height = self.app.size
        frame = view_model.frames[view_model.index]
        most = 1 if height < COMPACT else 2
        return header_lines(frame, view_model.status, view_model.look, width, most)

    def _scan(self, view_model: ViewModel, room: int | None = None) -> tuple[Line, ...]:
        width, height = self.app.size
        roomy = height >= ROOMY or self.zoomed == "scan"
        compact = height < COMPACT and self.zoomed != "scan"
        return scan_lines(
            view_model.body, view_model.look, width, compact=compact, roomy=roomy, room=room
        )

    def _heights(self, view_model: ViewModel, header: int, scan: int) -> Heights:
        wanted = self._wanted(view_model, header, scan)
        return allot(*self.app.size, wanted, self.chosen, self.zoomed)

    def _view(self, name: str) -> LinesView:
        return self.query_one(f"#{name}", LinesView)

    def _wanted(self, view_model: ViewModel, header: int, scan: int) -> WantedHeights:
        frame = view_model.body
        balance = len(frame.balance.vdevs) + 1 if frame.balance.vdevs else 0
        told = pane_count(frame, view_model.source)
        events = told + 1 if told else 0
        return WantedHeights(header, scan, len(frame.rows) + 1, balance, events)

    def _resize(self, heights: Heights, *, header: int, tabs: int) -> None:
        sizes = {
            "header": header,
            "tabs": tabs,
            "scan": heights.scan,
            "balance": heights.balance,
            "events": heights.events,
        }
        for name, lines in sizes.items():
            view = self._view(name)
            view.display = lines > 0
            if lines:
                view.styles.height = lines
        self.devices.display = heights.devices > 0
        bottom = self.query_one("#bottom")
        bottom.display = heights.balance + heights.events > 0
        bottom.set_class(heights.side, "side")

    def _paint_tabs(self, view_model: ViewModel, width: int) -> None:
        if len(view_model.frames) > 1:
            line = tab_line(view_model.frames, view_model.index, view_model.look, width)
            self._view("tabs").show((line,))

    def _paint_bottom(self, view_model: ViewModel, width: int) -> None:
        frame, look = view_model.body, view_model.look
        self._view("balance").show(
            balance_lines(frame.balance, look, width), balance_title(frame.balance, look, width)
        )
        title: Line = (Span(" EVENTS AND MESSAGES", "title"),)
        whole = self.zoomed == "events"
        events = pane_lines(frame, view_model.source, look, width, whole=whole)
        self._view("events").show(events, title)

    def _paint_notice(self, view_model: ViewModel, width: int) -> None:
        self._resize(Heights(0, 0, 0, 0), header=1, tabs=0)
        frame = view_model.frames[view_model.index]
        self._view("header").show((notice_line(frame, view_model.look, width),))
        self._view("footer").show(((Span(" too small; q quits", "dim"),),))


def notice_line(frame: Frame, look: DisplayFormat, width: int) -> Line:
    """The essential numbers on one line, for a terminal too small for more."""
    spans = [*health_word(frame, look), Span(f" {look.text(frame.pool)}", "bold")]
    view = frame.scan
    if view is not None and view.scan.active:
        share = None if view.percent is None else view.percent / 100
        spans.append(Span(f" {percent(share)} {units.duration(view.estimate.eta)}"))
    return crop(tuple(spans), width, look.glyphs.ellipsis)
