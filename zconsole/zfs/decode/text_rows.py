"""One row of a config table: indentation, name, state, counters and the text after them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from zconsole.units import parse_size
from zconsole.zfs.decode.words import AUX_TEXTS

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
