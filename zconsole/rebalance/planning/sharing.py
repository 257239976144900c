"""Blocks that files share: what is written anew of them takes space of its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from zconsole.rebalance.planning.facts import PoolFacts
from zconsole.rebalance.planning.plan_model import DirectoryPlan


def notes(pool: PoolFacts | None, plans: Sequence[DirectoryPlan]) -> Iterator[str]:
    """What to know of deduplicated blocks of before, where dedup is off by now."""
    text = pool.properties.get("dedupratio", "").rstrip("x") if pool else ""
    off = any(plan.place.dataset and not plan.place.dataset.is_on("dedup") for plan in plans)
    try:
        ratio = float(text)
    except ValueError:
        return
    if off and ratio > 1:
        yield (
            f"the pool has deduplicated blocks ({ratio:.2f}x), and dedup is off now: what moves of"
            " them takes space of its own, and they stay as long as others refer to them"
        )
