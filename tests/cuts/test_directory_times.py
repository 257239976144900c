"""A directory keeps its times even where its only file in a batch could not be copied."""

from __future__ import annotations

import errno
from contextlib import closing

from tests.cuts import kept_journal
from tests.cuts.campaign import judged
from tests.cuts.choices import given
from tests.cuts.disk import ROOT, Tree
from tests.cuts.experiment import Experiments
from tests.cuts.machine import isolated
from tests.cuts.timeline import KILL, Change
from tests.cuts.workloads import WORKLOADS, Workload


def _tree(tree: Tree) -> None:
    tree.directory(b"a")
    tree.directory(b"b")
    tree.file(b"a/one", b"content of one")
    tree.file(b"b/two", b"content of two")


def test_a_clock_set_back_before_a_death_costs_no_time_that_others_set() -> None:
    """The journal noted the directory by the earlier clock, an hour ahead."""
    before = WORKLOADS[0].machine()
    timeline, _ = before.run()
    events = enumerate(timeline.events, start=1)
    at = next(at for at, each in events if isinstance(each, Change) and each.call == "exchange")
    crash = timeline.crash(at, given([KILL]))
    assert crash is not None
    machine = before.crashed(crash)
    with closing(kept_journal.opened(machine.journal)) as journal:
        journal._db.execute("UPDATE dirs SET intent = intent + 3600 WHERE intent IS NOT NULL")
        machine.journal = journal._db.serialize()
    theirs = round((machine.clock.now + 60.0) * 1e9)
    machine.clock.now += 120.0
    machine.disk.inodes[ROOT].mtime = theirs
    machine.recover()
    assert machine.disk.inodes[ROOT].mtime == theirs


def test_a_death_after_a_failed_copy_leaves_no_wrong_time() -> None:
    with isolated():
        experiments = Experiments(Workload("two directories", _tree))
        writes = [at for at, call in enumerate(experiments.names, start=1) if call == "pwrite"]
        problems = [
            judged(experiments.error(writes[-1], errno.EIO, given([1, cut, KILL])))
            for cut in range(len(experiments.timeline.cuts()))
        ]
    assert set(problems) == {()}
