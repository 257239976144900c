"""What stands in the cells of the device list: words, numbers, and pictures of the past."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from zconsole import units
from zconsole.pool.model import Progress
from zconsole.timeline.frame import Frame, VdevRow
from zconsole.ui.display_format import DisplayFormat, count, percent
from zconsole.ui.panes.device_tree import TreeLine
from zconsole.ui.widgets.graph import heat_strip, sparkline
from zconsole.ui.widgets.short_names import formerly, middle

if TYPE_CHECKING:
    from zconsole.diagnosis.device_errors.faults import DeviceFault

STEPS = {"latency": (0.005, 0.02, 0.08), "busy": (0.25, 0.5, 0.75)}
"""Seconds, and shares, from which a cell of a strip is a level darker."""

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
_SINCE = {"DEGRADED": "degraded", "OFFLINE": "offline"}
"""How a device is since it is not whole, by its state; others are gone."""
_SAID_BY_STATE = frozenset({"(resilvering)", "(awaiting resilver)", "(removing)"})
_SUSPECTS = {"cable": "cable?", "disk": "failing?", "unclear": "new trouble"}
"""What new errors speak for, in a word; the detail says why."""
_BUSY_FULL = 0.95


class Column(NamedTuple):
    """One column; its width never depends on the values of the moment."""

    key: str
    title: str
    width: int
    cell: Callable[[Cell], tuple[str, str]]
    """What stands in it for a row, and its role."""
    right: bool = False


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
    waited_for: frozenset[str] = frozenset()
    """Keys of the devices whose loss suspended the pool."""


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
    if row.slow_sibling:
        parts.insert(0, look.text(row.slow_sibling))
    if trouble is not None:
        parts.insert(0, _SUSPECTS[trouble.cause])
    if row.missing_since is not None:
        word = _SINCE.get(vdev.state, "gone")
        parts.insert(0, f"{word} since {look.when(row.missing_since, now)}")
    for word, progress in (("trim", vdev.trim), ("initialize", vdev.initialize)):
        if said := _progress(word, progress):
            parts.append(said)
    if vdev.errors.slow:
        parts.append(f"{count(vdev.errors.slow)} slow I/O{'s' * (vdev.errors.slow != 1)}")
    return ", ".join(parts)


def _progress(word: str, progress: Progress | None) -> str:
    if progress is None or progress.state in ("complete", "canceled"):
        return ""
    share = "" if progress.share is None else f" {percent(progress.share, 0)}"
    return f"{word} {progress.state}{share}" if progress.state != "active" else f"{word}{share}"


def is_noted(row: VdevRow, frame: Frame, look: DisplayFormat) -> bool:
    """Whether there is something to note of a row; asked of every row, so the cheap part first."""
    vdev = row.vdev
    if row.slow_sibling or row.missing_since is not None or vdev.errors.slow:
        return True
    if not (vdev.note or vdev.trim or vdev.initialize):
        return False
    return bool(note_words(row, look, frame.t))


class Cell(NamedTuple):
    """One cell of the list: of which row, how wide, and what all rows share."""

    item: TreeLine
    row: VdevRow
    width: int
    panel: Panel


def name_cell(at: Cell) -> tuple[str, str]:
    """Its name, indented, and how many rows are folded below it."""
    look, item = at.panel.look, at.item
    text = at.panel.names.get(at.row.vdev.name) or look.text(at.row.vdev.name)
    if item.folded:
        text = f"{text} {look.glyphs.folded}{item.folded}"
    room = max(1, at.width - item.depth)
    return " " * item.depth + middle(text, room, look.glyphs.ellipsis), ""


def bay_words(row: VdevRow) -> str:
    """Where its disk sits, unless its name says it: disks may be named by their bay."""
    disk = row.vdev.disk
    return "" if disk is None or disk.bay == row.vdev.name else disk.bay


def bay_cell(at: Cell) -> tuple[str, str]:
    """Where its disk sits."""
    look = at.panel.look
    disk = at.row.vdev.disk
    return look.middle(disk.bay if disk else "", at.width), ""


def state_cell(at: Cell) -> tuple[str, str]:
    """Its state with a mark, also where only its errors speak against it.

    Of a suspended pool zpool prints the state of its vdevs there: it is SUSPENDED, as above.
    """
    frame = at.panel.frame
    if frame.suspended and at.row.vdev is frame.root:
        mark, role = _STATES["SUSPENDED"]
        return f"{mark} SUSPENDED", role
    words, role = state_words(at.row)
    if words.startswith(" ") and (at.row.key in at.panel.troubles or at.row.vdev.errors.total):
        words, role = f"!{words[1:]}", role or "warning"
    return at.panel.look.text(words), role


def rate_cell(metric: str, at: Cell) -> tuple[str, str]:
    """Bytes a second."""
    value: float | None = getattr(at.row.rates, metric)
    if value is None and at.row.vdev.children:
        return "", ""
    return at.panel.look.size(value), ""


def spark_cell(metric: str, at: Cell) -> tuple[str, str]:
    """Bytes a second over time, on the scale of all devices."""
    if at.row.vdev.children:
        return "", ""
    values = at.panel.frame.series.tail(at.row.key, metric, at.width)
    return sparkline(values, at.width, at.panel.top, at.panel.look.glyphs), "spark"


def ops_cell(metric: str, at: Cell) -> tuple[str, str]:
    """Operations a second."""
    return count(getattr(at.row.rates, metric), ""), ""


def latency_cell(at: Cell) -> tuple[str, str]:
    """The mean latency of its I/O."""
    return units.latency(at.row.rates.latency), "warning" if at.row.slow_sibling else ""


def busy_cell(at: Cell) -> tuple[str, str]:
    """The share of time in which it had I/O in flight."""
    busy = at.row.rates.busy
    if busy is None:
        return "", ""
    return percent(min(1.0, busy), 0), "bold" if busy >= _BUSY_FULL else ""


def heat_cell(metric: str, at: Cell) -> tuple[str, str]:
    """The past as a strip: how dark says how much, the color how it compares with siblings."""
    if at.row.vdev.children:
        return "", ""
    values = at.panel.frame.series.tail(at.row.key, metric, at.width)
    strip = heat_strip(values, at.width, STEPS[metric], at.panel.look.glyphs)
    return strip, "warning" if at.row.slow_sibling else "spark"


def queue_cell(at: Cell) -> tuple[str, str]:
    """Requests waiting and in flight."""
    queues = at.row.vdev.queues
    if not queues:
        return "", ""
    return count(sum(pending + active for pending, active in queues.values())), ""


def errors_cell(at: Cell) -> tuple[str, str]:
    """All errors together, where the counters have no room."""
    errors = at.row.vdev.errors
    if errors.read is None and errors.write is None and errors.cksum is None:
        return "", ""
    return count(errors.total), "error" if errors.total else "dim"


def counter_cell(name: str, at: Cell) -> tuple[str, str]:
    """One of the counters that zpool clear sets to 0."""
    value: int | None = getattr(at.row.vdev.errors, name)
    role = "warning" if name == "slow" else "error"
    return count(value, ""), role if value else "dim"


def note_cell(at: Cell) -> tuple[str, str]:
    """Everything else worth saying."""
    row, panel = at.row, at.panel
    trouble = panel.troubles.get(row.key)
    role = "warning" if row.slow_sibling or trouble else "dim"
    said = note_words(row, panel.look, panel.frame.t, trouble)
    return formerly(said, at.width, panel.look.glyphs.ellipsis), role
