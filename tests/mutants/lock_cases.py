"""Each case of the lock as a test of its own, for `python -m tests.mutants planted`."""

from functools import cache
from importlib.util import find_spec

import pytest

from tests.lock import kept
from tests.lock.lock import PARTS, cases

CASES = {
    f"{part}/{case.name}": (part, case)
    for part in PARTS
    if find_spec(f"tests.lock.{part}")
    for case in cases(part)
}
read = cache(kept.read)


@pytest.mark.parametrize("name", CASES)
def test_a_case_is_seen_as_it_was_kept(name):
    part, case = CASES[name]
    assert case.see(False) == read(part)[case.name]
