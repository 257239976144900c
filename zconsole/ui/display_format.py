"""How things are written on this screen: its glyphs, units and time zone."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from datetime import tzinfo

from zconsole import units
from zconsole.keyed_text import KeyedText
from zconsole.system.printable import clean
from zconsole.ui.keys import SHIPPED, KeyTable
from zconsole.ui.widgets.draw import Line, crop, fit
from zconsole.ui.widgets.glyphs import UNICODE, Glyphs
from zconsole.ui.widgets.short_names import middle
from zconsole.units import date_of

_RATE = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?[KMGTPE])/s")
_DECIMAL = ("", "k", "M", "G", "T", "P", "E")
_CELLS = 5
"""Cells of a size that is rounded, at most."""


UNIT_WORDS = {
    "binary": "in powers of 1024, as zpool prints them",
    "decimal": "in powers of 1000",
    "exact": "in bytes",
}
"""What the units are, by their name in the settings."""


@dataclass(frozen=True, slots=True)
class DisplayFormat:
    """What a drawing function needs to know beside its data."""

    glyphs: Glyphs = UNICODE
    unit: str = "binary"
    zone: tzinfo | None = None
    keys: KeyTable = SHIPPED
    """The keys that help and footers show."""

    @property
    def number(self) -> int:
        """Cells a size or rate takes at most in a column."""
        return 12 if self.unit == "exact" else _CELLS

    def text(self, outside: str | None) -> str:
        """Text from outside, with nothing in it that a terminal would act on."""
        shown = clean(self.said(outside or ""))
        if self.glyphs.is_ascii and not shown.isascii():
            shown = shown.encode("ascii", "backslashreplace").decode("ascii")
        return shown

    def said(self, text: str) -> str:
        """A text with the console's keys, where it names an act."""
        return text.told(self.keys.way) if isinstance(text, KeyedText) else text

    def cut(self, outside: str, width: int) -> str:
        """Text from outside in at most ``width`` cells, without its end if it has to be."""
        return fit(self.text(outside), width, ellipsis=self.glyphs.ellipsis).rstrip()

    def middle(self, name: str, width: int) -> str:
        """A name from outside in at most ``width`` cells, without its middle if it has to be."""
        return middle(self.text(name), width, self.glyphs.ellipsis)

    def crop(self, line: Line, width: int) -> Line:
        """A line in at most ``width`` cells."""
        return crop(line, width, self.glyphs.ellipsis)

    def size(self, value: float | None) -> str:
        """Bytes in the units chosen; ``-`` when unknown."""
        if value is None or not math.isfinite(value) or self.unit == "binary":
            return units.size(value)
        if self.unit == "exact":
            return f"{value:.0f}"
        index = 0
        while abs(value) >= 999.5 and index < len(_DECIMAL) - 1:
            value /= 1000
            index += 1
        shown = [f"{value:.{digits * bool(index)}f}{_DECIMAL[index]}" for digits in (2, 1, 0)]
        return next((text for text in shown if len(text) <= _CELLS), shown[-1])

    def rate(self, value: float | None) -> str:
        """Bytes a second with their ``/s``."""
        return "-" if value is None or not math.isfinite(value) else f"{self.size(value)}/s"

    def rates(self, text: str) -> str:
        """Rates inside a text of another layer in the units chosen.

        They are rounded: exact ones would claim more than is known.
        """
        if self.unit != "decimal":
            return text
        return _RATE.sub(lambda rate: f"{self.size(units.parse_size(rate[1]))}/s", text)

    def clock(self, t: float) -> str:
        """Hours and minutes of an epoch time, ``12:41``."""
        return date_of(t, self.zone).strftime("%H:%M")

    def day(self, t: float) -> str:
        """The date of an epoch time, ``2026-03-01``."""
        return date_of(t, self.zone).strftime("%Y-%m-%d")

    def when(self, t: float, now: float, *, brief: bool = False) -> str:
        """A time as people say it at ``now``: ``06:33``, ``tomorrow 06:33``, ``Sun 06:33``.

        ``brief`` names the day of tomorrow, too. What is past has a date: the day of the
        week would be read as the one to come.
        """
        then, today = date_of(t, self.zone), date_of(now, self.zone)
        days = (then.date() - today.date()).days
        clock = then.strftime("%H:%M")
        if days == 0:
            return clock
        if days == -1:
            return f"yesterday {clock}"
        if days == 1 and not brief:
            return f"tomorrow {clock}"
        if 0 < days < 7:
            return f"{then:%a} {clock}"
        return f"{then:%d %b} {clock}" if then.year == today.year else f"{then:%Y-%m-%d} {clock}"


def percent(share: float | None, digits: int = 1) -> str:
    """A share 0…1 as ``38.2 %``; a ``-`` when unknown."""
    return units.percent(share, digits)


def count(number: int | float | None, unknown: str = "-") -> str:
    """A count in at most four characters: ``0``, ``9999``, ``12K``, ``2.3M``."""
    if number is None or not math.isfinite(number):
        return unknown
    if round(number) < 10000:
        return str(round(number))
    for suffix in "KMGTPE":
        number /= 1000
        if round(number, 1) < 10:
            return f"{number:.1f}{suffix}"
        if round(number) < 1000:
            return f"{round(number)}{suffix}"
    return "lots"
