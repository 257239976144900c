"""Twenty hosts by ``--host`` side by side: the console's CPU, memory, first paint and keys.

    python -m tests.bench.hosts [COLUMNSxLINES] [SECONDS] [--hosts N] [--bad] [--show]

No machines are needed: a fake ``ssh`` on PATH answers each host's commands from a saved pool whose
scan advances. So the figures don't include ssh itself (its processes are children of the console's,
and counted separately) or the network, except for ``LATENCY`` seconds per command. With ``--bad``,
five of the hosts are broken: one refuses, one hangs, one is slow, one prints nonsense and one is
lost partway; the others' samples per second show whether they are delayed. With ``--show``, the
directory of the fake is kept, and the command to look at the console is printed.
"""

from __future__ import annotations

import argparse
import json
import os
import select
import shutil
import signal
import statistics
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.bench.live_cpu import cpu_seconds
from tests.bench.terminal_bytes import ZCONSOLE, start

CAPTURES = Path(__file__).parents[1] / "fixtures" / "captures"
SAVED = (
    "2.4.4/replace-running",
    "2.4.4/every-class",
    "2.3.9/checkpoint",
    "2.3.9/unavail-leaf",
    "2.1.11/every-class",
    "2.3.9/scrub-paused",
    "2.3.9/hot-spare-inuse",
    "2.4.4/expand-running",
    "2.3.9/write-errors",
    "2.1.11/replace-offline-old",
)
LATENCY = 0.02
"""Seconds that each command takes longer than on the local machine."""
SLOW = 1.2
LOST_AFTER = 15.0
BAD = ("refuses", "hangs", "slow", "nonsense", "lost")
KEYS = 100
RATE = 120e6
"""Bytes/s by which running scans advance, of a thousand times the saved pool."""
SSH = r"""#!/bin/sh
here={here}
while [ "$1" != -- ]; do [ "$1" = -O ] && exit 0; shift; done
host=$2 line=$3
pool=$here/$host
read -r way delay < $pool/way
echo "$way $host $line" >> $here/calls
case $way in
    refuses) echo "ssh: connect to host $host port 22: Connection refused" >&2; exit 255 ;;
    hangs) exec sleep 1000 ;;
    lost) echo "client_loop: send disconnect: Broken pipe" >&2; exit 255 ;;
    nonsense) exec head -c 3000 /dev/urandom ;;
esac
sleep $delay
case $line in
    *"zpool list -H -o name") echo tank ;;
    *"zpool version") exec cat $pool/version ;;
    *"date +%z") echo +0000 ;;
    *"grep -H . "*) echo "/proc/spl/kstat/zfs/tank/state:ONLINE" ;;
    *"zpool status -jP"*) exec cat $pool/status.json ;;
    *"zpool status -j "*) exec cat $pool/status-names.json ;;
    *"zpool list -vjP"*) exec cat $pool/list.json ;;
    *"zpool status -P "*) exec cat $pool/status-P.txt ;;
    *"zpool status "*) exec cat $pool/status.txt ;;
    *"zpool list -v -p"*) exec cat $pool/list-vHp.txt ;;
    *"zpool iostat"*) while :; do date +%s; cat $pool/iostat-Hp.txt; sleep 1; done ;;
    *"zpool wait"*) exec sleep 1000 ;;
    *) echo "unexpected: $line" >&2; exit 1 ;;
esac
"""


class Hosts:
    """Simulated hosts in a directory of their own; their scans advance with time."""

    def __init__(self, here: Path, count: int, bad: bool) -> None:
        self.here = here
        self.names = [f"h{number:02}" for number in range(1, count + 1)]
        self.lost = ""
        """Name of the host that is lost partway."""
        self._scans: dict[Path, dict[str, Any]] = {}
        self._began = time.time()
        ssh = here / "bin/ssh"
        ssh.parent.mkdir()
        ssh.write_text(SSH.format(here=here))
        ssh.chmod(0o755)
        ways = dict(zip(self.names[1::3], BAD, strict=False)) if bad else {}
        for number, name in enumerate(self.names):
            self._make(name, SAVED[number % len(SAVED)], ways.get(name, "well"))

    @property
    def words(self) -> str:
        """Return the argument of ``--host``."""
        return ",".join(self.names)

    def _make(self, name: str, saved: str, way: str) -> None:
        pool = self.here / name
        shutil.copytree(CAPTURES / saved, pool)
        version = saved.partition("/")[0]
        (pool / "version").write_text(f"zfs-{version}-1\nzfs-kmod-{version}-1\n")
        self._set_way(name, "well" if way in ("slow", "lost") else way, SLOW * (way == "slow"))
        if way == "lost":
            self.lost = name
        if version < "2.3":
            return  # text output does not change
        document = json.loads((pool / "status.json").read_text())
        scan = document["pools"]["tank"].get("scan_stats", {})
        if scan.get("state") == "SCANNING" and not scan.get("scrub_pause"):
            self._scans[pool / "status.json"] = document

    def _set_way(self, name: str, way: str, delay: float = 0.0) -> None:
        (self.here / name / "way").write_text(f"{way} {delay or LATENCY}\n")

    def proceed(self) -> None:
        """Advance the scans to the present, and lose the host whose time has come."""
        passed = time.time() - self._began
        for path, document in self._scans.items():
            fresh = json.loads(json.dumps(document))
            _advance(fresh["pools"]["tank"]["scan_stats"], self._began, passed)
            # Replaced in one step, because a fake ssh may be reading the file.
            other = path.with_suffix(".new")
            other.write_text(json.dumps(fresh))
            other.replace(path)
        if self.lost and passed > LOST_AFTER:
            self._set_way(self.lost, "lost")

    def calls(self) -> Counter[str]:
        """Return how often each host was asked for its pool so far."""
        lines = (self.here / "calls").read_text().splitlines()
        return Counter(line.split()[1] for line in lines if "zpool status" in line)


def _advance(scan: dict[str, Any], began: float, passed: float) -> None:
    total = scan["to_examine"] * 1000
    done = min(total, int(total * 0.1 + RATE * (passed + 600)))
    begun = {name: int(began - 600) for name in ("start_time", "pass_start")}
    both = dict.fromkeys(("issued", "issued_bytes_per_scan"), done)
    scan |= {"to_examine": total, "examined": total, "processed": done // 4, **both, **begun}


@contextmanager
def hosts(count: int, bad: bool) -> Iterator[Hosts]:
    """Provide simulated hosts whose scans advance for the duration of the block."""
    with tempfile.TemporaryDirectory() as folder:
        made, over = Hosts(Path(folder), count, bad), threading.Event()

        def _proceed() -> None:
            while not over.wait(1.0):
                made.proceed()

        thread = threading.Thread(target=_proceed)
        made.proceed()
        thread.start()
        try:
            yield made
        finally:
            over.set()
            thread.join()


class Console:
    """The console on a terminal."""

    def __init__(self, made: Hosts, columns: int, lines: int) -> None:
        command = ("env", *_environment(made), *ZCONSOLE, "--host", made.words)
        self.began = time.perf_counter()
        self.pid, self._terminal = start(command, columns, lines)

    def until(self, sign: bytes, patience: float = 30.0) -> float:
        """Return the milliseconds until ``sign`` is written; NaN if it does not come in time."""
        began, seen = time.perf_counter(), b""
        while (left := began + patience - time.perf_counter()) > 0:
            if select.select([self._terminal], [], [], left)[0]:
                try:
                    seen += os.read(self._terminal, 65536)
                except OSError:  # the console has ended
                    break
                if sign in seen:
                    return (time.perf_counter() - began) * 1e3
        return float("nan")

    def read(self, seconds: float) -> None:
        """Read output for some seconds."""
        self.until(b"\0never", seconds)

    def press(self, key: bytes, sign: bytes) -> float:
        """Return the milliseconds from a key to ``sign``."""
        os.write(self._terminal, key)
        return self.until(sign, 5.0)

    def end(self) -> None:
        """End the console and wait for it."""
        os.kill(self.pid, signal.SIGTERM)
        self.read(2.0)
        os.close(self._terminal)
        os.waitpid(self.pid, 0)


def _environment(made: Hosts) -> Sequence[str]:
    return (
        f"PATH={made.here / 'bin'}:{os.environ['PATH']}",
        f"ZCONSOLE_STATE={made.here / 'state'}",
    )


def own_seconds(pid: int) -> float:
    """Return the CPU seconds of one process, without its children."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory(pid: int) -> float:
    """Return the peak memory of a process so far, in MB."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


def measure(made: Hosts, columns: int, lines: int, seconds: float) -> None:
    """Print the figures."""
    console = Console(made, columns, lines)
    try:
        print(f"first paint        {console.until(b'every 1s'):7.0f} ms (at most 1,000)")
        console.read(10.0)
        own, every, calls = own_seconds(console.pid), cpu_seconds(console.pid), made.calls()
        began = time.monotonic()
        console.read(seconds)
        passed = time.monotonic() - began
        own, every = own_seconds(console.pid) - own, cpu_seconds(console.pid) - every
        print(f"CPU of the console {1e3 * own / passed:7.0f} ms a second")
        print(f"of the stand-ins   {1e3 * (every - own) / passed:7.0f} ms a second")
        rates = {name: n / passed for name, n in (made.calls() - calls).items()}
        held = [rates.get(name, 0.0) for name in made.names]
        print("samples a second  ", " ".join(f"{rate:.2f}" for rate in held))
        print(f"memory             {memory(console.pid):7.0f} MB")
        taken = keys(console, made)
        middle, p95 = statistics.median(taken), statistics.quantiles(taken, n=20)[-1]
        print(f"a key painted      {middle:7.0f} ms, 95 % within {p95:.0f} ms (at most 100)")
    finally:
        console.end()


def keys(console: Console, made: Hosts) -> list[float]:
    """Return the times, in milliseconds, to paint the next pool after a key, for many keys."""
    taken: list[float] = []
    for number in range(KEYS):
        console.read(0.137)  # a different moment between two samples each time
        sign = made.names[(number + 1) % len(made.names)].encode()
        taken.append(console.press(b"]", sign))
    return taken


def main() -> None:
    """Print the figures, or instructions for looking at the console."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("size", nargs="?", default="80x24")
    parser.add_argument("seconds", nargs="?", type=float, default=30.0)
    parser.add_argument("--hosts", type=int, default=20)
    parser.add_argument("--bad", action="store_true")
    parser.add_argument("--show", action="store_true")
    args = parser.parse_args()
    columns, lines = map(int, args.size.split("x"))
    with hosts(args.hosts, args.bad) as made:
        if args.show:
            print("env", *_environment(made), *ZCONSOLE, "--host", made.words, flush=True)
            signal.pause()
        measure(made, columns, lines, args.seconds)


if __name__ == "__main__":
    main()
