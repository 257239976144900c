"""What is found: the limit of a running scan, and its estimated maximum."""

from __future__ import annotations

from collections.abc import Callable, Mapping
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
    "metadata": "metadata scanning",
    "unclear": "unclear",
}
"""Every cause a verdict can name, in words; ``disks`` is a scan that keeps its disks streaming."""

OUT_OF_REACH = ("new-disk", "slow-disk", "bus", "smr", "cpu", "disks", "metadata")
"""Causes that tunables do not lift."""


LEAST_GAIN = 0.05
"""Share of the rate below which a step brought nothing: a scan varies by that much."""


LARGE_RAISE = 1.5
"""Times the value before, from which a raise tells whether the next one helps; an autopilot's do
not. What is suggested is twice the value, or more."""


class TunableStep(NamedTuple):
    """The newest large raise of a tunable."""

    before: int
    after: int
    effect: TunableEffect | None = None
    """On the issue rate; None until it is measured, without figures where it cannot be."""
    at: float = 0.0
    """When it was seen (steady clock)."""

    @property
    def clear(self) -> bool:
        """Whether the rate changed by more than it varies by; see ``TunableEffect.issue_clear``."""
        return self.effect is not None and self.effect.issue_clear

    @property
    def helped(self) -> bool:
        """Whether the scan became clearly faster by it."""
        gain = self.effect.gain if self.effect else None
        return self.clear and gain is not None and gain >= LEAST_GAIN


class Told(NamedTuple):
    """How an act is told: by the command line, by the console, and beside the tunable itself."""

    command: str
    by_key: str
    """With ``{keys}`` for those that lead there."""
    beside: str
    keys: tuple[str, ...] = ("tunables",)
    """Titles of these keys."""


ACTS = {
    "set": Told(
        "zconsole tunables set {tunable}={value}",
        "press {keys}, set {tunable}={value}",
        "set it to {value}",
    ),
    "raise": Told(
        "raise {tunable} (zconsole tunables set)", "raise {tunable} ({keys})", "raise it"
    ),
    "restore": Told(
        "zconsole tunables restore {tunable}", "press {keys}", "restore it", ("tunables", "restore")
    ),
    "hold": Told(
        "zconsole tunables hold-latency",
        "limit application latency ({keys})",
        "limit application latency",
        ("tunables", "hold-latency"),
    ),
    "wait": Told(
        "wait: what {tunable}={value} brings",
        "wait: what {tunable}={value} brings",
        "wait: what {value} brings",
    ),
    # In a sentence that says why; how to do it is left out.
    "change": Told("set {tunable}={value}", "set {tunable}={value}", "set it to {value}"),
    "increase": Told("raise {tunable}", "raise {tunable}", "raise it"),
}
"""What can be done about a tunable, and ``hold``: start the autopilot."""


class Suggestion(NamedTuple):
    """What could be done about a limit: an act on a tunable, or words alone."""

    words: str = ""
    """With ``{act}`` where the act is told; empty where nothing can be done."""
    act: str = ""
    """One of ACTS; empty where there is none."""
    tunable: str = ""
    value: int | None = None
    """What to set it to, where that is known; for ``wait`` what it was set to."""

    @property
    def text(self) -> KeyedText:
        """As the command line says it, and the console by its keys."""
        titles = ACTS[self.act].keys if self.act else ()
        command, by_key = (
            self._told(lambda told: told.command),
            self._told(lambda told: told.by_key),
        )
        return KeyedText(command, by_key, *titles)

    @property
    def beside(self) -> str:
        """As it is said where it is clear which tunable it is about."""
        return self._told(lambda told: told.beside)

    def _told(self, form: Callable[[Told], str]) -> str:
        if not self.act:
            return self.words
        act = form(ACTS[self.act]).format(tunable=self.tunable, value=self.value, keys="{keys}")
        return self.words.replace("{act}", act)


NOTHING_TO_DO = Suggestion()


class Verdict(NamedTuple):
    """What limits a running scan, in one line, and the figures behind it."""

    cause: str
    """One of CAUSES."""
    text: str
    """``the new disk sdx: 98 % busy writing 12.2M/s in 30K pieces, siblings 45 %``."""
    figures: Mapping[str, float] = NOTHING
    """What it is based on: bytes/s, seconds and shares by name."""
    sure: float = 0.0
    """How sure it is, 0…1; 0 when unclear."""
    suggestion: Suggestion = NOTHING_TO_DO
    disk: str = ""
    """The name of the one device that the text blames; empty where it blames none."""
    tried: TunableStep | None = None
    """The newest large raise of the suggested tunable during this scan."""

    @property
    def advice(self) -> str:
        """The suggestion as the command line says it; empty where nothing can be done."""
        return self.suggestion.text


TOO_LITTLE = Verdict("unclear", "unclear yet: too few samples")


_UNITS: Mapping[str, Callable[[float], str]] = {
    "%": percent,
    "B/s": rate,
    "B": size,
    "s": latency,
}


class Figure(float):
    """A number that words tell with its unit."""

    def __format__(self, unit: str) -> str:
        return _UNITS[unit](self) if unit in _UNITS else super().__format__(unit)


class Ceiling(NamedTuple):
    """The estimated maximum rate of this scan on these disks."""

    rate: float
    """Issued bytes/s."""
    share: float | None
    """Share of it reached now, 0…1; None while it is paused."""
    text: str
    """What it is based on."""

    def at(self, rate: float) -> Ceiling:
        """Return the ceiling of a scan that goes at ``rate`` (bytes/s) now, and can do that."""
        best = max(rate, self.rate)
        return self._replace(rate=best, share=rate / best if best else None)
