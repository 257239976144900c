"""How many lines each pane gets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from zconsole.config.settings import PANES

SMALLEST = (54, 10)
"""Below this many columns or lines there is only a notice with the essential numbers."""
COMPACT = 20
"""Below this many lines the header and the scan leave out what can be done without."""
TALL = 38
"""From this many lines on the headline is framed where it is wide, and advice has several."""
_DEVICES_MIN = 4
_DEVICES_FULL = 11
"""Lines of the devices, with their title, for which others give up what says little."""
_BALANCE_MIN = 3
"""Lines of a balance of several vdevs: between two of them data moves."""
_EVENTS_MIN = 4
_EVENTS_FULL = 10
_GRAPH_FROM = 30
"""Below this many lines the graph has one row."""
_GRAPH_ROWS = (8, 6, 4)
_GRAPH_OVER = 4
"""Rows of the graph of a scan that is over: what happens now matters more."""
_GRAPH_MOST = 20
"""Rows of a graph that has the whole screen."""
_WIDE = 140


class WantedHeights(NamedTuple):
    """How many lines each part would fill, titles included; events take what there is."""

    header: int
    scan: int
    devices: int
    balance: int


class Heights(NamedTuple):
    """Lines a part; 0 hides it. ``side`` puts balance and events beside each other."""

    scan: int
    devices: int
    balance: int
    events: int
    side: bool = False


def graph_rows(width: int, height: int, wanted: WantedHeights, *, zoomed: bool = False) -> int:
    """Rows of the rate's graph, where ``wanted.scan`` has one for it: 1, or what there is room for.

    Of a few heights only, so that a device more or less seldom moves anything.
    """
    room = height - wanted.header - 1 - wanted.scan
    if zoomed:
        return min(room, _GRAPH_MOST) if room > 1 else 1
    if height < _GRAPH_FROM:
        return 1
    low = (wanted.balance, _EVENTS_MIN)
    spare = room - wanted.devices - (max(low) if width >= _WIDE else sum(low))
    least = _GRAPH_ROWS[-1] if height >= TALL else 1
    return next((rows for rows in _GRAPH_ROWS if rows <= spare), least)


def past_graph_rows(width: int, height: int, wanted: WantedHeights, *, zoomed: bool = False) -> int:
    """The same of a scan that is over, of which ``wanted.scan`` has none: only free rows, or 0."""
    room = height - wanted.header - 1 - wanted.scan
    if zoomed:
        return max(0, min(room - 1, _GRAPH_MOST))
    low = (wanted.balance, _EVENTS_FULL)
    spare = room - wanted.devices - (max(low) if width >= _WIDE else sum(low))
    return _GRAPH_OVER if height >= _GRAPH_FROM and spare > _GRAPH_OVER else 0


def is_crowded(height: int, wanted: WantedHeights) -> bool:
    """Whether the scan leaves out what can be done without, for devices and balance."""
    room = height - wanted.header - 1 - wanted.scan
    devices = min(wanted.devices, _DEVICES_FULL)
    return height < COMPACT or (height < TALL and room < devices + _least_balance(wanted))


def _least_balance(wanted: WantedHeights) -> int:
    """Lines that a balance has although the devices want more; of one vdev it says little."""
    return min(wanted.balance, _BALANCE_MIN) if wanted.balance > _BALANCE_MIN - 1 else 0


def allot(
    width: int,
    height: int,
    wanted: WantedHeights,
    chosen: Mapping[str, bool],
    zoomed: str | None = None,
) -> Heights:
    """Share ``height`` lines less header and footer.

    ``chosen`` holds panes the operator has shown or hidden; the others come and go with the
    room, not with what they have to show. The devices always keep some lines, unless hidden or
    another pane is zoomed; what they do not fill is for the events.
    """
    room = max(0, height - wanted.header - 1)
    if zoomed is not None:
        given = {pane: room if pane == zoomed else 0 for pane in PANES}
        return Heights(given["scan"], given["devices"], given["balance"], given["events"])
    floor = _DEVICES_MIN if chosen.get("devices", True) else 0
    scan = min(wanted.scan, max(0, room - floor)) if chosen.get("scan", True) else 0
    room -= scan
    bottom = _side if width >= _WIDE else _stacked
    balance, events = bottom(room, floor, wanted, chosen)
    side = width >= _WIDE and bool(balance and events)
    used = max(balance, events) if side else balance + events
    devices = room - used if floor else 0
    if not floor:  # without the device list its room goes to the pane below
        if side:
            balance = events = room
        elif events:
            events = room - balance
        elif balance:
            balance = room
    return Heights(scan, devices, balance, events, side)


def _stacked(
    room: int, floor: int, wanted: WantedHeights, chosen: Mapping[str, bool]
) -> tuple[int, int]:
    """Balance, then events, in what the devices leave; a chosen pane takes room from them."""
    spare = max(0, room - wanted.devices)
    most, least = max(2, room // 3), room // 5
    least = max(least, _least_balance(wanted)) if least > 1 and _least_balance(wanted) else 0
    balance = _share(chosen.get("balance"), wanted.balance, max(spare, least), room - floor)
    balance = min(balance, max(most, spare))
    spare = max(0, spare - balance)
    asked = chosen.get("events")
    events = _share(asked, max(2, spare), spare, room - floor - balance)
    return balance, events


def _side(
    room: int, floor: int, wanted: WantedHeights, chosen: Mapping[str, bool]
) -> tuple[int, int]:
    """Balance and events beside each other, equally high."""
    balance = 0 if chosen.get("balance") is False else wanted.balance
    events = chosen.get("events") is not False
    least = min(room // 4, max(balance, _EVENTS_FULL if events else 0))
    both = max(0, min(room - floor, max(room - wanted.devices if events else 0, least)))
    if both < 2:
        return 0, 0
    return (both if balance else 0), (both if events else 0)


def _share(chosen: bool | None, wanted: int, spare: int, most: int) -> int:
    """Lines for a pane: what it wants if there is room, at least 3 if asked for, none if not."""
    if chosen is False or most < 2:
        return 0
    if chosen:
        return min(most, max(3, min(wanted, max(spare, _EVENTS_FULL // 2))))
    return min(wanted, spare, most) if min(spare, most) >= min(2, wanted) else 0
