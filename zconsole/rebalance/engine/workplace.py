"""What everything that works on the files of one job shares."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass, field
from datetime import datetime

from zconsole.rebalance.engine.directories import Directories
from zconsole.rebalance.engine.file_locks import Alarm, Users
from zconsole.rebalance.engine.journal import Journal
from zconsole.rebalance.engine.syscalls import Sys


@dataclass(frozen=True, slots=True)
class JobClocks:
    """Where time comes from."""

    monotonic: Callable[[], float] = time.monotonic
    epoch: Callable[[], float] = time.time
    booted: Callable[[], float] = lambda: time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
    """When this machine was started, epoch seconds."""
    sleep: Callable[[float], None] = time.sleep
    local: Callable[[], datetime] = datetime.now


@dataclass(frozen=True, slots=True)
class Workplace:
    """The kernel, the journal and the directories of a job, and who else is there."""

    sys: Sys
    journal: Journal
    directories: Directories
    clocks: JobClocks = field(default_factory=JobClocks)
    users: Users = field(default_factory=Users)
    alarm: Alarm = field(default_factory=Alarm)
    """Hears of broken leases."""
    threads: Executor | None = None
    """Read small copies back, and close originals."""
