"""Saved ``zpool list`` output of all ages."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.table import rows
from tests.unit.zfs.decode.expect import parsed
from zconsole.errors import NotUnderstoodError
from zconsole.pool.model import Vdev
from zconsole.zfs.decode.listing import capacities, space_of

FIXTURES = Path(__file__).parents[3] / "fixtures"
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


@rows("sample", SAMPLES)
def test_sample_is_read_as_expected(sample: Path) -> None:
    expected = json.loads(sample.with_name(f"{sample.stem}.expect.json").read_text())
    found = capacities(sample.read_text())
    assert [p.name for p in found] == [p["name"] for p in expected["pools"]]
    for got, wanted in zip(found, expected["pools"], strict=True):
        assert (got.size_bytes, got.alloc_bytes) == (
            cell(wanted["size"]),
            cell(wanted["alloc"]),
        )
        assert got.state == wanted["health"]
        normal = [row for row in got.children if row.vclass == "normal"]
        assert [_top(row) for row in normal] == [
            (name, cell(size), cell(alloc), cell(free), share(frag), health)
            for name, size, alloc, free, frag, _, health in wanted["top_level"]
        ]


def _top(row: Vdev) -> tuple[Any, ...]:
    shown = (row.name, row.size_bytes, row.alloc_bytes, row.free_bytes)
    return (*shown, row.fragmentation, row.state)


@rows("form", ["list-v.txt", "list-vHp.txt", "list.json"])
def test_forms_agree(form: str) -> None:
    (found,) = capacities((STATE / form).read_text())
    tops = [(row.name, row.kind, row.vclass) for row in found.children if row.vclass != "spare"]
    assert tops == [
        ("mirror-0", "mirror", "normal"),
        ("virtio-LABDISK4", "disk", "dedup"),
        ("mirror-1", "mirror", "special"),
        ("mirror-3", "mirror", "log"),
        ("virtio-LABDISK7", "disk", "cache"),
    ]
    assert (found.children[0].alloc_bytes, found.children[0].size_bytes) == (41943040, 1006632960)
    assert space_of(found.children[1]) == 1006632960
    assert found.children[2].fragmentation == 0.02


def test_rows_without_an_altroot_and_with_blanks_in_the_name() -> None:
    text = (
        "NAME       SIZE  ALLOC   FREE  CKPOINT  EXPANDSZ   FRAG    CAP  DEDUP    HEALTH  ALTROOT\n"
        "my pool   2.81G  40.2M  2.77G        -         -     0%     1%  1.00x    ONLINE  -\n"
        "  /a/b c   960M    40M   920M        -         -     0%  4.16%      -    ONLINE\n"
    )
    (found,) = capacities(text)
    assert found.name == "my pool"
    assert [(row.name, row.kind, row.state) for row in found.children] == [
        ("/a/b c", "file", "ONLINE")
    ]


@rows("indent", [None, 2])
def test_documents_of_several_pools_and_what_stands_around_them(indent: int | None) -> None:
    document = json.loads((STATE / "list.json").read_text())
    (pool,) = document["pools"].values()
    pools = ({name: {**pool, "name": name}} for name in ("one", "two"))
    lines = [json.dumps({**document, "pools": each}, indent=indent) for each in pools]
    found = capacities("\n".join(["Last login: today", *lines, "root@nas:~# ", ""]))
    assert [each.name for each in found] == ["one", "two"]
    assert found[0].children == capacities(document)[0].children


def _figures(text: str) -> list[tuple[str, list[tuple[Any, ...]]]]:
    return [
        (found.name, [(r.name, r.vclass, r.size_bytes, r.alloc_bytes) for r in found.children])
        for found in capacities(text)
    ]


PLAIN = sorted(p for p in (*CORPUS.glob("list/*.txt"), STATE / "list-v.txt"))


@rows("sample", PLAIN)
@rows("width", [72, 80])
@rows("at", ["anywhere", "blanks"])
def test_lines_that_a_narrow_window_broke(sample: Path, width: int, at: str) -> None:
    lines = [broken(line, width, at) for line in sample.read_text().splitlines()]
    assert _figures("\n".join(lines)) == _figures(sample.read_text())


def broken(line: str, width: int, at: str) -> str:
    pieces = []
    while len(line) > width:
        end = width if at == "anywhere" else line.rindex(" ", 0, width) + 1
        pieces.append(line[:end])
        line = line[end:]
    return "\n".join([*pieces, line])


def _without_single_spares(text: str) -> list[Any]:
    """Drop spares: a stripped line no longer shows which devices a spare group has at top level."""
    return [(name, [r for r in rows if r[1] != "spare"]) for name, rows in _figures(text)]


@rows("form", ["list-v.txt", "list-vHp.txt"])
def test_a_listing_that_lost_its_indentation_has_no_more_pools(form: str) -> None:
    text = (STATE / form).read_text()
    bare = "\n".join(line.lstrip() for line in text.splitlines())
    assert _without_single_spares(bare) == _without_single_spares(text)


@rows(
    "below",
    [
        (STATE / "iostat.txt").read_text(),
        (STATE / "status.txt").read_text(),
        "NAME   USED  AVAIL  REFER  MOUNTPOINT\ntank  40.2M  2.65G    24K  /tank\n",
        "root@nas:~# df\nFilesystem  Size  Used Avail Use% Mounted on\ntank 2.7G 40M 2.6G 2% /\n",
    ],
)
def test_other_output_below_a_listing_is_no_pool(below: str) -> None:
    text = (STATE / "list-v.txt").read_text()
    assert _figures(text + below) == _figures(text)
    assert _figures(text + below + text) == _figures(text) * 2


def test_a_pool_that_is_not_open_and_has_a_name_in_capitals_is_a_pool() -> None:
    heading = (
        "NAME   SIZE  ALLOC   FREE  CKPOINT  EXPANDSZ   FRAG    CAP  DEDUP    HEALTH  ALTROOT\n"
    )
    closed = "      -      -      -        -         -      -      -      -   FAULTED  -\n"
    found = capacities(f"{heading}TANK{closed}VAULT{closed}")
    assert [(each.name, each.state) for each in found] == [
        ("TANK", "FAULTED"),
        ("VAULT", "FAULTED"),
    ]


def test_no_pools() -> None:
    assert capacities("no pools available\n") == ()


@rows(
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
        "read\tIOPS" + "\t3,414" * 9 + "\n",
    ],
)
def test_other_text_is_refused(text: str) -> None:
    with pytest.raises(NotUnderstoodError):
        capacities(text)
