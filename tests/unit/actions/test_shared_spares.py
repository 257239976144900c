"""One hot spare that stands in at two places: no action counts on it in either."""

from __future__ import annotations

from datetime import UTC
from pathlib import Path
from typing import Any

import pytest

from tests.records import replace
from tests.unit.actions.pools import FACTS, at
from zconsole.actions.clear import plan_clear
from zconsole.actions.offline import plan_detach, plan_offline, plan_online
from zconsole.actions.plan import Situation
from zconsole.actions.replace import plan_replace
from zconsole.actions.sit_out import plan_sit_out
from zconsole.actions.target import Swap, find, others_missing, suspects
from zconsole.hardware.device import Device
from zconsole.pool.model import Sample, Vdev, placed
from zconsole.swap.choice import choose
from zconsole.swap.disk import MachineView, device_named, disk_of_leaf, leaves_of
from zconsole.swap.effects import effects
from zconsole.swap.report import undone
from zconsole.swap.several import in_turn, started, together, urgent_first
from zconsole.swap.store import SwapStore
from zconsole.swap.watch import is_back
from zconsole.zfs.decode import decode

SHARED = Path(__file__).parents[2] / "fixtures/reports/one-spare-in-two-places.txt"


def decoded(**raw: Any) -> Sample:
    (sample,) = decode({"t": 1.8e9, "source": "x", **raw}, UTC)
    assert isinstance(sample, Sample)
    return sample


def node(vdev: Vdev) -> dict[str, Any]:
    """Return a vdev as in ``zpool status -j --json-int``; its GUID is derived from its name."""
    guid = int.from_bytes(vdev.name.encode()[-7:])
    below = {child.name: node(child) for child in vdev.children if child.vclass == "normal"}
    found = {"name": vdev.name, "guid": guid, "state": vdev.state, "class": vdev.vclass}
    if not below:
        return found | {"vdev_type": "disk", "path": f"/dev/disk/by-id/{vdev.name}-part1"}
    return found | {"vdev_type": vdev.kind.rstrip("123"), "vdevs": below}


def situation(form: str) -> Situation:
    pool = decoded(text=SHARED.read_text()).pool
    if form == "json":
        spares = {v.name: node(v) for v in pool.root.children if v.vclass == "spare"}
        vdevs = {"tank": node(pool.root) | {"vdev_type": "root"}}
        known = {"name": "tank", "state": "DEGRADED", "error_count": 0, "spares": spares}
        pool = decoded(status={"pools": {"tank": {**known, "vdevs": vdevs}}}).pool
    names = [leaf.name for leaf in pool.root.leaves() if leaf.name not in ("sdb", "sdf")]
    devices = [
        Device(f"/dev/disk/by-id/{name}", f"/dev/{name}", (f"/dev/disk/by-id/{name}-part1",))
        for name in dict.fromkeys(names)
    ]
    return at(pool, replace(FACTS, version=(2, 4), devices=tuple(devices)))


@pytest.fixture(params=["text", "json"])
def s(request: pytest.FixtureRequest) -> Situation:
    return situation(request.param)


def keys(s: Situation, name: str) -> list[str]:
    """Return the keys of a device at its places, without a hot spare's own row."""
    rows = [place for place in placed(s.pool.root) if place.vdev.name == name]
    return [place.key for place in rows if place.vdev.vclass != "spare"]


def test_no_device_beside_it_can_be_spared(s: Situation) -> None:
    for name in ("sda", "sdd"):
        (key,) = keys(s, name)
        assert "no valid replicas" in plan_offline(s, key).refused
        assert "no parity left" in plan_sit_out(s, key, on=True).refused
        target = find(s.pool, key)
        assert target is not None
        assert [m.name for m in others_missing(target)] == [
            {"sda": "spare-1", "sdd": "spare-2"}[name]
        ]
    (key,) = keys(s, "sdg")
    assert plan_offline(s, key).refused is None


def test_it_does_not_become_a_part_of_either(s: Situation) -> None:
    for name in ("sdb", "sdf"):
        (key,) = keys(s, name)
        assert "nothing else in spare-" in plan_detach(s, key).refused
        plan = plan_replace(s, Swap(key, "/dev/disk/by-id/new"))
        assert "available again" not in " ".join(plan.consequences)
        assert any("no device may fail" in text for text in plan.consequences)


def test_no_command_names_it(s: Situation) -> None:
    both = keys(s, "sdz")
    assert len(both) == 2
    for key in both:
        replaced = plan_replace(s, Swap(key, "/dev/disk/by-id/new"))
        for plan in (plan_offline(s, key), plan_online(s, key), plan_detach(s, key), replaced):
            assert "replace the disks it stands in for" in plan.refused
    noisy = decoded(text=SHARED.read_text().replace("ONLINE       0     0     0", "ONLINE 1 0 0"))
    assert "sdz" not in [target.name for target in suspects(noisy.pool)]


def test_each_of_its_places_goes_with_it_when_it_is_pulled() -> None:
    v = MachineView(situation("json"))
    key = device_named(v, "sdz")
    choice = choose(v, key)
    assert [effect.target.top.name for effect in choice.effects] == ["raidz1-0", "raidz1-1"]
    assert [effect.left for effect in choice.effects] == [0, 0]
    assert "replace the disks it stands in for" in choice.refused


def test_disks_to_swap_are_ordered_without_it(s: Situation) -> None:
    (sdb,), (sdg,) = keys(s, "sdb"), keys(s, "sdg")
    v = MachineView(s)
    targets = urgent_first(v, [target for key in (sdg, sdb) if (target := v.target(key))])
    assert [target.key for target in targets] == [sdb, sdg]
    for order in (in_turn(v, targets, {}), together(v, targets, {})):
        assert "no device may fail in the weakest vdev" in " ".join(order.text)
    choice = choose(MachineView(s), sdb)
    assert not any("stands in for it" in way.why for way in choice.ways)


def test_nobody_waits_for_it_to_be_complete_where_it_was_pulled_by_mistake() -> None:
    v = MachineView(situation("json"))
    choice = choose(v, keys(v.situation, "sdb")[0])
    c = started(choice, choice.ways[0], SwapStore(None, memory={}), 1.0).checklist
    disk = next(disk for disk in c.around if disk.name == "sdz")
    c = replace(c, wrong=(disk,), meant=(disk,), noticed=(disk.key,))
    assert is_back(c, disk, v, 9e9)
    assert not any("sdz" in text for text in undone(c, v))


def test_a_spare_in_one_place_is_one_device() -> None:
    text = SHARED.read_text().replace("      sdz      ONLINE", "      sdx      ONLINE", 1)
    s = at(decoded(text=text.replace("  sdy          AVAIL", "  sdx          INUSE")).pool)
    assert [leaf.vdev.name for leaf in leaves_of(s.pool)].count("sdz") == 1
    assert device_named(MachineView(s), "sdz") == keys(s, "sdz")[0]
    (sdb,) = keys(s, "sdb")
    assert plan_detach(s, sdb).refused is None


def test_a_spare_of_two_pools_stands_in_where_it_does() -> None:
    one = SHARED.read_text().replace("      sdz      ONLINE", "      sdx      ONLINE", 1)
    used = at(decoded(text=one).pool)
    free = one.replace("pool: tank", "pool: other").replace("\ttank", "\tother")
    other = at(decoded(text=free.replace("sdz      ONLINE", "sdw      ONLINE")).pool)
    v = MachineView(used, (other,))
    key = device_named(v, "sdz")
    target = find(used.pool, key)
    assert target is not None
    old = disk_of_leaf(used, target)
    assert [(effect.pool, effect.target.top.name) for effect in effects(v, old)] == [
        ("tank", "raidz1-1")
    ]


def test_a_clear_wants_the_places_back_not_every_device_in_them(s: Situation) -> None:
    gone = {key: "" for name in ("sdb", "sdf", "sdz") for key in keys(s, name)}
    facts = replace(FACTS, labels=gone)
    assert plan_clear(replace(s, suspended=True, facts=facts)).refused is None
    facts = replace(FACTS, labels={**gone, keys(s, "sda")[0]: ""})
    assert "sda is not back" in plan_clear(replace(s, suspended=True, facts=facts)).refused
