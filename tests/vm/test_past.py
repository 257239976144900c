"""The pool's own history on a live kernel: a first scrub predicts the second one."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from tests.vm.holding import MIB, SCAN_HOLD, little_in_flight, with_hold
from tests.vm.machine import TREE_IN_GUEST, Machine
from tests.vm.pools import PoolFactory

FILL_MB = 700
ZONES = (4.0, 3.2, 2.5, 1.8)
"""MiB/s of the disks in each quarter of a scrub: fast outer tracks first, slow inner ones last."""
FIRST_MINUTE = 60.0
LOG = "/run/watched"
LONGEST = 900.0


def last_sample(vm: Machine) -> dict[str, Any]:
    """Return the last line of `watch`; empty before its first line."""
    lines = vm.run(f"tail -n 1 {LOG}", check=False).stdout.splitlines()
    return dict(json.loads(lines[-1])) if lines else {}


def scrubbed(pool: PoolFactory) -> list[dict[str, Any]]:
    """Return the samples of `watch` during a whole scrub of disks that slow down as it advances."""
    vm = pool.machine
    pool.slow(0, 1, bps=int(ZONES[0] * MIB))
    with_hold(pool, SCAN_HOLD, "scrub in progress", "scrub", "tank")
    watch = f"cd {TREE_IN_GUEST} && python3 -m zconsole watch tank --json --until-done"
    vm.run(f"setsid sh -c '{watch}' >{LOG} 2>/run/watch.err </dev/null &")
    zone, end = 0, time.monotonic() + LONGEST
    while time.monotonic() < end:
        scan = last_sample(vm).get("scan") or {}
        if scan.get("state") == "finished":
            break
        share = float(scan.get("issued_bytes", 0)) / float(scan.get("total_bytes") or 1)
        if zone != (now := min(int(share * len(ZONES)), len(ZONES) - 1)):
            zone = now
            pool.slow(0, 1, bps=int(ZONES[zone] * MIB))
        time.sleep(1.0)
    lines = vm.run(f"cat {LOG}").stdout.splitlines()
    return [json.loads(line) for line in lines]


@pytest.mark.slow
def test_a_second_scrub_is_predicted_from_its_first_minute(pool: PoolFactory):
    pool.machine.run("rm -rf /var/lib/zconsole")
    pool.create("mirror d0 d1", options="-O compression=off -O primarycache=metadata")
    pool.fill(FILL_MB)
    little_in_flight(pool)
    first = scrubbed(pool)
    assert first[-1]["scan"]["state"] == "finished"
    second = scrubbed(pool)
    running = [each for each in second if each["scan"]["state"] == "running"]
    start = running[0]["scan"]["start"]
    took = second[-1]["scan"]["end"] - start
    [early, *_] = [each for each in running if each["t"] - start >= FIRST_MINUTE]
    left = took - (early["t"] - start)
    told = early["scan"]["eta_seconds"]
    zpool = early["scan"]["zpool_eta_seconds"]
    print(f"took {took:.0f} s; {left:.0f} s left, told {told:.0f} s, by zpool {zpool} s")
    assert early["scan"]["past"]
    assert abs(told - left) <= 0.05 * took
