"""Readers that run ``zpool``: JSON (OpenZFS 2.3 and later) and text (any version)."""

from __future__ import annotations

import asyncio
import contextlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from zconsole.errors import NotUnderstoodError
from zconsole.pool.model import Sample, Vdev, parse_version
from zconsole.system.async_process import CommandRunner, LineProcess, Spawner
from zconsole.system.host import Clocks, is_root, utc_offset
from zconsole.system.process import DeadlineError
from zconsole.zfs.decode import decode
from zconsole.zfs.sources.pool_poller import leaf_paths
from zconsole.zfs.sources.reader import Commands, ReaderOption, ReadFailedError, has_json

LIST_EVERY = 30.0
"""Seconds between two ``zpool list -v``, which give fragmentation and, for text, the space used in
each vdev."""

MANY_ERRORS = 1000
"""Most damaged files whose names are fetched with every sample; beyond this only their number
is."""

ACTIVITIES = "discard,free,initialize,replace,remove,resilver,scrub,trim"
CLOCKS = Clocks()
_DAMAGE = (AttributeError, LookupError, OverflowError, TypeError, ValueError)
"""Exceptions that reading an unexpected document can raise."""


def zpool_readers(
    runner: CommandRunner, spawner: Spawner, interval: float, version: str | None, clocks: Clocks
) -> tuple[ReaderOption, ...]:
    """Return the options for reading pools by ``zpool`` alone, JSON before text."""
    no_json = "" if has_json(version) else f"zpool {version} has no JSON output"
    return (
        ReaderOption("json", lambda: JsonReader(runner, spawner, interval, clocks), no_json),
        ReaderOption("text", lambda: TextReader(runner, spawner, interval, version, clocks)),
    )


STATUS = ("zpool", "status", "-jP", "--json-int", "-t", "-i")


@dataclass(slots=True)
class _Pool:
    """State kept of one pool between samples."""

    iostat: OutputStream
    wait: OutputStream | None = None
    running: Sequence[str] = ()
    """The lines of the scans in progress whose remaining bytes ``wait`` prints."""
    errors: int = 0
    known: Sequence[str] | None = None
    """The leaves (JSON) or rows (text) for which ``names`` was built."""
    names: Mapping[str, str] = field(default_factory=dict)
    """Leaf path to printed name."""
    listing: Mapping[str, Any] | str = ""
    listed: float = float("-inf")
    hung: DeadlineError | None = None
    """The last ``zpool list`` that got no answer in time."""


class _ZpoolReader(ABC):
    """Base of both readers: ``zpool iostat`` runs continuously, ``zpool list`` occasionally."""

    def __init__(
        self, runner: CommandRunner, spawner: Spawner, interval: float, clocks: Clocks = CLOCKS
    ) -> None:
        self._runner = runner
        self._spawner = spawner
        self._interval = interval
        self._clocks = clocks
        self._pools: dict[str, _Pool] = {}

    async def read(self, pool: str, deadline: float) -> Mapping[str, Any]:
        """Read the pool's status, and add the newest ``zpool iostat`` block and ``zpool list``."""
        kept = self._pools.get(pool) or self._pools.setdefault(pool, self._new(pool))
        commands = Commands(self._runner, deadline)
        found: dict[str, Any] = dict(await self._form(kept, commands, pool))
        await self._list(kept, commands, pool)
        found |= {"names": kept.names, "list": kept.listing}
        found["iostat"] = await kept.iostat.newest(3 * self._interval + 2)
        return {key: value for key, value in found.items() if value}

    async def aclose(self) -> None:
        """Stop the running commands."""
        for kept in self._pools.values():
            kept.iostat.close()
            if kept.wait is not None:
                kept.wait.close()

    async def _list(self, kept: _Pool, commands: Commands, pool: str) -> None:
        """Update the listing if that is due; one that takes too long costs no sample."""
        now = self._clocks.steady()
        hangs = kept.hung is not None and kept.hung.alive()
        if now - kept.listed < LIST_EVERY or hangs:
            return
        try:
            kept.listing = await self._listing(commands, pool)
        except DeadlineError as error:
            kept.hung = error
        kept.listed = now

    @abstractmethod
    def _new(self, pool: str) -> _Pool: ...

    @abstractmethod
    async def _form(self, kept: _Pool, commands: Commands, pool: str) -> Mapping[str, Any]: ...

    @abstractmethod
    async def _listing(self, commands: Commands, pool: str) -> Mapping[str, Any] | str: ...


class JsonReader(_ZpoolReader):
    """Reads pools by ``zpool status -jP --json-int``, run for each sample."""

    name = "json"

    def _new(self, pool: str) -> _Pool:
        # -y leaves out the first report, which averages since boot.
        argv = ("zpool", "iostat", "-HpPvlqy", "-T", "u", pool, f"{self._interval:g}")
        return _Pool(OutputStream(self._spawner, argv, timed=True))

    async def _form(self, kept: _Pool, commands: Commands, pool: str) -> Mapping[str, Any]:
        status = await _status(kept, commands, pool)
        try:
            leaves = tuple(leaf_paths({"status": status}))
        except RecursionError:
            raise ReadFailedError("zpool status printed no tree of vdevs") from None
        # Names only change with the topology, so the second command is rarely needed.
        if leaves != kept.known:
            short = await commands.document("zpool", "status", "-j", pool)
            kept.names, kept.known = _paired_names(status, short), leaves
        return {"status": status}

    async def _listing(self, commands: Commands, pool: str) -> Mapping[str, Any]:
        return await commands.document("zpool", "list", "-vjP", "--json-int", pool)


async def _status(kept: _Pool, commands: Commands, pool: str) -> Mapping[str, Any]:
    """Return ``zpool status``, with the names of damaged files if there are not too many.

    Names are left out if one is not UTF-8: zpool's JSON breaks off inside such a name.
    """
    found = await _with_names(commands, pool) if 0 < kept.errors <= MANY_ERRORS else None
    if found is None:
        found = await commands.document(*STATUS, pool)
        if not kept.errors and 0 < _error_count(found, pool) <= MANY_ERRORS:
            found = await _with_names(commands, pool) or found
    kept.errors = _error_count(found, pool)
    return found


async def _with_names(commands: Commands, pool: str) -> Mapping[str, Any] | None:
    """Return ``zpool status`` with the names of damaged files; None if that is not valid JSON."""
    with contextlib.suppress(ReadFailedError):
        return await commands.document(*STATUS, "-v", pool)
    return None


def _error_count(status: Mapping[str, Any], pool: str) -> int:
    try:
        return int(status["pools"][pool].get("error_count", 0))
    except _DAMAGE:
        raise ReadFailedError(f"zpool status printed nothing about {pool}") from None


def _paired_names(full: Mapping[str, Any], short: Mapping[str, Any]) -> dict[str, str]:
    """Map leaf paths to printed names; {} if the topology changed between the two documents.

    Raises ReadFailedError for an unexpected document.
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


class TextReader(_ZpoolReader):
    """Reads ``zpool status`` as text, and exact bytes from ``zpool wait`` on 2.0 to 2.2."""

    name = "text"

    def __init__(
        self,
        runner: CommandRunner,
        spawner: Spawner,
        interval: float,
        version: str | None,
        clocks: Clocks = CLOCKS,
    ) -> None:
        super().__init__(runner, spawner, interval, clocks)
        self._version = parse_version(version)

    def _new(self, pool: str) -> _Pool:
        every = f"{self._interval:g}"
        long = "-Hpvlqy" if self._version >= (0, 8) else "-v"
        iostat = ("zpool", "iostat", long, "-T", "u", pool, every)
        wait = None
        # ``zpool wait`` came with 2.0; 2.3 brought JSON, which has exact bytes itself.
        if (2, 0) <= self._version < (2, 3):
            argv = ("zpool", "wait", "-Hp", "-t", ACTIVITIES, pool, every)
            wait = OutputStream(self._spawner, argv, timed=False)
        return _Pool(OutputStream(self._spawner, iostat, timed=True), wait)

    async def _form(self, kept: _Pool, commands: Commands, pool: str) -> Mapping[str, Any]:
        # Only root may list damaged files.
        flags: tuple[str, ...] = ("-v",) if is_root() else ()
        flags += ("-s", "-p") if self._version >= (0, 8) else ()
        text = await commands.output("zpool", "status", *flags, pool)
        rows = tuple(config_names(text))
        if rows != kept.known:
            full = list(config_names(await commands.output("zpool", "status", "-P", pool)))
            paired = zip(full, rows, strict=True) if len(full) == len(rows) else ()
            kept.names = {path: name for path, name in paired if path.startswith("/")}
            kept.known = rows
        found: dict[str, Any] = {"text": text, "utc_offset": utc_offset(self._clocks.wall())}
        running = [line for line in text.splitlines() if "in progress since" in line]
        if kept.wait is not None and running:
            if running != kept.running:
                kept.wait.close()  # what it printed last may be of an earlier scan
                kept.running = running
            found["wait"] = await kept.wait.newest(2 * self._interval + 1)
        return found

    async def _listing(self, commands: Commands, pool: str) -> str:
        """List with exact numbers; the only text with the space used in each vdev."""
        return await commands.output("zpool", "list", "-v", "-p", pool)


def config_names(text: str) -> Iterator[str]:
    """Yield the first column of the ``config:`` table of ``zpool status``, headings included."""
    inside = False
    for line in text.splitlines():
        if line.startswith("\tNAME "):
            inside = True
        elif inside and line.startswith("\t") and not (row := line[1:].lstrip(" "))[:1].isspace():
            yield row.rstrip().partition("  ")[0]
        elif inside and line.strip():
            return


RESTART_AFTER = 5.0
"""Seconds between two starts of a command that exits."""
SILENT = 30.0
"""Seconds without a line after which a command is restarted: when its pool is exported, ``zpool
iostat`` keeps running silently, and stays silent when the pool is imported again."""


MOST_BLOCK = 16 * 2**20
"""Bytes of a block; eleven thousand leaves take a quarter of it."""
OF_LINE = 64
"""Bytes that a line takes in addition to its characters."""


class OutputStream:
    """Keeps one long-lived command running, and the newest block it printed.

    ``timed``: blocks begin with a line of epoch seconds (``-T u``); otherwise each line is a block.
    """

    def __init__(self, spawner: Spawner, argv: Sequence[str], timed: bool) -> None:
        self._spawner = spawner
        self._argv = tuple(argv)
        self._timed = timed
        self._process: LineProcess | None = None
        self._task: asyncio.Task[None] | None = None
        self._started = float("-inf")
        self._block: list[str] = []
        self._last: tuple[str, ...] = ()
        self._at = float("-inf")

    async def newest(self, max_age: float) -> str | None:
        """Return the newest complete block up to ``max_age`` seconds old.

        Start the command if needed.
        """
        now = asyncio.get_running_loop().time()
        gone = self._process is None or not self._process.alive
        silent = now - max(self._at, self._started) >= max(SILENT, max_age)
        if silent or (gone and now - self._started >= RESTART_AFTER):
            self.close()
            self._started = now
            with contextlib.suppress(OSError):
                self._process = await self._spawner.spawn(self._argv)
                self._task = asyncio.create_task(self._read(self._process))
        if now - self._at > max_age:
            return None
        # As long as the last block: it is complete, although the next heading has not come yet.
        is_complete = len(self._block) >= max(1, len(self._last))
        return "\n".join(self._block if is_complete else self._last) or None

    def close(self) -> None:
        """Stop the command without waiting for it; forget it and what it printed."""
        if self._task is not None:
            self._task.cancel()
        if self._process is not None:
            self._process.abandon()
        self._process, self._started = None, float("-inf")
        self._block, self._last = [], ()

    async def _read(self, process: LineProcess) -> None:
        length = 0
        while (line := await process.readline()) is not None:
            if not self._timed or line.isdigit():
                self._last = tuple(self._block) or self._last
                self._block, length = [], 0
                self._at = asyncio.get_running_loop().time()
            if not (self._timed and line.isdigit()):
                self._block.append(line)
                length += len(line) + OF_LINE
            if length > MOST_BLOCK:  # not zpool iostat, or it never prints a time
                self._block, self._last = [], ()
                process.abandon()
                return
