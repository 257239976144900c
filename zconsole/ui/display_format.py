"""Display format of sizes, times and texts: glyphs, units, time zone and keys."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import tzinfo

from zconsole import units
from zconsole.keyed_text import KeyedText
from zconsole.system.printable import clean
from zconsole.ui.keys import SHIPPED, KeyTable
from zconsole.ui.widgets.draw import Line, Span, broken, crop, fit, middle
from zconsole.ui.widgets.graph import UNICODE, Glyphs
from zconsole.units import date_of

_RATE = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?[KMGTPE])/s")
_DECIMAL = ("", "k", "M", "G", "T", "P", "E")
_CELLS = 5
"""Cells of a rounded size, at most."""


UNIT_WORDS = {
    "binary": "in powers of 1024, as zpool prints them",
    "decimal": "in powers of 1000",
    "exact": "in bytes",
}
"""Descriptions of the units, by their names in the settings."""


@dataclass(frozen=True, slots=True)
class DisplayFormat:
    """Everything that drawing functions need besides their data."""

    glyphs: Glyphs = UNICODE
    unit: str = "binary"
    zone: tzinfo | None = None
    keys: KeyTable = SHIPPED
    """The keys that help texts and footers show."""

    @property
    def number(self) -> int:
        """Width in cells of a size or rate in a column, at most."""
        return 12 if self.unit == "exact" else _CELLS

    def text(self, outside: str | None) -> str:
        """Make text from outside safe to print: no control characters, and ASCII where needed."""
        shown = clean(self.said(outside or ""))
        if self.glyphs.is_ascii and not shown.isascii():
            shown = shown.encode("ascii", "backslashreplace").decode("ascii")
        return shown

    def said(self, text: str) -> str:
        """Return a text with the console's own keys filled in, if it names any."""
        return text.in_console(self.keys.shown) if isinstance(text, KeyedText) else text

    def cut(self, outside: str, width: int) -> str:
        """Make text from outside safe, and cut its end to fit ``width`` cells."""
        return fit(self.text(outside), width, ellipsis=self.glyphs.ellipsis).rstrip()

    def middle(self, name: str, width: int) -> str:
        """Make a name from outside safe, and cut its middle to fit ``width`` cells."""
        return middle(self.text(name), width, self.glyphs.ellipsis)

    def crop(self, line: Line, width: int) -> Line:
        """Crop a line to ``width`` cells."""
        return crop(line, width, self.glyphs.ellipsis)

    def wrapped(
        self, outside: str, width: int, role: str = "", indent: str = " "
    ) -> Iterator[Line]:
        """Make text from outside safe, and wrap it to the width with a hanging indent."""
        safe = self.text(outside)
        indent += " " * (len(safe) - len(safe.lstrip(" ")))
        for line in broken(safe.lstrip(" "), max(20, width - len(indent) - 1)):
            yield (Span(indent + line, role),)

    def size(self, value: float | None) -> str:
        """Format bytes in the chosen unit; ``-`` if unknown."""
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
        """Format bytes per second, with ``/s``; ``-`` if unknown."""
        return "-" if value is None or not math.isfinite(value) else f"{self.size(value)}/s"

    def rates(self, text: str) -> str:
        """Convert the rates in a text of another layer to decimal units if these are chosen.

        They are rounded already, so exact numbers of bytes would be wrong.
        """
        if self.unit != "decimal":
            return text
        return _RATE.sub(lambda rate: f"{self.size(units.parse_size(rate[1]))}/s", text)

    def clock(self, at: float) -> str:
        """Format epoch seconds as hours and minutes, ``12:41``."""
        return date_of(at, self.zone).strftime("%H:%M")

    def day(self, at: float) -> str:
        """Format epoch seconds as a date, ``2026-03-01``."""
        return date_of(at, self.zone).strftime("%Y-%m-%d")

    def when(self, at: float, now: float, *, brief: bool = False) -> str:
        """Format a time as people say it at ``now``: ``06:33``, ``tomorrow 06:33``, ``Sun 06:33``.

        ``brief`` names the weekday instead of "tomorrow". Past times have a date, since a weekday
        would be read as a coming one.
        """
        then, today = date_of(at, self.zone), date_of(now, self.zone)
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


def count(number: int | float | None, unknown: str = "-") -> str:
    """Format a count in at most four characters: ``0``, ``9999``, ``12K``, ``2.3M``."""
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
