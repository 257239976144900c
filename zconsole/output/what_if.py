"""The outlook for a changed pool (``what-if``), as a table of before and after, and as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest
from typing import Any

from zconsole.output.json import balance_object
from zconsole.output.text import cells, padded
from zconsole.pool.balance import VdevBalance
from zconsole.pool.volumes import volume_sentences
from zconsole.pool.what_if import Outlook
from zconsole.system.printable import clean
from zconsole.timeline.eta.estimate import Estimate
from zconsole.units import percent, size


def outlook_lines(look: Outlook) -> Iterator[str]:
    """Yield a table of all vdevs, before and after the change, and the cost of rebalancing."""
    width = max((cells(clean(v.name)) for v in look.after.vdevs), default=4)
    yield f"{'VDEV':<{width}}  {'USABLE':>17} {'FREE':>17} {'FILL':>17} {'NEW WRITES':>17}"
    # Paired by position, not name: old listings may give two vdevs the same name.
    for now, was in zip_longest(look.after.vdevs, look.before.vdevs):
        yield _line(now, was, width)
    yield "USABLE and FREE are after parity; zpool list shows raw sizes"
    if look.without_redundancy:
        yield f"caution: {bare_words(look)}"
    yield f"spread: {spread_words(look)}"
    if look.busy_share is not None:
        yield f"new writes: {busy_words(look.busy_share)}"
    yield f"rebalancing: {cost_words(look)}"
    yield from volume_sentences(look.after.volumes, size)


def bare_words(look: Outlook) -> str:
    """Name the added vdevs that have no redundancy; empty if all have."""
    names = " and ".join(look.without_redundancy)
    have = "has" if len(look.without_redundancy) == 1 else "have"
    return f"{names} {have} no redundancy: one lost disk loses the pool" if names else ""


def spread_words(look: Outlook) -> str:
    """Return the spread of fills after and before, and why adding a vdev widens it at first."""
    then, now = percent(look.after.spread, 1), percent(look.before.spread, 1)
    added = len(look.after.vdevs) > len(look.before.vdevs)
    if not added or (look.after.spread or 0.0) <= (look.before.spread or 0.0):
        return f"{then} then ({now} now)"
    return f"{then} at first ({now} now): what is added is empty, and writes fill it faster"


def busy_words(share: float) -> str:
    """Return the share of new writes that added vdevs get with all disks busy, as text."""
    return f"about {percent(share, 0)} to new vdevs with all disks busy"


def cost_words(look: Outlook) -> str:
    """Return the cost of a rebalance: ``1.2T raw to rewrite for a spread of 5.0 %``."""
    left = percent(look.spread_after, 1)
    if look.rewrite_bytes is None:
        what = "all files" if look.after.volumes else "everything"
        return f"rewriting {what} once leaves a spread of {left}"
    if look.rewrite_bytes:
        return f"{size(look.rewrite_bytes)} raw to rewrite for a spread of {left}"
    return "not needed"


def _line(now: VdevBalance, was: VdevBalance | None, width: int) -> str:
    new, old = _figures(now), _figures(was) if was else ("",) * 4
    pairs = zip(old, new, strict=True)
    shown = (f"{f'{a} -> {b}' if a and a != b else b:>17}" for a, b in pairs)
    return f"{padded(clean(now.name), width)}  {' '.join(shown)}"


def _figures(vdev: VdevBalance) -> tuple[str, ...]:
    return (
        _room(vdev.usable_bytes, vdev.size_bytes),
        _room(vdev.usable_free_bytes, vdev.free_bytes),
        percent(vdev.fill, 1),
        percent(vdev.new_write_share, 1),
    )


def _room(usable: int | None, raw: int | None) -> str:
    """Return bytes after parity; raw bytes, marked so, if the layout is not known."""
    return f"{size(raw)} raw" if usable is None and raw is not None else size(usable)


def outlook_object(look: Outlook) -> dict[str, Any]:
    """Return the outlook as JSON.

    ``after`` is a balance (``balance_object``). ``rebalance`` has the bytes to rewrite, or None,
    and the spread that remains. ``without_redundancy`` has the names of added vdevs without any.
    """
    return {
        "after": balance_object(look.after),
        "rebalance": {"rewrite_bytes": look.rewrite_bytes, "spread_after": look.spread_after},
        "without_redundancy": list(look.without_redundancy),
    }


def duration_object(found: Estimate | None) -> dict[str, Any] | None:
    """Return an estimated duration in seconds, its range, and what it is based on."""
    if found is None:
        return None
    return {
        "seconds": found.eta,
        "low_seconds": found.low,
        "high_seconds": found.high,
        "reason": found.reason,
    }
