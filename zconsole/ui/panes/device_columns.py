"""The columns of the device list: which there are at a width, and what stands in each cell."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from zconsole import units
from zconsole.monitor.frame import Frame, VdevRow
from zconsole.pool.model import Progress
from zconsole.ui.display_format import DisplayFormat, count
from zconsole.ui.panes.device_tree import TreeLine
from zconsole.ui.widgets.draw import Line, Span, fit
from zconsole.ui.widgets.short_names import middle
from zconsole.ui.widgets.spark import scale, sparkline

if TYPE_CHECKING:
    from zconsole.diagnosis.device_errors.faults import DeviceFault


class Column(NamedTuple):
    """One column; its width never depends on the values of the moment."""

    key: str
    title: str
    width: int
    cell: Callable[[Cell], tuple[str, str]]
    """What stands in it for a row, and its role."""
    right: bool = False


_NAME_MIN, _NAME_FIRST, _NAME_SECOND, _NAME_MAX = 8, 18, 28, 44
_SPARK_MAX = 60
_NOTE_MAX = 44

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


WORKING = frozenset({"ONLINE", "DEGRADED", "INUSE"})
"""States in which a device can have I/O to show."""

_STATES = {
    "DEGRADED": ("!", "warning"),
    "FAULTED": ("x", "error"),
    "UNAVAIL": ("x", "error"),
    "REMOVED": ("x", "error"),
    "SUSPENDED": ("x", "error"),
    "CANT_OPEN": ("x", "warning"),
    "CORRUPT": ("x", "warning"),
    "OFFLINE": ("-", "notice"),
    "SPLIT": ("-", "notice"),
    "AVAIL": (" ", "dim"),
    "INUSE": (" ", "notice"),
    "ONLINE": (" ", ""),
}
"""Mark before a state word, so that it stands out without color, and its role."""
_SAID_BY_STATE = frozenset({"(resilvering)", "(awaiting resilver)", "(removing)"})
_SUSPECTS = {"cable": "cable?", "disk": "failing?"}
"""What new errors speak for, in a word; the detail says why."""
_BUSY_FULL = 0.95


@dataclass(frozen=True, slots=True)
class Panel:
    """What all rows of one painting of the device list share."""

    frame: Frame
    look: DisplayFormat
    columns: tuple[Column, ...]
    names: Mapping[str, str]
    """Name of a leaf to how it is shown."""
    top: float
    """Top of the scale of every sparkline, bytes/s."""
    troubles: Mapping[str, DeviceFault] = field(default_factory=dict)
    """By the key of their row."""


def common_scale(frame: Frame, samples: int) -> float:
    """The top of one scale for the reads and writes of all devices over ``samples`` samples."""
    series = frame.series
    leaves = [row for row in frame.rows if not row.vdev.children]
    peaks: list[float | None] = []
    for row in leaves:
        for metric, now in (("read", row.rates.read), ("write", row.rates.write)):
            known = [v for v in series.tail(row.key, metric, samples) if v is not None]
            peaks.append(max(known, default=now))
    return scale(peaks)


def sort_key(columns: Sequence[Column], sort: str) -> str | None:
    """The key of the column that shows what the order goes by, None where none does."""
    wanted = {"latency": ("lat",), "errors": ("err", "err_read")}.get(sort, (sort,))
    return next((column.key for column in columns if column.key in wanted), None)


def heading(panel: Panel, sort: str) -> Line:
    """The titles over the columns; over a sparkline stands the top of its scale."""
    sorted_key = sort_key(panel.columns, sort)
    spans = []
    for column in panel.columns:
        title = column.title
        if column.key == sorted_key:
            mark = panel.look.glyphs.sorted
            title = title[: max(0, column.width - len(mark))] + mark
        if column.key in ("read_spark", "write_spark"):
            title = f"0-{units.size(panel.top)}"
        spans.append(Span(_fit(title, column, panel.look), "title"))
    return _spaced(spans, "title")


def row_line(item: TreeLine, panel: Panel) -> Line:
    """The line of one vdev or class title."""
    if item.row is None:
        return (Span(f" {item.title}", "dim"),)
    row = item.row
    spans: list[Span] = []
    for index, column in enumerate(panel.columns):
        if column.key == "read" and (note := _instead(row, panel)):
            width = sum(c.width + 1 for c in panel.columns[index:]) - 1
            spans.append(Span(fit(note, width, ellipsis=panel.look.glyphs.ellipsis), "dim"))
            break
        text, role = column.cell(Cell(item, row, column.width, panel))
        spans.append(Span(_fit(text, column, panel.look), role))
    return _spaced(spans)


def state_words(row: VdevRow) -> tuple[str, str]:
    """The state of a row with its mark, and its role: ``! DEGRADED``, ``~ resilvering``."""
    vdev = row.vdev
    if row.gone:
        return "x gone", "error"
    if vdev.state in ("ONLINE", "DEGRADED") and not vdev.children:
        for flag, word in (
            (vdev.resilvering, "resilvering"),
            (vdev.awaiting_resilver, "waiting"),
            (vdev.removing, "removing"),
        ):
            if flag:
                return f"~ {word}", "notice"
    mark, role = _STATES.get(vdev.state, (" ", "warning"))
    if mark == " " and row.slow_sibling:
        return f"! {vdev.state}", "warning"
    return f"{mark} {vdev.state}", role


def note_words(
    row: VdevRow, look: DisplayFormat, now: float, trouble: DeviceFault | None = None
) -> str:
    """Everything worth saying about a row that no other column has."""
    vdev = row.vdev
    parts = [look.text(vdev.note)] if vdev.note and vdev.note not in _SAID_BY_STATE else []
    if trouble is not None and trouble.cause in _SUSPECTS:
        parts.insert(0, _SUSPECTS[trouble.cause])
    if row.slow_sibling:
        parts.insert(0, look.text(row.slow_sibling))
    if row.missing_since is not None:
        word = "degraded" if vdev.state == "DEGRADED" else "gone"
        parts.insert(0, f"{word} since {look.when(row.missing_since, now)}")
    for word, progress in (("trim", vdev.trim), ("initialize", vdev.initialize)):
        if said := _progress(word, progress):
            parts.append(said)
    if vdev.errors.slow:
        parts.append(f"{count(vdev.errors.slow)} slow I/Os")
    return ", ".join(parts)


def _progress(word: str, progress: Progress | None) -> str:
    if progress is None or progress.state in ("complete", "canceled"):
        return ""
    share = "" if progress.share is None else f" {progress.share:.0%}"
    return f"{word} {progress.state}{share}" if progress.state != "active" else f"{word}{share}"


def _instead(row: VdevRow, panel: Panel) -> str:
    """A note over the columns of a device that can have no I/O, where no column has notes."""
    idle = (row.gone or row.vdev.state not in WORKING) and not row.vdev.children
    if not idle or row.vdev.state == "AVAIL":
        return ""
    return note_words(row, panel.look, panel.frame.t, panel.troubles.get(row.key))


def _fit(text: str, column: Column, look: DisplayFormat) -> str:
    return fit(text, column.width, right=column.right, ellipsis=look.glyphs.ellipsis)


def _spaced(spans: Sequence[Span], role: str = "") -> Line:
    """Each with a blank before it."""
    return tuple(each for span in spans for each in (Span(" ", role), span))


class Cell(NamedTuple):
    """Where something is to stand."""

    item: TreeLine
    row: VdevRow
    width: int
    panel: Panel


def _name(at: Cell) -> tuple[str, str]:
    look, item = at.panel.look, at.item
    text = at.panel.names.get(at.row.vdev.name) or look.text(at.row.vdev.name)
    if item.folded:
        text = f"{text} {look.glyphs.folded}{item.folded}"
    room = max(1, at.width - item.depth)
    return " " * item.depth + middle(text, room, look.glyphs.ellipsis), ""


def _state(at: Cell) -> tuple[str, str]:
    words, role = state_words(at.row)
    if words.startswith(" ") and at.row.key in at.panel.troubles:
        words, role = f"!{words[1:]}", role or "warning"
    return at.panel.look.text(words), role


def _rate(metric: str, at: Cell) -> tuple[str, str]:
    value: float | None = getattr(at.row.rates, metric)
    if value is None and at.row.vdev.children:
        return "", ""
    return at.panel.look.size(value), ""


def _spark(metric: str, at: Cell) -> tuple[str, str]:
    if at.row.vdev.children:
        return "", ""
    values = at.panel.frame.series.tail(at.row.key, metric, at.width)
    return sparkline(values, at.width, at.panel.top, at.panel.look.glyphs), "spark"


def _ops(metric: str, at: Cell) -> tuple[str, str]:
    return count(getattr(at.row.rates, metric), ""), ""


def _latency(at: Cell) -> tuple[str, str]:
    return units.latency(at.row.rates.latency), "warning" if at.row.slow_sibling else ""


def _busy(at: Cell) -> tuple[str, str]:
    busy = at.row.rates.busy
    if busy is None:
        return "", ""
    return f"{min(1.0, busy):.0%}", "bold" if busy >= _BUSY_FULL else ""


def _queue(at: Cell) -> tuple[str, str]:
    queues = at.row.vdev.queues
    if not queues:
        return "", ""
    return count(sum(pending + active for pending, active in queues.values())), ""


def _errors(at: Cell) -> tuple[str, str]:
    errors = at.row.vdev.errors
    if errors.read is None and errors.write is None and errors.cksum is None:
        return "", ""
    return count(errors.total), "error" if errors.total else ""


def _counter(name: str, at: Cell) -> tuple[str, str]:
    value: int | None = getattr(at.row.vdev.errors, name)
    role = "warning" if name == "slow" else "error"
    return count(value, ""), role if value else ""


def _note(at: Cell) -> tuple[str, str]:
    row, panel = at.row, at.panel
    trouble = panel.troubles.get(row.key)
    role = "warning" if row.slow_sibling or trouble else "dim"
    return note_words(row, panel.look, panel.frame.t, trouble), role


COLUMNS = (
    Column("name", "NAME", _NAME_MIN, _name),
    Column("state", "  STATE", 13, _state),
    Column("read", "READ", 5, partial(_rate, "read"), right=True),
    Column("read_spark", "", 7, partial(_spark, "read")),
    Column("write", "WRITE", 5, partial(_rate, "write"), right=True),
    Column("write_spark", "", 7, partial(_spark, "write")),
    Column("read_ops", "R/s", 5, partial(_ops, "read_ops"), right=True),
    Column("write_ops", "W/s", 5, partial(_ops, "write_ops"), right=True),
    Column("lat", "LAT", 5, _latency, right=True),
    Column("busy", "BUSY", 4, _busy, right=True),
    Column("queue", "QUEUE", 5, _queue, right=True),
    Column("err", "ERR", 4, _errors, right=True),
    Column("err_read", "RD", 4, partial(_counter, "read"), right=True),
    Column("err_write", "WR", 4, partial(_counter, "write"), right=True),
    Column("err_cksum", "CK", 4, partial(_counter, "cksum"), right=True),
    Column("slow", "SLOW", 4, partial(_counter, "slow"), right=True),
    Column("note", "NOTE", 18, _note),
)
"""Left to right, as narrow as each may be."""
_WIDTHS = {column.key: column.width for column in COLUMNS}
