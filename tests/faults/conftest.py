from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import pytest

from tests.faults.company import BATCH, Counting, Watched, helped
from zconsole.rebalance.engine.aside import COPYIST
from zconsole.rebalance.engine.journal import FileRow
from zconsole.rebalance.engine.lookahead import Lookahead
from zconsole.sources.blocking import start_companion


@pytest.fixture
def area(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A directory on a filesystem in memory where there is one: syncing must cost nothing."""
    base = Path("/dev/shm")
    path = Path(tempfile.mkdtemp(prefix="zc-", dir=base if base.is_dir() else None))
    monkeypatch.setenv("ZCONSOLE_STATE", str(path / "state"))
    yield path
    shutil.rmtree(path)


@pytest.fixture
def beside() -> Iterator[Counting]:
    with helped(partial(start_companion, COPYIST)) as aside:
        yield aside


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> Watched:
    """Batches are small."""
    found, begin = Watched(), Lookahead.begin

    def noted(self: Lookahead, rows: Sequence[FileRow]) -> None:
        found.rows.append(len(rows))
        found.ahead.append(self)
        begin(self, rows)

    monkeypatch.setattr(Lookahead, "begin", noted)
    monkeypatch.setattr("zconsole.rebalance.engine.descriptors.BATCH_FILES", 2 * BATCH)
    return found
