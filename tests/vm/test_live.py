"""The program on a live pool: followed to the end, recorded, in tmux over ssh."""

from __future__ import annotations

import re

import pytest

from tests.vm.machine import Machine
from tests.vm.pools import PoolFactory
from tests.vm.terminal import ZCONSOLE, Terminal, samples

MIB = 1 << 20
MOVING = ("scanning", "issuing")
SPAN = r"rate .* last (([0-9]+)m)?([0-9]+)s"
"""The graph of a scan's rate, with the time it covers."""
LABELS = (
    *("REDUNDANCY", "NEW ERRORS", "RATE", "ETA", "BALANCE", "? help"),
    *(" slowed by ", " try ", " new errors ", " STATE "),
)
WORDS = "/root/words"
"""Directory where the console is started."""
FILM = "while tmux capture-pane -p -t con; do echo END; sleep 0.5; done >/root/film 2>/dev/null"


def start_resilver(pool: PoolFactory, megabytes: int, bps: int) -> None:
    """Replace a disk of a raidz1 by one limited to ``bps``."""
    pool.create("raidz1 d0 d1 d2")
    pool.fill(megabytes)
    pool.slow(3, bps=bps)
    pool.zpool("replace", "-f", "tank", "d2", "d3")
    pool.wait_status("resilver in progress")


@pytest.mark.slow
def test_a_whole_resilver_is_followed_recorded_and_replayed(pool: PoolFactory) -> None:
    start_resilver(pool, 100, MIB)
    vm = pool.machine
    vm.run(f"rm -f /root/rec; ({ZCONSOLE} record /root/rec tank >/dev/null 2>&1 &)")
    done = vm.run(f"{ZCONSOLE} watch tank --json --until-done", timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    seen = samples(done.stdout)
    running = [s["scan"] for s in seen if s["scan"]["state"] == "running"]
    assert len(running) >= 5
    assert {scan["function"] for scan in running} == {"resilver"}
    assert all(scan["stage"] in MOVING for scan in running)
    percents = [scan["percent"] for scan in running]
    assert percents == sorted(percents)
    assert all(0 <= percent <= 110 for percent in percents)
    told = [scan for scan in running if scan["eta_seconds"] is not None]
    assert len(told) >= len(running) / 2
    assert all(s["eta_low_seconds"] <= s["eta_seconds"] <= s["eta_high_seconds"] for s in told)
    last = seen[-1]
    assert (last["scan"]["state"], last["health"]["word"]) == ("finished", "OK")
    assert last["redundancy"] == {"raidz1-0": 1}
    assert_replayed(vm)


def assert_replayed(vm: Machine) -> None:
    """Check that the recording ends by itself with the scan, and replays identically."""
    vm.run("timeout 60 sh -c \"while pgrep -f '[z]console record' >/dev/null; do sleep 0.5; done\"")
    recorded = samples(vm.run("cat /root/rec").stdout)
    replayed = samples(vm.run(f"{ZCONSOLE} replay /root/rec --json").stdout)
    assert [r["t"] for r in recorded] == [s["t"] for s in replayed]
    assert {s["source"] for s in replayed} == {"replay"}
    issued = [r["libzfs"]["vdev_tree"]["scan_stats"][14] for r in recorded]
    assert [s["scan"]["issued_bytes"] for s in replayed] == issued
    assert replayed[-1]["scan"]["state"] == "finished"


@pytest.mark.slow
def test_history_outlives_the_connection(pool: PoolFactory) -> None:
    start_resilver(pool, 400, MIB)
    terminal = Terminal(pool.machine)
    terminal.open("tank")
    terminal.wait("resilver +resilvering")
    pool.machine.run("sleep 30")
    before = terminal.wait(SPAN)
    terminal.end()
    terminal.open("tank")
    after = terminal.wait(SPAN)
    assert window(after) >= 0.5 * window(before) > 5


def window(text: str) -> int:
    """Return the seconds that the graph on the screen covers."""
    found = re.search(SPAN, text)
    assert found is not None, text
    return 60 * int(found[2] or 0) + int(found[3])


@pytest.mark.slow
def test_zpools_own_words_are_shown_and_saved_as_zpool_prints_them(pool: PoolFactory) -> None:
    pool.create("mirror d0 d1")
    vm, terminal = pool.machine, Terminal(pool.machine)
    vm.run(f"rm -rf {WORDS}; mkdir -m 700 {WORDS}")
    Terminal(vm, f"cd {WORDS}; {ZCONSOLE}").open("tank")
    terminal.wait("mirror-0")
    terminal.press("d")
    terminal.wait("zpool status -v tank")
    terminal.press("r")
    terminal.wait("report saved")
    saved = vm.run(f"cat {WORDS}/zconsole-*.txt").stdout
    status = vm.run("zpool status -v tank").stdout
    assert f"$ zpool status -v tank\n{status.expandtabs().strip(chr(10))}\n\n$ zpool " in saved
    assert re.search(r"^  mirror-0 +\S+ +\S+ +\d+ +\d+", saved, re.MULTILINE), saved
    events = saved.partition("$ zpool events tank\n")[2].splitlines()
    assert events[0].split() == ["TIME", "CLASS"]
    printed = vm.run("zpool events tank").stdout.splitlines()
    assert {"sysevent.fs.zfs.pool_create" in line for line in events} == {True, False}
    assert set(events) <= {line.expandtabs() for line in printed}
    terminal.end()


@pytest.mark.slow
def test_nothing_moves_from_the_first_to_the_last_sample_of_a_resilver(pool: PoolFactory) -> None:
    start_resilver(pool, 150, MIB)
    vm, terminal = pool.machine, Terminal(pool.machine)
    terminal.open("tank")
    terminal.wait("resilver +resilvering")
    vm.run(f"({FILM}) >/dev/null 2>&1 & sleep 1")
    terminal.wait("resilver +finished", 300)
    terminal.end()
    shots = [
        shot
        for shot in vm.run("cat /root/film").stdout.split("END\n")
        if "resilver  resilvering" in shot
    ]
    assert len(shots) > 40
    assert len({shot.splitlines()[1] for shot in shots}) > 10  # the headline's figures change
    seen = {place for shot in shots for place in places(shot)}
    labels = [label for label, *_ in seen]
    assert len(labels) == len(set(labels)), sorted(seen)  # suggestions come and go in place
    assert {*LABELS} - {*labels} <= {" try ", " new errors "}


def places(shot: str) -> tuple[tuple[str, int, int], ...]:
    """Return the row and column of each label on a screen."""
    lines = shot.splitlines()
    return tuple((x, y, line.index(x)) for x in LABELS for y, line in enumerate(lines) if x in line)
