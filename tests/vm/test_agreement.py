"""On a live pool, libzfs, JSON and text agree."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.vm.agreement import assert_agree, decoded, nodes, pools
from tests.vm.fields import assert_disks_known, assert_same_fields
from tests.vm.holding import MIB, PARAMETERS, SLOW_BPS
from tests.vm.pools import PoolFactory
from tests.vm.states import STATES, State, scrub_running

FAST = {
    "scrub running",
    "replace deferred",
    "sequential rebuild running",
    "draid spare in use",
    "every class",
    "removed",
    "raidz expansion finished",
    "trim running",
    "permanent error not UTF-8",
    "odd names",
}
"""States of the fast subset: one of each kind of tree, scan, activity and damage. Each takes an
emulated machine at least 15 s; tests/lock decodes what kernels pack in every state."""

ATTEMPTS = 3
"""The sources are not read in the same instant: a change in between is no disagreement, a
difference that comes back in each attempt is one."""

KEEP = "ZCONSOLE_VM_KEEP"
"""Variable with a directory to save the sources' answers in, one file per release and state."""

FIGURES = ("read_rate", "write_rate", "latency_seconds", "busy")
"""Figures that a busy disk has."""

Answers = dict[str, dict[str, Any]]
Raws = dict[str, dict[str, Any]]


def cases() -> Iterator[Any]:
    for state in STATES:
        marks = () if state.name in FAST else (pytest.mark.slow,)
        yield pytest.param(state, id=state.name.replace(" ", "-"), marks=marks)


def taken(pool: PoolFactory, name: str, *seconds: str) -> Answers:
    """Return sample and raw form by source; a release without JSON has no ``json``."""
    program = ["env", "PYTHONPATH=/root/zconsole", "/opt/zc/bin/python"]
    done = pool.machine.run([*program, "-m", "tests.vm.inside.forms", name, *seconds], timeout=120)
    found = [json.loads(line) for line in done.stdout.splitlines()]
    return {entry["source"]: entry for entry in found if "sample" in entry}


def keep(raws: Raws, pool: PoolFactory, state: State) -> None:
    """Save the raw forms that agreed, for `tests.vm.kept`."""
    if directory := os.environ.get(KEEP):
        path = Path(directory) / pool.machine.image.release / f"{state.name}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(raws))


def compare(answers: Answers, raws: Raws, state: State) -> None:
    """Compare the guest's samples, and the raw forms as decoded here."""
    samples = {source: entry["sample"] for source, entry in answers.items()}
    assert_agree(samples, state)
    found = pools(raws)
    assert_same_fields(found, state)
    assert_disks_known(found, raws)
    assert decoded(raws) == samples


@pytest.mark.parametrize("state", list(cases()))
def test_every_source_tells_the_same(pool: PoolFactory, state: State) -> None:
    version = pool.machine.image.zfs_version
    if version < state.since:
        pytest.skip(f"no such state before {'.'.join(map(str, state.since))}")
    state.enter(pool)
    expected = {"libzfs", "json", "text"} if version >= (2, 3) else {"libzfs", "text"}
    for attempt in range(ATTEMPTS):
        found = taken(pool, state.pool)
        assert set(found) == expected
        raws = {source: entry["raw"] for source, entry in found.items()}
        try:
            compare(found, raws, state)
        except AssertionError:
            if attempt == ATTEMPTS - 1:
                raise
        else:
            keep(raws, pool, state)
            break


def test_every_source_tells_how_busy_a_disk_is(pool: PoolFactory) -> None:
    """For libzfs it is in the counters, for others in commands that run at the same time."""
    small = f"echo {MIB // 8} >{PARAMETERS}/zfs_vdev_aggregation_limit"
    pool.machine.run(small)  # small requests, so that some I/O ends within every second
    scrub_running(pool)
    for attempt in range(ATTEMPTS):
        found = taken(pool, "tank", "5")
        try:
            for source, entry in found.items():
                assert_busy(entry["sample"]["topology"], source)
        except AssertionError:
            if attempt == ATTEMPTS - 1:
                raise
        else:
            break


def assert_busy(topology: dict[str, Any], source: str) -> None:
    leaves = {n["name"]: n for n in nodes(topology) if not n["children"]}
    assert all(leaf["read_rate"] is not None for leaf in leaves.values()), (source, leaves)
    slow = leaves["virtio-LABDISK1"]
    assert all(slow[figure] is not None for figure in FIGURES), (source, slow)
    assert SLOW_BPS / 10 < slow["read_rate"] < SLOW_BPS * 10, (source, slow)
    assert 0.01 < slow["latency_seconds"] < 10, (source, slow)
    assert 0.3 < slow["busy"] <= 1, (source, slow)
