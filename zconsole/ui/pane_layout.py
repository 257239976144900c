"""How many lines each pane gets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

PANES = ("scan", "devices", "balance", "events")
SMALLEST = (54, 10)
"""Below this many columns or lines there is only a notice with the essential numbers."""
COMPACT = 20
"""Below this many lines the header and the scan leave out what can be done without."""
ROOMY = 30
"""From this many lines on, what is only good to know may take several."""
_DEVICES_MIN = 5
_EVENTS_FULL = 10
_WIDE = 140


class WantedHeights(NamedTuple):
    """How many lines each part would fill, titles included."""

    header: int
    scan: int
    devices: int
    balance: int
    events: int


class Heights(NamedTuple):
    """Lines a part; 0 hides it. ``side`` puts balance and events beside each other."""

    scan: int
    devices: int
    balance: int
    events: int
    side: bool = False


def allot(
    width: int,
    height: int,
    wanted: WantedHeights,
    chosen: Mapping[str, bool],
    zoomed: str | None = None,
) -> Heights:
    """Share ``height`` lines less header and footer.

    ``chosen`` holds panes the operator has shown or hidden; the others come and go with the
    room. The devices always keep some lines, unless hidden or another pane is zoomed.
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
    if not floor:
        balance, events = _grow(room, balance, events, side)
    return Heights(scan, devices, balance, events, side)


def _stacked(
    room: int, floor: int, wanted: WantedHeights, chosen: Mapping[str, bool]
) -> tuple[int, int]:
    """Balance, then events, in what the devices leave; a chosen pane takes room from them."""
    spare = max(0, room - wanted.devices)
    most = max(2, room // 3)
    balance = _share(chosen.get("balance"), wanted.balance, max(spare, most // 2), room - floor)
    balance = min(balance, max(most, spare))
    spare = max(0, spare - balance)
    events = _share(chosen.get("events"), wanted.events, spare, room - floor - balance)
    return balance, events


def _side(
    room: int, floor: int, wanted: WantedHeights, chosen: Mapping[str, bool]
) -> tuple[int, int]:
    """Balance and events beside each other, equally high."""
    free = max(0, min(room - floor, max(room - wanted.devices, room // 4)))
    balance = 0 if chosen.get("balance") is False else wanted.balance
    events = 0 if chosen.get("events") is False else min(wanted.events, _EVENTS_FULL)
    both = min(free, max(balance, events))
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


def _grow(room: int, balance: int, events: int, side: bool) -> tuple[int, int]:
    """Without the device list its room goes to the pane below."""
    if side:
        return room, room
    if events:
        return balance, room - balance
    return (room, 0) if balance else (0, 0)
