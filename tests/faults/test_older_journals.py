"""A job that an earlier version began, and a death ended, goes on."""

from __future__ import annotations

import os
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest

from tests.faults.harness import ALONE, run
from tests.faults.test_changes import TICK
from zconsole.rebalance.job import job_store
from zconsole.rebalance.job.locks import BusyTreeError, refuse_interrupted
from zconsole.rebalance.planning import plan
from zconsole.rebalance.planning.facts import FactsReader

DUMP = Path(__file__).with_name("journals") / "format1.sql"
TEMP = ".zc-c16cdfc5bbaa8352"


def left(root: Path) -> dict[str, Path]:
    """The tree that the dead job left: each original, and each copy as ``new_…``."""
    (root / "below").mkdir(parents=True)
    paths = {
        "root": root, "below": root / "below", "a": root / "a", "new_a": root / f"{TEMP}-4",
        "b": root / f"{TEMP}-1", "new_b": root / "b2", "c": root / f"{TEMP}-2", "new_c": root / "c",
        "d": root / "below" / f"{TEMP}-5", "new_d": root / "below" / "d",
        "e": root / "below" / "e", "f": root / "below" / "f",
    }  # fmt: skip
    for name, size in {"a": 100, "b": 200, "c": 300, "d": 400, "e": 500, "f": 600}.items():
        for path in (paths[name], paths.get(f"new_{name}")):
            if path is not None:
                path.write_bytes(name.encode() * size)
                os.utime(path, ns=(10**18, 10**18))
    (root / "b").hardlink_to(paths["b"])
    (root / "below" / f"{TEMP}-7").write_bytes(b"begun")
    return paths


def journal_of(root: Path, paths: dict[str, Path], at: Path) -> Path:
    """The journal of the dead job, on this tree."""
    (place,) = plan.places([str(root)], FactsReader())
    values = {"dev": root.stat().st_dev, "path": root, "hex": os.fsencode(root).hex()}
    values |= {"key": place.key} | {name: path.stat().st_ino for name, path in paths.items()}
    sql = DUMP.read_text()
    for name, value in values.items():
        sql = sql.replace(f"@{name}@", str(value))
    with closing(sqlite3.connect(at)) as db:
        db.executescript(sql)
    at.chmod(0o600)
    return at


def test_an_interrupted_job_of_format_1_is_finished(area: Path) -> None:
    root = area / "tree"
    paths = left(root)
    inodes = {name: path.stat().st_ino for name, path in paths.items()}
    journal = journal_of(root, paths, area / "job.db")
    _, summary = run(journal, clocks=ALONE)
    assert (summary["files_moved"], summary["files_failed"], summary["skipped"]) == (7, 0, {})
    names = {
        "a": 100,
        "b": 200,
        "b2": 200,
        "c": 300,
        "below/d": 400,
        "below/e": 500,
        "below/f": 600,
    }
    files = {str(p.relative_to(root)): p.read_bytes() for p in root.rglob("*") if p.is_file()}
    assert files == {name: name[-1].replace("2", "b").encode() * n for name, n in names.items()}
    assert (root / "b").samefile(root / "b2")
    originals = {inodes[name] for name in "abcdef"}
    assert not originals & {(root / name).stat().st_ino for name in names}


def test_no_job_begins_on_what_an_interrupted_one_of_format_1_left(area: Path) -> None:
    root = area / "tree"
    job_store.add(journal_of(root, left(root), area / "job.db"))
    with pytest.raises(BusyTreeError, match="was interrupted"):
        refuse_interrupted([os.fsencode(root)])


def test_a_change_of_an_original_outlives_a_death_that_format_1_met(area: Path) -> None:
    """Its journal knows only the content; the original was changed last."""
    root = area / "tree"
    paths = left(root)
    time.sleep(TICK)
    paths["c"].chmod(0o640)
    run(journal_of(root, paths, area / "job.db"), clocks=ALONE)
    assert (root / "c").stat().st_mode & 0o777 == 0o640


def test_a_change_of_a_copy_outlives_a_death_that_format_1_met(area: Path) -> None:
    """Its original has the name; the copy was changed last."""
    root = area / "tree"
    paths = left(root)
    time.sleep(TICK)
    paths["new_a"].chmod(0o640)
    run(journal_of(root, paths, area / "job.db"), clocks=ALONE)
    assert paths["new_a"].stat().st_mode & 0o777 == 0o640
