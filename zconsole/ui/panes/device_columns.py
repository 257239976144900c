"""Columns of the device list: which ones fit a width, their headings, rows and cells.

The choice depends on all vdevs of a pool, also hidden ones (``TreeFacts``), so that scrolling and
folding don't change it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from rich.cells import cell_len

from zconsole import units
from zconsole.config.settings import COLUMNS as COLUMN_WORDS
from zconsole.pool.model import Vdev
from zconsole.pool.redundancy import REPAIRS
from zconsole.timeline.frame import Frame, VdevRow
from zconsole.ui.display_format import DisplayFormat, count
from zconsole.ui.widgets.draw import Line, Span, fit, formerly, middle
from zconsole.ui.widgets.graph import heat_strip, scale, sparkline
from zconsole.units import percent

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
"""Share of time busy from which a device is marked."""


class TreeLine(NamedTuple):
    """A line of the list: a vdev, the title of a class, or a line of a vdev's details."""

    key: str
    depth: int
    row: VdevRow | None = None
    title: str = ""
    folded: int = 0
    """Number of rows hidden below a folded row."""
    detail: int | None = None
    """Index of a line of details; None for the row itself."""


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


def _is_filled(frame: Frame, vdev: Vdev) -> bool:
    """Return whether a running repair fills a leaf, also before its first block is written."""
    if vdev.resilvering or not vdev.unfilled or vdev.awaiting_resilver or frame.root is None:
        return vdev.resilvering
    tops = {t.name for t in frame.root.children if any(v.name == vdev.name for v in t.walk())}
    repairs = (view.scan for view in frame.scans if view.scan.function in REPAIRS)
    # A resilver is of the whole pool and names no vdev; a rebuild is of one top-level vdev.
    return any(scan.state == "running" and scan.vdev in (None, *tops) for scan in repairs)


def state_words(frame: Frame, row: VdevRow) -> tuple[str, str]:
    """Return the state of a row with its mark, and its role: ``! DEGRADED``, ``~ resilvering``."""
    vdev = row.vdev
    if row.gone:
        return "x missing", "error"
    if vdev.state in ("ONLINE", "DEGRADED") and not vdev.children:
        for flag, word in (
            (_is_filled(frame, vdev), "resilvering"),
            (vdev.awaiting_resilver or vdev.unfilled, "waiting"),
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
        if progress is not None and progress.state not in ("complete", "canceled"):
            state = "" if progress.state == "active" else f" {progress.state}"
            share = "" if progress.share is None else f" {percent(progress.share)}"
            parts.append(f"{word}{state}{share}")
    if vdev.errors.slow:
        parts.append(f"{count(vdev.errors.slow)} slow I/O{'s' * (vdev.errors.slow != 1)}")
    return ", ".join(parts)


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
    look, width, vdev, errors = panel.look, column.width, row.vdev, row.vdev.errors
    text = role = ""
    match column.key:
        case "name":  # indented, with the number of rows folded below it
            named = panel.names.get(vdev.name) or look.text(vdev.name)
            if item.folded:
                named = f"{named} {look.glyphs.folded}{item.folded}"
            room = max(1, width - item.depth)
            text = " " * item.depth + middle(named, room, look.glyphs.ellipsis)
        case "bay":
            text = look.middle(vdev.disk.bay if vdev.disk else "", width)
        case "state" if panel.frame.suspended and vdev is panel.frame.root:
            # zpool prints the state of the vdevs here; the header says SUSPENDED, too.
            mark, role = _STATES["SUSPENDED"]
            text = f"{mark} SUSPENDED"
        case "state":
            words, role = state_words(panel.frame, row)
            # Errors or new trouble also give an ONLINE row a mark.
            if words.startswith(" ") and (row.key in panel.troubles or errors.total):
                words, role = f"!{words[1:]}", role or "warning"
            text = look.text(words)
        case "note":
            trouble = panel.troubles.get(row.key)
            said = note_words(row, look, panel.frame.t, trouble)
            role = "warning" if row.slow_sibling or trouble else "dim"
            text = formerly(said, width, look.glyphs.ellipsis)
        case "err" if (errors.read, errors.write, errors.cksum) != (None, None, None):
            # The sum of the counters that zpool clear resets.
            text, role = count(errors.total), "error" if errors.total else "dim"
        case "err_read" | "err_write" | "err_cksum" | "slow":
            value: int | None = getattr(errors, column.key.removeprefix("err_"))
            bad = "warning" if column.key == "slow" else "error"
            text, role = count(value, ""), bad if value else "dim"
        case _:
            text, role = _io_cell(column, row, panel)
    return text, role


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
            said = percent(min(1.0, rates.busy))
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


class TreeFacts(NamedTuple):
    """Facts about all vdevs of a frame; widths in cells."""

    longest: int = 8
    """Width of the longest name with its indent."""
    names: tuple[str, ...] = ()
    """Names of the leaves, without duplicates."""
    longest_leaf: int = 0
    """Width of the longest name of a leaf."""
    deepest: int = 0
    """Largest indent of a leaf."""
    bays: Mapping[str, str] = {}
    """Bays by leaf name; empty if the name tells the bay."""
    widest_bay: int = 0
    errors: bool = False
    """Whether any row has errors."""
    filled: frozenset[str] = frozenset()
    """Keys of the disks that are being filled, or will be once the metadata is scanned."""


def tree_facts(frame: Frame) -> TreeFacts:
    """Collect the facts of a frame."""
    leaves = [row for row in frame.rows if not row.vdev.children]
    disks = ((row.vdev.name, row.vdev.disk) for row in leaves)
    bays = {name: disk.bay if disk and disk.bay != name else "" for name, disk in disks}
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


_NAME_MIN, _NAME_FIRST, _NAME_SECOND, _NAME_MAX = 8, 18, 28, 44
_NO_RATE = 1.0
"""Top of the scale in bytes/s while no rate is known, or all rates are 0."""
_SPARK_MAX = 60
_HEAT_MAX = 24
_NOTE_MAX = 44
_BAY_MAX = 14
_ERRORS = ("err_read", "err_write", "err_cksum")
_SPARKS = ("read_spark", "write_spark")
_SCALE = len("scale 512M")
"""Cells of the longest scale of a sparkline."""
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
"""Name of each group of columns in the configuration, by the first column of the group."""


class Needs(NamedTuple):
    """Features of a pool that need columns of their own, which most pools don't."""

    errors: bool = False
    """Whether any row has errors."""
    notes: bool = False
    """Whether any row has a note."""
    bay: int = 0
    """Cells of the widest bay; 0 if no bay is known, or the names tell all of them."""
    wanted: frozenset[str] = frozenset(COLUMN_WORDS)
    """Groups of columns that may be shown, by their names in the configuration."""


NO_NEEDS = Needs()


def by_importance(has: Needs) -> tuple[tuple[str, ...], ...]:
    """Return groups of columns in the order in which they get room; narrow screens lack the last.

    If a device may have to be found, its bay comes before its load.
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


def arrange(width: int, longest: int, number: int = 5, has: Needs = NO_NEEDS) -> tuple[Column, ...]:
    """Return the columns that fit ``width`` cells, with one cell between two of them.

    ``longest`` is the width of the longest name with its indent, ``number`` the width of a rate.
    Names get up to 18 cells before anything else, and up to 28 before the notes; what is left goes
    to names, then to latency, notes, strips and sparklines.
    """
    widths = _WIDTHS | {
        "name": max(_NAME_MIN, min(_NAME_SECOND, longest)),
        "bay": max(_WIDTHS["bay"], min(_BAY_MAX, has.bay)),
        "read": max(_WIDTHS["read"], number),
        "write": max(_WIDTHS["write"], number),
    }
    sizes = {"name": max(_NAME_MIN, min(_NAME_FIRST, longest)), "state": _WIDTHS["state"]}
    for group in by_importance(has):
        if _WORDS.get(group[0], "") not in {"", *has.wanted}:
            continue
        wanted = sizes | {key: widths[key] for key in group}
        if group == _ERRORS:  # their sum is dropped
            wanted.pop("err", None)
        if _total(wanted) > width:  # less important ones do not jump in
            break
        sizes = wanted
    sizes["name"] = max(1, sizes["name"] - max(0, _total(sizes) - width))
    grown = _grown(sizes, width, longest)
    return tuple(c._replace(width=grown[c.key]) for c in COLUMNS if c.key in grown)


def _total(sizes: Mapping[str, int]) -> int:
    return sum(sizes.values()) + len(sizes) - 1


def _grown(sizes: dict[str, int], width: int, longest: int) -> dict[str, int]:
    """Return the sizes with the spare cells distributed."""
    spare = max(0, width - _total(sizes))
    # Columns, their greatest width, and the divisor of their share of the spare cells.
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
    """Return the top of a common scale for all reads and writes over ``samples`` samples."""
    leaves = [row for row in frame.rows if not row.vdev.children]
    peak = frame.series.peak([row.key for row in leaves], ("read", "write"), samples)
    if peak is not None:
        return scale((peak,))
    return scale(rate for row in leaves for rate in row.rates[:2])


def sort_key(columns: Sequence[Column], sort: str) -> str | None:
    """Return the key of the column that the list is sorted by; None if it isn't shown."""
    wanted = {"latency": ("lat",), "errors": ("err", "err_read")}.get(sort, (sort,))
    return next((column.key for column in columns if column.key in wanted), None)


def heading(panel: Panel, sort: str) -> Line:
    """Return the line of headings; a sparkline's or strip's heading is its scale."""
    sorted_key, top = sort_key(panel.columns, sort), units.size(panel.top)
    full_bar = panel.look.glyphs.spark[-1]
    spans, blank = list[Span](), Span(" ", "title")
    for column in panel.columns:
        title = column.title
        if column.key in _SPARKS:
            # The same form for every top: the heading would change as rates do.
            title = f"scale {top}" if column.width >= _SCALE else f"{full_bar}={top}"
            title = "-" if panel.top <= _NO_RATE else title
        elif column.key in _HEATS:
            # The levels of a strip, with the bounds between them: ░5▒20▓80█
            levels, bounds = panel.look.glyphs.heat[1:], title.split()
            title = levels[0] + "".join(map("".join, zip(bounds, levels[1:], strict=True)))
        elif len(title) > column.width:
            title = _SHORT.get(column.key, title)
        if column.key == sorted_key:
            mark = panel.look.glyphs.sorted
            title = _SHORT.get(column.key, title)[: max(0, column.width - len(mark))] + mark
        spans += (blank, Span(_fit(title, column, panel.look), "title"))
    return tuple(spans)


def row_line(item: TreeLine, panel: Panel) -> Line:
    """Return the line of a vdev, or the title of a class."""
    if (row := item.row) is None:
        return (Span(f" {item.title}", "dim"),)
    # A note takes the place of the I/O columns of a device that can't have I/O.
    note, now, trouble = "", panel.frame.t, panel.troubles.get(row.key)
    if not row.vdev.children and (row.gone or row.vdev.state not in (*WORKING, "AVAIL")):
        note = note_words(row, panel.look, now, trouble)
        if row.key in panel.waited_for:
            since = row.missing_since
            note = "suspended the pool" + (f" {panel.look.when(since, now)}" if since else "")
    spans, blank = list[Span](), Span(" ")
    idle = [c.width for c in panel.columns if c.key in _IO] if note else []
    for column in panel.columns:
        if idle and column.key == "note":
            spans += (blank, Span(" " * column.width))
        elif not idle or column.key not in _IO:
            text, role = cell(column, item, row, panel)
            spans += (blank, Span(_fit(text, column, panel.look), role))
        elif column.key == "read":  # the note takes the place of all I/O columns
            room = sum(idle) + len(idle) - 1
            ellipsis = panel.look.glyphs.ellipsis
            role = "error" if row.key in panel.waited_for else "dim"
            text = fit(formerly(note, room, ellipsis), room, ellipsis=ellipsis)
            spans += (blank, Span(text, role))
    return tuple(spans)


def _fit(text: str, column: Column, look: DisplayFormat) -> str:
    return fit(text, column.width, right=column.right, ellipsis=look.glyphs.ellipsis)


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
"""All columns from left to right, with their least widths."""
_WIDTHS = {column.key: column.width for column in COLUMNS}
_SHORT = {"lat": "LAT"}
"""Shorter headings for narrow columns."""
_IO = {c.key for c in COLUMNS} - {"name", "bay", "state", "err", *_ERRORS, "slow", "note"}
