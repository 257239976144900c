"""The tunables that matter for a resilver, scrub, rebuild or rebalance."""

from __future__ import annotations

from zconsole.tunables.devices import MEMORY, QUEUES, SPACE
from zconsole.tunables.scans import REBUILD, SCAN, SCAN_TIME
from zconsole.tunables.tunable import Tunable

TUNABLES: tuple[Tunable, ...] = (*SCAN_TIME, *QUEUES, *SCAN, *REBUILD, *SPACE, *MEMORY)
"""Every known tunable, those one reaches for first at the top."""

BY_NAME = {tunable.name: tunable for tunable in TUNABLES}
