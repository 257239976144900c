"""Lights of bays as a duty of the keeper: no process, with a clock set by the test."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from tests.unit.hardware.lit_chassis import Chassis
from zconsole.hardware.light import HOLDER, NAME, LightDuty, LocateLights
from zconsole.system.patient import NoAnswerError
from zconsole.system.state_dir import try_lock


@pytest.fixture
def lit(tmp_path: Path, monkeypatch) -> Chassis:
    """A light that goes off in 75 seconds."""
    monkeypatch.setattr("zconsole.system.keeper.ask", lambda *_, **order: 1)
    made = Chassis(tmp_path)
    made.enclosure()
    made.lights().light(made.slot(), "S1", made.now + 75.0)
    return made


def is_on(chassis: Chassis) -> bool:
    return chassis.led().read_text() == "1"


def is_held(chassis: Chassis) -> bool:
    """Return whether a process holds the lights."""
    lock = try_lock(chassis.state / HOLDER)
    if lock is not None:
        os.close(lock)
    return lock is None


class Held:
    """The duty, with the time that passes until it acts again."""

    def __init__(self, chassis: Chassis, most: int = 1000) -> None:
        self.chassis = chassis
        self.waits: list[float] = []
        self.before = lambda: None
        self._most = most
        self.duty = LightDuty(chassis.lights(), chassis.state / HOLDER, lambda: chassis.now)

    async def run(self) -> None:
        """Act whenever the duty is due, until it is over."""
        while await self.duty.act():
            seconds = self.duty.due(self.chassis.now)
            if seconds <= 0.0:  # it has the lock now
                continue
            self.waits.append(seconds)
            assert len(self.waits) < self._most
            self.before()
            self.chassis.now += seconds
        assert not is_held(self.chassis)


@pytest.mark.parametrize(
    ("meanwhile", "waits"),
    [
        (is_on, [30.0, 30.0, 15.0]),
        (lambda chassis: chassis.led().write_text("0"), [30.0]),  # switched off elsewhere
        (lambda chassis: chassis.lights().unlight(chassis.slot()), [30.0]),
    ],
)
async def test_it_looks_now_and_then_and_waits_until_the_light_is_off(lit, meanwhile, waits):
    held = Held(lit)
    held.before = lambda: meanwhile(lit)
    await held.run()
    assert held.waits == waits
    assert not is_on(lit)


def removed(record: Path) -> None:
    for file in record.parent.iterdir():
        file.unlink()


@pytest.mark.parametrize("harm", [lambda record: record.write_text("{"), removed])
async def test_it_puts_the_light_back_though_its_record_is_lost(lit, harm):
    held = Held(lit)
    held.before = lambda: harm(lit.state / NAME) if len(held.waits) == 1 else None
    await held.run()
    assert sum(held.waits) == 75.0
    assert not is_on(lit)


@pytest.mark.slow
async def test_it_puts_the_light_back_though_its_first_look_fails(lit, monkeypatch):
    def slow(*_: object) -> None:
        raise NoAnswerError("no answer")

    monkeypatch.setattr(LocateLights, "tidy", slow)
    await Held(lit).run()
    assert not is_on(lit)


async def test_a_light_whose_time_is_over_just_after_it_looked_is_not_left_until_later(
    lit, monkeypatch
):
    lit.now += 74.9
    held, tidy = Held(lit), LocateLights.tidy

    def slow(*words: Any) -> tuple[str, ...]:
        done = tidy(*words)
        lit.now += 0.2
        return done

    monkeypatch.setattr(LocateLights, "tidy", slow)
    await held.run()
    assert held.waits == []


async def test_it_goes_on_trying_while_the_enclosure_is_away(lit):
    held, box = Held(lit), lit.led().parents[1]

    def away() -> None:
        if len(held.waits) == 1:
            box.rename(lit.root / "away")
        if len(held.waits) == 20:
            (lit.root / "away").rename(box)

    held.before = away
    await held.run()
    assert len(held.waits) == 20
    assert not is_on(lit)


@pytest.mark.slow
async def test_it_gives_up_after_an_hour(lit):
    lit.led().parents[1].rename(lit.root / "away")
    held = Held(lit)
    await held.run()
    assert 3600 <= sum(held.waits) - 75 <= 3660


async def test_it_lets_go_of_the_lights_when_the_keeper_ends(lit):
    held = Held(lit)
    assert await held.duty.act()
    assert is_held(lit)
    await held.duty.undo()
    assert not is_held(lit)
    assert is_on(lit)


async def test_another_version_that_has_them_goes_on_as_long_as_it_lives(lit):
    lock = try_lock(lit.state / HOLDER)
    held = Held(lit)
    lit.now += 80.0
    assert await held.duty.act()
    assert is_on(lit)
    os.close(lock)
    assert await held.duty.act()
    assert not await held.duty.act()
    assert not is_on(lit)


async def test_a_lock_that_was_taken_for_a_moment_makes_no_light_late(lit):
    """For example by a console, which tries whether the keeper has it."""
    lock, until = try_lock(lit.state / HOLDER), lit.now + 75.0
    held = Held(lit)
    lit.now += 70.0
    assert await held.duty.act()
    os.close(lock)
    lit.now += held.duty.due(lit.now)
    await held.run()
    assert not is_on(lit)
    assert lit.now <= until + 1.0


async def test_a_file_that_cannot_be_read_keeps_no_process(lit):
    (lit.state / NAME).write_text("{")
    assert not await Held(lit).duty.act()
