"""Which leaves sit out: reads go around a device that is much slower than its siblings.

Neither a pool's config nor ``zpool status`` says so, only the property ``sit_out`` of each leaf of
a raidz or dRAID (vdevprops(7), 2.4 and later).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from zconsole.pool.version import parse_version
from zconsole.system.async_process import CommandRunner
from zconsole.zfs.decode.values import mapping
from zconsole.zfs.raw import numbers
from zconsole.zfs.sources.occasional import AT_LEAST_EVERY, AT_MOST_EVERY, OccasionalCommand
from zconsole.zfs.sources.reader import Commands

STILL_EVERY = 30.0
"""Seconds between two commands while a leaf sits out: nothing tells when it no longer does."""

_SINCE = (2, 4)
_SLOW_IOS = 34
"""Index in ``vdev_stats`` (include/sys/fs/zfs.h)."""
_LAYOUTS = ("raidz", "draid")

SittingOut = Sequence[Mapping[str, str]]
"""See ``Raw.sitting_out``."""


class SitOutReader(OccasionalCommand):
    """The leaves of one pool that sit out.

    One that begins to counts a slow I/O (vdev_raidz_sit_child, module/zfs/vdev_raidz.c): libzfs
    tells when to ask.
    """

    def __init__(
        self, runner: CommandRunner, pool: str, version: str | None, deadline: float
    ) -> None:
        super().__init__(runner, deadline)
        self._pool = pool
        self._exists = parse_version(version) >= _SINCE
        self._sitting: SittingOut = ()
        self.autosit: SittingOut = ()
        """See ``Raw.autosit``."""
        self._slow: tuple[int, ...] | None = None

    async def first(self, patience: float) -> None:
        """See OccasionalCommand.first; nothing is asked of an OpenZFS without the property."""
        if self._exists:
            await super().first(patience)

    def newest(self, form: Mapping[str, Any]) -> SittingOut:
        """Those known now; starts to ask again when the form calls for it, or it is time."""
        tree = form["libzfs"].get("vdev_tree", {}) if "libzfs" in form else None
        if not self._exists or (tree is not None and not _may_sit_out(tree)):
            return ()
        slow = () if tree is None else tuple(_slow_counts(tree))
        wait = STILL_EVERY if tree is None or self._sitting else AT_LEAST_EVERY
        if self._slow is not None and slow != self._slow:
            wait = AT_MOST_EVERY
        if self._again(wait) or self._slow is None:
            self._slow = slow
        return self._sitting

    async def _ask(self, commands: Commands) -> None:
        words = ("zpool", "get", "-j", "--json-int", "sit_out,autosit", self._pool, "all-vdevs")
        document = await commands.document(*words)
        self._sitting = tuple(ids for ids, value in _values(document, "sit_out") if value == "on")
        self.autosit = tuple(
            {**ids, "value": value}
            for ids, value in _values(document, "autosit")
            if value in ("on", "off")
        )

    def _failed(self) -> None:
        self._sitting = self.autosit = ()


def _may_sit_out(tree: Mapping[str, Any]) -> bool:
    return any(top.get("type") in _LAYOUTS for top in tree.get("children", ()))


def _slow_counts(node: Mapping[str, Any]) -> Iterator[int]:
    below = node.get("children", ())
    for child in below:
        yield from _slow_counts(child)
    if not below:
        yield from numbers(node.get("vdev_stats", ()))[_SLOW_IOS : _SLOW_IOS + 1]


def _values(
    document: Mapping[str, Any], property_name: str
) -> Iterator[tuple[Mapping[str, str], str]]:
    """Each vdev of a ``zpool get -j`` document and its property. Raises NotUnderstoodError."""
    for name, value in mapping(document.get("vdevs"), "vdevs").items():
        vdev = mapping(value, name)
        properties = mapping(vdev.get("properties"), name)
        found = mapping(properties.get(property_name), property_name)
        ids = {"guid": vdev.get("guid"), "path": vdev.get("path"), "name": name}
        known = {key: str(each) for key, each in ids.items() if each is not None}
        yield known, str(found.get("value"))
