"""Temporary directories of machines, cleaned up after crashes."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from tests.vm.cache import remove_tree, try_lock

_PREFIX = "zcvm-"


@dataclass(frozen=True)
class RunDirectory:
    """A directory with a lock that its process holds for life; one without a holder is garbage."""

    path: Path
    descriptor: int

    @classmethod
    def create(cls) -> Self:
        """Create a directory, after deleting those of dead processes."""
        base = Path(tempfile.gettempdir())
        _sweep(base)
        path = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=base))
        descriptor = os.open(path / "lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        try_lock(descriptor)
        return cls(path, descriptor)

    def remove(self) -> None:
        """Delete the directory with all its files; may be called twice."""
        if self.path.exists():
            remove_tree(self.path)
            os.close(self.descriptor)


def _sweep(base: Path) -> None:
    """Delete the directories whose lock nobody holds."""
    for lock in base.glob(f"{_PREFIX}*/lock"):
        try:
            descriptor = os.open(lock, os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:
            continue
        try:
            if try_lock(descriptor):
                remove_tree(lock.parent)
        finally:
            os.close(descriptor)
