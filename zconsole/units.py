"""Bytes, rates, shares, durations and dates as text; and parsing of those that zpool prints."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime, tzinfo

SUFFIXES = "BKMGTPE"
LARGEST = 2**70
"""Bytes from which a figure is not a size: ZFS counts in 64 bits."""
_NUMBER = re.compile(r"(?P<n>\d+(?:[.,]\d+)?)(?P<u>[BKMGTPE]?)(?:i?B)?", re.ASCII)
_DRIVE = re.compile(r"(?P<n>\d+(?:\.\d+)?)(?P<u>[KMGTPE])B", re.ASCII)
_WHOLE = re.compile(r"\d{1,20}", re.ASCII)
"""As many digits as 64 bits need: int() raises an error for thousands of digits."""
_DURATION_WORD = re.compile(r"(?<!\d)(\d{1,9})([dhms])")
_CLOCK = re.compile(r"(?:(\d{1,9}) days? )?(\d{1,9}):(\d\d):(\d\d)")


def parse_size(text: str) -> int | None:
    """Parse a size as zpool prints it (``12.9T``, ``9,12T``, ``88``): n·1024^k bytes.

    None for ``-`` and anything else. A comma may stand for the point, by the locale.
    Format: ``zfs_nicenum_format`` in lib/libzutil/zutil_nicenum.c (2.3.9).
    """
    match = _NUMBER.fullmatch(text.strip())
    if match is None:
        return None
    exponent = max(0, SUFFIXES.find(match["u"])) if match["u"] else 0
    value = float(match["n"].replace(",", ".")) * 1024.0**exponent
    return round(value) if value < LARGEST else None


def typed_size(text: str) -> int | None:
    """Parse a size typed by a person: ``18TB`` is decimal (n·1000^k bytes), as on a drive's label.

    ``18T`` and ``18TiB`` are binary, as in ``parse_size``: zpool prints no decimal sizes.
    """
    match = _DRIVE.fullmatch(text)
    if match is None:
        return parse_size(text)
    value = float(match["n"]) * 1000.0 ** SUFFIXES.index(match["u"])
    return round(value) if value < LARGEST else None


def parse_whole(text: str) -> int | None:
    """Parse a number of at most 20 ASCII digits; None for anything else."""
    return int(text) if _WHOLE.fullmatch(text) else None


def size_resolution(text: str) -> float:
    """Return half the step of the last printed digit of a size, in bytes; 0 for plain digits."""
    match = _NUMBER.fullmatch(text.strip())
    if match is None or not match["u"] or match["u"] == "B":
        return 0.0
    decimals = len(re.split(r"[.,]", match["n"])[1]) if re.search(r"[.,]", match["n"]) else 0
    return 0.5 * 10.0**-decimals * 1024.0 ** SUFFIXES.find(match["u"])


def parse_duration(text: str) -> float | None:
    """Parse ``62h28m``, ``1m35s``, ``1 days 02:03:04`` or ``00:00:09`` to seconds; else None."""
    text = text.strip()
    if clock := _CLOCK.fullmatch(text):
        days, hours, minutes, seconds = (int(g or 0) for g in clock.groups())
        return float(((days * 24 + hours) * 60 + minutes) * 60 + seconds)
    words = _DURATION_WORD.findall(text)
    if not words or "".join(n + u for n, u in words) != text:
        return None
    return float(sum(int(n) * {"d": 86400, "h": 3600, "m": 60, "s": 1}[u] for n, u in words))


def size(value: float | None, unknown: str = "-") -> str:
    """Format a size as zpool does, in five characters at most: ``0``, ``1.50K``, ``12.9T``."""
    if value is None or not math.isfinite(value):
        return unknown
    sign, number = ("-", -value) if value < 0 else ("", value)
    number = float(round(number))
    index = 0
    while number >= 1024 and index < len(SUFFIXES) - 1:
        number /= 1024
        index += 1
    unit = SUFFIXES[index] if index else ""
    if index == 0 or number == int(number):
        return f"{sign}{int(number)}{unit}"
    for decimals in (2, 1):  # as many as fit, as zfs_nicenum_format does
        text = f"{number:.{decimals}f}{unit}"
        if len(text) <= 5:
            return sign + text
    return f"{sign}{number:.0f}{unit}"


def rate(value: float | None) -> str:
    """Format bytes per second: ``147M/s``."""
    return "-" if value is None or not math.isfinite(value) else f"{size(value)}/s"


def counted(number: int | float, noun: str) -> str:
    """Format a number of things: ``1 error``, ``1,200 errors``; the plural gets an s."""
    return f"{number} {noun}" if number == 1 else f"{number:,} {noun}s"


def percent(share: float | None, digits: int = 0) -> str:
    """Format a share of 1 with a blank before the percent sign: ``47 %``, ``99.5 %``."""
    if share is None or not math.isfinite(share):
        return "-"
    return f"{round(100 * share, digits) + 0.0:.{digits}f} %"  # + 0.0 turns -0.0 into 0.0


def duration(seconds: float | None, unknown: str = "-") -> str:
    """Format a duration in its two largest units: ``9s``, ``4m10s``, ``17h52m``, ``3d04h``."""
    if seconds is None or math.isnan(seconds) or math.isinf(seconds):
        return unknown
    whole = max(0, round(seconds))
    days, rest = divmod(whole, 86400)
    hours, rest = divmod(rest, 3600)
    minutes, secs = divmod(rest, 60)
    if days:
        return f"{days}d{hours:02d}h"
    if hours:
        return f"{hours}h{minutes:02d}m"
    return f"{minutes}m{secs:02d}s" if minutes else f"{secs}s"


def days(seconds: float) -> str:
    """Format a duration in whole days, ``12 days``; one of less than a day as ``duration`` does."""
    return counted(int(seconds // 86400), "day") if seconds >= 86400 else duration(seconds)


def latency(seconds: float | None, unknown: str = "") -> str:
    """Format a latency: ``730us``, ``8ms``, ``1.2s``."""
    if seconds is None or not math.isfinite(seconds):
        return unknown
    if seconds < 0.001:
        return f"{seconds * 1e6:.0f}us"
    if seconds < 1:
        return f"{seconds * 1e3:.0f}ms"
    return f"{seconds:.1f}s"


LAST_DATE = 250e9
"""Epoch seconds shortly before the year 9999, the last that datetime has."""


def date_of(at: float, zone: tzinfo | None) -> datetime:
    """Return the date of an epoch second, limited to valid ones: a stuck scan may end far later."""
    from datetime import datetime  # lazy: the help has no dates

    return datetime.fromtimestamp(min(max(at, 0.0), LAST_DATE), zone)
