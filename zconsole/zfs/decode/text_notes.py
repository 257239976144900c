"""What the text after a vdev's counters tells, beside being shown as it is."""

from __future__ import annotations

import re
from datetime import tzinfo
from typing import NamedTuple

from zconsole.pool.model import Progress
from zconsole.units import parse_size
from zconsole.zfs.decode.values import parse_date

_RESILVERED = re.compile(r"(\d+(?:[.,]\d+)?[BKMGTPE]?) resilvered")
_BLOCK_SIZE = re.compile(r"block size: (\d+)B configured, (\d+)B native")
_PROGRESS = re.compile(
    r"\((?P<pct>\d+)% (?P<what>initialized|trimmed)(?P<suspended>, suspended)?"
    r"(?:,? (?P<how>started|completed) at (?P<date>[^)]+))?\)"
)


class Note(NamedTuple):
    """The facts in a note (print_status_config, print_status_initialize, print_status_trim)."""

    was: str | None = None
    resilvering: bool = False
    awaiting: bool = False
    removing: bool = False
    non_allocating: bool = False
    resilvered_bytes: int | None = None
    ashift: int | None = None
    physical_ashift: int | None = None
    initialize: Progress | None = None
    trim: Progress | None = None

    @classmethod
    def of(cls, text: str, running: str | None, zone: tzinfo) -> Note:
        """The facts of one note. ``running``: the active scan's function."""
        if not text:
            return _EMPTY
        # Solaris 10 prints the amount on each resilvered leaf, also after the end.
        amount = _RESILVERED.search(text)
        sizes = _BLOCK_SIZE.search(text)
        return cls(
            was=text[4:].partition("  ")[0] if text.startswith("was ") else None,
            resilvering="(resilvering)" in text or (amount is not None and running == "resilver"),
            awaiting="(awaiting resilver)" in text,
            removing="(removing)" in text,
            non_allocating="(non-allocating)" in text,
            resilvered_bytes=parse_size(amount[1]) if amount else None,
            ashift=int(sizes[1]).bit_length() - 1 if sizes else None,
            physical_ashift=int(sizes[2]).bit_length() - 1 if sizes else None,
            initialize=_progress(text, "initialized", "(initializing)", zone),
            trim=_progress(text, "trimmed", "(trimming)", zone),
        )


_EMPTY = Note()


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
