"""The ways to read a pool: what is asked of each, how it can fail, and which is used."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol


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


class ReaderOption(NamedTuple):
    """A way to read: how to make its reader, or why it is ruled out from the start."""

    name: str
    make: Callable[[], PoolReader]
    ruled_out: str = ""


class FallbackReader:
    """Uses the first candidate that works; never goes back to one that failed."""

    def __init__(self, candidates: Sequence[ReaderOption], prefer: str | None = None) -> None:
        names = [candidate.name for candidate in candidates]
        start = names.index(prefer) if prefer in names else 0
        self._left = list(candidates[start:])
        self._reasons: list[str] = [f"{prefer} asked for"] if start else []
        self._reader: PoolReader | None = None
        self._abandoned: list[PoolReader] = []

    @property
    def reader(self) -> PoolReader | None:
        """The reader in use; None when no way is left."""
        while self._reader is None and self._left:
            candidate = self._left.pop(0)
            if candidate.ruled_out:
                self._reasons.append(candidate.ruled_out)
            else:
                self._reader = candidate.make()
        return self._reader

    @property
    def reason(self) -> str:
        """Why no better way is used, empty for the best."""
        return "; ".join(self._reasons)

    def give_up(self, reader: PoolReader, why: str) -> None:
        """Go on with the next way, unless another pool's read did already."""
        if reader is self._reader:
            self._reasons.append(f"{reader.name}: {why}")
            self._abandoned.append(reader)
            self._reader = None

    async def aclose(self) -> None:
        """Close every reader ever used."""
        for reader in (*self._abandoned, *filter(None, (self._reader,))):
            await reader.aclose()
