"""The words of ``zpool status`` for a source that has none: when they are asked for again."""

from __future__ import annotations

import contextlib
import re
from array import array
from collections.abc import Collection, Iterator, Mapping
from datetime import UTC
from typing import Any

from zconsole.pool.damage import destroyed_ids
from zconsole.pool.model import Sample
from zconsole.system.async_process import CommandRunner
from zconsole.zfs.decode import decode
from zconsole.zfs.raw import Raw, numbers
from zconsole.zfs.sources.occasional import AT_LEAST_EVERY, AT_MOST_EVERY, OccasionalCommand
from zconsole.zfs.sources.reader import (
    Commands,
    PoolGoneError,
    ReaderUnusableError,
    ReadFailedError,
    has_json,
)

_CONDITION, _ERRORS, _DEFERRED = slice(8, 24), slice(160, 184), slice(264, 272)
"""Bytes in ``vdev_stats`` (include/sys/fs/zfs.h, ``vdev_stat_t``) of state and aux, of errors of
each kind, and of a deferred resilver."""

_RECORD = r"^\S+ (?:\(\d+ms\) )?\[txg:\d+\] [a-z ]+? ({pool}(?:[/@].*?)?) \((\d+)\)"


def condition(config: Mapping[str, Any]) -> tuple[Any, ...]:
    """What of a config the words of ``zpool status`` depend on; equal when they stay the same."""
    tree = config.get("vdev_tree", {})
    scan = tuple(numbers(tree.get("scan_stats", ()))[:4])
    return (config.get("error_count"), config.get("suspended"), scan, tuple(_vdevs(tree)))


def _vdevs(node: Mapping[str, Any]) -> Iterator[tuple[Any, ...]]:
    stats, rebuild = node.get("vdev_stats", b""), node.get("org.openzfs:rebuild_stats", ())
    if not isinstance(stats, bytes):
        stats = array("Q", stats).tobytes()
    yield (
        node.get("guid"),
        stats[_CONDITION],
        any(stats[_ERRORS]),
        any(stats[_DEFERRED]),
        tuple(numbers(rebuild)[:1]),
    )
    for group in ("children", "spares", "l2cache"):
        for child in node.get(group, ()):
            yield from _vdevs(child)


class StatusMessageReader(OccasionalCommand):
    """What only ``zpool status`` knows of one pool: wording and damaged files' names.

    Asked for once, again when the pool's condition changes, and now and then in between; never
    with every sample.
    """

    def __init__(
        self, runner: CommandRunner, pool: str, version: str | None, deadline: float
    ) -> None:
        super().__init__(runner, deadline)
        self._pool = pool
        self._json = has_json(version)
        self._message: Mapping[str, Any] | None = None
        self._condition: tuple[Any, ...] | None = None
        self._destroyed: dict[str, str] = {}
        self._sought: set[str] = set()
        """Ids that the pool's history was searched for."""

    def newest(self, config: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """The message known now; starts to ask for another when ``config`` calls for it."""
        seen = condition(config)
        wait = AT_LEAST_EVERY if seen == self._condition else AT_MOST_EVERY
        if self._again(wait) or self._condition is None:
            self._condition = seen
        return self._message

    async def _ask(self, commands: Commands) -> None:
        self._message = await _fetch(commands, self._pool, self._json)
        if self._message is None:
            return
        if unknown := set(destroyed_ids(self._message["errors"])) - self._sought:
            self._sought |= unknown  # once: a history may be long
            with contextlib.suppress(PoolGoneError, ReadFailedError, ReaderUnusableError):
                printed = await commands.output("zpool", "history", "-i", self._pool)
                self._destroyed |= names_in_history(printed, self._pool, unknown)
        if self._destroyed:
            self._message = {**self._message, "destroyed": dict(self._destroyed)}

    def _failed(self) -> None:
        self._message = None


def names_in_history(text: str, pool: str, ids: Collection[str]) -> dict[str, str]:
    """The last names of datasets of these hexadecimal ids in ``zpool history -i``.

    Each record of what was done to one has its name and id: ``destroy tank/a@b (387)``
    (print_history_records in cmd/zpool/zpool_main.c).
    """
    wanted = {str(int(each, 16)): each for each in ids}
    record = re.compile(_RECORD.format(pool=re.escape(pool)), re.MULTILINE)
    found = ((match[2], match[1]) for match in record.finditer(text))
    return {wanted[number]: name for number, name in found if number in wanted}


async def _fetch(commands: Commands, pool: str, as_json: bool) -> Mapping[str, Any] | None:
    """One ``zpool status -v``, through the one decoder, as the raw form's ``message``."""
    samples = decode(await _status(commands, pool, as_json), UTC)
    for sample in samples:
        if isinstance(sample, Sample) and sample.pool.name == pool:
            found = sample.pool
            errors = None if found.errors is None else list(found.errors)
            return {
                "status": found.message,
                "action": found.action,
                "see": found.see,
                "errors": errors,
            }
    return None


async def _status(commands: Commands, pool: str, as_json: bool) -> Raw:
    """What zpool prints with the names of damaged files.

    Its JSON ends amid a name that is not UTF-8 (nvlist_print_json_string in
    lib/libnvpair/libnvpair_json.c, 2.3.9); its text does not.
    """
    if as_json:
        with contextlib.suppress(ReadFailedError):
            words = ("zpool", "status", "-jvP", "--json-int", pool)
            return {"t": 0.0, "status": await commands.document(*words)}
    return {"t": 0.0, "text": await commands.output("zpool", "status", "-v", pool)}
