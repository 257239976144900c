"""Where frames come from: the one thing that shows and alerts ask of the rest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from zconsole.monitor.frame import Frame
from zconsole.zfs.sources.base import Capabilities

if TYPE_CHECKING:
    from zconsole.monitor.alerts.rules import Alert


@dataclass(frozen=True, slots=True)
class Update:
    """One round of sampling: a frame for every pool, in an order that stays the same."""

    frames: tuple[Frame, ...]
    capabilities: Capabilities
    """Of the source as it is now; it may have fallen back since the last round."""
    alerts: tuple[Alert, ...] = ()
    """What is worth waking somebody for, each once; only of a feed with alerts."""
    ring: str = ""
    """What those alerts are to write to the terminal: its bell, notifications."""
    notes: tuple[str, ...] = ()
    """What went wrong with what is kept on disk, each thing once."""


class Feed(Protocol):
    """Produces frames at its own pace; history is fed whether or not anybody paints."""

    @property
    def interval(self) -> float:
        """Seconds between samples now."""

    def set_interval(self, seconds: float) -> None:
        """Sample every ``seconds`` from now on; takes effect at once."""

    async def next(self) -> Update | None:
        """The next round, or ``None`` once there will be no more (a recording has ended).

        A pool that does not answer is a frame with ``problem`` and ``stale_seconds``, within the
        sampling deadline; it is never an exception and never a call that stays away.
        """

    async def details(self, pool: str, key: str) -> tuple[tuple[str, str], ...]:
        """Label and value pairs about one device that sampling does not give (serial, model).

        Asked for only when a row is expanded; empty when there is nothing to tell.
        """

    async def aclose(self) -> None:
        """Stop sampling within a second."""
