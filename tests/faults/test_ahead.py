"""Files begun before their turn: as good as the others, and let go of by the first who asks."""

from __future__ import annotations

import random
import threading
import time
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from tests.faults import trees
from tests.faults.company import (
    BATCH,
    FILES,
    Counting,
    Watched,
    append,
    forsake,
    helped,
    many,
    moved_whole,
)
from tests.faults.harness import (
    ALONE,
    FaultySys,
    Killed,
    create,
    descriptors,
    descriptors_closed,
    kill_after,
    run,
)
from zconsole.rebalance.engine.aside import COPYIST
from zconsole.rebalance.engine.journal import Journal
from zconsole.rebalance.planning.settings import Limits
from zconsole.rebalance.running.job import Clocks
from zconsole.rebalance.running.run import Runner
from zconsole.rebalance.running.watch import SpaceGate
from zconsole.sources.blocking import start_companion


@pytest.fixture
def root(area: Path) -> Path:
    return many(area / "tree")


def test_a_batch_is_begun_while_the_one_before_is_settled(
    root: Path, watched: Watched, beside: Counting
) -> None:
    open_before = len(descriptors())
    most: list[int] = []

    def count(_: int, name: str) -> None:
        if name == "unlink":
            most.append(len(watched.open_now()))

    moved_whole(root, beside, FaultySys(count))
    assert watched.rows == [BATCH, BATCH, 0]
    assert max(most) == BATCH
    beside.leave()
    assert len(descriptors()) == open_before


@pytest.mark.parametrize("kept_open", [0, 3])
def test_directories_of_files_begun_stay_open(
    root: Path, watched: Watched, beside: Counting, kept_open: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("zconsole.rebalance.running.run.OPEN_DIRECTORIES", kept_open)
    moved_whole(root, beside)
    assert sum(watched.rows) == 2 * BATCH


@pytest.mark.parametrize(
    "limits",
    [Limits(rate=1e9), Limits(max_latency=10), Limits(max_bytes=1 << 40), Limits(until_spread=0.1)],
    ids=["rate", "latency", "bytes", "spread"],
)
def test_nothing_is_begun_early_where_limits_could_be_passed(
    root: Path, watched: Watched, beside: Counting, limits: Limits
) -> None:
    create(root, root.parent / "job.db", limits=limits)
    _, summary = run(root.parent / "job.db", None, ALONE, aside=beside)
    assert (summary["files_moved"], watched.rows) == (FILES, [0, 0, 0])


@pytest.mark.parametrize(("room", "begun"), [(30 << 20, 0), (80 << 20, 2 * BATCH)])
def test_nothing_is_begun_early_where_room_is_short(
    root: Path,
    watched: Watched,
    beside: Counting,
    room: int,
    begun: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(SpaceGate, "room", lambda self, fresh=False, device=None: room)
    moved_whole(root, beside)
    assert sum(watched.rows) == begun


def test_nothing_is_begun_early_without_help(root: Path, watched: Watched) -> None:
    moved_whole(root, Counting())
    assert set(watched.rows) == {0}


def test_what_was_begun_takes_no_space_that_is_wanted(
    root: Path, watched: Watched, beside: Counting, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[int] = []
    flush, sync = Runner._flush, Runner._sync_all

    def room(gate: SpaceGate, fresh: bool = False, device: int | None = None) -> int:
        narrow = watched.rows == [BATCH] and bool(watched.open_now()) and not fresh
        return 1 << 20 if narrow else 80 << 20

    def flushed(runner: Runner) -> None:
        begun.append(len(watched.open_now()))
        flush(runner)

    def synced(runner: Runner) -> None:
        begun.append(len(watched.open_now()))
        sync(runner)

    monkeypatch.setattr(SpaceGate, "room", room)
    monkeypatch.setattr(Runner, "_flush", flushed)
    monkeypatch.setattr(Runner, "_sync_all", synced)
    moved_whole(root, beside)
    assert begun[:2] == [BATCH, 0]


def test_a_writer_gets_a_file_that_was_begun(
    root: Path, watched: Watched, beside: Counting
) -> None:
    """At once, and nothing of what it writes is lost."""
    writers: list[tuple[threading.Thread, Path, bytes]] = []
    waiting: list[bool] = []

    def fault(_: int, name: str) -> None:
        if name != "unlink" or watched.rows != [BATCH]:
            return
        if not writers and watched.open_now():
            _, path = watched.open_now()[-1]
            writers.append((threading.Thread(target=append, args=(path,)), path, path.read_bytes()))
            writers[0][0].start()
        time.sleep(0.002)
        waiting.append(writers[0][0].is_alive())

    create(root, root.parent / "job.db")
    _, summary = run(root.parent / "job.db", FaultySys(fault), Clocks(), aside=beside)
    ((writer, path, content),) = writers
    writer.join()
    assert (len(waiting), waiting[-1]) == (BATCH, False)
    assert path.read_bytes() == content + b"!"
    busy = summary["skipped"].get("open for writing", 0)
    assert (summary["files_failed"], summary["files_moved"] + busy) == (0, FILES)
    assert busy <= 1  # when its turn came before the writer had closed it


def test_a_file_begun_that_was_touched_since_begins_anew(
    root: Path, watched: Watched, beside: Counting
) -> None:
    touched: list[Path] = []

    def fault(_: int, name: str) -> None:
        if name == "unlink" and not touched and any(item.made for item, _ in watched.open_now()):
            touched.extend(path for item, path in watched.open_now() if item.made)
            for path in touched:
                path.chmod(0o600)

    inodes = trees.inodes(root)
    create(root, root.parent / "job.db")
    _, summary = run(root.parent / "job.db", FaultySys(fault), ALONE, aside=beside)
    assert touched
    assert {path.stat().st_mode & 0o777 for path in touched} == {0o600}
    assert (summary["files_moved"], summary["skipped"]) == (FILES, {})
    after = trees.inodes(root)
    assert all(after[name] != inode for name, inode in inodes.items())


@pytest.mark.parametrize("number", range(8))
def test_a_death_leaves_what_was_begun_as_it_was(root: Path, watched: Watched, number: int) -> None:
    """Killed among the calls of a batch while another is open."""
    before, rng = trees.manifest(root), random.Random(number)
    create(root, root.parent / "job.db")
    with helped(partial(start_companion, COPYIST)) as aside:
        with descriptors_closed(), pytest.raises(Killed):
            run(root.parent / "job.db", kill_after(rng.randrange(700, 1500)), ALONE, aside=aside)
        assert sum(watched.rows) > 0
        forsake(aside)
    _, summary = run(root.parent / "job.db", clocks=ALONE)
    assert trees.manifest(root) == before
    assert summary["files_failed"] == 0


def order(path: Path, word: str) -> None:
    """What an operator writes into the journal of a running job."""
    with closing(Journal.open(path)) as journal:
        journal.set("control", {"order": word})
