"""The dates between which a scrub reads what was written, as people type them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime

from zconsole.errors import ZconsoleError

EXAMPLE = "2026-11-01 to 2026-11-20 18:00"
_DATE = r"\d{4}-\d\d-\d\d(?: \d\d:\d\d)?"
_SPAN = re.compile(
    rf"(?:from |since )?(?P<start>{_DATE})?\s*(?:(?:to|until|till|\.\.)\s*(?P<end>{_DATE}))?"
)
_FIRST = "1970-01-02"
"""Dates before the epoch are no numbers that ZFS takes (zpool_main.c, date_string_to_sec)."""


@dataclass(frozen=True, slots=True)
class ScrubDates:
    """The first and last date, in the machine's own time zone; empty: open."""

    start: str = ""
    end: str = ""
    """A day counts whole, a minute whole."""

    @property
    def options(self) -> tuple[str, ...]:
        """The options of zpool-scrub(8)."""
        pairs = (("-S", self.start), ("-E", self.end))
        if not (self.start or self.end):
            return ("-S", "FROM", "-E", "TO")  # to be shown before they are asked for
        return tuple(word for option, date in pairs if date for word in (option, date))

    @property
    def words(self) -> str:
        """``from 2026-11-01 to 2026-11-20``."""
        if not self.end:
            return f"since {self.start}" if self.start else "between two dates"
        return f"from {self.start} to {self.end}" if self.start else f"until {self.end}"


def read_dates(text: str, now: datetime) -> ScrubDates:
    """The dates typed: ``2026-11-01``, ``2026-11-01 to 2026-11-20 18:00``, ``to 2026-11-20``.

    ``now`` is the machine's own time. Raises ZconsoleError for what are no dates, in an order that
    makes no sense, or yet to come.
    """
    match = _SPAN.fullmatch(" ".join(text.split()))
    found = ScrubDates(match["start"] or "", match["end"] or "") if match else ScrubDates()
    if found == ScrubDates():
        raise ZconsoleError(f"{text}: not dates. Example: {EXAMPLE}")
    for date in filter(None, (found.start, found.end)):
        _check(date)
    if found.start and _moment(found.start) > now:
        raise ZconsoleError(f"{found.start} is in the future: nothing was written then")
    if found.start and found.end and _moment(found.start) > _moment(found.end, last=True):
        raise ZconsoleError(f"{found.end} is before {found.start}")
    return found


def _check(date: str) -> None:
    """Raises ZconsoleError for a day or time that does not exist."""
    try:
        _moment(date)
    except ValueError:
        raise ZconsoleError(f"{date}: no such day or time") from None
    if date < _FIRST:
        raise ZconsoleError(f"{date}: too early")


def _moment(date: str, *, last: bool = False) -> datetime:
    """The first moment of a date, or the last. Raises ValueError where there is none."""
    time = "" if " " in date else " 23:59" if last else " 00:00"
    return datetime.fromisoformat(f"{date}{time}").astimezone()
