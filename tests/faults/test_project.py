"""Files of another project than their directory, which accepts only its own."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from tests.faults.harness import ALONE, FaultySys, create, run, tree_of


def test_a_directory_that_takes_only_its_own_project_is_told(area: Path) -> None:
    root = tree_of(area, 3, 10)
    before = {path.name: (path.read_bytes(), path.stat().st_ino) for path in root.iterdir()}
    create(root, area / "job.db")

    def fault(_number: int, name: str) -> None:
        if name in ("exchange", "rename"):
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))

    shown, summary = run(area / "job.db", FaultySys(fault), ALONE)
    assert {(done["outcome"], done["reason"]) for done in shown} == {
        ("skipped", "its project is not its directory's")
    }
    assert summary["skipped"] == {"its project is not its directory's": 3}
    after = {path.name: (path.read_bytes(), path.stat().st_ino) for path in root.iterdir()}
    assert after == before
