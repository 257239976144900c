"""Commands that run occasionally, between samples: sit-outs, status messages, history, volumes.

**Sit-outs.** ZFS reads around a device that is much slower than its siblings. Neither a pool's
config nor ``zpool status`` says so, only the property ``sit_out`` of each leaf of a raidz or dRAID
(vdevprops(7), 2.4 and later).

**Status messages.** Text that only ``zpool status`` knows; a config has none of it.

**History.** ``zpool history -i`` shows which scrubs finished, also before zconsole ran (root only).
Neither a config nor ``zpool status`` distinguishes a full scrub from one that continues from the
last scrubbed txg (``-C``) or covers a range of dates (``-S``, ``-E``); the record of its start
does. The first record, of the pool's creation, is never overwritten (module/zfs/spa_history.c).

**Volumes.** How many zvols a pool has and how much lies in them, only ``zfs list`` knows.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import re
from abc import ABC, abstractmethod
from array import array
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime, tzinfo
from typing import Any, TypedDict

from zconsole.errors import NotUnderstoodError
from zconsole.pool.health import destroyed_ids
from zconsole.pool.model import NOTHING, Sample, parse_version
from zconsole.system.async_process import CommandRunner
from zconsole.system.process import DeadlineError
from zconsole.zfs.decode import decode
from zconsole.zfs.decode.listing import DATASET_COLUMNS, dataset_bytes
from zconsole.zfs.decode.values import mapping
from zconsole.zfs.raw import Raw, config_vdevs, numbers
from zconsole.zfs.sources.reader import (
    Commands,
    PoolGoneError,
    ReaderUnusableError,
    ReadFailedError,
    has_json,
)

AT_MOST_EVERY = 10.0
"""Seconds between two commands, however fast a failing disk's counters move."""
AT_LEAST_EVERY = 300.0
"""Seconds between two commands if nothing changes."""
STILL_EVERY = 30.0
"""Seconds between two commands while a leaf sits out: nothing signals when it no longer does."""
HISTORY_DEADLINE = 60.0
"""Seconds; a history log may have grown to 1 GB."""
VOLUMES_EVERY = 1800.0
"""Seconds between two lists of volumes: they change slowly, and zfs looks at every dataset."""


class OccasionalCommand(ABC):
    """A command whose newest answer is added to each sample; at most one is in flight."""

    readers: Collection[str] = ("libzfs", "json", "text")
    """Names of the readers whose forms lack the information this command gives."""
    patience = 2.0
    """Seconds that a pool's first sample waits for the first answer."""
    pause = AT_LEAST_EVERY
    """Seconds between two commands while the condition of the pool stays the same."""

    def __init__(self, runner: CommandRunner, pool: str, deadline: float) -> None:
        self._runner = runner
        self._pool = pool
        self._deadline = deadline
        self.task: asyncio.Task[None] | None = None
        """The command in flight, or the last one."""
        self._hung: DeadlineError | None = None
        self._asked = float("-inf")
        self._seen: object = None
        """The pool's condition when the command was last started."""
        self._found: Mapping[str, Any] = NOTHING

    async def first(self, patience: float) -> None:
        """Start the first command and wait for its answer, at most ``patience`` seconds."""
        if self.task is None:
            await asyncio.wait((self._start(),), timeout=patience)

    def newest(self, form: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the keys to add to a raw form.

        Rerun the command when the form or the time says so.
        """
        seen = self.condition(form)
        changed = self._seen is not None and seen != self._seen
        if self._again(AT_MOST_EVERY if changed else self.pause) or self._seen is None:
            self._seen = seen
        return self._found

    def _again(self, wait: float) -> bool:
        """Start the command unless it hangs or ran within ``wait`` seconds.

        Return True if started.
        """
        idle = self.task is None or self.task.done()
        hanging = self._hung is not None and self._hung.alive()
        if asyncio.get_running_loop().time() - self._asked < wait or not idle or hanging:
            return False
        self._start()
        return True

    def _start(self) -> asyncio.Task[None]:
        self._asked = asyncio.get_running_loop().time()
        self.task = asyncio.create_task(self._run())
        return self.task

    async def _run(self) -> None:
        try:
            self._found = await self._ask(Commands(self._runner, self._deadline))
        except DeadlineError as error:
            self._hung = error
        except (PoolGoneError, ReadFailedError, ReaderUnusableError, NotUnderstoodError):
            self._found = self._failed()

    def _failed(self) -> Mapping[str, Any]:
        """Return the keys that remain valid after a command failed."""
        return NOTHING

    @abstractmethod
    def condition(self, form: Mapping[str, Any]) -> object:
        """Return the parts of the form that the answer depends on, for comparison; never None."""

    @abstractmethod
    async def _ask(self, commands: Commands) -> Mapping[str, Any]:
        """Run the command and return its keys. Raises what Commands and decoders raise."""


_SIT_OUT_SINCE = (2, 4)
"""The first OpenZFS with the property ``sit_out``."""
_SLOW_IOS = 34
"""Index in ``vdev_stats`` (include/sys/fs/zfs.h)."""
_LAYOUTS = ("raidz", "draid")


class SitOutReader(OccasionalCommand):
    """Reads which leaves of a pool sit out (``sitting_out``), and ``autosit`` of top-level vdevs.

    A leaf that begins to sit out counts a slow I/O (vdev_raidz_sit_child, module/zfs/vdev_raidz.c),
    so the config shows when to ask again.
    """

    def __init__(
        self, runner: CommandRunner, pool: str, version: str | None, deadline: float
    ) -> None:
        super().__init__(runner, pool, deadline)
        self._exists = parse_version(version) >= _SIT_OUT_SINCE

    async def first(self, patience: float) -> None:
        """Wait for the first answer; an OpenZFS without the property is not asked."""
        if self._exists:
            await super().first(patience)

    def newest(self, form: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the newest answer; a pool without raidz or dRAID is not asked."""
        tops = _tree(form).get("children", ())
        may = "libzfs" not in form or any(top.get("type") in _LAYOUTS for top in tops)
        by_counters = "libzfs" in form and "sitting_out" not in self._found
        self.pause = AT_LEAST_EVERY if by_counters else STILL_EVERY
        return super().newest(form) if self._exists and may else NOTHING

    def condition(self, form: Mapping[str, Any]) -> object:
        """Return the slow I/O count of each leaf."""
        leaves = (vdev for vdev in config_vdevs(form) if not vdev.get("children"))
        stats = (numbers(leaf.get("vdev_stats", ())) for leaf in leaves)
        return [each[_SLOW_IOS] for each in stats if len(each) > _SLOW_IOS]

    async def _ask(self, commands: Commands) -> Mapping[str, Any]:
        words = ("zpool", "get", "-j", "--json-int", "sit_out,autosit", self._pool, "all-vdevs")
        document = await commands.document(*words)
        sitting = [ids for ids, value in _values(document, "sit_out") if value == "on"]
        autosit = [
            {**ids, "value": value}
            for ids, value in _values(document, "autosit")
            if value in ("on", "off")
        ]
        found = {"sitting_out": sitting, "autosit": autosit}
        return {key: listed for key, listed in found.items() if listed}


def _tree(form: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the vdev tree of a config; empty for another form."""
    tree: Mapping[str, Any] = form.get("libzfs", NOTHING).get("vdev_tree", NOTHING)
    return tree


def _config_scan(form: Mapping[str, Any]) -> Sequence[int]:
    """Return function, state, start and end of a config's scan."""
    return numbers(_tree(form).get("scan_stats", ()))[:4]


def _values(
    document: Mapping[str, Any], property_name: str
) -> Iterator[tuple[Mapping[str, str], str]]:
    """Yield each vdev of a ``zpool get -j`` document and its property.

    Raises NotUnderstoodError.
    """
    for name, value in mapping(document.get("vdevs"), "vdevs").items():
        vdev = mapping(value, name)
        properties = mapping(vdev.get("properties"), name)
        found = mapping(properties.get(property_name), property_name)
        ids = {"guid": vdev.get("guid"), "path": vdev.get("path"), "name": name}
        known = {key: str(each) for key, each in ids.items() if each is not None}
        yield known, str(found.get("value"))


_STATE, _ERRORS, _DEFERRED = slice(8, 24), slice(160, 184), slice(264, 272)
"""Byte ranges in ``vdev_stats`` (include/sys/fs/zfs.h, ``vdev_stat_t``): state and aux, errors of
each kind, and a deferred resilver."""

_RECORD = r"^\S+ (?:\(\d+ms\) )?\[txg:\d+\] [a-z ]+? ({pool}(?:[/@].*?)?) \((\d+)\)"


class StatusMessageReader(OccasionalCommand):
    """Reads the texts and names of damaged files that only ``zpool status`` knows (``message``).

    It runs once, again when the pool's condition changes, and every few minutes in between; never
    with every sample.
    """

    readers = ("libzfs",)
    patience = 5.0
    """As long as a read may take: the first sample should say why a pool is unhealthy."""

    def __init__(
        self, runner: CommandRunner, pool: str, version: str | None, deadline: float
    ) -> None:
        super().__init__(runner, pool, deadline)
        self._json = has_json(version)
        self._destroyed: dict[str, str] = {}
        self._sought: set[str] = set()
        """Dataset ids that the pool's history was already searched for."""

    def condition(self, form: Mapping[str, Any]) -> object:
        """Return the parts of a config that the texts of ``zpool status`` depend on."""
        config, states = form["libzfs"], []
        for vdev in config_vdevs(form):
            stats, rebuild = vdev.get("vdev_stats", b""), vdev.get("org.openzfs:rebuild_stats", ())
            if not isinstance(stats, bytes):
                stats = array("Q", stats).tobytes()
            failed, deferred = any(stats[_ERRORS]), any(stats[_DEFERRED])
            states.append(
                (vdev.get("guid"), stats[_STATE], failed, deferred, *numbers(rebuild)[:1])
            )
        return config.get("error_count"), config.get("suspended"), _config_scan(form), states

    async def _ask(self, commands: Commands) -> Mapping[str, Any]:
        samples = decode(await self._status(commands), UTC)
        pools = (each.pool for each in samples if isinstance(each, Sample))
        found = next((pool for pool in pools if pool.name == self._pool), None)
        if found is None:
            return NOTHING
        message: dict[str, Any] = {
            "status": found.message,
            "action": found.action,
            "see": found.see,
            "errors": None if found.errors is None else list(found.errors),
        }
        if unknown := set(destroyed_ids(message["errors"])) - self._sought:
            self._sought |= unknown  # Search once per id: a history may be long.
            self._found = {"message": dict(message)}
            with contextlib.suppress(PoolGoneError, ReadFailedError, ReaderUnusableError):
                printed = await commands.output("zpool", "history", "-i", self._pool)
                self._destroyed |= names_in_history(printed, self._pool, unknown)
        if self._destroyed:
            message["destroyed"] = dict(self._destroyed)
        return {"message": message}

    async def _status(self, commands: Commands) -> Raw:
        """Return zpool's status output with the names of damaged files.

        zpool's JSON breaks off inside a name that is not UTF-8 (nvlist_print_json_string in
        lib/libnvpair/libnvpair_json.c, 2.3.9); its text does not.
        """
        if self._json:
            with contextlib.suppress(ReadFailedError):
                words = ("zpool", "status", "-jvP", "--json-int", self._pool)
                return {"t": 0.0, "status": await commands.document(*words)}
        return {"t": 0.0, "text": await commands.output("zpool", "status", "-v", self._pool)}


def names_in_history(text: str, pool: str, ids: Collection[str]) -> dict[str, str]:
    """Return the last names, in ``zpool history -i``, of datasets with these hexadecimal ids.

    Each record of an operation on a dataset has its name and id: ``destroy tank/a@b (387)``
    (print_history_records in cmd/zpool/zpool_main.c).
    """
    wanted = {str(int(each, 16)): each for each in ids}
    record = re.compile(_RECORD.format(pool=re.escape(pool)), re.MULTILINE)
    found = ((match[2], match[1]) for match in record.finditer(text))
    return {wanted[number]: name for number, name in found if number in wanted}


LINES = re.compile(
    rb"^History for .*\n.*|^\S+ \[txg:\d+\] scan (?:setup|done|cancelled|aborted)\b.*", re.MULTILINE
)
"""The only lines of the output that are needed: the first record, and those of scans."""

_DATE = r"(\d{4}-\d\d-\d\d\.\d\d:\d\d:\d\d)"
_FIRST = re.compile(rf"^History for .*\n{_DATE}", re.MULTILINE | re.ASCII)
_SCAN = re.compile(
    rf"^{_DATE} \[txg:(\d+)\] scan (setup|done|cancelled|aborted)\b(.*)$", re.MULTILINE | re.ASCII
)
"""Records written by ``spa_history_log_internal`` in module/zfs/dsl_scan.c; error scrubs have other
names."""
_SETUP = re.compile(r" func=(?P<func>\d+) mintxg=(?P<mintxg>\d+) maxtxg=(?P<maxtxg>\d+)", re.ASCII)
SCRUB = 1
"""POOL_SCAN_SCRUB, include/sys/fs/zfs.h."""
TXG_INITIAL = 4
"""The first txg of a pool (include/sys/txg.h): no block is older."""
_TEXT_SCAN = re.compile(r"^[ \t]*scan: (.*)$", re.MULTILINE)


class PastScrub(TypedDict):
    """A scrub in a pool's history. Times in epoch seconds."""

    start: float
    end: float | None
    """When it finished; None while it runs, and for one that was canceled."""
    full: bool
    """True if it covered the whole pool."""


class PastScrubs(TypedDict):
    """Creation time and scrubs from a pool's history."""

    created: float | None
    scrubs: list[PastScrub]
    """The newest scrub, and the newest full one that finished."""


class HistoryReader(OccasionalCommand):
    """Reads the scrubs of one pool (``history``): once, and whenever a scan starts or ends.

    The last answer is kept when a later command fails.
    """

    pause = math.inf

    def __init__(self, runner: CommandRunner, pool: str) -> None:
        """``runner`` may drop all output except ``LINES``."""
        super().__init__(runner, pool, HISTORY_DEADLINE)

    def condition(self, form: Mapping[str, Any]) -> object:
        """Return what identifies the state of a pool's scan, without its progress."""
        if "libzfs" in form:
            return _config_scan(form)
        if "status" in form:
            pools = form["status"].get("pools", {})
            stats = [pool.get("scan_stats", {}) for pool in pools.values()]
            keys = ("function", "state", "start_time", "end_time")
            return [tuple(scan.get(key) for key in keys) for scan in stats]
        return _TEXT_SCAN.findall(form.get("text", ""))

    async def _ask(self, commands: Commands) -> Mapping[str, Any]:
        printed = await commands.output("zpool", "history", "-i", self._pool)
        return {"history": past_scrubs(printed)}

    def _failed(self) -> Mapping[str, Any]:
        return self._found


class VolumeReader(OccasionalCommand):
    """Reads how much lies in volumes (``volumes``).

    The last answer is kept when a later command fails.
    """

    pause = VOLUMES_EVERY

    def __init__(self, runner: CommandRunner, pool: str) -> None:
        super().__init__(runner, pool, HISTORY_DEADLINE)

    def condition(self, form: Mapping[str, Any]) -> object:  # noqa: ARG002  (of all commands)
        """Return what never changes: no part of a form tells of volumes."""
        return ()

    async def _ask(self, commands: Commands) -> Mapping[str, Any]:
        words = ("zfs", "list", "-Hp", "-t", "volume", "-o", DATASET_COLUMNS, "-r", self._pool)
        _, volumes = dataset_bytes(await commands.output(*words))
        return {} if volumes is None else {"volumes": asdict(volumes)}

    def _failed(self) -> Mapping[str, Any]:
        return self._found


def past_scrubs(text: str, zone: tzinfo | None = None) -> PastScrubs:
    """Parse the scrubs in ``zpool history -i``; ``zone`` is that of its dates, None if local."""
    first = _FIRST.search(text)
    newest: PastScrub | None = None
    full: PastScrub | None = None
    running = False
    for date, txg, what, rest in _SCAN.findall(text):  # the oldest first
        t = _time(date, zone)
        if t is None:
            continue
        if newest is not None and running and what == "done":
            newest["end"] = t
            full = newest if newest["full"] else full
        setup = _SETUP.match(rest) if what == "setup" else None
        running = setup is not None and int(setup["func"]) == SCRUB
        if setup is not None and running:
            whole = int(setup["mintxg"]) <= TXG_INITIAL and int(setup["maxtxg"]) >= int(txg)
            newest = {"start": t, "end": None, "full": whole}
    found = [scrub for scrub in (newest, full) if scrub is not None]
    return {
        "created": _time(first[1], zone) if first else None,
        "scrubs": found[:1] if newest is full else found,
    }


def _time(date: str, zone: tzinfo | None) -> float | None:
    """Convert to epoch seconds; None for a date that does not exist."""
    try:
        return datetime.strptime(date, "%Y-%m-%d.%H:%M:%S").replace(tzinfo=zone).timestamp()
    except (ValueError, OverflowError, OSError):
        return None
