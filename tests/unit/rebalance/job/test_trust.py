"""Journals, records and logs that somebody else wrote, or could have written, are refused."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.unit.cli.test_rebalance import Shell
from zconsole.rebalance.engine.journal import Intent, Journal, State
from zconsole.rebalance.job import control, creation, job_store
from zconsole.rebalance.planning.facts import FactsReader
from zconsole.rebalance.planning.settings import Settings
from zconsole.system.state_dir import COMPANIONS, StateError

pytestmark = pytest.mark.slow

NOBODY = 65534
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs another user")


@pytest.fixture
def area(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A directory that every user may enter."""
    path = Path(tempfile.mkdtemp(prefix="zc-", dir="/tmp"))
    path.chmod(0o755)
    monkeypatch.setenv("ZCONSOLE_STATE", str(path / "state"))
    (path / "tree").mkdir()
    (path / "tree" / "file").write_bytes(b"x")
    (path / "tree" / "precious").write_bytes(b"of root")
    yield path
    shutil.rmtree(path, ignore_errors=True)  # a thread of the job may still write


@pytest.fixture
def shell(area: Path) -> Shell:
    return Shell(area)


@pytest.fixture
def journal(area: Path) -> Path:
    """The journal of a job that died in the middle of its first file, in a separate directory."""
    (area / "jobs").mkdir()
    path = area / "jobs" / "job.db"
    creation.create(Settings((str(area / "tree"),), allow_non_zfs=True), FactsReader(), path)
    return path


def edit(journal: Path, sql: str, *values: Any) -> None:
    with closing(sqlite3.connect(journal)) as db, db:
        db.execute(sql, values)


def die_in(journal: Path, temp: bytes) -> None:
    """Leave the first file as after a death: its copy is begun under a temporary name."""
    with closing(Journal.open(journal)) as opened:
        ((_, row), *_) = opened.todo((-1, -1, -1), 1)
        opened.record((), [Intent(row.number, State.CREATING, temp, row.ino, 0, b"")])


def given_away(path: Path) -> None:
    os.chown(path, NOBODY, NOBODY)


def behind_a_link(path: Path) -> None:
    """Put a journal behind a link of somebody else, who can change it at any time."""
    path.rename(path.with_name("real.db"))
    path.symlink_to("real.db")
    os.chown(path, NOBODY, NOBODY, follow_symlinks=False)


NOT_OURS = "belongs to somebody else (nobody)"
OPEN = "others may write to it. Choose a directory only you can write to"
WAYS: dict[str, tuple[Callable[[Path], object], str]] = {
    "given away": (given_away, NOT_OURS),
    "below a directory of somebody": (lambda path: given_away(path.parent), NOT_OURS),
    "behind a link": (behind_a_link, f"the link job.db {NOT_OURS}"),
    "in a directory of others": (lambda path: path.parent.chmod(0o777), OPEN),
    "in a sticky directory": (lambda path: path.parent.chmod(0o1777), OPEN),
    "writable by others": (lambda path: path.chmod(0o666), "others may write to it"),
    "with another name": (
        lambda path: path.with_name("other").hardlink_to(path), "it has 2 names (hard links)",
    ),
}  # fmt: skip


@as_root
@pytest.mark.parametrize("way", WAYS)
def test_root_refuses_a_journal_that_others_could_have_written(
    area: Path, shell: Shell, journal: Path, way: str
) -> None:
    die_in(journal, b"precious")
    spoil, why = WAYS[way]
    spoil(journal)
    done = shell("run", "--yes", "--journal", journal)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert done.stderr.startswith(f"zconsole: {journal.parent}")
    assert " refused: " in done.stderr
    assert why in done.stderr
    assert (area / "tree/precious").read_bytes() == b"of root"


@as_root
@pytest.mark.parametrize("companion", COMPANIONS)
def test_root_refuses_a_journal_beside_which_somebody_planted_a_log(
    shell: Shell, journal: Path, companion: str
) -> None:
    """SQLite would replay it."""
    planted = journal.with_name(journal.name + companion)
    planted.write_bytes(b"")
    given_away(planted)
    done = shell("run", "--yes", "--journal", journal)
    assert done.returncode == 1
    assert f"{planted} refused: it belongs to somebody else (nobody)" in done.stderr


@pytest.mark.parametrize(
    ("sql", "value"),
    [
        ("UPDATE files SET temp = ? WHERE state = 1", b"precious"),
        ("UPDATE files SET temp = ? WHERE state = 1", b".zc-precious"),
        ("UPDATE files SET temp = ? WHERE state = 1", b"../precious"),
        ("UPDATE files SET temp = ? WHERE state = 1", b".zc-0123456789abcdef-ff"),
        ("UPDATE files SET name = ?", b"../tree/precious"),
        ("UPDATE files SET name = ?", b".."),
        ("UPDATE dirs SET name = ?", b"/tmp/../etc"),
    ],
)
def test_names_of_a_journal_that_no_job_writes_touch_nothing(
    area: Path, shell: Shell, journal: Path, sql: str, value: bytes
) -> None:
    die_in(journal, b".zc-0123456789abcdef-1")
    edit(journal, sql, value)
    done = shell("run", "--yes", "--journal", journal)
    assert done.returncode == 5
    assert "journal is damaged" in done.stderr
    assert (area / "tree/precious").read_bytes() == b"of root"


@pytest.mark.parametrize("name", ["../../../evil", "evil", "ABCDEF", "", "0123456", 7])
def test_a_name_that_no_job_has_becomes_no_path(
    area: Path, shell: Shell, journal: Path, name: object
) -> None:
    shutil.rmtree(area / "state")
    with closing(Journal.open(journal)) as opened:
        opened.set("job", {**opened.get("job"), "name": name})
    done = shell("run", "--yes", "--journal", journal)
    assert done.returncode == 5
    assert "says what this version does not understand" in done.stderr
    assert [path.name for path in area.rglob("*evil*")] == []


@pytest.mark.usefixtures("area")
def test_records_of_names_that_no_job_has_are_no_jobs() -> None:
    record = job_store.add(None)
    for name in ("evil", "0123456", "abcde", "ABCDEF"):
        shutil.copy(record.file, record.file.with_stem(name))
    assert [found.job for found in job_store.records()] == [record.job]


def test_other_directories_than_the_jobs_are_an_error(
    area: Path, shell: Shell, journal: Path
) -> None:
    (area / "other").mkdir()
    done = shell("run", area / "other", "--yes", "--allow-non-zfs", "--journal", journal)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"a job on {area}/tree, not on {area}/other" in done.stderr
    assert shell.status()["files_done"] is None
    (area / "link").symlink_to("tree")
    done = shell("run", area / "link", "--yes", "--allow-non-zfs", "--journal", journal)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "words", [("--engine", "rewrite"), ("--accept-races",), ("--aim", "width"), ("--during-scan",)]
)
def test_options_that_the_job_has_not_are_an_error(
    shell: Shell, journal: Path, words: tuple[str, ...]
) -> None:
    done = shell("run", "--yes", "--journal", journal, *words)
    assert done.returncode == 2
    assert f"a job without {' '.join(words)}" in done.stderr


def test_limits_given_count_over_those_of_the_journal(area: Path, shell: Shell) -> None:
    for number in range(3):
        (area / f"tree/more{number}").write_bytes(b"x" * 100_000)
    path = area / "own.db"
    limits = Settings((str(area / "tree"),), allow_non_zfs=True).limits.changed({"max_bytes": 1})
    settings = Settings((str(area / "tree"),), allow_non_zfs=True, limits=limits)
    creation.create(settings, FactsReader(), path)
    words = ("run", "--yes", "--json", "--journal", path)
    first = json.loads(shell(*words).stdout.splitlines()[-1])["summary"]
    assert (first["stopped_by"], first["files_moved"] < 5) == ("byte limit reached", True), first
    done = shell(*words, "--max-bytes", "1000000")
    last = json.loads(done.stdout.splitlines()[-1])["summary"]
    assert (last["stopped_by"], last["files_moved"]) == ("done", 5)


@pytest.mark.usefixtures("area")
def test_limits_given_count_while_files_are_counted_again(journal: Path) -> None:
    record = job_store.by_journal(journal)
    assert record is not None
    edit(journal, "DELETE FROM meta WHERE key = 'job'")
    control.run_again(record, {"max_bytes": 12345})
    creation.recount(record, FactsReader())
    assert control.status(record).settings.limits.max_bytes == 12345


@as_root
@pytest.mark.parametrize("words", [("status",), ("resume", "--all"), ("run", "--yes")])
def test_root_takes_no_job_from_a_state_directory_of_somebody_else(
    area: Path, shell: Shell, journal: Path, words: tuple[str, ...]
) -> None:
    given_away(area / "state")
    if words[0] == "run":
        words = (*words, "--journal", str(journal))
    done = shell(*words)
    assert done.stdout == ""
    assert "belongs to somebody else (nobody)" in done.stderr


@as_root
def test_a_log_that_is_a_link_is_not_written_through(area: Path, journal: Path) -> None:
    record = job_store.by_journal(journal)
    assert record is not None
    (area / "target").write_bytes(b"of root")
    record.log.symlink_to(area / "target")
    with pytest.raises(StateError, match="symbolic links"):
        control.start(record)
    assert (area / "target").read_bytes() == b"of root"
    assert control.status(record).why is None


AS_NOBODY = """
import ctypes, grp, os, pwd, sys
from zconsole.cli.main import main
at = int(sys.argv[1])
main(sys.argv[2 : 2 + at])  # loads everything: nobody may not read where Python is
os.setgroups([])
os.setgid(65534)
os.setuid(65534)
ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)  # PR_SET_DUMPABLE: /proc/self is ours, as after an exec
os.environ["ZCONSOLE_STATE"] = os.environ["HOME"] + "/.local/state/zconsole"
sys.exit(main(sys.argv[2 + at :]))
"""


@as_root
def test_a_user_resumes_a_job_of_his_own_and_root_does_not(area: Path, journal: Path) -> None:
    home = area / "home"
    (home / "tree").mkdir(parents=True)
    (home / "tree/file").write_bytes(b"x")
    for path in (home, home / "tree", home / "tree/file"):
        given_away(path)
    run = ["rebalance", "run", "--yes", "--json", "--journal"]
    warm = [*run, str(journal)]
    own = [*run, str(home / "job.db")]
    for words, moved in (([*own, "--allow-non-zfs", str(home / "tree")], 1), (own, 1)):
        argv = [sys.executable, "-c", AS_NOBODY, str(len(warm)), *warm, *words]
        done = subprocess.run(
            argv,
            env={**os.environ, "HOME": str(home), "XDG_CONFIG_HOME": str(home / ".config")},
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr
        summary = json.loads(done.stdout.splitlines()[-1])["summary"]
        assert (summary["files_moved"], summary["stopped_by"]) == (moved, "done")
    assert (home / ".local/state/zconsole").stat().st_uid == NOBODY
    refused = Shell(area)(*run[1:], home / "job.db")
    assert (refused.returncode, refused.stdout, refused.stderr.count("\n")) == (1, "", 1)
    assert "belongs to somebody else (nobody). Run this as nobody, or choose" in refused.stderr
