from __future__ import annotations

import stat

import pytest

from zconsole.rebalance.metadata import PRIVATE, Metadata, first_mode

BORN = Metadata(stat.S_IFREG | PRIVATE, 0, 0, 0, 0, 0)


@pytest.mark.parametrize(
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
