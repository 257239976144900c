from __future__ import annotations

import json
import os
import threading
from functools import partial
from pathlib import Path

import pytest

from tests.records import replace
from tests.unit.hardware.lit_chassis import NOW, Chassis
from tests.unit.waiting import soon
from zconsole.errors import NotFoundError, ZconsoleError
from zconsole.hardware import light
from zconsole.hardware.light import GIVE_UP, LASTING, NAME, RETRY, LocateLights
from zconsole.system import keeper
from zconsole.system.patient import NoAnswerError
from zconsole.system.state_dir import StateError, try_lock

UNTIL = NOW + LASTING


@pytest.fixture
def woken(monkeypatch) -> list[str]:
    """The orders that the keeper was asked for."""
    asked: list[str] = []
    monkeypatch.setattr(keeper, "ask", lambda *_, order: asked.append(order))
    monkeypatch.setattr(light, "CONFIRM", (0.0,))
    return asked


@pytest.fixture
def chassis(tmp_path: Path, woken: list[str]) -> Chassis:
    assert woken == []
    made = Chassis(tmp_path)
    made.enclosure()
    made.disk("sda", "S1", "0:0:8:0", 1)
    return made


@pytest.fixture
def lights(chassis: Chassis) -> LocateLights:
    return chassis.lights()


def lit(chassis: Chassis, until: float = UNTIL) -> None:
    chassis.lights().light(chassis.slot(), "S1", until, "bay 1")


def value(chassis: Chassis) -> str:
    return chassis.led().read_text()


def test_a_bay_is_lit_and_put_back(chassis, lights):
    fault = chassis.led().with_name("fault")
    fault.write_text("1")
    made = lights.light(chassis.slot(), "S1", UNTIL, "bay 1")
    assert made.words == "the light of bay 1 (serial S1) is on"
    assert (value(chassis), lights.lit()) == ("1", (made,))
    assert lights.unlight(chassis.slot()) == "the light of bay 1 (serial S1) is off"
    assert (value(chassis), lights.lit()) == ("0", ())
    assert lights.unlight(chassis.slot()) is None
    assert [(r["light"], r["serial"], r["result"]) for r in chassis.log.records] == [
        ("on", "S1", "lit"),
        ("off", "S1", "restored"),
    ]
    assert fault.read_text() == "1", "nothing but the locate LED is written"


def test_a_light_found_on_stays_on(chassis, lights):
    chassis.led().write_text("1")
    assert "was on before" in lights.light(chassis.slot(), "S1", UNTIL).words
    assert "stays on" in str(lights.unlight(chassis.slot()))
    assert (value(chassis), lights.lit()) == ("1", ())


def test_what_was_found_first_counts_where_two_consoles_light_the_same_bay(chassis):
    lit(chassis)
    chassis.now += 60
    lit(chassis, UNTIL + 60)
    (record,) = chassis.lights().lit()
    assert (record.before, record.until) == (False, UNTIL + 60)
    chassis.lights().unlight(chassis.slot())
    assert value(chassis) == "0"


def test_a_light_that_somebody_switched_off_is_left(chassis, lights):
    lit(chassis)
    chassis.led().write_text("0")
    assert lights.tidy() == ("somebody else switched off the light of bay 1 (serial S1)",)
    chassis.boot("boot-2")
    assert (lights.tidy(), value(chassis), lights.lit()) == ((), "0", ())
    chassis.led().write_text("1")
    chassis.now = UNTIL + 1
    assert (lights.tidy(), value(chassis)) == ((), "1")


def test_one_lit_again_after_somebody_switched_it_off_was_off_before(chassis, lights):
    chassis.led().write_text("1")
    lit(chassis)
    chassis.led().write_text("0")
    lit(chassis)
    lights.unlight(chassis.slot())
    assert value(chassis) == "0"


def test_it_goes_off_when_its_time_is_over(chassis, lights):
    lit(chassis)
    chassis.now = UNTIL - 1
    assert (lights.tidy(), value(chassis)) == ((), "1")
    chassis.now = UNTIL
    assert lights.tidy() == ("the light of bay 1 (serial S1) is off",)
    assert (value(chassis), lights.lit()) == ("0", ())


def test_a_clock_that_is_set_back_does_not_leave_it_on(chassis, lights):
    """A light lit while the clock was a year ahead goes off four hours after the correction."""
    lit(chassis)
    chassis.now -= 365 * 86400
    assert lights.tidy() == ()
    assert lights.lit()[0].until == chassis.now + LASTING
    chassis.now += LASTING
    lights.tidy()
    assert value(chassis) == "0"
    lit(chassis)
    until = lights.lit()[0].until
    chassis.now -= 5  # as a time server sets it
    lights.tidy()
    assert lights.lit()[0].until == until


def test_after_a_reboot_a_bay_is_lit_where_it_is_now_whatever_disk_is_in_it(chassis):
    lit(chassis)
    (chassis.root / "sys/block/sda/device/serial").write_text("S2\n")
    chassis.moved("0:0:8:0", "11:0:3:0")
    led = chassis.led("11:0:3:0")
    led.write_text("0")
    chassis.boot("boot-2")
    lights = chassis.lights()
    assert lights.tidy() == ("the light of bay 1 (serial S1) is on again after the reboot",)
    assert (led.read_text(), lights.tidy()) == ("1", ())
    chassis.now = UNTIL
    lights.tidy()
    assert led.read_text() == "0"


def test_after_a_reboot_one_that_is_over_is_not_lit(chassis, lights):
    lit(chassis)
    chassis.led().write_text("0")
    chassis.boot("boot-2")
    chassis.now = UNTIL + 1
    lights.tidy()
    assert (value(chassis), lights.lit()) == ("0", ())


def test_an_enclosure_that_comes_late_is_lit_then_and_off_in_the_end(chassis, lights):
    """Also if the light was on before the power was cut."""
    chassis.led().write_text("1")
    lit(chassis)
    chassis.led().write_text("0")
    chassis.boot("boot-2")
    box = chassis.led().parents[1]
    box.rename(chassis.root / "away")
    assert (lights.tidy(), len(lights.lit())) == ((), 1)
    (chassis.root / "away").rename(box)
    lights.tidy()
    assert value(chassis) == "1"
    chassis.now = UNTIL
    lights.tidy()
    assert value(chassis) == "0"


def test_an_enclosure_without_an_id_is_not_found_after_a_reboot(chassis, lights):
    chassis.enclosure("1:0:8:0", "")
    lights.light(chassis.slot("1:0:8:0"), "", UNTIL)
    led = chassis.led("1:0:8:0")
    led.write_text("0")
    chassis.boot("boot-2")
    assert (lights.tidy(), led.read_text()) == ((), "0")


def test_one_that_cannot_be_reached_is_tried_again_for_days(chassis, lights):
    lit(chassis)
    box = chassis.led().parents[1]
    box.rename(chassis.root / "away")
    with pytest.raises(NotFoundError, match="not there now"):
        lights.unlight(lights.lit()[0].slot)
    (record,) = lights.lit()
    assert record.until == NOW
    chassis.now += GIVE_UP - 1
    assert "not there now" in lights.tidy()[0]
    (chassis.root / "away").rename(box)
    lights.tidy()
    assert (value(chassis), lights.lit()) == ("0", ())


def test_one_that_is_away_too_long_is_forgotten(chassis, lights):
    lit(chassis)
    chassis.led().parents[1].rename(chassis.root / "away")
    chassis.now = UNTIL + GIVE_UP
    assert lights.tidy() == ("the light of bay 1 (serial S1) could not be put back; forgotten",)
    assert lights.lit() == ()


def test_an_enclosure_that_never_says_so_is_switched_off_all_the_same(chassis, lights, monkeypatch):
    monkeypatch.setattr(light.Leds, "read", staticmethod(lambda path: "0"))
    assert "doesn't confirm" in lights.light(chassis.slot(), "S1", UNTIL).words
    assert (lights.tidy(), len(lights.lit())) == ((), 1)
    chassis.now = UNTIL
    lights.tidy()
    assert value(chassis) == "0"


def test_a_bay_without_a_light_is_refused(chassis, lights):
    with pytest.raises(NotFoundError, match="has no light"):
        lights.light(replace(chassis.slot(), component="Slot 99"), "", UNTIL)
    assert not (chassis.state / NAME).exists()


def test_one_that_the_enclosure_refuses_leaves_no_record(chassis, lights, monkeypatch):
    refused(monkeypatch, "write")
    with pytest.raises(ZconsoleError, match="refused: Input/output error"):
        lights.light(chassis.slot(), "S1", UNTIL)
    assert lights.lit() == ()


def refused(monkeypatch, name: str) -> None:
    """Make the enclosure fail."""

    def refusing(*_: object) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(light.Leds, name, staticmethod(refusing))


def test_one_that_is_on_keeps_its_record_when_more_time_is_refused(chassis, lights, monkeypatch):
    lit(chassis)
    with monkeypatch.context() as patch:
        refused(patch, "write")
        with pytest.raises(ZconsoleError, match="refused"):
            lights.light(chassis.slot(), "S1", UNTIL + 60)
    chassis.now = UNTIL
    lights.tidy()
    assert value(chassis) == "0"


def test_one_that_cannot_be_read_was_not_switched_off_by_somebody(chassis, lights):
    lit(chassis)
    led = chassis.led()
    led.rename(led.with_name("kept"))
    led.mkdir()  # reading a directory fails
    assert "refused" in lights.tidy()[0]
    assert len(lights.lit()) == 1
    led.rmdir()
    led.with_name("kept").rename(led)
    chassis.now = UNTIL
    lights.tidy()
    assert value(chassis) == "0"


def test_one_whose_answer_cannot_be_read_is_on_and_not_confirmed(chassis, lights, monkeypatch):
    write = light.Leds().write

    def written(*args) -> None:
        write(*args)
        refused(monkeypatch, "read")

    monkeypatch.setattr(light.Leds, "write", staticmethod(written))
    assert "doesn't confirm" in lights.light(chassis.slot(), "S1", UNTIL).words


def test_the_keeper_waits_for_each_before_it_is_on(chassis, woken, lights, monkeypatch):
    write, seen = light.Leds().write, []

    def written(*args) -> None:
        (record,) = lights.lit()
        seen.append((len(woken), record.confirmed))
        write(*args)

    monkeypatch.setattr(light.Leds, "write", staticmethod(written))
    lights.light(chassis.slot(), "S1", UNTIL)
    lights.light(chassis.slot(), "S1", UNTIL + 60.0)
    chassis.led().write_text("0")
    chassis.boot("boot-2")
    lights.tidy()
    assert value(chassis) == "1"
    assert seen == [(1, False), (2, False), (3, False)]


@pytest.mark.parametrize("before", ["dark", "lit", "rebooted"])
def test_none_goes_on_that_no_keeper_waits_for(chassis, lights, monkeypatch, before):
    if before != "dark":
        lit(chassis)
    if before == "rebooted":
        chassis.led().write_text("0")
        chassis.boot("boot-2")
    found, records = value(chassis), lights.lit()

    def failed(*_, **__):
        raise ZconsoleError("no process")

    act = lights.tidy if before == "rebooted" else partial(lit, chassis, UNTIL + 60.0)
    with monkeypatch.context() as patch:
        patch.setattr(keeper, "ask", failed)
        with pytest.raises(ZconsoleError, match="no process"):
            act()
    assert (value(chassis), lights.lit()) == (found, records)
    if before == "rebooted":
        lights.tidy()
        assert value(chassis) == "1"


def test_one_whose_record_cannot_be_written_again_is_waited_for(
    chassis, woken, lights, monkeypatch
):
    write = light.Leds().write

    def full(*_) -> None:
        raise StateError("No space left on device")

    def written(*args) -> None:
        write(*args)
        monkeypatch.setattr(light.OpenRecords, "put", full)

    monkeypatch.setattr(light.Leds, "write", staticmethod(written))
    with pytest.raises(StateError):
        lights.light(chassis.slot(), "S1", UNTIL)
    assert (value(chassis), len(woken), len(lights.lit())) == ("1", 1, 1)


def test_one_that_gives_no_answer_keeps_its_record_and_goes_off_in_the_end(
    chassis, woken, lights, monkeypatch
):
    monkeypatch.setattr(light, "ANSWER", 0.05)
    led, slot = chassis.led(), chassis.slot()
    monkeypatch.setattr(light.Leds, "read", staticmethod(lambda path: "0"))
    led.unlink()
    os.mkfifo(led)  # opening a FIFO for writing hangs until somebody reads
    with pytest.raises(NoAnswerError, match="the light may still change"):
        lights.light(slot, "S1", UNTIL)
    assert (len(woken), lights.tidy(), len(lights.lit())) == (1, (), 1)
    monkeypatch.undo()
    monkeypatch.setattr(keeper, "ask", lambda *_, order: 1)
    reader = os.open(led, os.O_RDONLY | os.O_NONBLOCK)  # lets the thread end
    assert soon(lambda: os.read(reader, 9) != b"")
    os.close(reader)
    led.unlink()
    led.write_text("1")
    chassis.now = UNTIL

    def is_off() -> bool:
        lights.tidy()  # asks nothing while the call that hung is not quite over
        return led.read_text() == "0"

    assert soon(is_off)


def test_the_keeper_is_woken_unless_a_process_has_the_lights(chassis, woken, lights):
    lit(chassis)
    assert woken == [keeper.LOOK]
    lock = try_lock(chassis.state / light.HOLDER)
    lights.light(chassis.slot(number=2), "", UNTIL)
    assert len(woken) == 1
    os.close(lock)
    lights.tidy()
    assert len(woken) == 2


def test_where_nothing_was_lit_nothing_is_made(chassis, woken, lights):
    assert (lights.tidy(), lights.lit(), woken) == ((), (), [])
    assert not chassis.state.exists()


def test_a_light_waits_until_long_after_its_time(chassis, lights):
    lit(chassis)
    assert len(lights.lit()) == 1
    chassis.now = UNTIL + RETRY - 1.0
    assert len(lights.waiting()) == 1
    chassis.now = UNTIL + RETRY
    assert lights.waiting() == ()
    assert len(lights.lit()) == 1


def test_all_lights_go_off_though_one_cannot_be_reached(chassis, lights):
    chassis.enclosure("1:0:8:0", "0x5000000000000001")
    lights.light(chassis.slot("1:0:8:0"), "", UNTIL)
    lit(chassis)
    chassis.led("1:0:8:0").parents[1].rename(chassis.root / "away")
    said = lights.unlight_all()
    assert "not there now" in said[0]
    assert said[1] == "the light of bay 1 (serial S1) is off"
    assert (value(chassis), len(lights.lit())) == ("0", 1)


def test_a_light_of_others_goes_off_only_when_forced(chassis, lights):
    chassis.led().write_text("1")
    assert lights.unlight(chassis.slot()) is None
    assert value(chassis) == "1"
    lights.force_off(chassis.slot())
    assert value(chassis) == "0"


def test_a_record_of_others_is_refused(chassis, lights):
    lit(chassis)
    (chassis.state / NAME).chmod(0o666)
    with pytest.raises(StateError, match=r"lights\.json"):
        lights.tidy()
    assert json.loads((chassis.state / NAME).read_text())["lights"][0]["serial"] == "S1"


@pytest.mark.usefixtures("woken")
def test_an_enclosure_that_hangs_is_not_asked_again_and_holds_up_no_other(chassis, monkeypatch):
    chassis.enclosure("0:0:9:0", "0x50050cc10c4010bb")
    lights = chassis.lights()
    lights.light(chassis.slot(), "", chassis.now + 60.0)
    asked, back, read = [], threading.Event(), light.Leds().read

    def hangs(led):
        asked.append(led)
        if "0:0:8:0" in str(led):
            back.wait(30.0)
        return read(led)

    with monkeypatch.context() as patch:
        patch.setattr(light, "ANSWER", 0.05)
        patch.setattr(light.Leds, "read", staticmethod(hangs))
        for _ in range(3):
            (said,) = lights.tidy()
            assert "answer" in said
        assert soon(lambda: asked)  # its thread may run only after the deadline
    assert len(asked) == 1
    lights.light(chassis.slot("0:0:9:0"), "", chassis.now + 60.0)
    back.set()
    assert soon(lambda: lights.tidy() == ())
