"""What makes a running job wait: looked at beside the work."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from tests.unit.rebalance.test_pacing import Clock
from zconsole.rebalance.facts import Reader
from zconsole.rebalance.watch import POOL_INTERVAL, SNAPSHOT_INTERVAL, Looks, PoolGate, SnapshotGate
from zconsole.sources.blocking import Completed

ONLINE = "  pool: tank\n state: ONLINE\n  scan: none requested\n"
SCRUB = "  pool: tank\n state: ONLINE\n  scan: scrub in progress since Sat Nov 21 10:00:00 2026\n"


def answering(*texts: str) -> tuple[Callable[[Sequence[str], float], Completed], threading.Event]:
    """What stands for zfs and zpool: these outputs, all but the first once the event is set."""
    left, ready = list(texts), threading.Event()

    def run(argv: Sequence[str], deadline: float) -> Completed:
        if len(left) < len(texts):
            assert ready.wait(5)
        return Completed(tuple(argv), 0, left.pop(0), "")

    return run, ready


def settle(looks: Looks) -> None:
    while looks.at_it:
        threading.Event().wait(0.001)


def test_a_slow_zpool_does_not_hold_up_the_work() -> None:
    clock = Clock()
    run, ready = answering(ONLINE, SCRUB)
    gate = PoolGate(Reader(run), "tank", False, clock)
    assert gate() is None
    clock.now += POOL_INTERVAL
    assert gate() is None
    ready.set()
    settle(gate.looks)
    assert gate() == "a scrub is running"


def test_a_scan_that_runs_already_is_seen_before_the_first_file() -> None:
    run, _ = answering(SCRUB)
    assert PoolGate(Reader(run), "tank", False, Clock())() == "a scrub is running"


def test_a_new_snapshot_that_would_pin_too_much_closes_the_gate() -> None:
    clock, notes = Clock(), []
    run, ready = answering("50\n", "50\n150\n")
    gate = SnapshotGate(Reader(run), ["tank/a"], 100.0, lambda: 10, lambda: 5, clock, notes.append)
    assert gate() is None
    clock.now += SNAPSHOT_INTERVAL
    ready.set()
    gate()
    settle(gate.looks)
    assert gate() == "a new snapshot pins old blocks: 10 bytes left to move, 5 free"
    assert len(notes) == 1
    assert "tank/a" in notes[0]
