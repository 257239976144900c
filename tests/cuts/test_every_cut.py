"""The copy engine loses nothing at a crash: the short version of `.ci/cuts`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cuts import campaign
from tests.cuts.campaign import Progress
from tests.cuts.machine import isolated
from tests.cuts.workloads import WORKLOADS, Workload

STATES = 250
"""Crash states of each workload."""


@pytest.fixture(autouse=True)
def _isolated() -> Iterator[None]:
    with isolated():
        yield


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda workload: workload.name)
def test_nothing_is_lost(workload: Workload) -> None:
    progress = Progress("short", "", rounds=1)
    campaign.run([workload], progress, STATES, lambda: None)
    tally = progress.tally(workload)
    assert not tally.failures
    assert tally.states >= STATES
    assert tally.errors
    assert tally.others or workload.alone
