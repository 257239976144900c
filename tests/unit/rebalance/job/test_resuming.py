"""A job that the version of November 2026 was interrupted in goes on."""

from __future__ import annotations

import json
import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.table import rows
from tests.unit.cli.test_rebalance import Shell
from zconsole.rebalance.job.resuming import how_it_differs, is_same_filesystem
from zconsole.rebalance.planning.facts import mount_of
from zconsole.system.mounts import mount_at

pytestmark = pytest.mark.slow

JOB = "112651"
SCHEMA = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID;
CREATE TABLE dirs (id INTEGER PRIMARY KEY, parent INTEGER, name BLOB NOT NULL,
    dev INTEGER NOT NULL, ino INTEGER NOT NULL, mtime INTEGER, intent REAL);
CREATE TABLE files (id INTEGER PRIMARY KEY, dir INTEGER NOT NULL, name BLOB NOT NULL,
    ino INTEGER NOT NULL, size INTEGER NOT NULL, nlink INTEGER NOT NULL, rank INTEGER NOT NULL,
    state INTEGER NOT NULL, reason TEXT, temp BLOB, old INTEGER, new INTEGER, digest BLOB,
    offset INTEGER NOT NULL DEFAULT 0);
CREATE INDEX dirs_open ON dirs (id) WHERE intent IS NOT NULL;
CREATE TABLE days (day TEXT PRIMARY KEY, line TEXT) WITHOUT ROWID;
CREATE INDEX files_order ON files (rank, dir, id);
CREATE INDEX files_links ON files (ino) WHERE nlink > 1;
CREATE INDEX files_open ON files (state) WHERE state IN (1, 2);
"""
CHANGED = {"rate": 9000000, "min_free": 0.0}
TEMP = ".zc-f6ec9567fd671c89-1"
DIGEST = bytes.fromhex("b9adae49af02dec6547077986b2d8ff0fd3677a02d76988b77bd2258405f35fa")
"""What that version notes of a file that holds ``one``."""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Two files; of the first the copy has the name, and the original is yet to be removed."""
    root = tmp_path / "tree"
    root.mkdir()
    for name in ("first", TEMP):
        (root / name).write_bytes(b"one")
        os.utime(root / name, ns=(1, 1))
    (root / "second").write_bytes(b"other")
    return root


@pytest.fixture
def shell(tmp_path: Path, tree: Path) -> Shell:
    """With the state directory as it was left: a record, a log that all may read, a journal."""
    where = tmp_path / "state/rebalance"
    where.mkdir(parents=True)
    for path in (where.parent, where):
        path.chmod(0o700)
    journal = where / f"{JOB}.db"
    (where / f"{JOB}.json").write_text(json.dumps({"journal": str(journal)}))
    (where / f"{JOB}.log").write_text(f"job {JOB}\n")
    with closing(sqlite3.connect(journal)) as db, db:
        db.execute("PRAGMA journal_mode = WAL")
        db.executescript(SCHEMA)
        db.executemany("INSERT INTO meta VALUES (?, ?)", meta(tree).items())
        status = tree.stat()
        row = (1, None, os.fsencode(tree), status.st_dev, status.st_ino, None, None)
        db.execute("INSERT INTO dirs VALUES (?, ?, ?, ?, ?, ?, ?)", row)
        old, new = (tree / TEMP).stat().st_ino, (tree / "first").stat().st_ino
        files = [
            (1, 1, b"first", old, 3, 1, 42, 2, None, TEMP.encode(), old, new, DIGEST, 0),
            (2, 1, b"second", (tree / "second").stat().st_ino, 5, 1, 42, 0, *[None] * 5, 0),
        ]
        db.executemany(f"INSERT INTO files VALUES ({', '.join('?' * 14)})", files)
    for path in where.iterdir():
        path.chmod(0o644 if path.suffix == ".log" else 0o600)
    return Shell(tmp_path)


def meta(tree: Path) -> dict[str, str]:
    root = str(tree)
    mount = mount_of(mount_at(os.fsencode(tree)))
    assert mount is not None
    limits = dict.fromkeys(("max_latency", "window", "max_bytes", "until_spread", "min_free"))
    settings = {
        "dirs": [root],
        "engine": "auto",
        "aim": "balance",
        "accept_races": False,
        "allow_non_zfs": True,
        "during_scan": False,
        "limits": {"rate": 8000000, **limits},
    }
    values = {
        "format": 1,
        "walking": {"settings": settings, "agreed": True},
        "keys": {root: f"{mount.kind}:{mount.source}:"},
        "walk_skipped": {},
        "control": {"order": "pause", "limits": CHANGED},
        "status": {"state": "running", "why": None, "pid": 32640, "t": 1795433709.0},
        "job": {
            "name": JOB,
            "settings": settings,
            "engines": {root: "copy"},
            "spaces": [],
            "raw_factor": 1.0,
            "floors": {root: [0, 25276514304]},
            "rooms": {root: 25173741568},
            "bytes_to_target": None,
            "created": 1795433700.3522604,
        },
    }
    return {key: json.dumps(value) for key, value in values.items()}


@pytest.mark.slow
@pytest.mark.parametrize("by", ["name", "journal", "all"])
def test_it_is_resumed_and_what_was_left_is_settled(tree: Path, shell: Shell, by: str) -> None:
    assert shell.status(JOB)["state"] == "dead"
    if by == "journal":
        done = shell("run", "--yes", "--journal", shell.status(JOB)["journal"])
    else:
        done = shell("resume", JOB if by == "name" else "--all")
    assert done.returncode == 0, done.stderr
    ended = shell.wait(lambda status: status["state"] == "finished")
    assert (ended["files_done"], ended["failed"]) == (2, {})
    with closing(sqlite3.connect(ended["journal"])) as db:
        (control,) = db.execute("SELECT value FROM meta WHERE key = 'control'").fetchone()
    assert json.loads(control) == {"order": "run", "limits": CHANGED}
    found = {path.name: path.read_bytes() for path in tree.iterdir()}
    assert found == {"first": b"one", "second": b"other"}


@pytest.mark.parametrize(
    ("key", "told"),
    [
        ("ext4:/dev/sdx1:", "/dev/sdx1 (ext4)"),
        ("zfs:tank/data:366", "tank/data (zfs)"),
        ("nfs4:host:/data:", "host:/data (nfs4)"),
        ("", "an unknown one"),
    ],
)
@pytest.mark.parametrize("by", ["name", "journal"])
def test_another_filesystem_is_refused_in_words(
    tree: Path, shell: Shell, key: str, told: str, by: str
) -> None:
    journal = Path(shell.status(JOB)["journal"])
    with closing(sqlite3.connect(journal)) as db, db:
        keys = json.dumps({str(tree): key})
        db.execute("UPDATE meta SET value = ? WHERE key = 'keys'", (keys,))
    words = ("resume", JOB) if by == "name" else ("run", "--yes", "--journal", str(journal))
    done = shell(*words)
    assert done.returncode == 1
    mount = mount_of(mount_at(os.fsencode(tree)))
    assert mount is not None
    now = f"{tree} is on another filesystem now: {mount.source} ({mount.kind}), not {told}. "
    after = f"To give up what the job left, delete {journal}; to go on, put back what was there"
    assert done.stderr.endswith(f"{now}{after}\n")
    assert "resume" not in done.stderr
    assert shell.status(JOB)["why"] == f"{now}{after}; resume it"


BY_HAND = ("run", "--yes", "--journal")


@pytest.mark.parametrize("words", [("resume", JOB), BY_HAND])
def test_another_directory_is_refused_in_words(
    tree: Path, shell: Shell, words: tuple[str, ...]
) -> None:
    tree.rename(tree.with_name("renamed"))
    tree.mkdir()
    done = shell(*words, *([shell.status(JOB)["journal"]] if words is BY_HAND else []))
    assert done.returncode == 1
    refused = f"{tree} is another directory than the one that was walked. To give up"
    assert refused in done.stderr
    assert shell.status(JOB)["why"].startswith(refused)


@pytest.mark.parametrize("counting", [False, True])
def test_a_refusal_by_hand_is_why_the_job_is_dead(tree: Path, shell: Shell, counting: bool) -> None:
    """Whether it had its plan, or was still counting its files."""
    journal = shell.status(JOB)["journal"]
    if counting:
        with closing(sqlite3.connect(journal)) as db, db:
            db.execute("DELETE FROM meta WHERE key IN ('job', 'status')")
    tree.rename(tree.with_name("elsewhere"))
    done = shell(*BY_HAND, journal)
    assert done.returncode == 3
    refused = done.stderr.splitlines()[-1].removeprefix("zconsole: ")
    assert str(tree) in refused
    assert shell.status(JOB)["why"] == f"{refused}; resume it"


def test_options_that_are_not_the_jobs_are_no_word_about_it(tree: Path, shell: Shell) -> None:
    done = shell(*BY_HAND, shell.status(JOB)["journal"], "--aim", "age", str(tree))
    assert done.returncode == 2
    assert shell.status(JOB)["why"] == "its process is gone; resume it"


def test_a_filesystem_made_anew_is_told_from_the_one_of_its_name() -> None:
    assert how_it_differs("zfs:tank/data:17", "zfs:tank/data:18") == (
        "is on another filesystem now: tank/data (zfs), made anew"
    )


@rows(
    ("before", "now", "same"),
    [
        ("zfs:tank/data:17", "zfs:tank/data:17", True),
        ("zfs:tank/data:17", "zfs:tank/renamed:17", True),
        ("zfs:tank/data:17", "zfs:tank/data:18", False),
        ("zfs:tank/data:", "zfs:tank/other:", False),
        ("ext4:/dev/sda1:", "ext4:/dev/sda1:", True),
        ("ext4:/dev/sda1:", "ext4:/dev/sdb1:", False),
        ("", "zfs:tank/data:17", False),
    ],
)
def test_a_renamed_dataset_is_the_same(before: str, now: str, same: bool) -> None:
    assert is_same_filesystem(before, now) is same
