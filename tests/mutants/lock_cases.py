"""Each case of the lock as a test of its own, for `python -m tests.mutants planted`."""

from concurrent.futures import ProcessPoolExecutor
from functools import cache
from importlib.util import find_spec
from multiprocessing import get_context

import pytest

from tests.lock import kept, lock
from tests.mutants import lines

CASES = [
    f"{part}/{case.name}"
    for part in lock.PARTS
    if find_spec(f"tests.lock.{part}")
    for case in lock.cases(part)
]
read = cache(kept.read)


@cache
def process(_part):
    """Return a process for the cases of a part, which may have to import zconsole first."""
    return ProcessPoolExecutor(1, mp_context=get_context("spawn"))


@pytest.mark.parametrize("case", CASES)
def test_a_case_is_seen_as_it_was_kept(case):
    part, _, name = case.partition("/")
    process(part).submit(lines.again).result()
    assert process(part).submit(lock.see, part, name).result() == read(part)[name]
