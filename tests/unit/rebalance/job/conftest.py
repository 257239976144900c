from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from zconsole.rebalance.engine.journal import Journal


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    """An empty journal."""
    with closing(Journal.create(tmp_path / "job.db")) as journal:
        yield journal
