"""The free text after a vdev's counters, as ``zpool status`` words it.

Source: print_status_config in cmd/zpool/zpool_main.c (2.3.9).
"""

from __future__ import annotations

from zconsole.zfs.decode.words import aux_text


def note_of(
    aux: str = "",
    was: str | None = None,
    slow_only: bool = False,
    ashifts: tuple[int, int] = (0, 0),
    removing: bool = False,
    allocating: bool = True,
    marker: str = "",
    initializing: bool = False,
    trimming: bool = False,
) -> str:
    """The printed note of a vdev; its parts are two blanks apart.

    ``was``: path of a missing device, whose name is its GUID. ``ashifts``: configured, physical.
    """
    leaving = "(removing)" if removing else "" if allocating else "(non-allocating)"
    cause = f"was {was}" if was is not None else aux_text(aux, slow_only) or _block_size(*ashifts)
    progress = "(initializing)" if initializing else "", "(trimming)" if trimming else ""
    return "  ".join(part for part in (cause, leaving, marker, *progress) if part)


def _block_size(configured: int, physical: int) -> str:
    if 0 < configured < physical < 64:
        return f"block size: {1 << configured}B configured, {1 << physical}B native"
    return ""


def scan_marker(function: str | None, processed: int, deferred: bool) -> str:
    """The marker of an ONLINE leaf while ``function`` (resilver, scrub) is active."""
    if function is None:
        return ""
    if processed:
        return "(resilvering)" if function == "resilver" else "(repairing)"
    return "(awaiting resilver)" if deferred else ""
