"""One fault on a live pool during a scan or a rebalance, in a virtual machine."""

from __future__ import annotations

import json
import random
import re
import shlex
import time
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from tests.vm.errors import VmError
from tests.vm.fault_judge import Seen, truth, truths
from tests.vm.holding import MIB, PARAMETERS, SCAN_HOLD, little_in_flight
from tests.vm.machine import Machine
from tests.vm.pools import PoolFactory
from tests.vm.terminal import ZCONSOLE

LIST = Path(__file__).parent / "faults.toml"
"""File with the faults, pools and seeds, which were fixed before any trial."""
FILES, FILE_MB = 6, 8
NEW = 5
"""Number of the disk that replaces another."""
SCAN_SECONDS = 10
HANDLING_SECONDS = 25
"""Added for each time that a disk is pulled and put back, so that both are seen during the scan."""
RETURNS = {"returns": 1, "flaps": 2}
PATIENCE = 150.0
"""Limit in seconds for a scan with its fault; most are due to emulation."""
CRAWL_SAMPLES = 20
PANIC_SECONDS = 8
DIRECTORY = "/tank/data"
HARMED = f"{DIRECTORY}/file2"
_RUNNING = {
    "scrub": ("scrub in progress", ("scrub", "tank")),
    "resilver": ("resilver in progress", ("replace", "-f", "tank")),
    "rebuild": ("(rebuild|resilver|sequential).*in progress", ("replace", "-f", "-s", "tank")),
}
_WRITE = f"""
set -e
zfs create -o recordsize=128k -o compression=off -o primarycache=metadata tank/data
for file in $(seq {FILES}); do
  head -c 1M /dev/urandom >/run/block
  cat $(yes /run/block | head -n {FILE_MB}) >{DIRECTORY}/file$file
done
ln {DIRECTORY}/file1 {DIRECTORY}/link
zpool sync
sha256sum {DIRECTORY}/* >/root/sums
sync /root/sums
"""
_TRUTH = "while :; do date +%s.%N; zpool status tank; echo END; sleep 1; done"
_WATCH = f"timeout {PATIENCE:.0f} {ZCONSOLE} watch tank --json --interval 1"
_END = (
    "zinject -c all >/dev/null; pkill -f '[w]atch tank'; pkill -f '[e]cho END';"
    " pkill -f '[r]ebalance run';"
    f" echo 0 >{PARAMETERS}/{SCAN_HOLD}"
)


class Trial(NamedTuple):
    """A combination of fault, operation and seed on a release."""

    release: str
    fault: str
    during: str
    seed: int

    @property
    def name(self) -> str:
        """Return a name for tables and files; it also seeds the random choices."""
        return "/".join(map(str, self))


class Chance(NamedTuple):
    """Random choices of a trial."""

    layout: str
    disks: tuple[int, ...]
    victim: int
    strength: int


def faults() -> dict[str, Any]:
    """Return the parsed LIST."""
    return tomllib.loads(LIST.read_text())


def trials(release: str) -> Iterator[Trial]:
    """Yield every trial of a release, one seed after another."""
    listed = faults()
    for seed in listed["seeds"]:
        for fault, about in listed["faults"].items():
            for during in about["during"]:
                yield Trial(release, fault, during, seed)


def drawn(trial: Trial) -> Chance:
    """Return the pool, device and strength of a trial: always the same for the same trial."""
    listed, chance = faults(), random.Random(trial.name)
    layout = chance.choice(listed["pools"][trial.during])
    disks = tuple(int(word[1:]) for word in layout.split() if re.fullmatch(r"d\d", word))
    # The last disk is being replaced in these, so it cannot be the victim.
    kept = disks[:-1] if trial.during in ("resilver", "rebuild") else disks
    low, high = listed["faults"][trial.fault].get("strength", (0, 0))
    return Chance(layout, disks, chance.choice(kept), chance.randint(low, high))


def parity(layout: str, disks: int) -> int:
    """Return how many devices a vdev with ``disks`` disks can lose."""
    found = re.match(r"(?:raidz|draid)(\d)", layout)
    return int(found[1]) if found else disks - 1


@dataclass(frozen=True)
class Stage:
    """A machine without pools, and the trial to be run there."""

    machine: Machine
    trial: Trial
    chance: Chance

    @property
    def pool(self) -> PoolFactory:
        """Return a factory for the machine's pools."""
        return PoolFactory(self.machine)

    def run(self) -> Seen:
        """Run the trial; raises VmError if that was not possible."""
        chance = self.chance
        left = parity(chance.layout, len(chance.disks))
        seen = Seen(self.trial.fault, self.trial.during, left, chance.victim)
        kept = " ".join(f"/root/{name}" for name in ("frames", "truth", "code", "done", "job"))
        self.machine.run(f"rm -rf /var/lib/zconsole {kept}")
        self.pool.create(chance.layout, options="-o ashift=12")
        self.machine.run(_WRITE, timeout=300)
        if self.trial.during == "rebalance":
            self._rebalance(seen)
        else:
            self._scan(seen)
        self._look_back(seen)
        return seen

    def _scan(self, seen: Seen) -> None:
        pattern, words = _RUNNING[self.trial.during]
        little_in_flight(self.pool)
        self._slow_down()
        # Held until the fault is in place: the scan could end before it.
        self._hold(True)
        replaced = (f"d{self.chance.disks[-1]}", f"d{NEW}")
        self.pool.zpool(*words, *(() if self.trial.during == "scrub" else replaced))
        self.pool.wait_status(pattern)
        end = f"--count {CRAWL_SAMPLES}" if self.trial.fault == "crawls" else "--until-done"
        self._follow(end)
        self._inject(seen)
        self._hold(False)
        self._handle_disks()
        # A disk that is gone for good has left the scan held.
        self._hold(False)
        self._wait("/root/code")
        self._read(seen)
        if self.trial.fault != "crawls":
            seen.code = self._code("code")

    def _hold(self, on: bool) -> None:
        self.machine.run(f"echo {int(on)} >{PARAMETERS}/{SCAN_HOLD}")

    def _slow_down(self) -> None:
        """Slow down the scan: limit the new disk, or all disks of a scrub, in bytes/s."""
        disks = self.chance.disks
        share = len(disks) - parity(self.chance.layout, len(disks))
        seconds = SCAN_SECONDS + HANDLING_SECONDS * RETURNS.get(self.trial.fault, 0)
        # Each disk holds 1/share of the data, and should take ``seconds`` to scan.
        rate = FILES * FILE_MB * MIB // share // seconds
        if self.trial.fault == "crawls":
            self.pool.slow(self.chance.victim, bps=self.chance.strength << 10)
        elif self.trial.during == "scrub":
            self.pool.slow(*disks, bps=rate)
        else:
            self.pool.slow(NEW, bps=rate)

    def _follow(self, end: str) -> None:
        """Start zconsole and the reference loop, and wait until both see the pool."""
        self._begin(f"{{ {_TRUTH}; }} >/root/truth")
        self._begin(f"{_WATCH} {end} >/root/frames 2>/root/complaints; echo $? >/root/code")
        self.pool.wait_until("[ -s /root/frames ] && [ -s /root/truth ]")

    def _begin(self, line: str) -> None:
        """Start a shell line in the guest that outlives its connection."""
        self.machine.run(f"setsid -f sh -c {shlex.quote(line)} </dev/null >/dev/null 2>&1")

    def _inject(self, seen: Seen) -> None:
        device = f"{self.pool.device(f'd{self.chance.victim}')}-part1"
        every = ["-f", str(self.chance.strength)]
        if self.trial.fault == "read":
            self._zinject("-d", device, "-e", "io", "-T", "read", *every, "tank")
        elif self.trial.fault == "checksum":
            self._zinject("-d", device, "-e", "corrupt", "-T", "read", *every, "tank")
        elif self.trial.fault == "file":
            self._zinject("-t", "data", "-e", "checksum", "-am", HARMED)
            seen.file = HARMED

    def _zinject(self, *words: str) -> None:
        self.machine.run(["zinject", *words])

    def _handle_disks(self) -> None:
        """Pull and return the disk, as often as the fault requires.

        The scan is paused meanwhile: on slowed disks, commands would wait long behind it.
        """
        for _ in range(1 if self.trial.fault == "gone" else RETURNS.get(self.trial.fault, 0)):
            time.sleep(2)
            self._hold(True)
            self.machine.pull(self.chance.victim)
            self._wait_for_victim("(REMOVED|UNAVAIL|FAULTED)")
            if self.trial.fault == "gone":
                return
            time.sleep(3)
            self.machine.plug(self.chance.victim)
            device = self.pool.device(f"d{self.chance.victim}")
            self.machine.run(f"zpool online tank {device}; zpool clear tank", check=False)
            self._wait_for_victim("ONLINE")
            self._hold(False)

    def _wait_for_victim(self, state: str) -> None:
        """Wait until ZFS notices, which happens at the next write at the latest."""
        number = self.chance.victim
        touch = f"touch {DIRECTORY}; zpool sync tank"
        self.pool.wait_until(
            f"{{ {touch}; zpool status tank | grep -Eq '(LABDISK{number}(-part1)?|LABDISK{number}"
            f"-part1\\)?) +{state}|{state} .*was /dev/.*LABDISK{number}'; }}"
        )

    def _wait(self, file: str) -> None:
        self.machine.run(
            f"timeout {PATIENCE:.0f} sh -c 'until [ -s {file} ]; do sleep 0.3; done'",
            check=False,
            timeout=PATIENCE + 30,
        )

    def _rebalance(self, seen: Seen) -> None:
        accept = "--accept-races" if self.machine.image.zfs_version < (2, 2) else ""
        words = f"rebalance run {DIRECTORY} --engine copy {accept} --yes --json"
        self._follow("")
        self._inject(seen)
        if self.trial.fault == "dropped":
            self._panic(words)
            return
        self._begin(f"{ZCONSOLE} {words} >/root/job 2>/root/job-errors; echo $? >/root/done")
        self._handle_disks()
        self._wait("/root/done")
        time.sleep(3)  # let the last observations be reported
        self._read(seen)
        self._read_job(seen)

    def _panic(self, words: str) -> None:
        """Lose writes, crash, boot, and resume the job."""
        self.machine.run(f"{ZCONSOLE} {words} --detach", check=False)
        self._begin(f"zinject -I -s {PANIC_SECONDS} tank")
        time.sleep(PANIC_SECONDS + 4)
        self.machine.reboot()
        self.machine.run("zpool import tank || zpool import -F tank; zfs mount -a", check=False)
        resume = f"{ZCONSOLE} rebalance resume --all --json >/root/job; echo $? >/root/done"
        self.machine.run(resume, timeout=PATIENCE)

    def _read_job(self, seen: Seen) -> None:
        lines = self.machine.run("cat /root/job").stdout.splitlines()
        seen.records = [json.loads(line) for line in lines if line.startswith('{"path"')]
        seen.code = self._code("done")  # a job waits while redundancy is missing

    def _code(self, name: str) -> int | None:
        """Return the exit status that a command left in a file; None if it has not ended."""
        words = self.machine.run(f"cat /root/{name}", check=False).stdout
        return int(words) if words.strip() else None

    def _read(self, seen: Seen) -> None:
        lines = self.machine.run("cat /root/frames").stdout.splitlines()
        seen.frames = [json.loads(line) for line in lines if line.endswith("}")]
        seen.truths = truths(self.machine.run("cat /root/truth").stdout)

    def _look_back(self, seen: Seen) -> None:
        """End the fault, and record its effects."""
        check = f"{ZCONSOLE} status tank --exit-status >/dev/null"
        seen.status_code = self.machine.run(check, check=False).returncode
        seen.end = truth(time.time(), self.machine.run("zpool status -v tank", check=False).stdout)
        self.machine.run(_END)
        if self.trial.fault == "dropped":
            self._read_job(seen)
        for disk in self.chance.disks:
            if disk in self.machine.plugged():
                self.machine.throttle(disk)
        if seen.code is not None:
            further = "timeout 100 zpool scrub -w tank; zpool status -v tank"
            seen.after = self.machine.run(
                f"zpool clear tank; zpool wait -t resilver tank; {further}",
                check=False,
                timeout=PATIENCE,
            ).stdout
        sums = self.machine.run("sha256sum -c --quiet /root/sums 2>&1", check=False, timeout=100)
        seen.changed = sums.stdout.splitlines()[:4]


def make(machine: Machine, trial: Trial) -> Seen:
    """Run a trial on a machine without pools. Raises VmError if that was not possible."""
    try:
        return Stage(machine, trial, drawn(trial)).run()
    except (ValueError, OSError) as error:
        raise VmError(f"{trial.name}: {error}") from error
    finally:
        machine.run(_END)  # otherwise leftovers would write into the next trial
