"""Free hot spares that fit a failed device and do not stand in for it."""

from __future__ import annotations

import math

import pytest

from tests.records import replace
from tests.table import rows
from tests.unit.actions.pools import TIB, disk, group, pool, top
from zconsole.output.json import sample_object
from zconsole.pool.health import health
from zconsole.pool.model import Vdev, placed
from zconsole.pool.spares import PATIENCE, idle_spares, unfit_spare
from zconsole.sim import lifecycle
from zconsole.sim.disk import FAULTED, OFFLINE
from zconsole.sim.source import World
from zconsole.timeline.session import Session

NOW = 10_000.0


def spare(**fields) -> Vdev:
    return replace(disk("sp", 1900, "AVAIL", vclass="spare"), **fields)


def idle(*children: Vdev, failed=("1000",), since=-math.inf, zed=None, **fields):
    """Return the idle spares of a pool in which devices have failed, all at one time."""
    found = pool(*children, **fields)
    tree = {place.key: place for place in placed(found.root)}
    return tuple(idle_spares(found, tree, dict.fromkeys(failed, since), NOW, zed))


BAD = disk("d00", 1000, "FAULTED")
RAIDZ = top("raidz2", 0, 6, BAD)


def test_a_spare_that_fits_a_failed_device_and_is_not_used():
    (found,) = idle(RAIDZ, spare())
    assert (found.kind, found.severity, found.name, found.device) == (
        "unused",
        "warning",
        "sp",
        "d00",
    )
    command = "zpool replace tank 1000 /dev/disk/by-id/sp"
    assert found.command == command
    assert found.text == f"spare sp fits d00 and is not used; to use it: {command}"


@rows(
    ("zed", "said"),
    [
        (None, "is not used; to use it"),
        (True, "is not used, though zfs-zed runs; to use it"),
        (False, "is not used: zfs-zed is not running; to use it"),
    ],
)
def test_whether_zed_runs_is_told_where_it_is_known(zed, said):
    (found,) = idle(RAIDZ, spare(), zed=zed)
    assert said in found.text
    assert found.zed is zed


@rows(("ago", "told"), [(0.0, 0), (PATIENCE - 1, 0), (PATIENCE, 1)])
def test_zed_has_its_time(ago, told):
    assert len(idle(RAIDZ, spare(), since=NOW - ago)) == told


@rows(
    ("children", "fields"),
    [
        ((RAIDZ, spare(size_bytes=TIB // 2)), {}),
        ((RAIDZ, spare(size_bytes=None)), {}),  # a text does not tell it
        ((RAIDZ, spare(logical_ashift=13)), {}),
        ((RAIDZ, spare(state="INUSE")), {}),
        ((RAIDZ, spare(state="UNAVAIL")), {}),
        ((RAIDZ, spare(kind="dspare", name="draid2-3-0")), {}),
        ((replace(RAIDZ, state="UNAVAIL"), spare()), {}),  # nothing to fill it from
        ((replace(BAD, vclass="cache"), spare()), {}),
        ((replace(RAIDZ, vclass="log"), spare()), {}),
        ((top("raidz2", 0, 6, group("replacing", BAD, disk("n", 77))), spare()), {}),
        ((top("raidz2", 0, 6, group("spare", BAD, disk("s1", 78))), spare()), {}),
        ((RAIDZ, spare()), {"suspension": "errors"}),
    ],
)
def test_nothing_is_told_of_a_spare_that_does_not_fit_or_a_device_that_needs_none(children, fields):
    assert idle(*children, **fields) == ()


def test_each_device_gets_the_smallest_spare_that_fits():
    both = top("raidz2", 0, 6, BAD, disk("d01", 1001, "REMOVED"))
    large, small = (replace(spare(), name=n, path=f"/{n}", size_bytes=s) for n, s in PAIR)
    found = idle(both, large, small, failed=("1000", "1001"))
    assert [(each.name, each.device) for each in found] == [("small", "d00"), ("large", "d01")]
    assert len(idle(both, small, failed=("1000", "1001"))) == 1


PAIR = (("large", 2 * TIB), ("small", TIB))


def test_a_distributed_spare_is_told_by_its_name():
    own = spare(kind="dspare", name="draid2-0-0", path=None, size_bytes=None)
    (found,) = idle(top("draid2", 0, 6, BAD), own)
    assert found.command == "zpool replace tank 1000 draid2-0-0"


def test_a_spare_that_prefers_larger_sectors_is_told_those_of_the_vdev():
    """ZED gives no ashift unless the pool has one, and the kernel refuses a larger one."""
    (found,) = idle(replace(RAIDZ, ashift=9), spare(logical_ashift=9, physical_ashift=12))
    assert found.command == "zpool replace -o ashift=9 tank 1000 /dev/disk/by-id/sp"


@rows(
    ("fields", "why"),
    [
        ({}, None),
        ({"size_bytes": TIB // 2}, "too small: 512G, this place needs"),
        ({"logical_ashift": 13}, "its sectors are 8192 bytes, raidz2-0 is laid out for 4096"),
    ],
)
def test_a_plan_refuses_what_zpool_would(fields, why):
    found = unfit_spare(spare(**fields), BAD, RAIDZ)
    assert (found or "").startswith(why or "")
    assert bool(found) == bool(why)


def test_a_pool_is_degraded_with_it_among_the_reasons():
    whole = pool(RAIDZ, spare())
    found = health(whole, NOW, spares=idle(RAIDZ, spare()))
    assert found.word == "DEGRADED"
    assert any("spare sp fits d00" in reason for reason in found.reasons)


def frames(world: World, *times: float):
    session = Session()
    for t in times:
        world.advance(t)
        yield session.advance(world.raws())[0]


def test_a_device_that_had_failed_before_has_its_spare_told_at_once():
    (frame,) = frames(World("failed-disk", 1), 0.0)
    (told,) = sample_object(frame)["spares"]
    assert (told["kind"], told["device"], told["zed"]) == ("unused", "bay05", False)
    assert told["command"].endswith(" /dev/disk/by-vdev/bay11")


@pytest.mark.parametrize(("state", "told"), [(FAULTED, 1), (OFFLINE, 0)])
def test_a_device_that_is_seen_to_fail_is_given_time_and_one_set_offline_needs_none(state, told):
    world = World("healthy", 1)
    old = world.pools[0].tops[0].members[0]
    counts = []
    for number, frame in enumerate(frames(world, 0.0, 10.0, 60.0, 185.0, 200.0)):
        if number == 0:
            lifecycle.lose(world.pools[0], old, state=state)
        counts.append(len(frame.spares))
    assert counts == [0, 0, 0, 0, told]


def test_no_spare_is_advised_for_disks_that_have_one_cause():
    world = World("loose-cable", 1)
    stock = world.pools[0]
    stock.spares = [stock.host.shelf.pop(0)]
    next(stock.leaves()).state = FAULTED
    (first,) = frames(world, 0.0)
    assert [each.kind for each in first.spares] == ["unused"]
    world = World("loose-cable", 1)
    stock = world.pools[0]
    stock.spares, stock.incidents = [stock.host.shelf.pop(0)], stock.incidents[:3]
    for frame in frames(world, *range(0, 400, 20)):
        assert [each for each in frame.spares if each.kind == "unused"] == []
