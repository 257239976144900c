from __future__ import annotations

import os
import re
import signal
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.faults.harness import ALONE, FaultySys, Killed, ask, create, descriptors_closed, run
from tests.table import rows
from tests.unit.rebalance.job.counted import job_of, terms_with
from zconsole.errors import ZconsoleError
from zconsole.rebalance.backend import JobStatus
from zconsole.rebalance.engine.directories import DirectoryRow
from zconsole.rebalance.engine.file_locks import Alarm
from zconsole.rebalance.engine.item import FileOutcome, StopJobError
from zconsole.rebalance.engine.journal import FileRow, Journal, State
from zconsole.rebalance.job.job import Job, JobTerms
from zconsole.rebalance.job.job_store import by_journal
from zconsole.rebalance.job.runner import STOPPING, Batches, JobRunner, _signals, execute, hidden
from zconsole.rebalance.planning import plan
from zconsole.rebalance.planning.exports import Shared
from zconsole.rebalance.planning.facts import Dataset, JobDirectory
from zconsole.rebalance.planning.settings import Limits, Settings
from zconsole.system.mounts import MountPoint


@rows("number", STOPPING)
def test_a_signal_ends_the_job_unless_it_was_ignored_from_the_start(number: signal.Signals) -> None:
    alarm, job = Alarm(), cast("Job", SimpleNamespace(stop=None))
    before = {each: signal.getsignal(each) for each in (number, signal.SIGIO)}
    try:
        signal.signal(number, signal.SIG_IGN)  # as nohup does
        with _signals(job, alarm):
            os.kill(os.getpid(), number)
            assert job.stop is None
        signal.signal(number, signal.SIG_DFL)
        with _signals(job, alarm):
            os.kill(os.getpid(), number)
            os.kill(os.getpid(), signal.SIGIO)
            assert (job.stop, alarm.raised) == (STOPPING[number], True)
        os.kill(os.getpid(), signal.SIGIO)  # a late word of a broken lease ends no process
        assert signal.getsignal(number) is signal.SIG_DFL
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


DISK = MountPoint(1, 0, b"", b"/", b"/", b"ext4", b"", b"/dev/sda1")


@pytest.mark.parametrize(
    ("mount", "nested", "why"),
    [
        (replace(DISK, read_only=True), False, "mounted read-only"),
        (replace(DISK, options=b"rw,nouser_xattr"), False, "mounted nouser_xattr: a copy would"),
        (DISK, True, "in a user namespace"),
    ],
)
def test_a_job_is_not_begun_where_it_could_not_be_planned_by_now(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mount: MountPoint, nested: bool, why: str
) -> None:
    monkeypatch.setenv("ZCONSOLE_STATE", str(tmp_path / "state"))
    (tmp_path / "tree").mkdir()
    create(tmp_path / "tree", tmp_path / "job.db")
    record = by_journal(tmp_path / "job.db")
    assert record is not None
    with closing(Journal.open(record.journal)) as journal:
        journal.set("keys", {str(tmp_path / "tree"): "ext4:/dev/sda1:"})
    monkeypatch.setattr(plan.facts, "mount_of", lambda number: mount)
    monkeypatch.setattr("zconsole.rebalance.engine.namespaces.is_nested", lambda: nested)
    with pytest.raises(ZconsoleError, match=f"tree: {why}"):
        execute(record, lambda event: None)


@rows(
    ("share", "reason"),
    [
        (Shared(server="ganesha.nfsd"), "exported over NFS: ganesha.nfsd is running"),
        (Shared(unknown=["testparm is slow"]), "cannot tell whether .*: testparm is slow"),
    ],
)
def test_where_files_are_shared_by_now_a_job_is_resumed_only_to_settle_what_is_unfinished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, share: Shared, reason: str
) -> None:
    """It is refused then; where nobody knows, it waits."""
    area = tmp_path / ("unknown" if share.unknown else "known")
    monkeypatch.setenv("ZCONSOLE_STATE", str(area / "state"))
    (area / "tree").mkdir(parents=True)
    for name in ("a", "b"):
        (area / "tree" / name).write_bytes(b"content")
    create(area / "tree", area / "job.db")
    monkeypatch.setattr("zconsole.rebalance.engine.descriptors.BATCH_FILES", 1)
    dying = FaultySys()

    def died(_number: int, name: str, _result: object) -> None:
        if name == "exchange":
            dying.die()

    dying.after = died
    with descriptors_closed(), pytest.raises(Killed):
        run(area / "job.db", dying, ALONE)
    record = by_journal(area / "job.db")
    assert record is not None
    monkeypatch.setattr("zconsole.rebalance.planning.exports.look", lambda *_, **__: [share])
    waited = list[str]()

    def show(event: JobStatus) -> None:
        if event.state == "waiting":
            waited.append(event.why or "")
            ask(record.journal, "stop")

    if share.server:
        with pytest.raises(ZconsoleError, match=f"tree: {reason}"):
            execute(record, show)
    else:
        execute(record, show)
        assert all(re.search(f"tree: {reason}", why) for why in waited)
    assert bool(waited) == bool(share.unknown)
    assert {each.name for each in (area / "tree").iterdir()} == {"a", "b"}
    with closing(Journal.open(record.journal)) as journal:
        assert not journal.is_interrupted()
        assert State.PENDING in journal.counts()


def test_copies_of_blocks_are_those_of_the_dataset_on_a_device(journal: Journal) -> None:
    """The device number may be new since the walk; the journal knows it by then."""
    journal.add_directory(DirectoryRow(1, None, b"/a", 7, 1))
    journal.add_directory(DirectoryRow(2, None, b"/b", 8, 1))
    places = [
        JobDirectory(b"/a", "zfs", "tank/a", Dataset("tank/a", {"copies": "2"})),
        JobDirectory(b"/b", "zfs", "tank/b", Dataset("tank/b", {"copies": "1"})),
        JobDirectory(b"/c", "ext4", "/dev/sda1", None),
    ]
    terms, space = terms_with(grown={"/a": 2.5, "/b": 0.5}), SimpleNamespace(room=lambda _: 100)
    runner = cast("Any", object.__new__(JobRunner))
    runner.job = SimpleNamespace(journal=journal, terms=terms, space=space, places=places)
    runner._at = runner._by_device()
    assert [runner._copies(device) for device in (7, 8, 9, 7)] == [2, 1, 1, 2]
    # A copy is admitted by the blocks of its file: these grow in one of the datasets.
    assert [runner._room(device) for device in (7, 8, 9)] == [40, 100, 100]


def test_acls_that_a_job_was_planned_with_are_known_to_it() -> None:
    """For jobs of earlier versions this is unknown: their ACLs are assumed to have been off."""
    dataset = Dataset("tank/a", {"acltype": "off"})
    place = JobDirectory(b"/d", "zfs", "tank/a", dataset, options="rw,xattr,noacl")
    settings = Settings(("/d",))
    terms = JobTerms("j", settings, {"/d": "copy"}, (), 1.0, {}, options={"/d": "rw,posixacl"})
    assert hidden(terms, place).startswith("acltype=off by now: ")
    assert hidden(replace(terms, engines={"/d": "rewrite"}), place) == ""
    assert hidden(replace(terms, options={}), place) == ""


MB = 1 << 20


def walked(journal: Journal, parents: list[int | None], files: list[tuple[int, int]]) -> None:
    """Add directories by their parents, numbered from 1, and files by directory and size."""
    for number, parent in enumerate(parents, 1):
        name = b"d%d" % number if parent else b"/d%d" % number
        journal.add_directory(DirectoryRow(number, parent, name, 1, number))
    rows = enumerate(files)
    journal.add_files((where, b"f%d" % n, 100 + n, size, 1, 0) for n, (where, size) in rows)
    journal.finish_walk(split_links=True)


def ended(batches: Batches, outcome: str = "moved") -> tuple[list[list[int]], str]:
    """Return the sizes of the files in each portion, all of which end the same way, and the end."""
    begun = []
    try:
        for rows in batches:
            begun.append([row.size for row in rows])
            batches.give_back([FileOutcome(row, outcome) for row in rows])
    except StopJobError as error:
        return begun, str(error)
    return begun, "done"


def handled(batches: Batches) -> list[int]:
    """Return the number of files in every portion."""
    return [len(sizes) for sizes in ended(batches)[0]]


def opened(rows: list[FileRow], parents: list[int | None]) -> set[int]:
    numbers: set[int] = set()
    for row in rows:
        number: int | None = row.directory
        while number is not None:
            numbers.add(number)
            number = parents[number - 1]
    return numbers


def test_a_portion_ends_at_its_files_and_at_its_bytes(journal: Journal) -> None:
    walked(journal, [None], [(1, MB)] * 10)
    batches = Batches(job_of(journal), files=4)
    assert handled(batches) == [4, 4, 2]
    batches.bytes = 3 * MB
    assert handled(batches) == [3, 3, 3, 1]


def test_at_a_low_rate_a_portion_ends_after_seconds(journal: Journal) -> None:
    walked(journal, [None], [(1, MB // 8)] * 10)
    job = job_of(journal)
    batches = Batches(job)
    job.limits = Limits(rate=MB / 8)
    batches.adapt(0, 0)
    assert handled(batches) == [4, 4, 2]
    job.limits = Limits()
    batches.adapt(4, MB)
    assert handled(batches) == [10]
    job.limits = Limits(rate=1)
    batches.adapt(4, MB)  # at least one file
    assert handled(batches) == [1] * 10


def test_no_portion_opens_more_directories_than_it_may(journal: Journal) -> None:
    parents: list[int | None] = [None]
    for branch in range(20):
        parents += [1, 2 + 3 * branch, 3 + 3 * branch]
    walked(journal, parents, [(4 + 3 * branch, 1) for branch in range(20)])
    batches = Batches(job_of(journal), files=100)
    batches.directories = 10
    portions = list(batches)
    assert [len(rows) for rows in portions] == [3, 3, 3, 3, 3, 3, 2]
    assert max(len(opened(rows, parents)) for rows in portions) == 10


def test_a_file_deeper_than_that_has_a_portion_of_its_own(journal: Journal) -> None:
    parents: list[int | None] = [None, *range(1, 30)]
    walked(journal, parents, [(30, 1), (30, 1), (1, 1)])
    batches = Batches(job_of(journal), files=100)
    batches.directories = 10
    assert sum(handled(batches)) == 3


def test_other_names_of_a_file_are_opened_with_it(journal: Journal) -> None:
    walked(journal, [None, 1, 1, 1, 1], [])
    for inode in range(2):
        places = (2 + 2 * inode, 3 + 2 * inode)
        journal.add_files((where, b"n%d" % where, 100 + inode, 1, 2, 0) for where in places)
    journal.finish_walk(split_links=True)
    batches = Batches(job_of(journal), files=100)
    batches.directories = 4
    assert handled(batches) == [1, 1]


def test_a_lowered_byte_limit_counts_from_the_next_portion_on(journal: Journal) -> None:
    walked(journal, [None], [(1, MB)] * 10)
    job = job_of(journal)
    batches = Batches(job, files=4)
    portions = iter(batches)
    first = next(portions)
    job.limits = Limits(max_bytes=1)
    batches.give_back([FileOutcome(row, "moved") for row in first])
    with pytest.raises(StopJobError, match="byte limit reached"):
        next(portions)
    assert len(first) == 4


@pytest.mark.parametrize(
    ("sizes", "most", "outcome", "begun", "end"),
    [
        ([40, 1, 1, 1], 2, "moved", [1, 1], "byte limit reached"),
        ([40, 3, 2, 1], 4, "moved", [3, 1], "byte limit reached"),
        ([40, 3, 2, 1], 50, "moved", [40, 3, 2, 1], "done"),
        ([40], 4, "moved", [], "byte limit reached"),
        ([40, 3, 3, 0], 4, "skipped", [3, 3, 0], "byte limit reached"),
        ([3, 3], 4, "failed", [3, 3], "done"),
        ([3, 3, 0], 3, "moved", [3], "byte limit reached"),
    ],
)
def test_no_file_is_begun_that_exceeds_what_is_left_of_the_byte_limit(
    journal: Journal, sizes: list[int], most: int, outcome: str, begun: list[int], end: str
) -> None:
    walked(journal, [None], [(1, MB * size) for size in sizes])
    job = job_of(journal, settings=Settings((), limits=Limits(max_bytes=MB * most)))
    found, why = ended(Batches(job), outcome)
    assert ([size // MB for sizes in found for size in sizes], why) == (begun, end)


@pytest.mark.slow
def test_what_hardly_anything_is_left_of_is_not_filled_file_by_file(journal: Journal) -> None:
    """Otherwise millions of files would be read from the journal for a last one that fits."""
    walked(journal, [None], [(1, MB)] * 300)
    job = job_of(journal, settings=Settings((), limits=Limits(max_bytes=200 * MB + MB // 2)))
    batches, read = Batches(job, files=10), list[int]()
    todo = journal.todo
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Journal, "todo", lambda _, *a: (read.append(1), todo(*a))[1])
        found, why = ended(batches)
    assert 198 <= sum(map(len, found)) <= 200
    assert why == "byte limit reached"
    assert len(read) <= 22
