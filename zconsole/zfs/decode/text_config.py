"""The tree of vdevs below ``config:``, nested by indentation.

Rows: print_status_config in cmd/zpool/zpool_main.c: a TAB, two blanks a level, the name padded
to one column, STATE, READ, WRITE, CKSUM and, when asked for, SLOW, POWER and DIO; then notes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import tzinfo
from functools import partial
from itertools import zip_longest
from typing import Any, NamedTuple

from zconsole.pool.model import GROUP_KINDS, UNKNOWN_KIND, ErrorCounters, Progress, Vdev
from zconsole.pool.topology import APART
from zconsole.units import parse_size
from zconsole.zfs.decode.builders import VdevForm, root_of
from zconsole.zfs.decode.devices import Devices
from zconsole.zfs.decode.values import parse_date
from zconsole.zfs.decode.words import AUX_TEXTS, CLASSES, draid_shape, kind_of, leaf_kind, parity_of

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
"""How what was broken off a row begins; a row of its own may begin so too."""

_LONGEST_ROW = 4096
"""Characters: a path and what zpool says of a vdev are shorter together."""
_HEADING = _EXTRA.union(_COUNTERS, ("NAME", "STATE"))
_UNCOUNTED = frozenset({"AVAIL", "INUSE"})
_BROKEN_WORD = re.compile(r"[\d.,]\n(?:[\d.,]|[KMGTPE](?:\s|$))|  was /\S*\n")
"""Between a row and what a window broke off within a counter or a path; it may be whole without."""
_NOTE = re.compile(
    rf"(?:(?:{'|'.join(map(re.escape, AUX_TEXTS))}|was /[^\s#$%@>()]*"
    r"|\((?:resilver|repair|await|remov|non-alloc|init|uninit|trim|untrim|\d+% )[^()]*\)"
    rf"|block size: \d+B configured, \d+B native|{_NUMBER.pattern} resilvered)(?:  ?|$))*"
    r"(?:\([^()]*$)?"
)
"""What zpool says of a vdev after its counters, the last part perhaps not to its end."""


class Columns(NamedTuple):
    """The heading of a config table: where NAME and STATE begin, and the columns after STATE."""

    indent: int
    state: int
    names: tuple[str, ...]

    @classmethod
    def of(cls, line: str) -> Columns | None:
        """The columns of a ``NAME STATE READ …`` line, None for any other line."""
        words = line.split()
        if words[:2] != ["NAME", "STATE"]:
            return None
        flat = line.expandtabs()
        counted = tuple(w for w in words[2:] if w in _COUNTERS or w in _EXTRA)
        return cls(flat.index("NAME"), flat.index("STATE"), counted)


class ConfigRow(NamedTuple):
    """A parsed row; ``state`` is None for a class heading."""

    indent: int
    name: str
    state: str | None
    counters: tuple[int | None, int | None, int | None, int | None]
    """READ, WRITE, CKSUM, SLOW; None where none is printed."""
    note: str
    at: int = 0
    """The column in which its state stands."""


_NO_COUNTERS = (None, None, None, None)


def row_of(line: str, columns: Columns | None) -> ConfigRow | None:
    """The row in a line, None for a blank line."""
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
    """The lines with each put back on the row that a narrow window or a mail broke.

    Only where nothing else can be meant: what lacks counters of the heading gets exactly those,
    and what has them all a note in parentheses or a former path. A window breaks words, too.
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
    """The row that two lines make up, None when they are two rows."""
    if len(above) > _LONGEST_ROW:
        return None  # else a text of nothing but pieces would be put together piece by piece
    if _REST.match(line) and _continues(above, line, columns):
        return f"{above} {line.lstrip()}"
    flat = line.expandtabs()
    if not flat.strip() or len(flat) - len(flat.lstrip()) >= columns.indent:
        return None  # only what a window broke stands left of the names
    if Columns.of(above) is not None:
        return above + line if _HEADING.issuperset((above + line).split()) else None
    apart = f"{above.rstrip()}  {line.strip()}"
    if _BROKEN_WORD.search(f"{above}\n{line}"):
        tried: tuple[str, ...] = (above + line,)  # broken within a word, or not at all
    elif _is_whole(above, columns) and above.count("(") == above.count(")"):
        tried = (apart,)
    else:
        tried = (above + line, f"{above.rstrip()} {line.strip()}", apart)
    return next((joined for joined in tried if _is_whole(joined, columns)), None)


def _is_whole(line: str, columns: Columns) -> bool:
    """Whether a row has a known state, every counter, and a note in zpool's words or none."""
    flat = line.expandtabs().rstrip()
    split = _split(flat, len(flat) - len(flat.lstrip()), columns)
    if split is None or split[1] not in KNOWN_STATES:
        return False
    cells = split[2].split()[: len(columns.names)]
    counted = len(cells) == len(columns.names) and all(map(_is_count, cells[:3]))
    note = _counters(split[2], columns)[1] if counted else split[2].strip()
    return (counted or split[1] in _UNCOUNTED) and _NOTE.fullmatch(note) is not None


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
        return False  # a note has begun: what follows it may be anything
    lacking = len(columns.names) - len(split[2].split())
    if lacking <= 0:
        return lacking == 0 and (words[0].startswith("(") or words[0] == "was")
    after = words[lacking : lacking + 1]
    counts = [_is_count(word) for word in (*words[:lacking], *after)]
    return counts == [True] * lacking + [False] * len(after)


def _is_count(word: str) -> bool:
    return word == "-" or _NUMBER.fullmatch(word) is not None


def _split(flat: str, indent: int, columns: Columns | None) -> tuple[str, str, str] | None:
    """Name, state and the rest of a row; None where the text was cut off within the state."""
    found = _by_column(flat, indent, columns) or _by_pattern(flat[indent:])
    if found is None or found[1] in KNOWN_STATES or found[2].strip():
        return found
    is_cut = any(known.startswith(found[1]) for known in KNOWN_STATES)
    return None if is_cut else found


def looks_like_row(line: str) -> bool:
    """Whether a line alone, without a heading, shows a vdev or is the heading."""
    if Columns.of(line) is not None:
        return True
    split = _by_pattern(line.strip())
    if split is None or "-" in split[0].split():
        return False  # a lone dash before the state is a cell of `zpool list -v`
    return split[1] in KNOWN_STATES


def _by_column(flat: str, indent: int, columns: Columns | None) -> tuple[str, str, str] | None:
    """Name, state and rest, cut where the heading says: names may contain blanks.

    None where it does not fit, as with names that are not ASCII: zpool pads to bytes.
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
    """Name, state and rest of a row that is out of line with the heading, or has none."""
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
    read, write, cksum, slow = (found.get(name) for name in _COUNTERS)
    return (read, write, cksum, slow), rest
