from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.table import rows
from tests.unit.tunables.pilots import FAST, pilot, pools
from tests.unit.tunables.steered_kernel import ScrubSource, leaves
from tests.unit.waiting import soon
from zconsole.actions.autopilots import MachineAutopilots, make_way
from zconsole.errors import UnavailableError
from zconsole.system.async_process import ProcessRunner
from zconsole.system.host import alive, process_mark
from zconsole.tunables import autopilot
from zconsole.tunables.autopilot import Status
from zconsole.tunables.hold_latency import FASTEST, GENTLEST, STEP
from zconsole.tunables.hold_plan import Order
from zconsole.tunables.store import PILOT
from zconsole.tunables.targets import Targets

pytestmark = pytest.mark.slow

NAME = "zfs_vdev_scrub_max_active"
TIME = "zfs_resilver_min_time_ms"


class Rounds(ScrubSource):
    """A source whose rounds the test names: a word each, the last one again and again."""

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


async def steered(kernel, monkeypatch, source, rounds=8) -> tuple[str, list[tuple]]:
    monkeypatch.setattr(autopilot, "INTERVAL", 0.0)
    monkeypatch.setattr(autopilot, "LOOK", 0.1)
    seen: list[tuple] = []
    made = pilot(kernel)
    monkeypatch.setattr(autopilot, "_pause", _at_once(source, rounds))
    return await autopilot.steer(made, source, lambda: "", seen.append), seen


def _at_once(source, rounds):
    async def _pause(_pilot, _over) -> str:
        return "enough" if source.taken >= rounds else ""

    return _pause


async def test_a_pool_that_does_not_answer_for_a_while_does_not_end_it(kernel, monkeypatch):
    source = Rounds("scrub", "failed", "refused", "failed", "failed", "scrub")
    why, steps = await steered(kernel, monkeypatch, source)
    assert why == "enough"
    assert steps


async def test_it_ends_when_no_pool_has_answered_for_a_minute(kernel, monkeypatch):
    monkeypatch.setattr(autopilot, "BLIND", -1.0)
    why, _ = await steered(kernel, monkeypatch, Rounds("failed"))
    assert why.startswith("no sample with latency histograms")


@pytest.mark.parametrize("word", ["blind", "failed", "refused"])
async def test_what_applications_wait_is_not_known_so_the_scan_is_not_sped_up(
    kernel, monkeypatch, word
):
    why, steps = await steered(kernel, monkeypatch, Rounds("scrub", word))
    assert (why, steps) == ("enough", [])
    assert kernel.read(TIME) == 3000


async def test_it_ends_when_all_pools_are_exported(kernel, monkeypatch):
    why, _ = await steered(kernel, monkeypatch, Rounds("scrub", "exported"))
    assert why == "no scan runs any more"


async def test_a_paused_scan_is_not_sped_up_because_nobody_waits_beside_it(kernel, monkeypatch):
    source = Rounds("paused")
    assert [scan.state for pool in await pools(source) for scan in pool.scans] == ["paused"]
    why, steps = await steered(kernel, monkeypatch, source)
    assert (why, steps) == ("enough", [])
    assert kernel.read(TIME) == 3000


def start(kernel, state=None, watch=None, more: tuple[str, ...] = ()) -> None:
    words = ["--state", state or kernel.state, "--module", kernel.module]
    words += ["--watch", watch] if watch else []
    words += ["--boot-id", kernel.boot_id, *more, "0.02"]
    argv = [sys.executable, "-m", "tests.unit.tunables.steered_kernel", *map(str, words)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr)


def guard_of(kernel) -> int:
    return int((kernel.state / PILOT).read_text().partition(":")[0])


def child_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])


@pytest.fixture
def running(kernel):
    kernel.state.chmod(0o700)
    start(kernel)
    mark = process_mark(guard_of(kernel))
    yield kernel
    autopilot.stop(kernel.state)
    assert not alive(mark)


def test_off_restores_and_ends_it(running):
    assert soon(lambda: running.read(TIME) != 3000)
    assert autopilot.stop(running.state)
    assert running.read(TIME) == 3000
    assert not autopilot.stop(running.state)


@pytest.mark.parametrize("below", [False, True])
def test_it_goes_below_the_defaults_only_if_it_was_started_so(kernel, monkeypatch, below):
    kernel.state.chmod(0o700)
    kernel.write(NAME, 8)
    monkeypatch.setenv("AT_RISK", "1")
    start(kernel, more=("--below-defaults",) if below else ())
    try:
        assert soon(lambda: kernel.read(NAME) < 8)
        assert (kernel.read(NAME) < 3) == below
    finally:
        autopilot.stop(kernel.state)


@pytest.mark.parametrize("below", [False, True])
async def test_it_is_started_as_it_was_confirmed(kernel, monkeypatch, below):
    kernel.state.chmod(0o700)
    state = kernel.state / "of one who never had any"
    monkeypatch.setenv("ZCONSOLE_STATE", str(state))
    commands = []

    async def started(_runner, argv, _name) -> None:
        commands.append(argv)

    monkeypatch.setattr(autopilot, "started", started)
    wanted = Order(Targets(0.02), below)
    held = MachineAutopilots(ProcessRunner(), state, kernel.console(), "7:7")
    await held.start(wanted)
    assert state.is_dir()
    ((*_, mark, dashes, target),) = commands
    assert (mark, dashes, target) == ("7:7", "--", "0.02")
    assert ("--below-defaults" in commands[0]) == below


def test_a_second_one_is_refused(running):
    with pytest.raises(RuntimeError, match="an autopilot runs already"):
        start(running)


@pytest.mark.parametrize("victim", ["guard", "steering"])
def test_restores_after_either_process_was_killed(running, victim):
    assert soon(lambda: running.read(TIME) != 3000)
    guard = guard_of(running)
    child = child_of(guard)
    marks = [process_mark(guard), process_mark(child)]
    os.kill(guard if victim == "guard" else child, signal.SIGKILL)
    assert soon(lambda: not any(mark and alive(mark) for mark in marks))
    assert running.read(TIME) == 3000
    assert running.read(NAME) == 3


def test_stands_aside_when_somebody_sets_a_tunable(running):
    # It says its level after a step has set all: of what is set amid that it knows nothing.
    assert soon(lambda: (now := autopilot.status(running.state)) is not None and now.level != 0)
    mark = process_mark(guard_of(running))
    running.write(NAME, 7)
    assert soon(lambda: not alive(mark))
    assert (running.read(NAME), running.read(TIME)) == (7, 3000)


def test_one_that_uses_another_state_directory_is_refused(running, tmp_path):
    other = tmp_path / "other"
    other.mkdir(mode=0o700)
    with pytest.raises(RuntimeError, match="an autopilot runs already"):
        start(running, other)


def test_a_kernel_whose_tunables_cannot_be_read_is_refused(kernel):
    kernel.state.chmod(0o700)
    for path in (kernel.module / "parameters").iterdir():
        path.unlink()
    with pytest.raises(RuntimeError, match="no tunable"):
        start(kernel)


def test_what_a_killed_pair_left_behind_is_restored_by_off(running):
    assert soon(lambda: running.read(TIME) != 3000)
    guard = guard_of(running)
    marks = [process_mark(guard), process_mark(child_of(guard))]
    os.killpg(guard, signal.SIGKILL)
    assert soon(lambda: not any(mark and alive(mark) for mark in marks))
    assert running.read(TIME) != 3000
    assert not autopilot.stop(running.state)
    assert running.console().settle(1.0).restored != ()
    assert (running.read(TIME), running.read(NAME)) == (3000, 3)


def test_what_a_killed_pair_left_behind_is_the_start_of_no_other(running):
    assert soon(lambda: running.read(TIME) != 3000)
    guard = guard_of(running)
    os.killpg(guard, signal.SIGKILL)
    assert soon(lambda: process_mark(guard) is None)
    make_way(running.console())
    start(running)
    assert autopilot.stop(running.state)
    assert (running.read(TIME), running.read(NAME)) == (3000, 3)


def test_why_it_ended_is_in_the_log(running):
    assert soon(lambda: running.read(TIME) != 3000)
    mark = process_mark(guard_of(running))
    running.write(NAME, 7)
    assert soon(lambda: not alive(mark))
    assert (
        "somebody else set zfs_vdev_scrub_max_active" in (running.state / "audit.jsonl").read_text()
    )


def test_it_ends_with_the_console_that_it_watches(kernel):
    kernel.state.chmod(0o700)
    console = subprocess.Popen(["sleep", "60"])
    try:
        start(kernel, watch=process_mark(console.pid))
        mark = process_mark(guard_of(kernel))
        assert soon(lambda: kernel.read(TIME) != 3000)
    finally:
        console.kill()
        console.wait()
    assert soon(lambda: not alive(mark))
    assert (kernel.read(TIME), kernel.read(NAME)) == (3000, 3)


def test_another_console_sees_what_it_does(running):
    assert soon(lambda: running.read(TIME) != 3000)
    assert soon(lambda: (now := autopilot.status(running.state)) is not None and now.level > 0)
    assert autopilot.status(running.state).targets == ("0.02",)
    assert autopilot.stop(running.state)
    assert autopilot.status(running.state) is None


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
