"""Results of the diagnosis: the limit of a running scan, and its estimated maximum."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple

from zconsole.keyed_text import KeyedText
from zconsole.pool.model import NOTHING
from zconsole.tunables.effect import TunableEffect
from zconsole.units import latency, percent, rate, size

CAUSES = {
    "new-disk": "the new disk's writes",
    "slow-disk": "a slow source disk",
    "random": "random I/O",
    "foreground": "other I/O",
    "throttle": "a throttle or tunable",
    "memory": "scan memory",
    "cpu": "the processor",
    "bus": "a shared link",
    "smr": "a shingled new disk",
    "disks": "disk throughput",
    "metadata": "finding blocks",
    "unclear": "unclear",
}
"""All causes of a verdict as text; ``disks``: the scan keeps its disks streaming."""

OUT_OF_REACH = ("new-disk", "slow-disk", "bus", "smr", "cpu", "disks", "metadata")
"""Causes that no tunable removes, unless one is suggested."""


LEAST_GAIN = 0.05
"""Least gain, as a share of the rate, that counts as an effect: a scan varies by that much."""
WORTHWHILE = 0.1
"""Least gain of a raise, as a share of the rate, after which a further raise is suggested."""


LARGE_RAISE = 1.5
"""Least factor of a raise whose effect shows whether another raise would help.

The raises of an autopilot are smaller; suggested values are at least twice the old one.
"""


class TunableStep(NamedTuple):
    """Newest large raise of a tunable."""

    before: int
    after: int
    effect: TunableEffect | None = None
    """Effect on the issue rate; None until measured, without values if it can't be."""
    at: float = 0.0
    """When it was noticed (monotonic clock)."""

    @property
    def clear(self) -> bool:
        """Whether the rate changed by more than its usual variation."""
        return self.effect is not None and self.effect.issue_clear

    @property
    def gain(self) -> float:
        """Clear change of the rate as a share of the earlier one; 0.0 if there was none."""
        if self.effect is None or not self.clear:
            return 0.0
        return self.effect.gain or 0.0

    @property
    def helped(self) -> bool:
        """Whether it clearly made the scan faster."""
        return self.gain >= LEAST_GAIN

    @property
    def worthwhile(self) -> bool:
        """Whether it made the scan so much faster that a further raise may, too."""
        return self.gain >= WORTHWHILE


class ActTexts(NamedTuple):
    """Texts of an action: for the command line, for the console, and next to the tunable."""

    command: str
    by_key: str
    """With ``{keys}`` for the keys to press."""
    beside: str
    keys: tuple[str, ...] = ("tunables",)
    """Titles of the commands behind those keys."""


ACTS = {
    "set": ActTexts(
        "zconsole tunables set {tunable}={value}",
        "press {keys}, set {tunable}={value}",
        "set it to {value}",
    ),
    "release": ActTexts(
        "zconsole tunables set {tunable}={value} (its default)",
        "press {keys}, set {tunable}={value} (its default)",
        "set it to {value} (its default)",
    ),
    "raise": ActTexts(
        "raise {tunable} (zconsole tunables set)", "raise {tunable} ({keys})", "raise it"
    ),
    "restore": ActTexts(
        "zconsole tunables restore {tunable}", "press {keys}", "restore it", ("tunables", "restore")
    ),
    "hold": ActTexts(
        "zconsole tunables hold-latency",
        "limit application latency ({keys})",
        "limit application latency",
        ("tunables", "hold-latency"),
    ),
    "wait": ActTexts(
        "wait: what {tunable}={value} brings",
        "wait: what {tunable}={value} brings",
        "wait: what {value} brings",
    ),
    # These are parts of a sentence that gives the reason, without the command or keys.
    "change": ActTexts("set {tunable}={value}", "set {tunable}={value}", "set it to {value}"),
    "increase": ActTexts("raise {tunable}", "raise {tunable}", "raise it"),
}
"""Actions on a tunable, and ``hold``: start the autopilot."""


class Suggestion(NamedTuple):
    """Suggestion to overcome a limit: an action on a tunable, or just a text."""

    words: str = ""
    """Text, with ``{act}`` in place of the action; empty if nothing can be done."""
    act: str = ""
    """Key of ACTS; empty without an action."""
    tunable: str = ""
    value: int | None = None
    """Value to set, if known; for ``wait`` the value that was set."""

    @property
    def text(self) -> KeyedText:
        """Text for the command line, and for the console with its keys."""
        if not self.act:
            return KeyedText(self.words, self.words)
        told = ACTS[self.act]
        return KeyedText(self._with(told.command), self._with(told.by_key), *told.keys)

    @property
    def beside(self) -> str:
        """Text to show next to the tunable."""
        return self._with(ACTS[self.act].beside) if self.act else self.words

    def _with(self, act: str) -> str:
        """Return the text with this form of the action in it."""
        told = act.format(tunable=self.tunable, value=self.value, keys="{keys}")
        return self.words.replace("{act}", told)


NOTHING_TO_DO = Suggestion()


class Verdict(NamedTuple):
    """The limit of a running scan, with the values behind it."""

    cause: str
    """Key of CAUSES."""
    text: str
    """One line: ``the new disk sdx: 98 % busy writing 12.2M/s in 30K pieces, siblings 45 %``."""
    figures: Mapping[str, float] = NOTHING
    """Values it is based on, by name: bytes/s, seconds and shares."""
    sure: float = 0.0
    """Confidence, 0…1; 0 if unclear."""
    suggestion: Suggestion = NOTHING_TO_DO
    disk: str = ""
    """Name of the single device that is the cause; empty if none is."""

    @property
    def is_out_of_reach(self) -> bool:
        """Whether no tunable lifts this limit."""
        return self.cause in OUT_OF_REACH and not self.suggestion.tunable

    @property
    def throttle(self) -> Suggestion | None:
        """Suggestion to release the tunable that holds the scan back; None if none does."""
        return self.suggestion if self.suggestion.act in ("release", "change", "restore") else None

    def with_set_here(self, names: Collection[str]) -> Verdict:
        """Return it with a suggestion to restore a low tunable if consoles set it (``names``)."""
        found = self.suggestion
        if found.act != "release" or found.tunable not in names:
            return self
        words = "the scan was set to be gentle: {act} to undo that"
        return self._replace(suggestion=Suggestion(words, "restore", found.tunable))

    @property
    def mark(self) -> str:
        """Why a slow disk is one, as its row says it: ``94 % busy, siblings 56 %``."""
        if "answers" in self.figures:
            return "does not answer"
        said = f"{percent(self.figures['busy'])} busy"
        siblings = self.figures.get("others_busy")
        if siblings is None:  # all of them are slow
            return f"{said}, {latency(self.figures['service'])} per request"
        return f"{said}, siblings {percent(siblings)}"


TOO_LITTLE = Verdict("unclear", "unclear yet: too few samples")


_UNITS: Mapping[str, Callable[[float], str]] = {
    "%": percent,
    ".1%": lambda share: percent(share, 1),
    "B/s": rate,
    "B": size,
    "s": latency,
}


class Figure(float):
    """A number that a format string renders with a unit: ``{busy:%}``, ``{rate:B/s}``."""

    def __format__(self, unit: str) -> str:
        return _UNITS[unit](self) if unit in _UNITS else super().__format__(unit)


class Ceiling(NamedTuple):
    """Estimated maximum rate of a scan on its disks."""

    rate: float
    """Issued bytes/s."""
    share: float | None
    """Share of the maximum reached now, 0…1; None while paused."""
    text: str
    """Basis of the estimate."""

    def at(self, rate: float) -> Ceiling:
        """Return the ceiling at the current ``rate`` (bytes/s), raised to it if it is lower."""
        best = max(rate, self.rate)
        return self._replace(rate=best, share=rate / best if best else None)
