"""Hard links in two directories, where a power cut undoes the changes in only one of them."""

from __future__ import annotations

from tests.cuts import oracle, others
from tests.cuts.choices import given
from tests.cuts.disk import Tree
from tests.cuts.machine import Machine
from tests.cuts.oracle import Wanted
from tests.cuts.timeline import WORST, Change, Timeline
from tests.cuts.workloads import Workload

PATH = b"under/linked"


def _tree(tree: Tree) -> None:
    tree.directory(b"under")
    tree.file(b"again", b"three names")
    tree.link(b"again", b"linked")
    tree.link(b"again", PATH)


def _moved() -> tuple[Machine, Timeline, list[int]]:
    """Return a moved tree, and the number of events after each exchange and each removal."""
    machine = Workload("links", _tree).machine()
    timeline, _ = machine.run()
    calls = ("exchange", "unlink")
    events = enumerate(timeline.events, start=1)
    after = [at for at, each in events if isinstance(each, Change) and each.call in calls]
    assert len(after) == 6
    return machine, timeline, after


def test_names_follow_one_that_has_lost_its_original() -> None:
    """One name's changes are undone; at the other names, the originals are already removed."""
    machine, timeline, after = _moved()
    wanted = Wanted(oracle.seen(timeline.begin))
    crash = timeline.crash(after[-1], given([WORST, 0, 3]))
    assert crash is not None
    resumed = machine.crashed(crash)
    resumed.recover()
    assert list(oracle.finished(oracle.seen(resumed.disk), resumed.rows, wanted)) == []


def test_names_do_not_follow_one_whose_content_a_disk_lost() -> None:
    machine, timeline, after = _moved()
    crash = timeline.crash(after[-1], given([WORST, 0, 3]))
    assert crash is not None
    resumed = machine.crashed(crash)
    (moved,) = {resumed.disk.find(path) for path in (b"again", b"linked")}
    resumed.disk.inodes[moved or 0].pages = {}
    original = resumed.disk.find(PATH)
    resumed.recover()
    assert resumed.disk.find(PATH) == original
    assert resumed.disk.inodes[original or 0].content == b"three names"


def test_a_copy_that_was_written_to_takes_every_name_and_leaves_nothing() -> None:
    """Only one name's exchange is on the disk, and then somebody writes to the copy there."""
    machine, timeline, after = _moved()
    before = oracle.seen(timeline.begin)
    crash = timeline.crash(after[2], given([WORST, 3, 0]))
    assert crash is not None
    notes = others.meanwhile(crash.disk, PATH, before.group(PATH), machine.clock.tick)
    assert [note.path for note in notes if note.what == "rewritten"] == [PATH]
    resumed = machine.crashed(crash)
    resumed.recover()
    found = oracle.seen(resumed.disk)
    assert list(oracle.recovered(found, resumed.rows, Wanted(before, notes))) == []
    assert {found.files[path].content for path in before.group(PATH)} == {notes[0].content}
