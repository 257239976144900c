from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from zconsole.errors import UnavailableError
from zconsole.pool.allocator import Space
from zconsole.rebalance.job.accounts import MoveEffect

BEFORE = (Space("d0", 100.0, 80.0, 1.0), Space("d1", 100.0, 0.0, 1.0))
AFTER = (Space("d0", 100.0, 40.0, 1.0), Space("d1", 100.0, 40.0, 1.0))
HELD = (BEFORE[0], AFTER[1])
"""Copied, and what was freed does not show yet."""


@dataclass
class Pool:
    """What was freed shows after three syncs."""

    syncs: int = 0
    hangs: bool = False
    asked: list[str] = field(default_factory=list)

    def sync(self, pool: str) -> None:
        if self.hangs:
            raise UnavailableError("zpool gave no answer")
        self.syncs += 1

    def listing(self, pool: str) -> tuple[tuple[Space, ...], float]:
        return AFTER if self.syncs >= 3 else HELD, 0.1


def effect(pool: Any) -> MoveEffect:
    return MoveEffect(pool, "tank", BEFORE, 1.0, lambda: 0.0)


@pytest.mark.parametrize(
    ("hangs", "wait", "shown"), [(False, True, AFTER), (False, False, HELD), (True, True, HELD)]
)
def test_the_last_look_waits_for_what_was_freed(hangs: bool, wait: bool, shown: Any) -> None:
    watching = effect(Pool(hangs=hangs))
    watching.look()
    watching.look_last(wait)
    assert watching.now_spaces == shown


def test_a_target_is_judged_by_what_was_freed_too() -> None:
    assert effect(Pool()).reached(0.1, 10)
    assert not effect(Pool(hangs=True)).reached(0.1, 10)
