"""Facts in the note after a vdev's counters, which is also shown as it is."""

from __future__ import annotations

import re
from datetime import tzinfo

from zconsole.pool.model import Progress, Vdev
from zconsole.units import parse_size
from zconsole.zfs.decode.values import parse_date

_RESILVERED = re.compile(r"(\d+(?:[.,]\d+)?[BKMGTPE]?) resilvered")
_BLOCK_SIZE = re.compile(r"block size: (\d+)B configured, (\d+)B native")
_PROGRESS = re.compile(
    r"\((?P<pct>\d+)% (?P<what>initialized|trimmed)(?P<suspended>, suspended)?"
    r"(?:,? (?P<how>started|completed) at (?P<date>[^)]+))?\)"
)


def with_note(vdev: Vdev, running: str | None, zone: tzinfo) -> Vdev:
    """The vdev with what its note tells; ``running``: the active scan's function.

    Source: print_status_config, print_status_initialize and print_status_trim in
    cmd/zpool/zpool_main.c (2.3.9).
    """
    text = vdev.note
    if not text:
        return vdev
    # Solaris 10 prints the amount on each resilvered leaf, also after the end.
    amount = _RESILVERED.search(text)
    sizes = _BLOCK_SIZE.search(text)
    removing = "(removing)" in text
    leaf = not vdev.children
    was = text[4:].partition("  ")[0] if text.startswith("was ") else None
    return vdev._replace(
        path=vdev.path or was,
        resilvering="(resilvering)" in text or (amount is not None and running == "resilver"),
        awaiting_resilver="(awaiting resilver)" in text,
        removing=removing,
        scan_processed=parse_size(amount[1]) if amount else None,
        ashift=int(sizes[1]).bit_length() - 1 if sizes else None,
        physical_ashift=int(sizes[2]).bit_length() - 1 if sizes else None,
        initialize=_progress(text, "initialized", "(initializing)", zone) if leaf else None,
        trim=_progress(text, "trimmed", "(trimming)", zone) if leaf else None,
        allocating=False if removing or "(non-allocating)" in text else None,
    )


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
