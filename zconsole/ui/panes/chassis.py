"""Map of the chassis: every slot in physical order, with the disk in it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from textual.app import ComposeResult

from zconsole.pool.chassis import Enclosure, LeafDisk, Lights, Slot, SlotKey, SlotLights, layout_of
from zconsole.timeline.frame import Frame, VdevRow
from zconsole.ui.dialogs.screens import Offers, TextScreen
from zconsole.ui.display_format import DisplayFormat
from zconsole.ui.panes.device_columns import note_words, state_words
from zconsole.ui.themed_app import begin
from zconsole.ui.view_state import ViewState
from zconsole.ui.widgets.draw import Line, Span, beside, fit, joined
from zconsole.ui.widgets.lines_view import FooterView, LinesView

NO_CHASSIS = "no chassis to show: no enclosure (SES) and no NVMe slot tells what sits where"
EMPTY, OTHER, UNSEEN = "empty", "other", "?"
_LEGEND = (
    ("marks: * locate light on", "notice"),
    ("F fault light on", "error"),
    ("other: a disk of no pool shown here", "dim"),
)
_WORD = 13
"""Cells of a state with its mark: ``~ resilvering``."""
_MARKS = (("*", "notice"), ("F", "error"))
_LIGHTS = len(_MARKS)
_LABEL = 9
_WORST = ("error", "warning", "notice", "", "dim")
"""Roles, the worst first: if several leaves share a disk, the worst state is shown."""


class Bay(NamedTuple):
    """A slot, and the leaf vdevs on the disk in it."""

    enclosure: Enclosure
    slot: Slot
    leaves: tuple[tuple[Frame, VdevRow], ...] = ()
    """Leaves, the worst first; several if partitions of the disk are in use."""

    @property
    def key(self) -> SlotKey:
        """Key of the slot: that of its enclosure, and its name."""
        return self.enclosure.key, self.slot.name


def bays(frames: Sequence[Frame]) -> tuple[Bay, ...]:
    """Return all slots of all enclosures, in order."""
    shelves = {
        each.key: each for frame in frames if frame.sample for each in frame.sample.enclosures
    }
    held: dict[SlotKey, list[tuple[Frame, VdevRow]]] = {}
    for frame in frames:
        for row in frame.rows:
            if row.vdev.disk is not None and row.vdev.disk.slot:
                key = (row.vdev.disk.enclosure, row.vdev.disk.slot)
                held.setdefault(key, []).append((frame, row))
    return tuple(
        # A hot spare in use has a second row, INUSE, which is sorted after the one it stands in
        # for.
        Bay(shelf, slot, tuple(sorted(held.get((shelf.key, slot.name), ()), key=_badness)))
        for shelf in shelves.values()
        for slot in shelf.slots
    )


def _badness(leaf: tuple[Frame, VdevRow]) -> int:
    return _WORST.index(_state(*leaf)[1])


def _state(frame: Frame, row: VdevRow) -> tuple[str, str]:
    words, role = state_words(frame, row)
    if words.startswith(" ") and row.vdev.errors.total:
        return f"!{words[1:]}", "warning"
    return words, role if role in _WORST else "notice"


class ChassisMap(NamedTuple):
    """Lines of the map, and the place of each slot in them."""

    lines: tuple[Line, ...]
    places: tuple[tuple[int, int], ...]
    """Line and column of each slot, by the slot's index."""

    def beside(self, at: int, step: int) -> int:
        """Return the slot ``step`` slots after another one, in reading order."""
        order = sorted(range(len(self.places)), key=self.places.__getitem__)
        return order[max(0, min(len(order) - 1, order.index(at) + step))]

    def below(self, at: int, lines: int) -> int:
        """Return the slot some lines of slots below another one, in the same or nearest column."""
        rows = sorted({line for line, _ in self.places})
        line, column = self.places[at]
        there = rows[max(0, min(len(rows) - 1, rows.index(line) + lines))]
        slots = [n for n, place in enumerate(self.places) if place[0] == there]
        return min(slots, key=lambda n: abs(self.places[n][1] - column))


def chassis_map(
    found: Sequence[Bay],
    lights: Lights,
    at: int,
    look: DisplayFormat,
    width: int,
    layouts: Sequence[str] = (),
) -> ChassisMap:
    """Draw each enclosure as a numbered grid: by ``layouts``, else as wide as fits.

    ``at`` is the index of the slot with the cursor.
    """
    lines: list[Line] = []
    places: dict[int, tuple[int, int]] = {}
    for _, group in groupby(enumerate(found), key=lambda each: each[1].enclosure.key):
        numbered = list(group)
        shelf, first = [bay for _, bay in numbered], numbered[0][0]
        grid = _grid(shelf, layouts, width)
        lines += [(), _heading(shelf, look, width)] if lines else [_heading(shelf, look, width)]
        for row in grid.rows:
            places |= {first + n: (len(lines), i) for i, n in enumerate(row) if n is not None}
            spans: list[Span] = [Span(" ")]
            for n in row:
                if n is None:
                    spans.append(Span(" " * grid.cell))
                else:
                    spans += _cell(shelf[n], lights, grid, look, at_cursor=first + n == at)
            lines.append(look.crop(tuple(spans), width))
    return ChassisMap(tuple(lines), tuple(places[n] for n in range(len(found))))


class _Grid(NamedTuple):
    """Arrangement of the slots of an enclosure."""

    rows: tuple[tuple[int | None, ...], ...]
    """Indices of the slots within the enclosure, by row; None is a place without a slot."""
    label: int
    """Cells of a slot's number; ``word``: cells of its state."""
    word: int

    @property
    def cell(self) -> int:
        return 1 + self.label + 1 + self.word + _LIGHTS


def _grid(shelf: Sequence[Bay], layouts: Sequence[str], width: int) -> _Grid:
    """Arrange slots as configured if that fits the width, else as many in a line as fit."""
    # All cells of an enclosure are equally wide.
    label = max(len(_label(bay)) for bay in shelf)
    layout = layout_of(layouts, shelf[0].enclosure)
    if layout is not None:
        word = min(_WORD, (width - 1) // layout.columns - (1 + label + 1 + _LIGHTS))
        if word >= 1:  # room for a state's mark at least
            return _Grid(layout.grid(len(shelf)), label, word)
    most = max(1, (width - 1) // _Grid((), label, _WORD).cell)
    # Prefer a width that divides the slots evenly to the greatest one.
    fitting = next((n for n in range(most, most // 2, -1) if len(shelf) % n == 0), most)
    numbers = range(len(shelf))
    rows = (tuple(numbers[start : start + fitting]) for start in numbers[::fitting])
    return _Grid(tuple(rows), label, _WORD)


def _label(bay: Bay) -> str:
    """Return the slot's number; NVMe slots of the machine itself have a prefix."""
    number = bay.slot.number
    label = f"{number:02d}" if number is not None else bay.slot.name[:_LABEL]
    return label if bay.enclosure.key else f"NVMe {label}"


def _heading(shelf: Sequence[Bay], look: DisplayFormat, width: int) -> Line:
    enclosure = shelf[0].enclosure
    empty = sum(not bay.slot.disks for bay in shelf)
    count = f"{len(shelf)} slots, {empty} empty" if enclosure.key else f"{len(shelf)} in use"
    words = "  ".join(filter(None, (enclosure.name, enclosure.key, count)))
    return (Span(fit(f" {look.text(words)}", width).rstrip(), "bold"),)


def _cell(
    bay: Bay, lights: Lights, grid: _Grid, look: DisplayFormat, *, at_cursor: bool
) -> tuple[Span, ...]:
    words, role = what_is_in(bay)
    lit = lights.get(bay.key, SlotLights())
    mark = look.glyphs.pointer if at_cursor else " "
    ground = "focus" if at_cursor else ""
    on = [Span(*each) for each, is_on in zip(_MARKS, (lit.locate, lit.fault), strict=True) if is_on]
    return (
        Span(mark, "key"),
        Span(fit(look.text(_label(bay)), grid.label), ground or role),
        *on,  # next to its own number, so that it isn't taken for that of the next slot
        Span(" " * (_LIGHTS - len(on)), ground),
        Span(f" {fit(look.text(words), grid.word)}", ground or role),
    )


def what_is_in(bay: Bay) -> tuple[str, str]:
    """Return the state of a slot in a word with its mark, and its role."""
    if bay.leaves:
        return _state(*bay.leaves[0])
    return (f"  {OTHER}", "dim") if bay.slot.disks else (f"  {EMPTY}", "dim")


def chassis_legend(look: DisplayFormat, width: int) -> tuple[Line, ...]:
    """Return the lines of the legend."""
    parts: list[Line] = [(Span(look.text(text), role),) for text, role in _LEGEND]
    return tuple((Span(" "), *line) for line in joined(parts, "   ", width - 1))


def slot_lines(bay: Bay, lights: Lights, look: DisplayFormat, width: int) -> tuple[Line, ...]:
    """Return lines with everything known about a slot and its disk."""
    return tuple(
        line
        for label, value in _pairs(bay, lights, look)
        for line in beside(Span(f" {fit(label, 8)}", "dim"), look.text(value), width - 1)
    )


def _pairs(bay: Bay, lights: Lights, look: DisplayFormat) -> Iterator[tuple[str, str]]:
    disk = next((row.vdev.disk for _, row in bay.leaves if row.vdev.disk), LeafDisk())
    place = " of ".join(filter(None, (bay.slot.label, bay.enclosure.name)))
    yield "slot", f"{disk.bay}, {place}" if disk.bay not in ("", bay.slot.label) else place
    for frame, row in bay.leaves:
        state = state_words(frame, row)[0][2:]  # without its mark
        note = note_words(row, look, frame.t)
        yield "device", ", ".join(filter(None, (f"{row.vdev.name} of {frame.pool}: {state}", note)))
    if not bay.slot.disks:
        yield "disk", f"none; it was {_described(disk)}" if disk.serial else "none"
    elif bay.leaves:
        yield "disk", _described(disk)
    else:
        yield "disk", f"{', '.join(bay.slot.disks)}, of no pool shown here"
    yield "lights", _lights(lights.get(bay.key, SlotLights()))
    if bay.leaves:
        yield "", f"to switch the light: {look.keys.shown('to-device', 'actions')}"


def _described(disk: LeafDisk) -> str:
    heat = "" if disk.temperature is None else f"{disk.temperature:.0f}C"
    named = (f"serial {disk.serial}" if disk.serial else "", disk.wwn, disk.model, heat)
    return ", ".join(filter(None, named)) or "not known"


def _lights(lit: SlotLights) -> str:
    words = [
        f"{name} {'on' if on else 'off'}"
        for name, on in (("locate", lit.locate), ("fault", lit.fault))
        if on is not None
    ]
    return ", ".join((*words, *((f"the enclosure says {lit.status}",) if lit.status else ()))) or (
        "not known"
    )


AGAIN = 10.0
"""Seconds between two queries of lights: each runs dozens of commands on an enclosure."""
LOWEST = 6
"""Least lines about a slot, so that nothing moves with the cursor."""


class ChassisView(LinesView):
    """View of the map; moving by a line goes to the slot below."""

    def __init__(self, go: Callable[[int, int], None]) -> None:
        super().__init__(id="chassis", focusable=True)
        self._go = go

    def move(self, lines: int) -> None:
        """Move the cursor by lines of slots."""
        self._go(lines, 0)

    def page(self, pages: int) -> None:
        """Move the cursor by screenfuls."""
        self._go(pages * max(1, self.size.height - 2), 0)

    def edge(self, direction: int) -> None:
        """Go to the first line of slots, or the last."""
        self._go(direction * self.line_count(), 0)


class ChassisScreen(TextScreen[tuple[str, str] | None], groups=("Chassis",)):
    """Screen with the map; returns the pool and the key of the chosen device."""

    lives = True

    def __init__(
        self,
        state: ViewState,
        start: LeafDisk | None,
        ask: Callable[[], Awaitable[Lights]],
    ) -> None:
        """``start`` is the disk to begin at; ``ask`` queries the enclosures for lights."""
        super().__init__("CHASSIS", lambda *_: ())
        self._state = state
        self._ask = ask
        self._lights: Lights = {}
        self._bays = bays(state.frames)
        self._map = ChassisMap((), ())
        wanted = (start.enclosure, start.slot) if start is not None else None
        keys = [bay.key for bay in self._bays]
        self.at = keys.index(wanted) if wanted in keys else 0

    def compose(self) -> ComposeResult:
        """Yield the map, details on the slot at the cursor, and the footer."""
        yield ChassisView(self._go)
        yield LinesView(id="about")
        yield FooterView(id="keys")

    def on_mount(self) -> None:
        """Start to query the lights."""
        begin(self, self._follow_lights, group="lights")

    def copies(self) -> Offers:
        """Return the bay, serial number and WWN of the disk at the cursor."""
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
        """Draw the newest round, with the cursor on the same slot."""
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
        view.show(self._map.lines, self.aged_title(width))
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
        """Return the title with the number of slots."""
        return (Span(f" CHASSIS  {len(self._bays)} slots", "title"),)

    def action_slot(self, step: int) -> None:
        """Go to the next or previous slot."""
        self._go(0, step)

    def action_open(self) -> None:
        """Close the screen with the device at the cursor, if there is one."""
        bay = self._bay
        if bay is None or not bay.leaves:
            self.app.answer("no device of a pool is in this slot", 4)
            return
        frame, row = bay.leaves[0]
        self.dismiss((frame.pool, row.key))

    def _go(self, lines: int, slots: int) -> None:
        """Move the cursor by lines within its column, or by slots."""
        if not self._map.places:
            return
        found = self._map
        self.at = found.beside(self.at, slots) if slots else found.below(self.at, lines)
        self._draw()

    async def _follow_lights(self) -> None:
        """Query the lights while the screen is open, with a pause after each answer."""
        while True:
            self._lights = await self._ask()
            self._draw()
            await asyncio.sleep(AGAIN)
