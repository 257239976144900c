"""The autopilot as a duty of the keeper: no process, with rounds and a clock set by the test."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import subprocess
import threading
from collections.abc import Callable, Iterator
from dataclasses import asdict
from functools import partial
from typing import Any

import pytest

from tests.table import rows
from tests.unit.tunables.conftest import Kernel
from tests.unit.tunables.pilots import FAST, pilot
from tests.unit.tunables.steered_kernel import ScrubSource, leaves
from zconsole.actions.backend import Autopilots
from zconsole.errors import UnavailableError, ZconsoleError
from zconsole.system import record_file
from zconsole.system.host import Clocks, process_mark
from zconsole.system.record_file import LockedStore
from zconsole.tunables import autopilot
from zconsole.tunables.autopilot import Autopilot, AutopilotOrder, PilotClaim, Status
from zconsole.tunables.control import Control
from zconsole.tunables.hold_latency import FASTEST, GENTLEST, INTERVAL, STEP
from zconsole.tunables.parameters import Parameters
from zconsole.tunables.pilot import HoldOrder, Pilot, Targets, scanning
from zconsole.tunables.store import PILOT
from zconsole.zfs.sources.live import LiveSource

NAME = "zfs_vdev_scrub_max_active"
TIME = "zfs_resilver_min_time_ms"


class Rounds(ScrubSource):
    """A source with rounds set by the test: one word each, the last one repeated."""

    def __init__(self, *words: str) -> None:
        super().__init__(FAST)
        self.words = list(words)
        self.taken = 0

    async def sample(self):
        self.taken += 1
        word = self.words.pop(0) if len(self.words) > 1 else self.words[0]
        if word == "refused":
            raise UnavailableError("libzfs: no answer")
        raws = await super().sample()
        if word == "exported":
            return ()
        if word == "failed":
            return tuple(
                {"t": r["t"], "clock": r["clock"], "pool": r["pool"], "problem": "no answer"}
                for r in raws
            )
        if word == "blind":
            for raw in raws:
                for leaf in leaves(raw["libzfs"]["vdev_tree"]):
                    leaf["vdev_stats_ex"].clear()
        if word == "paused":
            for raw in raws:
                raw["libzfs"]["vdev_tree"]["scan_stats"][11] = 1_700_000_000
        return raws


class Flight:
    """An autopilot, with the time that passes between its acts."""

    def __init__(self, kernel, source: ScrubSource, watch: str | None = None) -> None:
        kernel.state.chmod(0o700)
        self.kernel, self.now, self.goes_on = kernel, 0.0, True
        self.mark = process_mark(os.getpid()) or ""
        self.place = PilotClaim(kernel.state, self.mark)
        self.place.take(kernel.parameters)
        self.duty = Autopilot(
            pilot(kernel, owner=self.mark),
            source,
            AutopilotOrder(("0.02",), watch=watch),
            kernel.log,
            self.place,
            Clocks(steady=lambda: self.now),
        )

    async def fly(self, rounds: int = 8) -> str:
        """Let up to ``rounds`` intervals pass; returns why it ended, or an empty text."""
        for _ in range(rounds):
            self.now += INTERVAL
            assert self.duty.due(self.now) <= 0.0
            if not await self.duty.act():
                self.goes_on = False
                return str(self.kernel.log.records[-1]["result"])
        return ""

    @property
    def steps(self) -> int:
        """Return how often it set tunables."""
        begun = [r for r in self.kernel.log.records if r["event"] == "begun"]
        return sum(r["action"].startswith("hold-latency") for r in begun)

    @property
    def status(self) -> Status | None:
        return autopilot.status(self.kernel.state)


async def test_it_looks_often_whether_to_end_and_samples_at_its_interval(kernel):
    flight = Flight(kernel, Rounds("scrub"))
    assert flight.duty.due(0.0) == autopilot.CHECK_SECONDS
    assert flight.duty.due(INTERVAL - 0.2) == pytest.approx(0.2)
    await flight.fly(1)
    assert flight.duty.due(flight.now) == autopilot.CHECK_SECONDS


@pytest.mark.parametrize(
    ("words", "rounds", "ends", "steps"),
    [
        ("scrub failed refused failed failed scrub", 8, "", True),
        ("failed", 8, "no sample with latency histograms", False),
        ("scrub exported", 8, "no scan runs any more", False),
        ("paused", 8, "", False),  # nobody waits beside it
        # What applications wait is not known.
        ("scrub blind", 5, "", False),
        ("scrub failed", 5, "", False),
        ("scrub refused", 5, "", False),
    ],
)
async def test_it_speeds_up_what_it_sees_and_ends_when_it_is_blind_for_a_minute(
    kernel, words, rounds, ends, steps
):
    flight = Flight(kernel, Rounds(*words.split()))
    why = await flight.fly(rounds)
    assert why.startswith(ends) if ends else not why
    assert (flight.steps > 0, kernel.read(TIME) > 3000) == (steps, steps)
    assert words != "failed" or flight.now > autopilot.BLIND_SECONDS


async def test_pools_that_answer_are_told_beside_one_that_does_not():
    class Half(ScrubSource):
        async def sample(self):
            (raw,) = await super().sample()
            silent = {"t": raw["t"], "clock": raw["clock"], "pool": "ice", "problem": "no answer"}
            return (silent, raw)

    seen, whole = await autopilot.every_pool(Half())
    assert ([pool.name for pool in scanning(seen)], whole) == (["mirrors"], False)
    assert (await autopilot.every_pool(Rounds("refused"))) == ((), False)


@pytest.fixture
async def flown(kernel) -> Flight:
    """Return an autopilot that has set tunables."""
    flight = Flight(kernel, Rounds("scrub"))
    while kernel.read(TIME) == 3000:
        assert await flight.fly(1) == ""
    return flight


@pytest.mark.parametrize("before", ["", "without its file", "after it failed"])
async def test_told_to_stop_it_restores_and_ends(flown, before):
    if before == "without its file":
        for file in flown.kernel.state.iterdir():
            file.unlink()
    if before == "after it failed":
        flown.duty._over = "its console ended"  # noticed before it may act again
    await flown.duty.undo()
    assert (flown.kernel.read(TIME), flown.kernel.read(NAME)) == (3000, 3)
    assert before or flown.kernel.log.records[-1]["result"] == "told to stop"


@pytest.mark.parametrize("while_sampling", [False, True])
async def test_it_stands_aside_when_somebody_sets_a_tunable(flown, while_sampling):
    if while_sampling:
        flown.now += INTERVAL
        assert flown.duty.due(flown.now) <= 0.0
    flown.kernel.write(NAME, 7)
    assert while_sampling or flown.duty.due(flown.now) == 0.0
    assert not await flown.duty.act()
    assert (flown.kernel.read(NAME), flown.kernel.read(TIME)) == (7, 3000)
    assert flown.kernel.log.records[-1]["result"] == f"somebody else set {NAME}"


@pytest.fixture
def console() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(["sleep", "60"])
    yield process
    process.kill()
    process.wait()


@pytest.mark.slow
async def test_it_ends_with_the_console_that_it_watches(kernel, console):
    flight = Flight(kernel, Rounds("scrub"), process_mark(console.pid))
    await flight.fly()
    assert kernel.read(TIME) != 3000
    console.kill()
    console.wait()
    assert flight.duty.due(flight.now) == 0.0
    assert not await flight.duty.act()
    assert (kernel.read(TIME), kernel.read(NAME)) == (3000, 3)


async def test_another_console_sees_what_it_does_until_it_ends(flown):
    now = flown.status
    assert now is not None
    assert (now.targets, now.level > 0, now.mark) == (("0.02",), True, flown.mark)
    await flown.duty.undo()
    assert flown.status is None


async def begin(kernel, below=False, state=None) -> Autopilot:
    """Return an autopilot that was just ordered and does not steer yet."""
    place = PilotClaim(state or kernel.state, process_mark(os.getpid()) or "")
    place.state.chmod(0o700)
    control = kernel.console(place.mark)
    order = json.loads(json.dumps(asdict(AutopilotOrder(("0.02",), below))))
    return await autopilot.begin(control, kernel.parameters, kernel.log, place, LiveSource, order)


async def test_it_is_the_only_one_of_a_machine_until_it_ends(kernel, tmp_path):
    first = await begin(kernel)
    (tmp_path / "other").mkdir()
    for state in (kernel.state, tmp_path / "other"):
        with pytest.raises(ZconsoleError, match="an autopilot runs already"):
            await begin(kernel, state=state)
    assert (now := autopilot.status(kernel.state)) is not None
    assert (now.level, now.mark) == (0.0, (kernel.state / PILOT).read_text())
    await first.undo()
    await (await begin(kernel)).undo()


async def test_nobody_who_may_only_read_keeps_it_from_beginning(kernel):
    """For example, flock(1) can lock whatever its user can open."""
    readable = [kernel.module, *kernel.module.rglob("*")]
    handles = [os.open(path, os.O_RDONLY) for path in readable if path.stat().st_mode & 0o004]
    for handle in handles:
        fcntl.flock(handle, fcntl.LOCK_SH)
    steered = await begin(kernel)
    assert autopilot.status(kernel.state) is not None
    await steered.undo()
    for handle in handles:
        os.close(handle)


@pytest.mark.parametrize("refused", [False, True])
async def test_what_another_version_says_of_its_own_autopilot_is_left(kernel, monkeypatch, refused):
    first = await begin(kernel)
    place = PilotClaim(kernel.state, "1:1")
    if refused:
        unclaimed = partial(os.open, kernel.root, os.O_RDONLY)
        monkeypatch.setattr(Parameters, "claim", lambda _: unclaimed())
        assert not place.take(kernel.parameters)
    else:
        place.drop()
    assert autopilot.status(kernel.state) is not None
    await first.undo()
    assert autopilot.status(kernel.state) is None


def test_a_claim_that_is_taken_twice_is_dropped_at_once(kernel):
    kernel.state.chmod(0o700)
    place, other = (PilotClaim(kernel.state, mark) for mark in ("1:1", "2:2"))
    for _ in range(2):
        assert place.take(kernel.parameters)
    assert not other.take(kernel.parameters)
    place.drop()
    assert other.take(kernel.parameters)
    other.drop()


async def test_one_that_cannot_begin_leaves_room_for_the_next(kernel):
    (kernel.state / PILOT).mkdir()
    with pytest.raises(ZconsoleError, match=PILOT):
        await begin(kernel)
    (kernel.state / PILOT).rmdir()
    await (await begin(kernel)).undo()


@pytest.mark.parametrize("restoring", [False, True])
async def test_what_it_sets_after_it_was_told_to_stop_goes_back_as_well(
    kernel, monkeypatch, restoring
):
    """Even if it sets that between the restored values and the end of restoring."""
    flight = Flight(kernel, Rounds("scrub"))
    setting, told, control_set = threading.Event(), threading.Event(), Control.set
    restored, ends, restore = threading.Event(), threading.Event(), Pilot.restore

    def slow(*args: Any, **words: Any) -> Any:
        setting.set()
        told.wait()
        return control_set(*args, **words)

    def restore_slowly(*args: Any) -> None:
        restore(*args)
        restored.set()
        ends.wait()

    monkeypatch.setattr(Control, "set", slow)
    monkeypatch.setattr(Pilot, "restore", restore_slowly)
    while not setting.is_set():
        flight.now += INTERVAL
        acting = asyncio.create_task(flight.duty.act())
        await asyncio.wait([acting], timeout=0.1)
    undoing = asyncio.create_task(flight.duty.undo())
    await asyncio.to_thread(restored.wait)
    if restoring:
        told.set()
        await asyncio.wait([acting], timeout=0.1)
    ends.set()
    await undoing
    told.set()
    assert not await acting
    assert (kernel.read(TIME), kernel.read(NAME)) == (3000, 3)
    await (await begin(kernel)).undo()


def refuse_until(monkeypatch, accepts: threading.Event) -> None:
    """Make the kernel refuse every value until the event is set."""
    write = Parameters.write

    def refused(parameters: Parameters, name: str, value: int) -> None:
        if not accepts.is_set():
            raise ZconsoleError(f"{name}={value}: refused: Invalid argument")
        write(parameters, name, value)

    monkeypatch.setattr(Parameters, "write", refused)


@pytest.mark.parametrize("way", ["act", "undo"])
async def test_what_the_kernel_does_not_take_back_is_not_said_to_be_restored(
    flown, way, monkeypatch
):
    accepts = threading.Event()
    refuse_until(monkeypatch, accepts)
    if way == "act":
        flown.duty._over = "its console ended"
    for _ in range(2):
        with pytest.raises(ZconsoleError, match="refused"):
            await getattr(flown.duty, way)()
        assert flown.duty.due(flown.now) == 0.0, "it tries again"
    accepts.set()
    assert not await getattr(flown.duty, way)()
    assert (flown.kernel.read(TIME), flown.kernel.read(NAME)) == (3000, 3)
    ended = [r for r in flown.kernel.log.records if r.get("kind") == "autopilot"]
    assert len(ended) == 1


async def test_while_the_kernel_refuses_its_originals_no_other_one_begins(flown, monkeypatch):
    """It tries again later, and would put back what the other one has set."""
    accepts = threading.Event()
    refuse_until(monkeypatch, accepts)
    with pytest.raises(ZconsoleError, match="refused"):
        await flown.duty.undo()
    with pytest.raises(ZconsoleError, match="an autopilot runs already"):
        await begin(flown.kernel)
    accepts.set()
    assert not await flown.duty.act()
    assert flown.kernel.read(TIME) == 3000
    await (await begin(flown.kernel)).undo()


async def test_where_the_disk_hangs_at_its_end_no_other_one_begins_until_it_has_restored(
    kernel, monkeypatch
):
    flying, hangs = await begin(kernel), threading.Event()
    with monkeypatch.context() as patched:
        patched.setattr(Pilot, "restore", lambda *_: hangs.wait())
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(flying.undo(), 0.05)
        with pytest.raises(ZconsoleError, match="an autopilot runs already"):
            await begin(kernel)
        hangs.set()
        await flying.undo()
    later = await begin(kernel)
    kernel.console(process_mark(os.getpid())).set({TIME: 2000}, 1.0)
    assert not await flying.act()
    assert kernel.read(TIME) == 2000
    await later.undo()
    assert kernel.read(TIME) == 3000


async def test_a_kernel_whose_tunables_cannot_be_read_is_refused(kernel):
    for path in (kernel.module / "parameters").iterdir():
        path.unlink()
    with pytest.raises(UnavailableError, match="no tunable"):
        await begin(kernel)


def autopilots(kernel: Kernel, mark: str, ask: Callable[..., object]) -> Autopilots:
    """Return the autopilots as the console with this mark sees them."""
    status = partial(autopilot.status, kernel.state, LockedStore(kernel.state))
    return Autopilots(kernel.console(mark), mark, ask, lambda: False, status)


async def test_it_is_ordered_as_it_was_confirmed(kernel):
    orders = []
    held = autopilots(kernel, "7:7", lambda **order: orders.append(order))
    for below in (False, True):
        await held.start(HoldOrder(Targets(0.02), below))
    assert orders == [asdict(AutopilotOrder(("0.02",), below, "7:7")) for below in (False, True)]


async def test_one_of_another_version_is_named_to_whoever_wants_it_to_end(flown):
    with pytest.raises(ZconsoleError, match=f"To end it: kill {os.getpid()}"):
        autopilot.stop(flown.kernel.state)
    await flown.duty.undo()
    assert not autopilot.stop(flown.kernel.state)


@rows(
    ("level", "said"),
    [
        (0.0, "scans are tuned as default"),
        (STEP, f"scans are tuned above default (step 1 of {FASTEST / STEP:.0f})"),
        (
            GENTLEST,
            "scans are tuned below default (step {0} of {0})".format(round(-GENTLEST / STEP)),
        ),
    ],
)
def test_what_it_does_is_said_in_steps_of_the_way_there_is(level, said):
    assert str(Status("", 0.0, ("0.02",), level)) == f"target 20ms; {said}"


@rows(
    ("slowest", "reached", "missed"),
    [(True, 0.043, True), (True, 0.02, False), (True, None, False), (False, 0.043, False)],
)
def test_it_misses_its_target_only_where_scans_cannot_go_slower(slowest, reached, missed):
    now = Status("", 0.0, ("0.02",), GENTLEST, slowest=slowest)
    assert now.misses(reached, 0.0) == missed


@pytest.mark.slow
async def test_a_console_does_not_ask_a_disk_again_that_does_not_answer(kernel, monkeypatch):
    asked, begun, back = [], threading.Event(), threading.Event()

    def hangs(*_: object) -> None:
        asked.append(1)
        begun.set()
        back.wait(30.0)
        raise FileNotFoundError

    monkeypatch.setattr(record_file, "ANSWER", 0.05)
    monkeypatch.setattr(record_file, "read_private", hangs)
    machine = autopilots(kernel, "1:1", print)
    for _ in range(3):
        assert await machine.status() is None
    assert begun.wait(30.0)  # its thread may run only after the deadline
    back.set()
    assert len(asked) == 1
