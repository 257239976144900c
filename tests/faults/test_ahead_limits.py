"""What is begun before its turn, when the turn comes for something else, or later than thought."""

from __future__ import annotations

import errno
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.faults.company import (
    BATCH,
    FILES,
    Counting,
    Thread,
    Watched,
    append,
    helped,
    many,
    moved_whole,
)
from tests.faults.harness import ALONE, FaultySys, create, run
from zconsole.rebalance.engine import copyist
from zconsole.rebalance.engine.aside import Aside
from zconsole.rebalance.engine.copyphase import CopyPhase
from zconsole.rebalance.engine.item import Item
from zconsole.rebalance.engine.journal import Journal
from zconsole.rebalance.running.batching import Batches
from zconsole.rebalance.running.job import Clocks
from zconsole.rebalance.running.watch import SpaceGate


@pytest.fixture
def root(area: Path) -> Path:
    return many(area / "tree")


def limiting(journal: Path, **limits: float) -> Callable[[], None]:
    """An operator who sets limits, once."""
    left = [limits]

    def order() -> None:
        if left:
            with closing(Journal.open(journal)) as written:
                written.set("control", {"order": "run", "limits": left.pop()})

    return order


@pytest.fixture
def obedient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A job that looks for orders at every opportunity."""
    monkeypatch.setattr("zconsole.rebalance.running.pacing.LOOK", 0.0)


def test_a_byte_limit_holds_for_what_was_begun(
    root: Path, watched: Watched, beside: Counting, obedient: None
) -> None:
    order = limiting(root.parent / "job.db", max_bytes=1)

    def lower(_: int, name: str) -> None:
        if name == "unlink" and sum(item.made for item, _ in watched.open_now()) > BATCH / 2:
            order()

    create(root, root.parent / "job.db")
    _, summary = run(root.parent / "job.db", FaultySys(lower), ALONE, aside=beside)
    assert summary["stopped_by"] == "byte limit reached"
    assert BATCH <= summary["files_moved"] <= BATCH + 1


def test_nothing_is_begun_under_a_rate_set_meanwhile(
    root: Path, watched: Watched, beside: Counting, obedient: None
) -> None:
    order = limiting(root.parent / "job.db", rate=1e9)
    create(root, root.parent / "job.db")
    copying = FaultySys(lambda _, name: order() if name == "open_unnamed" else None)
    _, summary = run(root.parent / "job.db", copying, ALONE, aside=beside)
    assert (watched.rows[0], summary["files_moved"]) == (0, FILES)


@pytest.fixture
def refusing(monkeypatch: pytest.MonkeyPatch) -> Iterator[Counting]:
    """A process that makes nothing, which it tells when the second batch is copied; of what was
    begun that has but five files, as room has shrunk."""
    second, batches = threading.Event(), [0]
    adapt, copy_all = Batches.adapt, CopyPhase.run

    def serve(channel: Any) -> None:
        while message := copyist.receive(channel):
            (_, files), fds = message
            second.wait(20)
            copyist.close(fds)
            copyist.send(channel, [None] * len(files), [])

    def copied(phase: CopyPhase, items: Sequence[Item], aside: Aside | None, length: int) -> None:
        batches[0] += 1
        if batches[0] == 2:
            second.set()
            time.sleep(0.1)
        copy_all(phase, items, aside if batches[0] > 1 else None, length)

    def adapted(self: Batches, *args: Any) -> None:
        adapt(self, *args)
        if batches[0] == 1:
            self.bytes = 5000

    monkeypatch.setattr(CopyPhase, "run", copied)
    monkeypatch.setattr(Batches, "adapt", adapted)
    with helped(Thread(serve)) as aside:
        yield aside


def test_what_is_not_of_the_batch_is_not_reported_with_it(
    root: Path, watched: Watched, refusing: Counting
) -> None:
    def full(_: int, name: str) -> None:
        if name == "open_unnamed" and watched.rows:
            raise OSError(errno.EDQUOT, os.strerror(errno.EDQUOT))

    create(root, root.parent / "job.db")
    shown, summary = run(root.parent / "job.db", FaultySys(full), ALONE, aside=refusing)
    told = [each["path"] for each in shown]
    assert len(told) == len(set(told)) == FILES
    assert (summary["files_moved"], summary["files_failed"]) == (BATCH, FILES - BATCH)


def test_what_is_not_of_the_batch_gets_no_name(
    root: Path, watched: Watched, refusing: Counting
) -> None:
    """On a filesystem where suddenly nothing goes without one."""
    system = FaultySys()

    def fault(_: int, name: str) -> None:
        system.named = bool(watched.rows)

    system.fault = fault
    create(root, root.parent / "job.db")
    _, summary = run(root.parent / "job.db", system, ALONE, aside=refusing)
    assert list(root.rglob(".zc-*")) == []
    assert (summary["files_moved"], summary["files_failed"]) == (FILES, 0)


def test_nobody_waits_for_a_file_while_nobody_reads_what_is_told(
    root: Path, watched: Watched, beside: Counting
) -> None:
    waiting: list[bool] = []

    def read(records: Sequence[dict[str, Any]]) -> None:
        if not waiting and watched.open_now():
            _, path = watched.open_now()[-1]
            writer = threading.Thread(target=append, args=(path,))
            writer.start()
            writer.join(10)
            waiting.append(writer.is_alive())

    create(root, root.parent / "job.db")
    run(root.parent / "job.db", None, Clocks(), aside=beside, show=read)
    assert waiting == [False]


def test_a_writer_does_not_wait_for_files_to_be_opened(
    root: Path, watched: Watched, beside: Counting
) -> None:
    """Many inodes that come from a busy disk, while a sync takes its time."""
    writers: list[threading.Thread] = []
    opened: list[bool] = []

    def fault(_: int, name: str) -> None:
        if name == "syncfs" and watched.rows == [BATCH]:
            time.sleep(0.3)
        if name == "open" and watched.rows == [BATCH]:
            if watched.open_now() and not writers:
                writers.append(threading.Thread(target=append, args=(watched.open_now()[0][1],)))
                writers[0].start()
            time.sleep(0.02)
            opened.extend(writer.is_alive() for writer in writers)

    create(root, root.parent / "job.db")
    run(root.parent / "job.db", FaultySys(fault), Clocks(), aside=beside)
    writers[0].join()
    assert len(opened) > 5
    assert True not in opened[3:]


def test_what_was_let_go_of_takes_no_space_while_the_job_waits(
    root: Path, watched: Watched, beside: Counting, monkeypatch: pytest.MonkeyPatch
) -> None:
    away: list[bool] = []

    def at_floor(gate: SpaceGate) -> str | None:
        if watched.rows != [BATCH] or len(away) > 20:
            return None
        away.append(beside.busy)
        return "free space is at the floor"

    take = Aside.take
    monkeypatch.setattr(SpaceGate, "before_batch", at_floor)
    monkeypatch.setattr(  # as if it were slow: nothing comes back before the batch ends
        Counting, "take", lambda aside, seconds: take(aside, 0) if away or not watched.rows else []
    )
    create(root, root.parent / "job.db")
    _, summary = run(root.parent / "job.db", None, Clocks(), aside=beside)
    assert (away[0], away[-1]) == (True, False)
    assert summary["files_moved"] == FILES


def test_batches_too_small_for_help_do_not_overlap(
    root: Path, watched: Watched, beside: Counting
) -> None:
    """Few files may be open: the whole of that for one batch brings more than two halves."""
    beside.worth = BATCH + 1
    moved_whole(root, beside)
    assert (watched.rows, beside.made > 0) == ([0, 0], True)


def test_without_leases_no_file_is_opened_twice(
    root: Path, watched: Watched, beside: Counting
) -> None:
    def unsupported(_: int, name: str) -> None:
        if name == "lease":
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))

    calls = FaultySys(unsupported)
    create(root, root.parent / "job.db", accept_races=True)
    _, summary = run(root.parent / "job.db", calls, ALONE, aside=beside)
    assert summary["files_moved"] == FILES
    assert calls.calls.count("open") < FILES * 1.3
