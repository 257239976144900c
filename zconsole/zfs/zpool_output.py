"""What zpool itself says about a pool: text to read, and to pass on to others."""

from __future__ import annotations

from typing import NamedTuple

from zconsole.system.printable import clean

MOST = 1 << 18
"""Characters that are kept of an output; the rest is named by its length."""
SINCE_BOOT = "averages since boot"
"""Remark on the first report of ``zpool iostat`` (zpool-iostat(8))."""


class ZpoolOutput(NamedTuple):
    """A command of zpool, and what it printed."""

    command: str
    lines: tuple[str, ...]
    """Printable, without tabs."""
    about: str = ""
    """A remark on the output; empty if it needs none."""

    @property
    def heading(self) -> str:
        """The command as in a shell, with the remark as its comment."""
        remark = f"  # {self.about}" if self.about else ""
        return f"$ {self.command}{remark}"

    @property
    def text(self) -> str:
        """The command and its output, as copied from a shell."""
        return "\n".join((self.heading, *self.lines))


def zpool_output(command: str, printed: str, about: str = "") -> ZpoolOutput:
    """Return an output made printable: a name in it may hold anything."""
    lines = printed[:MOST].strip("\n").split("\n")
    if len(printed) > MOST:
        lines.append(f"({len(printed) - MOST} more characters)")
    return ZpoolOutput(clean(command), tuple(clean(line.expandtabs()) for line in lines), about)
