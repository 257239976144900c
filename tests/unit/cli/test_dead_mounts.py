"""Mounts of dead servers, in a tree or as the tree, never block anything uninterruptibly."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.waiting import soon

pytestmark = pytest.mark.slow

PATIENCE = 120.0
INIT = struct.pack("=IIIIHHIIHH", 7, 31, 0, 0, 0, 0, 4096, 1, 0, 0) + bytes(32)
_libc = ctypes.CDLL(None, use_errno=True)


@contextlib.contextmanager
def dead(point: Path) -> Iterator[None]:
    """Mount a FUSE filesystem, as sshfs does, whose server answers nothing afterwards."""
    try:
        server = os.open("/dev/fuse", os.O_RDWR)
    except OSError as error:
        pytest.skip(f"/dev/fuse: {error.strerror}")
    kind = 0o100000 if point.is_file() else 0o040000
    options = f"fd={server},rootmode={kind:o},user_id=0,group_id=0,allow_other".encode()
    try:
        if _libc.mount(b"x", bytes(point), b"fuse.sshfs", 6, options):
            pytest.skip("mounting is not permitted")
        number = struct.unpack("=IIQ", os.read(server, 1 << 17)[:16])[2]
        os.write(server, struct.pack("=IiQ", 16 + len(INIT), 0, number) + INIT)
        yield
    finally:
        _libc.umount2(bytes(point), 2)
        os.close(server)


@pytest.fixture
def tree(tmp_path: Path) -> Iterator[Path]:
    """A file, and a directory and another file on which dead servers are mounted."""
    tree = tmp_path / "tree"
    (tree / "a/there").mkdir(parents=True)
    (tree / "own").write_bytes(b"x" * 5000)
    (tree / "file").touch()
    with dead(tree / "a/there"), dead(tree / "file"):
        yield tree


IMPATIENT = """
import sys
from zconsole.cli import main, rebalance
rebalance.PLAN_EXITS_AFTER = rebalance.EXITS_AFTER = 0.5
sys.exit(main.main(sys.argv[1:]))
"""
"""Runs the program, which then exits half a second after a signal if a system call hangs."""


def rebalance(state: Path, *words: object) -> subprocess.Popen[str]:
    argv = [sys.executable, "-c", IMPATIENT, "rebalance", *map(str, words)]
    environment = {**os.environ, "ZCONSOLE_STATE": str(state)}
    return subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, env=environment)


def test_a_dead_mount_below_a_tree_is_passed_by(tree: Path, tmp_path: Path) -> None:
    options = ("--engine", "copy", "--allow-non-zfs", "--json")
    process = rebalance(tmp_path / "state", "plan", tree, *options)
    plan = json.loads(process.communicate(timeout=PATIENCE)[0])
    assert plan["directories"][0]["files"] == 1
    assert plan["directories"][0]["skipped"] == {"other dataset": 2}
    process = rebalance(tmp_path / "state", "run", tree, *options, "--yes")
    *_, last = process.communicate(timeout=PATIENCE)[0].splitlines()
    assert json.loads(last)["summary"]["files_failed"] == 0
    assert process.returncode == 0


@pytest.mark.parametrize("words", [("plan",), ("run", "--yes")])
def test_what_is_stuck_on_a_dead_mount_can_be_interrupted(
    tmp_path: Path, words: tuple[str, ...]
) -> None:
    point = tmp_path / "there"
    point.mkdir()
    with dead(point):
        process = rebalance(tmp_path / "state", *words, point, "--allow-non-zfs")
        wchan = Path(f"/proc/{process.pid}/wchan")
        assert soon(lambda: "wait_answer" in wchan.read_text(), PATIENCE), wchan.read_text()
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
