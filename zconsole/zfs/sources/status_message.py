"""What only ``zpool status`` knows, for samples from libzfs: wording and damaged files' names.

Asked for once a pool, again when its condition changes, and now and then in between; never with
every sample.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator, Mapping
from datetime import UTC
from typing import Any

from zconsole.errors import NotUnderstoodError
from zconsole.pool.model import Sample
from zconsole.system.async_process import CommandRunner
from zconsole.system.process import DeadlineError
from zconsole.zfs.decode import decode
from zconsole.zfs.raw import Raw, numbers
from zconsole.zfs.sources.commands import Commands, has_json
from zconsole.zfs.sources.reader import PoolGoneError, ReaderUnusableError, ReadFailedError

AT_MOST_EVERY = 10.0
"""Seconds between two commands, however fast a failing disk's counters move."""

AT_LEAST_EVERY = 300.0

_STATE, _AUX, _ERRORS, _DEFERRED = 1, 2, slice(20, 23), 33
"""Indices in ``vdev_stats`` (include/sys/fs/zfs.h, ``vdev_stat_t``)."""


def condition(config: Mapping[str, Any]) -> tuple[Any, ...]:
    """What of a config the words of ``zpool status`` depend on; equal when they stay the same."""
    tree = config.get("vdev_tree", {})
    scan = tuple(numbers(tree.get("scan_stats", ()))[:4])
    return (config.get("error_count"), config.get("suspended"), scan, tuple(_vdevs(tree)))


def _vdevs(node: Mapping[str, Any]) -> Iterator[tuple[Any, ...]]:
    stats = numbers(node.get("vdev_stats", ()))
    rebuild = tuple(numbers(node.get("org.openzfs:rebuild_stats", ()))[:1])
    deferred = stats[_DEFERRED] if len(stats) > _DEFERRED else 0
    yield (node.get("guid"), *stats[_STATE : _AUX + 1], any(stats[_ERRORS]), deferred, rebuild)
    for group in ("children", "spares", "l2cache"):
        for child in node.get(group, ()):
            yield from _vdevs(child)


class StatusMessageReader:
    """The newest message of one pool; one command in flight."""

    def __init__(
        self, runner: CommandRunner, pool: str, version: str | None, deadline: float
    ) -> None:
        self._runner = runner
        self._pool = pool
        self._json = has_json(version)
        self._deadline = deadline
        self._message: Mapping[str, Any] | None = None
        self.task: asyncio.Task[None] | None = None
        """The command in flight, or the last."""
        self._hung: DeadlineError | None = None
        self._condition: tuple[Any, ...] | None = None
        self._asked = float("-inf")

    async def first(self, patience: float) -> None:
        """Ask for the first message and wait for it, at most ``patience`` seconds."""
        if self.task is None:
            await asyncio.wait((self._start(),), timeout=patience)

    def newest(self, config: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """The message known now; starts to ask for another when ``config`` calls for it."""
        seen = condition(config)
        wait = AT_LEAST_EVERY if seen == self._condition else AT_MOST_EVERY
        idle = self.task is None or self.task.done()
        hanging = self._hung is not None and self._hung.alive()
        if asyncio.get_running_loop().time() - self._asked >= wait and idle and not hanging:
            self._condition = seen
            self._start()
        elif self._condition is None:
            self._condition = seen
        return self._message

    def _start(self) -> asyncio.Task[None]:
        self._asked = asyncio.get_running_loop().time()
        self.task = asyncio.create_task(self._ask())
        return self.task

    async def _ask(self) -> None:
        commands = Commands(self._runner, self._deadline)
        try:
            self._message = await _fetch(commands, self._pool, self._json)
        except DeadlineError as error:
            self._hung = error
        except (PoolGoneError, ReadFailedError, ReaderUnusableError, NotUnderstoodError):
            self._message = None


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
