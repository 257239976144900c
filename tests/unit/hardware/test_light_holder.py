from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.hardware.lit_chassis import Chassis
from tests.unit.waiting import soon
from zconsole.hardware import light_holder
from zconsole.hardware.light import HOLDER, NAME, LocateLights
from zconsole.system.host import alive, process_mark
from zconsole.system.patient import NoAnswerError
from zconsole.system.state_dir import try_lock

LIGHTING = """
import sys, time
from pathlib import Path
from zconsole.hardware.led import slot_of
from zconsole.hardware.light import LocateLights
from zconsole.system.audit import MemoryLog
state, root, led, seconds = sys.argv[1:]
lights = LocateLights(Path(state), Path(root), log=MemoryLog())
lights.light(slot_of(led), "S1", time.time() + float(seconds))
print("lit", flush=True)
time.sleep(60)
"""
"""A console that lights a bay and stays."""


@pytest.fixture
def chassis(tmp_path: Path) -> Iterator[Chassis]:
    made = Chassis(tmp_path)
    made.enclosure()
    yield made
    lock = made.state / HOLDER
    if lock.exists() and (pid := holder_of(made)) not in (None, os.getpid()):
        os.kill(pid, signal.SIGKILL)


def is_on(chassis: Chassis) -> bool:
    return chassis.led().read_text() == "1"


def holder_of(chassis: Chassis) -> int | None:
    """The process that holds the lights, found by the lock it has."""
    inode = (chassis.state / HOLDER).stat().st_ino
    rows = (line.split() for line in Path("/proc/locks").read_text().splitlines())
    return next((int(row[4]) for row in rows if row[5].endswith(f":{inode}")), None)


def console(chassis: Chassis, seconds: float) -> subprocess.Popen[bytes]:
    words = (str(chassis.state), str(chassis.root), str(chassis.led()), str(seconds))
    process = subprocess.Popen((sys.executable, "-c", LIGHTING, *words), stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"lit\n"
    return process


def kill(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.communicate()


@pytest.mark.slow
def test_a_light_goes_off_in_time_though_its_console_was_killed(chassis):
    process = console(chassis, 1.0)
    kill(process)
    assert soon(lambda: not is_on(chassis))
    assert soon(lambda: not LocateLights(chassis.state, chassis.root).lit())


@pytest.mark.slow
def test_the_next_start_makes_up_for_a_holder_that_was_killed(chassis):
    process = console(chassis, 30.0)
    assert soon(lambda: holder_of(chassis) is not None)
    first = holder_of(chassis)
    os.kill(first, signal.SIGKILL)
    kill(process)
    assert soon(lambda: holder_of(chassis) is None)
    assert is_on(chassis)
    lights = LocateLights(chassis.state, chassis.root, log=chassis.log)
    assert lights.tidy() == ()
    assert soon(lambda: holder_of(chassis) is not None)
    assert holder_of(chassis) != first
    assert alive(process_mark(holder_of(chassis)))


class Held:
    """A holder's waits, with the time that passes in them."""

    def __init__(self, chassis: Chassis, most: int = 1000) -> None:
        self.chassis = chassis
        self.waits: list[float] = []
        self.before = lambda: None
        self._most = most

    def __call__(self, seconds: float) -> None:
        self.waits.append(seconds)
        assert len(self.waits) < self._most
        self.before()
        self.chassis.now += seconds

    def run(self) -> None:
        lights = self.chassis.lights()
        lock = try_lock(self.chassis.state / HOLDER)
        light_holder.hold(lights, lock, self, lambda: self.chassis.now)


@pytest.fixture
def lit(chassis, monkeypatch) -> Chassis:
    monkeypatch.setattr("zconsole.system.process.start_detached", lambda argv, log: 0)
    chassis.lights().light(chassis.slot(), "S1", chassis.now + 75.0)
    return chassis


def test_it_waits_until_the_time_is_over_and_looks_now_and_then(lit):
    held = Held(lit)
    held.run()
    assert held.waits == [30.0, 30.0, 15.0]
    assert not is_on(lit)


def test_it_ends_once_the_light_was_switched_off_elsewhere(lit):
    held = Held(lit)
    held.before = lambda: lit.led().write_text("0")
    held.run()
    assert held.waits == [30.0]


def test_it_ends_once_the_light_was_put_back_by_a_console(lit):
    held = Held(lit)
    held.before = lambda: lit.lights().unlight(lit.slot())
    held.run()
    assert held.waits == [30.0]


def test_it_puts_the_light_back_though_its_record_is_lost(lit):
    held = Held(lit)
    held.before = lambda: (lit.state / NAME).write_text("{")
    held.run()
    assert sum(held.waits) == 75.0
    assert not is_on(lit)


def test_it_puts_the_light_back_though_its_first_look_fails(lit, monkeypatch):
    def slow(_: LocateLights) -> None:
        raise NoAnswerError("no answer")

    monkeypatch.setattr(LocateLights, "tidy", slow)
    Held(lit).run()
    assert not is_on(lit)


def test_it_goes_on_trying_while_the_enclosure_is_away(lit):
    held, box = Held(lit), lit.led().parents[1]

    def away() -> None:
        if len(held.waits) == 1:
            box.rename(lit.root / "away")
        if len(held.waits) == 20:
            (lit.root / "away").rename(box)

    held.before = away
    held.run()
    assert len(held.waits) == 20
    assert not is_on(lit)


@pytest.mark.slow
def test_it_gives_up_after_an_hour(lit):
    lit.led().parents[1].rename(lit.root / "away")
    held = Held(lit)
    held.run()
    assert 3600 <= sum(held.waits) - 75 <= 3660


def test_a_second_one_ends_at_once(lit):
    lock = try_lock(lit.state / HOLDER)
    words = ["--state", str(lit.state), "--root", str(lit.root)]
    assert light_holder.main(words) == 0
    os.close(lock)
    assert is_on(lit)
