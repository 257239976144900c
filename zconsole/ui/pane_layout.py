"""How many lines each pane gets, by what it wants and where it stands."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Literal, NamedTuple

SMALLEST = (54, 10)
"""Below this many columns or lines there is only a notice with the essential numbers."""
COMPACT = 20
"""Below this many lines the header and the panes leave out what can be done without."""
TALL = 38
"""From this many lines on the headline is framed where it is wide, and advice has several."""
_LIST_MIN = 4
_LIST_FULL = 11
"""Lines of the list, with its title, for which others give up what says little."""
_ASKED = 5
"""Lines that an operator's wish for a pane that has no end is good for."""
_WIDE = 140

Place = Literal["top", "list", "bottom"]
"""Above the list, the list itself, which is one, or below it."""


class Wish(NamedTuple):
    """How many lines a pane would fill, its title included."""

    pane: str
    place: Place
    lines: int
    least: int = 0
    """Lines that it has, where there is some room, although the list wants more."""
    fills: bool = False
    """Whether it takes what there is, and ``lines`` are what it is good for at the least."""
    steady: int | None = None
    """Lines without what is opened in it; None where that is all of them."""


class Heights(NamedTuple):
    """Lines a pane; 0 hides it. ``side`` puts the lower panes beside each other."""

    lines: Mapping[str, int]
    side: bool = False


def spare(width: int, room: int, wishes: Collection[Wish], *, full: bool = False) -> int:
    """What the list and the panes below it leave of ``room`` lines; negative if they have too few.

    ``full``: with panes that take what there is at their usual height, not at their least.
    """
    listed = sum(w.lines if w.steady is None else w.steady for w in wishes if w.place == "list")
    low = [w.least if w.fills and not full else w.lines for w in wishes if w.place == "bottom"]
    return room - listed - (max(low, default=0) if width >= _WIDE else sum(low))


def is_crowded(height: int, room: int, wishes: Collection[Wish]) -> bool:
    """Whether what stands above the list leaves too little of a screen: ``room`` lines.

    ``wishes``: those of the list and of what is below it.
    """
    listed = sum(w.lines if w.steady is None else w.steady for w in wishes if w.place == "list")
    least = sum(w.least for w in wishes if w.place == "bottom" and not w.fills)
    return height < COMPACT or (height < TALL and room < min(listed, _LIST_FULL) + least)


def allot(
    width: int,
    room: int,
    wishes: Sequence[Wish],
    chosen: Mapping[str, bool],
    zoomed: str | None = None,
) -> Heights:
    """Share ``room`` lines among the panes, which come in their order.

    ``chosen`` holds panes the operator has shown or hidden; the others come and go with the
    room, not with what they have to show. The list always keeps some lines, unless hidden or
    another pane is zoomed; what it does not fill is for panes that take what there is.
    """
    given = {wish.pane: 0 for wish in wishes}
    if zoomed is not None:
        return Heights({**given, zoomed: room})
    (listed,) = (wish for wish in wishes if wish.place == "list")
    floor = _LIST_MIN if chosen.get(listed.pane, True) else 0
    for wish in wishes:
        if wish.place == "top" and chosen.get(wish.pane, True):
            given[wish.pane] = min(wish.lines, max(0, room - floor))
            room -= given[wish.pane]
    low = [wish for wish in wishes if wish.place == "bottom"]
    share = _side if width >= _WIDE else _stacked
    given |= share(room, floor, listed, low, chosen)
    shown = [wish.pane for wish in low if given[wish.pane]]
    side = width >= _WIDE and len(shown) > 1
    below = [given[pane] for pane in shown]
    used = max(below, default=0) if side else sum(below)
    if floor:
        given[listed.pane] = room - used
    elif side:  # without the list its room goes to what is below it
        given |= dict.fromkeys(shown, room)
    elif shown:
        given[shown[-1]] += room - used
    return Heights(given, side)


def _stacked(
    room: int, floor: int, listed: Wish, low: Sequence[Wish], chosen: Mapping[str, bool]
) -> dict[str, int]:
    """The lower panes in what the list leaves; a chosen one takes room from it."""
    free, left, given = max(0, room - listed.lines), room - floor, dict[str, int]()
    most, usual = max(2, room // 3), room // 5
    for wish in low:
        asked = chosen.get(wish.pane)
        if wish.fills:
            lines = _share(asked, max(2, free), free, left)
        else:
            least = max(usual, wish.least) if usual > 1 and wish.least else 0
            lines = _share(asked, wish.lines, max(free, least), left)
            lines = min(lines, max(most, free))
        given[wish.pane] = lines
        free, left = max(0, free - lines), left - lines
    return given


def _side(
    room: int, floor: int, listed: Wish, low: Sequence[Wish], chosen: Mapping[str, bool]
) -> dict[str, int]:
    """The lower panes beside each other, equally high."""
    shown = [wish for wish in low if wish.lines and chosen.get(wish.pane) is not False]
    least = min(room // 4, max((wish.lines for wish in shown), default=0))
    free = room - listed.lines if any(wish.fills for wish in shown) else 0
    lines = max(0, min(room - floor, max(free, least)))
    return dict.fromkeys((wish.pane for wish in shown), lines) if lines > 1 else {}


def _share(chosen: bool | None, wanted: int, free: int, most: int) -> int:
    """Lines for a pane: what it wants if there is room, at least 3 if asked for, none if not."""
    if chosen is False or most < 2:
        return 0
    if chosen:
        return min(most, max(3, min(wanted, max(free, _ASKED))))
    return min(wanted, free, most) if min(free, most) >= min(2, wanted) else 0
