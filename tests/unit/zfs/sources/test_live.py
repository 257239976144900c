from __future__ import annotations

import asyncio
import errno
import json
import os
import shutil
import sys
import threading
import time
from types import SimpleNamespace

import pytest

from tests.unit.system.test_no_threads import refuse_threads
from tests.unit.zfs.sources.sampled import JSON, PLAIN, config_of, source, spawner
from tests.unit.zfs.sources.source_fakes import (
    CONFIG,
    HANG,
    STATUS,
    TEXT,
    CannedRunner,
    FakeProcess,
    FakeSpawner,
    helper,
    printed,
    set_objset,
    set_state,
    settle,
    system,
)
from zconsole.errors import NotFoundError, UnavailableError
from zconsole.system import daemon_thread
from zconsole.zfs.decode import decode
from zconsole.zfs.sources import live
from zconsole.zfs.sources.kernel.helper import encoded
from zconsole.zfs.sources.live import LOCK_HELD, LiveSource, load_lzc, pool_exists
from zconsole.zfs.sources.zpool import STATUS as STATUS_OF_A_SAMPLE


@pytest.fixture(autouse=True)
def _files_are_waited_for(monkeypatch):
    """Threads of a busy machine are late; a test whose files hang sets its own deadline."""
    monkeypatch.setattr(live, "FILES_DEADLINE", 30.0)


async def test_a_sample_has_what_the_machine_knows_beside_the_pool(tmp_path):
    made = source(tmp_path)
    (raw,) = await made.sample()
    assert (raw["t"], raw["clock"], raw["boot"]) == (1000.0, 50.0, "b00t")
    assert (raw["kstat"], raw["version"], raw["source"]) == ("ONLINE", "2.3.9", "libzfs")
    assert raw["devices"] == {"/dev/sda1": ("sda1",)}
    assert [row[2] for row in raw["diskstats"]] == ["sda1"]
    assert raw["host"]["arc_bytes"] == 4096
    assert raw["message"]["errors"] == []
    (sample,) = decode(raw)
    assert next(sample.pool.root.leaves()).block.names == ("sda1",)
    await made.aclose()


async def test_whether_zed_runs_is_looked_up_now_and_then_while_a_pool_is_not_whole(tmp_path):
    now = [50.0]
    made = source(tmp_path, steady=lambda: now[0])
    for pid, name in ((2, "kthreadd"), (712, "zed")):
        (tmp_path / f"proc/{pid}").mkdir()
        (tmp_path / f"proc/{pid}/comm").write_text(f"{name}\n")
    known = []
    for state, seconds in (("ONLINE", 1), ("DEGRADED", 1), ("DEGRADED", 1), ("DEGRADED", 30)):
        set_state(tmp_path, "tank", state)
        now[0] += seconds
        (raw,) = await made.sample()
        (sample,) = decode(raw)
        known.append((raw["host"].get("zed"), sample.host.zed))
        if state == "DEGRADED":
            (tmp_path / "proc/712/comm").write_text("other\n")
    assert known == [(None, None), (True, True), (True, True), (False, False)]
    await made.aclose()


@pytest.mark.parametrize("state", ["ONLINE", "SUSPENDED"])
async def test_a_disk_that_is_back_under_another_name_is_seen_by_the_next_sample(tmp_path, state):
    """Earlier it was missing for up to half a minute more, until links were looked up again."""
    made = source(tmp_path)
    node, rows = tmp_path / "dev/sda1", tmp_path / "proc/diskstats"
    before = rows.read_text()
    await made.sample()
    set_state(tmp_path, "tank", state)
    node.unlink()
    rows.write_text("")
    (away,) = await made.sample()
    assert not away.get("diskstats")
    (tmp_path / "dev/sdf1").touch()
    (tmp_path / "sys/class/block/sdf1").mkdir(parents=True)
    rows.write_text(before.replace("sda1", "sdf1"))
    await made.sample()  # udev makes the link a little later
    node.symlink_to("sdf1")
    (back,) = await made.sample()
    assert back["devices"] == {"/dev/sda1": ("sdf1",)}
    assert [row[2] for row in back["diskstats"]] == ["sdf1"]
    await made.aclose()


async def test_a_disk_that_came_is_looked_up_for_the_next_sample(tmp_path):
    disks = ["sda1"]

    def answer(pool):
        leaves = [{"type": "disk", "path": f"/dev/{name}"} for name in disks]
        return {"config": {"name": pool, "vdev_tree": {"type": "root", "children": leaves}}}

    made = source(tmp_path, spawn=spawner(answer))
    rows = tmp_path / "proc/diskstats"
    rows.write_text(rows.read_text() + rows.read_text().replace("sda1", "sdb1"))
    (tmp_path / "dev/sdb1").touch()
    (tmp_path / "sys/class/block/sdb1").mkdir()
    await made.sample()
    disks.append("sdb1")
    (raw,) = await made.sample()
    assert raw["devices"] == {f"/dev/{name}": (name,) for name in disks}
    await made.aclose()


@pytest.mark.parametrize("reader", ["json", "text"])
async def test_the_first_sample_says_which_leaves_sit_out(tmp_path, reader):
    leaf = {"guid": 7, "path": "/dev/sda1", "properties": {"sit_out": {"value": "on"}}}
    get = printed(json.dumps({"vdevs": {"sda1": leaf}}))
    answers = {**(PLAIN if reader == "text" else JSON), ("zpool", "get"): get}
    made = source(tmp_path, answers=answers, version="2.4.4-1", prefer=reader)
    (raw,) = await made.sample()
    assert raw["sitting_out"] == [{"guid": "7", "path": "/dev/sda1", "name": "sda1"}]
    (sample,) = decode(raw)
    assert next(sample.pool.root.leaves()).note == "(sitting out)"
    await made.aclose()


class Historian(CannedRunner):
    """Answers ``zpool history``."""

    async def settle(self, patience: float) -> None:
        """Do nothing: nothing is running."""


@pytest.mark.parametrize("reader", ["libzfs", "json", "text"])
async def test_the_first_sample_tells_of_the_last_full_scrub(tmp_path, reader):
    text = "History for 'tank':\n1970-01-01.12:00:00 zpool create tank sda\n"
    historian = Historian({("zpool", "history", "-i", "tank"): printed(text)})
    answers = PLAIN if reader == "text" else JSON
    made = source(tmp_path, answers=answers, prefer=reader, history=historian)
    for _ in range(3):
        (raw,) = await made.sample()
        assert raw["history"]["scrubs"] == []
    assert len(historian.asked) == 1
    await made.aclose()


async def test_a_suspended_pool_is_not_asked_for_its_history(tmp_path):
    historian = Historian({("zpool",): HANG})
    made = source(tmp_path, {"tank": "SUSPENDED"}, history=historian)
    await made.sample()
    assert historian.asked == []
    await made.aclose()


async def test_the_first_sample_does_not_claim_to_know_the_cpu_load(tmp_path):
    made = source(tmp_path)
    stat = tmp_path / "proc/stat"
    stat.write_text("cpu 10 0 10 80 0 0 0 0 0 0\n")
    first = await made.sample()
    stat.write_text("cpu 30 0 30 140 0 0 0 0 0 0\n")
    second = await made.sample()
    assert "cpu" not in first[0]["host"]
    assert second[0]["host"]["cpu"] == pytest.approx(0.4)
    await made.aclose()


@pytest.mark.slow
async def test_kstats_that_do_not_answer_are_no_sign_that_no_pool_is_imported(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(live, "FILES_DEADLINE", 0.2)
    made = source(tmp_path)
    state = tmp_path / "proc/spl/kstat/zfs/tank/state"
    state.unlink()
    os.mkfifo(state)
    with pytest.raises(UnavailableError, match="cannot tell which pools are imported"):
        await made.sample()
    os.close(os.open(state, os.O_RDWR | os.O_NONBLOCK))
    await made.aclose()


async def test_a_moment_without_threads_ends_no_sampling(tmp_path, monkeypatch):
    """The thread that reads files ends between two samples, if these are far apart."""
    monkeypatch.setattr(daemon_thread, "LINGER", 0.0)
    made, now = source(tmp_path, steady=lambda: now), 50.0
    await made.sample()
    with pytest.MonkeyPatch.context() as patch:
        refuse_threads(patch)
        for now in (100.0, 200.0):  # noqa: B007 - the disks below the leaves are due, too
            (raw,) = await made.sample()
            assert (raw["kstat"], raw["source"]) == ("ONLINE", "libzfs")
    set_state(tmp_path, "tank", "DEGRADED")
    (raw,) = await made.sample()
    assert (raw["kstat"], raw["devices"]) == ("DEGRADED", {"/dev/sda1": ("sda1",)})
    await made.aclose()


@pytest.mark.parametrize("names", [(), ("nix",)])
async def test_without_a_thread_nobody_knows_which_pools_there_are(tmp_path, monkeypatch, names):
    made = source(tmp_path, {}, names=names)
    refuse_threads(monkeypatch)
    with pytest.raises(UnavailableError, match="can't start new thread"):
        await made.sample()
    await made.aclose()


async def test_an_unknown_pool_is_not_found(tmp_path):
    made = source(tmp_path, answers={("zpool",): HANG}, names=("tank", "nix"))
    with pytest.raises(NotFoundError, match="no such pool: nix"):
        await made.sample()
    await made.aclose()


async def test_where_kstats_are_hidden_zpool_knows_which_pools_there_are(tmp_path):
    refused = {**JSON, LIST: printed("", 1, "no such pool")}
    made = source(tmp_path, pools={}, answers=refused, names=("nix",))
    with pytest.raises(NotFoundError, match="no such pool: nix"):
        await made.sample()
    await made.aclose()


async def test_a_pool_whose_kstat_is_hidden_is_read_all_the_same(tmp_path):
    made = source(tmp_path, pools={}, names=("hidden",))
    for _ in range(2):
        (hidden,) = await made.sample()
        assert hidden["libzfs"]["name"] == "hidden"
        assert "kstat" not in hidden
    await made.aclose()


LIST = ("zpool", "list", "-H")


async def test_a_zpool_that_names_more_pools_than_a_machine_has_is_refused(tmp_path):
    names = "".join(f"pool{number}\n" for number in range(200_000))
    made = source(tmp_path, answers={LIST: printed(names)})
    shutil.rmtree(tmp_path / "proc/spl")  # without kstats, zpool is asked
    with pytest.raises(UnavailableError, match="zpool list names more than 1000 pools"):
        await asyncio.wait_for(made.sample(), 30.0)
    await made.aclose()


NO_PROCESS = {("zpool",): OSError(errno.EAGAIN, "Resource temporarily unavailable")}


@pytest.mark.parametrize("answer", [{("zpool",): HANG}, {}, NO_PROCESS])
async def test_a_name_nobody_can_confirm_is_unavailable(tmp_path, answer):
    made = source(tmp_path, pools={}, answers=answer, names=("nix",))
    with pytest.raises(UnavailableError, match="nix"):
        await made.sample()
    await made.aclose()


async def test_without_kstats_a_list_that_hangs_delays_a_sample_once_and_is_not_asked_again(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(live, "FILES_DEADLINE", 0.05)
    made = source(tmp_path, answers={**JSON, LIST: printed("tank\n")}, deadline=30)
    runner = made._system.runner
    shutil.rmtree(tmp_path / "proc/spl")
    await made.sample()
    runner.answers[LIST] = HANG
    for _ in range(3):
        (raw,) = await made.sample()
        assert raw["source"] == "json"
    calls = zip(runner.asked, runner.deadlines, strict=True)
    lists = [deadline for argv, deadline in calls if argv[:3] == LIST]
    assert [deadline < 1 for deadline in lists] == [False, True]
    runner.stuck = False
    runner.answers[LIST] = printed("solo\ntank\n")
    assert [raw["pool"] for raw in await made.sample()] == ["solo", "tank"]
    await made.aclose()


async def test_without_kstats_a_first_list_that_hangs_is_never_an_answer(tmp_path):
    made = source(tmp_path, answers={**JSON, LIST: HANG})
    shutil.rmtree(tmp_path / "proc/spl")
    for _ in range(2):
        with pytest.raises(UnavailableError, match="cannot tell which pools are imported"):
            await made.sample()
    await made.aclose()


async def test_a_zpool_that_does_not_tell_its_version_in_time_is_unavailable(tmp_path):
    made = source(tmp_path, answers={("zpool",): HANG})
    (tmp_path / "sys/module/zfs/version").unlink()
    with pytest.raises(UnavailableError, match="cannot tell the version of ZFS"):
        await made.sample()
    await made.aclose()


async def test_no_zfs_says_so(tmp_path):
    with pytest.raises(UnavailableError, match=r"ZFS not found.*Try: zconsole demo"):
        await LiveSource((), system=system(tmp_path)).sample()


async def test_a_device_nobody_may_open_says_so(tmp_path, monkeypatch):
    made = source(tmp_path)
    monkeypatch.setattr(live.os, "access", lambda path, mode: False)
    with pytest.raises(UnavailableError, match="permission denied"):
        await made.sample()


@pytest.mark.parametrize("state", ["SUSPENDED", "UNAVAIL"])
async def test_a_pool_whose_word_is_bad_is_not_asked_once_it_is_known(tmp_path, state):
    asked = []
    spawn = spawner(lambda pool: asked.append(pool) or config_of(pool))
    made = source(tmp_path, {"tank": "ONLINE", "fine": "ONLINE"}, spawn=spawn)
    await made.sample()
    set_state(tmp_path, "tank", state)
    fine, tank = await made.sample()
    assert fine["libzfs"]["name"] == "fine"
    assert state in tank["problem"]
    assert tank["kstat"] == state
    assert asked == ["fine", "tank", "fine"]
    assert decode(tank)[0].kstat == state
    await made.aclose()


async def test_a_pool_suspended_before_it_was_seen_is_asked_once_for_its_tree(tmp_path):
    asked = []
    spawn = spawner(lambda pool: asked.append(pool) or config_of(pool))
    made = source(tmp_path, {"tank": "SUSPENDED"}, spawn=spawn)
    runner = made._system.runner
    (first,), (second,) = await made.sample(), await made.sample()
    assert first["kstat"] == "SUSPENDED"
    assert first["libzfs"]["vdev_tree"]["children"]
    assert "SUSPENDED" in second["problem"]
    assert asked == ["tank"]
    assert not any(argv[:2] == ("zpool", "status") for argv in runner.asked)
    await made.aclose()


@pytest.mark.parametrize("reader", ["libzfs", "json", "text"])
async def test_a_disk_lookup_that_hangs_keeps_no_state_word_from_being_read(
    tmp_path, monkeypatch, reader
):
    """As for a file on a dead NFS server, which text does not tell from a device."""
    gate = threading.Event()
    monkeypatch.setattr(live, "diskstats_names", lambda *_: gate.wait(60) and ())
    monkeypatch.setattr(live, "FILES_DEADLINE", 0.2)
    paths = {("zpool", "status", "-P"): printed(TEXT.replace("  sda1", "  /dev/sda1"))}
    answers = {**PLAIN, **paths} if reader == "text" else JSON
    made = source(tmp_path, answers=answers, prefer=reader, deadline=30)
    assert (await made.sample())[0]["source"] == reader
    set_state(tmp_path, "tank", "SUSPENDED")
    set_state(tmp_path, "new", "SUSPENDED")
    async with asyncio.timeout(30):
        while len(raws := await made.sample()) < 2:
            await settle()
    asked = len(made._system.runner.asked)
    for raw in (*raws, *await made.sample()):
        assert raw["kstat"] == "SUSPENDED"
    assert len(made._system.runner.asked) == asked
    gate.set()
    await made.aclose()


async def test_a_suspended_pool_is_not_asked_by_zpool_if_libzfs_cannot_read_it(tmp_path):
    spawn = spawner(lambda pool: {"error": "vdev_stats has 3 entries"})
    made = source(tmp_path, {"tank": "SUSPENDED"}, spawn=spawn)
    for _ in range(2):
        (raw,) = await made.sample()
        assert raw["problem"] == "the pool is SUSPENDED: zpool would hang, so it is not asked"
    assert made._system.runner.asked == []
    set_state(tmp_path, "tank", "ONLINE")
    (raw,) = await made.sample()
    assert raw["source"] == "json"
    await made.aclose()


async def test_a_suspended_pool_that_holds_its_first_read_up_delays_nobody_for_long(
    tmp_path, monkeypatch
):
    monkeypatch.setattr("zconsole.zfs.sources.pool_poller.READ_ONCE_DEADLINE", 0.05)
    spawn = spawner(lambda pool: None if pool == "tank" else config_of(pool))
    made = source(tmp_path, {"tank": "SUSPENDED", "fine": "ONLINE"}, spawn=spawn, deadline=30)
    fine, tank = await made.sample()
    assert fine["libzfs"]["name"] == "fine"
    assert "SUSPENDED" in tank["problem"]
    await made.aclose()


async def test_a_pool_that_recovers_is_read_again(tmp_path):
    made = source(tmp_path, {"tank": "SUSPENDED"})
    await made.sample()
    assert "problem" in (await made.sample())[0]
    set_state(tmp_path, "tank", "ONLINE")
    assert "libzfs" in (await made.sample())[0]
    await made.aclose()


async def test_an_exported_pool_is_said_to_be_gone_and_a_new_one_appears(tmp_path):
    made = source(tmp_path)
    await made.sample()
    folder = tmp_path / "proc/spl/kstat/zfs/tank"
    (folder / "state").unlink()
    folder.rmdir()
    set_state(tmp_path, "new", "ONLINE")
    new, tank = await made.sample()
    assert new["libzfs"]["name"] == "new"
    assert (tank["problem"], tank["absent"]) == ("no longer imported", True)
    set_state(tmp_path, "tank", "SUSPENDED")
    _, tank = await made.sample()
    assert "absent" not in tank
    await made.aclose()


async def test_what_an_import_looks_at_is_no_pool(tmp_path):
    made = source(tmp_path)
    set_state(tmp_path, "$import-ffff8948cf8ac8c0-old", "ACTIVE")
    assert [raw["pool"] for raw in await made.sample()] == ["tank"]
    await made.aclose()


async def test_a_pool_that_was_gone_before_it_was_read_is_forgotten(tmp_path):
    spawn = spawner(lambda pool: {"gone": True} if pool == "brief" else config_of(pool))
    made = source(tmp_path, spawn=spawn)
    await made.sample()
    set_state(tmp_path, "brief", "TRANSITIONING")
    assert "brief" in {raw["pool"] for raw in await made.sample()}
    folder = tmp_path / "proc/spl/kstat/zfs/brief"
    (folder / "state").unlink()
    folder.rmdir()
    await made.sample()
    assert [raw["pool"] for raw in await made.sample()] == ["tank"]
    await made.aclose()


async def test_a_stuck_pool_keeps_its_word_and_the_others_go_on(tmp_path):
    spawn = spawner(lambda pool: None if pool == "stuck" else config_of(pool))
    made = source(tmp_path, {"stuck": "ONLINE", "fine": "ONLINE"}, spawn=spawn, deadline=0.02)
    fine, stuck = await made.sample()
    assert "libzfs" in fine
    assert "no answer" in stuck["problem"]
    helpers = len(spawn.started)
    for _ in range(3):
        fine, stuck = await made.sample()
        assert "libzfs" in fine
        assert "no answer" in stuck["problem"]
    started = [each for each in spawn.started[helpers:] if not each.abandoned]
    assert len(started) == 1, "a hung pool must not be asked again while its call is stuck"
    await made.aclose()


async def test_when_no_pool_answers_the_lock_is_named(tmp_path):
    spawn = spawner(lambda pool: None)
    made = source(tmp_path, {"a": "ONLINE", "b": "ONLINE"}, spawn=spawn, deadline=0.02)
    await made.sample()
    raws = await made.sample()
    assert [raw["problem"] for raw in raws] == [LOCK_HELD, LOCK_HELD]
    assert all(raw["kstat"] == "ONLINE" for raw in raws)
    await made.aclose()


@pytest.mark.parametrize("other", [{}, {"other": "ONLINE"}])
async def test_a_suspended_pool_whose_call_is_stuck_is_no_sign_of_the_lock(tmp_path, other):
    """It waits for its own disks: a healthy pool that hangs is what shows the lock."""
    answers = {**JSON, (*STATUS_OF_A_SAMPLE, "tank"): HANG}
    pools = {"tank": "ONLINE", **other}
    made = source(tmp_path, pools, answers, names=("tank",), prefer="json")
    await made.sample()
    set_state(tmp_path, "tank", "SUSPENDED")
    for _ in range(3):
        (raw,) = await made.sample()
        await settle()
        assert raw["problem"] == "the pool is SUSPENDED: zpool would hang, so it is not asked"
    await made.aclose()


async def test_one_stuck_pool_alone_is_told_from_the_lock_by_asking_another(tmp_path):
    spawn = spawner(lambda pool: None if pool == "stuck" else config_of(pool))
    pools = {"stuck": "ONLINE", "other": "ONLINE"}
    made = source(tmp_path, pools, spawn=spawn, deadline=0.02, names=("stuck",))
    for _ in range(3):
        (raw,) = await made.sample()
        await settle()
    assert raw["problem"] != LOCK_HELD
    await made.aclose()


async def test_a_slow_pool_is_waited_for_first_and_later_shown_when_it_comes(tmp_path, monkeypatch):
    monkeypatch.setattr(live, "PATIENCE", 0.01)
    asked = asyncio.Event()
    process = helper(lambda pool: asked.set())
    spawn = FakeSpawner({"helper": lambda: process, "zpool": FakeProcess})
    made = source(tmp_path, spawn=spawn, deadline=30)
    answer = encoded({"pool": "tank", **config_of("tank")})
    first = asyncio.create_task(made.sample())
    await asyncio.wait_for(asked.wait(), 30)
    assert not first.done()
    process.say(answer)
    assert "libzfs" in (await first)[0]
    assert "no answer" in (await made.sample())[0]["problem"]
    process.say(answer)
    while "libzfs" not in (await made.sample())[0]:
        await settle()
    await made.aclose()


async def test_a_sample_says_when_its_reading_began_and_its_disks_were_read(tmp_path, monkeypatch):
    """However late the reading is shown: counters of disks are then newer."""
    monkeypatch.setattr(live, "PATIENCE", 0.01)
    asked = asyncio.Event()
    process = helper(lambda pool: asked.set())
    made = source(
        tmp_path,
        spawn=FakeSpawner({"helper": lambda: process, "zpool": FakeProcess}),
        deadline=30,
        steady=lambda: now,
    )
    answer = encoded({"pool": "tank", **config_of("tank")})
    now = 50.0
    first = asyncio.create_task(made.sample())
    await asyncio.wait_for(asked.wait(), 30)
    process.say(answer)
    (sample,) = decode((await first)[0])
    assert (sample.pool.name, sample.began) == ("tank", 50.0)
    assert next(sample.pool.root.leaves()).block.clock == 50.0
    now = 60.0
    (silent,) = decode((await made.sample())[0])
    assert (silent.text[:9], silent.began) == ("no answer", 60.0)
    assert silent.block["/dev/sda1"].clock == 60.0
    now = 70.0
    process.say(answer)
    await settle()
    now = 80.0
    (late,) = decode((await made.sample())[0])
    assert (late.clock, late.began) == (70.0, 60.0)
    assert next(late.pool.root.leaves()).block.clock == 80.0
    await made.aclose()


async def test_closing_does_not_wait_for_a_stuck_call(tmp_path):
    made = source(tmp_path, spawn=spawner(lambda pool: None), deadline=60)
    sampling = asyncio.create_task(made.sample())
    await asyncio.sleep(0.05)
    began = time.monotonic()
    sampling.cancel()
    await made.aclose()
    assert time.monotonic() - began < 30
    assert made._system.spawner.settled


def test_openzfs_own_module_is_asked_in_bytes():
    asked = []
    module = SimpleNamespace(lzc_exists=lambda name: asked.append(name) or True)
    assert pool_exists(module, "ta\udcff") is True
    assert asked == [b"ta\xff"]


@pytest.mark.parametrize("name", ["tank/data", "tank@snapshot", "tank#mark"])
def test_a_dataset_is_no_pool(name):
    assert pool_exists(SimpleNamespace(lzc_exists=lambda _: True), name) is False


def test_without_it_or_when_it_fails_nothing_is_known():
    def fail(_name):
        raise OSError("no libzfs_core.so")

    assert pool_exists(None, "tank") is None
    assert pool_exists(SimpleNamespace(lzc_exists=fail), "tank") is None


def test_the_package_of_that_name_on_pypi_is_not_taken(monkeypatch):
    monkeypatch.setitem(sys.modules, "libzfs_core", SimpleNamespace())
    assert load_lzc() is None
    ours = SimpleNamespace(lzc_pool_checkpoint=None)
    monkeypatch.setitem(sys.modules, "libzfs_core", ours)
    assert load_lzc() is ours


def scrubbing(reader, is_running=True):
    """Return the options of a source that reads a pool with a scrub."""
    if reader == "libzfs":
        tree = {**CONFIG["vdev_tree"], "scan_stats": [1, 2 - is_running, 100, *[0] * 19]}
        return {"spawn": spawner(lambda pool: {"config": {**CONFIG, "vdev_tree": tree}})}
    scan = {"function": "SCRUB", "state": "SCANNING" if is_running else "FINISHED"}
    pool = {**STATUS["pools"]["tank"], "scan_stats": scan}
    said = "in progress since Sun Nov 22 10:00:00 2026" if is_running else "canceled"
    lines = f" state: ONLINE\n  scan: scrub {said}\n"
    answers = {
        "json": {
            **JSON,
            ("zpool", "status", "-jP"): printed(json.dumps({"pools": {"tank": pool}})),
        },
        "text": {**PLAIN, ("zpool", "status"): printed(TEXT.replace(" state: ONLINE\n", lines))},
    }
    return {"answers": answers[reader], "prefer": reader}


@pytest.mark.parametrize("reader", ["libzfs", "json", "text"])
@pytest.mark.parametrize("is_running", [True, False])
async def test_the_io_of_datasets_is_read_every_few_seconds_of_a_scan(tmp_path, reader, is_running):
    now = [50.0]
    made = source(tmp_path, steady=lambda: now[0], **scrubbing(reader, is_running))
    set_objset(tmp_path, "tank", "tank/vm")
    found = []
    for now[0] in (50.0, 51.0, 55.0):
        (raw,) = await made.sample()
        assert raw["source"] == reader
        found.append([row["dataset_name"] for row in raw.get("objsets", ())])
    assert found == ([["tank/vm"], [], ["tank/vm"]] if is_running else [[], [], []])
    await made.aclose()


async def test_the_datasets_of_a_suspended_pool_are_not_read(tmp_path):
    made = source(tmp_path, {"tank": "SUSPENDED"}, **scrubbing("libzfs"))
    set_objset(tmp_path, "tank", "tank/vm")
    (raw,) = await made.sample()
    assert raw["libzfs"]
    assert "objsets" not in raw
    await made.aclose()


async def test_datasets_that_take_long_are_shown_later_and_keep_no_disk_from_being_found(
    tmp_path, monkeypatch
):
    gate, now, read = threading.Event(), [50.0], live.DatasetMeter.read
    monkeypatch.setattr(live.DatasetMeter, "read", lambda *about: gate.wait(60) and read(*about))
    made = source(tmp_path, steady=lambda: now[0], **scrubbing("libzfs"))
    set_objset(tmp_path, "tank", "tank/vm")
    with monkeypatch.context() as patch:
        patch.setattr(live, "FILES_DEADLINE", 0.2)
        (raw,) = await made.sample()
    assert "objsets" not in raw
    now[0] += 31.0  # the disks are looked up again
    (raw,) = await made.sample()
    assert raw["devices"] == {"/dev/sda1": ("sda1",)}
    gate.set()
    async with asyncio.timeout(30):
        while "objsets" not in raw:
            await asyncio.sleep(0.01)
            (raw,) = await made.sample()
    assert [row["dataset_name"] for row in raw["objsets"]] == ["tank/vm"]
    (raw,) = await made.sample()
    assert "objsets" not in raw
    await made.aclose()


async def test_datasets_that_cannot_be_read_in_time_hold_no_sample_up(tmp_path, monkeypatch):
    gate = threading.Event()
    monkeypatch.setattr(live.DatasetMeter, "read", lambda *_: gate.wait(60) and [])
    made = source(tmp_path, **scrubbing("libzfs"))
    monkeypatch.setattr(live, "FILES_DEADLINE", 0.2)
    for _ in range(2):
        (raw,) = await made.sample()
        assert raw["libzfs"]
        assert "objsets" not in raw
    gate.set()
    await made.aclose()
