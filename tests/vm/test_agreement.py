"""On a live pool, libzfs, JSON and text tell the same."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.vm.agreement import assert_agree
from tests.vm.pools import PoolFactory
from tests.vm.states import STATES, State

FAST = {
    "healthy raidz2",
    "scrub running",
    "scrub paused",
    "replace deferred",
    "replace finished",
    "sequential rebuild running",
    "draid spare in use",
    "hot spare in use",
    "every class",
    "faulted",
    "removed",
    "checkpoint",
    "removal finished",
    "raidz expansion finished",
    "trim running",
    "permanent errors",
    "permanent error not UTF-8",
    "odd names",
}
"""States of the fast subset: one of each kind of tree, scan, activity and damage."""

ATTEMPTS = 3
"""The sources do not answer in the same instant: a change between two of them is no disagreement,
one that is there again and again is."""

KEEP = "ZCONSOLE_VM_KEEP"
"""Names a directory to keep what the sources answered in, one file a release and state."""

Answers = dict[str, dict[str, Any]]


def cases() -> Iterator[Any]:
    for state in STATES:
        marks = () if state.name in FAST else (pytest.mark.slow,)
        yield pytest.param(state, id=state.name.replace(" ", "-"), marks=marks)


def taken(pool: PoolFactory, name: str) -> Answers:
    """Source to its sample and raw form; a release without JSON has no ``json``."""
    program = ["env", "PYTHONPATH=/root/zconsole", "/opt/zc/bin/python"]
    done = pool.machine.run([*program, "-m", "tests.vm.inside.forms", name], timeout=120)
    found = [json.loads(line) for line in done.stdout.splitlines()]
    return {entry["source"]: entry for entry in found if "sample" in entry}


def keep(found: Answers, pool: PoolFactory, state: State) -> None:
    """Write down the raw forms that agreed, for `tests.vm.breaks`."""
    if directory := os.environ.get(KEEP):
        raws = {source: entry["raw"] for source, entry in found.items()}
        path = Path(directory) / pool.machine.image.release / f"{state.name}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(raws))


def samples(found: Answers) -> Mapping[str, dict[str, Any]]:
    return {source: entry["sample"] for source, entry in found.items()}


@pytest.mark.parametrize("state", list(cases()))
def test_every_source_tells_the_same(pool: PoolFactory, state: State) -> None:
    version = pool.machine.image.zfs_version
    if version < state.since:
        pytest.skip(f"OpenZFS {version} has no such state")
    state.enter(pool)
    expected = {"libzfs", "json", "text"} if version >= (2, 3) else {"libzfs", "text"}
    for attempt in range(ATTEMPTS):
        found = taken(pool, state.pool)
        assert set(found) == expected
        try:
            assert_agree(samples(found), state)
        except AssertionError:
            if attempt == ATTEMPTS - 1:
                raise
        else:
            keep(found, pool, state)
            break
