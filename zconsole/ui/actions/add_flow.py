"""Flow that adds vdevs to a pool: choose the layout, mark devices, confirm the plan."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from zconsole.actions.add import (
    Layout,
    layouts,
    meaning,
    member_bytes,
    permanent,
    plan_add,
    removable,
    wanted_shift,
)
from zconsole.actions.candidates import Candidate, judge_new
from zconsole.actions.checkpoint import plan_add_with_way_back
from zconsole.actions.facts import with_smart
from zconsole.actions.plan import Situation
from zconsole.hardware.device import Device
from zconsole.ui.actions.plan_lines import candidate_about, candidate_lines
from zconsole.ui.actions.replace_flow import OTHER, ask_path
from zconsole.ui.actions.session import FlowSession
from zconsole.ui.dialogs.screens import PickList, PickScreen
from zconsole.ui.display_format import DisplayFormat
from zconsole.ui.widgets.draw import Line, Lines, Span
from zconsole.units import counted, size

MARK = "x"
SMALL = 0.9
"""Share of the size of the pool's disks below which a disk is called smaller."""


async def add_flow(ui: FlowSession, _: str) -> bool:
    """Choose a layout, mark devices for it and confirm the plan; return whether the plan ran."""
    situation = await ui.situation_now()
    found = layouts(situation)
    choice = _layouts(ui, situation, found)
    while (picked := await ui.pick(choice)) is not None:
        layout, count = found[picked]
        marking = await _marking(ui, situation, layout, count)
        while devices := await _devices(ui, marking):  # others if the plan was only read
            # What holds no data can be removed again, but not while a checkpoint exists.
            ways = (plan_add, *((plan_add_with_way_back,) * layout.holds_data))
            plans = (partial(way, layout=layout, devices=devices) for way in ways)
            if await ui.confirm(*plans, paths=devices):
                return True
    return False


def layout_text(layout: Layout, count: int, free: int) -> str:
    """Return a line of the menu, such as ``special: a mirror of 3 disks`` or ``hot spare``.

    ``free`` is the number of disks that a data vdev could use.
    """
    if layout.vclass == "normal":
        least = f", at least {layout.least}" if layout.least < count else ""
        return f"{layout.kind} of {count} disks like the others{least}; {free} free"
    if count:
        return f"{layout.vclass}: a mirror of {count} disks"
    return "hot spare" if layout.vclass == "spare" else f"{layout.vclass}: single disks"


def _layouts(
    ui: FlowSession, situation: Situation, found: Sequence[tuple[Layout, int]]
) -> PickList:
    lacking = [why_not(situation, *each) for each in found]

    def _about(index: int, look: DisplayFormat, width: int) -> Lines:
        layout, why = found[index][0], lacking[index]
        said = (*meaning(layout), permanent(situation, layout) or removable(situation, layout))
        head = look.wrapped(f"Not now: {why}", width, "warning") if why else ()
        return (*head, *(line for text in said for line in look.wrapped(text, width)))

    near = member_bytes(situation)
    judged = _judged(situation, Layout("normal"), situation.facts.devices)
    free = sum(each.usable and not _is_small(each.device, near) for each in judged)
    texts = [layout_text(*each, free) for each in found]

    def _lines(look: DisplayFormat, width: int) -> Lines:
        return tuple(  # dim, with the reason, if it can't be added now
            look.crop((Span(f"  {text}: {why}", "dim") if why else Span(f"  {text}"),), width)
            for text, why in zip(texts, lacking, strict=True)
        )

    return PickList(f"ADD TO {ui.look.text(situation.pool.name)}", _lines, about=_about)


def why_not(situation: Situation, layout: Layout, count: int) -> str | None:
    """Return why the free disks do not suffice for a layout; None if they do.

    This checks the disks that fit best. A path that the operator types may work all the same.
    """
    judged = _judged(situation, layout, situation.facts.devices)
    paths = tuple(each.device.path for each in judged if each.usable)
    least = layout.least if layout.vclass == "normal" else count or layout.least
    if len(paths) < least:
        are = {0: "is none", 1: "is one"}.get(len(paths), f"are {len(paths)}")
        return f"needs {counted(least, 'free disk')}, there {are}"
    return plan_add(situation, layout, paths[: count or layout.least]).refused


@dataclass(slots=True)
class Marking:
    """The devices of the machine, and those marked for the new vdev."""

    title: str
    count: int
    """Number of devices that makes the vdev like the pool's own; 0: any number."""
    least: int
    """Smallest number of devices for the layout."""
    listed: list[Candidate]
    marked: dict[str, None] = field(default_factory=dict)
    """Marked paths, in the order in which they were marked."""

    def mark(self, index: int) -> None:
        """Mark a usable device, or unmark it; ignore devices that can't be used."""
        if index >= len(self.listed) or not self.listed[index].usable:
            return
        path = self.listed[index].device.path
        if path in self.marked:
            del self.marked[path]
        else:
            self.marked[path] = None

    def add(self, path: str) -> None:
        """Mark a device whose path was typed."""
        if all(each.device.path != path for each in self.listed):
            self.listed.append(Candidate(Device(path), cautions=("not examined yet",)))
        self.marked[path] = None

    def lines(self, look: DisplayFormat, width: int) -> Lines:
        """Return one line per device, with MARK before the marked ones, and one to type a path."""
        shown: list[Line] = []
        for each, line in zip(self.listed, candidate_lines(self.listed, look, width), strict=True):
            first, *rest = line
            if each.device.path in self.marked:
                first = first._replace(text=f"{MARK} {first.text[2:]}")
            shown.append((first, *rest))
        return (*shown, (Span(f"  {OTHER}", "key"),))

    @property
    def head(self) -> str:
        """Title with the number of marked devices, and how many are needed."""
        wanted = f" of {self.count}" if self.count else ""
        least = f", at least {self.least}" if self.least < self.count else ""
        return f"{self.title}: {len(self.marked)}{wanted} marked{least}"


class DevicesScreen(PickScreen, groups=("Menu", "Devices")):
    """List to mark devices on; Enter continues with them, or with the one at the cursor."""

    def __init__(self, marking: Marking, start: int) -> None:
        self.marking = marking
        about = partial(candidate_about, marking.listed)
        super().__init__(PickList(marking.title, marking.lines, start, about))

    def title_line(self, _: int) -> Line:
        """Return the title with the number of marked devices."""
        return (Span(f" {self.look.text(self.marking.head)}", "title"),)

    def action_mark(self) -> None:
        """Mark or unmark the device at the cursor, and move to the next."""
        self.marking.mark(self.view.cursor)
        self.update()
        self.view.move(1)


async def _marking(ui: FlowSession, situation: Situation, layout: Layout, count: int) -> Marking:
    """Return the devices to choose from: usable ones first, the closest in size before others."""
    warm = await with_smart(ui.backend.runner, situation.facts.devices)
    judged = _judged(situation, layout, warm)
    near = _wanted_bytes(situation, layout)

    def _order(each: Candidate) -> tuple[bool, int, str, str]:
        device = each.device
        return not each.usable, abs((device.size or 0) - near), device.bay, device.path

    judged.sort(key=_order)
    return Marking(f"ADD {layout.name} TO {situation.pool.name}", count, layout.least, judged)


def _wanted_bytes(situation: Situation, layout: Layout) -> int:
    """Return the size of the pool's own disks in bytes where a new disk should match it, else 0."""
    return member_bytes(situation) if layout.vclass in ("normal", "spare") else 0


def _is_small(device: Device, near: int) -> bool:
    return device.size is not None and device.size < near * SMALL


def _judged(situation: Situation, layout: Layout, devices: Iterable[Device]) -> list[Candidate]:
    """Judge each device for the layout; one much smaller than the pool's disks gets a caution."""
    near, judged = _wanted_bytes(situation, layout), []
    for device in devices:
        each = judge_new(situation.pool, device, wanted_shift(situation, layout))
        if _is_small(device, near):
            small = f"smaller than the pool's disks ({size(near)})"
            each = replace(each, cautions=(*each.cautions, small))
        judged.append(each)
    return judged


async def _devices(ui: FlowSession, marking: Marking) -> tuple[str, ...]:
    """Return the paths of the chosen devices; empty if the screen was left."""
    row = 0
    while (chosen := await ui.show(DevicesScreen(marking, row))) is not None:
        if chosen < len(marking.listed):
            return tuple(marking.marked) or (marking.listed[chosen].device.path,)
        if (path := await ask_path(ui)) is not None:
            marking.add(path)
        row = len(marking.listed)
    return ()
