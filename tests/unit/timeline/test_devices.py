from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.records import replace
from tests.unit.system.test_no_threads import refuse_threads
from zconsole.diagnosis.device_errors.faults import Deltas, ProbeResults, SmartCounts, likely_cause
from zconsole.diagnosis.device_errors.probes import log_names, signs_of
from zconsole.scan_report.recorder import ReportKeeper
from zconsole.sim.probes import probe_results_of as simulated
from zconsole.sim.source import World
from zconsole.system.async_process import ProcessRunner
from zconsole.system.process import Completed
from zconsole.timeline.devices import AT_ONCE, DeviceProber, machine_details, machine_lights
from zconsole.timeline.feed import SessionFeed
from zconsole.timeline.session import Session

CRC = SmartCounts(True, 0, 0, 0, 12)


def flaky(seconds=140):
    """Yield the frames of the simulated pool whose disk drops out and comes back."""
    world, session = World("flaky", 2), Session()
    for elapsed in range(0, seconds, 5):
        world.advance(float(elapsed))
        yield session.advance(world.raws()), world


async def settled(watch):
    while watch._tasks:
        await asyncio.gather(*watch._tasks)


async def test_a_moment_without_threads_gives_no_facts(monkeypatch):
    refuse_threads(monkeypatch)
    assert await machine_details("/dev/sda") == ()
    assert await machine_lights() == {}
    assert await signs_of(ProcessRunner(), "/dev/sda", 0.0) == ProbeResults()


class RawsOf:
    """A source of the samples of a simulated machine."""

    capabilities = None

    def __init__(self, world):
        self._world = world

    async def sample(self):
        return self._world.raws()

    async def aclose(self):
        pass


class Answers:
    def __init__(self, *signs):
        self.signs = list(signs)
        self.asked = []

    async def __call__(self, path, since):
        self.asked.append((path, since))
        return self.signs.pop(0) if len(self.signs) > 1 else self.signs[0]


@pytest.mark.slow
async def test_a_device_in_trouble_is_asked_about_and_judged_by_the_answer():
    answers = Answers(ProbeResults(CRC, ("ata3: hard resetting link",)))
    watch = DeviceProber(answers)
    for frames, _ in flaky():
        last = watch.look(frames[0])
        await settled(watch)
    (trouble,) = [t for t in last.troubles if t.flaps]
    assert trouble.cause == "cable"
    assert "12 CRC errors on its link" in trouble.text
    assert "the kernel resets its link" in trouble.text
    assert trouble.restarts >= 1
    assert "restart" in trouble.text
    assert answers.asked[0][0].endswith("-part1")
    assert answers.asked[0][1] < last.t


async def test_a_report_says_of_a_device_what_the_screen_says():
    """Earlier it was made before the answers of the device's probe were added."""
    world, reports = World("flaky", 2), ReportKeeper()
    answers = Answers(ProbeResults(SmartCounts(False, 90, 90, 0, 0)))
    prober, source = DeviceProber(answers), RawsOf(world)
    feed = SessionFeed(source, Session(reports=reports), 0.0, prober=prober)
    for elapsed in range(0, 125, 5):
        world.advance(float(elapsed))
        frames = (await feed.sample()).frames
        await settled(prober)
    (shown,) = frames[0].troubles
    assert "SMART" in shown.text
    (report,) = reports.current()
    assert report.troubles == {shown.name: shown.text}
    await feed.aclose()


@pytest.mark.slow
async def test_the_kernel_is_asked_about_the_disconnect_that_the_errors_go_on_from():
    *_, (frames, _) = flaky(120)
    watch = DeviceProber(answers := Answers(ProbeResults(CRC)))
    frame = frames[0]
    since = [replace(each, returned_ago=7200.0) for each in frame.troubles]
    watch.look(replace(frame, troubles=tuple(since)))
    await settled(watch)
    assert [at for _, at in answers.asked] == [frame.t - 10800.0]


@pytest.mark.slow
async def test_an_answer_holds_for_a_minute_at_least():
    answers = Answers(ProbeResults(CRC))
    watch = DeviceProber(answers)
    times = []
    for frames, _ in flaky():
        watch.look(frames[0])
        await settled(watch)
        times.append(frames[0].t)
    assert 1 <= len(answers.asked) <= 1 + (times[-1] - times[0]) / 60


async def test_a_clock_that_was_set_back_delays_no_probe():
    answers = Answers(ProbeResults(CRC))
    watch = DeviceProber(answers)
    for frames, _ in flaky(120):
        (last,) = frames
    for ahead in (0.0, -7200.0, -7170.0):
        earlier = replace(last.sample, t=last.t + ahead)
        troubles = [replace(each, last=each.last + ahead) for each in last.troubles]
        watch.look(replace(last, sample=earlier, troubles=tuple(troubles)))
        await settled(watch)
    assert len(answers.asked) == 2 * len(last.troubles)


async def test_counts_that_grow_are_told_and_weigh_twice():
    grown = ProbeResults(SmartCounts(True, 0, 0, 0, 40), before=CRC)
    cause, signs = likely_cause(Deltas(write=3), signs=grown)
    assert cause == "cable"
    assert "40 CRC errors on its link, 28 new" in signs
    old = ProbeResults(SmartCounts(True, 5, 2, 0, 40))
    assert likely_cause(Deltas(write=3), signs=old)[0] == "unclear"
    grown_beside_old = ProbeResults(
        SmartCounts(True, 5, 0, 0, 40), before=SmartCounts(True, 5, 0, 0, 12)
    )
    assert likely_cause(Deltas(cksum=9), signs=grown_beside_old)[0] == "cable"


async def test_the_first_answer_is_what_later_ones_are_compared_with():
    answers = Answers(
        ProbeResults(CRC), ProbeResults(SmartCounts(True, 0, 0, 0, 20)), ProbeResults(None)
    )
    watch = DeviceProber(answers)
    for path in ("/dev/a",) * 3:
        await watch._take(path, 0.0)
    known = watch._known["/dev/a"]
    assert known.before == CRC
    assert known.smart == SmartCounts(True, 0, 0, 0, 20)


async def test_a_round_never_waits_and_a_shelf_that_fails_is_asked_about_by_and_by():
    gate = asyncio.Event()

    async def slow(_path, _since):
        await gate.wait()
        return ProbeResults()

    watch = DeviceProber(slow)
    for frames, _ in flaky(60):
        last = watch.look(frames[0])
    shelf = tuple(replace(last.troubles[0], key=row.key) for row in last.rows)
    watch.look(replace(last, troubles=shelf))
    assert len(watch._tasks) == AT_ONCE < len(shelf)
    await watch.aclose()
    assert not [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]


async def test_the_simulated_flaky_disk_counts_damaged_transfers():
    *_, (frames, world) = flaky()
    paths = [r.vdev.path for r in frames[0].rows if r.vdev.errors.cksum and not r.vdev.children]
    signs = await simulated(world, paths[0], 0.0)
    assert signs.smart.crc
    assert not signs.smart.pending
    assert await simulated(world, "/dev/none", 0.0) == ProbeResults()


def sys_tree(root: Path) -> None:
    disk = root / "sys/devices/pci0000:00/ata3/host2/target2:0:0/2:0:0:0/block/sdc"
    (disk / "sdc1").mkdir(parents=True)
    (disk / "sdc1/partition").write_text("1\n")
    classes = root / "sys/class/block"
    (classes).mkdir(parents=True)
    (classes / "sdc").symlink_to(disk)
    (classes / "sdc1").symlink_to(disk / "sdc1")
    crypt = root / "sys/devices/virtual/block/dm-0"
    (crypt / "slaves/sdc1").mkdir(parents=True)
    (classes / "dm-0").symlink_to(crypt)
    (root / "dev").mkdir()
    (root / "dev/sdc1").touch()
    (root / "dev/dm-0").touch()


def test_the_log_calls_a_disk_by_its_name_its_port_and_its_address(tmp_path):
    sys_tree(tmp_path)
    assert log_names("/dev/sdc1", tmp_path) == ("sdc", "ata3", "2:0:0:0")
    assert log_names("/dev/dm-0", tmp_path) == ("sdc", "ata3", "2:0:0:0")
    assert log_names("/tmp/file", tmp_path) == ()


class Runner:
    def __init__(self):
        self.ran = []

    async def run(self, argv, deadline):
        self.ran.append(argv)
        if argv[0] == "smartctl":
            return Completed(argv, 0, '{"smart_status": {"passed": true}}', "")
        log = (
            "2026-11-20T09:00:00,000000+00:00 ata3: hard resetting link\n"
            "2026-11-20T12:00:00,000000+00:00 ata3: SATA link down\n"
            "no time at all: [sdc] Medium Error\n"
        )
        return Completed(argv, 0, log, "")


async def test_messages_of_before_the_hour_do_not_count_and_a_sleeping_disk_sleeps_on(tmp_path):
    sys_tree(tmp_path)
    runner = Runner()
    since = 1795168800.0  # 2026-11-20 10:00 UTC
    signs = await signs_of(runner, "/dev/sdc1", since, tmp_path)
    assert [line.split(" ", 1)[1] for line in signs.kernel] == [
        "ata3: SATA link down",
        "time at all: [sdc] Medium Error",
    ]
    assert ("smartctl", "-j", "-H", "-A", "-n", "standby", "/dev/sdc") in runner.ran
    assert await signs_of(runner, "/tmp/file", since, tmp_path) == ProbeResults()
