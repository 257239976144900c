"""`python -m tests.vm.power_cuts`: cut the power of a job at every flush of its disk."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tests.proof import INTERRUPTED, digest, table
from tests.vm import image
from tests.vm.cache import exclusive, subdirectory
from tests.vm.errors import VmError
from tests.vm.machine import TREE_IN_GUEST, Machine, written_stretches
from tests.vm.wheels import TREE

RELEASE = "trixie"
DISKS = (512 << 20, 1 << 30, 512 << 20, 512 << 20)
"""Bytes of the disks that ``tests.vm.inside.power`` works on, in its order."""
XFS_BYTES = 320 << 20
RECORDED, LOG, BASE = range(3)
STEP_SECONDS = 600.0
HEADS = ("filesystem", "engine", "points", "done", "resumed", "failures")
_PROGRAM = f"cd {TREE_IN_GUEST} && exec /opt/zc/bin/python -m tests.vm.inside.power"


@dataclass(frozen=True)
class Case:
    """A filesystem and an engine."""

    filesystem: str
    engine: str

    @property
    def name(self) -> str:
        """Return the name of the case, for file names."""
        return f"{self.filesystem}-{self.engine}"


CASES = (Case("ext4", "copy"), Case("xfs", "copy"), Case("zfs", "copy"), Case("zfs", "rewrite"))


@dataclass
class Tally:
    """Results of one case, by the number of the point."""

    sources: str
    points: int = 0
    """Points of the recorded job; 0 if it is not recorded yet."""
    results: dict[str, dict[str, Any]] = field(default_factory=dict)

    @property
    def left(self) -> list[int]:
        """Return the points where the power was not cut yet."""
        return [number for number in range(self.points) if str(number) not in self.results]

    @property
    def failed(self) -> list[dict[str, Any]]:
        """Return the results with problems."""
        return [result for result in self.results.values() if result["problems"]]

    def row(self, case: Case) -> tuple[str, ...]:
        """Return its line of the table."""
        resumed = sum(result["resumed"] for result in self.results.values())
        counts = (self.points, len(self.results), resumed, len(self.failed))
        return (case.filesystem, case.engine, *map(str, counts))


@dataclass(frozen=True)
class Kept:
    """Files of one case on the host, so that a stopped proof continues with the same writes."""

    directory: Path

    @property
    def before(self) -> Path:
        """Return the file with the disk before the job."""
        return self.directory / "before.raw"

    @property
    def log(self) -> Path:
        """Return the file with the log of the job's writes."""
        return self.directory / "log.raw"

    def load(self) -> Tally:
        """Return the results so far; empty if they are of other sources."""
        try:
            tally = Tally(**json.loads((self.directory / "tally.json").read_text()))
        except (OSError, ValueError):
            return Tally(sources())
        return tally if tally.sources == sources() else Tally(sources())

    def save(self, tally: Tally) -> None:
        """Save the results atomically."""
        draft = self.directory / "tally.draft"
        draft.write_text(json.dumps(asdict(tally)))
        draft.replace(self.directory / "tally.json")


@dataclass(frozen=True)
class Proof:
    """One case on a machine whose first four disks are free."""

    machine: Machine
    case: Case
    kept: Kept

    def record(self) -> Tally:
        """Run a whole job and save its writes."""
        if self.case.filesystem == "xfs":
            self._make_xfs()
        self._step("prepare")
        self._keep(RECORDED, self.kept.before)
        points = int(self._step("record"))
        self._keep(LOG, self.kept.log)
        tally = Tally(sources(), points)
        self.kept.save(tally)
        return tally

    def cuts(self, tally: Tally, numbers: Sequence[int]) -> Iterator[dict[str, Any]]:
        """Cut the power at these points of a recorded job; each result is saved at once."""
        self._put(self.kept.before, BASE)
        self._put(self.kept.log, LOG)
        for line in self._lines("cuts", *map(str, numbers)):
            result = json.loads(line)
            tally.results[str(result["point"])] = result
            self.kept.save(tally)
            yield result

    def _step(self, step: str) -> str:
        command = f"{_PROGRAM} {step} {self.case.filesystem} {self.case.engine}"
        return self.machine.run(command, timeout=STEP_SECONDS).stdout

    def _lines(self, step: str, *words: str) -> Iterator[str]:
        """Yield the output of a step, line by line. Raises VmError if it fails."""
        step = " ".join((_PROGRAM, step, self.case.filesystem, self.case.engine, *words))
        command = [*self.machine.ssh.command(), step]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            try:
                yield from process.stdout or ()
            finally:
                if process.poll() is None:
                    process.terminate()
        if process.returncode:
            raise VmError(f"{step}: ended with {process.returncode}")

    def _make_xfs(self) -> None:
        """Create the filesystem on the host: the image has no command for it."""
        with tempfile.TemporaryDirectory() as directory:
            made = Path(directory) / "xfs.raw"
            with made.open("wb") as file:
                file.truncate(XFS_BYTES)
            subprocess.run(["mkfs.xfs", "-q", str(made)], check=True)
            self._put(made, RECORDED)

    def _keep(self, disk: int, kept: Path) -> None:
        """Copy a disk that the guest does not use to a file, keeping holes."""
        file = str(self.machine.disks[disk].file)
        subprocess.run(["cp", "--sparse=always", file, str(kept)], check=True)

    def _put(self, kept: Path, disk: int) -> None:
        """Fill a disk that the guest does not use from a file, followed by zeros."""
        target = self.machine.disks[disk].file
        size = target.stat().st_size
        with kept.open("rb") as source, target.open("r+b") as copy:
            copy.truncate(0)
            copy.truncate(size)
            for start, stop in written_stretches(source.fileno(), 0, kept.stat().st_size):
                os.pwrite(copy.fileno(), os.pread(source.fileno(), stop - start, start), start)


def why_not(case: Case) -> str | None:
    """Return why a case cannot run here, in one line, or None."""
    if case.filesystem == "xfs" and shutil.which("mkfs.xfs", path=_path()) is None:
        return "xfs is left out: no mkfs.xfs here (apt-get install xfsprogs)"
    return None


def _path() -> str:
    return f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"


def sources() -> str:
    """Return a digest of the tested code and the proof; when it changes, all is done again."""
    parts = ("zconsole/rebalance", "tests/vm/inside/power")
    return digest(file for part in parts for file in (TREE / part).rglob("*.py"))


def kept(case: Case, again: bool = False) -> Kept:
    """Return the files of a case, in the machines' cache."""
    directory = subdirectory("power-cuts") / case.name
    if again:
        shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(exist_ok=True)
    return Kept(directory)


def run(machine: Machine, case: Case, place: Kept, every: int, told: Callable[[str], None]) -> None:
    """Do the remaining points of a case, one out of ``every``."""
    tally = place.load()
    proof = Proof(machine, case, place)
    if not tally.points:
        tally = proof.record()
    left = [number for number in tally.left if number % every == 0]
    told(f"{case.name}: {tally.points} points, {len(left)} to do")
    for result in proof.cuts(tally, left) if left else ():
        what = "; ".join(result["problems"]) or "nothing lost"
        told(f"{case.name} {result['point']}: {what} ({result['seconds']} s)")


def show(cases: Sequence[Case]) -> int:
    """Print the table and the problems; returns the number of points with problems."""
    tallies = {case: kept(case).load() for case in cases}
    print(table([HEADS, *(tally.row(case) for case, tally in tallies.items())], left=2))
    for case, tally in tallies.items():
        for result in tally.failed:
            print(f"\n{case.name}, point {result['point']}")
            print("\n".join(f"  {problem}" for problem in result["problems"]))
    return sum(len(tally.failed) for tally in tallies.values())


def main() -> int:
    """Start or continue; returns 1 if something was lost."""
    arguments = _parser().parse_args()
    cases = [case for case in CASES if arguments.case in case.name]
    for reason in filter(None, map(why_not, cases)):
        print(reason)
    cases = [case for case in cases if not why_not(case)]
    with exclusive(subdirectory("power-cuts") / "lock"):
        try:
            _run_all(cases, arguments.again, arguments.every)
        except KeyboardInterrupt:
            show(cases)
            print("stopped; the same command goes on from here")
            return INTERRUPTED
        return 1 if show(cases) else 0


def _run_all(cases: Sequence[Case], again: bool, every: int) -> None:
    places = {case: kept(case, again) for case in cases}
    tallies = [place.load() for place in places.values()]
    if all(tally.points and not tally.left for tally in tallies):
        return
    with Machine.boot(image.build(RELEASE), DISKS) as machine:
        machine.push_tree()
        for case, place in places.items():
            run(machine, case, place, every, lambda text: print(text, flush=True))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.vm.power_cuts", description=__doc__)
    parser.add_argument("--case", default="", help="only those with this in their names: zfs-copy")
    parser.add_argument("--every", type=int, default=1, help="one of so many points (all)")
    parser.add_argument("--again", action="store_true", help="forget what earlier runs did")
    return parser


if __name__ == "__main__":
    sys.exit(main())
