"""Parses ``zpool status`` text in every dialect, from Solaris 10 to OpenZFS 2.4.

This module splits the text into pools and their tagged sections; ``text_scan`` and ``text_config``
read the sections. Lines: status_callback in cmd/zpool/zpool_main.c.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Iterator, Sequence
from datetime import UTC, tzinfo
from typing import NamedTuple

from zconsole.errors import NotUnderstoodError
from zconsole.pool.model import UNKNOWN_KIND, Pool, Vdev, data_vdevs
from zconsole.pool.redundancy import is_incomplete
from zconsole.zfs.decode.builders import MOST_VDEVS, TOO_MANY, Devices, pool_of
from zconsole.zfs.decode.scans import in_order
from zconsole.zfs.decode.text_config import (
    KNOWN_STATES,
    UNKNOWN_STATE,
    Columns,
    config_of,
    looks_like_row,
)
from zconsole.zfs.decode.text_scan import activity_of, scan_of
from zconsole.zfs.decode.values import suspension, without_nbsp

_ANSI = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
_TAG = re.compile(
    r"(\s*)(pool|id|state|status|action|see|scan|scrub|remove|checkpoint|expand|condense|comment"
    r"|config|device details|errors|dedup):(?:\s+|$)(.*)"
)
_DATA_CORRUPTION = "an error resulting in data corruption"
_FILES_FOLLOW = "Permanent errors have been detected"
_OBJECTS_FOLLOW = "The following persistent errors have been detected"
"""Heading of a table of DATASET, OBJECT and RANGE, in the first releases of Solaris 10."""
_OBJECT = re.compile(r"\s*\S+\s+[\da-f]+\s+(?:lvl=\d+ blkid=|\d+-)\d+")
_ENTRY_INDENT = 8
"""Blanks before each name in a list of damaged files (``%7s %s``)."""
_DAMAGED_FILE = re.compile(r"(?!\S+[#$%](?:\s|$))(?:/|<metadata>:|[^\s:]+:(?:/|<0x))")
"""``/path``, ``dataset:/path`` or ``dataset:<0xobject>`` (zpool_obj_to_path), but not a shell
prompt."""
_NEXT_OUTPUT = re.compile(r"\s+capacity\s+operations\s+bandwidth\b|NAME\s+SIZE\s")
"""Heading of ``zpool iostat`` or ``zpool list``, which ends a section that has no end of its
own."""
_QUOTED = re.compile(r"^(?:> ?)+", re.MULTILINE)
"""The ``> `` that a mail or forum puts before quoted lines."""
_QUOTED_POOL = re.compile(r"^(?:> ?)+\s*pool:\s", re.MULTILINE)
_BREAK = re.compile(r"<br ?/?>[^\S\n]*$", re.MULTILINE)
_OF_A_PAGE = re.compile(
    r"^[^\S\n]*(?:pool:.*<br ?/?>|&lt;(?:metadata|0x[\da-f]+)&gt;:)|&nbsp;NAME\b", re.MULTILINE
)
"""Occurs only in the HTML source of a web page: no name of a damaged file begins like this."""
_NO_POOLS = re.compile(
    r"^[^\S\n]*(no pools available|all pools are healthy|pool '(.+)' is healthy)[^\S\n]*$",
    re.MULTILINE,
)
_POOL_INDENT = 2
"""Blanks before ``pool:`` in zpool's own output."""
_CONFIG_INDENT = 1
"""Most blanks before ``config:``: zpool import prints one, zpool status none."""
_FARTHEST_TAG = 16
"""Most blanks before a tag."""
_UNTAGGED = ""
"""Tag of lines before the first tagged line: the rows of a fragment, or its scan."""
_AFTER = "after"
"""Tag of other output below a table or a list of damaged files."""
_BARE_TABLE = "table"
"""Tag of a table without a ``config:`` line, for example below the scan."""
_TABLES = (_UNTAGGED, "config", _BARE_TABLE)
_ALONE = (_UNTAGGED, _BARE_TABLE, _AFTER)
"""Tags of the sections of a quoted table without any surrounding zpool output."""
_DETAILS = "device details"
"""Solaris 11: the problem of each device, with ``status:`` and ``see:`` lines of its own."""
_SCAN_LINES = ("scan", "scrub")
_SCANS = (_UNTAGGED, *_SCAN_LINES)
_WORK = ("remove", "checkpoint", "expand", "condense")
_UNOPENED = ("FAULTED", "UNAVAIL")
"""States of a pool that could not be opened; an open, suspended pool may have them, too."""


class _Section(NamedTuple):
    """One tagged part of a pool's text: its tag, the rest of that line, and the lines below."""

    tag: str
    indent: int
    lines: list[str]


class _Block:
    """The sections of one pool, in file order."""

    def __init__(self) -> None:
        self.sections: list[_Section] = []

    def first(self, tag: str) -> str | None:
        """Return the first section with this tag as one line, None if there is none."""
        for section in self.sections:
            if section.tag == tag:
                return " ".join(" ".join(section.lines).split())
        return None

    def all(self, *tags: str) -> Iterator[_Section]:
        """Return every section with one of the tags."""
        return (section for section in self.sections if section.tag in tags)


def pools_of(text: str, zone: tzinfo, devices: Devices | None = None) -> tuple[Pool, ...]:
    """Parse every pool in the text; () if zpool printed a sentence instead.

    ``zone`` is the time zone of the dates, which are printed without one. Raises NotUnderstoodError
    if nothing in the text is ``zpool status`` output.
    """
    if not isinstance(text, str):
        raise NotUnderstoodError("not `zpool status` output: no text")
    plain = without_nbsp(_shown(text))
    if _QUOTED_POOL.search(plain):
        plain = _QUOTED.sub("", plain)
    lines = [line.rstrip("\r\f") for line in plain.split("\n")]
    blocks = [block for block in _blocks(lines) if _describes_pool(block)]
    # Counted before they are parsed, which takes a hundred times as long; some are headings.
    if sum(len(s.lines) for block in blocks for s in block.all(*_TABLES)) > 2 * MOST_VDEVS:
        raise NotUnderstoodError(TOO_MANY)
    if not blocks and not in_place(text):
        raise NotUnderstoodError("not `zpool status` output")
    known = devices or Devices({"t": 0.0})
    return tuple(_pool(block, zone, known) for block in blocks)


def _shown(text: str) -> str:
    """Return the text that a browser shows, if ``text`` was saved from the source of a web page."""
    if not _OF_A_PAGE.search(text):
        return text
    # lazy import: its table of names takes milliseconds to load, and hardly any text needs it
    from html import unescape

    return unescape(_BREAK.sub("", text))


def in_place(text: str) -> tuple[tuple[str, str | None], ...]:
    """Return the sentences that zpool prints instead of pools: none available, or healthy (-x).

    Each comes with the pool that it names, or None.
    """
    return tuple((match[1], match[2]) for match in _NO_POOLS.finditer(text))


def _describes_pool(block: _Block) -> bool:
    """Return whether a block has a pool: a table, a scan, or a properly indented ``pool:``."""
    if any(looks_like_row(line) for s in block.all(*_TABLES) for line in s.lines):
        return True
    if any(scan_of(s.lines, UTC) is not None for s in block.all(*_SCANS)):
        return True
    names = list(block.all("pool"))
    return bool(names) and (len(block.sections) > 1 or names[0].indent == _POOL_INDENT)


def _blocks(lines: list[str]) -> list[_Block]:
    blocks, current = [_Block()], None
    blank = True
    for written, below in zip(lines, (*lines[1:], ""), strict=True):
        # zpool never colors the names of damaged files: escapes in them belong to the name.
        line = written if _is_listing(current) else _ANSI.sub("", written)
        # A pool without a blank line above it, as in two concatenated files: the line below
        # confirms it, as a name in a list is not followed by ``state:`` or ``id:``.
        heads = line.startswith("  pool: ") and below.startswith((" state: ", "    id: "))
        begun = _tag_of(line, current, blank or heads)
        listing, table = _is_listing(current), current is not None and current.tag in _TABLES
        # Only other output shows where a table or listing ends.
        other = _NEXT_OUTPUT.match(line) or (listing and Columns.of(line))
        if (table or listing) and other:
            begun = _Section(_AFTER, 0, [line])
        elif current is None:
            begun = begun or (_Section(_UNTAGGED, 0, [line]) if line.strip() else None)
        elif not (table or listing or current.tag == _DETAILS) and Columns.of(line) is not None:
            begun = _Section(_BARE_TABLE, 0, [line])  # its ``config:`` line was left out
        if begun is not None:
            if begun.tag == "pool":
                blocks.append(_Block())
            current = begun
            blocks[-1].sections.append(current)
        elif current is not None:
            current.lines.append(line)
        blank = not line.strip()
    return blocks


def _tag_of(line: str, current: _Section | None, apart: bool) -> _Section | None:
    """Return the section that this line starts, None if it continues the current one.

    ``apart`` is True below a blank line, or if the line surely starts a pool.
    """
    match = _TAG.match(line)
    if match is None:
        return None
    indent, tag = len(match[1].expandtabs()), match[2]
    if indent > _FARTHEST_TAG or (current and _continues(current, line, tag, indent, apart)):
        return None
    return _Section(tag, indent, [match[3]])


def _continues(current: _Section, line: str, tag: str, indent: int, apart: bool) -> bool:
    """Return whether a line that looks like a tag belongs to the section above it.

    ``apart`` is as in ``_tag_of``.
    """
    if current.tag == "config" and current.indent <= _CONFIG_INDENT and line.startswith("\t"):
        return True  # rows begin with a TAB, tags never do: a pool may be called "errors: x"
    if current.tag == _DETAILS:
        return tag not in ("errors", "pool")
    if not _is_listing(current):
        return False
    # Names of damaged files may look like tags, too. Their list ends at another pool, or at a
    # second errors: line of this one (see _errors).
    if tag == "errors":
        return indent > current.indent
    begins_pool = tag == "pool" and apart and indent < current.indent + _ENTRY_INDENT
    return not begins_pool


def _is_listing(section: _Section | None) -> bool:
    """Return whether the section is a list of damaged files."""
    if section is None or section.tag != "errors" or len(section.lines) < 2:
        return False
    return _FILES_FOLLOW in section.lines[0]


def _pool(block: _Block, zone: tzinfo, devices: Devices) -> Pool:
    state, printed = (block.first("state") or "").partition(" ")[0], _printed(block)
    rows = [line for section in block.all(*_TABLES) for line in section.lines]
    name = block.first("pool")
    read = [(section, scan_of(section.lines, zone)) for section in block.all(*_SCANS)]
    scans = in_order([scan for _, scan in read if scan is not None])
    work = [(s, activity_of(s.lines, zone)) for s in block.all(*_WORK)]
    activities = tuple(activity for _, activity in work if activity is not None)
    nothing = ("", "none requested")
    unread = [
        section.tag
        for section, found in (*read, *work)
        if section.tag and found is None and " ".join(section.lines).strip() not in nothing
    ]
    if state and state not in KNOWN_STATES:
        unread.insert(0, "state")
    running = next((s.function for s in scans if s.active), None)
    root = config_of(rows, name, running, zone, devices)
    errors, message = block.first("errors"), printed["status"]
    suspended = suspension(state, message, printed["moreinfo"], errors)
    # A pool that could not be opened has no scan running and is not suspended.
    unopened = state in _UNOPENED and errors is None and not (suspended or running)
    lacks = _lacks(block, root, state, unread, unopened)
    if state not in KNOWN_STATES:
        state = "" if root.state == UNKNOWN_STATE else root.state
    count, names = _errors(block)
    stated = {
        "suspension": suspended,
        "lacks": lacks,
        "scans_known": not unopened and _shows_scans(block, lacks, unread),
        "scans": scans,
        "activities": activities,
        "damaged": count is None
        and (_shows_damage(block) or bool(root.children and _DATA_CORRUPTION in (message or ""))),
    }
    root = _cut_short(block, root, unopened)
    removal = next((a for a in activities if (a.kind, a.state) == ("removal", "running")), None)
    if removal is not None and (leaving := _leaving(root, removal.vdev)) is not None:
        stated["activities"] = tuple(
            a._replace(vdev=leaving.name) if a is removal else a for a in activities
        )
        tops = (v._replace(removing=True) if v is leaving else v for v in root.children)
        root = root._replace(children=tuple(tops))
    figures = {"state": state or None, "error_count": count, "errlist": names}
    return pool_of({**printed, **figures}, root, stated)


def _leaving(root: Vdev, named: str | None) -> Vdev | None:
    """Return the top-level vdev that is being removed, None if the text leaves that open.

    ``named`` is its name in the ``remove:`` line: a path, or a mirror without its number. Since 2.2
    its row shows it, too.
    """
    shown = [v for v in root.children if v.removing]
    found = shown or [v for v in root.children if named in (v.name, v.kind)]
    return found[0] if len(found) == 1 else None


def _printed(block: _Block) -> dict[str, str | None]:
    """Return zpool's messages about a pool and its GUID, by their names in JSON."""
    tags = {"pool_guid": "id", "moreinfo": "see"}
    tags |= {tag: tag for tag in ("status", "action", "comment")}
    printed = {name: block.first(tag) or None for name, tag in tags.items()}
    if "(DESTROYED)" in (block.first("state") or ""):
        printed["status"] = f"The pool was destroyed. {printed['status'] or ''}".rstrip()
    return printed


def _shows_scans(block: _Block, lacks: str | None, unread: Collection[str]) -> bool:
    """Return whether the absence of a scan in the text means that there was none.

    A table alone, a list of pools to import and a text that ends above its table show no scans in
    any case. ``unread`` are tags of sections in which no line has a known format.
    """
    if block.first("pool") is None or _lists_imports(block):
        return False
    if not set(_SCAN_LINES).isdisjoint(unread):
        return False
    return lacks is None or any(block.all("scan", "scrub", "config"))


def _lacks(
    block: _Block, root: Vdev, state: str, unread: Sequence[str], unopened: bool
) -> str | None:
    """Return which part of a text is missing, if it was cut off.

    A table quoted alone counts as complete if it has the pool's own row. ``unread`` are tags of
    sections in which no line has a known format; ``unopened`` is True if the pool could not be
    opened, judging by its state.
    """
    named = block.first("pool") is not None
    if root.state == UNKNOWN_STATE and root.children:
        return "the pool's own row is not shown"
    if not named and not root.children:
        return "the text has neither a state nor a table"
    if root.state == UNKNOWN_STATE or (named and not state):
        return f"the text ends before its {'table' if state else 'state: line'}"
    if _lists_imports(block):
        # Cut off if the last vdev shows fewer devices than such a vdev has when it is healthy.
        last = root.children[-1] if root.children else None
        known = last and (last.state != "ONLINE" or last.kind == UNKNOWN_KIND)
        cut = last is None or (not known and is_incomplete(last))
        return "the text ends within its table" if cut else None
    alone = not named and all(section.tag in _ALONE for section in block.sections)
    if not (named or state or alone):
        return "the text begins below its state: line"
    return None if alone else _lacks_errors(block, unread, unopened)


def _lists_imports(block: _Block) -> bool:
    """Return whether the block is from a list of pools to import.

    Such a list has no scan, counters or ``errors:``. An ``id:`` line alone is not enough: Solaris
    11.4 prints one for every pool.
    """
    if block.first("id") is None or any(block.all(*_SCAN_LINES, "errors")):
        return False
    return not any(Columns.of(line) for section in block.all(*_TABLES) for line in section.lines)


def _lacks_errors(block: _Block, unread: Sequence[str], unopened: bool) -> str | None:
    """Return which line is missing below the table, or has no known format.

    For a pool that could not be opened, zpool prints no ``errors:`` line.
    """
    ended = block.first("errors") is None
    if ended and not unopened:
        return "the text ends before its errors: line"
    is_read = ended or _errors(block) != (None, None) or _shows_damage(block)
    cut = "errors" if not is_read else unread[0] if unread else None
    return f"its {cut}: line is cut off, or of no known form" if cut else None


def _cut_short(block: _Block, root: Vdev, unopened: bool) -> Vdev:
    """Mark the last vdev as partial if the text was cut off inside its table.

    zpool prints a blank line below the table; without it, the last top-level vdev, if it holds
    data, may have more devices than shown. Not applied to a table without ``config:``, which was
    shortened by hand. In a pool that could not be opened nothing is resilvered, so a vdev that is
    ONLINE is complete.
    """
    ending = block.sections[-1]
    # The lines up to the last newline; what follows may be the indentation of the next row.
    below = ending.lines if ending.lines[-1].strip() else ending.lines[:-1]
    amid = ending.tag == "config" and bool(below and below[-1].strip())
    last = root.children[-1] if root.children else None
    if not amid or _lists_imports(block) or last is None or last not in data_vdevs(root):
        return root
    if unopened and last.state == "ONLINE":
        return root
    return root._replace(children=(*root.children[:-1], last._replace(partial=True)))


def _errors(block: _Block) -> tuple[int | None, tuple[str, ...] | None]:
    """Return the number of data errors and the names of damaged files, as far as they are shown.

    There may be two lines: one says that the list is not permitted, the other gives the number.
    """
    found = [_error_section(section) for section in block.all("errors")]
    known = [pair for pair in found if pair != (None, None)]
    return known[-1] if known else (None, None)


def _error_section(section: _Section) -> tuple[int | None, tuple[str, ...] | None]:
    head = section.lines[0].strip()
    if head.startswith(("No known data errors", "No known persistent errors")):
        return 0, ()
    if head.startswith(_OBJECTS_FOLLOW):
        found = (_OBJECT.match(line) for line in section.lines)
        entries = tuple(" ".join(match[0].split()) for match in found if match)
        return (len(entries), entries) if entries else (None, None)
    if match := re.match(r"(\d+) data error", head):
        return int(match[1]), None
    if not head.endswith(":"):  # a mail broke it before "files:"
        section = section._replace(lines=[head, *section.lines[2:]])
    names = _listed(section) if _FILES_FOLLOW in head else ()
    return (len(names), names) if names else (None, None)


def _shows_damage(block: _Block) -> bool:
    """Return whether there are data errors: zpool prints these texts only if there are any."""
    heads = [section.lines[0].strip() for section in block.all("errors")]
    begins = "List of errors unavailable", _FILES_FOLLOW, _OBJECTS_FOLLOW
    return any(head.startswith(begins) or "data errors" in head for head in heads)


def _listed(section: _Section) -> tuple[str, ...]:
    """Return the indented names below the heading, keeping blanks that belong to a name."""
    lines = [line.expandtabs() if line[:1] == "\t" else line for line in section.lines[1:]]
    lines = lines[: _end_of_list(lines)]
    starts = [i for i, line in enumerate(lines) if line.strip() and line[:1] == " "]
    first = next((i for i, line in enumerate(lines) if line.strip()), None)
    if not starts or first != starts[0]:
        # The list lost its indentation: take the first lines that look like damaged files.
        below = itertools.dropwhile(lambda line: not line.strip(), lines)
        return tuple(itertools.takewhile(_DAMAGED_FILE.match, below))
    usual = section.indent + _ENTRY_INDENT
    least = min(len(lines[i]) - len(lines[i].lstrip(" ")) for i in starts)
    cut = usual if least >= usual else least
    # Lines between two indented names continue a name that contains a newline.
    ends = [*starts[1:], starts[-1] + 1]
    spans = zip(starts, ends, strict=True)
    return tuple("\n".join(lines[start:end])[cut:].rstrip("\n") for start, end in spans)


def _end_of_list(lines: list[str]) -> int:
    """Return the line at which other text begins: below a blank line, indented less than the names.

    It may be the table of deduplicated blocks (``-D``), or other output or notes.
    """
    first = next((i for i, line in enumerate(lines) if line.strip() and line[:1] == " "), None)
    if first is None:
        return len(lines)
    column = min(_ENTRY_INDENT, len(lines[first]) - len(lines[first].lstrip(" ")))
    for i in range(first + 1, len(lines)):
        blank_above, line = not lines[i - 1].strip(), lines[i]
        if blank_above and line.strip() and len(line) - len(line.lstrip(" ")) < column:
            return i
    return len(lines)
