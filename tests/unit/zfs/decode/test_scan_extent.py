"""Which scrub reads all blocks, by the kernel's note of its beginning."""

from __future__ import annotations

from typing import Any

from tests.table import rows
from zconsole.pool.model import Sample, Scan
from zconsole.zfs.decode import decode
from zconsole.zfs.decode.scans import with_extent

SCRUB = Scan("scrub", "running", start=1000.0)
FULL: dict[str, Any] = {"t": 1000.4, "func": 1, "mintxg": 0, "maxtxg": 40, "txg": 40}
"""From `zpool history -i` of OpenZFS 2.3.9: `[txg:40] scan setup func=1 mintxg=0 maxtxg=40`."""


@rows(
    ("change", "full"),
    [
        ({}, True),
        ({"mintxg": 3}, True),
        ({"mintxg": 30}, False),
        ({"maxtxg": 39}, False),
        ({"func": 2, "mintxg": 30}, None),
        ({"t": 1100.0, "mintxg": 30}, None),
        ({"t": 990.0, "mintxg": 30}, None),
    ],
)
def test_a_scrub_is_partial_where_older_or_newer_blocks_are_left_out(change, full) -> None:
    (scan,) = with_extent((SCRUB,), {**FULL, **change})
    assert scan.full is full


def test_only_the_scrub_that_the_note_is_about_is_meant() -> None:
    others = (Scan("scrub", "finished", start=100.0, end=200.0), Scan("errorscrub", start=1000.0))
    assert with_extent(others, {**FULL, "mintxg": 30}) == others


def test_a_sample_with_the_note_names_its_scrub_partial() -> None:
    text = (
        "  pool: tank\n state: ONLINE\n  scan: scrub in progress since Thu Jan  1 00:16:40 1970\n"
        "\t1G / 2G scanned, 1G / 2G issued\nconfig:\n\n\tNAME  STATE  READ WRITE CKSUM\n"
        "\ttank  ONLINE  0  0  0\n"
    )
    (sample,) = decode({"t": 1010.0, "text": text, "scan_setup": {**FULL, "mintxg": 30}})
    assert isinstance(sample, Sample)
    assert sample.pool.scan.name == "partial scrub"
