"""A run over any source: raw forms in, one frame a pool out, each pool with its own history."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, tzinfo

from zconsole.assemble import blank_frame, frame_of, stale_frame
from zconsole.decode import decode
from zconsole.errors import NotUnderstoodError
from zconsole.frame import Frame
from zconsole.history import PoolHistory
from zconsole.model import Sample, Trouble
from zconsole.raw import Raw


class Session:
    """Turns the rounds of one source into frames, remembering each pool between them."""

    def __init__(self, zone: tzinfo = UTC, flags: tuple[str, ...] = ()) -> None:
        self._zone = zone
        self._flags = flags
        self._histories: dict[str, PoolHistory] = {}
        self._last: dict[str, Frame] = {}

    def advance(self, raws: Iterable[Raw]) -> tuple[Frame, ...]:
        """One frame for every pool of this round, in the round's order.

        A raw form that cannot be read is a frame with a ``problem`` once the pool is known;
        raises NotUnderstoodError where nothing tells which pool it is.
        """
        frames: list[Frame] = []
        for raw in raws:
            frames.extend(self._frame(seen) for seen in self._decode(raw))
        return tuple(frames)

    def history(self, pool: str) -> PoolHistory:
        """What is remembered of a pool; empty for one not seen yet."""
        return self._histories.setdefault(pool, PoolHistory())

    def last(self, pool: str) -> Frame | None:
        """The last good frame of a pool; None for one that has given none."""
        return self._last.get(pool)

    def _decode(self, raw: Raw) -> tuple[Sample | Trouble, ...]:
        try:
            return decode(raw, self._zone)
        except NotUnderstoodError as error:
            name = raw.get("pool")
            if name is None:
                raise
            clock = raw.get("clock", raw["t"])
            return (Trouble(name, raw["t"], clock, str(error), raw.get("kstat")),)

    def _frame(self, seen: Sample | Trouble) -> Frame:
        if isinstance(seen, Trouble):
            return self._troubled(seen)
        history = self.history(seen.pool.name)
        history.push(seen)
        frame = frame_of(seen, history, self._flags)
        self._last[frame.pool] = frame
        return frame

    def _troubled(self, trouble: Trouble) -> Frame:
        history = self.history(trouble.pool)
        history.push_trouble(trouble)
        last = self._last.get(trouble.pool)
        if last is None:
            return blank_frame(trouble, "none", history.series)
        return stale_frame(last, trouble, history)
