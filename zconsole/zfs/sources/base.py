"""What every source of samples offers, live, recorded or simulated."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from zconsole.zfs.raw import Raw

NO_READER = "none"
"""Name of a source that has no way to read pools."""


class Capabilities(NamedTuple):
    """What a source can do; the console greys out the rest, with the reason."""

    name: str
    """libzfs, json, text, replay or demo."""
    reason: str = ""
    """Why no better source is used: ``libzfs: /dev/zfs: Permission denied``."""
    live: bool = True
    """Whether pools can be acted on through it."""
    denied: str = ""
    """Why actions are not possible (``not root``), empty when they are."""
    version: str | None = None
    flags: tuple[str, ...] = ()
    """Words for the header: REPLAY, DEMO."""


class Source(Protocol):
    """Takes one raw sample of every pool it watches, and waits only so long for one that hangs.

    The first time that is as long as a read may take (``live.DEADLINE`` for each attempt, after
    the start of what reads), later ``live.PATIENCE``; a source over a network has its own bounds.
    """

    @property
    def capabilities(self) -> Capabilities:
        """What this source can do; may improve or fall back between samples."""

    async def sample(self) -> tuple[Raw, ...] | None:
        """One raw form per pool, in a fixed order; a pool without one has ``problem`` set.

        ``None`` means that the source has ended (a recording played to its end).
        Raises UnavailableError or NotFoundError only before the first sample.
        """

    async def aclose(self) -> None:
        """Stop everything in flight within a second."""
