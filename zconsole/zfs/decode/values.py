"""Parses numbers, dates, JSON documents, words and vdev names in external text.

Words are those that zpool prints for the kernel's numbers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, tzinfo
from functools import lru_cache
from typing import Any, NamedTuple

from zconsole.errors import NotUnderstoodError
from zconsole.pool.model import ERRORS, MULTIHOST, UNEXPLAINED
from zconsole.units import LARGEST, parse_size
from zconsole.zfs.raw import numbers

POOL_LINE = re.compile(r"^[^\S\n]*pool: +(\S+(?:[^\S\n]+\S+)*)[^\S\n]*$", re.MULTILINE)
"""The line that begins a pool in ``zpool status``, with the pool's name. No part of the pattern may
match what the next part or the next lines match: backtracking would take time quadratic in the
length of a damaged file."""

_MONTHS = {
    month: index
    for index, month in enumerate(
        ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"), 1
    )
}
_DATE = re.compile(
    r"(?P<month>[A-Z][a-z]{2})\s+(?P<day>\d{1,2})\s+(?P<h>\d{1,2}):(?P<m>\d\d):(?P<s>\d\d)"
    r"(?:\s(?P<half>[AP]M))?(?:\s[A-Z+\-]\S*)?\s(?P<year>\d{4})",
    re.ASCII,
)
_FOREIGN_DATE = re.compile(
    r"(?P<day>\d{1,2})\s+(?P<month>[A-Z][a-z]{2})\s+(?P<year>\d{4})\s"
    r"(?P<h>\d{1,2}):(?P<m>\d\d):(?P<s>\d\d)(?:\s(?P<half>[AP]M))?",
    re.ASCII,
)


_MANY_DIGITS = 40
"""More digits than any figure has (64 bits take 20). Python is slow to convert very long
strings, and refuses those of more than 4300 digits."""
_INTEGERS = frozenset({int})
_END_OF_TIME = 1e11
"""Epoch seconds of the year 5138; later times are damage."""


def is_time(value: object) -> bool:
    """Return whether a JSON leaf is a time in epoch seconds, as a sample has."""
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return number and -1 < value < _END_OF_TIME  # type: ignore[operator]


def without_nbsp(text: str) -> str:
    """Replace no-break spaces in text copied from a web page, where they align the tables.

    Other text is unchanged: the name of a damaged file may contain such a character.
    """
    return text.replace("\xa0", " ") if "NAME\xa0" in text or "pool\xa0" in text else text


def parse_date(text: str, zone: tzinfo) -> float | None:
    """Parse a ctime date (``Sun Aug  3 15:14:45 2014``) in ``zone`` to epoch seconds.

    Returns None if invalid. Also accepts the forms of date(1) with a zone or AM/PM, which plain
    ``-j`` prints.
    """
    match = _DATE.search(text) or _FOREIGN_DATE.search(text)
    if match is None or match["month"] not in _MONTHS:
        return None
    hour = int(match["h"])
    if match["half"]:
        hour = hour % 12 + (12 if match["half"] == "PM" else 0)
    try:
        return datetime(
            int(match["year"]),
            _MONTHS[match["month"]],
            int(match["day"]),
            hour,
            int(match["m"]),
            min(59, int(match["s"])),
            tzinfo=zone,
        ).timestamp()
    except (ValueError, OverflowError):
        return None


def rejoined(lines: list[str]) -> list[list[str]]:
    """Return the ways to join the first two lines that give the first its missing date.

    A window breaks lines inside words, a mail at a blank. The unchanged lines come last, and alone
    if no date is missing.
    """
    if len(lines) < 2 or parse_date(lines[0], UTC) is not None:
        return [lines]
    heads = (lines[0] + lines[1], f"{lines[0]} {lines[1]}")
    whole = [[head, *lines[2:]] for head in heads if parse_date(head, UTC) is not None]
    return [*whole, lines]


def is_cell(word: str) -> bool:
    """Return whether a word of a table is a figure, or the dash for an unknown one."""
    return word == "-" or parse_size(word) is not None


def number(value: object) -> int | None:
    """Return a JSON leaf (number, string of digits, printed size ×1024^k) as an integer."""
    if type(value) is int:  # checked first, as most are: a pool has a dozen of them per device
        return value if -LARGEST < value < LARGEST else None
    if isinstance(value, (int, float)):
        return round(value) if abs(value) < LARGEST else None
    if isinstance(value, str) and value.isascii() and value.isdigit():
        return number(int(value)) if len(value) < _MANY_DIGITS else None
    return parse_size(value) if isinstance(value, str) else None


def count(node: Mapping[str, Any], key: str) -> int:
    """Return a counter of a JSON object; zpool omits counters that are 0."""
    return number(node.get(key)) or 0


def integers(values: Sequence[int] | bytes, what: str) -> Sequence[int]:
    """Return ``values`` if all are integers in ZFS's range.

    Raises NotUnderstoodError, naming ``what``.
    """
    if isinstance(values, bytes):
        return numbers(values)
    if not set(map(type, values)) <= _INTEGERS:
        raise NotUnderstoodError(f"damaged ZFS output: {what} holds no integers")
    if values and not -LARGEST < min(values) <= max(values) < LARGEST:
        raise NotUnderstoodError(f"damaged ZFS output: {what} holds more than 64 bits")
    return values


def word(value: object) -> str | None:
    """Return a value as a string, or None if it is absent."""
    return None if value is None else str(value)


def moment(value: object, zone: tzinfo) -> float | None:
    """Convert a JSON leaf (number, digits or a printed date) to epoch seconds.

    None for 0 (never), junk and times out of range.
    """
    if isinstance(value, str) and ":" in value:
        return parse_date(value, zone)
    seconds = number(value)
    return float(seconds) if seconds and 0 < seconds < _END_OF_TIME else None


def text_of(value: object) -> str | None:
    """Return a wrapped message as one line, None if there is none."""
    if not isinstance(value, str):
        return None
    return " ".join(value.split()) or None


def mapping(value: object, what: str) -> Mapping[str, Any]:
    """Return ``value`` if it is a JSON object, {} if it is absent.

    Raises NotUnderstoodError, which names ``what`` should have been an object.
    """
    if value is None:
        return {}
    if not isinstance(value, (dict, Mapping)):  # dict first: isinstance of an ABC takes five calls
        raise NotUnderstoodError(f"not ZFS output: {what} is not an object")
    return value


_OBJECT = re.compile(r"^[^\S\n]*\{", re.MULTILINE)
_FIRST = re.compile(r'^\{\s*"', re.MULTILINE)

Document = dict[str, Any]


def has_documents(text: str) -> bool:
    """Return whether the text is JSON or contains a JSON object, as after a login banner."""
    return text.lstrip().startswith("{") or _FIRST.search(text) is not None


def documents_of(text: str) -> list[Document]:
    """Parse every JSON object that begins a line, ignoring text around it: a banner, a prompt.

    Raises NotUnderstoodError, with the line number, if one is damaged.
    """
    decoder, found, end = json.JSONDecoder(), [], 0
    number, counted = 1, 0
    while (match := _OBJECT.search(text, end)) is not None:
        number, counted = number + text.count("\n", counted, match.end()), match.end()
        try:
            document, end = decoder.raw_decode(text, match.end() - 1)
        except (ValueError, RecursionError):
            raise NotUnderstoodError(f"line {number}: damaged JSON") from None
        found.append(document)
    return found


def merge_documents(documents: Sequence[Document]) -> Document:
    """Return the last of several documents (``zpool status -j 1``, concatenated files).

    Pools from the documents just before it are added as long as these are only about other pools.
    """
    *earlier, document = documents
    known = document.get("pools")
    if not isinstance(known, dict):
        return document
    seen, others = set(known), list[Document]()
    for each in reversed(earlier):
        pools = each.get("pools")
        if not isinstance(pools, dict) or not seen.isdisjoint(pools):
            break
        seen.update(pools)
        others.append(pools)
    pools = {name: pool for each in reversed(others) for name, pool in each.items()}
    return {**document, "pools": {**pools, **known}}


VDEV_STATES = (
    "UNKNOWN",
    "CLOSED",
    "OFFLINE",
    "REMOVED",
    "CANT_OPEN",
    "FAULTED",
    "DEGRADED",
    "ONLINE",
)
"""``vdev_state_t`` by value (include/sys/fs/zfs.h, 0.6 to 2.4)."""

AUX_WORDS = (
    "NONE",
    "OPEN_FAILED",
    "CORRUPT_DATA",
    "NO_REPLICAS",
    "BAD_GUID_SUM",
    "TOO_SMALL",
    "BAD_LABEL",
    "VERSION_NEWER",
    "VERSION_OLDER",
    "UNSUP_FEAT",
    "SPARED",
    "ERR_EXCEEDED",
    "IO_FAILURE",
    "BAD_LOG",
    "EXTERNAL",
    "SPLIT_POOL",
    "BAD_ASHIFT",
    "EXTERNAL_PERSIST",
    "ACTIVE",
    "CHILDREN_OFFLINE",
    "ASHIFT_TOO_BIG",
)
"""``vdev_aux_t`` by value (include/sys/fs/zfs.h, 0.6 to 2.4)."""

_AUX_TEXTS = {
    "OPEN_FAILED": "cannot open",
    "BAD_GUID_SUM": "missing device",
    "NO_REPLICAS": "insufficient replicas",
    "VERSION_NEWER": "newer version",
    "UNSUP_FEAT": "unsupported feature(s)",
    "ASHIFT_TOO_BIG": "unsupported minimum blocksize",
    "SPARED": "currently in use",
    "ERR_EXCEEDED": "too many errors",
    "IO_FAILURE": "experienced I/O failures",
    "BAD_LOG": "bad intent log",
    "EXTERNAL": "external device fault",
    "SPLIT_POOL": "split into new pool",
    "ACTIVE": "currently in use",
    "CHILDREN_OFFLINE": "all children offline",
    "BAD_LABEL": "invalid label",
}

_CANT_OPEN = {"CORRUPT_DATA": "FAULTED", "BAD_LOG": "FAULTED", "SPLIT_POOL": "SPLIT"}

_UNCHANGED = frozenset({"OFFLINE", "REMOVED", "FAULTED", "DEGRADED", "ONLINE"})

AUX_TEXTS = ("corrupted data", "too many slow I/Os", *_AUX_TEXTS.values())
"""All texts for auxiliary states."""


def aux_text(aux: str, slow_only: bool = False) -> str:
    """Return the text that ``zpool status`` prints for an auxiliary state, "" for none.

    ``slow_only`` means a leaf with slow I/Os but no errors, which 2.2+ words differently.

    Source: print_status_config in cmd/zpool/zpool_main.c (2.3.9).
    """
    if aux in ("", "NONE"):
        return ""
    if aux == "ERR_EXCEEDED" and slow_only:
        return "too many slow I/Os"
    return _AUX_TEXTS.get(aux, "corrupted data")


def state_word(state: str, aux: str = "") -> str:
    """Return the printed state of a vdev, from its enum word and auxiliary word.

    Source: zpool_state_to_name in lib/libzfs/libzfs_pool.c (2.3.9). An unknown word is returned
    unchanged.
    """
    if state in _UNCHANGED:
        return state
    if state == "CANT_OPEN":
        return _CANT_OPEN.get(aux, "UNAVAIL")
    return "OFFLINE" if state == "CLOSED" else state


_OTHER_HOSTS = re.compile(r"multihost writes|ZFS-8000-MM\b", re.IGNORECASE)
_NO_IO = re.compile(
    r"in response to I/?O failures|ZFS-8000-(?:HC|JQ)\b|pool is suspended|is currently suspended",
    re.IGNORECASE,
)
"""Texts that zpool prints only for a suspended pool (check_status in
lib/libzfs/libzfs_status.c)."""


def suspension(state: str | None, *said: str | None) -> str | None:
    """Return why a pool is suspended, by its state and zpool's messages; None if it is not.

    zpool shows SUSPENDED as a state since 0.8; before that only its messages show it.
    """
    text = " ".join(filter(None, said))
    if _OTHER_HOSTS.search(text):
        return MULTIHOST
    if _NO_IO.search(text):
        return ERRORS
    return UNEXPLAINED if state == "SUSPENDED" else None


_REMEMBERED = 8192
"""Names cached between samples: the same leaves occur again every second."""

_SEARCH_PATHS = (
    "/dev/disk/by-vdev/",
    "/dev/mapper/",
    "/dev/disk/by-partlabel/",
    "/dev/disk/by-partuuid/",
    "/dev/disk/by-label/",
    "/dev/disk/by-uuid/",
    "/dev/disk/by-id/",
    "/dev/disk/by-path/",
    "/dev/",
)
"""Prefixes that are removed from a disk's path (zfs_strip_path, zpool_default_search_paths in
lib/libzutil, Linux, 2.3)."""

_PARTITION = re.compile(
    r"(?P<disk>.+)-part\d+|(?P<numbered>.+\d)p\d+|(?P<letters>(?:[hsv]d|xvd)[a-z]+)\d+"
)
"""Name of a whole disk, followed by zpool's own partition (zfs_strip_partition, Linux)."""
_GROUP = re.compile(r"(mirror|raidz[123]?|draid[123]?|replacing|spare)(?::[\w:]+)?(?:-\d+)?")
_DSPARE = re.compile(r"draid[123]-\d+-\d+")
_NUMBERED = re.compile(r"(indirect|hole|missing)-\d+")
_KNOWN_STEMS = ("mirror", "raidz", "draid", "replacing", "spare", "indirect", "hole", "missing")

CLASSES = {
    "log": "log",
    "logs": "log",
    "cache": "cache",
    "l2cache": "cache",
    "spare": "spare",
    "spares": "spare",
    "special": "special",
    "dedup": "dedup",
}
"""Class of vdevs by its name in zpool's headings, JSON and nvlists; normal vdevs have none."""


@lru_cache(maxsize=_REMEMBERED)
def disk_name(path: str, whole_disk: bool | None) -> str:
    """Return the name of the disk at ``path`` as ``zpool status`` without options prints it.

    If it is unknown whether zpool partitioned the disk itself (JSON has no ``whole_disk``),
    partition 1 is taken for zpool's own, which always has number 1; a partition 1 made by hand then
    loses its suffix (``sda1`` shows as ``sda``). Other partition numbers are kept.
    """
    name = next((path[len(each) :] for each in _SEARCH_PATHS if path.startswith(each)), path)
    if whole_disk is None:
        whole_disk = name.endswith(("-part1", "p1")) or (
            name[-1:] == "1" and not name[-2:-1].isdigit() and "-" not in name
        )
    match = _PARTITION.fullmatch(name) if whole_disk else None
    return name if match is None else match["disk"] or match["numbered"] or match["letters"]


@lru_cache(maxsize=_REMEMBERED)
def kind_of(name: str) -> str | None:
    """Return the kind in a printed name: mirror, raidz2, draid1, replacing, …; None for a disk.

    A bare ``raidz`` (before names had a number) is single parity.
    """
    if not name.startswith(_KNOWN_STEMS):
        return None
    if _DSPARE.fullmatch(name):
        return "dspare"
    if match := _NUMBERED.fullmatch(name):
        return match[1]
    match = _GROUP.fullmatch(name)
    if match is None:
        return None
    return f"{match[1]}1" if match[1] in ("raidz", "draid") else match[1]


def leaf_kind(name: str) -> str:
    """Return ``file`` for a name that is a path outside /dev, else ``disk``."""
    return "file" if name.startswith("/") and not name.startswith("/dev/") else "disk"


class DraidShape(NamedTuple):
    """Layout given in a dRAID's name: data disks, distributed spares, and failure groups."""

    data: int
    spares: int
    width: int
    """Total number of devices."""
    group: int | None = None
    """Devices per failure group, if there are several groups (``w``, since 2.4.99)."""


def draid_shape(name: str) -> DraidShape | None:
    """Parse ``draid1:3d:7c:1s-0``, or ``draid1:2d:4c:8w:1s-0``, two groups of four."""
    match = re.match(r"draid\d?:(\d+)d:(\d+)c:(?:(\d+)w:)?(\d+)s", name)
    if match is None:
        return None
    group, width = int(match[2]), int(match[3] or match[2])
    return DraidShape(int(match[1]), int(match[4]), width, group if match[3] else None)


def parity_of(kind: str) -> int | None:
    """Return the number of parity devices of a raidz or dRAID kind, else None."""
    if kind.startswith(("raidz", "draid")) and kind[-1:].isdigit():
        return int(kind[-1])
    return None
