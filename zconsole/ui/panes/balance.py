"""Balance pane: the fill of every top-level vdev as a bar."""

from __future__ import annotations

from itertools import zip_longest

from rich.cells import cell_len

from zconsole.pool.balance import Balance, VdevBalance
from zconsole.rebalance.planning.settings import EVEN
from zconsole.ui.display_format import DisplayFormat
from zconsole.ui.panes.pane import Pane, Scene, Wish
from zconsole.ui.widgets.draw import Line, Span, fit, ruled
from zconsole.ui.widgets.graph import bar
from zconsole.units import percent

_LEAST = 3
"""Lines that the pane gets even if the device list wants more."""
_NAME = 14
_LONG_NAME = 30
"""Most cells of a name on a wide screen; fewer if the longest name needs fewer."""
_SHORT_NAME, _SHORT_NUMBER = 10, 7
"""Cells of a name, and most cells of a size, if two vdevs share a line."""
_FULL, _NEARLY = 0.96, 0.9
_ROOMY, _WIDE = 80, 100
_MARKS = 2
"""Cells that longer wordings of the title leave free for the marks of hidden lines."""


class BalancePane(Pane):
    """Pane with the fill of every top-level vdev."""

    pane_id = "balance"
    place = "bottom"
    keys = (("what-if", "what if"),)

    def wish(self, scene: Scene) -> Wish:
        """Wish for a line per vdev; a single vdev says little, so it may get none."""
        vdevs = scene.frame.balance.vdevs
        lines = len(vdevs) + 1 if vdevs else 0
        return Wish(self.pane_id, self.place, lines, least=_LEAST if lines >= _LEAST else 0)

    def paint(self, scene: Scene) -> None:
        """Draw the title and the vdevs."""
        balance, look, rows = scene.frame.balance, scene.look, scene.lines - 1
        title = balance_title(balance, look, scene.width, rows)
        self.show(balance_lines(balance, look, scene.width, rows), title)


def balance_title(
    balance: Balance, look: DisplayFormat, width: int, room: int | None = None
) -> Line:
    """Return the title: spread, bytes above the mean fill, and headings.

    Raw free space includes parity. ``room`` is the number of lines below it; None if every vdev
    has one.
    """
    columns = " raw free" if width >= _ROOMY else " free"
    columns += "    frag" * (width >= _WIDE)
    if len(balance.vdevs) > 1:
        columns += "  new writes" if width >= _WIDE else "   new writes"
        if is_paired(balance, look, width, room):
            columns = " raw free    new"
    facts = " BALANCE "
    if len(balance.vdevs) > 1:
        facts += f" spread {percent(balance.spread, 1)} "
        facts += _evening(balance, look, width - len(columns) - len(facts) - 3)
    return ruled(facts, columns, look.glyphs.rule, width)


def _evening(balance: Balance, look: DisplayFormat, room: int) -> str:
    """Return the text on bytes above the common fill, uncut; empty if no wording fits.

    A job moves more than this, as its writes go to all vdevs. Where volumes keep the pool from
    getting even, return how even it can get.
    """
    if balance.spread is not None and round(balance.spread, 3) <= EVEN:  # rounded as on the screen
        return " even " if room >= len(" even ") else ""
    held = balance.volumes
    if held is not None and held.keeps_uneven:
        least = f" at best {percent(held.least_spread, 1)}: "
        wordings = [f"{least}{held.in_short(look.size)} stay ", f"{least}volumes "]
        return next((words for words in wordings if len(words) <= room - _MARKS), "")
    if not balance.imbalance_bytes:
        return ""
    amount = look.size(balance.imbalance_bytes)
    short = f" {amount} surplus "
    longer = f" {amount} above the mean (raw) "
    if len(longer) <= room - _MARKS:
        return longer
    return short if len(short) <= room else ""


def balance_lines(
    balance: Balance, look: DisplayFormat, width: int, room: int | None = None
) -> tuple[Line, ...]:
    """Return a line per vdev: name, bar, fill, free, fragmentation, share of new writes.

    If ``room`` lines are too few, two vdevs share a line. If that isn't enough either, the emptiest
    and the fullest vdev come first, as a rebalance moves data between them.
    """
    if all(vdev.fill is None for vdev in balance.vdevs):
        return ((Span(" the source gives no sizes of vdevs", "dim"),),)
    shares, most = len(balance.vdevs) > 1, _LONG_NAME if width >= _WIDE else _NAME
    longest = max(cell_len(look.text(vdev.name)) for vdev in balance.vdevs)
    names = min(most, max(_NAME, longest))
    vdevs = balance.vdevs
    paired = is_paired(balance, look, width, room)
    if room is not None and room * (1 + paired) < len(vdevs):
        known = sorted((vdev.fill, i) for i, vdev in enumerate(vdevs) if vdev.fill is not None)
        first = {known[0][1], known[-1][1]}  # the emptiest and the fullest
        order = sorted(range(len(vdevs)), key=lambda i: i not in first)
        vdevs = tuple(vdevs[i] for i in order)
    if not paired:
        return tuple(_vdev(vdev, look, width, names, shares) for vdev in vdevs)
    cells = [_vdev(vdev, look, width // 2, _SHORT_NAME, shares, brief=True) for vdev in vdevs]
    return tuple(
        (*left, *right) for left, right in zip_longest(cells[::2], cells[1::2], fillvalue=())
    )


def is_paired(balance: Balance, look: DisplayFormat, width: int, room: int | None) -> bool:
    """Return whether ``room`` lines are too few for a vdev each, and two fit on one line."""
    fits = look.number <= _SHORT_NUMBER and width >= _ROOMY
    return fits and room is not None and room < len(balance.vdevs)


def _vdev(
    vdev: VdevBalance,
    look: DisplayFormat,
    width: int,
    names: int,
    shares: bool,
    *,
    brief: bool = False,
) -> Line:
    name = look.middle(vdev.name, names)
    between, share = ("", 7) if brief else ("  ", 11)
    tail = f"{percent(vdev.fill, 1):>8}{between}{look.size(vdev.free_bytes):>7}"
    if width >= _WIDE:
        tail += f"{percent(vdev.frag):>8}"
    tail += f"{percent(vdev.new_write_share):>{share}} " if shares else " "
    room = max(0, width - names - 3 - len(tail))
    return (
        Span(f" {fit(name, names)}  "),
        *bar(vdev.fill, room, look.glyphs, fill_role(vdev.fill)),
        Span(tail),
    )


def fill_role(fill: float | None) -> str:
    """Return the role of a bar for a fill, 0…1.

    ZFS slows down as a vdev fills, and near 97 % only its reserve is left (spa_slop_shift).
    """
    if fill is None or fill < _NEARLY:
        return "bar"
    return "error" if fill >= _FULL else "warning"
