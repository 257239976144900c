"""Reports of the end of an action over a series of looks at the pool."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tests.lock.plans import adapter
from tests.lock.plans.situations import GOOD, NOW, read, simulated
from tests.lock.plans.table import alike
from zconsole.actions.plan import ActionPlan, Situation
from zconsole.sim import lifecycle
from zconsole.sim.commands import execute
from zconsole.sim.disk import FAULTED, Leaf
from zconsole.sim.source import World
from zconsole.sim.state import PoolState

PLANNED, BEGUN, ENDED = NOW, NOW + 60, NOW + 660
AGES = (61, 665, 4000)
"""Seconds between the plan and each look: while it runs, just after it, long after it."""
SDA, SDB, NEW1 = "/dev/disk/by-id/A", "/dev/disk/by-id/B", "/dev/disk/by-id/NEW1"
GUIDS = {path: number for number, path in enumerate((SDA, SDB, GOOD, NEW1), 1000)}

Row = Mapping[str, Any]
"""A vdev as `zpool status -j` prints it."""


def series() -> Iterator[tuple[str, Callable[[], Iterator[str]]]]:
    """Yield all series of looks, each with its name."""
    for name, (wish, about, looks) in _LOOKS.items():
        yield (
            f"looks/{name}",
            lambda wish=wish, about=about, looks=looks: _looked(wish, about, looks),
        )
    for name, play in _PLAYS.items():
        yield f"played/{name}", lambda play=play: play()


def _scan(function: str, state: str, start: float = BEGUN, errors: int = 0) -> Row:
    end = 0 if state == "SCANNING" else start + ENDED - BEGUN
    done = {"to_examine": 1000000, "examined": 900000, "issued": 380000, "processed": 90000}
    times = {"start_time": int(start), "end_time": int(end), "pass_start": int(start)}
    return {"function": function, "state": state, "errors": errors, "skipped": 0, **done, **times}


def _status(scan: Row, *rows: Row, spare: str = "", checkpoint: bool = False) -> str:
    """Return the `zpool status -j` output of a pool with these top-level vdevs."""
    root = _vdev("tank", "root", 1, *rows)
    found = {"name": "tank", "state": "ONLINE", "pool_guid": "1", "vdevs": {"tank": root}}
    found |= {"scan_stats": scan, "error_count": "0"}
    if spare:
        found["spares"] = {GOOD: {**_side(GOOD, spare), "class": "spare"}}
    if checkpoint:
        found["checkpoint_stats"] = {"state": "EXISTS", "start_time": int(NOW), "space": 1 << 30}
    return json.dumps({"pools": {"tank": found}})


def _mirror(scan: Row, *sides: Row, **more: Any) -> str:
    return _status(scan, _vdev("mirror-0", "mirror", 2, *sides), **more)


def _vdev(name: str, kind: str, guid: int, *children: Row, **fields: Any) -> Row:
    below = {"vdevs": {child["name"]: child for child in children}} if children else {}
    size = {"total_space": 1 << 40, "alloc_space": 1 << 38} if kind in ("mirror", "root") else {}
    errors = dict.fromkeys(("read_errors", "write_errors", "checksum_errors"), 0)
    own = {"name": name, "vdev_type": kind, "guid": guid, "class": "normal", "state": "ONLINE"}
    return {**own, **errors, **size, **below, **fields}


def _side(path: str, state: str = "ONLINE", **fields: Any) -> Row:
    return _vdev(path, "disk", GUIDS[path], path=path, state=state, phys_space=1 << 41, **fields)


def _pair(kind: str, old: Row, new: Row) -> Row:
    return _vdev(f"{kind}-0", kind, 3, old, new, state="DEGRADED")


def _rebuilt(scan: Row, start: float, errors: int = 0) -> Row:
    """Return a scan during which a mirror was rebuilt."""
    times = {"start_time": int(start), "end_time": int(start + ENDED - BEGUN)}
    rebuild = {"name": "mirror-0", "state": "COMPLETE", "errors": errors, **times}
    return {**scan, "rebuild_stats": {"mirror-0": rebuild}}


BEFORE = _scan("SCRUB", "FINISHED", NOW - 90000)
FILLING, FILLED = _scan("RESILVER", "SCANNING"), _scan("RESILVER", "FINISHED")
WITH_ERRORS = _scan("RESILVER", "FINISHED", errors=406)
OLDER = _scan("RESILVER", "FINISHED", NOW - 3600)
CANCELED = _scan("RESILVER", "CANCELED")
SCRUBBING = _scan("SCRUB", "SCANNING")
A, B = _side(SDA), _side(SDB)
A_OUT, A_GONE, B_GONE = _side(SDA, "OFFLINE"), _side(SDA, "UNAVAIL"), _side(SDB, "UNAVAIL")
A_BAD, B_BAD = _side(SDA, read_errors=3, checksum_errors=12), _side(SDB, write_errors=1)
NEW, NEW_GONE, NEW_BAD = _side(GOOD), _side(GOOD, "REMOVED"), _side(GOOD, checksum_errors=812)
NEW_FILLING = _side(GOOD, scan_processed=4096)
NEW_WAITING = _side(GOOD, resilver_deferred=1)

_Looks = tuple[str, str, tuple[str, ...]]
"""The action, its device, and what is seen: before it, and at each later look."""
_PLAIN = _mirror(BEFORE, A, B)
_BEGUN = _mirror(FILLING, _pair("replacing", A, NEW_FILLING), B)
_LOOKS: Mapping[str, _Looks] = {
    "replace that ends well": (
        *("replace", "A"),
        (_PLAIN, _PLAIN, _BEGUN, _mirror(FILLED, _pair("replacing", A, NEW), B)),
    ),
    "replace whose old disk leaves": (
        *("replace", "A"),
        (_PLAIN, _BEGUN, _mirror(FILLED, NEW, B), _mirror(WITH_ERRORS, NEW, B)),
    ),
    "replace with errors": (
        *("replace", "A"),
        (
            *(_PLAIN, _BEGUN, _mirror(WITH_ERRORS, _pair("replacing", A, NEW), B)),
            _mirror(WITH_ERRORS, _pair("replacing", A_GONE, NEW_BAD), B_GONE),
            _mirror(WITH_ERRORS, NEW_BAD, B_GONE),
        ),
    ),
    "replace that is canceled": (
        *("replace", "A"),
        (_PLAIN, _BEGUN, _mirror(CANCELED, _pair("replacing", A, NEW_FILLING), B)),
    ),
    "replace that is backed out": ("replace", "A", (_PLAIN, _BEGUN, _mirror(FILLED, A, B))),
    "replace whose new disk disappears": (
        *("replace", "A"),
        (
            *(_PLAIN, _BEGUN, _mirror(FILLING, _pair("replacing", A, NEW_GONE), B)),
            _mirror(FILLED, _pair("replacing", A, NEW_GONE), B),
            *(_mirror(FILLED, NEW_GONE, B), _mirror(FILLED, B)),
        ),
    ),
    "replace that waits for its turn": (
        *("replace", "A"),
        (
            *(_PLAIN, _mirror(FILLED, _pair("replacing", A, NEW_WAITING), B)),
            *(_mirror(FILLED, NEW_WAITING, B), _mirror(FILLING, NEW_FILLING, B)),
        ),
    ),
    "replace seen with an older resilver": (
        *("replace", "A"),
        (_mirror(OLDER, A, B), _mirror(OLDER, _pair("replacing", A, NEW), B)),
    ),
    "hot spare that stands in": (
        *(f"replace by hot spare {GOOD}", "A"),
        (
            _mirror(BEFORE, A_GONE, B, spare="AVAIL"),
            _mirror(FILLING, _pair("spare", A_GONE, NEW_FILLING), B, spare="INUSE"),
            _mirror(FILLED, _pair("spare", A_GONE, NEW), B, spare="INUSE"),
        ),
    ),
    "replace of what is spared": (
        *("replace by /dev/nothing", "A"),
        (
            _mirror(OLDER, _pair("spare", A_GONE, NEW), B, spare="INUSE"),
            _mirror(FILLED, _pair("spare", A_GONE, NEW), B, spare="INUSE"),
        ),
    ),
    "batch": (
        *("batch of the first two", "the pool"),
        (
            _PLAIN,
            _mirror(FILLING, _pair("replacing", A, NEW_FILLING), B),
            _mirror(FILLED, NEW, B),
            _mirror(FILLED, NEW, _side(NEW1)),
        ),
    ),
    "scrub": (
        *("scrub", "the pool"),
        tuple(
            _mirror(scan, A, B)
            for scan in (
                *(BEFORE, SCRUBBING, {**SCRUBBING, "scrub_pause": int(BEGUN) + 9}, FILLED),
                *(_scan("SCRUB", "CANCELED"), _scan("SCRUB", "FINISHED")),
                *(_scan("SCRUB", "FINISHED", errors=3), BEFORE),
            )
        ),
    ),
    "offline": ("offline", "A", (_PLAIN, _PLAIN, _mirror(BEFORE, A_OUT, B), _mirror(BEFORE, B))),
    "online": (
        *("online", "A"),
        (
            *(_mirror(BEFORE, A_OUT, B), _PLAIN, _mirror(FILLING, A, B)),
            *(_mirror(FILLED, A, B), _mirror(WITH_ERRORS, A, B), _mirror(OLDER, A, B)),
            _mirror(FILLING, _side(SDA, scan_processed=4096), B),
            *(_mirror(FILLED, A_GONE, B), _mirror(FILLED, B)),
        ),
    ),
    "detach": ("detach", "A", (_PLAIN, _PLAIN, _status(BEFORE, B))),
    "clear": (
        *("clear", "A"),
        (_mirror(BEFORE, A_BAD, B), _mirror(BEFORE, A_BAD, B), _mirror(BEFORE, A, B)),
    ),
    "clear of the pool": (
        *("clear", "the pool"),
        (_mirror(BEFORE, A_BAD, B), _mirror(BEFORE, A, B_BAD), _PLAIN),
    ),
    "attach": (
        *("attach", "A"),
        (
            *(_PLAIN, _mirror(FILLING, A, NEW_FILLING, B), _mirror(FILLED, A, NEW, B)),
            *(_mirror(WITH_ERRORS, A, NEW_BAD, B), _mirror(FILLED, A, NEW_GONE, B), _PLAIN),
        ),
    ),
    "attach seen with a rebuild": (
        *("attach", "A"),
        (
            *(_PLAIN, _mirror(_rebuilt(OLDER, BEGUN, 7), A, NEW, B)),
            *(_mirror(_rebuilt(FILLED, NOW - 7200, 7), A, NEW, B), _PLAIN),
            _mirror(_rebuilt(CANCELED, BEGUN + 1, 7), A, NEW, B),
        ),
    ),
    "trim": (
        *("trim", "A"),
        tuple(
            _mirror(BEFORE, _side(SDA, trim_state=state, trimmed=40, to_trim=100), B)
            for state in ("UNTRIMMED", "ACTIVE", "SUSPENDED", "COMPLETE", "CANCELED")
        ),
    ),
    "restart of the resilver": (
        *("resilver", "the pool"),
        (
            _mirror(OLDER, _side(SDA, resilver_deferred=1), B),
            *(_mirror(FILLING, A, B), _mirror(FILLED, A, B), _mirror(CANCELED, A, B)),
            _mirror(WITH_ERRORS, A, B),
        ),
    ),
    "discard": (
        *("discard", "the pool"),
        (_mirror(BEFORE, A, B, checkpoint=True), _mirror(BEFORE, A, B, checkpoint=True), _PLAIN),
    ),
}


def _looked(wish: str, about: str, looks: tuple[str, ...]) -> Iterator[str]:
    """Yield the report at each look, also for looks that would not come in this order."""
    plan = _wished(read(looks[0], "2.3.9", PLANNED)[0], wish, about)
    yield from adapter.lines(plan)
    for number, text in enumerate(looks[1:], 1):
        said = (
            (", ".join(adapter.afterwards(plan, read(text, "2.3.9", PLANNED + age)[0])), f"{age} s")
            for age in AGES
        )
        yield from (f"look {number}, {line}" for line in alike(said))


def _wished(s: Situation, name: str, about: str) -> ActionPlan:
    found = (w for w in adapter.wishes(s, every=True) if (w.name, w.about) == (name, about))
    return next(found).plan(s)


class _Played:
    """A plan carried out on a simulated pool, and the reports while time passes."""

    def __init__(self, scenario: str, wish: str, leaf: int | None = None) -> None:
        """Plan ``wish`` for a device, by its number ``leaf``, or for the pool if it is None."""
        self.world = World(scenario, 7)
        self.pool: PoolState = self.world.pools[0]
        self.elapsed = 0.0
        self.leaf: Leaf = list(self.pool.leaves())[leaf or 0]
        self._last = self.situation()
        about = "the pool" if leaf is None else self.leaf.name
        self.plan = _wished(self._last, wish, about)

    def situation(self) -> Situation:
        """Return the current situation of the pool."""
        found = simulated(self.world, self.pool, getattr(self, "_last", None))
        assert found is not None
        self._last = found
        return found

    def run(self) -> Iterator[str]:
        """Run the commands; yields them with their output."""
        for step in self.plan.steps:
            done = execute(self.world.pools, step.argv)
            yield f"$ {step.command}: {done.returncode} {done.stdout}{done.stderr}".rstrip()

    def wait(self, *moments: float) -> Iterator[str]:
        """Let time pass; yields the report at each moment, in seconds since the plan."""
        looks: list[tuple[str, str]] = []
        for elapsed in moments:
            self.world.advance(elapsed)
            said = ", ".join(adapter.afterwards(self.plan, self.situation()))
            looks.append((said, f"{elapsed:g} s"))
        return alike(looks)


def _whole(scenario: str, wish: str, leaf: int | None = None) -> Callable[[], Iterator[str]]:
    def _play() -> Iterator[str]:
        played = _Played(scenario, wish, leaf)
        yield from adapter.lines(played.plan)
        yield from played.run()
        yield from played.wait(1, 30, 600, 7200, 86400, 300000)

    return _play


def _disturbed(
    scenario: str, wish: str, leaf: int | None, event: Callable[[_Played], object]
) -> Callable[[], Iterator[str]]:
    def _play() -> Iterator[str]:
        played = _Played(scenario, wish, leaf)
        yield from played.run()
        yield from played.wait(1, 600)
        event(played)
        yield from played.wait(601, 4000, 86400, 300000)

    return _play


def _lose_new(played: _Played) -> None:
    """Pull the new disk of a replace."""
    path = played.plan.steps[0].argv[-1]
    lifecycle.lose(played.pool, next(x for x in played.pool.leaves() if path in x.path))


def _lose_another(played: _Played) -> None:
    """Let another disk fail."""
    lifecycle.lose(played.pool, list(played.pool.leaves())[1], FAULTED, aux=11)


def _another_pool(played: _Played) -> None:
    """Import another pool under the same name."""
    played.pool.guid += 1


def _detach(word: int) -> Callable[[_Played], None]:
    """Detach the old or the new disk of a replace."""

    def _run(played: _Played) -> None:
        execute(
            played.world.pools,
            ("zpool", "detach", played.pool.name, played.plan.steps[0].argv[word]),
        )

    return _run


def _command(*words: str) -> Callable[[_Played], object]:
    """Return a command that somebody else runs on the pool."""
    return lambda played: execute(played.world.pools, ("zpool", *words, played.pool.name))


_PLAYS: Mapping[str, Callable[[], Iterator[str]]] = {
    "replace": _whole("failed-disk", "replace", 4),
    "replace of a healthy disk": _whole("failed-disk", "replace", 2),
    "replace, the new disk is lost": _disturbed("failed-disk", "replace", 4, _lose_new),
    "replace, another disk fails": _disturbed("failed-disk", "replace", 4, _lose_another),
    "replace, another pool": _disturbed("failed-disk", "replace", 4, _another_pool),
    "replace, the new disk is detached": _disturbed("failed-disk", "replace", 4, _detach(-1)),
    "replace, the old disk is detached": _disturbed("failed-disk", "replace", 4, _detach(-2)),
    "hot spare": _whole("failed-disk", "replace by hot spare /dev/disk/by-vdev/bay11", 4),
    "scrub": _whole("overdue", "scrub"),
    "scrub, a disk fails": _disturbed("overdue", "scrub", None, _lose_another),
    "scrub, stopped": _disturbed("overdue", "scrub", None, _command("scrub", "-s")),
    "scrub, paused": _disturbed("overdue", "scrub", None, _command("scrub", "-p")),
    "scrub of what is new": _whole("overdue", "scrub of what is new"),
    "stop": _whole("mirror-scrub", "stop"),
    "pause": _whole("mirror-scrub", "pause"),
    "resume": _whole("paused", "scrub"),
    "offline": _whole("overdue", "offline", 3),
    "online": _whole("swap", "open again", 3),
    "detach": _whole("mirror-scrub", "detach", 1),
    "detach of the new one": _whole("not-restored", "detach", -1),
    "clear": _whole("damaged", "clear"),
    "clear of a disk": _whole("failed-disk", "clear", 4),
    "attach": _whole("mirror-scrub", "attach", 0),
    "initialize": _whole("overdue", "start initialize", 0),
    "trim": _whole("trim", "trim", 0),
    "suspend trim": _whole("trim", "suspend trim", 0),
    "cancel trim": _whole("trim", "cancel trim", 0),
    "sit out": _whole("sit-out", "sit out", 1),
    "autosit": _whole("sit-out", "autosit on", 1),
    "discard": _whole("not-restored", "discard"),
    "restart of the resilver": _whole("second-replace", "resilver"),
    "batch": _whole("failed-disk", "batch of the first two"),
    "add": _whole("added-vdev", "add mirror vdev of 2"),
    "autoexpand": _whole("overdue", "autoexpand on"),
}
