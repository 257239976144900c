"""What a plan says of the pool, as text for people: vdevs before and after, room, order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from zconsole.units import clean, size


def pool_lines(plan: Mapping[str, Any]) -> Iterator[str]:
    """The fill of every vdev now and then, and what the move has to get along with."""
    for vdev in plan["vdevs"] or ():
        yield f"  {_fill(vdev)} then"
    for vdev in plan["special"] or ():
        yield f"  {_fill(vdev)} then at most (special)"
    words = []
    if plan["available_bytes"] is not None:
        words.append(f"{size(plan['available_bytes'])} may be used before the free-space floor")
    if plan["fragmentation"] is not None:
        words.append(f"free space is {plan['fragmentation']:.0%} fragmented")
    if words:
        yield "; ".join(words)
    yield f"order of files: {plan['order']}"


def _fill(vdev: Mapping[str, Any]) -> str:
    return f"{clean(vdev['name'])}: {vdev['fill_before']:.1%} full now, {vdev['fill_after']:.1%}"


def looked_words(sampled: Mapping[str, int], engine: str | None) -> str | None:
    """What the files that a plan opened showed of those a run will skip; None for nothing.

    ``sampled`` counts them by what was seen, those that could be opened under ``opened``.
    """
    opened = sampled.get("opened", 0)
    # In place nothing is taken from under a process that writes.
    harmless = {"opened", *(("open for writing",) if engine == "rewrite" else ())}
    seen = [f"{files} {clean(word)}" for word, files in sampled.items() if word not in harmless]
    return f"in a sample of files, {opened} of them opened: {', '.join(seen)}" if seen else None
