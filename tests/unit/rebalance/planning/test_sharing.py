"""What a plan says of blocks that files share."""

from __future__ import annotations

import pytest

from tests.unit.rebalance.planning.test_quotas import planned
from zconsole.rebalance.planning.facts import PoolFacts
from zconsole.rebalance.planning.plan_notes import of_shared_blocks


@pytest.mark.parametrize(
    ("ratio", "dedup", "told"),
    [("1.43", "off", True), ("1.43x", "off", True), ("1.00", "off", False), ("1.43", "on", False)],
)
def test_deduplicated_blocks_of_before_are_told(ratio: str, dedup: str, told: bool) -> None:
    pool = PoolFacts("tank", {"dedupratio": ratio}, (), (2, 3, 9))
    said = list(of_shared_blocks(pool, [planned(dedup=dedup)]))
    assert bool(said) == told
    assert all("(1.43x)" in note for note in said)
    assert list(of_shared_blocks(None, [planned(dedup=dedup)])) == []
