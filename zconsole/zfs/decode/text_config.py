"""The tree of vdevs below ``config:``, nested by indentation.

Rows: print_status_config in cmd/zpool/zpool_main.c: a TAB, two blanks a level, the name padded
to one column, STATE, READ, WRITE, CKSUM and, when asked for, SLOW, POWER and DIO; then notes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import tzinfo
from functools import partial
from itertools import zip_longest
from typing import Any

from zconsole.pool.model import GROUP_KINDS, UNKNOWN_KIND, ErrorCounters, Progress, Vdev
from zconsole.pool.topology import APART
from zconsole.units import parse_size
from zconsole.zfs.decode.builders import VdevForm, root_of
from zconsole.zfs.decode.devices import Devices
from zconsole.zfs.decode.text_rows import Columns, ConfigRow, row_of, unwrapped
from zconsole.zfs.decode.values import parse_date
from zconsole.zfs.decode.words import CLASSES, draid_shape, kind_of, leaf_kind, parity_of

_CHILDLESS = frozenset({"dspare", "indirect", "hole", "missing"})
_DEVICES_OF_A_GROUP = 2
"""The old device and the new one, in a replacing or spare group."""
UNKNOWN_STATE = "UNKNOWN"
"""State of a root vdev that the text does not show."""


_LEVEL = 2
"""Blanks a level."""


class _Node:
    """A row and the rows nested below it."""

    def __init__(self, row: ConfigRow, vclass: str, indent: int) -> None:
        """``indent``: where the row should stand, its own unless that was lost on the way here."""
        self.row = row
        self.vclass = vclass
        self.indent = indent
        self.children: list[_Node] = []
        self.partial = False
        """Whether its devices can't be told from vdevs that are printed below them."""

    @property
    def holds_others(self) -> bool:
        """Whether a deeper row can be its child: a group by its name."""
        kind = kind_of(self.row.name)
        return kind is not None and kind not in _CHILDLESS

    def takes(self, row: ConfigRow) -> bool:
        """Whether ``row`` is its child although it stands no deeper.

        zpool prints no group without devices below it, so that what follows one is its first
        child wherever it stands; and what stands as that one does goes with it.
        """
        if not self.holds_others or row.indent > self.indent:
            return False
        if self.children and self.children[-1].row.indent != row.indent:
            return False
        if kind_of(self.row.name) in GROUP_KINDS and len(self.children) == _DEVICES_OF_A_GROUP:
            return False
        return kind_of(row.name) in (None, "dspare", *GROUP_KINDS)

    def is_above(self, row: ConfigRow) -> bool:
        """Whether ``row`` stands deeper, and not just because it was moved on the way here.

        zpool pads names so that all states are in one column; below a name that is no group's (a
        GUID, with ``-g``), only a row whose state is still there counts as a child.
        """
        if row.indent <= self.indent:
            return False
        return self.holds_others or row.at == self.row.at


def config_of(
    lines: Sequence[str], pool: str | None, running: str | None, zone: tzinfo, devices: Devices
) -> Vdev:
    """The root vdev of a config table.

    ``pool``: the name of the ``pool:`` line; ``running``: the active scan's function. A fragment
    without a root row gives a root with no name and the state UNKNOWN.
    """
    columns, rows = _rows(lines)
    top = _root_row(rows, pool, columns)
    groups = [(node.vclass, [node]) for node in _nested(rows[1:] if top else rows, top)]

    told: dict[str, Any] = {"state": UNKNOWN_STATE}
    if top is not None:
        told = {"state": top.state, "note": top.note, "errors": ErrorCounters(*top.counters)}
    name = pool or (top.name if top else "")
    read = partial(_vdev, running=running, zone=zone, paths=devices.paths)
    return root_of(VdevForm(name, "root", (), None, told), groups, read, devices)


def _rows(lines: Sequence[str]) -> tuple[Columns | None, list[ConfigRow]]:
    """The heading, if there is one, and the rows that have a state or need none.

    A list of pools to import has only names of cache devices and spares (print_import_config).
    """
    columns, rows = None, []
    for line in unwrapped(lines):
        header = Columns.of(line)
        if header is not None:
            columns = columns or header
            continue
        row = row_of(line, columns)
        if row is not None:
            rows.append(row)
    shown: list[ConfigRow] = []
    bare = None
    for row in rows:
        if row.name in CLASSES:
            bare = row if columns is None and CLASSES[row.name] in APART else None
        if row.state or row.name in CLASSES or (bare and row.indent == bare.indent + _LEVEL):
            shown.append(row)
    return columns, shown


def _root_row(rows: list[ConfigRow], pool: str | None, columns: Columns | None) -> ConfigRow | None:
    """The first row if it is the pool's own, None in a fragment that lacks it."""
    if not rows or rows[0].state is None:
        return None
    first, rest = rows[0], rows[1:]
    if first.name == pool:
        return first
    if kind_of(first.name) is not None or (columns and first.indent > columns.indent and not pool):
        return None
    inner = next((row for row in rest if row.name not in CLASSES), None)
    if pool is None and (inner is None or inner.indent <= first.indent) and columns is None:
        return None
    return first


def _nested(rows: Sequence[ConfigRow], root: ConfigRow | None) -> list[_Node]:
    """The top-level nodes; a row belongs to the nearest group that stands shallower or takes it."""
    base = root.indent if root else min((row.indent for row in rows), default=0)
    floor = base if root else base - _LEVEL
    tops: list[_Node] = []
    path: list[_Node] = []
    vclass = "normal"
    for row in rows:
        if row.name in CLASSES and row.indent <= base:
            vclass, path = CLASSES[row.name], []
            continue
        while path and not (path[-1].takes(row) or path[-1].is_above(row)):
            path.pop()
        least = path[-1].indent if path else floor
        node = _Node(row, vclass, row.indent if row.indent > least else least + _LEVEL)
        (path[-1].children if path else tops).append(node)
        path.append(node)
    for node, below in zip_longest(tops, tops[1:]):
        node.partial = _is_open_ended(node, below)
    return tops


def _is_open_ended(node: _Node, below: _Node | None) -> bool:
    """Whether disks that are top-level vdevs may follow those of a group that lost its indentation.

    Not where it has no more than it needs, nor where the vdev ``below`` has the next number.
    """
    kind, shape = kind_of(node.row.name) or "", draid_shape(node.row.name)
    least = shape.width if shape else 1 + (1 if kind == "mirror" else parity_of(kind) or 0)
    if len(node.children) <= least or node.children[0].row.indent > node.row.indent:
        return False
    if below is None or below.vclass != node.vclass:
        return True
    numbers = [each.row.name.rpartition("-")[2] for each in (node, below)]
    return not all(map(str.isdecimal, numbers)) or int(numbers[0]) + 1 != int(numbers[1])


_RESILVERED = re.compile(r"(?<![\d.,])(\d++(?:[.,]\d++)?[BKMGTPE]?) resilvered")
_BLOCK_SIZE = re.compile(r"block size: (\d+)B configured, (\d+)B native")
_PROGRESS = re.compile(
    r"\((?P<pct>\d+)% (?P<what>initialized|trimmed)(?P<suspended>, suspended)?"
    r"(?:,? (?P<how>started|completed) at (?P<date>[^()]+))?\)"
)


def _vdev(node: _Node, running: str | None, zone: tzinfo, paths: Mapping[str, str]) -> VdevForm:
    """``running``: the active scan's function; ``paths``: those of printed names."""
    row, leaf = node.row, not node.children
    kind = kind_of(row.name) or (leaf_kind(row.name) if leaf else UNKNOWN_KIND)
    was = row.note[4:].partition("  ")[0] if row.note.startswith("was ") else None
    path = row.name if row.name.startswith("/") else was
    told = {
        "state": row.state or "",
        "path": path or (paths.get(row.name) if leaf else None),
        "note": row.note,
        "errors": ErrorCounters(*row.counters),
        "partial": node.partial,
        **(_noted(row.note, leaf, running, zone) if row.note else {}),
    }
    return VdevForm(row.name, kind, node.children, None, told)


def _noted(note: str, leaf: bool, running: str | None, zone: tzinfo) -> dict[str, Any]:
    """The fields of a vdev that its note tells.

    Source: print_status_config, print_status_initialize and print_status_trim in
    cmd/zpool/zpool_main.c (2.3.9).
    """
    # Solaris 10 prints the amount on each resilvered leaf, also after the end.
    amount, sizes = _RESILVERED.search(note), _BLOCK_SIZE.search(note)
    removing = "(removing)" in note
    return {
        "resilvering": "(resilvering)" in note or (amount is not None and running == "resilver"),
        "awaiting_resilver": "(awaiting resilver)" in note,
        "removing": removing,
        "scan_processed": parse_size(amount[1]) if amount else None,
        "ashift": int(sizes[1]).bit_length() - 1 if sizes else None,
        "physical_ashift": int(sizes[2]).bit_length() - 1 if sizes else None,
        "initialize": _progress(note, "initialized", "(initializing)", zone) if leaf else None,
        "trim": _progress(note, "trimmed", "(trimming)", zone) if leaf else None,
        "allocating": False if removing or "(non-allocating)" in note else None,
    }


def _progress(text: str, what: str, marker: str, zone: tzinfo) -> Progress | None:
    for match in _PROGRESS.finditer(text):
        if match["what"] == what:
            state = "complete" if match["how"] == "completed" else "active"
            return Progress(
                state="suspended" if match["suspended"] else state,
                share=int(match["pct"]) / 100,
                time=parse_date(match["date"] or "", zone),
            )
    return Progress("active") if marker in text else None
