"""A device given by its path must still be the one that was confirmed."""

from __future__ import annotations

from tests.records import replace
from tests.table import rows
from tests.unit.actions.pools import MODERN, NEW, TIB, at, disk, mirror, new_disk, pool, top
from tests.unit.actions.test_executor import Canned, Looks
from tests.unit.hardware.test_machine import Tree
from zconsole.actions.executor import Executor
from zconsole.actions.growth import plan_attach
from zconsole.actions.plan import ActionPlan, Situation
from zconsole.actions.replace import plan_batch, plan_replace
from zconsole.actions.target import Swap
from zconsole.hardware.machine import disks
from zconsole.system.audit import MemoryLog

KNOWN = new_disk(serial="S1", wwn="0x5000c500a1", model="LAB 2T")
PLANS = {
    "replace": lambda s: plan_replace(s, Swap("1000", NEW)),
    "sequential": lambda s: plan_replace(s, Swap("1000", NEW), sequential=True),
    "batch": lambda s: plan_batch(s, (Swap("1000", NEW),)),
    "attach": lambda s: plan_attach(s, "1000", NEW),
}


def having(*devices) -> Situation:
    return mirror(facts=replace(MODERN, devices=devices))


async def refusal(plan: ActionPlan, *fresh: Situation) -> str:
    """Return why the last command was not run: of one, or of a batch whose others were."""
    assert plan.refused is None
    runner = Canned()
    executor = Executor(runner, Looks(*fresh), MemoryLog())
    events = [event async for event in executor.run(plan)]
    assert len(runner.ran) == len(fresh) - 1
    assert events[-1].kind == "refused"
    return events[-1].text


@rows("name", PLANS)
@rows(
    ("changed", "said"),
    [
        ({"serial": "S2"}, "serial S2, not S1"),
        ({"serial": ""}, "serial unknown, not S1"),
        ({"wwn": "0x5000c500b2"}, "WWN 0x5000c500b2, not 0x5000c500a1"),
        ({"model": "LAB 3T"}, "model LAB 3T, not LAB 2T"),
        ({"size": 2 * TIB + 512}, f"size 2.00T ({2 * TIB + 512} bytes), not"),
    ],
)
async def test_another_device_at_the_path_is_refused_with_what_changed(name, changed, said):
    text = await refusal(PLANS[name](having(KNOWN)), having(replace(KNOWN, **changed)))
    assert "a different device now" in text
    assert said in text


@rows("name", PLANS)
async def test_a_device_that_is_gone_is_refused(name):
    other = replace(KNOWN, path="/dev/other", node="/dev/sdy", aliases=("/dev/sdy",))
    text = await refusal(PLANS[name](having(KNOWN)), having(other))
    assert "no longer there" in text or "not a device" in text


@rows("name", PLANS)
def test_the_plan_shows_what_the_device_is_known_by(name):
    (text,) = (t for t in PLANS[name](having(KNOWN)).checks if "same device" in t)
    assert f"serial S1, WWN 0x5000c500a1, model LAB 2T, size 2T ({2 * TIB} bytes)" in text
    assert "isn't noticed" not in text


@rows("name", PLANS)
def test_the_plan_says_where_a_swap_cannot_be_noticed(name):
    nameless = replace(KNOWN, serial="", wwn="")
    assert any("another disk of this size" in t for t in PLANS[name](having(nameless)).checks)
    blank = replace(nameless, model="", size=None)
    assert any("a swapped disk isn't noticed" in t for t in PLANS[name](having(blank)).checks)


async def test_the_second_device_of_a_batch_is_compared_before_it_and_amid_it():
    second = replace(KNOWN, path="/dev/b", node="/dev/sdb", aliases=("/dev/sdb",), serial="S9")
    both, changed = having(KNOWN, second), having(KNOWN, replace(second, serial="S8"))
    plan = plan_batch(both, (Swap("1000", NEW), Swap("1001", "/dev/b")))
    for seen in ((changed,), (both, changed)):
        text = await refusal(plan, *seen)
        assert "/dev/b is a different device now: serial S8, not S9" in text


async def test_a_spare_is_known_by_its_guid():
    def spared(guid: int) -> Situation:
        spare = replace(disk("sp", guid, "AVAIL"), vclass="spare")
        return at(pool(top("mirror", 0, 2), spares=(spare,)), replace(MODERN, devices=()))

    plan = plan_replace(spared(77), Swap("1000", "/dev/disk/by-id/sp"))
    assert "/dev/disk/by-id/sp is the same device: spare GUID 77" in plan.checks
    assert "spare GUID 78, not GUID 77" in await refusal(plan, spared(78))


def test_the_kernels_own_words_come_before_udevs(tmp_path):
    tree = Tree(tmp_path)
    tree.disk("sda", udev="E:ID_WWN=0x5000c500udev\n")
    tree.disk("sdb", udev="E:ID_WWN=0x5000c500udev\n")
    tree.disk("vdc")
    block = tmp_path / "sys/block"
    (block / "sdb/device/wwid").write_text("naa.5000c500kernel\n")
    (block / "sdb/device/serial").write_text("S-kernel  \n")
    (block / "vdc/serial").write_text("LABDISK2\n")
    a, b, c = disks(tree.root)
    assert (a.serial, a.wwn) == ("S-sda", "0x5000c500udev")
    assert (b.serial, b.wwn) == ("S-kernel", "naa.5000c500kernel")
    assert (c.serial, c.wwn) == ("LABDISK2", "")
