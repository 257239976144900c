from __future__ import annotations

import asyncio
import json
import stat
import threading
from pathlib import Path

import pytest

from tests.records import replace
from tests.table import rows
from tests.unit.actions.pools import (
    CHECKPOINT,
    MODERN,
    NASTY,
    at,
    disk,
    group,
    new_disk,
    pool,
    running,
    top,
)
from zconsole.actions import executor
from zconsole.actions.clear import plan_clear
from zconsole.actions.executor import ExecutionEvent, Executor
from zconsole.actions.follow import replaced
from zconsole.actions.locate import plan_locate
from zconsole.actions.offline import plan_detach, plan_offline, plan_online
from zconsole.actions.plan import LightOrder, Situation, Step
from zconsole.actions.replace import plan_batch, plan_replace
from zconsole.actions.scrub import plan_pause, plan_scrub
from zconsole.actions.target import Swap
from zconsole.errors import NotFoundError, UnavailableError
from zconsole.pool.model import ErrorCounters
from zconsole.system.audit import NAME, Audit, append_line
from zconsole.system.host import steady_clock
from zconsole.system.process import Completed, DeadlineError

NO_DISKS = replace(MODERN, devices=())


class Canned:
    """Answers every command the same way and remembers it."""

    def __init__(self, status: int = 0, stderr: str = "", stdout: str = "", raises=None) -> None:
        self.ran: list[tuple[str, ...]] = []
        self.answer = (status, stdout, stderr)
        self.raises = raises

    async def run(self, argv, _deadline):
        self.ran.append(tuple(argv))
        if self.raises is not None:
            raise self.raises
        return Completed(tuple(argv), *self.answer)


class Looks:
    """Returns situations one after another, then always the last one; each as if seen just now."""

    def __init__(self, *situations: Situation) -> None:
        self.left = list(situations)

    async def __call__(self, _name: str, _since: float) -> Situation:
        now = self.left.pop(0) if len(self.left) > 1 else self.left[0]
        return replace(now, looked=steady_clock())

    async def guid(self, _name: str) -> str | None:
        return self.left[0].pool.guid


def audit_in(directory: Path, **places) -> Audit:
    """Return a log of user alice that writes only to a file, unless other places are given."""
    places = {"file": lambda line: append_line(directory / NAME, line), **places}
    return Audit({"uid": 0, "user": "root", "sudo_user": "alice"}, places, patience=2.0)


@pytest.fixture
def audit(tmp_path):
    return audit_in(tmp_path)


@pytest.fixture
def records(tmp_path, audit):
    """Return a function that reads the log after all records are written."""

    def read() -> list[dict]:
        assert audit.settle()
        return [json.loads(line) for line in (tmp_path / NAME).read_text().splitlines()]

    return read


def mirror(*scans, **fields) -> Situation:
    return at(pool(top("mirror", 0, 2), scans=scans, **fields), NO_DISKS)


async def go(plan, runner, looks, audit, typed=None, denied="", **kw):
    executor = Executor(runner, looks, audit, denied, clock=lambda: 5.0, **kw)
    return [event async for event in executor.run(plan, typed)]


def kinds(events) -> list[str]:
    return [event.kind for event in events]


async def test_a_plan_runs_its_commands_and_leaves_its_lines(audit, records, tmp_path):
    s, runner = mirror(), Canned()
    events = await go(plan_scrub(s), runner, Looks(s), audit)
    assert kinds(events) == ["begun", "done"]
    assert runner.ran == [("zpool", "scrub", "tank")]
    begun, ended, whole = records()
    assert [line["event"] for line in (begun, ended, whole)] == ["begun", "ended", "action"]
    assert begun["argv"] == ended["argv"] == ["zpool", "scrub", "tank"]
    assert (ended["status"], ended["result"], ended["guid"]) == (0, "done", "1")
    assert (whole["who"]["sudo_user"], whole["t"], whole["result"]) == ("alice", 5.0, "done")
    assert whole["steps"][0]["argv"] == ["zpool", "scrub", "tank"]
    assert stat.S_IMODE((tmp_path / NAME).stat().st_mode) == 0o600


async def test_a_command_left_running_is_in_the_log(audit, records):
    begun = asyncio.Event()

    class Endless(Canned):
        async def run(self, argv, _deadline):
            self.ran.append(tuple(argv))
            begun.set()
            await asyncio.Event().wait()

    s = mirror()
    running = asyncio.create_task(go(plan_scrub(s), Endless(), Looks(s), audit))
    await begun.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    first, ended, whole = records()
    assert first["event"] == "begun"
    assert ended["result"] == whole["result"] == "left running: the console was quit"
    assert whole["steps"] == [{"argv": ["zpool", "scrub", "tank"]}]


@rows(
    ("fresh", "text"),
    [
        (mirror(activities=(CHECKPOINT,)), "checkpoint"),
        (mirror(running("resilver")), "has changed"),
        (at(pool(top("mirror", 0, 2, disk("other", 7777))), NO_DISKS), "no longer"),
        (
            at(pool(top("mirror", 0, 2, group("spare", disk("d00", 1000), disk("sp", 9))))),
            "in spare-0 now",
        ),
        (replace(mirror(), suspended=True), "suspended"),
    ],
)
async def test_what_changed_meanwhile_stops_it_before_the_first_command(fresh, text, audit):
    runner = Canned()
    plan = plan_replace(mirror(), Swap("1000", "/dev/new"))
    events = await go(plan, runner, Looks(fresh), audit)
    assert kinds(events) == ["refused"]
    assert text in events[0].text
    assert runner.ran == []


async def test_a_refusal_is_explained_and_not_tried_again(audit, records):
    raw = "cannot replace 1000 with /dev/new: device is too small\n"
    runner = Canned(255, raw)
    s = mirror()
    events = await go(plan_replace(s, Swap("1000", "/dev/new")), runner, Looks(s), audit)
    assert kinds(events) == ["begun", "output", "failed"]
    assert events[-1].text == raw.strip()
    assert "smaller" in (events[-1].meaning or "")
    assert len(runner.ran) == 1
    assert records()[-1]["steps"][0]["stderr"] == raw


async def test_success_with_a_warning_on_stdout_is_told(audit):
    offline = at(pool(top("mirror", 0, 2, disk("d00", 1000, "OFFLINE"))), NO_DISKS)
    text = "warning: device '1000' onlined, but remains in faulted state\n"
    events = await go(plan_online(offline, "1000"), Canned(0, "", text), Looks(offline), audit)
    assert kinds(events) == ["begun", "output", "warning", "done"]
    assert "check cable and bay" in (events[2].meaning or "")
    text += "use 'zpool clear' to restore a faulted device\n"
    events = await go(plan_online(offline, "1000"), Canned(0, "", text), Looks(offline), audit)
    assert "clear its errors" in (events[3].meaning or "")


@pytest.mark.parametrize("error", [DeadlineError("no answer"), FileNotFoundError(2, "zpool")])
async def test_no_answer_ends_it(error, audit, records):
    s = mirror()
    events = await go(plan_scrub(s), Canned(raises=error), Looks(s), audit)
    assert events[-1].kind == "failed"
    assert [line.get("result") for line in records()] == [None, "failed", "failed"]


@rows(
    ("plan", "given", "why"),
    [
        (plan_detach(mirror(), "1000"), {}, 'type "d00" to confirm'),
        (plan_detach(mirror(), "1000"), {"typed": "d01"}, 'type "d00" to confirm'),
        (plan_detach(mirror(), "1000"), {"typed": "d00"}, None),
        (plan_scrub(mirror()), {"denied": "not root"}, "not root"),
        (plan_pause(mirror()), {}, "there is no scrub to pause"),
    ],
)
async def test_nothing_runs_that_is_not_confirmed_denied_or_refused(plan, given, why, audit):
    runner = Canned()
    events = await go(plan, runner, Looks(mirror()), audit, **given)
    assert [e.text for e in events if e.kind == "refused"] == [*filter(None, [why])]
    assert bool(runner.ran) == (why is None)


async def test_clear_writes_the_evidence_of_the_fresh_sample_first(audit, records):
    hurt = at(
        pool(
            top("mirror", 0, 2, disk("d00", 1000, errors=ErrorCounters(1, 2, 3, 4))),
            errors=("/tank/a\nb",),
            error_count=1,
        ),
        NO_DISKS,
    )
    await go(plan_clear(mirror()), Canned(), Looks(hurt), audit)
    evidence, begun, _, action = records()
    assert begun["event"] == "begun"
    assert evidence["event"] == "evidence"
    assert evidence["errors"] == ["/tank/a\nb"]
    assert {"read": 1, "write": 2, "cksum": 3, "slow": 4}.items() <= next(
        v for v in evidence["vdevs"] if v["guid"] == "1000"
    ).items()
    assert action["event"] == "action"


BATCH = plan_batch(mirror(), (Swap("1000", "/dev/a"), Swap("1001", "/dev/b")))


async def test_a_batch_stops_at_the_first_failure(audit):
    runner = Canned(255, "cannot replace 1000 with /dev/a: /dev/a is busy\n")
    events = await go(BATCH, runner, Looks(mirror()), audit)
    assert len(runner.ran) == 1
    assert events[-1].kind == "failed"


async def test_a_batch_looks_again_before_each_step_and_skips_what_is_not_needed(audit):
    runner, started = Canned(), mirror(running("resilver", 0.1))
    events = await go(BATCH, runner, Looks(mirror(), started, started), audit)
    assert [argv[1] for argv in runner.ran] == ["replace", "replace"]
    assert kinds(events) == ["begun", "begun", "skipped", "done"]


@rows("name", NASTY)
async def test_names_go_through_as_they_are_and_never_as_options(name, audit):
    runner = Canned()
    bare = replace(disk(name, 0), guid=None, path=None)
    s = at(replace(pool(top("mirror", 0, 2, bare)), name=name), NO_DISKS)
    key = "tank/mirror-0/" + name
    plan = plan_offline(s, key)
    await go(plan, runner, Looks(s), audit)
    (argv,) = runner.ran
    assert argv[-2:] == (name, name)
    options = tuple(word for word in argv[2:-2] if word != "--")
    assert options == ()
    if name.startswith("-"):
        assert argv[2] == "--"


class Switched:
    """Lights that only record orders."""

    def __init__(self, *said: str | Exception) -> None:
        self.orders: list[LightOrder] = []
        self._said = list(said)

    def switch(self, order: LightOrder) -> str:
        self.orders.append(order)
        said = self._said.pop(0)
        if isinstance(said, Exception):
            raise said
        return said


def with_led() -> Situation:
    led = new_disk(
        path="/dev/disk/by-id/d00", locate="/sys/x/locate", aliases=("/dev/disk/by-id/d00-part1",)
    )
    return at(pool(top("mirror", 0, 2)), replace(MODERN, devices=(led,)))


async def lit(audit, lights) -> list[ExecutionEvent]:
    s, runner = with_led(), Canned()
    events = await go(plan_locate(s, "1000", on=True), runner, Looks(s), audit, lights=lights)
    assert runner.ran == []
    return events


async def test_a_light_is_switched_without_a_command(audit):
    lights = Switched("the light of bay 1 is on")
    events = await lit(audit, lights)
    assert kinds(events) == ["begun", "output", "done"]
    assert events[1].text == "the light of bay 1 is on"
    (order,) = lights.orders
    assert (order.on, order.device) == (True, with_led().facts.devices[0])


async def test_a_light_that_is_refused_fails_in_its_words(audit, records):
    events = await lit(audit, Switched(NotFoundError("no light there")))
    assert (events[-1].kind, events[-1].text) == ("failed", "no light there")
    assert [line["event"] for line in records()] == ["begun", "ended", "action"]


async def test_a_light_that_gives_no_answer_is_waited_for_only_so_long(audit, records, monkeypatch):
    monkeypatch.setattr(executor, "LIGHT", 0.05)

    over = threading.Event()

    class Stuck(Switched):
        def switch(self, order: LightOrder) -> str:
            over.wait(60)
            return ""

    events = await lit(audit, Stuck())
    over.set()
    assert (events[-1].kind, events[-1].text) == ("failed", "no answer in 0.05 s")
    assert [line["event"] for line in records()] == ["begun", "ended", "action"]


def test_what_became_of_an_action_is_a_line_in_the_log(audit, records):
    before = mirror()
    plan = plan_scrub(before)
    assert plan.follow(mirror(running("scrub"))) is None
    ended = running("scrub", state="finished", end=before.t + 50, errors=0)
    outcome = plan.follow(mirror(ended))
    assert outcome.ok
    Executor(Canned(), Looks(), audit, clock=lambda: 9.0).ended(plan, outcome)
    (line,) = records()
    assert (line["event"], line["kind"], line["ok"]) == ("ended", "action", True)


def test_the_command_to_run_by_hand_is_quoted():
    step = Step(("zpool", "scrub", "a b", "$(x)"), "why")
    assert step.command == "zpool scrub 'a b' '$(x)'"


def test_a_spare_stands_in_once_it_was_filled():
    """Only after its first bytes does zpool mark it as resilvering."""
    pair = group("spare", disk("d00", 1000, "FAULTED"), disk("s", 1900))

    def spared(*scans) -> Situation:
        return at(pool(top("mirror", 0, 2, pair), scans=scans), NO_DISKS)

    follow = replaced(mirror(), (Swap("1000", "s"),))
    assert follow(spared()) is None
    assert follow(spared(running("rebuild", start=1001.0))) is None
    assert follow(spared(running("resilver", state="finished", start=10.0, end=20.0))) is None
    done = follow(spared(running("rebuild", state="finished", start=1001.0, end=1100.0)))
    assert done.ok
    assert "in use for" in done.text


async def test_a_pool_that_vanishes_between_steps_ends_it_with_a_record(audit, records):
    class Vanishing(Looks):
        async def __call__(self, _name: str, _since: float) -> Situation:
            if not self.left:
                raise UnavailableError("tank is no longer there")
            return replace(self.left.pop(), looked=steady_clock())

        async def guid(self, _name: str) -> str | None:
            return "1"

    events = await go(BATCH, Canned(), Vanishing(mirror()), audit)
    assert kinds(events) == ["begun", "failed"]
    whole = records()[-1]
    assert len(whole["steps"]) == 1
    assert "no longer" in whole["result"]
