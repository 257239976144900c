"""Options that the command line passes to a console: pools, look and permissions.

Imports no textual, as the options are made before there is a console.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from typing import TYPE_CHECKING, Any

from zconsole.config.settings import ENTRIES

if TYPE_CHECKING:
    from zconsole.config.file import Config
    from zconsole.scan_report.report import ScanReport
    from zconsole.swap.store import SwapBackend


Past = Callable[[str], Awaitable["Sequence[ScanReport]"]]
"""Returns the reports kept of a pool's scans, newest first, by the pool's GUID."""


@dataclass(frozen=True, slots=True)
class ConsoleOptions:
    """Options for how the console looks and behaves."""

    host: str = ""
    """Name of the machine with these pools, for the header."""
    pools: tuple[str, ...] = ()
    """Pools that were asked for by name."""
    theme: str | None = None
    """Name or path of a theme; None for the configured one, or one that suits the terminal."""
    config: Config | None = None
    """Configuration, for looks not set here and for saving a look; None without one."""
    saves: bool = True
    """Whether a look may be saved; a demo saves nothing."""
    ascii: bool | None = None
    """Whether to show ASCII only; None decides by locale and ``TERM``."""
    mouse: bool = True
    in_tmux: bool = False
    """Whether tmux is between the console and the terminal."""
    read_only: bool = False
    fault: str = ""
    """Why the configuration forbids changes; empty if it allows them."""
    zone: tzinfo | None = None
    """Time zone of clock times; None for the machine's own."""
    past: Past | None = None
    """Reads the reports of past scans; None if none are kept, as for recordings and demos."""
    swap: Callable[[], SwapBackend] | None = None
    """Creates the backend of guided disk swaps; None if no disk can be swapped from here."""
    swap_at: tuple[str, str] | None = None
    """Pool and device key of a swap to open at once; the key may be empty."""
    take_terminal: Callable[[], None] = lambda: None
    """Called right before the console takes the terminal, to restore the state it was found in."""
    clock: Callable[[], float] = time.monotonic
    """Seconds for the age of a sample between two rounds; only differences count."""

    def setting(self, name: str) -> Any:
        """Return the value of a setting from the configuration, or its default."""
        return ENTRIES[name].default if self.config is None else self.config.value(name)
