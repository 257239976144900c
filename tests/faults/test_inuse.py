"""Processes that start using a file while a job works, or before recovery."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.faults.beside import beside, mount
from tests.faults.harness import FaultySys, Killed, create, descriptors_closed, run
from tests.faults.holding import append, bound, is_left_alone, moved, opened_again, tree
from zconsole.rebalance.engine.file_locks import Users
from zconsole.system import mounts


def at_call(name: str, number: int, act: Callable[[], object]) -> FaultySys:
    """Return system calls with an action after the Nth call of a name."""
    count = 0

    def after(_: int, called: str, _result: Any) -> None:
        nonlocal count
        count += called == name
        if called == name and count == number:
            act()

    return FaultySys(after=after)


@pytest.mark.parametrize("local", [mounts.LOCAL, frozenset()], ids=["local", "server on the way"])
def test_an_original_that_is_mounted_when_its_name_is_gone_is_seen(
    area: Path, monkeypatch: pytest.MonkeyPatch, local: frozenset[bytes]
) -> None:
    root = tree(area, "held")
    inode = (root / "held").stat().st_ino

    def begin() -> None:
        (area / "mounted").touch()
        mount(next(p for p in root.iterdir() if p.stat().st_ino == inode), area / "mounted")

    monkeypatch.setattr(mounts, "LOCAL", local)
    create(root, area / "job.db", others=True)
    steps = (lambda: None, begin, lambda: append(area / "mounted"))
    with beside(*steps, own_mounts=True) as other:
        found = moved(area, at_call("exchange", 1, other.go))
        other.go()
    is_left_alone(found | {"free": ("moved", None)}, root)


LATE = {
    "while it is copied": ("pwrite", 1),
    "when names are replaced": ("exchange", 1),
}


@pytest.mark.parametrize("moment", LATE)
def test_a_descriptor_that_comes_late_is_seen(area: Path, moment: str) -> None:
    root, held = tree(area, "held"), []
    inode = (root / "held").stat().st_ino

    def opening() -> None:
        name = next(path for path in root.iterdir() if path.stat().st_ino == inode)
        held.append(os.open(name, os.O_PATH))

    create(root, area / "job.db", others=True)
    with beside(lambda: None, opening, lambda: opened_again(held[0])) as other:
        system = at_call(*LATE[moment], other.go)
        found = moved(area, system)
        other.go()
    assert ("exchange" in system.calls) is (LATE[moment][0] == "exchange")
    outcome, reason = found["held"]
    assert (outcome, (reason or "")[:6]) == ("skipped", "in use")
    assert (root / "held").read_bytes() == b"before\nafter\n"
    assert (root / "held").stat().st_ino == inode
    assert len(list(root.iterdir())) == 1


def test_a_mount_that_comes_late_is_seen(area: Path) -> None:
    root = tree(area, "held")
    create(root, area / "job.db", others=True)
    steps = (lambda: None, lambda: bound(root), lambda: append(area / "mounted"))
    with beside(*steps, own_mounts=True) as other:
        found = moved(area, at_call("lstat", 1, other.go))  # the last lstat before an exchange
        other.go()
    is_left_alone(found | {"free": ("moved", None)}, root)


def test_both_versions_in_use_are_kept(area: Path) -> None:
    """The processes that hold the copy and the original may both write: the operator decides."""
    root, held = tree(area, "held"), []

    def both() -> None:
        held.extend(os.open(path, os.O_PATH) for path in root.iterdir())

    create(root, area / "job.db", others=True)
    with beside(lambda: None, both) as other:
        found = moved(area, at_call("exchange", 1, other.go))
    outcome, reason = found["held"]
    assert outcome == "failed"
    assert "the other version is .zc-" in (reason or "")
    assert len(list(root.iterdir())) == 2


@pytest.mark.parametrize("both", [False, True], ids=["original", "both"])
def test_recovery_keeps_what_is_in_use(area: Path, both: bool) -> None:
    """The job died between replacing the name and removing the original."""
    root, held = tree(area, "held"), []
    inode = (root / "held").stat().st_ino

    def hold() -> None:
        paths = [path for path in root.iterdir() if both or path.stat().st_ino == inode]
        paths.sort(key=lambda path: path.stat().st_ino != inode)
        held.extend(os.open(path, os.O_PATH) for path in paths)

    create(root, area / "job.db", others=True)
    dying = at_call("exchange", 1, lambda: dying.die())  # noqa: PLW0108 (not there yet)
    with beside(lambda: None, hold, lambda: opened_again(held[0])) as other:
        with descriptors_closed(), pytest.raises(Killed):
            run(area / "job.db", dying, users=Users())
        other.go()
        found = moved(area)
        other.go()
    if not both:
        is_left_alone(found | {"free": ("moved", None)}, root)
        return
    assert len(list(root.iterdir())) == 2
    assert (root / "held").read_bytes() == b"before\n"
