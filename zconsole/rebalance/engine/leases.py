"""Leases on files that are copied, released soon after another process wants to write to one."""

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
    """Return why there are no leases, and which OpenZFS has them; ``()`` for another filesystem."""
    return "; ".join((NO_LEASES, *hazards(NO_LEASES, version)))


def take_lease(sys: Sys, fd: int, accept_races: bool, version: Version = ()) -> bool:
    """Take a read lease, by which the kernel tells us if somebody opens the file for writing.

    Returns False only if the filesystem has no leases and races are accepted. Raises SkipError if
    somebody has the file open for writing, UnsupportedError, OSError.
    """
    try:
        sys.lease(fd, fcntl.F_RDLCK)
    except OSError as error:
        # Only regular files have leases (fcntl(2)); the walk found one at this name.
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
    """Watches the leases on a batch's files. ``tick`` may wait or raise StopJobError."""

    sys: Sys
    alarm: Alarm
    withdrawal: Withdrawal
    tick: Callable[[int], None]
    items: list[Item] = field(default_factory=list)
    """Items of the current batch."""

    @property
    def live(self) -> list[Item]:
        """The items of the batch that have not ended."""
        return [item for item in self.items if not item.done]

    def service(self) -> None:
        """Release files that another process waits to write to; call it often.

        The kernel keeps that process waiting until then, or for 45 seconds (lease-break-time).
        """
        if not self.alarm.raised:
            return
        self.alarm.raised = False  # first: a signal that comes during the loop counts again
        for item in [*self.live, *(item for item, _ in self.withdrawal.given_back)]:
            if item.leased and not self.sys.leased(item.source):
                self.withdrawal.retreat(item, "open for writing")
            elif item.copy_leased and not self.sys.leased(item.copy):
                self.sys.lease(item.copy, fcntl.F_UNLCK)
                item.copy_leased, item.copy_opened = False, True

    def work(self, item: Item, count: int) -> None:
        """Account for bytes of an item, and serve leases.

        Raises SkipError once the item has ended, and StopJobError.
        """
        self.tick(count)
        self.service()
        if item.done:
            raise SkipError(item.reason or "changed")
