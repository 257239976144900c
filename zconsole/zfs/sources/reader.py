"""What the live source asks of each way to read a pool, and how such a way can fail."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol


class PoolGoneError(Exception):
    """The pool is not imported (any more)."""


class ReadFailedError(Exception):
    """A read that gave nothing; the next may. The text says why."""


class ReaderUnusableError(Exception):
    """A way of reading that does not work on this machine; another must take over."""


class PoolReader(Protocol):
    """One way to read pools: libzfs, JSON or text."""

    @property
    def name(self) -> str:
        """libzfs, json or text: the ``source`` of its samples."""

    async def read(self, pool: str, deadline: float) -> Mapping[str, Any]:
        """The keys of a raw form that hold the pool's state.

        Raises DeadlineError after ``deadline`` seconds, and the three errors of this module.
        """

    async def aclose(self) -> None:
        """Abandon whatever is in flight."""
