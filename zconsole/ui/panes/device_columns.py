"""The columns of the device list: which there are at a width, and what stands over them.

That follows from all vdevs of a pool, also those out of sight (``TreeFacts``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from rich.cells import cell_len

from zconsole import units
from zconsole.config.settings import COLUMNS as COLUMN_WORDS
from zconsole.timeline.events import BROKEN
from zconsole.timeline.frame import Frame, VdevRow
from zconsole.ui.display_format import DisplayFormat
from zconsole.ui.panes import device_cells as cells
from zconsole.ui.panes.device_cells import Column, Panel, bay_words, note_words
from zconsole.ui.panes.device_tree import TreeLine
from zconsole.ui.widgets.draw import Line, Span, fit
from zconsole.ui.widgets.graph import scale
from zconsole.ui.widgets.short_names import formerly


class TreeFacts(NamedTuple):
    """Of the vdevs of one frame; widths in cells."""

    longest: int = 8
    """The longest name with its indent."""
    names: tuple[str, ...] = ()
    """Those of the leaves, each once."""
    longest_leaf: int = 0
    """The longest of them."""
    deepest: int = 0
    """The largest indent of a leaf."""
    bays: Mapping[str, str] = {}
    """Leaf name to its bay; empty where the name tells it."""
    widest_bay: int = 0
    errors: bool = False
    """Whether an error counter of any row is not 0."""
    filled: frozenset[str] = frozenset()
    """The keys of the disks that are being filled, or wait until the metadata is scanned."""


def tree_facts(frame: Frame) -> TreeFacts:
    """The facts of a frame."""
    leaves = [row for row in frame.rows if not row.vdev.children]
    bays = {row.vdev.name: bay_words(row) for row in leaves}
    return TreeFacts(
        longest=max((cell_len(row.vdev.name) + row.depth for row in frame.rows), default=8),
        names=tuple(bays),
        longest_leaf=max(map(cell_len, bays), default=0),
        deepest=max((row.depth for row in leaves), default=0),
        bays=bays,
        widest_bay=max(map(cell_len, bays.values()), default=0),
        errors=any(row.vdev.errors.total for row in frame.rows),
        filled=frozenset(
            row.key for row in frame.rows if row.vdev.resilvering or row.vdev.unfilled
        ),
    )


def has_failed(frame: Frame) -> bool:
    """Whether a device has failed or counted errors."""
    leaves = (row.vdev for row in frame.rows if not row.vdev.children)
    return any(leaf.state in BROKEN or leaf.errors.total for leaf in leaves)


_NAME_MIN, _NAME_FIRST, _NAME_SECOND, _NAME_MAX = 8, 18, 28, 44
_NO_RATE = 1.0
"""Top of the scale, bytes/s, as long as no rate of any device is known, or all stand still."""
_SPARK_MAX = 60
_HEAT_MAX = 24
_NOTE_MAX = 44
_BAY_MAX = 14
_ERRORS = ("err_read", "err_write", "err_cksum")
_SPARKS = ("read_spark", "write_spark")
_HEATS = ("lat_heat", "busy_heat")
_WORDS = {
    "err": "errors",
    "err_read": "errors",
    "read": "rates",
    "lat": "latency",
    "busy": "busy",
    "read_spark": "graphs",
    "lat_heat": "strips",
    "note": "notes",
    "read_ops": "operations",
    "slow": "slow",
    "queue": "queue",
    "bay": "bay",
}
"""The first of a group of columns, and what the configuration calls the group."""


class Worth(NamedTuple):
    """What a pool has to show that most pools have not; columns follow from that."""

    errors: bool = False
    """Whether an error counter of any row is not 0."""
    notes: bool = False
    """Whether there is anything to note of a row."""
    bay: int = 0
    """Cells that the widest bay takes; 0 where no bay is known that names don't tell."""
    wanted: frozenset[str] = frozenset(COLUMN_WORDS)
    """The columns that may be shown, as the configuration calls them."""


NOTHING_YET = Worth()


def worth(frame: Frame, look: DisplayFormat, tree: TreeFacts, before: Worth) -> Worth:
    """What this frame has to show, or a frame before it had: columns come once, and stay."""
    return Worth(
        before.errors or tree.errors,
        before.notes
        or bool(frame.troubles)
        or any(cells.is_noted(row, frame, look) for row in frame.rows),
        max(before.bay, tree.widest_bay),
    )


def arrival(has: Worth) -> tuple[tuple[str, ...], ...]:
    """What is added as there is room; a narrow screen drops from the end of this.

    Where a device may have to be found, its bay comes before how busy it is.
    """
    bay = (("bay",),) if has.bay else ()
    sought = has.errors or has.notes
    return (
        ("err",),
        ("read", "write"),
        ("lat",),
        *((_ERRORS,) if has.errors else ()),
        *(bay if sought else ()),
        ("busy",),
        _SPARKS,
        *(() if sought else bay),
        _HEATS,
        ("name",),
        *((("note",),) if has.notes else ()),
        *(() if has.errors else (_ERRORS,)),
        ("read_ops", "write_ops"),
        ("slow",),
        ("queue",),
    )


def arrange(
    width: int, longest: int, number: int = 5, has: Worth = NOTHING_YET
) -> tuple[Column, ...]:
    """The columns that fit ``width`` cells, one cell between two of them.

    ``longest`` is what the longest name with its indent would take, ``number`` the width of a
    rate. Names get up to 18 cells before anything else and up to 28 before the notes; room left
    over goes to the names, then to notes and the past.
    """
    sizes = {"name": max(_NAME_MIN, min(_NAME_FIRST, longest)), "state": _WIDTHS["state"]}
    for group in arrival(has):
        if _WORDS.get(group[0], "") not in {"", *has.wanted}:
            continue
        wanted = {key: _first_width(key, longest, number, has.bay) for key in group}
        if _total(_with(sizes, wanted)) > width:
            break
        sizes = _with(sizes, wanted)
    sizes["name"] = max(1, sizes["name"] - max(0, _total(sizes) - width))
    grown = _grown(sizes, width, longest)
    return tuple(c._replace(width=grown[c.key]) for c in COLUMNS if c.key in grown)


def _with(sizes: Mapping[str, int], wanted: Mapping[str, int]) -> dict[str, int]:
    """Both; the sum of the errors gives way to the counters."""
    both = {**sizes, **wanted}
    if _ERRORS[0] in wanted:
        both.pop("err", None)
    return both


def _first_width(key: str, longest: int, number: int, bay: int) -> int:
    if key == "bay":
        return max(_WIDTHS[key], min(_BAY_MAX, bay))
    if key == "name":
        return max(_NAME_MIN, min(_NAME_SECOND, longest))
    return max(number, _WIDTHS[key]) if key in ("read", "write") else _WIDTHS[key]


def _total(sizes: Mapping[str, int]) -> int:
    return sum(sizes.values()) + len(sizes) - 1


def _grown(sizes: dict[str, int], width: int, longest: int) -> dict[str, int]:
    """The sizes with the spare cells handed out."""
    spare = max(0, width - _total(sizes))
    for keys, most, part in (
        (("name",), max(sizes["name"], min(longest, _NAME_MAX)), 1),
        (("lat",), len("LATENCY"), 1),
        (("note",), _NOTE_MAX, 3),
        (_HEATS, _HEAT_MAX, 2),
        (_SPARKS, _SPARK_MAX, 1),
    ):
        if keys[0] in sizes:
            more = min(spare // part // len(keys), most - sizes[keys[0]])
            sizes |= {key: sizes[key] + more for key in keys}
            spare -= more * len(keys)
    last = "note" if "note" in sizes else "name"
    sizes[last] += spare
    return sizes


def common_scale(frame: Frame, samples: int) -> float:
    """The top of one scale for the reads and writes of all devices over ``samples`` samples."""
    leaves = [row for row in frame.rows if not row.vdev.children]
    peak = frame.series.peak([row.key for row in leaves], ("read", "write"), samples)
    if peak is not None:
        return scale((peak,))
    return scale(rate for row in leaves for rate in row.rates[:2])


def sort_key(columns: Sequence[Column], sort: str) -> str | None:
    """The key of the column that shows what the order goes by, None where none does."""
    wanted = {"latency": ("lat",), "errors": ("err", "err_read")}.get(sort, (sort,))
    return next((column.key for column in columns if column.key in wanted), None)


def heading(panel: Panel, sort: str) -> Line:
    """The titles over the columns; over a picture of the past stands its scale."""
    sorted_key = sort_key(panel.columns, sort)
    spans = []
    for column in panel.columns:
        title = _title(column, panel)
        if column.key == sorted_key:
            mark = panel.look.glyphs.sorted
            title = _SHORT.get(column.key, title)[: max(0, column.width - len(mark))] + mark
        spans.append(Span(_fit(title, column, panel.look), "title"))
    return _spaced(spans, "title")


def _title(column: Column, panel: Panel) -> str:
    if column.key in _SPARKS:
        if panel.top <= _NO_RATE:
            return "-"
        top = units.size(panel.top)
        named = f"scale {top}"
        return named if len(named) <= column.width else f"0-{top}"
    if column.key in _HEATS:  # the levels of a strip and what lies between them: ░5▒20▓80█
        levels, bounds = panel.look.glyphs.heat[1:], column.title.split()
        return levels[0] + "".join(map("".join, zip(bounds, levels[1:], strict=True)))
    whole = len(column.title) <= column.width
    return column.title if whole else _SHORT.get(column.key, column.title)


def row_line(item: TreeLine, panel: Panel) -> Line:
    """The line of one vdev or class title."""
    if item.row is None:
        return (Span(f" {item.title}", "dim"),)
    note = _instead(item.row, panel)
    return _spaced(tuple(_row_cells(item, item.row, panel, note)))


def _row_cells(item: TreeLine, row: VdevRow, panel: Panel, note: str) -> Iterator[Span]:
    """What stands in each column; a ``note`` takes the place of everything about I/O."""
    idle = [c.width for c in panel.columns if c.key in _IO] if note else []
    for column in panel.columns:
        if idle and column.key == "note":
            yield Span(" " * column.width)
        elif not idle or column.key not in _IO:
            text, role = cells.cell(column, item, row, panel)
            yield Span(_fit(text, column, panel.look), role)
        elif column.key == "read":
            room = sum(idle) + len(idle) - 1
            ellipsis = panel.look.glyphs.ellipsis
            role = "error" if row.key in panel.waited_for else "dim"
            yield Span(fit(formerly(note, room, ellipsis), room, ellipsis=ellipsis), role)


def _instead(row: VdevRow, panel: Panel) -> str:
    """The note of a device that can have no I/O, for which those columns have more room."""
    idle = (row.gone or row.vdev.state not in cells.WORKING) and not row.vdev.children
    if not idle or row.vdev.state == "AVAIL":
        return ""
    now = panel.frame.t
    if row.key in panel.waited_for:
        since = row.missing_since
        return "suspended the pool" + (f" {panel.look.when(since, now)}" if since else "")
    return note_words(row, panel.look, now, panel.troubles.get(row.key))


def _fit(text: str, column: Column, look: DisplayFormat) -> str:
    return fit(text, column.width, right=column.right, ellipsis=look.glyphs.ellipsis)


def _spaced(spans: Sequence[Span], role: str = "") -> Line:
    """Each with a blank before it."""
    blank = Span(" ", role)
    return tuple([each for span in spans for each in (blank, span)])


COLUMNS = (
    Column("name", "NAME", _NAME_MIN),
    Column("bay", "BAY", 4),
    Column("state", "  STATE", 13),
    Column("read", "READ/s", 6, right=True),
    Column("read_spark", "", 6),
    Column("write", "WRITE/s", 7, right=True),
    Column("write_spark", "", 6),
    Column("read_ops", "R OPS", 5, right=True),
    Column("write_ops", "W OPS", 5, right=True),
    Column("lat", "LATENCY", 5, right=True),
    Column("lat_heat", "5 20 80", 10),
    Column("busy", "BUSY", 5, right=True),
    Column("busy_heat", "25 50 75", 10),
    Column("queue", "QUEUE", 5, right=True),
    Column("err", "ERR", 4, right=True),
    Column("err_read", "READ", 4, right=True),
    Column("err_write", "WRITE", 5, right=True),
    Column("err_cksum", "CKSUM", 5, right=True),
    Column("slow", "SLOW", 4, right=True),
    Column("note", "NOTE", 17),
)
"""Left to right, as narrow as each may be."""
_WIDTHS = {column.key: column.width for column in COLUMNS}
_SHORT = {"lat": "LAT"}
"""Titles for columns too narrow for theirs."""
_IO = {c.key for c in COLUMNS} - {"name", "bay", "state", "err", *_ERRORS, "slow", "note"}
