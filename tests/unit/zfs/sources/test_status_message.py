"""Names of destroyed datasets come from the pool's history, which is read once per id."""

from __future__ import annotations

import json

from tests.unit.zfs.sources.sampled import JSON, source
from tests.unit.zfs.sources.source_fakes import STATUS, printed, settle
from zconsole.zfs.decode import decode
from zconsole.zfs.sources.occasional import names_in_history

HISTORY = """\
History for 'tank':
2026-11-20.10:19:15 [txg:4] create tank/a b (539)  (on host)
2026-11-20.10:19:16 (12ms) zpool scrub tank
2026-11-20.10:19:17 [txg:9] rename tank/a b (539) -> tank/c
2026-11-20.10:19:18 [txg:10] destroy tank/c (539) (bptree, mintxg=1)
2026-11-20.10:19:18 [txg:11] destroy tank/c@x (54)
2026-11-20.10:19:19 [txg:12] set other (539) x=(540)
"""


def test_the_last_name_in_the_history_counts():
    ids = ["0x21b", "0x36", "0x7"]
    assert names_in_history(HISTORY, "tank", ids) == {"0x21b": "tank/c", "0x36": "tank/c@x"}


async def test_a_sample_names_what_was_destroyed_and_asks_the_history_once(tmp_path):
    pool = {**STATUS["pools"]["tank"], "error_count": 1, "errlist": ["<0x21b>:<0x8>"]}
    status = printed(json.dumps({**STATUS, "pools": {"tank": pool}}))
    answers = {**JSON, ("zpool", "status", "-jvP"): status, ("zpool", "history"): printed(HISTORY)}
    made = source(tmp_path, answers=answers)
    (raw,) = await made.sample()
    await settle()
    assert raw["message"]["destroyed"] == {"0x21b": "tank/c"}
    (sample,) = decode(raw)
    assert sample.pool.destroyed == {"0x21b": "tank/c"}
    await made.aclose()


async def test_a_history_that_is_not_permitted_leaves_the_errors(tmp_path):
    pool = {**STATUS["pools"]["tank"], "error_count": 1, "errlist": ["<0x21b>:<0x8>"]}
    status = printed(json.dumps({**STATUS, "pools": {"tank": pool}}))
    made = source(tmp_path, answers={**JSON, ("zpool", "status", "-jvP"): status})
    (raw,) = await made.sample()
    assert raw["message"]["errors"] == ["<0x21b>:<0x8>"]
    assert "destroyed" not in raw["message"]
    await made.aclose()
