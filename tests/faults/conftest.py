from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def area(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A directory on a filesystem in memory if there is one, where syncing costs nothing."""
    base = Path("/dev/shm")
    path = Path(tempfile.mkdtemp(prefix="zc-", dir=base if base.is_dir() else None))
    monkeypatch.setenv("ZCONSOLE_STATE", str(path / "state"))
    yield path
    shutil.rmtree(path)
