from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.unit.tunables.steered_kernel import ScrubSource
from zconsole.pool.model import Pool, Sample, Scan, Vdev
from zconsole.system.host import alive, process_mark
from zconsole.tunables import autopilot
from zconsole.tunables.autopilot import LOCK, Pilot, at_risk, scanning
from zconsole.zfs.decode import decode

NAME = "zfs_vdev_scrub_max_active"
TIME = "zfs_resilver_min_time_ms"


async def pools(source: ScrubSource):
    found = [each for raw in await source.sample() for each in decode(raw)]
    return scanning(each.pool for each in found if isinstance(each, Sample))


def soon(condition, seconds=20.0) -> bool:
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.05)
    return condition()


def pilot(kernel, target=0.02) -> Pilot:
    return Pilot(kernel.console("1:1"), kernel.parameters, target)


async def flown(kernel, source, rounds=60, target=0.02) -> Pilot:
    found = pilot(kernel, target)
    for i in range(rounds):
        found.take(await pools(source), 20.0 * i, 1000.0 + i)
    return found


async def test_fast_answers_let_the_scan_go_faster(kernel):
    await flown(kernel, ScrubSource(bucket=18))
    assert kernel.read(NAME) == 10


async def test_slow_answers_slow_it_down(kernel):
    await flown(kernel, ScrubSource(bucket=27))
    assert kernel.read(NAME) == 1


def test_without_redundancy_it_is_never_slower_than_it_was_found(kernel):
    steered = pilot(kernel)
    for i in range(20):
        slow = tuple(1000 * i if bucket == 27 else 0 for bucket in range(37))
        disk = Vdev("sda", "disk", histograms={"sync_r": slow, "disk_r": slow})
        root = Vdev("tank", "root", children=(disk,))
        lone = Pool("tank", "ONLINE", root, scans=(Scan("scrub", "running"),))
        assert at_risk(lone)
        steered.take([lone], 20.0 * i, 1000.0 + i)
    assert kernel.read(NAME) == 3


async def test_each_step_is_logged_and_a_mark_for_the_graph(kernel):
    await flown(kernel, ScrubSource(bucket=18), rounds=4)
    assert any(change.name == TIME for change in kernel.console().past().changes)
    steps = [record for record in kernel.log.recent() if record["action"] == "hold-latency 0.02"]
    assert [record["event"] for record in steps] == ["begun", "ended"] * 4


async def test_it_sees_that_somebody_set_one(kernel):
    steered = await flown(kernel, ScrubSource(bucket=18), rounds=4)
    assert steered.untouched
    kernel.write(NAME, 7)
    assert not steered.untouched


async def test_a_value_that_somebody_set_stays_and_the_others_go_back(kernel):
    steered = await flown(kernel, ScrubSource(bucket=18))
    kernel.write(NAME, 7)
    steered.restore(2000.0, lambda: pytest.fail("nothing is left to put back"))
    assert (kernel.read(NAME), kernel.read(TIME)) == (7, 3000)


async def test_a_value_that_somebody_set_by_another_console_stays(kernel):
    steered = await flown(kernel, ScrubSource(bucket=18))
    kernel.console().set({NAME: 7}, 1500.0)
    steered.restore(2000.0, lambda: pytest.fail("nothing is left to put back"))
    assert (kernel.read(NAME), kernel.read(TIME)) == (7, 3000)


def start(kernel) -> None:
    words = ["--state", kernel.state, "--module", kernel.module, "--boot-id", kernel.boot_id]
    argv = [sys.executable, "-m", "tests.unit.tunables.steered_kernel", *map(str, words)]
    done = subprocess.run([*argv, "--target", "0.02"], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr)


def guard_of(kernel) -> int:
    return int((kernel.state / LOCK).read_text().partition(":")[0])


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


@pytest.mark.slow
def test_off_restores_and_ends_it(running):
    assert soon(lambda: running.read(TIME) != 3000)
    assert autopilot.stop(running.state)
    assert running.read(TIME) == 3000
    assert not autopilot.stop(running.state)


@pytest.mark.slow
def test_a_second_one_is_refused(running):
    with pytest.raises(RuntimeError, match="an autopilot runs already"):
        start(running)


@pytest.mark.slow
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


@pytest.mark.slow
def test_stands_aside_when_somebody_sets_a_tunable(running):
    assert soon(lambda: running.read(TIME) != 3000)
    mark = process_mark(guard_of(running))
    running.write(NAME, 7)
    assert soon(lambda: not alive(mark))
    assert (running.read(NAME), running.read(TIME)) == (7, 3000)
