"""The chassis as a map: every slot in its order, with what is in it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from itertools import groupby
from typing import ClassVar, NamedTuple

from textual.app import ComposeResult
from textual.binding import BindingType

from zconsole.pool.chassis import Enclosure, LeafDisk, Lights, Slot, SlotKey, SlotLights, layout_of
from zconsole.timeline.frame import Frame, VdevRow
from zconsole.ui.background import begin
from zconsole.ui.dialogs.screens import Offers, TextScreen
from zconsole.ui.display_format import DisplayFormat
from zconsole.ui.keys import bindings
from zconsole.ui.panes.device_cells import note_words, state_words
from zconsole.ui.view_state import ViewState
from zconsole.ui.widgets.draw import Line, Span, beside, fit, joined
from zconsole.ui.widgets.footer_view import FooterView
from zconsole.ui.widgets.lines_view import LinesView

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
"""Roles, the worst first: of several leaves on a disk, that one's state is shown."""


class Bay(NamedTuple):
    """One slot, and what the pools have in it."""

    enclosure: Enclosure
    slot: Slot
    leaves: tuple[tuple[Frame, VdevRow], ...] = ()
    """The worst first; several where partitions of a disk are in use."""

    @property
    def key(self) -> SlotKey:
        """What tells it from other slots."""
        return self.enclosure.key, self.slot.name


def bays(frames: Sequence[Frame]) -> tuple[Bay, ...]:
    """Every slot of every enclosure, in order."""
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
        # A hot spare's own row, which says INUSE, comes after that of the place where it stands in.
        Bay(shelf, slot, tuple(sorted(held.get((shelf.key, slot.name), ()), key=_badness)))
        for shelf in shelves.values()
        for slot in shelf.slots
    )


def _badness(leaf: tuple[Frame, VdevRow]) -> int:
    return _WORST.index(_state(leaf[1])[1])


def _state(row: VdevRow) -> tuple[str, str]:
    words, role = state_words(row)
    if words.startswith(" ") and row.vdev.errors.total:
        return f"!{words[1:]}", "warning"
    return words, role if role in _WORST else "notice"


class ChassisMap(NamedTuple):
    """The lines of the map, and where each slot is in it."""

    lines: tuple[Line, ...]
    places: tuple[tuple[int, int], ...]
    """Line and column of each slot, by its index."""

    def beside(self, at: int, step: int) -> int:
        """The slot before or after another one, as they are read: line by line."""
        order = sorted(range(len(self.places)), key=self.places.__getitem__)
        return order[max(0, min(len(order) - 1, order.index(at) + step))]

    def below(self, at: int, lines: int) -> int:
        """The slot some lines of slots below another one, in its column or the nearest."""
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
    """Each enclosure as a numbered grid: as ``layouts`` says, else as wide as fits.

    ``at`` is the index of the slot that the cursor is on.
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
    """The slots of one enclosure as they are drawn."""

    rows: tuple[tuple[int | None, ...], ...]
    """Their indices in the enclosure; None is a place without a slot."""
    label: int
    """Cells of a slot's number, and of its state."""
    word: int

    @property
    def cell(self) -> int:
        return 1 + self.label + 1 + self.word + _LIGHTS


def _grid(shelf: Sequence[Bay], layouts: Sequence[str], width: int) -> _Grid:
    """As the configuration says, where that fits the width; else as many in a line as fit."""
    label = max(len(_label(bay)) for bay in shelf)
    layout = layout_of(layouts, shelf[0].enclosure)
    if layout is not None:
        word = min(_WORD, (width - 1) // layout.columns - (1 + label + 1 + _LIGHTS))
        if word >= 1:  # a state's mark
            return _Grid(layout.grid(len(shelf)), label, word)
    most = max(1, (width - 1) // _Grid((), label, _WORD).cell)
    # As many in a line as fit, fewer where that leaves no line half empty.
    fitting = next((n for n in range(most, most // 2, -1) if len(shelf) % n == 0), most)
    numbers = range(len(shelf))
    rows = (tuple(numbers[start : start + fitting]) for start in numbers[::fitting])
    return _Grid(tuple(rows), label, _WORD)


def _label(bay: Bay) -> str:
    """The slot's number; that of a slot of the machine itself does not look like a shelf's."""
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
        *on,  # right after the slot's own number: not taken for the next one's
        Span(" " * (_LIGHTS - len(on)), ground),
        Span(f" {fit(look.text(words), grid.word)}", ground or role),
    )


def what_is_in(bay: Bay) -> tuple[str, str]:
    """The state of a slot in a word with its mark, and its role."""
    if bay.leaves:
        return _state(bay.leaves[0][1])
    return (f"  {OTHER}", "dim") if bay.slot.disks else (f"  {EMPTY}", "dim")


def chassis_legend(look: DisplayFormat, width: int) -> tuple[Line, ...]:
    """What stands for what."""
    parts: list[Line] = [(Span(look.text(text), role),) for text, role in _LEGEND]
    return tuple((Span(" "), *line) for line in joined(parts, "   ", width - 1))


def slot_lines(bay: Bay, lights: Lights, look: DisplayFormat, width: int) -> tuple[Line, ...]:
    """Everything that is known of a slot and the disk in it."""
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
        state = state_words(row)[0][2:]  # without its mark
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
        yield "", f"to switch the light: {look.keys.way('to-device', 'actions')}"


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
