"""An action runs on a sample taken after the confirmation, and only on the pool that was shown."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import ClassVar

from tests.records import replace
from tests.table import rows
from tests.unit.actions.pools import (
    FACTS,
    at,
    disk,
    group,
    mirror,
    new_disk,
    pool,
    running,
    top,
)
from tests.unit.actions.test_executor import NO_DISKS, Canned, Looks, kinds
from zconsole.actions.add import Layout, plan_add
from zconsole.actions.clear import plan_clear
from zconsole.actions.executor import Executor
from zconsole.actions.growth import plan_attach, plan_autoexpand
from zconsole.actions.locate import plan_locate
from zconsole.actions.offline import plan_detach, plan_offline, plan_online
from zconsole.actions.plan import Situation
from zconsole.actions.remove import plan_remove
from zconsole.actions.replace import plan_batch, plan_replace
from zconsole.actions.scrub import plan_resilver, plan_scrub
from zconsole.actions.target import Swap
from zconsole.actions.trim import plan_work
from zconsole.errors import ZconsoleError
from zconsole.pool.model import ErrorCounters
from zconsole.system.audit import Audit, MemoryLog

NOW = 100.0
"""Monotonic time of the operator's confirmation, seconds."""

HURT = mirror(
    running("resilver", state="finished", errors=1),
    changes=(disk("d00", 1000, errors=ErrorCounters(1, 0, 0)),),
    facts=NO_DISKS,
    spares=(disk("sp", 1900, "AVAIL", vclass="spare"),),
)
AWAY = mirror(changes=(disk("d00", 1000, "OFFLINE"),), facts=NO_DISKS)
PLANS = {
    "detach": lambda: plan_detach(HURT, "1000"),
    "clear": lambda: plan_clear(HURT),
    "clear one": lambda: plan_clear(HURT, "1000"),
    "set": lambda: plan_autoexpand(HURT, True),
    "scrub": lambda: plan_scrub(HURT),
    "resilver": lambda: plan_resilver(HURT),
    "offline": lambda: plan_offline(HURT, "1000"),
    "replace": lambda: plan_replace(HURT, Swap("1000", "/dev/new")),
    "batch": lambda: plan_batch(HURT, (Swap("1000", "/dev/a"), Swap("1001", "/dev/b"))),
    "attach": lambda: plan_attach(HURT, "1000", "/dev/new"),
    "add": lambda: plan_add(HURT, Layout("normal", "mirror"), ("/dev/a", "/dev/b")),
    "add a spare": lambda: plan_add(HURT, Layout("spare"), ("/dev/new",)),
    "remove": lambda: plan_remove(HURT, "spare:1900"),
    "trim": lambda: plan_work("trim", HURT, "1000"),
    "initialize": lambda: plan_work("initialize", HURT, "1000"),
}


class Seen(Looks):
    """Looks whose start the test sets; ``guid`` is what zpool answers last."""

    def __init__(self, *situations: Situation, looked: float = NOW + 1, guid="1") -> None:
        super().__init__(*situations)
        self.looked = looked
        self.answer = guid
        self.asked = 0

    async def __call__(self, name: str, since: float) -> Situation:
        return replace(await super().__call__(name, since), looked=self.looked)

    async def guid(self, _name: str) -> str | None:
        self.asked += 1
        return self.answer


class Broken(MemoryLog):
    """A log for which neither file nor system log works."""

    def write(self, _t, _event, **_fields):
        raise ZconsoleError("audit log not writable")


async def go(plan, looks, log=None):
    runner = Canned()
    executor = Executor(runner, looks, log or MemoryLog(), clock=lambda: 5.0, steady=lambda: NOW)
    events = [event async for event in executor.run(plan, plan.needs_typed)]
    return events, runner.ran


def another(s: Situation) -> Situation:
    """Return another pool with the same names, including the names and GUIDs of its devices."""
    return replace(s, pool=replace(s.pool, guid="2"))


@rows("name", PLANS)
async def test_it_runs_on_what_was_seen_after_the_question(name):
    plan = PLANS[name]()
    assert plan.refused is None
    events, ran = await go(plan, Seen(HURT))
    assert events[-1].kind == "done"
    assert ran


SILENT = replace(HURT, problem="no answer for 600 s", t=HURT.t - 600)


@rows("name", PLANS)
@rows(
    ("seen", "log", "why"),
    [
        (lambda: Seen(HURT, looked=None), MemoryLog, "after you confirmed"),
        (lambda: Seen(HURT, looked=NOW - 600), MemoryLog, "after you confirmed"),
        (lambda: Seen(HURT, looked=NOW), MemoryLog, "after you confirmed"),
        (lambda: Seen(SILENT), MemoryLog, "no answer for 600 s"),
        (lambda: Seen(another(HURT)), MemoryLog, "is named tank now: GUID 2, not 1"),
        (lambda: Seen(HURT), Broken, "audit log not writable"),
    ],
)
async def test_nothing_runs_without_a_fresh_look_at_this_pool_and_a_line_in_a_log(
    name, seen, log, why
):
    events, ran = await go(PLANS[name](), seen(), log())
    assert kinds(events) == ["refused"]
    assert why in events[0].text
    assert ran == []


@rows("name", PLANS)
async def test_the_guid_is_a_precondition_that_is_shown(name):
    assert "tank is the same pool: GUID 1" in PLANS[name]().checks


async def test_a_pool_imported_after_the_look_is_noticed_before_the_command():
    log = MemoryLog()
    events, ran = await go(plan_scrub(HURT), Seen(HURT, guid="2"), log)
    assert kinds(events) == ["refused"]
    assert ran == []
    begun, ended, _ = log.records
    assert (begun["event"], ended["event"], ended["ok"]) == ("begun", "ended", False)
    assert ended["result"].startswith("not run: another pool")


async def test_a_pool_whose_guid_nobody_tells_is_left_alone():
    events, ran = await go(plan_scrub(HURT), Seen(HURT, guid=None))
    assert events[-1].kind == "refused"
    assert ran == []


async def test_what_zpool_get_says_counts_where_the_sample_has_no_guid():
    def told(guid: str) -> Situation:
        facts = replace(NO_DISKS, properties={"guid": guid})
        return replace(HURT, pool=replace(HURT.pool, guid=None), facts=facts)

    plan = plan_scrub(told("1"))
    assert plan.guid == "1"
    assert (await go(plan, Seen(told("1"))))[1]
    assert (await go(plan, Seen(told("7"))))[1] == []


async def test_the_plan_says_where_only_the_name_can_be_compared():
    plan = plan_scrub(replace(HURT, pool=replace(HURT.pool, guid=None)))
    assert "tank: GUID unknown, compared by name only" in plan.checks


@rows(
    "later",
    [another(HURT), replace(HURT, problem="no answer"), replace(HURT, suspended=True)],
)
async def test_each_command_of_a_batch_looks_for_itself(later):
    plan = plan_batch(HURT, (Swap("1000", "/dev/a"), Swap("1001", "/dev/b")))
    events, ran = await go(plan, Seen(HURT, later))
    assert kinds(events) == ["begun", "refused"]
    assert len(ran) == 1


def test_following_ends_where_another_pool_has_the_name():
    plan = plan_scrub(HURT)
    assert plan.follow is not None
    scanned = mirror(running("scrub", state="finished", end=950.0, errors=0), facts=NO_DISKS)
    outcome = plan.follow(another(scanned))
    assert not outcome.ok
    assert "another pool" in outcome.text


SUSPENDED = replace(HURT, suspended=True, problem="the pool is suspended")


async def test_a_suspended_pool_is_cleared_by_what_was_known_last():
    looks = Seen(SUSPENDED, guid=None)
    events, ran = await go(plan_clear(SUSPENDED), looks)
    assert events[-1].kind == "done"
    assert ran == [("zpool", "clear", "tank")]
    assert looks.asked == 0  # zpool would hang


async def test_a_device_is_put_online_though_the_pool_gives_no_sample():
    silent = replace(AWAY, problem="no answer for 20 s")
    events, ran = await go(plan_online(AWAY, "1000"), Seen(silent, guid=None))
    assert events[-1].kind == "done"
    assert len(ran) == 1
    assert (await go(plan_online(AWAY, "1000"), Seen(silent, guid="2")))[1] == []


URGENT = {
    "clear": (lambda: plan_clear(SUSPENDED), SUSPENDED),
    "online": (lambda: plan_online(AWAY, "1000"), AWAY),
}


@rows("name", URGENT)
async def test_what_brings_a_pool_back_never_waits_for_a_log(name):
    """The state directory may be on the pool that hangs, and the system log as well."""
    make, fresh = URGENT[name]
    back = threading.Event()
    hung = dict.fromkeys(("file", "syslog"), lambda _: back.wait())
    try:
        async with asyncio.timeout(30.0):
            events, ran = await go(make(), Seen(fresh), Audit({"uid": 0}, hung, 60.0))
    finally:
        back.set()
    assert events[-1].kind == "done"
    assert ran


@rows("name", URGENT)
async def test_what_brings_a_pool_back_is_never_refused_for_a_log(name):
    make, fresh = URGENT[name]
    log = Broken()
    events, ran = await go(make(), Seen(fresh), log)
    assert events[-1].kind == "done"
    assert ran
    assert [r["event"] for r in log.records if r["event"] != "evidence"] == [
        "begun",
        "ended",
        "action",
    ]


async def test_begun_is_written_before_the_command_starts():
    """A console that is killed meanwhile leaves a record of what it did."""
    log, known = MemoryLog(), []

    class Killed(Canned):
        async def run(self, argv, deadline):
            known.extend(json.loads(json.dumps(log.records)))
            return await super().run(argv, deadline)

    executor = Executor(Killed(), Seen(HURT), log, clock=lambda: 5.0, steady=lambda: NOW)
    async for _ in executor.run(plan_scrub(HURT)):
        pass
    (begun,) = known
    assert (begun["event"], begun["argv"]) == ("begun", ["zpool", "scrub", "tank"])


@rows("plan", [plan_offline, plan_detach])
async def test_nothing_leaves_a_vdev_that_lost_another_device_meanwhile(plan):
    """The operator agreed to a redundancy that no longer exists."""
    wide, failed = top("mirror", 0, 3), disk("d02", 1002, "FAULTED")
    hurt = replace(wide, children=(*wide.children[:2], failed))
    events, ran = await go(plan(at(pool(wide), NO_DISKS), "1000"), Seen(at(pool(hurt), NO_DISKS)))
    assert kinds(events) == ["refused"]
    assert events[0].text == "mirror-0 lacks 1 more device than when planned; plan again"
    assert ran == []
    assert (await go(plan(at(pool(hurt), NO_DISKS), "1000"), Seen(at(pool(wide), NO_DISKS))))[1]


async def test_a_light_goes_on_in_the_bay_that_was_shown():
    def lit(bay: str, **fields) -> Situation:
        path = "/dev/disk/by-id/d00"
        led = new_disk(path=path, aliases=(f"{path}-part1",), locate=f"/sys/{bay}/locate")
        facts = replace(FACTS, devices=(led,))
        return replace(at(pool(top("mirror", 0, 2)), facts), **fields)

    class Lights:
        ordered: ClassVar[list[str | None]] = []

        def switch(self, order) -> str:
            self.ordered.append(order.device.locate)
            return ""

    async def run(fresh: Situation) -> str:
        executor = Executor(Canned(), Seen(fresh), MemoryLog(), steady=lambda: NOW, lights=Lights())
        events = [event async for event in executor.run(plan)]
        return events[-1].kind

    plan = plan_locate(lit("a"), "1000", on=True)
    assert await run(lit("b")) == "refused"
    assert await run(another(lit("a"))) == "refused"
    assert Lights.ordered == []
    assert await run(lit("a", suspended=True, problem="the pool is suspended")) == "done"
    assert Lights.ordered == ["/sys/a/locate"]


def test_a_group_is_known_by_the_guid_of_its_device():
    pair = group("spare", disk("d00", 1000, "FAULTED"), disk("sp", 1900))
    plan = plan_detach(at(pool(top("mirror", 0, 2, pair)), NO_DISKS), "1000")
    assert plan.steps[0].argv == ("zpool", "detach", "tank", "1000")
