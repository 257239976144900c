"""The hours of scrubs: one file, shared by every console of the machine, and who keeps to them."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from zconsole.pool.scrub_window import ScrubWindow
from zconsole.system.launcher import own
from zconsole.system.patient import Patient
from zconsole.system.process import start_unless_locked
from zconsole.system.record_file import read_record, write_record
from zconsole.system.state_dir import StateError, lock_within, state_dir

NAME, LOCK, KEEPER = "scrub-windows.json", "scrub-windows.lock", "scrub-windows.keeper"
PATIENCE = 10.0
"""Seconds to wait while another process changes the file."""

Windows = dict[str, ScrubWindow]
"""By the GUID of the pool."""


@dataclass(frozen=True, slots=True)
class _File:
    windows: tuple[ScrubWindow, ...]
    version: int = 1


class WindowRecords:
    """The file in the state directory, locked while it is changed."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._path = directory / NAME

    def read(self) -> Windows:
        """The windows as they are now, without a lock. Raises StateError for a damaged file."""
        try:
            file = read_record(_File, self._path)
        except FileNotFoundError:
            return {}
        return {window.guid: window for window in file.windows}

    @contextlib.contextmanager
    def open(self) -> Iterator[Windows]:
        """The windows, to be changed by one at a time; written if changed. Raises StateError."""
        handle = lock_within(self.directory / LOCK, PATIENCE)
        if handle is None:
            raise StateError("another zconsole keeps the hours of scrubs locked; try again")
        try:
            windows = self.read()
            before = dict(windows)
            yield windows
            if windows != before:
                write_record(self._path, _File(tuple(windows.values())))
        finally:
            os.close(handle)

    def replaced(self, before: ScrubWindow, after: ScrubWindow | None) -> bool:
        """Put one in the place of another, or none; whether that was still there."""
        with self.open() as windows:
            if windows.get(before.guid) != before:
                return False
            del windows[before.guid]
            if after is not None:
                windows[after.guid] = after
            return True

    def idle(self, lock: int) -> bool:
        """Whether there is no window; the keeper's lock is released before anybody adds one."""
        with self.open() as windows:
            if windows:
                return False
            os.close(lock)
            return True


def start_keeper(directory: Path) -> None:
    """Have a process keep the windows, unless one does."""
    argv = own("zconsole.cli.window_keeper", "--state", str(directory))
    start_unless_locked(directory / KEEPER, argv, directory / "scrub-windows.log")


class MachineWindows:
    """The windows of this machine; see WindowSwitch."""

    def __init__(
        self,
        directory: Callable[[bool], Path] = state_dir,
        start: Callable[[Path], None] = start_keeper,
    ) -> None:
        """``directory`` is told whether to make it: who only reads does not."""
        self._directory = directory
        self._start = start
        self._patient = Patient()

    def switch(self, order: ScrubWindow) -> str:
        """See WindowSwitch.switch."""
        return self._patient.call(partial(self._switch, order), 2 * PATIENCE)

    def windows(self) -> tuple[ScrubWindow, ...]:
        """See WindowSwitch.windows."""
        return tuple(self._patient.call(lambda: self._records(create=False).read()).values())

    def resume(self) -> None:
        """See WindowSwitch.resume."""
        records = self._records(create=False)
        if records.read():
            self._start(records.directory)

    def _switch(self, order: ScrubWindow) -> str:
        records = self._records(create=True)
        with records.open() as windows:
            known = windows.pop(order.guid, None)
            if order.hours:
                # Paused for other hours is paused for these, too.
                paused = order.paused or (known is not None and known.paused)
                windows[order.guid] = replace(order, paused=paused)
        if order.hours:
            self._start(records.directory)
        return order.ordered

    def _records(self, *, create: bool) -> WindowRecords:
        return WindowRecords(self._directory(create))
