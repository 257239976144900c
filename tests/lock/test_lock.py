"""A short draw of every part of the lock; `python -m tests.lock check` is the whole."""

from importlib.util import find_spec

import pytest

from tests.lock import kept
from tests.lock.lock import PARTS, cases, check, drawn


@pytest.mark.parametrize("part", [part for part in PARTS if find_spec(f"tests.lock.{part}")])
def test_a_draw_of_the_lock_sees_what_is_kept(part):
    texts = {case.name: case.see(False) for case in drawn(cases(part))}
    assert texts
    assert check(part, texts, all_seen=False) == 0


def test_what_is_kept_stays_small():
    assert kept.size() <= kept.LIMIT
