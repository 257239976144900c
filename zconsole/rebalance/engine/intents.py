"""What the journal has to know before a name is touched."""

from __future__ import annotations

from collections.abc import Iterable

from zconsole.rebalance.engine.item import Item
from zconsole.rebalance.engine.journal import Intent, State


def creating(items: Iterable[Item]) -> list[Intent]:
    """Before temporary files are created by name: one each, at the first place."""
    return [
        Intent(item.places[0].row.number, State.CREATING, item.places[0].temp, item.old, 0, b"")
        for item in items
    ]


def swapping(items: Iterable[Item]) -> list[Intent]:
    """Before originals are replaced, at all of their places."""
    return [
        Intent(place.row.number, State.SWAPPING, place.temp, item.old, item.new, item.digest)
        for item in items
        for place in item.places
    ]


def directories(items: Iterable[Item], now: float) -> dict[int, tuple[int, float]]:
    """By number, the times that directories must have in the end, noted ``now`` (epoch seconds).

    Those that another process changed keep the time they have.
    """
    places = [place for item in items for place in item.places]
    alone = [place.directory for place in places if not place.directory.foreign]
    return {directory.number: (directory.mtime_ns, now) for directory in alone}
