"""What was worked out last, and of what."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

_T = TypeVar("_T")


class WorkedOut(Generic[_T]):
    """Works something out again only where it is asked for with other inputs than the last time."""

    def __init__(self) -> None:
        """Nothing was asked for yet."""
        self._inputs: tuple[object, ...] | None = None
        self._found: _T

    def of(self, inputs: tuple[object, ...], work: Callable[[], _T]) -> _T:
        """What ``work`` finds; ``inputs`` are all that it depends on."""
        if inputs != self._inputs:
            self._found, self._inputs = work(), inputs
        return self._found
