"""Pools through ``zpool``: the JSON reader (OpenZFS 2.3 and later) and the text reader (any)."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping
from typing import Any

from zconsole.errors import NotUnderstoodError
from zconsole.pool.model import Sample, Vdev
from zconsole.pool.version import parse_version
from zconsole.system.async_process import CommandRunner, Spawner
from zconsole.system.host import Clocks, is_root, utc_offset
from zconsole.zfs.decode import decode
from zconsole.zfs.sources.commands import Commands, has_json
from zconsole.zfs.sources.fallback import ReaderOption
from zconsole.zfs.sources.output_stream import OutputStream
from zconsole.zfs.sources.pool_poller import leaf_paths
from zconsole.zfs.sources.reader import ReadFailedError

LIST_EVERY = 30.0
"""Seconds between two ``zpool list -v``: fragmentation, and for text the fill of each vdev."""

MANY_ERRORS = 1000
"""Damaged files whose names are fetched with every sample; more of them only by count."""

ACTIVITIES = "discard,free,initialize,replace,remove,resilver,scrub,trim"
CLOCKS = Clocks()
_DAMAGE = (AttributeError, LookupError, OverflowError, TypeError, ValueError)
"""What reading a document of another form can run into."""
_ROW = re.compile(r"\t( *)(\S.*?)(?:  +\S.*)?\s*")


def zpool_readers(
    runner: CommandRunner, spawner: Spawner, interval: float, version: str | None, clocks: Clocks
) -> tuple[ReaderOption, ...]:
    """The ways to read pools by ``zpool`` alone, JSON before text."""
    no_json = "" if has_json(version) else f"zpool {version} has no JSON"
    return (
        ReaderOption("json", lambda: JsonReader(runner, spawner, interval, clocks), no_json),
        ReaderOption("text", lambda: TextReader(runner, spawner, interval, version, clocks)),
    )


STATUS = ("zpool", "status", "-jP", "--json-int", "-t", "-i")


class JsonReader:
    """``zpool status -jP --json-int`` for each sample; ``zpool iostat`` runs all the time."""

    name = "json"

    def __init__(
        self, runner: CommandRunner, spawner: Spawner, interval: float, clocks: Clocks = CLOCKS
    ) -> None:
        self._runner = runner
        self._spawner = spawner
        self._interval = interval
        self._clocks = clocks
        self._pools: dict[str, _JsonPool] = {}

    async def read(self, pool: str, deadline: float) -> Mapping[str, Any]:
        """See PoolReader.read."""
        state = self._pools.get(pool)
        if state is None:
            argv = ("zpool", "iostat", "-HpPvlqy", "-T", "u", pool, f"{self._interval:g}")
            state = self._pools[pool] = _JsonPool(OutputStream(self._spawner, argv, timed=True))
        commands = Commands(self._runner, deadline)
        status = await state.status(commands, pool)
        await state.refresh(commands, status, pool, self._clocks.steady())
        found: dict[str, Any] = {"status": status, "names": state.names, "list": state.listing}
        found["iostat"] = await state.iostat.newest(3 * self._interval + 2)
        return {key: value for key, value in found.items() if value}

    async def aclose(self) -> None:
        """See PoolReader.aclose."""
        for state in self._pools.values():
            state.iostat.close()


class _JsonPool:
    """What is kept of one pool between samples."""

    def __init__(self, iostat: OutputStream) -> None:
        self.iostat = iostat
        self._errors = 0
        self.names: Mapping[str, str] = {}
        self.listing: Mapping[str, Any] = {}
        self._listed = float("-inf")
        self._leaves: tuple[str, ...] | None = None

    async def status(self, commands: Commands, pool: str) -> Mapping[str, Any]:
        """``zpool status``, with the names of damaged files where there are a few.

        Without them where one is not UTF-8: zpool's JSON ends amid such a name.
        """
        found = await _with_names(commands, pool) if _are_few(self._errors) else None
        if found is None:
            found = await commands.document(*STATUS, pool)
            if not self._errors and _are_few(_error_count(found, pool)):
                found = await _with_names(commands, pool) or found
        self._errors = _error_count(found, pool)
        return found

    async def refresh(
        self, commands: Commands, status: Mapping[str, Any], pool: str, now: float
    ) -> None:
        """Fetch names when the leaves changed and ``zpool list`` when it is old."""
        try:
            leaves = tuple(leaf_paths({"status": status}))
        except RecursionError:
            raise ReadFailedError("zpool status printed no tree of vdevs") from None
        if leaves != self._leaves:
            short = await commands.document("zpool", "status", "-j", pool)
            self.names = _paired_names(status, short)
            self._leaves = leaves
        if now - self._listed >= LIST_EVERY:
            self.listing = await commands.document("zpool", "list", "-vjP", "--json-int", pool)
            self._listed = now


def _are_few(errors: int) -> bool:
    return 0 < errors <= MANY_ERRORS


async def _with_names(commands: Commands, pool: str) -> Mapping[str, Any] | None:
    """``zpool status`` with the names of damaged files; None where that is no JSON."""
    with contextlib.suppress(ReadFailedError):
        return await commands.document(*STATUS, "-v", pool)
    return None


def _error_count(status: Mapping[str, Any], pool: str) -> int:
    try:
        return int(status["pools"][pool].get("error_count", 0))
    except _DAMAGE:
        raise ReadFailedError(f"zpool status printed nothing about {pool}") from None


def _paired_names(full: Mapping[str, Any], short: Mapping[str, Any]) -> dict[str, str]:
    """Leaf path to printed name; {} when the topology changed between the two documents.

    Raises ReadFailedError for a document of another form.
    """
    leaves, named = (_leaves_of(document) for document in (full, short))
    if len(leaves) != len(named):
        return {}
    return {leaf.path or leaf.name: other.name for leaf, other in zip(leaves, named, strict=True)}


def _leaves_of(status: Mapping[str, Any]) -> list[Vdev]:
    try:
        found = decode({"t": 0.0, "status": status})
    except NotUnderstoodError:
        raise ReadFailedError("zpool status printed no tree of vdevs") from None
    pools = (each.pool for each in found if isinstance(each, Sample))
    return [leaf for pool in pools for leaf in pool.root.leaves()]


class TextReader:
    """``zpool status`` as text, with exact bytes from ``zpool wait`` where 2.0 to 2.2 run."""

    name = "text"

    def __init__(
        self,
        runner: CommandRunner,
        spawner: Spawner,
        interval: float,
        version: str | None,
        clocks: Clocks = CLOCKS,
    ) -> None:
        self._runner = runner
        self._spawner = spawner
        self._interval = interval
        self._version = parse_version(version)
        self._clocks = clocks
        self._pools: dict[str, _TextPool] = {}

    async def read(self, pool: str, deadline: float) -> Mapping[str, Any]:
        """See PoolReader.read."""
        state = self._pools.get(pool) or self._pools.setdefault(pool, self._new(pool))
        commands = Commands(self._runner, deadline)
        verbose = ("-v",) if is_root() else ()
        text = await commands.output("zpool", "status", *verbose, *self._flags(), pool)
        found: dict[str, Any] = {"text": text, "utc_offset": utc_offset(self._clocks.wall())}
        found["names"] = await state.names_for(commands, text, pool)
        found["list"] = await state.listing_for(commands, pool, self._clocks.steady())
        found["iostat"] = await state.iostat.newest(3 * self._interval + 2)
        if state.wait is not None and "in progress since" in text:
            found["wait"] = await state.wait.newest(2 * self._interval + 1)
        return {key: value for key, value in found.items() if value}

    async def aclose(self) -> None:
        """See PoolReader.aclose."""
        for state in self._pools.values():
            state.close()

    def _flags(self) -> tuple[str, ...]:
        return ("-s", "-p") if self._version >= (0, 8) else ()

    def _new(self, pool: str) -> _TextPool:
        every = f"{self._interval:g}"
        long = "-Hpvlqy" if self._version >= (0, 8) else "-v"
        iostat = ("zpool", "iostat", long, "-T", "u", pool, every)
        wait = None
        if (2, 0) <= self._version < (2, 3):
            argv = ("zpool", "wait", "-Hp", "-t", ACTIVITIES, pool, every)
            wait = OutputStream(self._spawner, argv, timed=False)
        return _TextPool(OutputStream(self._spawner, iostat, timed=True), wait)


class _TextPool:
    """What is kept of one pool between samples."""

    def __init__(self, iostat: OutputStream, wait: OutputStream | None) -> None:
        self.iostat = iostat
        self.wait = wait
        self._rows: list[str] | None = None
        self._names: Mapping[str, str] = {}
        self._listing = ""
        self._listed = float("-inf")

    async def names_for(self, commands: Commands, text: str, pool: str) -> Mapping[str, str]:
        """Leaf path to the name in ``text``; asks for the paths when the rows changed."""
        rows = list(config_names(text))
        if rows != self._rows:
            full = list(config_names(await commands.output("zpool", "status", "-P", pool)))
            paired = zip(full, rows, strict=True) if len(full) == len(rows) else ()
            self._names = {path: name for path, name in paired if path.startswith("/")}
            self._rows = rows
        return self._names

    async def listing_for(self, commands: Commands, pool: str, now: float) -> str:
        """``zpool list -v`` with every digit, the only text with each vdev's fill."""
        if now - self._listed >= LIST_EVERY:
            self._listing = await commands.output("zpool", "list", "-v", "-p", pool)
            self._listed = now
        return self._listing

    def close(self) -> None:
        """Stop the commands that run all the time."""
        for follower in (self.iostat, self.wait):
            if follower is not None:
                follower.close()


def config_names(text: str) -> Iterator[str]:
    """The first column of the ``config:`` table of ``zpool status``, headings included."""
    inside = False
    for line in text.splitlines():
        if line.startswith("\tNAME "):
            inside = True
        elif inside and (match := _ROW.fullmatch(line)):
            yield match[2]
        elif inside and line.strip():
            return
