from __future__ import annotations

import json
import threading
from functools import cache
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree

import pytest

from tests.records import replace
from tests.table import rows
from tests.unit.scan_report.recording import record
from tests.unit.timeline.following import MIB, TOTAL, T, resilver, sample
from zconsole.cli import event_loop
from zconsole.cli.main import main
from zconsole.cli.report import reports_of_recording
from zconsole.pool.model import Scan
from zconsole.scan_report.recorder import ReportKeeper
from zconsole.scan_report.renderer import compared, markdown, svg
from zconsole.scan_report.report import ScanReport, differences, dumped, loaded, predictions
from zconsole.scan_report.store import ReportStore
from zconsole.sim.source import World
from zconsole.system import record_file
from zconsole.system.state_dir import StateError
from zconsole.timeline.feed import SessionFeed
from zconsole.timeline.pool import PoolTimeline
from zconsole.timeline.session import Session
from zconsole.zfs.raw import Raw
from zconsole.zfs.sources.base import Capabilities

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def nvme(tmp_path_factory):
    """A recording of the fifth report's resilver, to its end."""
    return record(tmp_path_factory.mktemp("nvme") / "rec", "nvme", 600)


@pytest.fixture(scope="module")
def held(tmp_path_factory):
    """A recording of the third report's scrub, released after four minutes."""
    path = tmp_path_factory.mktemp("held") / "rec"
    return record(path, "scrub-delay", 480, zfs_scrub_delay=(240, 0))


@pytest.fixture(scope="module")
def not_restored(tmp_path_factory):
    """A recording of a resilver that ended without restoring redundancy."""
    return record(tmp_path_factory.mktemp("not-restored") / "rec", "not-restored", 800, step=20)


@cache
def reports(recording):
    """Return the reports of a recording, read once for all tests."""
    return event_loop.run(reports_of_recording(str(recording)))


@pytest.fixture(scope="module")
def report(nvme):
    """The report of the fifth report's resilver."""
    (found,) = reports(nvme)
    return found


def test_a_finished_resilver_is_told_in_figures(report):
    assert (report.function, report.state, report.errors) == ("resilver", "finished", 0)
    assert report.issued_bytes == pytest.approx(report.total_bytes, rel=0.01)
    assert report.rate == pytest.approx(report.issued_bytes / report.duration)
    assert report.limits["new-disk"] > 0.8 * sum(report.limits.values())
    (new,) = [device for device in report.devices if device.filled]
    assert new.write_bytes / new.seconds == pytest.approx(1.86e9, rel=0.1)
    assert all(device.read_bytes > 0 for device in report.devices if not device.filled)


def test_predictions_are_held_against_what_came(report):
    found = predictions(report)
    assert found
    assert all(abs(each.error) < 0.5 for each in found)
    assert all(each.actual < report.duration for each in found)


def test_a_tunable_that_was_changed_is_there_with_its_effect(held):
    (report,) = reports(held)
    (change,) = report.changes
    assert (change.name, change.before, change.after) == ("zfs_scrub_delay", 4, 0)
    assert change.issue_before == pytest.approx(3.3e6, rel=0.2)
    assert change.issue_after > 10 * change.issue_before


def test_a_report_survives_its_file(report):
    assert loaded(dumped(report), "x") == loaded(dumped(loaded(dumped(report), "x")), "x")
    assert loaded(dumped(report), "x").devices[0].name == report.devices[0].name


def test_what_is_from_outside_is_neither_html_nor_an_image(report):
    bad = 'x\\<img src="//e">![x](//e)'
    device = replace(report.devices[0], name=bad)
    changed = replace(
        report,
        pool=bad,
        health=bad,
        version=bad,
        ceiling_text=bad,
        troubles={"k": bad},
        notes=(bad,),
        devices=(device, *report.devices[1:]),
    )
    for text in (markdown(changed), compared(changed, changed)):
        assert "<" not in text
        assert "![" not in text
    assert markdown(changed).count("&lt;img") >= 6


def test_devices_in_trouble_are_told_with_their_cause(tmp_path):
    report, before = reports(record(tmp_path / "rec", "flaky", 140))
    assert before.state == "restarted"
    (told,) = report.troubles.values()
    assert "likely cable, port or power" in told
    assert "## Devices in trouble" in markdown(report)
    assert loaded(dumped(report), "x").troubles == report.troubles


def test_a_resilver_that_restored_nothing_is_not_called_safe(not_restored):
    (report,) = reports(not_restored)
    assert (report.state, report.health) == ("finished", "NOT RESTORED")
    assert report.duration < 3600
    assert "the pool is NOT safe: NOT RESTORED." in markdown(report)


def test_one_that_ended_a_moment_ago_has_ended(not_restored, tmp_path):
    whole = not_restored.read_text().splitlines(keepends=True)
    ended = next(n for n, line in enumerate(whole) if _state(line) == 2)
    part = tmp_path / "part"
    part.write_text("".join(whole[: ended + 1]))
    (report,) = reports(part)
    assert report.state == "finished"
    assert report.end is not None


def _state(line):
    return json.loads(line)["libzfs"]["vdev_tree"]["scan_stats"][1]


def test_one_that_ended_badly_is_not_called_safe(report):
    assert "the pool is NOT safe: 3 errors." in markdown(replace(report, errors=3))
    noisy = replace(report, health="ATTENTION", errors=0)
    assert "; the pool is safe, but its devices collect errors." in markdown(noisy)
    assert "It was canceled after" in markdown(replace(report, state="canceled"))


def test_the_chart_is_well_formed(held):
    (report,) = reports(held)
    root = ElementTree.fromstring(svg(report))
    assert root.tag.endswith("svg")
    assert any(child.tag.endswith("polyline") for child in root)
    assert "zfs_scrub_delay=0" in svg(report)


def test_two_scans_compare_figure_by_figure(nvme, held):
    (first,), (second,) = reports(nvme), reports(held)
    found = {d.name: d for d in differences(first, second)}
    assert found["duration"].first == first.duration
    assert found["mean rate"].change < -0.9
    assert found["best rate"].first == max(m.issue_rate or 0.0 for m in first.moments)
    assert found["new disk, mean"].second is None


def advance(session, world, seconds):
    for elapsed in seconds:
        world.advance(float(elapsed))
        session.advance(world.raws())


def test_a_report_goes_on_where_an_earlier_session_left_it(tmp_path):
    tmp_path.chmod(0o700)
    world = World("nvme", 1)
    first = Session(reports=ReportKeeper(ReportStore(tmp_path)))
    advance(first, world, range(0, 100, 5))
    first.close()
    (running,) = ReportStore(tmp_path).reports()
    assert running.state == "running"
    second = Session(reports=ReportKeeper(ReportStore(tmp_path)))
    advance(second, world, range(100, 600, 5))
    second.close()
    (report,) = ReportStore(tmp_path).reports("flash")
    assert report.state == "finished"
    assert report.watched_from == running.watched_from
    (new,) = [device for device in report.devices if device.filled]
    assert new.seconds > running.devices[0].seconds


def test_a_clock_that_was_set_back_costs_no_part_of_a_report(tmp_path):
    tmp_path.chmod(0o700)
    world, keeper = World("nvme", 1), ReportKeeper(ReportStore(tmp_path))
    session, moments, saved = Session(reports=keeper), [], []
    for elapsed in range(0, 300, 5):
        world.advance(float(elapsed))
        ahead = 0.0 if elapsed < 100 else -7200.0
        session.advance([{**raw, "t": raw["t"] + ahead} for raw in world.raws()])
        moments += [len(report.moments) for report in keeper.current()]
        saved += [len(report.moments) for report in ReportStore(tmp_path).reports()]
    assert moments == [*range(1, 61)]
    assert sorted(set(saved)) == [21, 45]
    session.close()


def test_a_report_goes_on_when_its_pool_is_renamed():
    keeper, timeline = ReportKeeper(), PoolTimeline()
    scan = resilver(MIB, start=0)
    for second, name in enumerate(("tank", "tank", "pond", "pond")):
        seen = replace(timeline.push(sample(second, scan)), pool=name)
        keeper.push(
            replace(seen, sample=replace(seen.sample, pool=replace(seen.sample.pool, guid="7")))
        )
    (report,) = keeper.current()
    assert len(report.moments) == 4


class Slow(ReportStore):
    """Reports that are not read in time at first."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.readers: list[str] = []

    def unfinished(self, guid: str) -> tuple[ScanReport, ...]:
        self.readers.append(threading.current_thread().name)
        if len(self.readers) == 1:
            raise StateError("no answer in 2 s")
        return super().unfinished(guid)


async def test_reports_that_are_not_read_in_time_hold_no_key_up_and_go_on_later(tmp_path):
    tmp_path.chmod(0o700)
    world = World("nvme", 1)
    first = Session(reports=ReportKeeper(ReportStore(tmp_path)))
    advance(first, world, range(0, 100, 5))
    first.close()
    (running,) = ReportStore(tmp_path).reports()

    async def taken() -> tuple[Raw, ...]:
        world.advance(next(seconds))
        return world.raws()

    seconds = count(100.0, 5.0)
    slow = Slow(tmp_path)
    keeper = ReportKeeper(slow)
    source = SimpleNamespace(sample=taken, capabilities=Capabilities("libzfs"), aclose=taken)
    feed = SessionFeed(source, Session(reports=keeper), 0.0)
    update = await feed.next()
    assert "flash: reports not read: no answer in 2 s" in update.notes
    assert update.frames[0].problem is None
    for _ in range(2):
        await feed.next()
    assert len(slow.readers) == 2
    assert threading.main_thread().name not in slow.readers
    (report,) = keeper.current()
    assert report.moments[: len(running.moments)] == running.moments
    await feed.aclose()


def test_only_one_of_two_sessions_writes(tmp_path):
    tmp_path.chmod(0o700)
    world, one, other = World("nvme", 1), ReportStore(tmp_path), ReportStore(tmp_path)
    keeper = ReportKeeper(one)
    session = Session(reports=keeper)
    advance(session, world, (0, 5, 10))
    (report,) = keeper.current()
    assert one.save(report)
    assert not other.save(report)
    session.close()
    assert other.save(report)
    other.close()


@rows(
    ("words", "code"),
    [
        (["report"], 3),
        (["report", "--scan", "2"], 3),
        (["report", "--from", "/nonexistent"], 3),
        (["report", "--compare", "/nonexistent", "1"], 3),
        (["report", "--compare", "0", "1"], 2),
        (["report", "--compare", "00", "1"], 2),
        (["report", "--compare", "²", "/nonexistent"], 3),
        (["report", "--compare", "9" * 5000, "/nonexistent"], 3),
    ],
)
def test_what_is_not_there_is_one_line(words, code, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("ZCONSOLE_STATE", str(tmp_path))
    assert main(words) == code
    assert capsys.readouterr().err.count("\n") == 1


@rows(
    "text",
    ["[" * 200_000, '{"t":' + "[" * 200_000, "none", "", "{}", "[]", '{"format": 1}', "null"],
)
def test_a_file_that_is_no_report_is_named(text, tmp_path, capsys):
    odd = tmp_path / "odd"
    odd.write_text(text)
    assert main(["report", "--compare", str(odd), str(odd)]) == 5
    assert capsys.readouterr().err.startswith(f"zconsole: {odd}: not a scan report")


def test_what_was_set_is_told_and_told_apart(report):
    """An experiment changes tunables before its scan begins."""
    assert report.tunables["zfs_vdev_scrub_max_active"] == 3
    assert "## Tunables set" not in markdown(report)
    other = replace(report, tunables={**report.tunables, "zfs_vdev_scrub_max_active": 8})
    assert "| zfs_vdev_scrub_max_active | 8     | 3       |" in markdown(other)
    told = compared(report, other)
    assert "- tunables: zfs_vdev_scrub_max_active 3, then 8" in told
    assert "- tunables:" not in compared(report, report)
    assert loaded(dumped(other), "x").tunables == other.tunables


def test_a_report_of_a_recording_with_a_gap_goes_on_after_it(nvme, tmp_path, capsys):
    lines = nvme.read_text().splitlines(keepends=True)[:20]
    whole, middle = tmp_path / "whole", len(lines) // 2
    whole.write_text("".join(lines))
    damaged = tmp_path / "damaged"
    damaged.write_text("".join([*lines[:middle], "{\n", *lines[middle:]]))
    assert main(["report", "--from", str(damaged)]) == 0
    told = capsys.readouterr()
    assert main(["report", "--from", str(whole)]) == 0
    assert told.out.splitlines()[0] == capsys.readouterr().out.splitlines()[0]
    where = f"{damaged}: line {middle + 1}: not JSON"
    assert told.err == f"zconsole: {where} (1 gap in the recording)\n"
    damaged.write_text("".join(["{\n", *lines]))
    assert main(["report", "--compare", str(damaged), str(whole)]) == 0
    assert capsys.readouterr().err.count("line 1: not JSON (1 gap") == 1
    damaged.write_text("{\n")
    assert main(["report", "--from", str(damaged)]) == 5
    assert capsys.readouterr().out == ""


def test_a_disk_that_does_not_answer_is_said(monkeypatch, capsys):
    answers, in_time = threading.Event(), ReportStore.in_time
    monkeypatch.setattr(record_file, "files_in", lambda *_: answers.wait(60) and [])
    monkeypatch.setattr(ReportStore, "in_time", lambda store, job, _: in_time(store, job, 0.1))
    try:
        assert main(["report", "--list"]) == 1
    finally:
        answers.set()
    assert "no answer in 0.1 s. Check its disk" in capsys.readouterr().err


@rows("words", [["report", "--list"], ["swap", "--json"]])
def test_a_damaged_file_is_named(tmp_path, monkeypatch, capsys, words):
    tmp_path.chmod(0o700)
    monkeypatch.setenv("ZCONSOLE_STATE", str(tmp_path))
    for name in ("report-1-5-scrub.json", "swap-0123abcd.json"):
        (tmp_path / name).write_text("{")
        (tmp_path / name).chmod(0o600)
    main(words)
    said = [line for line in capsys.readouterr().err.splitlines() if str(tmp_path) in line]
    (line,) = said
    assert line.startswith(f"zconsole: {tmp_path}/{words[0]}-")


@rows(("end", "state"), [(600.0, "finished"), (9000.0, "restarted")])
def test_an_end_that_text_tells_closes_the_report_of_its_own_scan(end, state):
    """Text shows no start of a finished scan; another may have begun and ended meanwhile."""
    keeper, timeline = ReportKeeper(), PoolTimeline()
    keeper.push(timeline.push(sample(10, resilver(MIB, function="scrub"))))
    over = Scan("scrub", "finished", end=T + end, duration=600.0, errors=0)
    (report,) = keeper.push(timeline.push(sample(9100, over)))
    assert report.state == state


@rows(("stage", "doubt"), [("issuing", ""), ("scanning", "scanning before, issuing after")])
def test_an_effect_across_stages_is_told_as_unmeasurable(stage, doubt):
    """As the tunables screen and the timeline say it: another stage is not the tunable's doing."""
    keeper, timeline, done = ReportKeeper(), PoolTimeline(), 0.0
    for second in range(400):
        early = second < 200
        done += (5 if early else 25) * MIB
        walked = 20 * done if early and stage == "scanning" else TOTAL
        scan = resilver(done, stage=stage if early else "issuing", scanned_bytes=int(walked))
        tunables = {"zfs_vdev_scrub_max_active": 3 if early else 8}
        keeper.push(timeline.push(replace(sample(second, scan), tunables=tunables)))
    (report,) = keeper.current()
    assert [change.doubt for change in report.changes] == [doubt]
    assert (f"unmeasurable: {doubt}" in markdown(report)) == bool(doubt)
    assert loaded(dumped(report), "x").changes == report.changes
