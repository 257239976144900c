"""A filesystem that stops showing all metadata of its files in the middle of a job."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.faults.harness import ALONE, FaultySys, create, run
from tests.faults.test_meddlers import BASE, contents, tree_of
from zconsole.rebalance.planning import facts
from zconsole.system.mounts import MountPoint


def test_no_more_files_are_copied_once_attributes_are_hidden(
    area: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The attributes are hidden after the first batch."""
    monkeypatch.setattr("zconsole.rebalance.engine.descriptors.BATCH_FILES", 1)
    root = tree_of(area, "a", "b", "c")
    create(root, area / "job.db")
    inodes, sys, mount_of = _inodes(root), FaultySys(), facts.mount_of

    def _mount_of(number: int) -> MountPoint | None:
        mount, moved = mount_of(number), "unlink" in sys.calls
        return mount and replace(mount, options=b"rw,nouser_xattr" if moved else mount.options)

    monkeypatch.setattr(facts, "mount_of", _mount_of)
    _, summary = run(area / "job.db", sys, ALONE)
    why = f"{root}: mounted nouser_xattr: a copy would drop attributes that are not shown"
    assert summary["stopped_by"] == why
    assert len(_inodes(root) & inodes) == 2
    assert contents(root) == dict.fromkeys("abc", BASE)
    monkeypatch.setattr(facts, "mount_of", mount_of)
    _, summary = run(area / "job.db", clocks=ALONE)
    assert summary["files_moved"] == 3


def _inodes(root: Path) -> set[int]:
    return {path.stat().st_ino for path in root.iterdir()}
