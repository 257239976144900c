"""What limits a running scan, as far as one look at the devices tells."""

from __future__ import annotations

from zconsole.frame import Frame, Row

SATURATED = 0.95
"""Share of time with I/O in flight above which a device is taken to give all it has."""


def likely_limit(frame: Frame) -> str | None:
    """A key of ``presets.LIMITS``, or None when nothing stands out.

    A new disk that is not busy all the time while its siblings are idle for long is held back by
    the number of writes it is given; busy siblings are held back by the reads they are given.
    """
    scan = frame.scan.scan if frame.scan else None
    if scan is None or scan.state != "running":
        return None
    if scan.function == "rebuild":
        return "rebuild"
    leaves = [row for row in frame.rows if not row.vdev.children and row.rates.busy is not None]
    new = [_busy(row) for row in leaves if row.vdev.resilvering]
    old = [_busy(row) for row in leaves if not row.vdev.resilvering]
    if not new or not old:
        return None
    if max(new) >= SATURATED:
        return None
    return "new-disk-writes" if max(new) > sum(old) / len(old) else "scan-reads"


def _busy(row: Row) -> float:
    return row.rates.busy or 0.0
