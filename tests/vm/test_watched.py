"""A resilver on a live kernel, watched from its first to its last sample: nothing jumps."""

from __future__ import annotations

import pytest

from tests.vm.holding import MIB, SCAN_HOLD, little_in_flight, with_hold
from tests.vm.pools import PoolFactory
from tests.vm.terminal import SESSION, Terminal

FILL_MB = 250
SLOW = int(2.0 * MIB)
"""Bytes/s of the new disk, with which a resilver takes a minute or two."""
LABELS = (
    *("ETA", "RATE", "REDUNDANCY LEFT", "NEW ERRORS", " resilver ", " rate ", " slowed by "),
    *(" NAME ", " STATE ", "─ BALANCE ", " ? help "),
)
AT_TIMES = (" try ", " new errors ")
"""Labels that are not always shown; their rows are."""
SCREENS = "/run/screens"
END = "===end==="
LONGEST = 600


def screens_of(pool: PoolFactory, begin: tuple[str, ...]) -> list[str]:
    """Return the console's screens every half second, from before a resilver to after its end."""
    vm = pool.machine
    terminal = Terminal(vm)
    terminal.open()
    terminal.wait("ETA|LAST")
    look = f"tmux capture-pane -p -t {SESSION}; echo {END}; sleep 0.5"
    going = "zpool status tank | grep -q 'in progress'"
    vm.run(f"setsid sh -c 'while :; do {look}; done' >{SCREENS} 2>/dev/null </dev/null &")
    with_hold(pool, SCAN_HOLD, "resilver in progress", *begin)
    vm.run(f"while {going}; do sleep 1; done; sleep 5", timeout=LONGEST)
    text = vm.run(f"cat {SCREENS}").stdout
    terminal.end()
    return text.split(END)[:-1]


def places(screen: str) -> dict[str, tuple[int, int]]:
    """Return the row and column of each label that is on the screen."""
    rows = screen.strip("\n").split("\n")
    found = {}
    for label in (*LABELS, *AT_TIMES):
        for row, line in enumerate(rows):
            if (column := f" {line} ".find(label)) >= 0:
                found[label] = row, column
                break
    return found


@pytest.mark.slow
def test_nothing_jumps_from_the_first_to_the_last_sample_of_a_resilver(pool: PoolFactory):
    pool.create("raidz2 d0 d1 d2 d3 d4", options="-O compression=off -O primarycache=metadata")
    pool.fill(FILL_MB)
    little_in_flight(pool)
    pool.slow(5, bps=SLOW)
    screens = screens_of(pool, ("replace", "tank", "d4", "d5"))
    running = [places(each) for each in screens if " resilver " in each and " resilvering " in each]
    print(f"{len(screens)} screens, {len(running)} of the resilver resilvering")
    assert len(running) > 40
    moved = {label: {each.get(label) for each in running} for label in LABELS}
    moved |= {label: {each[label] for each in running if label in each} for label in AT_TIMES}
    assert {label: seen for label, seen in moved.items() if len(seen) > 1} == {}
    assert None not in set().union(*moved.values())
