"""The demo's hands: which disk to pull, which one to insert and where."""

from __future__ import annotations

from collections.abc import Sequence

from zconsole.errors import ZconsoleError
from zconsole.swap.backend import Hands
from zconsole.ui.actions.context import FlowContext
from zconsole.ui.dialogs.screens import PickScreen
from zconsole.ui.widgets.draw import Line, Span, crop

DEMO = "DEMO'S HANDS"


async def pull_disk(context: FlowContext, hands: Hands, bay: str, _: str) -> str:
    """Ask for the bay, the one named first, and pull its disk; what was done, empty for nothing."""
    full = [each for each in hands.bays() if each.disk]
    rows = [f"{each.bay}  {each.disk}" for each in full]
    start = next((n for n, each in enumerate(full) if each.bay == bay), 0)
    picked = await _pick(context, "pull which disk?", rows, start)
    return "" if picked is None else hands.pull(full[picked].bay)


async def insert_disk(context: FlowContext, hands: Hands, bay: str, serial: str) -> str:
    """Ask for the disk and its bay; what was done, empty for nothing.

    The cursor is on the disk of this ``serial`` number and on this ``bay``, where they are there.
    Raises ZconsoleError where there is no disk or no empty bay.
    """
    drawer = hands.drawer()
    free = [each.bay for each in hands.bays() if not each.disk]
    if not drawer or not free:
        raise ZconsoleError("no disk lies in the drawer" if free else "no bay is empty")
    start = next((n for n, each in enumerate(drawer) if serial and each.endswith(serial)), 0)
    disk = await _pick(context, "insert which disk of the drawer?", drawer, start)
    if disk is None:
        return ""
    place = await _pick(context, "into which bay?", free, free.index(bay) if bay in free else 0)
    return "" if place is None else hands.insert(disk, free[place])


async def _pick(context: FlowContext, question: str, rows: Sequence[str], start: int) -> int | None:
    look = context.look

    def _lines(width: int) -> tuple[Line, ...]:
        made = ((Span(f"  {look.text(row)}"),) for row in rows)
        return tuple(crop(line, width, look.glyphs.ellipsis) for line in made)

    screen = PickScreen(f"{DEMO}  {question}", _lines, start=start, wide=True)
    return await context.app.push_screen_wait(screen)
