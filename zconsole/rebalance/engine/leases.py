"""Leases on files to copy, released before another process has waited for long."""

from __future__ import annotations

import errno
import fcntl
import stat
from collections.abc import Callable
from dataclasses import dataclass, field

from zconsole.pool.hazards import hazards
from zconsole.pool.model import Version
from zconsole.rebalance.engine.file_locks import Alarm
from zconsole.rebalance.engine.item import Item, SkipError, UnsupportedError
from zconsole.rebalance.engine.syscalls import Sys
from zconsole.rebalance.engine.withdrawal import Withdrawal

NO_LEASES = "no leases on this filesystem"


def unleased(version: Version) -> str:
    """Why there are no leases, and which OpenZFS grants them; ``()`` on another filesystem."""
    return "; ".join((NO_LEASES, *hazards(NO_LEASES, version)))


def take_lease(sys: Sys, fd: int, accept_races: bool, version: Version = ()) -> bool:
    """Whether a file is leased now: the kernel tells us of whoever opens it for writing.

    False only where the filesystem has no leases and races are accepted. Raises SkipError where
    somebody has it open for writing, UnsupportedError, OSError.
    """
    try:
        sys.lease(fd, fcntl.F_RDLCK)
    except OSError as error:
        if not stat.S_ISREG(sys.fstat(fd).st_mode):
            raise SkipError("changed") from error
        if error.errno == errno.EAGAIN:
            raise SkipError("open for writing") from error
        if accept_races:
            return False
        if error.errno in (errno.EINVAL, errno.ENOLCK, errno.EOPNOTSUPP):
            raise UnsupportedError(unleased(version)) from error
        raise
    return True


@dataclass(slots=True)
class LeaseService:
    """Watches the leases of a batch's files. ``tick`` may wait or raise StopJobError."""

    sys: Sys
    alarm: Alarm
    withdrawal: Withdrawal
    tick: Callable[[int], None]
    items: list[Item] = field(default_factory=list)
    """Those of the batch under way."""

    @property
    def live(self) -> list[Item]:
        """The items that have not ended."""
        return [item for item in self.items if not item.done]

    def service(self) -> None:
        """Release files that another process waits to write to; call it often."""
        if not self.alarm.raised:
            return
        self.alarm.raised = False
        for item in [*self.live, *(item for item, _ in self.withdrawal.given_back)]:
            if item.leased and not self.sys.leased(item.source):
                self.withdrawal.retreat(item, "open for writing")
            elif item.copy_leased and not self.sys.leased(item.copy):
                self.sys.lease(item.copy, fcntl.F_UNLCK)
                item.copy_leased, item.copy_opened = False, True

    def work(self, item: Item, count: int) -> None:
        """Account for bytes of an item. Raises SkipError once the item has ended, StopJobError."""
        self.tick(count)
        self.service()
        if item.done:
            raise SkipError(item.reason or "changed")
