"""The screen with the map of the chassis: a cursor over slots, and what is in the one it is on."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType

from zconsole.pool.chassis import LeafDisk, Lights
from zconsole.ui.background import begin
from zconsole.ui.dialogs.screens import Offers, TextScreen
from zconsole.ui.keys import bindings
from zconsole.ui.panes.chassis import (
    Bay,
    ChassisMap,
    bays,
    chassis_legend,
    chassis_map,
    slot_lines,
)
from zconsole.ui.view_state import ViewState
from zconsole.ui.widgets.draw import Line, Span
from zconsole.ui.widgets.footer_view import FooterView
from zconsole.ui.widgets.lines_view import LinesView

AGAIN = 10.0
"""Seconds between two questions about lights: each is dozens of commands to an enclosure."""
LOWEST = 6
"""Lines that are told of a slot, so that nothing jumps as the cursor moves."""


class ChassisView(LinesView):
    """The map: moving by a line is moving to the slot below."""

    def __init__(self, go: Callable[[int, int], None]) -> None:
        super().__init__(id="chassis", focusable=True)
        self._go = go

    def move(self, lines: int) -> None:
        """Move the cursor by lines of slots."""
        self._go(lines, 0)

    def page(self, pages: int) -> None:
        """Move the cursor by screens full."""
        self._go(pages * max(1, self.size.height - 2), 0)

    def edge(self, direction: int) -> None:
        """Go to the first slot, or to the last."""
        self._go(direction * self.line_count(), 0)


class ChassisScreen(TextScreen[tuple[str, str] | None]):
    """Returns pool and key of the device picked."""

    groups: ClassVar[tuple[str, ...]] = ("Chassis",)
    lives = True
    BINDINGS: ClassVar[list[BindingType]] = bindings("Chassis")

    def __init__(
        self,
        state: ViewState,
        start: LeafDisk | None,
        ask: Callable[[], Awaitable[Lights]],
    ) -> None:
        """The cursor starts on the slot of ``start``; ``ask`` asks the enclosures for lights."""
        super().__init__("CHASSIS", lambda _: ())
        self._state = state
        self._ask = ask
        self._lights: Lights = {}
        self._bays = bays(state.frames)
        self._map = ChassisMap((), ())
        wanted = (start.enclosure, start.slot) if start is not None else None
        keys = [bay.key for bay in self._bays]
        self.at = keys.index(wanted) if wanted in keys else 0

    def compose(self) -> ComposeResult:
        """The map, what is in the slot at the cursor, and the keys."""
        yield ChassisView(self._go)
        yield LinesView(id="about")
        yield FooterView(id="keys")

    def on_mount(self) -> None:
        """Ask for the lights."""
        begin(self, self._follow_lights, group="lights")

    def copies(self) -> Offers:
        """The bay, and the disk in it."""
        bay = self._bay
        disk = (
            next((row.vdev.disk for _, row in bay.leaves if row.vdev.disk), None) if bay else None
        )
        if bay is None or disk is None:
            return ()
        known = (("bay", disk.bay or bay.slot.label), ("serial", disk.serial), ("WWN", disk.wwn))
        return tuple((what, text) for what, text in known if text)

    @property
    def _bay(self) -> Bay | None:
        return self._bays[self.at] if self.at < len(self._bays) else None

    def draw(self) -> None:
        """Draw the newest round; the cursor stays on its slot."""
        before = self._bay
        self._bays = bays(self._state.frames) or self._bays
        keys = [bay.key for bay in self._bays]
        if before is not None and before.key in keys:
            self.at = keys.index(before.key)
        self.at = max(0, min(self.at, len(self._bays) - 1))
        self._draw()

    def _draw(self) -> None:
        look, width = self._state.look, self.app.size.width
        layouts = self._state.options.setting("chassis")
        self._map = chassis_map(self._bays, self._lights, self.at, look, width, layouts)
        view = self.query_one(ChassisView)
        view.show(self._map.lines, self.aged(self.title_line(width), width))
        bay = self._bay
        said: tuple[Line, ...] = () if bay is None else slot_lines(bay, self._lights, look, width)
        below = self.query_one("#about", LinesView)
        gap = ((),) * (LOWEST - len(said))
        lines = ((), *said, *gap, *chassis_legend(look, width))
        below.styles.height = len(lines)
        below.show(lines)
        self.show_keys()
        if bay is not None:
            line, _ = self._map.places[self.at]
            view.bring_in_sight(line, line)

    def title_line(self, _: int) -> Line:
        """The title, and the slots in all."""
        return (Span(f" CHASSIS  {len(self._bays)} slots", "title"),)

    def action_slot(self, step: int) -> None:
        """Go to the slot beside."""
        self._go(0, step)

    def action_open(self) -> None:
        """Return the device in the slot at the cursor."""
        bay = self._bay
        if bay is None or not bay.leaves:
            self.app.notify("no device of a pool is in this slot", timeout=4)
            return
        frame, row = bay.leaves[0]
        self.dismiss((frame.pool, row.key))

    def _go(self, lines: int, slots: int) -> None:
        """Move the cursor by lines, staying in its column, or by slots."""
        if not self._map.places:
            return
        found = self._map
        self.at = found.beside(self.at, slots) if slots else found.below(self.at, lines)
        self._draw()

    async def _follow_lights(self) -> None:
        """Ask again and again while the screen is there, with a pause after each answer."""
        while True:
            self._lights = await self._ask()
            self._draw()
            await asyncio.sleep(AGAIN)
