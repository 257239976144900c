from tests.table import rows
from zconsole.pool.model import parse_version


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
