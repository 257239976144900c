"""The copy engine loses nothing at a crash: the short version of `python -m tests.cuts`."""

from __future__ import annotations

import errno
import gc
import itertools
import random
from functools import lru_cache

import pytest
from hypothesis import find, given, settings
from hypothesis import strategies as st

from tests.cuts import campaign, choices
from tests.cuts.campaign import Rounds, Tally
from tests.cuts.experiment import Experiments
from tests.cuts.machine import isolated
from tests.cuts.scenarios import SCENARIOS
from tests.cuts.workloads import WORKLOADS, Workload
from zconsole.rebalance.engine.copy_engine import CopyPipeline

NUMBERS = st.lists(st.integers(0, 300), max_size=24)
"""The choices of an experiment."""


EVERYTHING = {each.name: each for each in (*WORKLOADS, *SCENARIOS)}


@lru_cache
def _experiments(name: str) -> Experiments:
    return Experiments(EVERYTHING[name])


def _round(workload: Workload, a_cut: int, disturbed: int) -> Tally:
    rounds = Rounds(workload, "short", Tally(workload.name), a_cut, disturbed)
    gc.disable()  # each round collects at its end
    try:
        rounds.round(1)
    finally:
        gc.enable()
    return rounds.tally


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda workload: workload.name)
def test_nothing_is_lost(workload: Workload) -> None:
    tally = _round(workload, 2, 4)
    assert not tally.failures
    assert tally.states > 2 * tally.cuts
    assert tally.errors
    assert tally.others or workload.alone


@pytest.mark.parametrize("workload", SCENARIOS, ids=lambda workload: workload.name)
def test_nothing_is_lost_beside_others(workload: Workload) -> None:
    tally = _round(workload, 0, 4)
    assert not tally.failures
    assert tally.others


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda workload: workload.name)
def test_a_job_that_nothing_disturbs_moves_everything(workload: Workload) -> None:
    assert list(_experiments(workload.name).undisturbed()) == []


def test_nothing_is_lost_where_a_call_finds_no_such_file() -> None:
    """An error ends the move of one file; sometimes a crash follows."""
    experiments = _experiments("links in two directories")
    missing = [number for number, code in experiments.faults() if code == errno.ENOENT]
    with isolated():
        for number, turn in itertools.product(missing, range(2)):
            choose = choices.by_chance(random.Random(f"{number} {turn}"))
            found = campaign.judged(experiments.error(number, errno.ENOENT, choose))
            assert found == (), (number, turn)


@settings(derandomize=True)
@given(st.sampled_from(list(EVERYTHING)), NUMBERS)
def test_no_choice_loses_anything(name: str, numbers: list[int]) -> None:
    with isolated():
        experiments = _experiments(name)
        assert campaign.judged(experiments.any(choices.given(numbers))) == ()


def test_what_fails_is_shrunk_and_can_be_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CopyPipeline, "_commit_intents", lambda _: None)
    workload = WORKLOADS[0]
    experiments = Experiments(workload)

    def _fails(numbers: list[int]) -> bool:
        return bool(campaign.judged(experiments.any(choices.given(numbers))))

    numbers = find(
        NUMBERS, _fails, settings=settings(derandomize=True, database=None, max_examples=100)
    )
    assert len(numbers) <= 3
    repeat = f"{workload.name}:{','.join(map(str, numbers))}"
    assert campaign.repeated(WORKLOADS, repeat)
    monkeypatch.undo()
    with isolated():
        assert campaign.repeated(WORKLOADS, repeat) == ()
