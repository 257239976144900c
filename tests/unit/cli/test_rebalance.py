"""The parts of the command line that scripts rely on."""

from __future__ import annotations

import io
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest

from tests.unit.waiting import soon
from zconsole.cli import rebalance as cli
from zconsole.cli.main import main
from zconsole.cli.options import parser_of
from zconsole.rebalance.engine.syscalls import Sys
from zconsole.rebalance.job import control, job_store
from zconsole.rebalance.job.locks import TreeLocks
from zconsole.system import patient
from zconsole.system.patient import in_time
from zconsole.system.safe_path import StateError

pytestmark = pytest.mark.slow

PATIENCE = 120.0
"""Seconds after which something counts as hanging, however busy the machine is."""


class Shell:
    """Runs `zconsole rebalance` in this process, with a state directory of its own."""

    def __init__(self, area: Path) -> None:
        self.area = area
        self.environment = {**os.environ, "ZCONSOLE_STATE": str(area / "state")}

    def __call__(self, *words: object) -> subprocess.CompletedProcess[str]:
        argv, out, err = ["rebalance", *map(str, words)], io.StringIO(), io.StringIO()
        with self.state(), redirect_stdout(out), redirect_stderr(err):
            try:
                code = main(argv)
            except SystemExit as ended:  # raised by --help
                code = int(ended.code or 0)
        return subprocess.CompletedProcess(argv, code, out.getvalue(), err.getvalue())

    def apart(self, *words: object) -> subprocess.CompletedProcess[str]:
        """Run it as a process, which finishes writing the audit log when it ends."""
        return subprocess.run(
            [sys.executable, "-m", "zconsole", "rebalance", *map(str, words)],
            capture_output=True, text=True, env=self.environment, timeout=PATIENCE, check=False,
        )  # fmt: skip

    @contextmanager
    def state(self) -> Iterator[None]:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("ZCONSOLE_STATE", self.environment["ZCONSOLE_STATE"])
            yield

    def status(self, *job: str) -> dict[str, Any]:
        return json.loads(self("status", *job, "--json").stdout.splitlines()[-1])

    def statuses(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self("status", "--json").stdout.splitlines()]

    def wait(self, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """Return the state of the last job once ``wanted`` accepts it."""
        seen: list[Any] = []

        def _reached() -> bool:
            seen.append(control.list_jobs([], 100)[-1])
            return wanted(seen[-1].as_json())

        with self.state():
            assert soon(_reached, PATIENCE), seen
            return {**seen[-1].as_json(), **seen[-1].left_as_json()}


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "tree"
    root.mkdir()
    for number in range(4):
        (root / f"f{number}").write_bytes(bytes([number]) * 3_000_000)
    return root


WRITTEN_TO = """
import argparse, os, signal
from zconsole.cli import rebalance
rebalance._plan = lambda _: os.kill(os.getpid(), signal.SIGIO)
rebalance.run(argparse.Namespace(action="plan"))
"""


def test_a_writer_to_a_file_that_is_tried_does_not_end_a_plan() -> None:
    assert subprocess.run([sys.executable, "-c", WRITTEN_TO], check=False).returncode == 0


def test_a_plan_changes_nothing_and_says_everything(shell: Shell, tree: Path) -> None:
    before = {p.name: p.stat() for p in tree.iterdir()}
    done = shell("plan", tree, "--allow-non-zfs", "--json")
    plan = json.loads(done.stdout)
    assert done.returncode == 0
    assert (plan["files"], plan["bytes"], plan["engine"]) == (4, 12_000_000, "copy")
    assert plan["refused"] is None
    assert plan["spread_before"] is None
    assert set(plan["pinned_bytes"].values()) == {None}
    assert {p.name: p.stat() for p in tree.iterdir()} == before


def test_a_plan_tells_of_the_job_that_a_run_would_be_refused_for(shell: Shell, tree: Path) -> None:
    (tree / "below").mkdir()
    why = f"another job works in {tree}/below, which overlaps {tree}. Wait for its end"
    words = (tree, "--allow-non-zfs")
    with shell.state(), closing(TreeLocks(Sys(), [os.fsencode(tree / "below")])):
        planned, told = shell("plan", *words), json.loads(shell("plan", *words, "--json").stdout)
        refused = shell("run", *words, "--yes")
    assert (planned.returncode, refused.returncode) == (0, 1)
    assert f"note: {why}" in planned.stdout
    assert (told["files"], told["refused"]) == (4, None)
    assert any(note.startswith(why) for note in told["notes"])
    assert why in refused.stderr
    assert why not in shell("plan", *words).stdout


def test_a_refusal_has_its_reason(shell: Shell, tree: Path) -> None:
    done = shell("plan", tree, "--json")
    assert done.returncode == 1
    assert "--allow-non-zfs" in json.loads(done.stdout)["refused"]
    done = shell("run", tree, "--yes")
    assert done.returncode == 1
    assert "refused" in done.stderr
    assert shell("run", tree, "--allow-non-zfs").returncode == 2, "questions need a terminal"
    assert shell("status").stdout == ""


class Typed(io.StringIO):
    """Standard input with lines typed at a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("answer", "moves"),
    [("y\n", True), ("Yes\n", True), ("", False), ("sure\n", False)],
)
def test_nothing_is_moved_without_a_yes(
    shell: Shell, tree: Path, monkeypatch: pytest.MonkeyPatch, answer: str, moves: bool
) -> None:
    before = {each.name: each.stat().st_ino for each in tree.iterdir()}
    monkeypatch.setattr("sys.stdin", Typed(answer))
    done = shell("run", tree, "--allow-non-zfs")
    assert "Move these files? [y/N]" in done.stderr
    after = {each.name: each.stat().st_ino for each in tree.iterdir()}
    assert (done.returncode, after == before) == (1 - moves, not moves)


def test_a_run_prints_its_job_first_and_a_line_a_file(shell: Shell, tree: Path) -> None:
    done = shell("run", tree, "--allow-non-zfs", "--yes", "--json")
    assert done.returncode == 0, done.stderr
    job = done.stderr.splitlines()[0].removeprefix("job ")
    *files, last = map(json.loads, done.stdout.splitlines())
    assert {Path(f["path"]).name for f in files} == {"f0", "f1", "f2", "f3"}
    assert all((f["engine"], f["outcome"], f["reason"]) == ("copy", "moved", None) for f in files)
    summary = last["summary"]
    assert (summary["job"], summary["files_moved"], summary["stopped_by"]) == (job, 4, "done")
    assert shell.status(job)["state"] == "finished"


def test_pause_resume_and_stop_take_effect_at_once(shell: Shell, tree: Path) -> None:
    journal = shell.area / "job.db"
    shell("run", tree, "--allow-non-zfs", "--yes", "--detach", "--limit-rate", "200000",
          "--journal", journal)  # fmt: skip
    job = shell.wait(lambda s: s["state"] == "running")["job"]
    assert shell("pause", job).returncode == 0
    shell.wait(lambda s: s["state"] == "paused")
    assert shell("run", "--yes", "--journal", journal).returncode == 1
    assert shell("resume", job).returncode == 0
    shell.wait(lambda s: s["state"] == "running")
    assert shell("stop", job).returncode == 0
    stopped = shell.wait(lambda s: s["state"] == "stopped")
    assert stopped["why"] == "stop"
    assert not any(p.name.startswith(".zc-") for p in tree.iterdir())
    assert shell("pause", job).returncode == 1
    assert shell("resume", job, "--limit-rate", "1G").returncode == 0
    shell.wait(lambda s: s["state"] == "finished")
    assert shell("run", "--yes", "--json", "--journal", journal).returncode == 0


@pytest.mark.parametrize(
    "words",
    [
        *(["status"], ["resume", "--all"], ["run", "--yes", "--allow-non-zfs", "."]),
        *([order, "abcdef"] for order in ("pause", "stop", "status", "resume")),
    ],
)
def test_a_state_directory_that_does_not_answer_is_said(
    words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = threading.Event()
    place = patient.state_dir

    def made(create: bool) -> object:
        return answers.wait(60) if create else place(create)  # its name is told without the disk

    monkeypatch.setattr(job_store, "find", lambda job: answers.wait(60))
    monkeypatch.setattr(job_store, "records", lambda: answers.wait(60))
    monkeypatch.setattr(patient, "state_dir", made)
    monkeypatch.setattr(cli, "ANSWER", 0.1)
    monkeypatch.setattr(in_time, "__defaults__", (0.1,))
    try:
        with pytest.raises(StateError, match=r"state directory .*: no answer in"):
            cli.run(parser_of("rebalance").parse_args(words))
    finally:
        answers.set()


def test_accepted_races_are_recorded_in_the_journal(shell: Shell, tree: Path) -> None:
    shell("run", tree, "--allow-non-zfs", "--yes", "--accept-races")
    status = shell.status()
    assert status["accept_races"] is True
    with closing(sqlite3.connect(status["journal"])) as db:
        (job,) = db.execute("SELECT value FROM meta WHERE key = 'job'").fetchone()
    assert json.loads(job)["settings"]["accept_races"] is True
    assert "lost writes were accepted" in shell("status", status["job"]).stdout


def test_a_journal_resumes(shell: Shell, tree: Path) -> None:
    journal = shell.area / "job.db"
    words = ("run", tree, "--allow-non-zfs", "--yes", "--json", "--journal", journal)
    first = shell(*words)
    again = shell(*words)
    assert first.returncode == again.returncode == 0
    assert len(first.stdout.splitlines()) == 5
    assert len(again.stdout.splitlines()) == 1
    assert json.loads(again.stdout)["summary"]["files_moved"] == 4


def test_the_status_tells_what_was_left_out_and_why(shell: Shell, tree: Path) -> None:
    (tree / "link").symlink_to("f0")
    outside = shell.area / "outside"
    outside.hardlink_to(tree / "f1")
    with (tree / "f2").open("ab"):
        shell("run", tree, "--allow-non-zfs", "--yes")
    status = shell.status()
    reasons = {"symbolic link": 1, "hard links outside the set": 1, "open for writing": 1}
    assert status["skipped"] == reasons
    assert status["failed"] == {}
    assert status["vdevs"] is None
    assert {file["path"]: (file["outcome"], file["reason"]) for file in status["left_out"]} == {
        f"{tree}/f1": ("skipped", "hard links outside the set"),
        f"{tree}/f2": ("skipped", "open for writing"),
    }
    said = shell("status", status["job"]).stdout
    assert "  4 of 4 files" in said
    assert "  skipped: 1 (open for writing)" in said
    assert f"{tree}/f2: open for writing" in said


def test_a_journal_that_is_none(shell: Shell, tree: Path) -> None:
    (shell.area / "junk").write_text("junk, and more of it than a header would need\n" * 40)
    done = shell("run", tree, "--yes", "--journal", shell.area / "junk")
    assert done.returncode == 5


@pytest.mark.parametrize("full", [False, True])
def test_a_job_goes_on_when_nobody_takes_what_it_prints(
    shell: Shell, tree: Path, full: bool
) -> None:
    argv = [sys.executable, "-m", "zconsole", "rebalance", "run", tree, "--allow-non-zfs", "--yes"]
    reader, writer = os.pipe()
    os.close(reader)
    with Path("/dev/full").open("w") as nowhere, os.fdopen(writer, "w") as unread:
        done = subprocess.run(
            [*argv, "--json"],
            stdout=nowhere if full else unread,
            stderr=subprocess.PIPE,
            text=True,
            env=shell.environment,
            timeout=60,
            check=False,
        )
    assert done.returncode == 0
    reason = "No space left on device" if full else "closed"
    assert done.stderr.splitlines()[-1] == f"zconsole: stdout: {reason}; the job goes on"
    status = shell.status()
    assert (status["state"], status["files_done"]) == ("finished", 4)


@pytest.mark.parametrize("way", [(), ("--detach",)])
def test_a_job_goes_on_when_only_its_name_is_read(
    shell: Shell, tree: Path, way: tuple[str, ...]
) -> None:
    """For example in a script: ``job=$(zconsole rebalance run … --detach 2>&1 | head -n 1)``."""
    argv = [sys.executable, "-m", "zconsole", "rebalance", "run", tree, "--allow-non-zfs", "--yes"]
    with subprocess.Popen(
        [*argv, *way], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=shell.environment
    ) as running:
        assert running.stderr is not None
        assert os.read(running.stderr.fileno(), 4).startswith(b"job")
        running.stderr.close()
    assert running.returncode == 0
    assert shell.wait(lambda status: status["state"] == "finished")["files_done"] == 4


def test_a_journal_of_which_a_page_is_damaged(shell: Shell, tree: Path) -> None:
    first, second = shell.area / "first.db", shell.area / "second.db"
    words = ("run", tree, "--allow-non-zfs", "--yes", "--json", "--journal")
    assert shell(*words, second).returncode == 0
    other = shell.status()["job"]
    assert shell(*words, first).returncode == 0
    job = next(s["job"] for s in shell.statuses() if s["job"] != other)
    damage(first)
    for done in (shell(*words, first), shell("status", job), shell("status", job, "--json")):
        assert done.returncode == 5
        assert done.stderr.splitlines()[-1].startswith("zconsole: the job's journal is damaged: ")
        assert "Traceback" not in done.stderr
    assert [status["job"] for status in shell.statuses()] == [other]


UNKNOWN = "says what this version does not understand"


def test_a_journal_whose_values_are_damaged_or_of_another_version(shell: Shell, tree: Path) -> None:
    journal, whole = shell.area / "first.db", shell.area / "whole.db"
    words = ("run", tree, "--allow-non-zfs", "--yes", "--json", "--journal")
    assert shell(*words, journal).returncode == 0
    job = shell.status()["job"]
    shutil.copy(journal, whole)
    for key, value, why in (
        ("status", "{", "the job's journal is damaged: the value of status"),
        ("status", '"x"', UNKNOWN),
        ("job", "3", UNKNOWN),
        ("job", '{"name": "x", "settings": {"dirs": ["/a"], "newer": 1}, "engines": {}}', UNKNOWN),
        ("walking", "[1]", UNKNOWN),
    ):
        shutil.copy(whole, journal)
        with closing(sqlite3.connect(journal)) as db, db:
            db.execute("UPDATE meta SET value = ? WHERE key = ?", (value, key))
        for word in ("status", "resume"):
            done = shell(word, job)
            assert (done.returncode, done.stderr.count("\n")) == (5, 1), (key, value)
            assert why in done.stderr, (key, value)
        assert shell.statuses() == [], (key, value)


def damage(journal: Path) -> None:
    """Overwrite every page of the table of files, and nothing else."""
    with closing(sqlite3.connect(journal)) as db:
        size = db.execute("PRAGMA page_size").fetchone()[0]
        (root,) = db.execute("SELECT rootpage FROM sqlite_master WHERE name = 'files'").fetchone()
    with journal.open("r+b") as file:
        file.seek((root - 1) * size)
        file.write(b"\xff" * size)


def test_no_job_is_forgotten_whose_journal_is_not_there_now(shell: Shell, tree: Path) -> None:
    """After a reboot, the filesystem of a journal may not be mounted yet."""
    journal = shell.area / "job.db"
    assert shell("run", tree, "--allow-non-zfs", "--yes", "--journal", journal).returncode == 0
    job = shell.status()["job"]
    journal.rename(shell.area / "away.db")
    for words, code in ((("status",), 0), (("status", "--json"), 0), (("resume", "--all"), 3)):
        done = shell(*words)
        assert (done.returncode, done.stdout) == (code, "")
        assert done.stderr.startswith(f"zconsole: job {job}: no journal {journal}; to forget")
    next((shell.area / "state/rebalance").glob("*.json")).unlink()
    assert shell("resume", "--all").stderr == ""


def test_a_job_whose_journal_was_deleted_here_is_given_up(shell: Shell, tree: Path) -> None:
    assert shell("run", tree, "--allow-non-zfs", "--yes").returncode == 0
    Path(shell.status()["journal"]).unlink()
    done = shell("resume", "--all")
    assert (done.returncode, done.stderr) == (0, "")
