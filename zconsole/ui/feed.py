"""Where the console's frames come from: the one thing the console asks of the rest.

The console never samples and never does I/O: it awaits ``Feed.next`` in one worker, and paints
what came. This module imports no textual, so that a feed is made and tested without it.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from typing import TYPE_CHECKING, Protocol

from zconsole.frame import Frame
from zconsole.sources.base import Capabilities

if TYPE_CHECKING:
    from zconsole.scanreport.report import ScanReport
    from zconsole.themechoice import ThemeChoice
    from zconsole.vigil.alerts import Alert


@dataclass(frozen=True, slots=True)
class Update:
    """One round of sampling: a frame for every pool, in an order that stays the same."""

    frames: tuple[Frame, ...]
    capabilities: Capabilities
    """Of the source as it is now; it may have fallen back since the last round."""
    alerts: tuple[Alert, ...] = ()
    """What is worth waking somebody for, each once; only of a feed with a vigil over it."""
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


Past = Callable[[str], Awaitable["Sequence[ScanReport]"]]
"""A pool's GUID to the reports kept of its scans, newest first."""


async def no_past(guid: str) -> Sequence[ScanReport]:
    """For what is kept nowhere: recordings, demos, tests."""
    return ()


@dataclass(frozen=True, slots=True)
class ConsoleOptions:
    """How the console is to look and behave."""

    host: str = ""
    """Name of the machine whose pools these are, for the header."""
    pools: tuple[str, ...] = ()
    """Pools that were asked for by name."""
    theme: str | None = None
    """Name or path of a theme; None takes the one chosen last, or one that suits the terminal."""
    choice: ThemeChoice | None = None
    """Remembers the theme chosen; None forgets it."""
    ascii: bool | None = None
    """ASCII only; None decides by locale and ``TERM``."""
    mouse: bool = True
    read_only: bool = False
    zone: tzinfo | None = None
    """Time zone of clock times; None is the machine's own."""
    past: Past = no_past
    clock: Callable[[], float] = time.monotonic
    """Seconds for the age of a sample between two rounds; differences only."""
