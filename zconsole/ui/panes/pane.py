"""Panes of the main screen: their base class, and the lines that each gets by its wish."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import ClassVar, Literal, NamedTuple

from zconsole.timeline.frame import Frame
from zconsole.ui.display_format import DisplayFormat
from zconsole.ui.widgets.lines_view import LinesView
from zconsole.zfs.sources.base import Capabilities

SMALLEST = (54, 10)
"""Smallest columns and lines for panes; below, only a notice with the essential numbers is
shown."""
COMPACT = 20
"""Lines of the screen below which the header and panes omit what is dispensable."""
TALL = 38
"""Lines of the screen from which the headline is framed if wide, and advice has several lines."""
_LIST_MIN = 4
_LIST_FULL = 11
"""Lines of the list, with its title, for which other panes give up less important lines."""
_ASKED = 5
"""Lines for a pane without a natural height if the operator asks for it."""
_WIDE = 140

Place = Literal["top", "list", "bottom"]
"""Above the list, the list itself (exactly one pane), or below it."""


class Wish(NamedTuple):
    """Lines that a pane would like to have, including its title."""

    pane: str
    place: Place
    lines: int
    least: int = 0
    """Lines it gets even if the list wants more, as long as there is some room."""
    fills: bool = False
    """Whether it takes all that is left; ``lines`` is then its useful minimum."""
    steady: int = 0
    """Lines that the others count with, of the list and the panes above it: without opened details
    and what takes spare room."""


class Heights(NamedTuple):
    """Lines of each pane; 0 hides it. ``side`` puts the lower panes next to each other."""

    lines: Mapping[str, int]
    side: bool = False


def spare(width: int, room: int, wishes: Collection[Wish], *, full: bool = False) -> int:
    """Return the lines that the list and the panes below it leave of ``room``; may be negative.

    ``full`` counts panes that take all that is left at their usual height, not their least one.
    """
    listed = sum(w.steady for w in wishes if w.place == "list")
    low = [w.least if w.fills and not full else w.lines for w in wishes if w.place == "bottom"]
    return room - listed - (max(low, default=0) if width >= _WIDE else sum(low))


def is_crowded(height: int, room: int, wishes: Collection[Wish]) -> bool:
    """Return whether the panes above the list leave too little of ``room`` lines below them.

    This depends on the running scans and the layout of the pool, not on values of the moment.
    """
    if height >= TALL:
        return False
    above = sum(w.steady for w in wishes if w.place == "top")
    listed = sum(w.steady for w in wishes if w.place == "list")
    least = sum(w.least for w in wishes if w.place == "bottom" and not w.fills)
    return height < COMPACT or room - above < min(listed, _LIST_FULL) + least


def allot(
    width: int,
    room: int,
    wishes: Sequence[Wish],
    chosen: Mapping[str, bool],
    zoomed: str | None = None,
) -> Heights:
    """Divide ``room`` lines among the panes, given in the order from the top.

    ``chosen`` has the panes that the operator has shown or hidden; the others come and go with the
    room, not with their content. The list always keeps some lines, unless it is hidden or another
    pane is zoomed. Lines that it doesn't need go to panes that take all that is left.
    """
    given = {wish.pane: 0 for wish in wishes}
    if zoomed is not None:
        return Heights({**given, zoomed: room})
    # Panes above the list come first, then those below; the list has the rest.
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
    elif side:  # the panes below take the list's room
        given |= dict.fromkeys(shown, room)
    elif shown:
        given[shown[-1]] += room - used
    return Heights(given, side)


def _stacked(
    room: int, floor: int, listed: Wish, low: Sequence[Wish], chosen: Mapping[str, bool]
) -> dict[str, int]:
    """Stack the lower panes in the lines that the list leaves; chosen ones take some of its own."""
    free, left, given = max(0, room - listed.lines), room - floor, dict[str, int]()
    # A pane gets a third of the room at most, or what is free, and a fifth even if the list wants
    # it.
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
    """Put the lower panes next to each other, with equal heights."""
    shown = [wish for wish in low if wish.lines and chosen.get(wish.pane) is not False]
    # A quarter even if the list wants it.
    least = min(room // 4, max((wish.lines for wish in shown), default=0))
    free = room - listed.lines if any(wish.fills for wish in shown) else 0
    lines = max(0, min(room - floor, max(free, least)))
    return dict.fromkeys((wish.pane for wish in shown), lines) if lines > 1 else {}


def _share(chosen: bool | None, wanted: int, free: int, most: int) -> int:
    """Return the lines of a pane: its wish if there is room, at least 3 if chosen, 0 if hidden."""
    if chosen is False or most < 2:
        return 0
    if chosen:
        return min(most, max(3, min(wanted, max(free, _ASKED))))
    return min(wanted, free, most) if min(free, most) >= min(2, wanted) else 0


class Scene(NamedTuple):
    """Data that the panes are drawn from."""

    frame: Frame
    look: DisplayFormat
    source: Capabilities | None
    """Capabilities of the source that reads the pools."""
    width: int
    """Columns of the pane."""
    height: int
    """Lines of the terminal."""
    room: int
    """Lines for all panes: those without the header and the footer."""
    zoomed: str | None = None
    """Pane that has the whole screen."""
    compact: bool = False
    """Whether panes omit what is dispensable."""
    below: Collection[Wish] = ()
    """Wishes of the panes below this one."""
    lines: int = 0
    """Lines of the pane, including its title; 0 if hidden."""


class Ink(NamedTuple):
    """Settings and data for drawing the lines of scans and activities."""

    look: DisplayFormat
    width: int
    frame: Frame
    names: Mapping[str, str] = {}
    """Displayed names of devices, by name and path."""
    compact: bool = False
    """Whether dispensable facts are omitted."""
    roomy: bool = False
    """Whether advice and troubles may take several lines."""
    whole: bool = False
    """Whether nothing is cut, however many lines that takes."""


class Pane(LinesView):
    """A view of the main screen that draws part of a frame."""

    pane_id: ClassVar[str]
    """Name in the configuration, and id of the widget."""
    place: ClassVar[Place]
    keys: Sequence[tuple[str, str]] = ()
    """Titles and labels of keys with an effect in this pane now."""
    goes_sideways: ClassVar[bool] = False
    """Whether Left and Right have an effect in it."""

    def __init__(self) -> None:
        super().__init__(id=self.pane_id, focusable=True)

    def wish(self, scene: Scene) -> Wish:
        """Return the lines it would fill; this must not depend on current values or messages."""
        raise NotImplementedError

    def paint(self, scene: Scene) -> None:
        """Draw a frame in the columns and lines of the scene."""
        raise NotImplementedError

    def sideways(self, direction: int) -> None:
        """Handle Left (-1) and Right (1)."""

    def to_now(self) -> bool:
        """Return from an earlier time to now; return whether an earlier time was shown."""
        return False
