"""Jobs in a chroot whose root is not a mount: no mount table has the tree's filesystem."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from tests.faults.beside import beside, mount
from tests.faults.harness import create
from tests.faults.holding import moved
from zconsole.rebalance.planning import plan
from zconsole.rebalance.planning.facts import FactsReader, mount_of
from zconsole.system.mounts import mount_at


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
@pytest.mark.parametrize("read_only", [False, True])
def test_statfs_tells_the_filesystem_of_a_plain_chroot(area: Path, read_only: bool) -> None:
    expected = mount_of(mount_at(bytes(area)))
    assert expected is not None
    (area / "warm").mkdir()
    create(area / "warm", area / "warm.db", others=True)  # late imports would fail in the chroot
    root = area / "root"
    for name in ("proc", "tree", "state", "tmp"):
        (root / name).mkdir(parents=True)
    (root / "tree/file").write_bytes(b"x" * 5000)

    def work() -> Any:
        mount("proc", root / "proc", "proc")
        os.chroot(root)
        os.chdir("/")
        os.environ["ZCONSOLE_STATE"] = "/state"
        if read_only:
            os.statvfs = lambda _: type("Status", (), {"f_flag": os.ST_RDONLY})()  # type: ignore[assignment]
        (place,) = plan.locate(["/tree"], FactsReader())
        if read_only:
            return place.kind, place.read_only
        create(Path("/tree"), Path("/job.db"), others=True)
        return place.kind, moved(Path("/"))

    with beside(work, own_mounts=True) as other:
        kind, found = other.answer
    assert kind == os.fsdecode(expected.kind)
    assert found == (True if read_only else {"file": ("moved", None)})
