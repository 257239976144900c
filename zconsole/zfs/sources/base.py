"""Interface that every source of samples implements, whether live, recorded or simulated."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from zconsole.zfs.raw import Raw

NO_READER = "none"
"""Name of a source that has no way to read pools."""


class Capabilities(NamedTuple):
    """Capabilities of a source; the console grays out what is unavailable and shows the reason."""

    name: str
    """libzfs, json, text, replay or demo."""
    reason: str = ""
    """Why no better source is used: ``libzfs: /dev/zfs: Permission denied``."""
    live: bool = True
    """True if actions on the pools are possible through this source."""
    denied: str = ""
    """Why actions are not possible (``not root``); empty when they are."""
    version: str | None = None
    flags: tuple[str, ...] = ()
    """Words for the header: REPLAY, DEMO."""


class Source(Protocol):
    """Takes one raw form of every watched pool, with a time limit for pools that do not answer.

    The first round waits as long as a read may take (``live.DEADLINE`` for each attempt, once
    the reader has started); later ones wait ``live.PATIENCE``. A source over a network has
    its own limits.
    """

    @property
    def capabilities(self) -> Capabilities:
        """Current capabilities of this source; a live one may fall back to another reader."""

    async def sample(self) -> tuple[Raw, ...] | None:
        """Return one raw form per pool, in a fixed order; a pool without one has ``problem`` set.

        ``None`` means that the source has ended (a recording played to its end). Raises
        NotFoundError, and UnavailableError where the pools cannot even be listed; a console ends.
        """

    async def aclose(self) -> None:
        """Stop what is in flight; what hangs is left behind."""
