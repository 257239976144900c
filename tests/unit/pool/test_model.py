from __future__ import annotations

from tests.table import rows
from zconsole.pool.model import Vdev, parse_version, path_is_reused


@rows(
    ("version", "numbers"),
    [
        ("2.3.9", (2, 3, 9)),
        ("2.4.0-rc2", (2, 4, 0)),
        ("zfs-kmod-2.3.9-1", (2, 3, 9)),
        ("zfs-2.1.11-1+deb12u1", (2, 1, 11)),
        ("2.3.9_1", (2, 3, 9)),
        ("0.8", (0, 8)),
        ("2.4.99rc1", (2, 4, 99)),
        (None, ()),
        ("junk", ()),
        ("9" * 5000, (999_999_999,)),
    ],
)
def test_versions_compare_as_numbers(version, numbers):
    assert parse_version(version) == numbers


def leaf(guid: str, path: str, state: str = "ONLINE", **fields) -> Vdev:
    return Vdev(guid, "disk", state=state, guid=guid, path=path, **fields)


def taken(old: Vdev, *others: Vdev, serial: str = "SERIAL2", wwn: str = "naa.5000c500bb") -> bool:
    return path_is_reused(old, Vdev("tank", "root", children=(old, *others)), serial, wwn)


GONE = leaf("1", "/dev/sdb1", "UNAVAIL", devid="ata-X_SERIAL1-part1")


def test_a_healthy_leaf_with_the_same_path_has_the_disk():
    bare = GONE._replace(devid=None)
    assert taken(bare, leaf("2", "/dev/sdb1"))
    assert not taken(bare, leaf("2", "/dev/sdc1"))


def test_a_disk_that_another_leaf_was_made_on_is_not_this_leafs():
    by_place = GONE._replace(path="/dev/disk/by-vdev/b1-part1")
    assert taken(by_place, leaf("2", "/dev/sdc1", devid="ata-X_SERIAL2-part1"))
    assert taken(by_place, leaf("2", "/dev/sdc1", devid="scsi-35000c500bb-part1"))


@rows("path", ["/dev/sdb1", "/dev/nvme0n1p1"])
def test_a_kernel_name_counts_only_with_the_disk_that_was_noted(path):
    assert taken(GONE._replace(path=path))
    assert not taken(GONE._replace(path=path), serial="SERIAL1")
    assert not taken(GONE._replace(path=path), serial="", wwn="")
    assert not taken(GONE._replace(path=path, devid=None))


def test_a_leaf_that_answers_keeps_its_disk():
    assert not taken(GONE._replace(state="ONLINE"), leaf("2", "/dev/sdb1"))


def test_the_row_of_a_spare_is_the_spare_itself():
    spare = leaf("7", "/dev/disk/by-id/s", "FAULTED")
    row = spare._replace(state="INUSE", vclass="spare")
    assert not taken(spare, row)


def test_blanks_in_a_serial_number_are_as_udev_writes_them():
    assert not taken(GONE._replace(devid="ata-X_AB_1234-part1"), serial="AB 1234", wwn="")
