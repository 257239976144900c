"""The objects that all parts of one job share: system calls, journal, directories, clocks."""

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
    """The clocks of a job, and its sleep; tests replace them."""

    monotonic: Callable[[], float] = time.monotonic
    epoch: Callable[[], float] = time.time
    booted: Callable[[], float] = lambda: time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
    """When this machine was started, epoch seconds."""
    sleep: Callable[[float], None] = time.sleep
    local: Callable[[], datetime] = datetime.now


@dataclass(frozen=True, slots=True)
class Workplace:
    """The shared objects of a job."""

    sys: Sys
    journal: Journal
    directories: Directories
    clocks: JobClocks = field(default_factory=JobClocks)
    users: Users = field(default_factory=Users)
    alarm: Alarm = field(default_factory=Alarm)
    """Set by the kernel's signal when a lease is broken."""
    threads: Executor | None = None
    """Threads that read small copies back, if there are any."""
