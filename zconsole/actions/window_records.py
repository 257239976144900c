"""The hours of scrubs: one file, shared by every console of the machine, and who keeps to them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from zconsole.pool.scrub_window import ScrubWindow
from zconsole.system.keeper import wake
from zconsole.system.record_file import LockedRecord
from zconsole.system.state_dir import state_dir

NAME, LOCK, KEEPER = "scrub-windows.json", "scrub-windows.lock", "scrub-windows.keeper"
PATIENCE = 10.0
"""Seconds to wait while another process changes the file."""

Windows = dict[str, ScrubWindow]
"""By the GUID of the pool."""


@dataclass(frozen=True, slots=True)
class _File:
    windows: tuple[ScrubWindow, ...]
    version: int = 1


class MachineWindows:
    """The file in the state directory, which the keeper keeps to; see WindowSwitch."""

    def __init__(self, directory: Path | None = None) -> None:
        """``directory`` keeps the file (default: the state directory)."""
        self.directory = directory or state_dir(create=False)
        self._file = LockedRecord(_File(()), self.directory / NAME, LOCK, PATIENCE)

    def windows(self) -> tuple[ScrubWindow, ...]:
        """See WindowSwitch.windows; without a lock. Raises StateError for a damaged file."""
        return self._file.read().windows

    @contextlib.contextmanager
    def open(self) -> Iterator[Windows]:
        """The windows, to be changed by one at a time; written if changed. Raises StateError."""
        with self._file.open() as write:
            before = self.windows()
            windows = {window.guid: window for window in before}
            yield windows
            if (after := tuple(windows.values())) != before:
                write(_File(after))

    def switch(self, order: ScrubWindow) -> str:
        """See WindowSwitch.switch."""
        with self.open() as windows:
            known = windows.pop(order.guid, None)
            if order.hours:
                # Paused for other hours is paused for these, too.
                paused = order.paused or (known is not None and known.paused)
                windows[order.guid] = replace(order, paused=paused)
        if order.hours:
            wake(self.directory, KEEPER)
        return order.ordered

    def resume(self) -> None:
        """See WindowSwitch.resume."""
        if self.windows():
            wake(self.directory, KEEPER)

    def replaced(self, before: ScrubWindow, after: ScrubWindow | None) -> bool:
        """Put one in the place of another, or none; whether that was still there."""
        with self.open() as windows:
            if windows.get(before.guid) != before:
                return False
            if after is None:
                del windows[before.guid]
            else:
                windows[after.guid] = after
            return True
