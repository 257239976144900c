"""The console's rebalance backend on real files: sizes, plans, and running jobs."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import time
from collections.abc import AsyncIterator, Callable
from contextlib import closing
from pathlib import Path

import pytest

from tests.table import rows
from zconsole.errors import ZconsoleError
from zconsole.rebalance import backend as seam
from zconsole.rebalance.backend import Counted, DirectoryListing, JobView, Measured
from zconsole.rebalance.job import job_store
from zconsole.rebalance.job.control import pool_of
from zconsole.rebalance.job.creation import create
from zconsole.rebalance.live_backend import LiveRebalance
from zconsole.rebalance.planning import sizes
from zconsole.rebalance.planning.facts import Dataset, FactsReader, JobDirectory
from zconsole.rebalance.planning.plan_document import PlanDocument
from zconsole.rebalance.planning.settings import Limits, Settings
from zconsole.rebalance.planning.sizes import Measurer
from zconsole.system.async_process import ProcessRunner
from zconsole.system.mounts import MountPoint

pytestmark = pytest.mark.slow

PATIENCE = 120.0
"""Seconds after which something counts as hanging, however busy the machine is."""

ODD = os.fsdecode(b"n\xff\nl")


@pytest.fixture
async def rebalance_backend(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[LiveRebalance]:
    monkeypatch.setenv("ZCONSOLE_STATE", str(tmp_path / "state"))
    runner = ProcessRunner()
    rebalance_backend = LiveRebalance(runner)
    yield rebalance_backend
    for left in await rebalance_backend.jobs(None):
        if left.live and left.pid is not None:
            os.kill(left.pid, signal.SIGKILL)
    await runner.settle(10)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "tree"
    for name in ("a", "a/deep", "b", ODD):
        (root / name).mkdir(parents=True)
    for number in range(4):
        (root / "a" / f"f{number}").write_bytes(bytes([number]) * 3_000_000)
    (root / "a/deep/g").write_bytes(b"x" * 1000)
    (root / "b/link").symlink_to("/etc")
    return root


def wish(tree: Path, **limits: float) -> Settings:
    return Settings((str(tree / "a"),), allow_non_zfs=True, limits=Limits(**limits))  # type: ignore[arg-type]


async def view(rebalance_backend: LiveRebalance, wanted: Callable[[JobView], bool]) -> JobView:
    async with asyncio.timeout(PATIENCE):
        while True:
            jobs = await rebalance_backend.jobs(None)
            if jobs and wanted(jobs[0]):
                return jobs[0]
            await asyncio.sleep(0.05)


async def test_directories_are_listed_at_once_and_measured_as_they_are_counted(
    rebalance_backend, tree
):
    explorer = await rebalance_backend.explore()
    explorer.used(str(tree))
    explorer.open(str(tree))
    explorer.open(str(tree / "gone"))
    answers = []
    async with asyncio.timeout(PATIENCE):
        while (
            sum(isinstance(a, Measured) and a.done for a in answers) < 4
            or sum(isinstance(a, DirectoryListing) for a in answers) < 2
        ):
            answers.append(await explorer.next())
    explorer.close()
    listing, gone = (a for a in answers if isinstance(a, DirectoryListing))
    assert listing.names == ("a", "b", ODD)
    assert gone.problem == "No such file or directory"
    sizes = {a.path: (a.bytes, a.files) for a in answers if isinstance(a, Measured) and a.done}
    assert sizes[str(tree / "a")] == (12_001_000, 5)
    assert sizes[str(tree / "b")] == (0, 0)
    assert sizes[f"{tree}/{ODD}"] == (0, 0)
    assert (sizes[str(tree)][0] or 0) > 0


def test_the_newest_question_is_counted_first_and_half_counts_are_told(tree):
    told: list = []
    ticks = iter(float(n) for n in range(1000))
    measurer = Measurer(told.append, lambda: next(ticks))
    measurer.ask({"open": str(tree)})
    measurer.ask({"open": str(tree / "a")})
    while measurer.counts:
        measurer.advance()
    measured = [answer for answer in told if isinstance(answer, Measured)]
    assert Path(measured[0].path).name == "deep"
    assert any(not answer.done for answer in measured)
    finals = [answer.path for answer in measured if answer.done]
    assert [Path(p).name for p in finals[:2]] == ["deep", "a"]


def test_sizes_tell_what_is_older_than_the_newest_vdev(tree):
    told: list = []
    added = time.time() - 1000
    measurer = Measurer(told.append, since=lambda path: added)
    measurer.ask({"open": str(tree)})
    added = time.time() + 1000
    measurer.ask({"open": str(tree / "a")})
    while measurer.counts:
        measurer.advance()
    measured = [answer for answer in told if isinstance(answer, Measured)]
    old = {Path(m.path).name: (m.old, m.bytes) for m in measured if m.done}
    assert old["a"] == (0, 12_001_000)
    assert old["deep"] == (1000, 1000)
    Measurer(told.append).ask({"used": str(tree)})
    whole = os.statvfs(tree)
    used = (whole.f_blocks - whole.f_bfree) * whole.f_frsize
    assert told[-1].bytes == pytest.approx(used, rel=0.2)
    assert told[-1].old is None


def test_only_root_is_told_when_the_newest_vdev_was_added(tmp_path, monkeypatch):
    asked: list[str] = []

    class History(FactsReader):
        def added(self, name: str) -> int | None:
            asked.append(name)
            return 7

    mount = MountPoint(1, 0, b"", b"/", b"/tank/data", b"zfs", b"", b"tank/data")
    monkeypatch.setattr(sizes, "mount_of", lambda number: mount)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    since, path = sizes.additions(History()), os.fsencode(tmp_path)
    assert since(path) is None
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert [since(path) for _ in range(2)] == [7, 7]
    assert asked == ["tank"]
    assert since(path + b"/nowhere") is None


async def test_a_plan_counts_on_the_way_and_comes_last(rebalance_backend, tree):
    settings = wish(tree)
    *counts, plan = [step async for step in rebalance_backend.plan(settings)]
    assert counts
    assert all(isinstance(count, Counted) for count in counts)
    assert isinstance(plan, PlanDocument)
    assert (plan.files, plan.bytes, plan.refused) == (5, 12_001_000, None)
    assert plan.directories[0].engine == "copy"


async def test_a_directory_may_be_called_anything_and_what_is_skipped_in_it_is_told(
    rebalance_backend, tree
):
    odd = f"{tree}/{ODD}"
    Path(odd, "f").write_bytes(b"x" * 5000)
    Path(odd, "pipe").symlink_to("f")
    *_, plan = [s async for s in rebalance_backend.plan(Settings((odd,), allow_non_zfs=True))]
    assert isinstance(plan, PlanDocument)
    assert (plan.directories[0].dir, plan.bytes) == (odd, 5000)
    await rebalance_backend.start(Settings((odd,), allow_non_zfs=True))
    ended = await view(rebalance_backend, lambda v: v.state == "finished")
    assert (ended.settings.dirs, ended.files_done) == ((odd,), 1)
    assert (dict(ended.skipped), ended.failed) == ({"symbolic link": 1}, {})


async def test_a_plan_that_cannot_be_made_says_why(rebalance_backend, tree):
    with pytest.raises(ZconsoleError, match="No such file"):
        [step async for step in rebalance_backend.plan(Settings((str(tree / "gone"),)))]
    *_, plan = [step async for step in rebalance_backend.plan(Settings((str(tree),)))]
    assert isinstance(plan, PlanDocument)
    assert "--allow-non-zfs" in (plan.refused or "")


async def test_a_job_is_started_watched_paused_limited_resumed_and_stopped(rebalance_backend, tree):
    job = await rebalance_backend.start(wish(tree, rate=500_000))
    running = await view(rebalance_backend, lambda v: v.state == "running" and v.bytes_handled > 0)
    assert (running.job, running.files_total, running.bytes_total) == (job, 5, 12_001_000)
    assert running.live
    assert 0 < (running.share or 0) < 1
    await rebalance_backend.order(job, "pause")
    assert (await view(rebalance_backend, lambda v: v.state == "paused")).limits.rate == 500_000
    # Slow enough to be still running whenever it is checked.
    await rebalance_backend.order(job, None, {"rate": 50_000})
    assert (await view(rebalance_backend, lambda v: v.limits.rate == 50_000)).state == "paused"
    await rebalance_backend.resume(job)
    await view(rebalance_backend, lambda v: v.state == "running")
    await rebalance_backend.order(job, "stop")
    stopped = await view(rebalance_backend, lambda v: v.state == "stopped")
    assert stopped.files_done < 5
    await rebalance_backend.resume(job)
    await view(rebalance_backend, lambda v: v.state == "running")
    await rebalance_backend.order(job, None, {"rate": None})
    assert (await view(rebalance_backend, lambda v: v.state == "finished")).files_done == 5


async def test_what_a_running_job_commits_is_seen_whatever_the_time_of_its_files(
    rebalance_backend, tree, monkeypatch
):
    monkeypatch.setattr("zconsole.rebalance.job.control._written", lambda record: (1,))
    job = await rebalance_backend.start(wish(tree, rate=500_000))
    await view(rebalance_backend, lambda v: v.state == "running" and v.bytes_handled > 0)
    await rebalance_backend.order(job, "stop")
    assert (await view(rebalance_backend, lambda v: v.state == "stopped")).files_done < 5


async def test_limits_changed_on_the_way_hold_after_a_death_too(rebalance_backend, tree):
    job = await rebalance_backend.start(wish(tree, rate=100_000))
    await view(rebalance_backend, lambda v: v.state == "running" and v.files_total is not None)
    await rebalance_backend.order(job, "pause", {"rate": 50_000_000})
    paused = await view(rebalance_backend, lambda v: v.state == "paused")
    assert paused.pid is not None
    os.kill(paused.pid, signal.SIGKILL)
    dead = await view(rebalance_backend, lambda v: v.state == "dead")
    assert dead.interrupted
    await rebalance_backend.resume(job)
    ended = await view(rebalance_backend, lambda v: v.state == "finished")
    assert (ended.limits.rate, ended.files_done) == (50_000_000, 5)


async def test_a_job_that_is_refused_or_in_the_way_never_is(rebalance_backend, tree, monkeypatch):
    # On a busy machine, it may take long until a job is refused.
    monkeypatch.setattr("zconsole.rebalance.job.control.BEGINNING", PATIENCE)
    with pytest.raises(ZconsoleError, match="refused"):
        await rebalance_backend.start(Settings((str(tree),)))
    with pytest.raises(ZconsoleError, match="No such file"):
        await rebalance_backend.start(Settings((str(tree / "gone"),)))
    assert job_store.files() == []
    job = await rebalance_backend.start(wish(tree, rate=200_000))
    with pytest.raises(ZconsoleError):
        await rebalance_backend.start(wish(tree))
    await view(rebalance_backend, lambda v: v.state == "running" and v.files_total is not None)
    await rebalance_backend.order(job, "stop")
    await view(rebalance_backend, lambda v: v.state == "stopped")
    while job_store.is_alive(job_store.find(job)):  # its process ends a moment later
        await asyncio.sleep(0.05)
    with pytest.raises(ZconsoleError, match="does not run"):
        await rebalance_backend.order(job, "pause")
    with pytest.raises(ZconsoleError, match="no job"):
        await rebalance_backend.order("nojob", "pause")


async def test_a_journal_that_says_something_else_is_left_out(tree, tmp_path, monkeypatch):
    monkeypatch.setenv("ZCONSOLE_STATE", str(tmp_path / "state"))
    record = create(wish(tree), FactsReader()).record
    assert len(await LiveRebalance().jobs(None)) == 1
    for key, value in (
        ("status", "{"),
        ("status", '"x"'),
        ("keys", '{"a": 1}'),
        ("job", "[]"),
        ("job", '{"name": "x", "settings": {"dirs": ["/a"], "newer": 1}, "engines": {}}'),
    ):
        with closing(sqlite3.connect(record.journal)) as db, db:
            (right,) = db.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
            db.execute("UPDATE meta SET value = ? WHERE key = ?", (value, key))
        assert await LiveRebalance().jobs(None) == (), value
        with closing(sqlite3.connect(record.journal)) as db, db:
            db.execute("UPDATE meta SET value = ? WHERE key = ?", (right, key))


async def test_no_job_costs_no_look_at_journals(rebalance_backend):
    assert await rebalance_backend.jobs("tank") == ()
    assert rebalance_backend._reader is None


def test_mounted_datasets_are_found_without_asking_zfs(tmp_path):
    (tmp_path / "mountinfo").write_text(
        "30 1 0:40 / /tank rw - zfs tank rw,xattr\n"
        "31 1 0:41 / /tank/a\\040b rw - zfs tank/a\\040b rw\n"
        "32 1 0:41 /sub /bind rw - zfs tank/a\\040b rw\n"
        "33 1 0:42 / /tank/.zfs/snapshot/x ro - zfs tank@x ro\n"
        "34 1 0:43 / /other rw - zfs tank2 rw\n"
        "35 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
    )
    rebalance_backend = LiveRebalance(process=tmp_path)
    found = rebalance_backend.roots("tank")
    assert list(found.items()) == [("/tank", "tank"), ("/tank/a b", "tank/a b")]


@rows("name", ["tank", "tank/a/b", "ta:nk", "ta:nk/b"])
def test_a_job_is_on_the_pool_of_its_places(name):
    dataset = Dataset(name, {"guid": "42"})
    assert pool_of(JobDirectory(b"/x", "zfs", name, dataset).key) == name.split("/")[0]
    assert pool_of(JobDirectory(b"/x", "ext4", "/dev/sda1", None).key) == ""


@rows(
    ("limits", "option"),
    [
        (Limits(max_bytes=2 << 40), "--max-bytes=2T"),
        (Limits(max_bytes=(2 << 40) + 1), "--max-bytes=2199023255553"),
        (Limits(rate=1.5 * (1 << 30)), "--limit-rate=1.50G"),
    ],
)
def test_sizes_in_a_command_are_as_short_as_they_are_exact(limits, option):
    assert option in seam.plan_words(Settings(("/tank",), limits=limits))


def test_the_command_by_hand_is_safe_for_a_shell_and_for_a_terminal():
    settings = Settings(
        ("/tank/a b", f"/tank/{ODD}"), aim="width", during_scan=True, limits=Limits(rate=1e6)
    )
    said = seam.by_hand(LiveRebalance(), settings)
    assert said == (
        "zconsole rebalance run --during-scan --aim=width --limit-rate=1000000 '/tank/a b'"
        " $'/tank/n\\xff\\x0al'"
    )
