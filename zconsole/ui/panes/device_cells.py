"""What stands in each cell of the device list."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from zconsole import units
from zconsole.monitor.frame import Frame, VdevRow
from zconsole.pool.model import Progress
from zconsole.ui.display_format import DisplayFormat, count
from zconsole.ui.panes.device_columns import Column
from zconsole.ui.panes.device_tree import TreeLine
from zconsole.ui.widgets.draw import Line, Span, fit
from zconsole.ui.widgets.glyphs import STATE_MARKS
from zconsole.ui.widgets.short_names import middle
from zconsole.ui.widgets.spark import scale, sparkline

if TYPE_CHECKING:
    from zconsole.diagnosis.device_errors.faults import DeviceFault

WORKING = frozenset({"ONLINE", "DEGRADED", "INUSE"})
"""States in which a device can have I/O to show."""

_STATE_ROLES = {
    "DEGRADED": "warning",
    "FAULTED": "error",
    "UNAVAIL": "error",
    "REMOVED": "error",
    "SUSPENDED": "error",
    "OFFLINE": "notice",
    "AVAIL": "dim",
    "INUSE": "notice",
    "SPLIT": "notice",
}
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
    return (Span(" ", "title"), *_gapped(spans, "title"))


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
        text, role = _CELLS[column.key](item, row, column, panel)
        spans.append(Span(_fit(text, column, panel.look), role))
    return (Span(" "), *_gapped(spans, ""))


def state_words(row: VdevRow) -> tuple[str, str]:
    """The state of a row with its mark, and its role: ``! DEGRADED``, ``~ resilvering``."""
    vdev = row.vdev
    if row.gone:
        return "x gone", "error"
    role = _STATE_ROLES.get(vdev.state, "" if vdev.state == "ONLINE" else "warning")
    if vdev.state in ("ONLINE", "DEGRADED") and not vdev.children:
        for flag, word in (
            (vdev.resilvering, "resilvering"),
            (vdev.awaiting_resilver, "waiting"),
            (vdev.removing, "removing"),
        ):
            if flag:
                return f"~ {word}", "notice"
    mark = STATE_MARKS.get(vdev.state, " ")
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


def _gapped(spans: Sequence[Span], role: str) -> list[Span]:
    out: list[Span] = []
    for span in spans:
        if out:
            out.append(Span(" ", role))
        out.append(span)
    return out


def _name(item: TreeLine, row: VdevRow, column: Column, panel: Panel) -> tuple[str, str]:
    glyphs = panel.look.glyphs
    text = panel.names.get(row.vdev.name) or panel.look.text(row.vdev.name)
    if item.folded:
        text = f"{text} {glyphs.folded}{item.folded}"
    room = max(1, column.width - item.depth)
    return " " * item.depth + middle(text, room, glyphs.ellipsis), ""


def _state(item: TreeLine, row: VdevRow, column: Column, panel: Panel) -> tuple[str, str]:
    words, role = state_words(row)
    if words.startswith(" ") and row.key in panel.troubles:
        words, role = f"!{words[1:]}", role or "warning"
    return panel.look.text(words), role


def _rate(metric: str) -> Callable[[TreeLine, VdevRow, Column, Panel], tuple[str, str]]:
    def cell(item: TreeLine, row: VdevRow, column: Column, panel: Panel) -> tuple[str, str]:
        value: float | None = getattr(row.rates, metric)
        if value is None and row.vdev.children:
            return "", ""
        return panel.look.size(value), ""

    return cell


def _spark(metric: str) -> Callable[[TreeLine, VdevRow, Column, Panel], tuple[str, str]]:
    def cell(item: TreeLine, row: VdevRow, column: Column, panel: Panel) -> tuple[str, str]:
        if row.vdev.children:
            return "", ""
        values = panel.frame.series.tail(row.key, metric, column.width)
        return sparkline(values, column.width, panel.top, panel.look.glyphs), "spark"

    return cell


def _ops(metric: str) -> Callable[[TreeLine, VdevRow, Column, Panel], tuple[str, str]]:
    def cell(item: TreeLine, row: VdevRow, column: Column, panel: Panel) -> tuple[str, str]:
        return count(getattr(row.rates, metric), ""), ""

    return cell


def _latency(item: TreeLine, row: VdevRow, column: Column, panel: Panel) -> tuple[str, str]:
    return units.latency(row.rates.latency), "warning" if row.slow_sibling else ""


def _busy(item: TreeLine, row: VdevRow, column: Column, panel: Panel) -> tuple[str, str]:
    busy = row.rates.busy
    if busy is None:
        return "", ""
    return f"{min(1.0, busy):.0%}", "bold" if busy >= _BUSY_FULL else ""


def _queue(item: TreeLine, row: VdevRow, column: Column, panel: Panel) -> tuple[str, str]:
    queues = row.vdev.queues
    if not queues:
        return "", ""
    return count(sum(pending + active for pending, active in queues.values())), ""


def _errors(item: TreeLine, row: VdevRow, column: Column, panel: Panel) -> tuple[str, str]:
    errors = row.vdev.errors
    if errors.read is None and errors.write is None and errors.cksum is None:
        return "", ""
    return count(errors.total), "error" if errors.total else ""


def _counter(name: str) -> Callable[[TreeLine, VdevRow, Column, Panel], tuple[str, str]]:
    def cell(item: TreeLine, row: VdevRow, column: Column, panel: Panel) -> tuple[str, str]:
        value: int | None = getattr(row.vdev.errors, name)
        role = "warning" if name == "slow" else "error"
        return count(value, ""), role if value else ""

    return cell


def _note(item: TreeLine, row: VdevRow, column: Column, panel: Panel) -> tuple[str, str]:
    trouble = panel.troubles.get(row.key)
    role = "warning" if row.slow_sibling or trouble else "dim"
    return note_words(row, panel.look, panel.frame.t, trouble), role


_CELLS: dict[str, Callable[[TreeLine, VdevRow, Column, Panel], tuple[str, str]]] = {
    "name": _name,
    "state": _state,
    "read": _rate("read"),
    "read_spark": _spark("read"),
    "write": _rate("write"),
    "write_spark": _spark("write"),
    "read_ops": _ops("read_ops"),
    "write_ops": _ops("write_ops"),
    "lat": _latency,
    "busy": _busy,
    "queue": _queue,
    "err": _errors,
    "err_read": _counter("read"),
    "err_write": _counter("write"),
    "err_cksum": _counter("cksum"),
    "slow": _counter("slow"),
    "note": _note,
}
