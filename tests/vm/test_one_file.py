"""zconsole.pyz on a read-only stick: the console of a live pool, and pulling the stick."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.vm.machine import Machine
from tests.vm.terminal import Terminal, samples
from tests.vm.test_rebalance import lopsided, races, rebalance

PYZ = Path(__file__).parents[2] / "dist/zconsole.pyz"
STICK = "/run/stick"
PROGRAM = f"env LANG=C.UTF-8 TERM=xterm-256color python3 {STICK}/zconsole.pyz"


@pytest.fixture
def stick(vm: Machine) -> Iterator[Machine]:
    """The machine with the file on a read-only mount, and an empty cache of unpacked files."""
    if not PYZ.is_file():
        pytest.skip("no dist/zconsole.pyz: bash .ci/package makes it")
    vm.put(PYZ, "/root/zconsole.pyz")
    vm.run(
        f"mkdir -p {STICK}; mount -t tmpfs tmpfs {STICK}; mv /root/zconsole.pyz {STICK}"
        f" && mount -o remount,ro {STICK} && rm -rf /var/lib/zconsole"
    )
    yield vm
    vm.run(f"tmux kill-server; umount -l {STICK}; rmdir {STICK}", check=False)


def test_one_command_shows_a_live_pool_and_goes_on_without_the_stick(stick: Machine) -> None:
    lopsided(stick, 60, 100_000)
    console = Terminal(stick, PROGRAM)
    console.open()
    # With emulation, unpacking and compiling for the first time takes a while.
    assert "tank" in console.wait("REDUNDANCY", 180)
    sample = samples(stick.run(f"{PROGRAM} watch tank --json --count 5").stdout)[-1]
    assert (sample["source"], sample["exact"]) == ("libzfs", True)
    assert stick.run("stat -c %U:%a /var/lib/zconsole/program").stdout == "root:700\n"

    job = f"/tank/data --engine copy {races(stick)} --yes --detach --limit-rate 1M"
    stick.run(f"{PROGRAM} rebalance run {job}")
    # umount refuses if any process still has a file or its working directory there.
    stick.run(f"umount {STICK}")
    console.press("w")
    console.wait("WHAT IF")
    console.press("Escape")
    console.wait("REDUNDANCY")
    (state,) = rebalance(stick, "status")[1]
    assert state["state"] in ("running", "waiting", "finished")
    stick.run(
        "timeout 60 sh -c 'until zconsole rebalance status --json | grep -q finished;"
        " do sleep 0.5; done'",
        timeout=90,
    )
