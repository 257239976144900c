"""Power cuts at some flushes of a job; `python -m tests.vm.power_cuts` does all of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.vm.machine import Machine
from tests.vm.power_cuts import CASES, DISKS, Case, Kept, Proof, why_not

CUTS = 4
EXT4 = Case("ext4", "copy")


@pytest.fixture
def lent(vm: Machine) -> Iterator[Machine]:
    """The machine; afterwards, its disks have no pool that another test could import."""
    yield vm
    for disk in vm.disks[: len(DISKS)]:
        vm.run(f"dd if=/dev/zero of={disk.path} bs=1M count=2 conv=fsync status=none")


@pytest.mark.parametrize(
    "case",
    [pytest.param(each, marks=pytest.mark.slow) for each in CASES],
    ids=lambda case: case.name,
)
def test_no_power_cut_loses_anything(lent: Machine, case: Case, tmp_path: Path) -> None:
    if reason := why_not(case):
        pytest.skip(reason)
    if case.engine == "rewrite" and lent.image.zfs_version < (2, 3):
        pytest.skip("no rewrite before 2.3.4")
    if case.filesystem == "zfs" and lent.image.zfs_version < (2, 2):
        pytest.skip("no exchange of names before 2.2")
    proof = Proof(lent, case, Kept(tmp_path))
    tally = proof.record()
    some = range(tally.points // 3, tally.points, max(1, tally.points // CUTS))
    assert [result for result in proof.cuts(tally, some) if result["problems"]] == []
    assert any(result["resumed"] for result in tally.results.values())
