"""Two jobs on one tree that cannot see each other: of two users, or of two state directories."""

from __future__ import annotations

import json
import os
import random
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, cast

import pytest

from tests.faults import trees
from tests.faults.harness import ALL
from zconsole.rebalance.engine.journal import UNSETTLED

BOTH = "both in use; the other version is "
"""Reported if one process uses the version in place, and another the version to be removed."""
SMALL, LARGE = (400, 12) if ALL else (200, 6)
ROUNDS = 3 if ALL else 1


def populated(root: Path) -> None:
    """Create every awkward kind of file, and enough plain ones to keep two jobs busy."""
    trees.build(root)
    many = root / "many"
    many.mkdir()
    for number in range(SMALL):
        (many / f"f{number}").write_bytes(os.urandom(1 + number * 50))
    for number in range(LARGE):
        (many / f"large{number}").write_bytes(os.urandom(2_000_000))


def content(root: Path) -> dict[str, tuple[Any, ...]]:
    """Return the manifest without the times of directories.

    Each job takes the other's changes to them for changes that must be kept.
    """
    found = trees.manifest(root)
    return {path: row for path, row in found.items() if not stat.S_ISDIR(row[0])}


def begun(area: Path, number: int, journal: str) -> subprocess.Popen[str]:
    argv = [sys.executable, "-m", "zconsole", "rebalance", "run", "--yes", "--json"]
    argv += ["--allow-non-zfs", str(area / "tree"), "--journal", str(area / journal)]
    environment = {**os.environ, "ZCONSOLE_STATE": str(area / f"state{number}")}
    return subprocess.Popen(
        argv, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def ended(
    area: Path, number: int, journal: str, job: subprocess.Popen[str] | None = None
) -> dict[str, Any]:
    """Return the summary of a job that is resumed as long as a reason asks for it.

    Another job may have just leased a file, or opened it to look.
    """
    for _ in range(10):
        with job or begun(area, number, journal) as running:
            out, err = running.communicate(timeout=120)
        records = [json.loads(line) for line in out.splitlines()]
        doubled = [each for each in records if BOTH in (each.get("reason") or "")]
        for each in doubled:
            without_other_version(each)
        if running.returncode == 0:
            return cast("dict[str, Any]", records[-1]["summary"])
        assert doubled or UNSETTLED in out, err + out
        job = None
    raise AssertionError(out)


def without_other_version(record: dict[str, Any]) -> None:
    """Do what the report asks of the operator: of two equal versions, remove the one it names."""
    path = Path(record["path"])
    other = path.with_name(record["reason"].partition(BOTH)[2].partition(";")[0])
    assert other.read_bytes() == path.read_bytes()
    other.unlink()


def test_they_lose_nothing(area: Path) -> None:
    root = area / "tree"
    populated(root)
    before = content(root)
    for turn in range(ROUNDS):
        names = [f"job{number}-{turn}.db" for number in range(3)]
        running = [begun(area, number, name) for number, name in enumerate(names)]
        found = [ended(area, n, names[n], job) for n, job in enumerate(running)]
        assert content(root) == before, found
    # If each had always found the other's descriptors, neither would have moved anything.
    files = [path for path, row in before.items() if stat.S_ISREG(row[0])]
    assert ended(area, 3, "alone.db")["files_moved"] == len(files)
    assert content(root) == before


@pytest.mark.parametrize("seed", range(ROUNDS))
def test_they_lose_nothing_when_one_is_killed_and_resumed(area: Path, seed: int) -> None:
    root, chance = area / "tree", random.Random(seed)
    populated(root)
    before = content(root)
    with begun(area, 1, "other.db") as other:
        with begun(area, 0, "doomed.db") as doomed:
            while not (area / "doomed.db").exists():
                time.sleep(0.005)
            time.sleep(chance.random() * 1.2)
            doomed.kill()
            doomed.communicate()
        ended(area, 0, "doomed.db")
        ended(area, 1, "other.db", other)
    assert content(root) == before
