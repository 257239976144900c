"""`python -m tests.vm.held_latency`: how well the autopilot holds a latency on a live kernel.

A mirror with disks of limited operations per second is scrubbed while applications think, read and
wait (`inside/applications.py`). First, each fixed setting runs for a while; the target is between
the latencies of the gentlest and of the fastest. Then the autopilot runs. The latencies printed are
those that the applications measured. The goals are 9 of 10 minutes with a p95 within 1.2 times the
target, and a scan time within 1.3 times that of the fastest fixed setting that meets it.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tests.vm import image
from tests.vm.machine import TREE_IN_GUEST, Machine
from tests.vm.pools import PoolFactory
from zconsole.tunables.hold_latency import FASTEST, GENTLEST, LEVERS, values

PARAMETERS = "/sys/module/zfs/parameters"
LOG = "/run/applications"
DISK = 5 << 30
MEGABYTES = 3600
BLOCK = 32768
"""Bytes per read of the scan; without aggregation, so that operations per second limit it."""
SETTLE = 15.0
"""Seconds after a change that are not counted."""
OTHER = {"zfs_vdev_scrub_min_active": 1, "zfs_vdev_scrub_max_active": 10, "zfs_vdev_nia_credit": 12}
"""A fixed setting that the autopilot has no level for."""
SHOWN = "zfs_vdev_scrub_max_active"
"""The tunable whose steps are printed."""


@dataclass(frozen=True)
class Bench:
    """A machine with the pool, its applications and its scrub."""

    vm: Machine

    def prepare(self, iops: int, threads: int, think: float) -> dict[str, int]:
        """Create and fill the pool, slow its disks, start the load; returns original values."""
        pool = PoolFactory(self.vm)
        pool.create(
            "mirror d0 d1",
            options=f"-O recordsize={BLOCK} -O compression=off -O primarycache=metadata",
        )
        pool.fill(MEGABYTES)
        self.write({"zfs_vdev_aggregation_limit": BLOCK})
        for disk in (0, 1):
            self.vm.throttle(disk, iops=iops)
        script = f"{TREE_IN_GUEST}/tests/vm/inside/applications.py"
        words = f"python3 {script} /tank/data {LOG} {threads} {think}"
        self.vm.run(f"setsid {words} >/run/applications.err 2>&1 </dev/null &")
        lines = self.vm.run(f"cd {PARAMETERS} && grep -H . {' '.join(LEVERS)} || true").stdout
        return {name: int(v) for name, v in (line.split(":") for line in lines.splitlines())}

    def write(self, wanted: Mapping[str, int]) -> None:
        """Set tunables as an administrator would, by hand."""
        self.vm.run("; ".join(f"echo {v} > {PARAMETERS}/{n}" for n, v in wanted.items()))

    def issued(self) -> tuple[float, float, bool]:
        """Return the guest's time, the bytes issued by the scan, and whether it runs."""
        text = self.vm.run("date +%s.%N; zconsole status tank --json").stdout
        now, _, status = text.partition("\n")
        scan = json.loads(status)["scan"]
        return float(now), float(scan["issued_bytes"]), scan["state"] == "running"

    def latencies(self, start: float, end: float) -> list[float]:
        """Return the latencies that applications measured between two guest times, in seconds."""
        lines = (line.split() for line in self.vm.run(f"cat {LOG}").stdout.splitlines())
        pairs = [(float(p[0]), float(p[1])) for p in lines if len(p) == 2]
        return [took for began, took in pairs if start <= began < end]

    def steps(self, start: float) -> list[str]:
        """Return the values of SHOWN that the autopilot set, with seconds since ``start``."""
        lines = self.vm.run("cat /var/lib/zconsole/audit.jsonl").stdout.splitlines()
        ended = [r for r in map(json.loads, lines) if r["event"] == "ended"]
        return [
            f"{r['t'] - start:.0f}s:{v['new']}"
            for r in ended
            for v in r.get("values", ())
            if v["name"] == SHOWN and r["t"] >= start
        ]

    def fixed(self, wanted: Mapping[str, int], seconds: float) -> tuple[float, float]:
        """Return the scan's bytes/s and the applications' p95 under a fixed setting."""
        self.write(wanted)
        self.vm.run("zpool scrub tank")
        time.sleep(SETTLE)
        start, before, _ = self.issued()
        time.sleep(seconds)
        end, after, _ = self.issued()
        self.vm.run("zpool scrub -s tank")
        return (after - before) / (end - start), p95(self.latencies(start, end))

    def flown(self, target: float, seconds: float) -> tuple[float, float, float]:
        """Run a scan under the autopilot; returns the guest's times at both ends, and bytes/s."""
        self.vm.run("zpool scrub tank")
        start, before, _ = self.issued()
        self.vm.run(f"zconsole tunables hold-latency {target * 1e3:.1f}ms")
        end, after, running = self.issued()
        while running and end - start < seconds:
            time.sleep(10.0)
            end, after, running = self.issued()
        self.vm.run("zconsole tunables hold-latency off; zpool scrub -s tank || true")
        return start, end, (after - before) / (end - start)


def p95(found: Sequence[float]) -> float:
    """Return the 95th percentile; 0.0 if there are no values."""
    return sorted(found)[int(0.95 * (len(found) - 1))] if found else 0.0


def settings(found: Mapping[str, int]) -> list[tuple[str, dict[str, int]]]:
    """Return fixed settings with names: the gentlest first, the fastest second."""
    levels = (GENTLEST, FASTEST, 0.0, 2.0, 4.0)
    made = [(f"level {level:+g}", values(level, found)) for level in levels]
    return [*made, ("other", {**found, **OTHER})]


def measure(bench: Bench, args: argparse.Namespace) -> bool:
    """Print the figures; returns whether all goals are met."""
    found = bench.prepare(args.iops, args.threads, args.think)
    choices = settings(found)
    tried = [_tried(bench, *choice, args.fixed) for choice in choices]
    bench.write(found)
    (slow, low), (fast, high) = tried[:2]
    print(f"fastest to gentlest: rate {fast / slow:.1f}, p95 {high / low:.1f}")
    target = low * (high / low) ** args.strictness
    able = [i for i, (_, worst) in enumerate(tried) if worst <= 1.2 * target]
    chosen = max(able, key=lambda i: tried[i][0])
    start, end, rate = bench.flown(target, args.seconds)
    whole = int((end - start) // 60)
    minutes = [p95(bench.latencies(start + 60 * i, start + 60 * (i + 1))) for i in range(whole)]
    held = sum(each <= 1.2 * target for each in minutes) / max(1, whole)
    print(f"steps of {SHOWN}:", *bench.steps(start))
    print("p95 of each minute:", *(f"{each * 1e3:.0f}" for each in minutes))
    # Other work on the host slows the guest down, so measure the earlier settings again.
    print("again, the gentlest and the best fixed setting:", flush=True)
    again = [_tried(bench, *choices[i], args.fixed) for i in (0, chosen)]
    best = (tried[chosen][0] + again[1][0]) / 2
    print(f"target {target * 1e3:.1f} ms: held in {held:.2f} of {whole} minutes (wanted: 0.90)")
    print(f"{rate / 1e6:.2f} MB/s: {best / rate:.2f} times the best fixed time (wanted: 1.30)")
    return held >= 0.9 and best / rate <= 1.3


def _tried(
    bench: Bench, name: str, wanted: Mapping[str, int], seconds: float
) -> tuple[float, float]:
    rate, worst = bench.fixed(wanted, seconds)
    print(f"{name:10}  {rate / 1e6:5.2f} MB/s  p95 {worst * 1e3:5.0f} ms", flush=True)
    return rate, worst


def main(argv: Sequence[str] | None = None) -> int:
    """Boot a machine and measure; returns 1 if a goal is missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("--release", default="trixie")
    parser.add_argument("--iops", type=int, default=150, help="of each disk")
    parser.add_argument("--threads", type=int, default=3)
    parser.add_argument("--think", type=float, default=0.1, help="seconds, on average")
    parser.add_argument("--strictness", type=float, default=0.5)
    parser.add_argument("--fixed", type=float, default=60.0, help="seconds of a fixed setting")
    parser.add_argument("--seconds", type=float, default=720.0, help="of the autopilot, at most")
    args = parser.parse_args(argv)
    with Machine.boot(image.build(args.release), [DISK, DISK]) as vm:
        vm.push_tree()
        return int(not measure(Bench(vm), args))


if __name__ == "__main__":
    sys.exit(main())
