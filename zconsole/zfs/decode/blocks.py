"""Counters of the block devices under the leaves, from rows of /proc/diskstats."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from zconsole.pool.model import BlockCounters
from zconsole.zfs.decode.values import integers
from zconsole.zfs.raw import Raw

_SECTOR = 512
_FIELDS = 14
"""major, minor, name and the eleven counters every kernel since 2.6.25 has."""


class Blocks:
    """Looks up the counters of a leaf by its path.

    Fields: Documentation/admin-guide/iostats.rst of Linux; sectors of 512 bytes, milliseconds.
    """

    def __init__(self, raw: Raw) -> None:
        self._rows = {row[2]: row for row in _rows(raw.get("diskstats"))}
        self._devices: Mapping[str, Sequence[str]] = raw.get("devices") or {}

    def __bool__(self) -> bool:
        return bool(self._rows)

    def of(self, path: str) -> BlockCounters | None:
        """The counters for a leaf path; without ``devices`` the name after /dev is tried."""
        names = self._devices.get(path) or (path.removeprefix("/dev/"),)
        known = tuple([name for name in names if name in self._rows])
        if not known:
            return None
        if len(known) == 1:
            return _counters(known, self._counts(known[0]))
        values = [self._counts(name) for name in known]
        total = [sum(column) for column in zip(*values, strict=True)]
        # Devices that carry one leaf's I/O work side by side: as busy as the busiest.
        total[9] = max(row[9] for row in values)
        return _counters(known, total)

    def _counts(self, name: str) -> Sequence[int]:
        return integers(list(map(int, self._rows[name][3:13])), "diskstats")

    def all(self) -> dict[str, BlockCounters]:
        """The counters of every path in ``devices``."""
        found = {path: self.of(path) for path in self._devices}
        return {path: counters for path, counters in found.items() if counters is not None}

    def gone(self) -> tuple[str, ...]:
        """Paths in ``devices`` that no longer have counters."""
        return tuple(path for path in self._devices if self.of(path) is None)


def _rows(diskstats: object) -> Iterator[Sequence[str]]:
    """The rows as fields, also where a recording has them as lines of text."""
    found = diskstats.splitlines() if isinstance(diskstats, str) else diskstats
    for row in found if isinstance(found, list | tuple) else ():
        fields = row.split() if isinstance(row, str) else row
        if isinstance(fields, list | tuple) and len(fields) >= _FIELDS:
            yield fields


def _counters(names: tuple[str, ...], fields: Sequence[int]) -> BlockCounters:
    reads, _, sectors_read, reading, writes, _, sectors_written, writing, _, busy = fields
    # In order, not by name: every sample makes one for every disk.
    return BlockCounters(
        names,
        reads,
        sectors_read * _SECTOR,
        reading / 1000,
        writes,
        sectors_written * _SECTOR,
        writing / 1000,
        busy / 1000,
    )
