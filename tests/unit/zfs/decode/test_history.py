"""What a pool's history tells, some of it from recordings that anybody may have made."""

from __future__ import annotations

from tests.factory import mirror_pool
from tests.table import rows
from zconsole.pool.model import Pool, Scan
from zconsole.zfs.decode.measurements import with_history

SCRUB = Scan("scrub", "finished", start=500.0, end=900.0)
PART = {"start": 501, "end": 901, "full": False}
WHOLE = {"start": 100, "end": 400, "full": True}


def read(history, *scans: Scan) -> Pool:
    return with_history(mirror_pool(*scans), {"t": 1.0, "history": history})


def test_the_last_full_scrub_and_the_creation_are_the_pools():
    pool = read({"created": 5, "scrubs": [PART, WHOLE]}, SCRUB)
    assert (pool.created, pool.full_scrub) == (5.0, 400.0)
    assert pool.scan.full is False


def test_a_scan_is_known_by_its_start_or_in_text_by_its_end():
    told = [PART, WHOLE]
    assert read({"scrubs": told}, SCRUB._replace(start=None)).scan.full is False
    assert read({"scrubs": told}, SCRUB._replace(start=99.0, end=None)).scan.full is True
    assert read({"scrubs": told}, SCRUB._replace(start=9.0, end=9.0)).scan.full is None
    assert read({"scrubs": told}, SCRUB._replace(function="resilver")).scan.full is None


ODD = (None, "7", [], [7], [[]], {"a": 7}, float("nan"), -7, 1e99, True)


@rows("odd", ODD)
def test_other_shapes_are_unknown(odd):
    for history in (odd, {"created": odd, "scrubs": odd}, {"scrubs": [odd]}):
        pool = read(history, SCRUB)
        assert (pool.created, pool.full_scrub, pool.scan.full) == (None, None, None)
    pool = read({"scrubs": [{"start": odd, "end": odd, "full": True}]}, SCRUB)
    assert (pool.full_scrub, pool.scan.full) == (None, None)
    assert read({"scrubs": [{**WHOLE, "full": 1}]}, SCRUB).full_scrub is None
