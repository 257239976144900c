from __future__ import annotations

import asyncio
import json
from array import array
from typing import Any

from tests.table import rows
from tests.unit.zfs.sources.source_fakes import (
    CONFIG,
    HANG,
    STATUS,
    TEXT,
    CannedRunner,
    FakeProcess,
    FakeSpawner,
    printed,
    settle,
)
from zconsole.system.host import Clocks
from zconsole.system.process import Completed
from zconsole.zfs.sources import occasional
from zconsole.zfs.sources.occasional import StatusMessageReader
from zconsole.zfs.sources.pool_poller import leaf_paths
from zconsole.zfs.sources.reader import has_json, zpool_version
from zconsole.zfs.sources.zpool import JsonReader, OutputStream, TextReader, config_names

SHORT = json.loads(json.dumps(STATUS).replace('"name": "/dev/sda1"', '"name": "sda1"'))
SHORT["pools"]["tank"]["vdevs"]["tank"]["vdevs"] = {
    "sda1": {"name": "sda1", "path": "/dev/sda1", "state": "ONLINE"}
}
FULL_TEXT = TEXT.replace("  sda1 ", "  /dev/sda1 ")


def clocks(now: list[float]) -> Clocks:
    return Clocks(wall=lambda: now[0], steady=lambda: now[0])


def json_runner(**pool) -> CannedRunner:
    status = {"pools": {"tank": {**STATUS["pools"]["tank"], **pool}}}
    return CannedRunner(
        {
            ("zpool", "status", "-jP"): printed(json.dumps(status)),
            ("zpool", "status", "-j", "tank"): printed(json.dumps(SHORT)),
            ("zpool", "list"): printed('{"pools": {"tank": {}}}'),
        }
    )


async def test_json_brings_names_and_now_and_then_the_listing():
    now, runner = [0.0], json_runner()
    iostat = FakeProcess(["100", "100", "tank\t1", "/dev/sda1\t2", "101"])
    reader = JsonReader(runner, FakeSpawner({"iostat": lambda: iostat}), 1.0, clocks(now))
    first = await reader.read("tank", 5)
    await settle()
    for now[0] in (10.0, 29.0, 31.0):
        second = await reader.read("tank", 5)
    assert first["names"] == {"/dev/sda1": "sda1"}
    assert second["iostat"] == "tank\t1\n/dev/sda1\t2"
    asked = [argv[1:3] for argv in runner.asked]
    assert asked.count(("list", "-vjP")) == 2
    assert asked.count(("status", "-j")) == 1
    assert asked.count(("status", "-jP")) == 4
    await reader.aclose()
    assert iostat.abandoned


async def test_a_listing_that_takes_too_long_costs_no_sample_and_is_tried_again_later():
    now, runner = [0.0], json_runner()
    reader = JsonReader(runner, FakeSpawner({}), 1.0, clocks(now))
    whole, listing = runner.answers[("zpool", "list")], {"pools": {"tank": {}}}
    found = []
    for now[0], answer in ((0.0, HANG), (1.0, HANG), (30.0, whole), (60.0, HANG)):
        runner.answers[("zpool", "list")] = answer
        runner.stuck = now[0] < 30.0
        raw = await reader.read("tank", 5)
        assert raw["status"]
        found.append(raw.get("list"))
    assert found == [None, None, listing, listing]
    runner.stuck = True
    for now[0] in (90.0, 120.0):
        await reader.read("tank", 5)
    assert len([argv for argv in runner.asked if argv[1] == "list"]) == 3
    await reader.aclose()


@rows(("errors", "verbose"), [(0, False), (3, True), (10_000, False)])
async def test_names_of_damaged_files_are_asked_for_when_there_are_few(errors, verbose):
    runner = json_runner(error_count=errors)
    reader = JsonReader(runner, FakeSpawner({}), 1.0)
    await reader.read("tank", 5)
    await reader.read("tank", 5)
    last = [argv for argv in runner.asked if argv[2] == "-jP"][-1]
    assert ("-v" in last) is verbose


async def test_json_cut_off_amid_a_name_is_asked_for_without_names():
    runner = json_runner(error_count=3)
    names = ("zpool", "status", "-jP", "--json-int", "-t", "-i", "-v")
    runner.answers[names] = printed('{"pools": {"tank": {"errlist": ["/tank/bad-')
    reader = JsonReader(runner, FakeSpawner({}), 1.0)
    for _ in range(2):
        found = await reader.read("tank", 5)
        assert found["status"]["pools"]["tank"]["error_count"] == 3


async def test_text_pairs_paths_with_names_and_asks_again_when_rows_change():
    runner = CannedRunner(
        {
            ("zpool", "status"): printed(TEXT),
            ("zpool", "status", "-P"): printed(FULL_TEXT),
            ("zpool", "list"): printed("NAME SIZE\n"),
        }
    )
    reader = TextReader(runner, FakeSpawner({}), 1.0, "0.6.5", clocks([0.0]))
    assert (await reader.read("tank", 5))["names"] == {"/dev/sda1": "sda1"}
    await reader.read("tank", 5)
    assert [argv[2] for argv in runner.asked].count("-P") == 1
    two = TEXT.replace("\n\nerrors", "\n\t  sdb1      ONLINE       0     0     0\n\nerrors")
    runner.answers[("zpool", "status")] = printed(two)
    assert "names" not in await reader.read("tank", 5)
    assert [argv[2] for argv in runner.asked].count("-P") == 2


async def test_every_leafs_wait_and_queues_are_followed():
    """Without the interval since boot (-y), exact (-p), and for JSON by path (-P)."""
    spawner = FakeSpawner({"iostat": FakeProcess})
    await JsonReader(json_runner(), spawner, 2.0).read("tank", 5)
    runner = CannedRunner({("zpool", "status"): printed(TEXT), ("zpool", "list"): printed("")})
    for version in ("2.3.9", "0.7.9"):
        await TextReader(runner, spawner, 2.0, version, clocks([0.0])).read("tank", 5)
    every = ("-T", "u", "tank", "2")
    flags = ("-HpPvlqy", "-Hpvlqy", "-v")
    assert spawner.asked == [("zpool", "iostat", each, *every) for each in flags]


@rows(("version", "flags"), [("0.7.9", ()), ("0.8.0", ("-s", "-p"))])
async def test_text_counts_exactly_and_tells_slow_requests_where_it_can(version, flags):
    runner = CannedRunner({("zpool", "status"): printed(TEXT), ("zpool", "list"): printed("")})
    await TextReader(runner, FakeSpawner({}), 1.0, version, clocks([0.0])).read("tank", 5)
    assert [each for each in runner.asked[0] if each in ("-s", "-p")] == list(flags)


@rows(("version", "expected"), [("2.1.11", "\t9"), ("2.3.9", None)])
async def test_remaining_bytes_are_followed_where_only_text_exists(version, expected):
    running = TEXT.replace("config:", "  scan: scrub in progress since Fri Nov 20 11:53:42 2026\n")
    answers = {("zpool", "status"): printed(running), ("zpool", "list"): printed("")}
    makers = {"wait": lambda: FakeProcess(["\t10", "\t9"]), "iostat": FakeProcess}
    reader = TextReader(CannedRunner(answers), FakeSpawner(makers), 1.0, version, clocks([0.0]))
    await reader.read("tank", 5)
    await settle()
    assert (await reader.read("tank", 5)).get("wait") == expected
    await reader.aclose()


@rows("ends", [True, False])
async def test_remaining_bytes_of_an_earlier_scan_are_not_those_of_the_next(ends):
    """The command exits when nothing is left to wait for, or goes on through the next scan."""

    def scanning(since: str) -> Completed:
        return printed(TEXT.replace("config:", f"  scan: scrub in progress since {since}\nconfig:"))

    answers = {("zpool", "status"): scanning("12:00"), ("zpool", "list"): printed("")}
    runner, printing = CannedRunner(answers), iter((["\t10"], ["\t900"]))
    makers = {"wait": lambda: FakeProcess(next(printing), ends=ends), "iostat": FakeProcess}
    reader = TextReader(runner, FakeSpawner(makers), 1.0, "2.1.11", clocks([0.0]))
    found = list[Any]()
    for since in ("12:00", "12:00", "12:01", "12:01"):
        runner.answers["zpool", "status"] = scanning(since)
        found.append((await reader.read("tank", 5)).get("wait"))
        await settle()
    assert found == [None, "\t10", None, "\t900"]
    await reader.aclose()


def test_config_names_stop_at_the_table_and_keep_blanks_in_names():
    text = TEXT.replace("  sda1  ", "  /var/a b/vdev  ") + "\t/tank/damaged file\n"
    assert list(config_names(text)) == ["tank", "/var/a b/vdev"]


def test_leaf_paths_of_every_form():
    assert list(leaf_paths({"libzfs": CONFIG})) == ["/dev/sda1"]
    assert list(leaf_paths({"status": STATUS})) == ["/dev/sda1"]
    assert list(leaf_paths({"text": TEXT, "names": {"/dev/sda1": "sda1"}})) == ["/dev/sda1"]


def test_a_file_is_no_disk_that_would_be_looked_for_in_each_sample():
    file = {"type": "file", "vdev_type": "file", "path": "/var/tmp/disk"}
    assert not list(leaf_paths({"libzfs": {"vdev_tree": {"children": [file]}}}))
    assert not list(leaf_paths({"status": {"vdevs": {"/var/tmp/disk": file}}}))


class TestFollower:
    async def follow(self, process: FakeProcess, timed: bool) -> OutputStream:
        follower = OutputStream(FakeSpawner({"x": lambda: process}), ("x",), timed)
        await follower.newest(10)
        await settle()
        return follower

    async def test_a_block_counts_when_the_next_begins_or_it_is_as_long(self):
        process = FakeProcess(["1", "1", "a", "b"])
        follower = await self.follow(process, timed=True)
        process.say("2", "c")
        await settle()
        assert await follower.newest(10) == "a\nb"
        process.say("d")
        await settle()
        assert await follower.newest(10) == "c\nd"
        follower.close()

    @rows(
        "lines, timed",
        [(["1", "a"], False), (["1", "1", "a"], True), (["1", "1", "a", "b", "2", "c"], True)],
    )
    async def test_a_block_counts_only_while_it_is_new(self, lines, timed):
        follower = await self.follow(FakeProcess(lines), timed)
        assert await follower.newest(10) in ("a", "a\nb")
        await asyncio.sleep(0.02)
        assert await follower.newest(0.01) is None
        follower.close()

    async def test_a_command_that_ended_is_not_started_again_at_once(self):
        spawner = FakeSpawner({"x": lambda: FakeProcess(["1"], ends=True)})
        follower = OutputStream(spawner, ("x",), timed=False)
        for _ in range(3):
            await follower.newest(10)
            await settle()
        assert len(spawner.started) == 1
        follower.close()

    async def test_a_command_that_fell_silent_is_started_again(self, monkeypatch):
        """After an export, `zpool iostat POOL 1` prints nothing more but keeps running."""
        spawner = FakeSpawner({"x": lambda: FakeProcess(["1", "a"])})
        follower = OutputStream(spawner, ("x",), timed=True)
        for _ in range(3):
            await follower.newest(0)
            await settle()
        assert len(spawner.started) == 1
        monkeypatch.setattr("zconsole.zfs.sources.zpool.SILENT", 0.0)
        await follower.newest(0)
        assert len(spawner.started) == 2
        follower.close()

    @rows("first, line", [((), "x" * 1000), (("1", "1"), "x" * 1000), ((), "")])
    async def test_a_block_without_end_is_not_kept(self, monkeypatch, first, line):
        monkeypatch.setattr("zconsole.zfs.sources.zpool.MOST_BLOCK", 2**16)
        process = FakeProcess([*first, *[line] * 3_000])
        follower = await self.follow(process, timed=True)
        async with asyncio.timeout(60):
            while not process.abandoned:
                await settle()
        assert (follower._block, follower._last) == ([], ())
        follower.close()

    async def test_a_command_that_is_not_there_gives_nothing(self):
        follower = OutputStream(FakeSpawner({}), ("x",), timed=True)
        assert await follower.newest(10) is None


FORM = {"libzfs": CONFIG}


def form(errors: int) -> dict[str, Any]:
    return {"libzfs": {**CONFIG, "error_count": errors}}


class TestMessage:
    STATUS = json.dumps(
        {"pools": {"tank": {**STATUS["pools"]["tank"], "status": "Bad.\n", "action": "Mend."}}}
    )

    def keeper(self, answer) -> tuple[StatusMessageReader, CannedRunner]:
        runner = CannedRunner({("zpool",): answer})
        return StatusMessageReader(runner, "tank", "2.3.9", 5), runner

    async def test_it_is_asked_for_once_while_nothing_changes(self):
        keeper, runner = self.keeper(printed(self.STATUS))
        await keeper.first(5)
        for _ in range(5):
            found = keeper.newest(FORM)["message"]
            await settle()
        assert (found["status"], found["action"], found["errors"]) == ("Bad.", "Mend.", [])
        assert len(runner.asked) == 1

    async def test_a_changed_condition_asks_again_but_not_at_once(self, monkeypatch):
        keeper, runner = self.keeper(printed(self.STATUS))
        await keeper.first(5)
        keeper.newest(FORM)
        keeper.newest(form(1))
        await settle()
        assert len(runner.asked) == 1
        monkeypatch.setattr(occasional, "AT_MOST_EVERY", 0.0)
        keeper.newest(form(1))
        await settle()
        assert len(runner.asked) == 2

    async def test_text_is_asked_for_where_a_name_cuts_the_json_off(self):
        listed = "errors: Permanent errors have been detected in the following files:\n\n"
        text = TEXT.replace("errors: No known data errors\n", listed + "        /tank/bad-\udcff\n")
        keeper, runner = self.keeper(printed(self.STATUS[:-9]))
        runner.answers["zpool", "status", "-v"] = printed(text)
        await keeper.first(5)
        assert keeper.newest(FORM)["message"]["errors"] == ["/tank/bad-\udcff"]

    @rows("answer", [printed("junk"), printed("", 1, "no"), printed("{}")])
    async def test_a_failing_command_is_no_message(self, answer):
        keeper, _ = self.keeper(answer)
        await keeper.first(5)
        assert keeper.newest(FORM) == {}

    async def test_a_hung_command_is_not_started_again(self, monkeypatch):
        monkeypatch.setattr(occasional, "AT_MOST_EVERY", 0.0)
        keeper, runner = self.keeper(HANG)
        await keeper.first(5)
        for count in range(3):
            assert keeper.newest(form(count)) == {}
            await settle()
        assert len(runner.asked) == 1
        runner.stuck = False
        keeper.newest(form(9))
        await settle()
        assert len(runner.asked) == 2

    async def test_before_23_text_is_asked_for(self):
        text = TEXT.replace("config:", "status: Bad.\naction: Mend.\nconfig:")
        runner = CannedRunner({("zpool", "status", "-v"): printed(text)})
        keeper = StatusMessageReader(runner, "tank", "2.1.11", 5)
        await keeper.first(5)
        assert keeper.newest(FORM)["message"]["status"] == "Bad."

    def test_the_condition_ignores_counters_that_only_grow(self):
        tree = CONFIG["vdev_tree"]
        leaf = tree["children"][0]

        def with_stats(*changes: tuple[int, int]) -> dict:
            stats = list(leaf["vdev_stats"])
            for index, value in changes:
                stats[index] = value
            below = [{**leaf, "vdev_stats": stats}]
            return {"libzfs": {**CONFIG, "vdev_tree": {**tree, "children": below}}}

        condition = self.keeper("")[0].condition
        assert condition(with_stats((9, 500), (20, 3))) == condition(with_stats((20, 4)))
        assert condition(with_stats((20, 1))) != condition(FORM)
        assert condition(with_stats((1, 5))) != condition(FORM)
        assert condition(with_stats((33, 1))) != condition(FORM)

    def test_the_condition_is_the_same_of_packed_arrays(self):
        tree = CONFIG["vdev_tree"]
        arrays = {k: array("Q", tree[k]).tobytes() for k in ("vdev_stats", "scan_stats")}
        packed = {"libzfs": {**CONFIG, "vdev_tree": {**tree, **arrays}}}
        condition = self.keeper("")[0].condition
        assert condition(packed) == condition(FORM)


@rows(
    ("output", "version"),
    [
        ("zfs-2.1.11-1\nzfs-kmod-2.1.9-1\n", "2.1.9"),
        ("zfs-2.2.2\n", "2.2.2"),
        ("zfs-0.8.3-1\nzfs-kmod-v2.0.0-rc1\n", "2.0.0"),
        ("junk", None),
    ],
)
async def test_the_version_is_the_kernels(output, version):
    assert await zpool_version(CannedRunner({("zpool",): printed(output)}), 5) == version


def test_json_begins_with_23():
    assert [has_json(v) for v in ("2.2.9", "2.3.0", "2.10.1", None)] == [False, True, True, True]
