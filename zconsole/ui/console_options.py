"""What a console is told as it starts: whose pools, how it looks, what it may do.

No textual is imported here: the command line makes these options before there is a console.
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
"""A pool's GUID to the reports kept of its scans, newest first."""


@dataclass(frozen=True, slots=True)
class ConsoleOptions:
    """How the console is to look and behave."""

    host: str = ""
    """Name of the machine whose pools these are, for the header."""
    pools: tuple[str, ...] = ()
    """Pools that were asked for by name."""
    theme: str | None = None
    """Name or path of a theme; None takes that of the configuration, or one that suits the
    terminal."""
    config: Config | None = None
    """How the console is to look where nothing here says otherwise, and where a look is saved;
    None for no configuration."""
    saves: bool = True
    """Whether a look may be saved there; a demo's stays in the demo."""
    ascii: bool | None = None
    """ASCII only; None decides by locale and ``TERM``."""
    mouse: bool = True
    in_tmux: bool = False
    """Whether tmux stands between the console and the terminal."""
    read_only: bool = False
    fault: str = ""
    """Why the configuration allows no changes; empty when it does."""
    zone: tzinfo | None = None
    """Time zone of clock times; None is the machine's own."""
    past: Past | None = None
    """None for what is kept nowhere, as of recordings and demos."""
    swap: Callable[[], SwapBackend] | None = None
    """Makes what a guided disk swap needs; None where no disk can be swapped from here."""
    swap_at: tuple[str, str] | None = None
    """The pool whose guided swap is opened at once, and the key of its device, perhaps empty."""
    take_terminal: Callable[[], None] = lambda: None
    """Called right before the terminal is taken over: it is as it was found then."""
    clock: Callable[[], float] = time.monotonic
    """Seconds for the age of a sample between two rounds; differences only."""

    def setting(self, name: str) -> Any:
        """What the configuration says, or the default."""
        return ENTRIES[name].default if self.config is None else self.config.value(name)
