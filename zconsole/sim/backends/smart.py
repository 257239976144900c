"""What simulated disks count of themselves."""

from __future__ import annotations

from zconsole.diagnosis.device_errors.faults import SmartCounts
from zconsole.sim.disk import Leaf


def smart_counts(disk: Leaf) -> SmartCounts:
    """What a simulated disk says of itself, by its errors: bad sectors, or a bad cable."""
    bad, damaged = int(disk.reads.errors + disk.writes.errors), int(disk.cksum_errors)
    if damaged > 3 * bad:
        return SmartCounts(passed=True, reallocated=0, pending=0, uncorrectable=0, crc=damaged)
    if disk.model.flash:
        return SmartCounts(passed=True, uncorrectable=bad)
    return SmartCounts(passed=True, reallocated=bad, pending=bad // 8, uncorrectable=0, crc=0)
