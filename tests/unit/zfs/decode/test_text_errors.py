"""Damaged files in a saved status: the signs that there are any."""

from __future__ import annotations

from tests.table import rows
from tests.unit.zfs.decode.texts import HEAD, TABLE, pool
from zconsole.pool.health import health


@rows("indent", ["", "        "])
def test_the_heading_of_damaged_files_broken_by_a_mail(indent: str) -> None:
    head = "errors: Permanent errors have been detected in the following files:\n"
    broken = head.replace(" files:", f"\n{indent}files:")
    names = "\n        /tank/files:\n        tank/b:<0x12>\n"
    for below in (names, "\n"):
        assert pool(HEAD + broken + below).errors == pool(HEAD + head + below).errors


@rows(
    "line",
    [
        "errors: List of errors unavailable: permission denied\n",
        "errors: List of errors unavailable (insufficient privileges)\n",
        "errors: Permanent errors have been detected in the following files:\n",
        "errors: Permanent errors have been detected in the following\n        files:\n\n",
        "errors: 1,234 data errors, use '-v' for a list\n",
    ],
)
def test_damage_of_which_nothing_tells_the_amount(line: str) -> None:
    found = pool(f"{HEAD}{TABLE}\ttank        ONLINE       0     0     0\n\n{line}")
    assert (found.damaged, found.error_count, found.errors) == (True, None, None)
    assert health(found, 0.0).word == "ERRORS"


@rows("line", ["", "errors: No known data errors\n", "errors: 3 data errors\n"])
def test_damage_that_is_told_or_not_known_of(line: str) -> None:
    found = pool(f"{HEAD}{TABLE}\ttank        ONLINE       0     0     0\n\n{line}")
    assert not found.damaged
