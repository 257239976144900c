"""What other machines may write to while it is copied."""

from __future__ import annotations

from pathlib import Path

import pytest

from zconsole.rebalance.planning.exports import is_exported

SMB = """\
# path = /tank/comment
[global]
   workgroup = HOME
[media]
   Path = "/tank/media"
; path = /tank/off
[users]
   path=/tank/users/%U
[printers]
   path = /var/spool/samba
   printable = yes
[homes]
   browseable = no
"""


def test_exports_of_the_kernel_server(tmp_path: Path) -> None:
    table = tmp_path / "etab"
    table.write_text("/tank/a/share\thost(rw)\n")
    assert is_exported("/tank/a", table)
    assert not is_exported("/tank/b", table)
    assert not is_exported("/tank/a", tmp_path / "none")


@pytest.mark.parametrize(
    ("point", "shared"),
    [
        ("/tank/media", True),
        ("/tank/media/below", True),
        ("/tank", True),
        ("/tank/users", True),
        ("/home/ann", True),
        ("/tank/comment", False),
        ("/tank/off", False),
        ("/var/spool", False),
        ("/tank/mediathek", False),
    ],
)
def test_shares_of_samba(tmp_path: Path, point: str, shared: bool) -> None:
    none, file = tmp_path / "none", tmp_path / "smb.conf"
    file.write_text(SMB)
    assert is_exported(point, none, [none, file], none) == shared


def test_shares_that_users_made(tmp_path: Path) -> None:
    none = tmp_path / "none"
    (tmp_path / "usershares").mkdir()
    (tmp_path / "usershares/mine").write_text("#VERSION 2\npath=/tank/mine\ncomment=\n")
    assert is_exported("/tank/mine", none, [none], tmp_path / "usershares")
    assert not is_exported("/tank/other", none, [none], tmp_path / "usershares")


def test_what_is_exported_of_another_filesystem_below_is_not_of_this_one(tmp_path: Path) -> None:
    table = tmp_path / "etab"
    table.write_text("/proc\thost(ro)\n")
    assert not is_exported("/", table)
    table.write_text(f"{tmp_path}\thost(ro)\n")
    assert is_exported(str(tmp_path.parent), table)
