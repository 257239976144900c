"""How a pipeline is assembled for the abilities of the filesystem."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from zconsole.rebalance.engine.admission import Policy
from zconsole.rebalance.engine.copy_engine import copy_engine
from zconsole.rebalance.engine.directories import Directories
from zconsole.rebalance.engine.journal import Journal
from zconsole.rebalance.engine.syscalls import Sys
from zconsole.rebalance.engine.workplace import Workplace


@pytest.mark.parametrize(
    ("zfs", "direct"), [(None, False), ((2, 2, 9), False), ((2, 3), True), ((2, 4, 0), True)]
)
def test_copies_are_read_past_the_cache_where_zfs_can(
    tmp_path: Path, zfs: tuple[int, ...] | None, direct: bool
) -> None:
    """ZFS supports O_DIRECT since 2.3; before, it accepted the flag and read from its cache."""
    sys = Sys()
    with closing(Journal.create(tmp_path / "job.db")) as journal:
        directories = Directories(sys, journal.directory)
        place = Workplace(sys, journal, directories)
        engine = copy_engine(place, Policy(zfs=zfs), lambda fd: None, lambda count: None)
    assert (engine.verifier.direct is not None) == direct
