"""List of tunables with their values, defaults, changes made from here, and measured effects."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from rich.cells import cell_len

from zconsole import units
from zconsole.output.tunables import notes
from zconsole.tunables.catalog import BYTES, Tunable, exact
from zconsole.tunables.control import Setting
from zconsole.tunables.effect import TunableEffect
from zconsole.tunables.holds import Restoring, Setter, next_way
from zconsole.tunables.store import Change
from zconsole.ui.dialogs.screens import PickList, PickScreen
from zconsole.ui.display_format import DisplayFormat
from zconsole.ui.themed_app import Work, begin_next
from zconsole.ui.widgets.draw import Line, Lines, Span, fit
from zconsole.units import percent

UNCLEAR = "no clear effect"
"""Short verdict on a change after which the figures vary as much as before."""
WITHIN = "it varies by as much"
"""Verdict on a change without a clear effect, for use beside its figures."""
UNMEASURABLE = "effect unmeasurable"
"""Verdict on a change in the rate that may have another cause; the cause is named after it."""
MEASURING = "measuring"
"""Advice on a value whose effect will show soon."""
SET_HERE, CHANGED = "*", "+"
"""Marks of a value set from here, and of any other that is not the default."""
_VALUE, _UNIT = 10, 6
_UNITS_FROM = 66
"""Smallest width in cells with a column of units; details on a tunable always have its unit."""
_MEANING_FROM = 30
"""Cells that must be left in a line to begin a meaning in it."""
_TO_COME = "its effect shows after some minutes of a running scan"
_UNMEASURED = "effect unknown, no scan watched long enough"
_CROWDED = "effect unknown, others changed too soon"
"""Verdicts on a change of which nothing more will be measured; the missing side follows."""
_LABELS = {Restoring.NEVER: "keep", Restoring.AFTER_CONSOLE: "auto-undo"}
"""Labels of the key that switches the restoring, where they differ from that in the key table."""


@dataclass(frozen=True, slots=True)
class ChangeEffect:
    """A change of a tunable, and its effect on the pool on show."""

    change: Change
    effect: TunableEffect | None = None
    together: int = 1
    """Number of tunables set at the same time: the effect is that of all of them together."""
    when: str = ""
    """The time at which it was made, in words."""

    @property
    def values(self) -> str:
        """The change in words."""
        if self.together == 1:
            return f"set from {_values(self.change)}"
        return f"{self.together} tunables set {self.when or 'at once'}"


@dataclass(frozen=True, slots=True)
class TunableRow:
    """A tunable, and what the console knows of it."""

    setting: Setting
    promise: str = ""
    """When and by whom it is restored; empty if it was not set from here."""
    done: ChangeEffect | None = None
    """The newest change of the tunable."""
    undone: ChangeEffect | None = None
    """The change that ``done`` took back, if that restored the value."""
    suggested: str = ""
    """What the main screen's suggestion says to do with it; empty if it is about another."""
    advice: str = "suggested"
    """The same in a word or two: for the list."""


class TunablesScreen(PickScreen, groups=("Tunables",)):
    """List of tunables with details on one; ``request`` tells with which key it was left."""

    about_share = 2  # a value set here has a long story: who restores it, what it did

    def __init__(
        self,
        shown: Callable[[], Sequence[TunableRow]],
        start: int,
        held: Callable[[], str],
        fast: Callable[[], str],
        renew: Work,
        pool_guid: str,
    ) -> None:
        """The callables are called at each drawing, as values may change meanwhile.

        ``held`` describes the autopilot, ``fast`` what the key of the faster preset would set.
        ``renew`` rereads the values. ``pool_guid``: of the pool at the end of whose scan they may
        be restored.
        """
        self._now: Sequence[TunableRow] = ()
        self._held = self._fast = ""
        self._renew = renew
        self._guid = pool_guid

        def _lines(look: DisplayFormat, width: int) -> Lines:
            self._now, self._held, self._fast = shown(), held(), fast()
            return tunable_lines(self._now, look, width)

        def _about(index: int, look: DisplayFormat, width: int) -> Lines:
            return about_lines(self._now[index], look, width, self._held, self._fast)

        super().__init__(PickList("TUNABLES", _lines, start, _about))
        self.request = "set"

    def draw(self) -> None:
        """Draw the values read last, and start to reread them for the next drawing."""
        super().draw()
        begin_next(self.app, self._renew, "values")

    def title_line(self, width: int) -> Line:
        """Return the headings of the columns."""
        return head_line(self._now, width)

    def show_keys(self) -> None:
        """Draw the keys; that of the restoring at the scan's end says what it would change."""
        holds = (row.setting.hold for row in self._now)
        way = next_way((hold for hold in holds if hold is not None), self._guid)
        self.labels = {"restore-at-end": _LABELS[way]} if way in _LABELS else {}
        super().show_keys()

    def action_request(self, what: str) -> None:
        """Close the screen with the request of a key."""
        self.request = what
        self.action_open()


def head_line(shown: Sequence[TunableRow], width: int) -> Line:
    """Return the headings of the columns of ``tunable_lines``."""
    name = fit("TUNABLES", _names(shown))
    value, default = fit("VALUE", _VALUE, right=True), fit("DEFAULT", _VALUE, right=True)
    start = f"   {name} {value} {default} {_unit('UNIT', width)}"
    last = "NOTE" if width - cell_len(start) < _MEANING_FROM else "NOTE, OR MEANING"
    room = width - cell_len(start)
    return (Span(start + last * (room >= cell_len(last)), "title"),)


def _unit(text: str, width: int) -> str:
    return f"{fit(text, _UNIT)} " if width >= _UNITS_FROM else ""


def tunable_lines(shown: Sequence[TunableRow], look: DisplayFormat, width: int) -> Lines:
    """Return one line per tunable of this kernel: value, default, unit, change, meaning."""
    names = _names(shown)
    return tuple(_line(each, names, look, width) for each in shown)


def _names(shown: Sequence[TunableRow]) -> int:
    return max((len(each.setting.tunable.name) for each in shown), default=0)


def _line(shown: TunableRow, names: int, look: DisplayFormat, width: int) -> Line:
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
    room = width - len(start) - len(value) - len(middle) - 1
    role = "dim" if tunable.never else ""
    said = look.cut(_said(shown, room), room) if room >= len("NOTE") else ""
    return (
        Span(start, role),
        Span(value, "notice" if setting.ours else "warning" * changed),
        Span(f" {middle}", "dim"),
        Span(said, "notice" if setting.ours or shown.suggested else "dim"),
    )


def _said(shown: TunableRow, room: int) -> str:
    """Return what was set from here, and its effect, then the meaning if there is room for it."""
    setting, tunable = shown.setting, shown.setting.tunable
    said = f"was {tunable.exact(setting.original)}" * setting.ours
    advice = shown.advice * bool(shown.suggested)
    effect = shown.done.effect if shown.done and shown.done.together == 1 else None
    # The value before comes last: a narrow list cuts it.
    if said and effect is not None and effect.gain is not None:
        gain = _gain(effect) if effect.issue_clear else UNCLEAR
        said = f"{UNMEASURABLE if effect.doubt else gain}, {said}"
    elif said and advice == MEASURING:
        said, advice = f"{advice}, {said}", ""
    more = "; ".join(filter(None, (said, advice)))
    if len(more) <= room:  # otherwise only in the details below the list
        said = more
    if room < _MEANING_FROM:
        return said
    ends = f", {setting.hold.brief}" if setting.hold and setting.hold.brief else ""
    return "; ".join(filter(None, (said + ends, tunable.meaning)))


def about_lines(
    shown: TunableRow, look: DisplayFormat, width: int, pilot: str = "", fast: str = ""
) -> Lines:
    """Return details on a tunable: when it is restored, its range, and its newest change.

    ``pilot`` describes the autopilot; empty if none runs: then the last line says how to start it.
    ``fast`` is what the key of the faster preset would set.
    """
    setting, tunable = shown.setting, shown.setting.tunable
    said = f"{SET_HERE} set here, was {tunable.exact(setting.original)}: {shown.promise}"
    ours = look.wrapped(said, width, "notice") if setting.ours else []
    steered = setting.hold is not None and setting.hold.by is Setter.AUTOPILOT
    # A small screen cuts the end: the restoring of a value comes before hints.
    first = [] if steered or shown.suggested else ours
    lines = [*first, *(look.wrapped(pilot, width, "notice") if pilot else ())]
    lines += look.wrapped(f"{allowed(setting)}; {_acts(tunable)}", width, "bold")
    harm = "; ".join(notes(setting))
    if shown.suggested:
        for text, role in ((f"Suggested: {shown.suggested}", "notice"), (harm, "")):
            lines += look.wrapped(text, width, role) if text else ()
        harm = ""
    lines += () if first else ours
    if not setting.ours and setting.default not in (None, setting.value):
        said = f"{CHANGED} not the default, and not set here"
        lines += look.wrapped(said, width, "warning")
    for said in _effects(shown, look):
        lines += look.wrapped(said, width, "notice")
    meaning = "; ".join(filter(None, (harm, tunable.meaning)))
    lines += look.wrapped(meaning, width)
    lines += look.wrapped(fast, width, "dim") if fast else ()
    if not pilot:
        key = look.keys.shown("hold-latency")
        said = f"{key} starts the autopilot: scans go as fast as a latency you set allows"
        lines += look.wrapped(said, width, "dim")
    return tuple(lines)


def _effects(shown: TunableRow, look: DisplayFormat) -> Iterator[str]:
    """Yield what the newest change did, and what the value did that this restored, if measured."""
    done, undone = shown.done, shown.undone
    if done is not None:
        yield f"{'restored' if undone else done.values}: {_measured(done.effect, look)}"
    if undone is not None and undone.effect is not None and undone.effect.gain is not None:
        yield f"before that, {undone.values}: {_measured(undone.effect, look)}"


def _measured(effect: TunableEffect | None, look: DisplayFormat) -> str:
    """Describe an effect: ``issued 120M/s in the minutes before, 150M/s … (+25 %); …``."""
    if effect is None or effect.gain is None:
        if effect is None or not effect.over:
            return _TO_COME
        side = "before" if effect.issue_before is None else "after"
        return f"{_CROWDED if effect.crowded else _UNMEASURED} {side} it"
    rates = f"issued {_rates(effect, look)}"
    was, now = (
        units.latency(each or 0.0) for each in (effect.latency_before, effect.latency_after)
    )
    # Not the latency of the autopilot, which is that of nearly all requests of applications.
    waits = f"mean latency {was} before, {now} after"
    latency = []
    if effect.cost is not None:
        latency = [_judged(waits, _signed(effect.cost), effect.latency_clear)]
    if effect.doubt:  # beside figures it would read as a gain or a loss
        return "; ".join((f"{UNMEASURABLE}: {effect.doubt}", *latency))
    if latency and not (effect.issue_clear or effect.latency_clear):
        return f"{UNCLEAR}: {rates}; {waits}"
    return "; ".join((_judged(rates, _gain(effect), effect.issue_clear), *latency))


def _rates(effect: TunableEffect, look: DisplayFormat) -> str:
    """Return the rates compared, and when they were measured: the rate of now may be another."""
    was, now = (look.rate(each or 0.0) for each in (effect.issue_before, effect.issue_after))
    if effect.rough:
        return f"about {was} before, {now} in the minutes after"
    return f"{was} in the minutes before, {now} in the minutes after"


def _values(change: Change) -> str:
    return f"{exact(change.name, change.before)} to {exact(change.name, change.after)}"


def _judged(figures: str, change: str, is_clear: bool) -> str:
    """Add the relative change, or that it does not exceed the usual variation."""
    return f"{figures} ({change})" if is_clear else f"{figures}: {WITHIN}"


def question_lines(setting: Setting, suggested: str, look: DisplayFormat, width: int) -> Lines:
    """Return what to know before typing a value, and the suggested value, if any."""
    texts = [
        setting.tunable.meaning,
        *([f"Suggested: {suggested}."] if suggested else ()),
        f"Now {setting.tunable.exact(setting.value)}; {allowed(setting)}.",
        f"{_acts(setting.tunable).capitalize()}, and on every pool of this machine.",
        *notes(setting),
    ]
    said = (f"{text[0].upper()}{text[1:].removesuffix('.')}." for text in texts)
    return tuple(line for text in said for line in look.wrapped(text, width, "", "  "))


def allowed(setting: Setting) -> str:
    """Return the permitted values with their unit, and the default, as words for both."""
    tunable = setting.tunable
    default = "depends" if setting.default is None else tunable.exact(setting.default)
    joined = "or" if tunable.high - tunable.low == 1 else "to"
    unit = "" if tunable.unit == "0/1" else f" {tunable.unit}"
    values = f"{tunable.rounded(tunable.low)} {joined} {tunable.rounded(tunable.high)}{unit}"
    return f"values {values}, default {default}"


def _acts(tunable: Tunable) -> str:
    return "acts on a running scan" if tunable.running_scan else "acts on later scans only"


def changes_text(changes: Sequence[Change], effect: TunableEffect) -> str:
    """Describe tunables set at one time, with their effect if known, for the timeline."""
    first = f"{changes[0].name} {_values(changes[0])}"
    said = first if len(changes) == 1 else f"{first} and {len(changes) - 1} more"
    if effect.gain is None:
        return said
    rate = f"issue rate {_gain(effect)}" if effect.issue_clear else ""
    rate = f"{UNMEASURABLE}: {effect.doubt}" if effect.doubt else rate
    slower = effect.cost is not None and effect.latency_clear
    cost = f"latency {_signed(effect.cost or 0.0)}" if slower else ""
    return f"{said}: {', '.join(filter(None, (rate, cost))) or UNCLEAR}"


def _gain(effect: TunableEffect) -> str:
    """Return the relative change of the issue rate, which is known."""
    return f"{'about ' * effect.rough}{_signed(effect.gain or 0.0)}"


def _signed(share: float) -> str:
    return f"{'+' if share >= 0 else ''}{percent(share)}"
