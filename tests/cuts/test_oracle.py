"""What the experiments must see: engines with one mistake each."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.cuts.campaign import judged
from tests.cuts.choices import by_chance
from tests.cuts.experiment import Experiments
from tests.cuts.machine import isolated
from tests.cuts.workloads import WORKLOADS
from zconsole.rebalance.engine import copy_engine, metadata, recovery, swap
from zconsole.rebalance.engine.content import Written
from zconsole.rebalance.engine.copy_engine import CopyPipeline
from zconsole.rebalance.engine.database import JournalDatabase
from zconsole.rebalance.engine.directories import Directories
from zconsole.rebalance.engine.metadata import Metadata
from zconsole.rebalance.engine.recovery import Recovery
from zconsole.rebalance.engine.results import Results
from zconsole.rebalance.engine.swap import Swapper
from zconsole.rebalance.engine.verify import Verifier
from zconsole.rebalance.job.runner import FilesystemSync, JobRunner

TRIES = 1500
"""Experiments after which a mistake counts as not seen."""
Plant = Callable[[pytest.MonkeyPatch], None]


def _replaced(owner: Any, name: str, new: Any) -> Plant:
    return lambda patch: patch.setattr(owner, name, new)


def _no_sync_of_a_batch(patch: pytest.MonkeyPatch) -> None:
    def _reopened(pipeline: CopyPipeline) -> None:
        for item in pipeline.leases.live:
            pipeline.withdrawal.guarded(item, pipeline.verifier.reopen)

    patch.setattr(CopyPipeline, "_make_durable", _reopened)


def _exchange_before_the_intent(patch: pytest.MonkeyPatch) -> None:
    commit, replace = CopyPipeline._commit_intents, CopyPipeline._replace_all

    def _both(pipeline: CopyPipeline) -> None:
        replace(pipeline)
        commit(pipeline)

    patch.setattr(CopyPipeline, "_commit_intents", _both)
    patch.setattr(CopyPipeline, "_replace_all", lambda _: None)


def _no_xattrs(patch: pytest.MonkeyPatch) -> None:
    difference, apply = Metadata.difference, metadata.apply

    def _without(sys: Any, fd: int, wanted: Metadata, fresh: Metadata, abilities: Any) -> None:
        apply(sys, fd, wanted._replace(xattrs={}), fresh, abilities)

    patch.setattr(metadata, "apply", _without)
    patch.setattr(
        Metadata, "difference", lambda one, other: difference(one, other._replace(xattrs=one.xattrs))
    )


def _names_not_committed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(CopyPipeline, "_commit_names", lambda _: None)


def _lazy_journal(patch: pytest.MonkeyPatch) -> None:
    commit = JournalDatabase.commit

    def _lazily(journal: JournalDatabase) -> None:
        with journal.lazily_durable():
            commit(journal)

    patch.setattr(JournalDatabase, "commit", _lazily)


def _recovery_without_sync(patch: pytest.MonkeyPatch) -> None:
    run = Recovery.run

    def _unsynced(settling: Recovery) -> int:
        settling.sync = lambda: None
        return run(settling)

    patch.setattr(Recovery, "run", _unsynced)


def _flush_without_sync(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(JobRunner, "_flush", lambda runner: runner._engine.results.flush())


MISTAKES: dict[str, Plant] = {
    "a batch without its sync": _no_sync_of_a_batch,
    "names exchanged before the intent is committed": _exchange_before_the_intent,
    "copies not read back": _replaced(Verifier, "_is_same", lambda *_: True),
    "attributes forgotten": _no_xattrs,
    "temporary names not committed": _names_not_committed,
    "commits that are not waited for": _lazy_journal,
    "a recovery without its sync": _recovery_without_sync,
    "results told before they are synced": _flush_without_sync,
    "a recovery that compares no copy": _replaced(Recovery, "_spoiled", lambda *_: None),
    "a recovery that compares no versions": _replaced(recovery, "replaceable", lambda *_: True),
    "a recovery that lets names apart": _replaced(Recovery, "_join", lambda *_: False),
    "directory times left": _replaced(Directories, "restore_times", lambda _: None),
    "writers not looked for at the end": _replaced(Swapper, "_quiet", lambda *_: True),
    "changes not looked for at the end": _replaced(Metadata, "same", lambda *_: True),
}


@pytest.fixture(autouse=True)
def _isolated() -> Iterator[None]:
    with isolated():
        yield


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_seen(mistake: str, monkeypatch: pytest.MonkeyPatch) -> None:
    MISTAKES[mistake](monkeypatch)
    problem = _first_problem()
    print(mistake, problem)
    assert problem is not None


def _first_problem() -> str | None:
    """The first thing that goes wrong in experiments of chance on all workloads in turn."""
    made = [Experiments(each) for each in WORKLOADS]
    source = random.Random(0)
    for number in range(TRIES):
        experiments = made[number % len(made)]
        problems = judged(experiments.any(by_chance(source)))
        if problems:
            return f"{number}: {problems[0]}"
    return None
