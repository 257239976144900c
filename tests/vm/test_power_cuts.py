"""Power cuts at some flushes of a job; `.ci/power-cuts` takes all of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.vm.machine import Machine
from tests.vm.power_cuts import CASES, Case, Kept, Proof, why_not

CUTS = 6


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_no_power_cut_loses_anything(vm: Machine, case: Case, tmp_path: Path) -> None:
    if reason := why_not(case):
        pytest.skip(reason)
    if case.engine == "rewrite" and vm.image.zfs_version < (2, 3):
        pytest.skip("no rewrite before 2.3.4")
    if case.engine == "copy" and case.filesystem == "zfs" and vm.image.zfs_version < (2, 2):
        pytest.skip("no exchange of names before 2.2")
    proof = Proof(vm, case, Kept(tmp_path))
    tally = proof.record()
    some = range(0, tally.points, max(1, tally.points // CUTS))
    assert [result for result in proof.cuts(tally, some) if result["problems"]] == []
    assert any(result["resumed"] for result in tally.results.values())
