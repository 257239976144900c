"""The tunables pane: what is set, what it was, what a change did; presets and putting back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from rich.cells import cell_len
from textual.binding import BindingType

from zconsole import units
from zconsole.output.tunables import notes
from zconsole.tunables.catalog import BYTES, Tunable, exact
from zconsole.tunables.control import Setting
from zconsole.tunables.effect import TunableEffect
from zconsole.tunables.holds import Setter
from zconsole.tunables.store import Change
from zconsole.ui.actions.plan_lines import wrapped
from zconsole.ui.background import Work, begin_next
from zconsole.ui.dialogs.screens import PickScreen
from zconsole.ui.display_format import DisplayFormat, percent
from zconsole.ui.keys import bindings
from zconsole.ui.widgets.draw import Line, Span, fit

UNCLEAR = "no clear effect"
"""Of a change after which the figures vary as they did before, in short …"""
WITHIN = "within what it varies by: no clear effect"
"""… and beside the figures."""
UNMEASURABLE = "effect unmeasurable"
"""Of a change of the rate that need not be the tunable's; why stands behind it."""
SET_HERE, CHANGED = "*", "+"
"""Marks of a value set from here, and of another that is not the default."""
_VALUE, _UNIT = 10, 6
_UNITS_FROM = 66
"""Cells a screen needs for the column of units; the line at the cursor is told with its unit."""
_MEANING_FROM = 30
"""Cells a line must have left for a meaning to be worth beginning."""
_SUGGESTED = "suggested"
_TO_COME = "its effect shows after some minutes of a running scan"
_UNMEASURED = "effect unknown: no scan watched long enough"
"""Of a change of which no more will be known; the side that is lacking follows."""


@dataclass(frozen=True, slots=True)
class Shown:
    """A tunable with what is known of it from here."""

    setting: Setting
    promise: str = ""
    """When it is restored, and by whom; empty where it was not set from here."""
    change: Change | None = None
    """The newest one."""
    effect: TunableEffect | None = None
    """What that did to the pool on show."""
    together: int = 1
    """How many were set at once: the effect is that of all, and no single one's."""
    suggested: str = ""
    """What the suggestion on the main screen says to do with it; empty where it is not about it."""


class TunablesScreen(PickScreen):
    """The list, what is known of the one at the cursor, keys for presets; leaves a ``request``."""

    groups = ("Menu", "Tunables")
    BINDINGS: ClassVar[list[BindingType]] = bindings("Tunables")

    def __init__(
        self,
        shown: Callable[[], Sequence[Shown]],
        look: Callable[[], DisplayFormat],
        start: int,
        held: Callable[[], str],
        renew: Work,
    ) -> None:
        """All of these are asked at each drawing: values and units change meanwhile.

        ``held``: what the autopilot does, or that it can be started. ``renew`` reads the values.
        """
        self._now: Sequence[Shown] = ()
        self._held = ""
        self._renew = renew

        def _lines(width: int) -> tuple[Line, ...]:
            self._now, self._held = shown(), held()
            return tunable_lines(self._now, look(), width)

        def _about(index: int, width: int) -> tuple[Line, ...]:
            return about_lines(self._now[index], look(), width, self._held)

        super().__init__("TUNABLES", _lines, start=start, wide=True, about=_about)
        self.request = "set"

    def draw(self) -> None:
        """Draw what was read last, and read again for the next round."""
        super().draw()
        begin_next(self.app, self._renew, "values")

    def title_line(self, width: int) -> Line:
        """What the columns are."""
        return head_line(self._now, width)

    def action_request(self, what: str) -> None:
        """Leave with what a key asks for."""
        self.request = what
        self.action_open()


def head_line(shown: Sequence[Shown], width: int) -> Line:
    """The headings of the columns of ``tunable_lines``."""
    name = fit("TUNABLES", _names(shown))
    value, default = fit("VALUE", _VALUE, right=True), fit("DEFAULT", _VALUE, right=True)
    start = f"   {name} {value} {default} {_unit('UNIT', width)}"
    last = "NOTE" if width - cell_len(start) < _MEANING_FROM else "NOTE, OR MEANING"
    room = width - cell_len(start)
    return (Span(start + last * (room >= cell_len(last)), "title"),)


def _unit(text: str, width: int) -> str:
    return f"{fit(text, _UNIT)} " if width >= _UNITS_FROM else ""


def tunable_lines(shown: Sequence[Shown], look: DisplayFormat, width: int) -> tuple[Line, ...]:
    """One line per tunable of this kernel: value, default, unit, what was done, meaning."""
    names = _names(shown)
    return tuple(_line(each, names, look, width) for each in shown)


def _names(shown: Sequence[Shown]) -> int:
    return max((len(each.setting.tunable.name) for each in shown), default=0)


def _line(shown: Shown, names: int, look: DisplayFormat, width: int) -> Line:
    setting = shown.setting
    tunable = setting.tunable
    shown_as = look.size if tunable.unit == BYTES else tunable.rounded
    value, default = (
        fit("-" if number is None else shown_as(number), _VALUE, right=True)
        for number in (setting.value, setting.default)
    )
    changed = setting.value != setting.default and setting.default is not None
    mark = SET_HERE if setting.ours else CHANGED if changed else " "
    start = f" {mark} {fit(tunable.name, names)} "
    middle = f"{default} {_unit(tunable.unit, width)}"
    room = max(4, width - len(start) - len(value) - len(middle) - 1)
    role = "dim" if tunable.never else ""
    said = look.cut(_said(shown, room), room)
    return (
        Span(start, role),
        Span(value, "notice" if setting.ours else "warning" * changed),
        Span(f" {middle}", "dim"),
        Span(said, "notice" if setting.ours or shown.suggested else "dim"),
    )


def _said(shown: Shown, room: int) -> str:
    """What was done from here, first; the meaning only where there is room for more of it."""
    setting = shown.setting
    said = f"was {setting.tunable.exact(setting.original)}" * setting.ours
    alone = shown.together == 1
    if said and alone and shown.effect is not None and shown.effect.gain is not None:
        gain = _signed(shown.effect.gain) if shown.effect.issue_clear else UNCLEAR
        said += f", {UNMEASURABLE if shown.effect.doubt else gain}"
    more = "; ".join(filter(None, (said, _SUGGESTED * bool(shown.suggested))))
    if len(more) <= room:  # else only below the list
        said = more
    if room < _MEANING_FROM:
        return said
    ends = f", {setting.hold.brief}" if setting.hold and setting.hold.brief else ""
    return "; ".join(filter(None, (said + ends, setting.tunable.meaning)))


def about_lines(shown: Shown, look: DisplayFormat, width: int, pilot: str = "") -> tuple[Line, ...]:
    """The tunable at the cursor: what becomes of it, its range, what its newest change did.

    ``pilot``: what the autopilot does.
    """
    setting, tunable = shown.setting, shown.setting.tunable
    said = f"{SET_HERE} set here, was {tunable.exact(setting.original)}: {shown.promise}"
    ours = wrapped(said, "notice", look, width, " ") if setting.ours else []
    steered = setting.hold is not None and setting.hold.by is Setter.AUTOPILOT
    # A small screen has no room for all of it: what becomes of a value comes before hints.
    first = [] if steered or shown.suggested else ours
    lines = [*first, *(wrapped(pilot, "notice", look, width, " ") if pilot else ())]
    lines += wrapped(f"{allowed(setting)}; {_acts(tunable)}", "bold", look, width, " ")
    harm = "; ".join(notes(setting))
    if shown.suggested:
        for text, role in ((f"Suggested: {shown.suggested}", "notice"), (harm, "")):
            lines += wrapped(text, role, look, width, " ") if text else ()
        harm = ""
    lines += () if first else ours
    if not setting.ours and setting.default not in (None, setting.value):
        said = f"{CHANGED} not the default, and not set here"
        lines += wrapped(said, "warning", look, width, " ")
    if shown.change is not None:
        said = _measured(shown.change, shown.effect, shown.together, look)
        lines += wrapped(said, "notice", look, width, " ")
    meaning = "; ".join(filter(None, (harm, tunable.meaning)))
    lines += wrapped(meaning, "", look, width, " ")
    return tuple(lines)


def _measured(
    change: Change, effect: TunableEffect | None, together: int, look: DisplayFormat
) -> str:
    """``3000 to 6000: issued 120M/s before, 150M/s after (+25 %); disks waited 12 ms …``."""
    said = f"{_values(change) if together == 1 else f'{together} tunables at once'}: "
    if effect is None or effect.gain is None:
        if effect is None or not effect.over:
            return said + _TO_COME
        return f"{said}{_UNMEASURED} {'before' if effect.issue_before is None else 'after'} it"
    rates = (effect.issue_before, effect.issue_after)
    parts = [_compared("issued", look.rate, *rates, effect.gain, effect.issue_clear, effect.doubt)]
    if effect.cost is not None:
        waits = (effect.latency_before, effect.latency_after)
        parts.append(_compared("latency", units.latency, *waits, effect.cost, effect.latency_clear))
    return said + "; ".join(parts)


def _values(change: Change) -> str:
    return f"{exact(change.name, change.before)} to {exact(change.name, change.after)}"


def _compared(
    what: str,
    show: Callable[[float], str],
    before: float | None,
    after: float | None,
    share: float,
    is_clear: bool,
    doubt: str = "",
) -> str:
    """Both sides, and the change as a share, with whether that is more than either varies by.

    No share where it need not be the tunable's, but why.
    """
    change = _signed(share) if is_clear else f"{_signed(share)}, {WITHIN}"
    change = f"{UNMEASURABLE}: {doubt}" if doubt else change
    return f"{what} {show(before or 0.0)} before, {show(after or 0.0)} after ({change})"


def question_lines(
    setting: Setting, suggested: str, look: DisplayFormat, width: int
) -> tuple[Line, ...]:
    """What to know before typing a value, and which one is suggested, if any."""
    texts = [
        setting.tunable.meaning,
        *([f"Suggested: {suggested}."] if suggested else ()),
        f"Now {setting.tunable.exact(setting.value)}; {allowed(setting)}.",
        f"{_acts(setting.tunable).capitalize()}, and on every pool of this machine.",
        *notes(setting),
    ]
    return tuple(line for text in texts for line in wrapped(text, "", look, width))


def allowed(setting: Setting) -> str:
    """Which values it may have, with what they count, and which it has by default."""
    tunable = setting.tunable
    default = "depends" if setting.default is None else tunable.exact(setting.default)
    joined = "or" if tunable.high - tunable.low == 1 else "to"
    unit = "" if tunable.unit == "0/1" else f" {tunable.unit}"
    values = f"{tunable.rounded(tunable.low)} {joined} {tunable.rounded(tunable.high)}{unit}"
    return f"{values}, default {default}"


def _acts(tunable: Tunable) -> str:
    return "acts on a running scan" if tunable.running_scan else "acts on later scans only"


def changes_text(changes: Sequence[Change], effect: TunableEffect) -> str:
    """What was set at one time, with what it did where that is known, for the timeline."""
    first = f"{changes[0].name} {_values(changes[0])}"
    said = first if len(changes) == 1 else f"{first} and {len(changes) - 1} more"
    if effect.gain is None:
        return said
    rate = f"issue rate {_signed(effect.gain)}" if effect.issue_clear else ""
    rate = f"{UNMEASURABLE}: {effect.doubt}" if effect.doubt else rate
    slower = effect.cost is not None and effect.latency_clear
    cost = f"latency {_signed(effect.cost or 0.0)}" if slower else ""
    return f"{said}: {', '.join(filter(None, (rate, cost))) or UNCLEAR}"


def _signed(share: float) -> str:
    return f"{'+' if share >= 0 else ''}{percent(share, 0)}"
