"""Which columns the device list has at a width, and how wide each is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Column(NamedTuple):
    """One column; its width never depends on the values of the moment."""

    key: str
    title: str
    width: int
    right: bool = False


_NAME_MIN, _NAME_FIRST, _NAME_SECOND, _NAME_MAX = 8, 18, 28, 44
_SPARK_MAX = 60
_NOTE_MAX = 44

COLUMNS = (
    Column("name", "NAME", _NAME_MIN),
    Column("state", "  STATE", 13),
    Column("read", "READ", 5, right=True),
    Column("read_spark", "", 7),
    Column("write", "WRITE", 5, right=True),
    Column("write_spark", "", 7),
    Column("read_ops", "R/s", 5, right=True),
    Column("write_ops", "W/s", 5, right=True),
    Column("lat", "LAT", 5, right=True),
    Column("busy", "BUSY", 4, right=True),
    Column("queue", "QUEUE", 5, right=True),
    Column("err", "ERR", 4, right=True),
    Column("err_read", "RD", 4, right=True),
    Column("err_write", "WR", 4, right=True),
    Column("err_cksum", "CK", 4, right=True),
    Column("slow", "SLOW", 4, right=True),
    Column("note", "NOTE", 18),
)
"""Left to right, as narrow as each may be."""
_WIDTHS = {column.key: column.width for column in COLUMNS}

ARRIVAL = (
    ("err",),
    ("read", "write"),
    ("lat",),
    ("busy",),
    ("read_spark", "write_spark"),
    ("name",),
    ("note",),
    ("err_read", "err_write", "err_cksum"),
    ("read_ops", "write_ops"),
    ("slow",),
    ("queue",),
)
"""What is added as there is room; a narrow screen drops from the end of this list."""


def arrange(width: int, longest: int, number: int = 5) -> tuple[Column, ...]:
    """The columns that fit ``width`` cells, one cell between two of them.

    ``longest`` is what the longest name with its indent would take, ``number`` the width of a
    rate. Names get up to 18 cells before anything else and up to 28 before the columns of a wide
    screen; room left over goes to the names, then to notes and the history in the sparklines.
    """
    sizes = {"name": max(_NAME_MIN, min(_NAME_FIRST, longest)), "state": _WIDTHS["state"]}
    for group in ARRIVAL:
        wanted = {key: _first_width(key, longest, number) for key in group}
        if _total(sizes | wanted) > width:
            break
        sizes |= wanted
        if "err_read" in wanted:
            del sizes["err"]
    sizes["name"] = max(1, sizes["name"] - max(0, _total(sizes) - width))
    grown = _grown(sizes, width, longest)
    return tuple(c._replace(width=grown[c.key]) for c in COLUMNS if c.key in grown)


def _first_width(key: str, longest: int, number: int) -> int:
    if key == "name":
        return max(_NAME_MIN, min(_NAME_SECOND, longest))
    return number if key in ("read", "write") else _WIDTHS[key]


def _total(sizes: Mapping[str, int]) -> int:
    return sum(sizes.values()) + len(sizes) - 1


def _grown(sizes: dict[str, int], width: int, longest: int) -> dict[str, int]:
    """The sizes with the spare cells handed out."""
    spare = max(0, width - _total(sizes))
    more = max(0, min(spare, min(longest, _NAME_MAX) - sizes["name"]))
    sizes["name"] += more
    spare -= more
    if "note" in sizes:
        more = min(spare // 3, _NOTE_MAX - sizes["note"])
        sizes["note"] += more
        spare -= more
    if "read_spark" in sizes:
        more = min(spare // 2, _SPARK_MAX - sizes["read_spark"])
        sizes["read_spark"] += more
        sizes["write_spark"] += more
        spare -= 2 * more
    last = "note" if "note" in sizes else "name"
    sizes[last] += spare
    return sizes
