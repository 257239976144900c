"""What a new job is to do, before there is a plan: its aim, engine and limits, as a list."""

from __future__ import annotations

from dataclasses import replace

from rich.cells import cell_len

from zconsole.rebalance.planning.settings import Settings
from zconsole.ui.actions.plan_lines import wrapped
from zconsole.ui.display_format import DisplayFormat
from zconsole.ui.rebalance.limits import LIMITS
from zconsole.ui.widgets.draw import Line, Span, fit
from zconsole.ui.widgets.short_names import middle

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
_PLAN_LABEL = 17


def option_lines(settings: Settings, look: DisplayFormat, width: int) -> tuple[Line, ...]:
    """Every choice with its present value, and the way on."""
    ellipsis = look.glyphs.ellipsis
    rows: list[Line] = [
        (
            Span(f"  {fit(label, _LABEL)}", "dim"),
            Span(fit(value, max(1, width - _LABEL - 3), ellipsis=ellipsis).rstrip()),
        )
        for label, value in _pairs(settings, look)
    ]
    room = max(4, width - _PLAN_LABEL - 1)
    dirs = middle(_dirs(settings, look), room, ellipsis)
    rows.append((Span(fit("  Make the plan", _PLAN_LABEL), "bold"), Span(dirs, "accent")))
    return tuple(rows)


def option_about(
    settings: Settings, index: int, look: DisplayFormat, width: int
) -> tuple[Line, ...]:
    """A choice's whole value, where its line had to cut it."""
    if index < PLAN:
        label, value = _pairs(settings, look)[index]
        whole, room = f"{label}: {value}", width - _LABEL - 3
    else:
        value = whole = _dirs(settings, look)
        room = width - _PLAN_LABEL - 1
    return () if cell_len(value) <= room else tuple(wrapped(whole, "", look, width, " "))


def _pairs(settings: Settings, look: DisplayFormat) -> list[tuple[str, str]]:
    return [
        ("Aim", AIMS[settings.aim]),
        ("Engine", f"{settings.engine}: {ENGINES[settings.engine]}"),
        *((limit.label, limit.shown(settings.limits, look)) for limit in LIMITS),
        ("Scrubs and resilvers", _SCANS[settings.during_scan]),
        ("Races of the copy engine", _RACES[settings.accept_races]),
    ]


def _dirs(settings: Settings, look: DisplayFormat) -> str:
    return "  ".join(look.text(path) for path in settings.dirs)


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
