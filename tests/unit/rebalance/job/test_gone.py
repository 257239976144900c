"""Directories of a job that vanish while it runs."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.faults.harness import ALONE, FaultySys, create, run, tree_of
from tests.unit.cli.test_rebalance import PATIENCE, Shell

pytestmark = pytest.mark.slow

SIZE = 200_000


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    for root in ("r1", "r2"):
        (tmp_path / root).mkdir()
        for number in range(3):
            (tmp_path / root / f"f{number}").write_bytes(bytes([number]) * SIZE)
    return Shell(tmp_path)


def job(shell: Shell, *roots: str) -> Iterator[subprocess.Popen[str]]:
    """Run a job up to the middle of its first file, then let it continue."""
    argv = [sys.executable, "-m", "zconsole", "rebalance", "run", "--allow-non-zfs", "--yes"]
    paths = [str(shell.area / root) for root in roots]
    with subprocess.Popen(
        [*argv, "--json", "--limit-rate", "20000", *paths],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=shell.environment,
    ) as process:
        assert process.stderr is not None
        assert process.stderr.readline().startswith("job ")
        shell.wait(lambda status: status["state"] == "running" and status["bytes_done"] is not None)
        yield process


def ended(shell: Shell, gone: str, *roots: str) -> tuple[int, dict[str, Any], str]:
    """Return exit code, summary and messages of a job one of whose directories is moved away."""
    for process in job(shell, *roots):
        (shell.area / gone).rename(shell.area / "elsewhere")
        if len(roots) > 1:  # nothing delays it any more
            assert shell("resume", shell.status()["job"], "--limit-rate", "1G").returncode == 0
        out, err = process.communicate(timeout=PATIENCE)
    return process.returncode, json.loads(out.splitlines()[-1])["summary"], err.splitlines()[-1]


def test_the_only_one(shell: Shell) -> None:
    code, summary, said = ended(shell, "r1", "r1")
    assert (code, summary["stopped_by"]) == (3, "its directories are gone")
    assert said == f"zconsole: {shell.area}/r1: gone during the run"
    assert shell.status()["state"] == "stopped"
    (shell.area / "elsewhere").rename(shell.area / "r1")
    assert shell("resume", summary["job"], "--limit-rate", "1G").returncode == 0
    moved = shell.wait(lambda status: status["state"] == "finished")
    assert moved["files_done"] == 3


def test_the_only_one_before_its_first_file_is_opened(tmp_path: Path) -> None:
    root = tree_of(tmp_path, 2, 100)
    create(root, tmp_path / "job.db")

    def leave(_: int, name: str) -> None:
        if name == "ioctl" and root.exists():  # the call on the directory: it has been found
            root.rename(tmp_path / "elsewhere")

    _, summary = run(tmp_path / "job.db", FaultySys(leave), ALONE)
    assert summary["stopped_by"] == "its directories are gone"


@pytest.mark.parametrize("gone", ["r1", "r2"])
def test_the_files_of_another_are_moved(shell: Shell, gone: str) -> None:
    code, summary, said = ended(shell, gone, "r1", "r2")
    assert (code, summary["stopped_by"]) == (3, "done")
    assert said == f"zconsole: {shell.area}/{gone}: gone during the run"
    assert summary["files_moved"] >= 3
    assert summary["files_failed"] == 0
    for root in ("elsewhere", "r1" if gone == "r2" else "r2"):
        names = sorted(path.name for path in (shell.area / root).iterdir())
        assert names == ["f0", "f1", "f2"]
