"""A directory keeps its times even where its only file in a batch could not be copied."""

from __future__ import annotations

import errno

from tests.cuts.campaign import judged
from tests.cuts.choices import given
from tests.cuts.disk import Tree
from tests.cuts.experiment import Experiments
from tests.cuts.machine import isolated
from tests.cuts.timeline import KILL
from tests.cuts.workloads import Workload


def _tree(tree: Tree) -> None:
    tree.directory(b"a")
    tree.directory(b"b")
    tree.file(b"a/one", b"content of one")
    tree.file(b"b/two", b"content of two")


def test_a_death_after_a_failed_copy_leaves_no_wrong_time() -> None:
    with isolated():
        experiments = Experiments(Workload("two directories", _tree))
        writes = [at for at, call in enumerate(experiments.names, start=1) if call == "pwrite"]
        problems = [
            judged(experiments.error(writes[-1], errno.EIO, given([1, cut, KILL])))
            for cut in range(len(experiments.timeline.cuts()))
        ]
    assert set(problems) == {()}
