"""Counters of the block devices under the leaves, from rows of /proc/diskstats."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter

from zconsole.pool.model import BlockCounters
from zconsole.zfs.decode.values import check_range
from zconsole.zfs.raw import Raw

_SECTOR = 512
_FIELDS = 14
"""major, minor, name and the eleven counters every kernel since 2.6.25 has."""
_COUNTED = itemgetter(3, 5, 6, 7, 9, 10, 12)
"""Reads, sectors read, milliseconds reading; the same of writes; milliseconds busy."""


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
        if len(names) == 1 and isinstance(names, tuple) and names[0] in self._rows:
            return _counters(names, self._counts(names[0]))  # most; no copy of the name is kept
        known = tuple([name for name in names if name in self._rows])
        if not known:
            return None
        values = [self._counts(name) for name in known]
        total = [sum(column) for column in zip(*values, strict=True)]
        # Devices that carry one leaf's I/O work side by side: as busy as the busiest.
        total[-1] = max(row[-1] for row in values)
        return _counters(known, total)

    def _counts(self, name: str) -> Sequence[int]:
        counts = list(map(int, _COUNTED(self._rows[name])))
        check_range(counts, "diskstats")
        return counts

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
    reads, sectors_read, reading, writes, sectors_written, writing, busy = fields
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
