"""``zpool iostat`` output of every age and with every set of columns."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.unit.zfs.decode.expect import parsed
from zconsole.errors import NotUnderstoodError
from zconsole.zfs.decode.iostat import IostatRow, latest, samples_of

FIXTURES = Path(__file__).parents[3] / "fixtures"
CORPUS = Path(os.environ.get("ZCONSOLE_CORPUS", FIXTURES / "corpus"))
SAMPLES = sorted(CORPUS.glob("iostat/*.txt"))


def plain(row: IostatRow) -> list[Any]:
    rates = row.rates
    return [row.name, rates.read_ops, rates.write_ops, rates.read, rates.write]


def expected(row: list[Any]) -> list[Any]:
    values = [
        None if v in ("-", None) else parsed(v) if isinstance(v, str) else v for v in row[3:7]
    ]
    return [row[0], *values, *[None] * (4 - len(values))]


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.stem)
def test_sample_is_read_as_expected(sample: Path) -> None:
    wanted = json.loads(sample.with_name(f"{sample.stem}.expect.json").read_text())
    samples = samples_of(sample.read_text())
    assert len(samples) == wanted.get("blocks", 1)
    for pool in wanted["pools"]:
        rows = [row for row in samples[0] if row.name == pool["name"] and not row.indent]
        assert [plain(row) for row in rows] == [expected(pool["row"])]
        mine = list(samples[0])[samples[0].index(rows[0]) :]
        tops = [row for row in mine if row.indent == 2]
        wanted_tops = [expected(row) for row in pool.get("top_level", [])]
        assert [plain(row) for row in tops][: len(wanted_tops)] == wanted_tops
        wanted_others = [expected(row) for key in ("logs", "cache") for row in pool.get(key, [])]
        assert [plain(row) for row in mine if plain(row) in wanted_others] == wanted_others
        if "last_block_row" in pool:
            last = next(row for row in samples[-1] if row.name == pool["name"])
            assert plain(last) == expected(pool["last_block_row"])


def test_waits_and_queues_of_a_scripted_row() -> None:
    base = "tank\t1\t2\t3\t4\t5\t6"
    waits = "\t".join(f"{n}000" for n in range(1, 12))
    queues = "\t".join(str(n) for n in range(14))
    (rows,) = samples_of(f"{base}\t{waits}\t{queues}\n")
    row = rows[0]
    assert row.rates.latency == pytest.approx((3 * 3e-6 + 4 * 4e-6) / 7)
    assert row.queues["rebuild"] == (12, 13)
    (rows,) = samples_of(f"{base}\t" + "\t".join(["-"] * 10) + "\t" + "\t".join(["2"] * 12) + "\n")
    assert rows[0].rates.latency is None
    assert rows[0].queues["trim"] == (2, 2)
    assert "rebuild" not in rows[0].queues


def test_waits_with_units() -> None:
    text = (FIXTURES / "captures" / "2.4.4" / "replace-running" / "iostat.txt").read_text()
    rows = latest(text, "tank")
    words = next(line for line in text.splitlines() if line.split()[:1] == ["tank"]).split()
    operations, waits = list(map(int, words[3:5])), words[9:11]
    assert all(each.endswith(("us", "ms")) for each in waits)
    units = {"us": 1e6, "ms": 1e3}
    seconds = [float(each[:-2]) / units[each[-2:]] for each in waits]
    total = sum(n * each for n, each in zip(operations, seconds, strict=True))
    assert rows[0].rates.latency == pytest.approx(total / sum(operations))


def test_the_newest_of_several_samples() -> None:
    text = "tank\t1\t1\t1\t1\t1\t1\nsda\t0\t0\t1\t1\t1\t1\n\nsdl\t0\t0\t9\t9\t9\t9\n"
    rows = latest(text + text.replace("\t1", "\t2"), "tank")
    assert [row.name for row in rows] == ["tank", "sda", "sdl"]
    assert rows[0].rates.read == 2
    stamped = f"1795168000\n{text}1795168001\n{text}"
    assert len(samples_of(stamped)) == 2


def test_one_pool_of_several() -> None:
    text = (
        "              capacity     operations     bandwidth\n"
        "pool        alloc   free   read  write   read  write\n"
        "----------  -----  -----  -----  -----  -----  -----\n"
        "one         2.89T  2.20T      0      2   349K   448K\n"
        "  sda       2.89T  2.20T      0      2   349K   448K\n"
        "----------  -----  -----  -----  -----  -----  -----\n"
        "two          230G  24.0G      0      9   112K   318K\n"
    )
    assert [row.name for row in latest(text, "one")] == ["one", "sda"]
    assert [row.name for row in latest(text, "two")] == ["two"]
    assert latest(text, "three") == ()


@pytest.mark.parametrize("text", ["", "\n\n"])
def test_other_text_is_refused(text: str) -> None:
    with pytest.raises(NotUnderstoodError):
        samples_of(text)
    assert latest(text, "tank") == ()
