"""The restrictions in the exporter's systemd units still let it read a pool.

The guest has no systemd: the restrictions that could break libzfs or zpool are applied by hand.
"""

from __future__ import annotations

from importlib import resources

import pytest

from tests.vm.pools import PoolFactory
from tests.vm.terminal import ZCONSOLE, samples
from zconsole.cli.options import SHIPPED

pytestmark = pytest.mark.slow

BARE = "setpriv --bounding-set=-all --inh-caps=-all --no-new-privs"
"""CapabilityBoundingSet= and NoNewPrivileges=yes of the unit."""
READ_ONLY = "mount --make-rprivate / && mount -o remount,bind,ro / && mount -o remount,bind,ro /sys"
"""ProtectSystem=strict and ProtectKernelTunables=yes, but for the state directory."""


def test_the_unit_takes_what_is_tried_here():
    unit = (resources.files("zconsole") / "share" / SHIPPED["export-unit"]).read_text()
    for line in ("CapabilityBoundingSet=", "NoNewPrivileges=yes", "ProtectSystem=strict"):
        assert f"\n{line}\n" in unit


@pytest.mark.parametrize("reader", ["libzfs", "zpool"])
def test_root_without_capabilities_reads_a_pool_as_before(pool: PoolFactory, reader: str) -> None:
    pool.create("mirror d0 d1")
    pool.fill(10)
    pool.zpool("scrub", "-w", "tank")
    if reader == "zpool":
        command = f"{BARE} zpool status tank"
        done = pool.machine.run(f"unshare -m sh -c '{READ_ONLY} && {command}'")
        assert "state: ONLINE" in done.stdout
        return
    command = f"{BARE} {ZCONSOLE} watch tank --json --count 2"
    sandbox = f"unshare -m sh -c '{READ_ONLY} && ZCONSOLE_STATE=/dev/shm/zc {command}'"
    pool.machine.run("mkdir -p -m 700 /dev/shm/zc")
    last = samples(pool.machine.run(sandbox).stdout)[-1]
    assert (last["problem"], last["state"], last["source"]) == (None, "ONLINE", "libzfs")
    assert last["scan"]["state"] == "finished"
    assert last["error_count"] == 0
