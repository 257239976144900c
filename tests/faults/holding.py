"""A tree with one file in use, and checks of what a job makes of it."""

from __future__ import annotations

from pathlib import Path

from tests.faults.beside import mount
from tests.faults.harness import run
from zconsole.rebalance.engine.file_locks import Users
from zconsole.rebalance.engine.syscalls import Sys

Found = dict[str, tuple[str, str | None]]


def tree(area: Path, *names: str) -> Path:
    root = area / "tree"
    root.mkdir()
    for name in names or ("held", "free"):
        (root / name).write_bytes(b"before\n")
    return root


def moved(area: Path, system: Sys | None = None) -> Found:
    """Run the created job; returns (outcome, reason) by file name."""
    shown, _ = run(area / "job.db", system, users=Users())
    return {Path(r["path"]).name: (r["outcome"], r["reason"]) for r in shown}


def append(path: Path | str) -> None:
    with Path(path).open("ab", buffering=0) as file:
        file.write(b"after\n")


def opened_again(fd: int) -> None:
    append(f"/proc/self/fd/{fd}")


def is_left_alone(found: Found, root: Path) -> None:
    """Check that ``held`` was skipped and keeps later writes, and that all others were moved."""
    outcome, reason = found.pop("held")
    assert (outcome, (reason or "")[:6]) == ("skipped", "in use")
    assert len(reason or "") <= 40
    assert set(found.values()) == {("moved", None)}
    assert (root / "held").read_bytes() == b"before\nafter\n"
    assert not [path for path in root.iterdir() if path.name.startswith(".zc-")]


def bound(root: Path) -> Path:
    """Bind-mount the file somewhere else."""
    place = root.parent / "mounted"
    place.touch()
    mount(root / "held", place)
    return place
