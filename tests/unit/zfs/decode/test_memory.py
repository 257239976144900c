"""What is remembered from sample to sample never shows in a sample."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from tests.table import rows
from tests.unit.zfs.decode.configs import config, disk, packed, stats, top
from zconsole.pool.model import Sample
from zconsole.sim.source import samples
from zconsole.zfs.decode import decode
from zconsole.zfs.decode.memory import SourceMemory

PLACE = {"bay": "A1", "serial": "S1"}


def sample(form: dict[str, Any], memory: SourceMemory, **more: Any) -> Sample:
    (found,) = decode({"t": 1.0, "libzfs": form, **more}, memory=memory)  # type: ignore[typeddict-item]
    assert isinstance(found, Sample)
    return found


@pytest.mark.slow
@rows("as_it_came", [lambda form: form, packed])
@rows("scenario", ["resilver", "trim", "two-pools", "healthy", "paused"])
def test_a_pool_reads_the_same_with_and_without_memory(scenario: str, as_it_came: Any) -> None:
    memory = SourceMemory()
    for raws in samples(scenario, 1, 40.0, 12):
        for raw in raws:
            form = {**raw, "libzfs": as_it_came(raw["libzfs"])}
            assert decode(form, memory=memory) == decode(form)  # type: ignore[arg-type]


@rows("as_it_came", [lambda form: form, packed])
@rows("at", range(48))
def test_every_counter_that_moves_is_seen(at: int, as_it_came: Any) -> None:
    memory, moved = SourceMemory(), {f"_{at}": 3} if at != 1 else {"_1": 5}
    for values in (stats(), stats(**moved), stats()):
        form = as_it_came(config(top(children=[disk("sda", vdev_stats=values)])))
        assert sample(form, memory) == sample(form, SourceMemory())


@rows(
    "change",
    [
        {"path": "/dev/disk/by-id/sdx-part1"},
        {"whole_disk": 0},
        {"not_present": 1},
        {"resilver_txg": 7},
        {"devid": "ata-X"},
        {"phys_path": "pci-1"},
        {"ashift": 12},
        {"type": "file"},
        {"vdev_stats": stats(43)},
        {"vdev_stats_ex": {"vdev_disk_r_lat_histo": [1, 2]}},
    ],
)
def test_a_device_that_changed_is_read_anew(change: dict[str, Any]) -> None:
    memory = SourceMemory()
    for more in ({}, change, {}):
        form = config(top(children=[disk("sda"), disk("sdb", **{"guid": 2, **more})]))
        assert sample(form, memory) == sample(form, SourceMemory())


@rows("as_it_came", [lambda form: form, packed])
@rows("at", range(48))
def test_every_counter_of_a_vdev_above_devices_that_moves_is_seen(at: int, as_it_came: Any) -> None:
    memory, moved = SourceMemory(), {f"_{at}": 3} if at != 1 else {"_1": 5}
    for values in (stats(), stats(**moved), stats()):
        form = as_it_came(config(top(vdev_stats=values)))
        assert sample(form, memory) == sample(form, SourceMemory())


@rows(
    "change",
    [
        {"children": [disk("sda", vdev_stats=stats(_20=1)), disk("sdb", guid=2)]},
        {"children": [disk("sda"), disk("sdb", guid=2), disk("sdc", guid=3)]},
        {"type": "draid", "draid_ndata": 1, "draid_nspares": 0},
        {"type": "draid", "draid_ndata": 1, "draid_nspares": 1},
        {"type": "draid", "draid_ndata": 1, "draid_nspares": 1, "draid_nchildren": 1},
        {"nparity": 2},
        {"id": 3},
        {"is_log": 1},
        {"alloc_bias": "special"},
    ],
)
def test_a_vdev_above_devices_that_changed_is_read_anew(change: dict[str, Any]) -> None:
    memory, both = SourceMemory(), [disk("sda"), disk("sdb", guid=2)]
    for more in ({}, change, {"type": "draid", "draid_ndata": 1, "draid_nspares": 1}, {}):
        form = config(top(**{"type": "raidz", "nparity": 1, "children": both, **more}))
        assert sample(form, memory) == sample(form, SourceMemory())


def test_a_disk_that_is_moved_is_seen() -> None:
    memory, form = SourceMemory(), config(top())
    path = disk("sda")["path"]
    for place in (PLACE, {**PLACE, "bay": "A2"}, {}):
        found = sample(form, memory, disks={path: place})
        assert found == sample(form, SourceMemory(), disks={path: place})
        assert [leaf.disk.bay for leaf in found.pool.root.leaves() if leaf.disk] == [
            place.get("bay", "")
        ]


def test_enclosures_that_change_are_seen() -> None:
    memory, form = SourceMemory(), config(top())
    for slot in (["1", "A1", "sda"], ["1", "A1"]):
        shelf = [{"key": "x", "name": "Shelf", "slots": [slot]}]
        found = sample(form, memory, enclosures=shelf)
        assert found.enclosures == sample(form, SourceMemory(), enclosures=shelf).enclosures


def test_what_stays_is_kept_once() -> None:
    memory, form = SourceMemory(), config(top())
    before, after = sample(form, memory), sample(deepcopy(form), memory)
    for old, new in zip(before.pool.root.leaves(), after.pool.root.leaves(), strict=True):
        assert old.path is new.path
        assert old.errors is new.errors


def test_a_device_that_left_is_forgotten() -> None:
    memory = SourceMemory()
    first = sample(config(top()), memory)
    sample(config(top(children=[disk("sda")])), memory)
    again = sample(config(top()), memory)
    old, new = (list(found.pool.root.leaves())[1] for found in (first, again))
    assert old == new
    assert old.path is not new.path or old.errors is not new.errors
