"""`python -m tests.vm.inside.power`: prepare and record a job, and cut its power everywhere."""

from __future__ import annotations

import argparse
import json
import os
import sqlite3
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tests.cuts import oracle
from tests.cuts.oracle import Wanted
from tests.vm.inside.power import filesystems, job, tree, write_log
from tests.vm.inside.power.device_mapper import Part, mapped, size_of
from tests.vm.inside.power.filesystems import FILESYSTEMS, Filesystem, mounted

_DISK = "/dev/disk/by-id/virtio-LABDISK"
RECORDED, LOG, BASE, CHANGES = (os.path.realpath(f"{_DISK}{number}") for number in range(4))
"""The disk that the job ran on, the log of its writes, the disk they are replayed to, and the disk
for changes after a power cut."""


@dataclass(frozen=True)
class Proof:
    """The proof for one filesystem and one engine."""

    filesystem: Filesystem
    engine: str

    @property
    def root(self) -> bytes:
        """Return the directory of the job."""
        return os.fsencode(self.filesystem.root)

    def prepare(self) -> None:
        """Create the filesystems and the files, and leave all unmounted."""
        filesystems.make(self.filesystem, RECORDED)
        with mounted(self.filesystem, RECORDED):
            self.filesystem.root.mkdir()
            tree.build(self.root)

    def record(self) -> int:
        """Log all writes of a whole job; returns the number of points."""
        parts = Part(size_of(RECORDED), "log-writes", f"{RECORDED} {LOG}")
        with mapped("power-logged", parts) as device, mounted(self.filesystem, device):
            if problem := job.execute(job.words(self.filesystem, self.engine)):
                raise RuntimeError(problem)
            os.sync()
        log = os.open(LOG, os.O_RDONLY)
        return len(write_log.points(write_log.entries(log)))

    def cuts(self, numbers: Sequence[int]) -> Iterator[dict[str, Any]]:
        """Cut the power at these points, in order; the base must be in the state before the job."""
        log, base = os.open(LOG, os.O_RDONLY), os.open(BASE, os.O_RDWR)
        entries = write_log.entries(log)
        ends, done = write_log.points(entries), 0
        with self._booted():
            wanted = Wanted(tree.seen(self.root))
        for number in numbers:
            write_log.replay(log, base, entries[done : ends[number]])
            done = ends[number]
            yield {"point": number, "entry": done, **self._cut(wanted)}

    @contextmanager
    def _booted(self) -> Iterator[None]:
        """Mount the base; changes made there are discarded at the end."""
        part = Part(size_of(BASE), "snapshot", f"{BASE} {CHANGES} N 8")
        with mapped("power-booted", part) as device, mounted(self.filesystem, device):
            yield

    def _cut(self, wanted: Wanted) -> dict[str, Any]:
        """Boot after a power cut, check, resume the job, check again."""
        began, problems = time.monotonic(), list[str]()
        before, after = list[dict[str, Any]](), list[dict[str, Any]]()
        try:
            with self._booted():
                before = self._rows(wanted)
                problems += [f"after the cut: {each}" for each in self._at_cut(before, wanted)]
                if failed := job.execute(job.words(self.filesystem, self.engine)):
                    problems.append(failed)
                after = self._rows(wanted)
                problems += [f"resumed: {each}" for each in self._resumed(after, wanted)]
        except (OSError, sqlite3.Error, subprocess.SubprocessError) as error:
            problems.append(f"raised {error!r}")
        return {
            "resumed": job.is_under_way(before),
            "seconds": round(time.monotonic() - began, 1),
            "problems": problems,
        }

    def _rows(self, wanted: Wanted) -> list[dict[str, Any]]:
        """Return the journal's rows of all files; a rewritten file keeps its inode."""
        rows = job.rows()
        if self.engine == "rewrite":
            rows = [{**row, "new": wanted.before.numbers[row["path"]]} for row in rows]
        return rows

    def _at_cut(self, rows: Sequence[dict[str, Any]], wanted: Wanted) -> Iterator[str]:
        yield from oracle.at_crash(tree.seen(self.root), rows, wanted)

    def _resumed(self, rows: Sequence[dict[str, Any]], wanted: Wanted) -> Iterator[str]:
        """Yield what is wrong at the end of the job."""
        found = tree.seen(self.root)
        yield from oracle.finished(found, rows, wanted)
        for path in found.files:
            if oracle.is_temporary(path):
                yield f"{path!r} is left"
        if self.filesystem.keeps_holes:
            yield from tree.filled_holes(self.root)


def main() -> None:
    """Run one step."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("step", choices=("prepare", "record", "cuts"))
    parser.add_argument("filesystem", choices=FILESYSTEMS)
    parser.add_argument("engine", choices=("copy", "rewrite"))
    parser.add_argument("points", nargs="*", type=int)
    arguments = parser.parse_args()
    filesystems.load_modules()
    job.load()
    proof = Proof(FILESYSTEMS[arguments.filesystem], arguments.engine)
    if arguments.step == "prepare":
        proof.prepare()
    elif arguments.step == "record":
        job.show(json.dumps(proof.record()))
    else:
        for result in proof.cuts(arguments.points):
            job.show(json.dumps(result))


if __name__ == "__main__":
    main()
