"""Cells of the device list: words, numbers, sparklines and heat strips."""

from __future__ import annotations

from collections.abc import Mapping
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

_STEPS = {"latency": (0.005, 0.02, 0.08), "busy": (0.25, 0.5, 0.75)}
"""Levels from which a cell of a strip is darker: seconds of latency, share of time busy."""

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
"""Mark before a state, so that it stands out without color, and role of the state."""
_SINCE = {"DEGRADED": "degraded", "OFFLINE": "offline"}
"""Word before the time since which a device is in this state; "missing" for other states."""
_SAID_BY_STATE = frozenset({"(resilvering)", "(awaiting resilver)", "(removing)"})
_SUSPECTS = {"cable": "cable?", "disk": "failing?", "unclear": "new trouble"}
"""Likely cause of new errors in a word; the details explain it."""
_BUSY_FULL = 0.95


class Column(NamedTuple):
    """A column of the list; its width never depends on current values."""

    key: str
    title: str
    width: int
    right: bool = False


@dataclass(frozen=True, slots=True)
class Panel:
    """Data that all rows share when the device list is painted."""

    frame: Frame
    look: DisplayFormat
    columns: tuple[Column, ...]
    names: Mapping[str, str]
    """Displayed name of each leaf, by name."""
    top: float
    """Top of the scale of all sparklines, in bytes/s."""
    troubles: Mapping[str, DeviceFault] = field(default_factory=dict)
    """Troubles by the key of their row."""
    waited_for: frozenset[str] = frozenset()
    """Keys of the devices whose loss suspended the pool."""


def state_words(row: VdevRow) -> tuple[str, str]:
    """Return the state of a row with its mark, and its role: ``! DEGRADED``, ``~ resilvering``."""
    vdev = row.vdev
    if row.gone:
        return "x missing", "error"
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
    """Return everything notable about a row that no other column shows."""
    vdev = row.vdev
    parts = [look.text(vdev.note)] if vdev.note and vdev.note not in _SAID_BY_STATE else []
    if row.slow_sibling:
        parts.insert(0, look.text(row.slow_sibling))
    if trouble is not None:
        parts.insert(0, _SUSPECTS[trouble.cause])
    if row.missing_since is not None:
        word = _SINCE.get(vdev.state, "missing")
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
    """Return whether a row has a note; called for every row, so cheap checks come first."""
    vdev = row.vdev
    if row.slow_sibling or row.missing_since is not None or vdev.errors.slow:
        return True
    if not (vdev.note or vdev.trim or vdev.initialize):
        return False
    return bool(note_words(row, look, frame.t))


def cell(column: Column, item: TreeLine, row: VdevRow, panel: Panel) -> tuple[str, str]:
    """Return the text of a row in a column, and its role."""
    look, width = panel.look, column.width
    match column.key:
        case "name":  # indented, with the number of rows folded below it
            text = panel.names.get(row.vdev.name) or look.text(row.vdev.name)
            if item.folded:
                text = f"{text} {look.glyphs.folded}{item.folded}"
            room = max(1, width - item.depth)
            return " " * item.depth + middle(text, room, look.glyphs.ellipsis), ""
        case "bay":
            disk = row.vdev.disk
            return look.middle(disk.bay if disk else "", width), ""
        case "state":
            return _state_cell(row, panel)
        case "note":
            trouble = panel.troubles.get(row.key)
            said = note_words(row, look, panel.frame.t, trouble)
            role = "warning" if row.slow_sibling or trouble else "dim"
            return formerly(said, width, look.glyphs.ellipsis), role
        case "err" | "err_read" | "err_write" | "err_cksum" | "slow":
            return _error_cell(column.key.removeprefix("err_"), row)
    return _io_cell(column, row, panel)


def _state_cell(row: VdevRow, panel: Panel) -> tuple[str, str]:
    """Return the state with its mark; errors or new trouble also give an ONLINE row a mark.

    For a suspended pool, zpool prints the state of its vdevs in this place; show SUSPENDED instead,
    as in the header.
    """
    if panel.frame.suspended and row.vdev is panel.frame.root:
        mark, role = _STATES["SUSPENDED"]
        return f"{mark} SUSPENDED", role
    words, role = state_words(row)
    if words.startswith(" ") and (row.key in panel.troubles or row.vdev.errors.total):
        words, role = f"!{words[1:]}", role or "warning"
    return panel.look.text(words), role


def _error_cell(name: str, row: VdevRow) -> tuple[str, str]:
    """Return one of the counters that zpool clear resets; ``err`` is their sum."""
    errors = row.vdev.errors
    if name == "err":
        known = (errors.read, errors.write, errors.cksum) != (None, None, None)
        return (count(errors.total), "error" if errors.total else "dim") if known else ("", "")
    value: int | None = getattr(errors, name)
    bad = "warning" if name == "slow" else "error"
    return count(value, ""), bad if value else "dim"


def _io_cell(column: Column, row: VdevRow, panel: Panel) -> tuple[str, str]:
    """Return a rate, latency or queue if known; sparklines and strips are for leaves only."""
    rates, vdev, look, width = row.rates, row.vdev, panel.look, column.width
    said, role = "", ""
    match column.key:
        case "read" | "write":
            value: float | None = getattr(rates, column.key)
            said = "" if value is None and vdev.children else look.size(value)
        case "read_spark" | "write_spark" if not vdev.children:
            past = panel.frame.series.tail(row.key, column.key.removesuffix("_spark"), width)
            said, role = sparkline(past, width, panel.top, look.glyphs), "spark"
        case "read_ops" | "write_ops":
            said = count(getattr(rates, column.key), "")
        case "lat":
            said, role = units.latency(rates.latency), "warning" if row.slow_sibling else ""
        case "busy" if rates.busy is not None:
            said = percent(min(1.0, rates.busy), 0)
            role = "bold" if rates.busy >= _BUSY_FULL else ""
        case "lat_heat" | "busy_heat" if not vdev.children:
            # The shade shows the value, the color how it compares with siblings.
            metric = "busy" if column.key == "busy_heat" else "latency"
            past = panel.frame.series.tail(row.key, metric, width)
            said = heat_strip(past, width, _STEPS[metric], look.glyphs)
            role = "warning" if row.slow_sibling else "spark"
        case "queue" if vdev.queues:
            said = count(sum(pending + active for pending, active in vdev.queues.values()))
    return said, role
