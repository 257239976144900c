from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import pytest

from tests.table import rows
from zconsole.rebalance.engine.metadata import PRIVATE, Abilities, Metadata, apply, first_mode
from zconsole.rebalance.engine.syscalls import Sys

BORN = Metadata(stat.S_IFREG | PRIVATE, 0, 0, 0, 0, 0)


@rows(
    ("mode", "first"),
    [
        (0o644, 0o644),
        (0o755, 0o755),
        (0o400, 0o400),
        (0o664, PRIVATE),
        (0o606, PRIVATE),
        (0o4755, PRIVATE),
        (0o1644, PRIVATE),
    ],
)
def test_a_copy_begins_with_its_permissions_where_only_the_owner_writes(
    mode: int, first: int
) -> None:
    wanted = BORN._replace(mode=stat.S_IFREG | mode)
    assert first_mode(wanted, BORN) == first


def test_a_copy_begins_private_where_owner_or_lists_are_still_to_come() -> None:
    wanted = BORN._replace(mode=stat.S_IFREG | 0o644)
    listed = {"system.posix_acl_access": b"list"}
    assert first_mode(wanted, None) == PRIVATE
    assert first_mode(wanted._replace(uid=1000), BORN) == PRIVATE
    assert first_mode(wanted._replace(gid=1000), BORN) == PRIVATE
    assert first_mode(wanted._replace(xattrs=listed), BORN) == PRIVATE
    assert first_mode(wanted, BORN._replace(xattrs=listed)) == PRIVATE


class TwiceNamed(Sys):
    """A file whose ACL has two names, as on XFS: removed by one, it is gone by both."""

    def __init__(self) -> None:
        self.names = {"system.posix_acl_access", "trusted.SGI_ACL_FILE"}
        self.code = errno.ENODATA

    def removexattr(self, fd: int, name: str) -> None:
        if not self.names:
            raise OSError(self.code, os.strerror(self.code))
        self.names.clear()


def test_an_access_list_of_two_names_is_removed_once(tmp_path: Path) -> None:
    sys, path = TwiceNamed(), tmp_path / "copy"
    path.touch()
    wanted = BORN._replace(uid=os.getuid(), gid=os.getgid())
    fresh = wanted._replace(xattrs=dict.fromkeys(sorted(sys.names), b"list"))
    with path.open() as file:
        apply(sys, file.fileno(), wanted, fresh, Abilities(dos=False))
        assert sys.names == set()
        sys.code = errno.EIO
        with pytest.raises(OSError, match="Input/output"):
            apply(sys, file.fileno(), wanted, fresh, Abilities(dos=False))
