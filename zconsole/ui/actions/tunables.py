"""The tunables pane: what is set, what it was, what a change did; presets and putting back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual.binding import Binding, BindingType

from zconsole.tunables.control import Setting
from zconsole.tunables.effect import Effect
from zconsole.tunables.memory import Change
from zconsole.tunables.report import notes
from zconsole.ui.draw import Line, Span, fit
from zconsole.ui.look import Look, percent
from zconsole.ui.screens import Lines, PickScreen
from zconsole.ui.theming import Palette

HEAD = "Enter sets  f faster  g gentle  d default  u put back  e put back at the scan's end"


@dataclass(frozen=True, slots=True)
class Wish:
    """What was asked for in the pane."""

    what: str
    """set, faster-resilver, gentle, default, restore or until."""
    index: int


class TunablesScreen(PickScreen):
    """The list, with keys for presets; returns what was asked through ``wish``."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("f", "wish('faster-resilver')", show=False),
        Binding("g", "wish('gentle')", show=False),
        Binding("d", "wish('default')", show=False),
        Binding("u", "wish('restore')", show=False),
        Binding("e", "wish('until')", show=False),
    ]

    def __init__(self, lines: Lines, palette: Palette, start: int) -> None:
        super().__init__(f"TUNABLES  {HEAD}", lines, palette, start=start, wide=True)
        self.wish = "set"

    def action_wish(self, what: str) -> None:
        """Leave with what a key asks for."""
        self.wish = what
        self.choose()


def tunable_lines(
    settings: Sequence[Setting], until: frozenset[str], look: Look, width: int
) -> tuple[Line, ...]:
    """A line a tunable that this kernel has: value, default, unit, meaning."""
    names = max((len(s.tunable.name) for s in settings), default=0)
    return tuple(_line(s, names, s.tunable.name in until, look, width) for s in settings)


def _line(setting: Setting, names: int, until: bool, look: Look, width: int) -> Line:
    tunable = setting.tunable
    value = fit(str(setting.value), 11, right=True)
    default = fit("-" if setting.default is None else str(setting.default), 11, right=True)
    ours = f"was {setting.original}{', goes back at the end' if until else ''}; " * setting.ours
    said = ours + "; ".join((tunable.meaning, *notes(setting)))
    start = f" {fit(tunable.name, names)} "
    middle = f"{default} {fit(tunable.unit, 6)} "
    room = max(4, width - len(start) - len(value) - len(middle) - 1)
    role = "dim" if tunable.never else ""
    shown = fit(look.text(said), room, ellipsis=look.glyphs.ellipsis).rstrip()
    changed = setting.value != setting.default and setting.default is not None
    return (
        Span(start, role),
        Span(value, "accent" if setting.ours else "warning" * changed),
        Span(f" {middle}", "dim"),
        Span(shown, "notice" if setting.ours else "dim"),
    )


def question_lines(setting: Setting, look: Look, width: int) -> tuple[Line, ...]:
    """What to know before typing a value."""
    tunable = setting.tunable
    texts = [
        tunable.meaning,
        f"{tunable.low} to {tunable.high} {tunable.unit}; now {setting.value},"
        f" default {'depends' if setting.default is None else setting.default}",
        "acts on a running scan" if tunable.running_scan else "acts on later scans",
        "it acts on every pool of this machine",
        *notes(setting),
    ]
    room = max(10, width - 3)
    return tuple(
        (Span(f"  {fit(look.text(text), room, ellipsis=look.glyphs.ellipsis).rstrip()}"),)
        for text in texts
    )


def change_text(change: Change, effect: Effect | None) -> str:
    """One change with what it did, for the timeline of events."""
    said = f"{change.name} {change.before} to {change.after}"
    if effect is None or effect.gain is None:
        return f"{said}: its effect is not known yet"
    cost = "" if effect.cost is None else f", latency {_signed(effect.cost)}"
    return f"{said}: issue rate {_signed(effect.gain)}{cost}"


def _signed(share: float) -> str:
    return f"{'+' if share >= 0 else ''}{percent(share, 0)}"
