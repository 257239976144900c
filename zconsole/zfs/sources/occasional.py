"""What zpool is asked now and then, beside the samples: who sits out, its words, its history.

**Who sits out.** Reads go around a device that is much slower than its siblings. Neither a pool's
config nor ``zpool status`` says so, only the property ``sit_out`` of each leaf of a raidz or dRAID
(vdevprops(7), 2.4 and later).

**Its words.** What only ``zpool status`` knows, for a config that has none of it.

**Its history.** ``zpool history -i`` tells which scrubs finished, also before zconsole ran (root
only). Neither a config nor ``zpool status`` tells a scrub of everything from one that goes on from
the last (``-C``) or of a range of dates (``-S``, ``-E``); the record of its start does. The first
record, of the pool's creation, is never overwritten (module/zfs/spa_history.c).
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import re
from abc import ABC, abstractmethod
from array import array
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime, tzinfo
from typing import Any, TypedDict

from zconsole.errors import NotUnderstoodError
from zconsole.pool.health import destroyed_ids
from zconsole.pool.model import NOTHING, Sample, parse_version
from zconsole.system.async_process import CommandRunner
from zconsole.system.process import DeadlineError
from zconsole.zfs.decode import decode
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
STILL_EVERY = 30.0
"""Seconds between two commands while a leaf sits out: nothing tells when it no longer does."""
HISTORY_DEADLINE = 60.0
"""Seconds: a log may have grown to 1 GB."""


class OccasionalCommand(ABC):
    """A command whose newest answer goes with each sample; one is in flight at most."""

    readers: Collection[str] = ("libzfs", "json", "text")
    """Names of the readers whose forms lack what it tells."""
    patience = 2.0
    """Seconds that a pool's first sample waits for the first answer."""
    pause = AT_LEAST_EVERY
    """Seconds between two commands while the form's condition stays the same."""

    def __init__(self, runner: CommandRunner, pool: str, deadline: float) -> None:
        self._runner = runner
        self._pool = pool
        self._deadline = deadline
        self.task: asyncio.Task[None] | None = None
        """The command in flight, or the last."""
        self._hung: DeadlineError | None = None
        self._asked = float("-inf")
        self._seen: object = None
        """What of the form the answer depends on, when it was last asked for."""
        self._found: Mapping[str, Any] = NOTHING

    async def first(self, patience: float) -> None:
        """Ask for the first answer and wait for it, at most ``patience`` seconds."""
        if self.task is None:
            await asyncio.wait((self._start(),), timeout=patience)

    def newest(self, form: Mapping[str, Any]) -> Mapping[str, Any]:
        """The keys it adds to a raw form; starts to ask again when the form or the time says so."""
        seen = self.condition(form)
        changed = self._seen is not None and seen != self._seen
        if self._again(AT_MOST_EVERY if changed else self.pause) or self._seen is None:
            self._seen = seen
        return self._found

    def _again(self, wait: float) -> bool:
        """Ask again if the last time was ``wait`` seconds ago and nothing hangs; whether it did."""
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
        """What is known after a command that failed."""
        return NOTHING

    @abstractmethod
    def condition(self, form: Mapping[str, Any]) -> object:
        """What of the form the answer depends on; equal while it stays the same, never None."""

    @abstractmethod
    async def _ask(self, commands: Commands) -> Mapping[str, Any]:
        """Run the command; raises what Commands and decoders raise."""


_SIT_OUT_SINCE = (2, 4)
_SLOW_IOS = 34
"""Index in ``vdev_stats`` (include/sys/fs/zfs.h)."""
_LAYOUTS = ("raidz", "draid")


class SitOutReader(OccasionalCommand):
    """The leaves of one pool that sit out (``sitting_out``), and top-levels with ``autosit``.

    One that begins to counts a slow I/O (vdev_raidz_sit_child, module/zfs/vdev_raidz.c): a config
    tells when to ask.
    """

    def __init__(
        self, runner: CommandRunner, pool: str, version: str | None, deadline: float
    ) -> None:
        super().__init__(runner, pool, deadline)
        self._exists = parse_version(version) >= _SIT_OUT_SINCE

    async def first(self, patience: float) -> None:
        """See OccasionalCommand.first; nothing is asked of an OpenZFS without the property."""
        if self._exists:
            await super().first(patience)

    def newest(self, form: Mapping[str, Any]) -> Mapping[str, Any]:
        """See OccasionalCommand.newest; nothing is asked of a pool of mirrors."""
        tops = _tree(form).get("children", ())
        may = "libzfs" not in form or any(top.get("type") in _LAYOUTS for top in tops)
        told = "libzfs" in form and "sitting_out" not in self._found
        self.pause = AT_LEAST_EVERY if told else STILL_EVERY
        return super().newest(form) if self._exists and may else NOTHING

    def condition(self, form: Mapping[str, Any]) -> object:
        """The slow I/Os of each leaf."""
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
    """The tree of a config, empty of another form."""
    tree: Mapping[str, Any] = form.get("libzfs", NOTHING).get("vdev_tree", NOTHING)
    return tree


def _config_scan(form: Mapping[str, Any]) -> Sequence[int]:
    """Function, state, start and end of a config's scan."""
    return numbers(_tree(form).get("scan_stats", ()))[:4]


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


_STATE, _ERRORS, _DEFERRED = slice(8, 24), slice(160, 184), slice(264, 272)
"""Bytes in ``vdev_stats`` (include/sys/fs/zfs.h, ``vdev_stat_t``) of state and aux, of errors of
each kind, and of a deferred resilver."""

_RECORD = r"^\S+ (?:\(\d+ms\) )?\[txg:\d+\] [a-z ]+? ({pool}(?:[/@].*?)?) \((\d+)\)"


class StatusMessageReader(OccasionalCommand):
    """What only ``zpool status`` knows of one pool (``message``): wording, damaged files' names.

    Asked for once, again when the pool's condition changes, and now and then in between; never
    with every sample.
    """

    readers = ("libzfs",)
    patience = 5.0
    """As long as a read may take: why a pool is ill is part of what is told first."""

    def __init__(
        self, runner: CommandRunner, pool: str, version: str | None, deadline: float
    ) -> None:
        super().__init__(runner, pool, deadline)
        self._json = has_json(version)
        self._destroyed: dict[str, str] = {}
        self._sought: set[str] = set()
        """Ids that the pool's history was searched for."""

    def condition(self, form: Mapping[str, Any]) -> object:
        """What of a config the words of ``zpool status`` depend on."""
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
            self._sought |= unknown  # once: a history may be long
            self._found = {"message": dict(message)}
            with contextlib.suppress(PoolGoneError, ReadFailedError, ReaderUnusableError):
                printed = await commands.output("zpool", "history", "-i", self._pool)
                self._destroyed |= names_in_history(printed, self._pool, unknown)
        if self._destroyed:
            message["destroyed"] = dict(self._destroyed)
        return {"message": message}

    async def _status(self, commands: Commands) -> Raw:
        """What zpool prints with the names of damaged files.

        Its JSON ends amid a name that is not UTF-8 (nvlist_print_json_string in
        lib/libnvpair/libnvpair_json.c, 2.3.9); its text does not.
        """
        if self._json:
            with contextlib.suppress(ReadFailedError):
                words = ("zpool", "status", "-jvP", "--json-int", self._pool)
                return {"t": 0.0, "status": await commands.document(*words)}
        return {"t": 0.0, "text": await commands.output("zpool", "status", "-v", self._pool)}


def names_in_history(text: str, pool: str, ids: Collection[str]) -> dict[str, str]:
    """The last names of datasets of these hexadecimal ids in ``zpool history -i``.

    Each record of what was done to one has its name and id: ``destroy tank/a@b (387)``
    (print_history_records in cmd/zpool/zpool_main.c).
    """
    wanted = {str(int(each, 16)): each for each in ids}
    record = re.compile(_RECORD.format(pool=re.escape(pool)), re.MULTILINE)
    found = ((match[2], match[1]) for match in record.finditer(text))
    return {wanted[number]: name for number, name in found if number in wanted}


LINES = re.compile(
    rb"^History for .*\n.*|^\S+ \[txg:\d+\] scan (?:setup|done|cancelled|aborted)\b.*", re.MULTILINE
)
"""Of the output, all that is needed: the first record, and those of scans."""

_DATE = r"(\d{4}-\d\d-\d\d\.\d\d:\d\d:\d\d)"
_FIRST = re.compile(rf"^History for .*\n{_DATE}", re.MULTILINE | re.ASCII)
_SCAN = re.compile(
    rf"^{_DATE} \[txg:(\d+)\] scan (setup|done|cancelled|aborted)\b(.*)$", re.MULTILINE | re.ASCII
)
"""``spa_history_log_internal`` in module/zfs/dsl_scan.c; error scrubs have other names."""
_SETUP = re.compile(r" func=(?P<func>\d+) mintxg=(?P<mintxg>\d+) maxtxg=(?P<maxtxg>\d+)", re.ASCII)
SCRUB = 1
"""POOL_SCAN_SCRUB, include/sys/fs/zfs.h."""
TXG_INITIAL = 4
"""The txg a pool begins with (include/sys/txg.h): no block is older."""
_TEXT_SCAN = re.compile(r"^[ \t]*scan: (.*)$", re.MULTILINE)


class PastScrub(TypedDict):
    """A scrub in a pool's history. Epoch seconds."""

    start: float
    end: float | None
    """When it was done; None while it runs, and of one that was canceled."""
    full: bool
    """Whether it was to read everything."""


class PastScrubs(TypedDict):
    """What a pool's history tells."""

    created: float | None
    scrubs: list[PastScrub]
    """The newest one, and the newest full one that finished."""


class HistoryReader(OccasionalCommand):
    """The scrubs of one pool (``history``); asked for once, and whenever a scan starts or ends.

    What was told stays true when a later command fails.
    """

    pause = math.inf

    def __init__(self, runner: CommandRunner, pool: str) -> None:
        """``runner`` may leave out everything but ``LINES``."""
        super().__init__(runner, pool, HISTORY_DEADLINE)

    def condition(self, form: Mapping[str, Any]) -> object:
        """What tells one state of a pool's scan from another: not its progress."""
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


def past_scrubs(text: str, zone: tzinfo | None = None) -> PastScrubs:
    """What the output tells; ``zone`` is that of its dates, None the machine's."""
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
    """Epoch seconds; None for a date that does not exist."""
    try:
        return datetime.strptime(date, "%Y-%m-%d.%H:%M:%S").replace(tzinfo=zone).timestamp()
    except (ValueError, OverflowError, OSError):
        return None
