"""Parses numbers, dates and JSON documents in external text."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, tzinfo
from typing import Any

from zconsole.errors import NotUnderstoodError
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


def unspaced(text: str) -> str:
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


def unbroken(lines: list[str]) -> list[list[str]]:
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
    if values:
        check_range(values, what)
    return values


def check_range(values: Sequence[int], what: str) -> None:
    """Raise NotUnderstoodError, naming ``what``, for integers outside ZFS's range."""
    if not -LARGEST < min(values) <= max(values) < LARGEST:
        raise NotUnderstoodError(f"damaged ZFS output: {what} holds more than 64 bits")


def word(value: object) -> str | None:
    """Return a value as a string, or None if it is absent."""
    return None if value is None else str(value)


def epoch(seconds: float | None) -> float | None:
    """Return epoch seconds; None for 0 (never) and for times out of range."""
    return float(seconds) if seconds and 0 < seconds < _END_OF_TIME else None


def moment(value: object, zone: tzinfo) -> float | None:
    """Convert a JSON leaf (number, digits or a printed date) to epoch seconds.

    None for 0 and junk.
    """
    if isinstance(value, str) and ":" in value:
        return parse_date(value, zone)
    return epoch(number(value))


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


def together(documents: Sequence[Document]) -> Document:
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
