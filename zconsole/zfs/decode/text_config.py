"""Parses the tree of vdevs below ``config:``, nested by indentation.

Rows: print_status_config in cmd/zpool/zpool_main.c: a TAB, two blanks per level, the name padded to
one column, STATE, READ, WRITE, CKSUM and, if requested, SLOW, POWER and DIO; then notes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import tzinfo
from functools import partial
from itertools import zip_longest
from typing import Any, NamedTuple

from zconsole.pool.model import APART, GROUP_KINDS, UNKNOWN_KIND, ErrorCounters, Progress, Vdev
from zconsole.units import parse_size
from zconsole.zfs.decode.builders import Devices, VdevForm, root_of
from zconsole.zfs.decode.values import (
    AUX_TEXTS,
    CLASSES,
    draid_shape,
    kind_of,
    leaf_kind,
    parity_of,
    parse_date,
)

_CHILDLESS = frozenset({"dspare", "indirect", "hole", "missing"})
_DEVICES_OF_A_GROUP = 2
"""The old device and the new one, in a replacing or spare group."""
UNKNOWN_STATE = "UNKNOWN"
"""State of a root vdev that the text does not show."""


_LEVEL = 2
"""Blanks per level."""


class _Node:
    """A row and the rows nested below it."""

    def __init__(self, row: ConfigRow, vclass: str, indent: int) -> None:
        """``indent`` is that of the row, or the correct one if the row lost its indentation."""
        self.row = row
        self.vclass = vclass
        self.indent = indent
        self.children: list[_Node] = []
        self.partial = False
        """True if its devices may be mixed with top-level vdevs printed below them."""

    @property
    def holds_others(self) -> bool:
        """True if a deeper row can be its child: it is a group, judging by its name."""
        kind = kind_of(self.row.name)
        return kind is not None and kind not in _CHILDLESS

    def adopts(self, row: ConfigRow) -> bool:
        """Return whether ``row`` is a child although it is not indented deeper.

        zpool prints no group without devices below it, so the row after one is its first child
        regardless of indentation, and so are the next rows with the same indentation.
        """
        if not self.holds_others or row.indent > self.indent:
            return False
        if self.children and self.children[-1].row.indent != row.indent:
            return False
        if kind_of(self.row.name) in GROUP_KINDS and len(self.children) == _DEVICES_OF_A_GROUP:
            return False
        return kind_of(row.name) in (None, "dspare", *GROUP_KINDS)

    def is_above(self, row: ConfigRow) -> bool:
        """Return whether ``row`` is indented deeper, and was so in zpool's own output.

        zpool pads names so that all states are in one column. Below a name that is not a group's
        (a GUID, with ``-g``), only a row whose state is still in that column counts as a child.
        """
        if row.indent <= self.indent:
            return False
        return self.holds_others or row.at == self.row.at


def config_of(
    lines: Sequence[str], pool: str | None, running: str | None, zone: tzinfo, devices: Devices
) -> Vdev:
    """Parse a config table to its root vdev.

    ``pool`` is the name in the ``pool:`` line, ``running`` the function of the active scan. A
    fragment without a root row gives a root with no name and the state UNKNOWN.
    """
    columns, rows = _rows(lines)
    top = _root_row(rows, pool, columns)
    groups = [(node.vclass, [node]) for node in _nested(rows[1:] if top else rows, top)]

    stated: dict[str, Any] = {"state": UNKNOWN_STATE}
    if top is not None:
        stated = {"state": top.state, "note": top.note, "errors": ErrorCounters(*top.counters)}
    name = pool or (top.name if top else "")
    read = partial(_vdev, running=running, zone=zone, paths=devices.paths)
    return root_of(VdevForm(name, "root", (), None, stated), groups, read, devices)


def _rows(lines: Sequence[str]) -> tuple[Columns | None, list[ConfigRow]]:
    """Return the heading, if any, and the rows that have a state or need none.

    In a list of pools to import, cache devices and spares have only names (print_import_config).
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
    """Return the first row if it is the pool's own, None in a fragment that lacks it."""
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
    """Return the top-level nodes; a row belongs to the nearest group that is_above or adopts it."""
    base = root.indent if root else min((row.indent for row in rows), default=0)
    floor = base if root else base - _LEVEL
    tops: list[_Node] = []
    path: list[_Node] = []
    vclass = "normal"
    for row in rows:
        if row.name in CLASSES and row.indent <= base:
            vclass, path = CLASSES[row.name], []
            continue
        while path and not (path[-1].adopts(row) or path[-1].is_above(row)):
            path.pop()
        least = path[-1].indent if path else floor
        node = _Node(row, vclass, row.indent if row.indent > least else least + _LEVEL)
        (path[-1].children if path else tops).append(node)
        path.append(node)
    for node, below in zip_longest(tops, tops[1:]):
        node.partial = _is_open_ended(node, below)
    return tops


def _is_open_ended(node: _Node, below: _Node | None) -> bool:
    """Return whether top-level disks may follow the devices of a group without indentation.

    Not if the group has no more devices than it needs, nor if the vdev ``below`` has the next
    number, so that no top-level vdev is between them.
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
_TRIM = re.compile(r"\((?:trim (?P<lacking>unsupported)|(?:un|\d+% )trimmed|trimming)\b")
"""Any note on trim: whether it is supported."""
_PROGRESS = re.compile(
    r"\((?P<pct>\d+)% (?P<what>initialized|trimmed)(?P<suspended>, suspended)?"
    r"(?:,? (?P<how>started|completed) at (?P<date>[^()]+))?\)"
)


def _vdev(node: _Node, running: str | None, zone: tzinfo, paths: Mapping[str, str]) -> VdevForm:
    """``running`` is the function of the active scan; ``paths`` are by printed names."""
    row, leaf = node.row, not node.children
    kind = kind_of(row.name) or (leaf_kind(row.name) if leaf else UNKNOWN_KIND)
    was = row.note[4:].partition("  ")[0] if row.note.startswith("was ") else None
    path = row.name if row.name.startswith("/") else was
    stated = {
        "state": row.state or "",
        "path": path or (paths.get(row.name) if leaf else None),
        "note": row.note,
        "errors": ErrorCounters(*row.counters),
        "partial": node.partial,
        **(_noted(row.note, leaf, running, zone) if row.note else {}),
    }
    return VdevForm(row.name, kind, node.children, None, stated)


def _noted(note: str, leaf: bool, running: str | None, zone: tzinfo) -> dict[str, Any]:
    """Return the fields of a vdev that its note contains.

    Source: print_status_config, print_status_initialize and print_status_trim in
    cmd/zpool/zpool_main.c (2.3.9).
    """
    # Solaris 10 prints the amount on each resilvered leaf, even after the resilver has ended.
    amount, sizes, trim = _RESILVERED.search(note), _BLOCK_SIZE.search(note), _TRIM.search(note)
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
        "trimmable": None if trim is None else trim["lacking"] is None,
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


_STATE = re.compile(r"[A-Z][A-Z_]{2,}")
_NUMBER = re.compile(r"\d+(?:[.,]\d+)?[KMGTPE]?")
_TAIL = re.compile(
    r"(?P<name>\S(?:.*?\S)?)\s+(?P<state>[A-Z][A-Z_]{2,})"
    r"(?P<rest>\s+\d+(?:[.,]\d+)?[KMGTPE]?\s+\d.*|\s*)",
    re.DOTALL,
)
_VDEV_STATES = ("ONLINE", "DEGRADED", "FAULTED", "OFFLINE", "UNAVAIL", "REMOVED", "SPLIT")
KNOWN_STATES = frozenset((*_VDEV_STATES, "SUSPENDED", "AVAIL", "INUSE"))
_COUNTERS = ("READ", "WRITE", "CKSUM", "SLOW")
_EXTRA = frozenset({"POWER", "DIO"})
_REST = re.compile(
    rf"\s*(?:\([a-z\d].*\)\s*$|was /|(?:-|{_NUMBER.pattern})(?:\s|$)"
    r"|(?:WRITE|CKSUM|SLOW|POWER|DIO)\b)"
)
"""Beginning of a fragment broken off a row; a complete row may begin like this, too."""

_LONGEST_ROW = 4096
"""Characters; a path and zpool's text about a vdev are shorter together."""
_HEADING = _EXTRA.union(_COUNTERS, ("NAME", "STATE"))
_UNCOUNTED = frozenset({"AVAIL", "INUSE"})
_BROKEN_WORD = re.compile(r"[\d.,]\n(?:[\d.,]|[KMGTPE](?:\s|$))|  was /\S*\n")
"""Row and continuation that a window broke inside a counter or a path; the row may also be complete
on its own."""
_ONE_NOTE = (
    rf"(?:{'|'.join(map(re.escape, AUX_TEXTS))}|was /[^\s#$%@>()]*"
    r"|\((?:resilver|repair|await|remov|non-alloc|init|uninit|trim|untrim|\d+% )[^()]*\)"
    r"|block size: \d+B configured, \d+B native|in use by pool '[^']*'"
    rf"|{_NUMBER.pattern} resilvered)"
)
"""One of zpool's notes about a vdev after its counters."""
_WHOLE_NOTE = re.compile(rf"(?:^|(?<=  )){_ONE_NOTE}(?=  |$)")
"""A note among the cells of scripts: two blanks separate all of them."""
_NOTES = re.compile(rf"(?:{_ONE_NOTE}(?:  ?|$))*(?:\([^()]*$)?")
"""All its notes; the last one may be cut off."""


class Columns(NamedTuple):
    """The heading of a config table: where NAME and STATE begin, and the columns after STATE."""

    indent: int
    state: int
    names: tuple[str, ...]
    scripted: bool
    """Whether columns of scripts (``-c``) follow, which stand among zpool's notes."""

    @classmethod
    def of(cls, line: str) -> Columns | None:
        """Return the columns of a ``NAME STATE READ …`` line, None for any other line."""
        words = line.split()
        if words[:2] != ["NAME", "STATE"]:
            return None
        flat = line.expandtabs()
        counted = tuple(w for w in words[2:] if w in _COUNTERS or w in _EXTRA)
        scripted = len(counted) < len(words) - 2
        return cls(flat.index("NAME"), flat.index("STATE"), counted, scripted)


class ConfigRow(NamedTuple):
    """A parsed row; ``state`` is None for a class heading."""

    indent: int
    name: str
    state: str | None
    counters: tuple[int | None, int | None, int | None, int | None]
    """READ, WRITE, CKSUM, SLOW; None where none is printed."""
    note: str
    at: int = 0
    """Column in which its state begins."""


_NO_COUNTERS = (None, None, None, None)


def row_of(line: str, columns: Columns | None) -> ConfigRow | None:
    """Parse the row in a line; None for a blank line."""
    flat = line.expandtabs().rstrip()
    name = flat.lstrip()
    if not name:
        return None
    indent = len(flat) - len(name)
    split = _split(flat, indent, columns)
    if split is None:
        return ConfigRow(indent, name, None, _NO_COUNTERS, "")
    name, state, rest = split
    counters, note = _counters(rest, columns)
    at = flat.find(f" {state}", indent + len(name)) + 1
    return ConfigRow(indent, name, state, counters, note, at)


def unwrapped(lines: Iterable[str]) -> list[str]:
    """Return the lines with the rows joined that a narrow window or a mail broke.

    Lines are joined only if the result is unambiguous: a row that lacks counters of the heading
    gets exactly those, and a row that has them all a note in parentheses or a former path. A window
    also breaks words.
    """
    whole: list[str] = []
    columns: Columns | None = None
    for line in lines:
        if columns and (joined := _joined(whole[-1], line, columns)):
            whole[-1] = joined
        else:
            whole.append(line)
        columns = Columns.of(whole[-1]) or columns
    return whole


def _joined(above: str, line: str, columns: Columns) -> str | None:
    """Return the row that two lines form, None if they are two rows."""
    if len(above) > _LONGEST_ROW:
        return None  # else a text of nothing but fragments would be joined piece by piece
    if _REST.match(line) and _continues(above, line, columns):
        return f"{above} {line.lstrip()}"
    flat = line.expandtabs()
    if not flat.strip() or len(flat) - len(flat.lstrip()) >= columns.indent:
        return None  # only fragments that a window broke off begin left of the names
    if Columns.of(above) is not None:
        return above + line if _HEADING.issuperset((above + line).split()) else None
    apart = f"{above.rstrip()}  {line.strip()}"
    if _BROKEN_WORD.search(f"{above}\n{line}"):
        tried: tuple[str, ...] = (above + line,)  # broken inside a word, or not at all
    elif _is_whole(above, columns) and above.count("(") == above.count(")"):
        tried = (apart,)
    else:
        tried = (above + line, f"{above.rstrip()} {line.strip()}", apart)
    return next((joined for joined in tried if _is_whole(joined, columns)), None)


def _is_whole(line: str, columns: Columns) -> bool:
    """Return whether a row has a known state, every counter, and a note of zpool's or none."""
    flat = line.expandtabs().rstrip()
    split = _split(flat, len(flat) - len(flat.lstrip()), columns)
    if split is None or split[1] not in KNOWN_STATES:
        return False
    cells = split[2].split()[: len(columns.names)]
    counted = len(cells) == len(columns.names) and all(map(_is_count, cells[:3]))
    note = _counters(split[2], columns)[1] if counted else split[2].strip()
    return (counted or split[1] in _UNCOUNTED) and _NOTES.fullmatch(note) is not None


def _continues(above: str, line: str, columns: Columns) -> bool:
    words = line.split()
    if not words or Columns.of(above) is not None:
        return bool(words) and _EXTRA.union(_COUNTERS).issuperset(words)
    flat = above.expandtabs().rstrip()
    split = _split(flat, len(flat) - len(flat.lstrip()), columns)
    below = row_of(line, columns)
    if split is None or split[1] not in KNOWN_STATES or below is None or below.state:
        return False
    if _counters(split[2], columns)[1]:
        return False  # a note has begun: anything may follow it
    lacking = len(columns.names) - len(split[2].split())
    if lacking <= 0:
        return lacking == 0 and (words[0].startswith("(") or words[0] == "was")
    after = words[lacking : lacking + 1]
    counts = [_is_count(word) for word in (*words[:lacking], *after)]
    return counts == [True] * lacking + [False] * len(after)


def _is_count(word: str) -> bool:
    return word == "-" or _NUMBER.fullmatch(word) is not None


def _split(flat: str, indent: int, columns: Columns | None) -> tuple[str, str, str] | None:
    """Split a row into name, state and rest; None if the text was cut off inside the state."""
    found = _by_column(flat, indent, columns) or _by_pattern(flat[indent:])
    if found is None or found[1] in KNOWN_STATES or found[2].strip():
        return found
    is_cut = any(known.startswith(found[1]) for known in KNOWN_STATES)
    return None if is_cut else found


def looks_like_row(line: str) -> bool:
    """Return whether a line alone, without a heading, is a vdev's row or the heading."""
    if Columns.of(line) is not None:
        return True
    split = _by_pattern(line.strip())
    if split is None or "-" in split[0].split():
        return False  # a lone dash before the state is a cell of `zpool list -v`
    return split[1] in KNOWN_STATES


def _by_column(flat: str, indent: int, columns: Columns | None) -> tuple[str, str, str] | None:
    """Split a row at the heading's columns into name, state and rest; names may contain blanks.

    None if that does not fit, as with names that are not ASCII: zpool pads by bytes.
    """
    if columns is None or indent >= columns.state:
        return None
    at = columns.state
    if flat[at - 1 : at] != " ":
        return None
    match = _STATE.match(flat, at)
    name = flat[:at].strip()
    if match is None or not name or flat[match.end() : match.end() + 1] not in ("", " "):
        return None
    return name, match[0], flat[match.end() :]


def _by_pattern(text: str) -> tuple[str, str, str] | None:
    """Split a row that is not aligned with the heading, or has none, into name, state and rest."""
    match = _TAIL.fullmatch(text)
    if match is not None:
        return match["name"], match["state"], match["rest"]
    name, _, rest = text.partition(" ")
    words = rest.split(None, 1)
    if words and words[0] in KNOWN_STATES:
        return name, words[0], words[1] if len(words) > 1 else ""
    return None


def _counters(
    rest: str, columns: Columns | None
) -> tuple[tuple[int | None, int | None, int | None, int | None], str]:
    names = columns.names if columns and columns.names else _COUNTERS
    found: dict[str, int | None] = {}
    rest = rest.strip()
    for name in names:
        word, _, after = rest.partition(" ")
        if name not in _EXTRA and word != "-" and not _NUMBER.fullmatch(word):
            break
        if not word or (not found and name != "READ"):
            break
        found[name] = parse_size(word)
        rest = after.lstrip()
    if columns and columns.scripted:
        rest = "  ".join(match[0] for match in _WHOLE_NOTE.finditer(rest))
    read, write, cksum, slow = (found.get(name) for name in _COUNTERS)
    return (read, write, cksum, slow), rest
