"""What a new job is to do, before there is a plan: its aim, engine and limits, as a list."""

from __future__ import annotations

from dataclasses import replace

from zconsole.rebalance.settings import Settings
from zconsole.ui.draw import Line, Span, fit
from zconsole.ui.look import Look
from zconsole.ui.names import middle
from zconsole.ui.rebalance.limits import LIMITS

AIMS = {
    "balance": "spread evenly over the vdevs",
    "width": "new parity width, after a raidz expansion",
    "properties": "new compression or checksum",
    "recordsize": "new recordsize (copies only)",
}
ENGINES = {
    "auto": "what suits each dataset",
    "copy": "verified copies",
    "rewrite": "in place (OpenZFS 2.3.4 and later)",
}
_SCANS = {False: "wait until they end", True: "go on beside them"}
_RACES = {
    False: "refuse where a write could be lost",
    True: "accept: a write of another program may be lost",
}
FIXED = 2
"""Entries before the limits: aim and engine."""
PLAN = FIXED + len(LIMITS) + 2
"""Index of the entry that goes on to the plan."""
_LABEL = 26


def option_lines(settings: Settings, look: Look, width: int) -> tuple[Line, ...]:
    """Every choice with its present value, and the way on."""
    pairs = [
        ("Aim", AIMS[settings.aim]),
        ("Engine", f"{settings.engine}: {ENGINES[settings.engine]}"),
        *((limit.label, limit.shown(settings.limits, look)) for limit in LIMITS),
        ("Scrubs and resilvers", _SCANS[settings.during_scan]),
        ("Races of the copy engine", _RACES[settings.accept_races]),
    ]
    ellipsis = look.glyphs.ellipsis
    rows: list[Line] = [
        (
            Span(f"  {fit(label, _LABEL)}", "dim"),
            Span(fit(value, max(1, width - _LABEL - 3), ellipsis=ellipsis).rstrip()),
        )
        for label, value in pairs
    ]
    dirs = "  ".join(look.text(path) for path in settings.dirs)
    room = max(4, width - 18)
    rows.append((Span("  Make the plan  ", "bold"), Span(middle(dirs, room, ellipsis), "accent")))
    return tuple(rows)


def turned(settings: Settings, index: int) -> Settings:
    """The settings with the entry at an index, which is no limit, turned to its next value."""
    if index == 0:
        return replace(settings, aim=_after(list(AIMS), settings.aim))
    if index == 1:
        return replace(settings, engine=_after(list(ENGINES), settings.engine))
    if index == PLAN - 2:
        return replace(settings, during_scan=not settings.during_scan)
    return replace(settings, accept_races=not settings.accept_races)


def _after(values: list[str], value: str) -> str:
    return values[(values.index(value) + 1) % len(values)]
