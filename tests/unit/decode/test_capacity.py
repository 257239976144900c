"""Saved ``zpool list`` output of every age."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.unit.decode.expect import parsed
from zconsole.decode.capacity import CapacityRow, capacities
from zconsole.errors import NotUnderstoodError

FIXTURES = Path(__file__).parents[2] / "fixtures"
CORPUS = Path(os.environ.get("ZCONSOLE_CORPUS", FIXTURES / "corpus"))
STATE = FIXTURES / "captures" / "2.4.4" / "every-class"
SAMPLES = sorted(
    p
    for p in CORPUS.glob("list/*")
    if not p.name.endswith(".expect.json") and p.suffix in (".txt", ".json")
)


def share(text: str | None) -> float | None:
    return None if text in (None, "-") else float(str(text).rstrip("%")) / 100


def cell(value: Any) -> int | None:
    return None if value in (None, "-") else parsed(value)


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.stem)
def test_sample_is_read_as_expected(sample: Path) -> None:
    expected = json.loads(sample.with_name(f"{sample.stem}.expect.json").read_text())
    found = capacities(sample.read_text())
    assert [p.pool.name for p in found] == [p["name"] for p in expected["pools"]]
    for got, wanted in zip(found, expected["pools"], strict=True):
        assert (got.pool.size_bytes, got.pool.alloc_bytes) == (
            cell(wanted["size"]),
            cell(wanted["alloc"]),
        )
        assert (got.pool.fill, got.pool.health) == (share(wanted["cap"]), wanted["health"])
        normal = [row for row in got.vdevs if row.vclass == "normal"]
        assert [_top(row) for row in normal] == [
            (name, cell(size), cell(alloc), cell(free), share(frag), share(cap), health)
            for name, size, alloc, free, frag, cap, health in wanted["top_level"]
        ]
        leaves = wanted["leaves"] if isinstance(wanted["leaves"], list) else wanted["top_level"]
        data = [leaf.name for leaf in got.leaves if leaf.vclass == "normal"]
        assert data == [leaf[0] for leaf in leaves]


def _top(row: CapacityRow) -> tuple[Any, ...]:
    shown = (row.name, row.size_bytes, row.alloc_bytes, row.free_bytes)
    return (*shown, row.fragmentation, row.fill, row.health)


@pytest.mark.parametrize("form", ["list-v.txt", "list-vHp.txt", "list.json"])
def test_forms_agree(form: str) -> None:
    (found,) = capacities((STATE / form).read_text())
    tops = [(row.name, row.kind, row.vclass) for row in found.vdevs if row.vclass != "spare"]
    assert tops == [
        ("mirror-0", "mirror", "normal"),
        ("virtio-LABDISK4", "disk", "dedup"),
        ("mirror-1", "mirror", "special"),
        ("mirror-3", "mirror", "log"),
        ("virtio-LABDISK7", "disk", "cache"),
    ]
    assert found.exact is (form != "list-v.txt")
    assert [row.name for row in found.leaves][-2:] == ["virtio-LABDISK7", "/root/spare.img"]
    assert (found.vdevs[0].alloc_bytes, found.vdevs[0].size_bytes) == (41943040, 1006632960)
    assert found.vdevs[1].space_bytes == 1006632960
    assert found.vdevs[2].fragmentation == 0.02


def test_rows_without_an_altroot_and_with_blanks_in_the_name() -> None:
    text = (
        "NAME       SIZE  ALLOC   FREE  CKPOINT  EXPANDSZ   FRAG    CAP  DEDUP    HEALTH  ALTROOT\n"
        "my pool   2.81G  40.2M  2.77G        -         -     0%     1%  1.00x    ONLINE  -\n"
        "  /a/b c   960M    40M   920M        -         -     0%  4.16%      -    ONLINE\n"
    )
    (found,) = capacities(text)
    assert found.pool.name == "my pool"
    assert [(row.name, row.kind, row.health) for row in found.vdevs] == [
        ("/a/b c", "file", "ONLINE")
    ]


@pytest.mark.parametrize("indent", [None, 2])
def test_documents_of_several_pools_and_what_stands_around_them(indent: int | None) -> None:
    document = json.loads((STATE / "list.json").read_text())
    (pool,) = document["pools"].values()
    pools = ({name: {**pool, "name": name}} for name in ("one", "two"))
    lines = [json.dumps({**document, "pools": each}, indent=indent) for each in pools]
    found = capacities("\n".join(["Last login: today", *lines, "root@nas:~# ", ""]))
    assert [each.pool.name for each in found] == ["one", "two"]
    assert found[0].vdevs == capacities(document)[0].vdevs


def test_no_pools() -> None:
    assert capacities("no pools available\n") == ()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "hello there\n",
        '{"pools": {"x": {}}}',
        "{",
        '{"a": 1}',
        "NAME SIZE\n",
        '{"a":' * 5000 + "1" + "}" * 5000,
        "x " * 200_000,
    ],
    ids=lambda text: text[:20],
)
def test_other_text_is_refused(text: str) -> None:
    with pytest.raises(NotUnderstoodError):
        capacities(text)
