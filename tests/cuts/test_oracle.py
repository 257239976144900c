"""Tests of the experiments: each engine with one mistake must be caught.

Some mistakes are not caught, because they lose nothing:

- ``Swapper._undisturbed`` that always agrees: the lease's alarm reports whoever opens the file
  before the next step, and ``finish`` checks again;
- ``replace`` without its first comparison: what changed before that differs after the exchange;
- ``_remove`` without comparing: nobody in the model creates files under the engine's names;
- ``_give_back`` that does nothing: both versions are kept, and reported.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

import pytest

from tests.cuts.campaign import judged
from tests.cuts.choices import Choose, by_chance
from tests.cuts.experiment import SPOILED, Experiments
from tests.cuts.kept_journal import KeptDatabase
from tests.cuts.others import ACTS, Other
from tests.cuts.timeline import KILL, WORST
from tests.cuts.workloads import WORKLOADS
from zconsole.rebalance.engine import metadata, recovery
from zconsole.rebalance.engine.copy_engine import CopyPipeline
from zconsole.rebalance.engine.directories import Directories
from zconsole.rebalance.engine.item import Item
from zconsole.rebalance.engine.link_names import NameJoiner
from zconsole.rebalance.engine.metadata import Metadata
from zconsole.rebalance.engine.recovery import Recovery
from zconsole.rebalance.engine.swap import Swapper
from zconsole.rebalance.engine.verify import Verifier
from zconsole.rebalance.job.runner import JobRunner

TRIES = 600
"""Experiments after which a mistake counts as not caught."""
Plant = Callable[[pytest.MonkeyPatch], None]


def _replaced(owner: Any, name: str, new: Any) -> Plant:
    return lambda patch: patch.setattr(owner, name, new)


def _nothing(*_: object) -> None:
    """Do nothing at all."""


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

    def _but_xattrs(one: Metadata, other: Metadata) -> str | None:
        return difference(one, other._replace(xattrs=one.xattrs))

    patch.setattr(metadata, "apply", _without)
    patch.setattr(Metadata, "difference", _but_xattrs)


def _names_not_committed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(CopyPipeline, "_commit_names", lambda _: None)


def _lazy_journal(patch: pytest.MonkeyPatch) -> None:
    execute = KeptDatabase.execute

    def _lazily(db: KeptDatabase, *words: Any) -> Any:
        db.durable = False
        return execute(db, *words)

    patch.setattr(KeptDatabase, "execute", _lazily)


def _touched_at_the_end(patch: pytest.MonkeyPatch) -> None:
    finish = Swapper.finish

    def _finished(swapper: Swapper, item: Item) -> None:
        item.meta, status = metadata.read(swapper.sys, item.source, swapper.abilities)
        item.swapped_ctime = status.st_ctime_ns
        finish(swapper, item)

    patch.setattr(Swapper, "finish", _finished)


def _recovery_without_sync(patch: pytest.MonkeyPatch) -> None:
    run = Recovery.run

    def _unsynced(settling: Recovery) -> int:
        settling.sync = lambda: None
        return run(settling)

    patch.setattr(Recovery, "run", _unsynced)


def _flush_without_sync(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(JobRunner, "_flush", lambda runner: runner._engine.results.flush())


class Mistake(NamedTuple):
    """A mistake in an engine, and the experiments that show it first."""

    plant: Plant
    shown: Callable[[Experiments, random.Random], Iterator[str]]
    workload: str = "one file"


def _crashes(experiments: Experiments, source: random.Random) -> Iterator[str]:
    for _ in range(TRIES):
        cut = source.choice(experiments.timeline.cuts())
        yield from experiments.crash(cut, by_chance(source))


def _spoiled_writes(experiments: Experiments, source: random.Random) -> Iterator[str]:
    for number, code in experiments.faults():
        if code == SPOILED:
            yield from experiments.error(number, code, by_chance(source))


def _others(*acts: str) -> Callable[[Experiments, random.Random], Iterator[str]]:
    """Return a trial in which a process interferes at every call, sometimes with a crash."""

    def _shown(experiments: Experiments, source: random.Random) -> Iterator[str]:
        exchange = experiments.names.index("exchange")
        # Start where most mistakes show: the copy has the name, and the original is still there.
        for begin in (*range(exchange, experiments.calls + 1), *range(exchange - 1, 0, -1)):
            for act in acts:
                for pause in (0, 1, 3):
                    other = Other(ACTS[act], b"file", begin, pause)
                    yield from experiments.other(other, by_chance(source))

    return _shown


def _writers_and_cuts(act: str, mode: int) -> Callable[[Experiments, random.Random], Iterator[str]]:
    """Return a trial in which a process writes during the exchange, always with a crash."""

    def _shown(experiments: Experiments, source: random.Random) -> Iterator[str]:
        exchange, cuts = experiments.names.index("exchange"), experiments.timeline.cuts()
        for begin in range(exchange - 5, experiments.calls):
            chosen = by_chance(source)
            for cut in range(source.randrange(3), len(cuts), 3):
                begun = iter((1, cut, mode))
                other = Other(ACTS[act], b"file", begin, 0)
                yield from experiments.other(other, partial(_first, begun, chosen))

    return _shown


def _first(begun: Iterator[int], chosen: Choose, most: int) -> int:
    given = next(begun, None)
    return chosen(most) if given is None else min(given, most)


def _no_intents(pipeline: CopyPipeline) -> None:
    """Commit the results so far, but not the next intents."""
    pipeline.results.commit((), pipeline._directory_times(pipeline.leases.live))


_LINKS = "links in two directories"
MISTAKES = {
    "a batch without its sync": Mistake(_no_sync_of_a_batch, _crashes),
    "names exchanged before the intent": Mistake(_exchange_before_the_intent, _crashes),
    "no intent": Mistake(_replaced(CopyPipeline, "_commit_intents", _no_intents), _crashes),
    "temporary names not committed": Mistake(_names_not_committed, _crashes),
    "commits that are not waited for": Mistake(_lazy_journal, _crashes),
    "copies not read back": Mistake(
        _replaced(Verifier, "_is_same", lambda *_: True), _spoiled_writes
    ),
    "attributes forgotten": Mistake(_no_xattrs, _crashes, "attributes"),
    "directory times left": Mistake(_replaced(Directories, "restore_times", _nothing), _crashes),
    "results told before they are synced": Mistake(_flush_without_sync, _crashes),
    "a recovery without its sync": Mistake(_recovery_without_sync, _crashes),
    "a recovery that compares no copy": Mistake(
        _replaced(Recovery, "_spoiled", _nothing), _writers_and_cuts("write", WORST)
    ),
    "a recovery that compares no versions": Mistake(
        _replaced(recovery, "replaceable", lambda *_: True), _writers_and_cuts("write late", KILL)
    ),
    "a recovery that lets names apart": Mistake(
        _replaced(NameJoiner, "join", lambda *_: False), _crashes, _LINKS
    ),
    "writers not looked for at the end": Mistake(
        _replaced(Swapper, "_quiet", lambda *_: True), _others("write late")
    ),
    "the original touched at the end": Mistake(_touched_at_the_end, _others("chmod late")),
    "a copy that was changed taken back": Mistake(
        _replaced(Swapper, "_need_pristine", _nothing), _others("write and open")
    ),
    "changes not looked for": Mistake(
        _replaced(Metadata, "same", lambda *_: True), _others("chmod")
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_seen(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    mistake = MISTAKES[name]
    mistake.plant(monkeypatch)
    workload = next(each for each in WORKLOADS if each.name == mistake.workload)
    experiments, source = Experiments(workload), random.Random(name)
    assert judged(islice(mistake.shown(experiments, source), 1))
