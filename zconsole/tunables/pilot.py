"""Targets of the autopilot, the plan shown before it starts, and the pilot, which sets tunables.

An order is a latency to hold, with others for times of the day: ``20ms 22:00-06:00=100ms``. The
pilot takes samples of pools, and sets a step or restores.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from zconsole.errors import UnavailableError, UsageError
from zconsole.pool.model import Pool
from zconsole.pool.redundancy import redundancy
from zconsole.system.day_hours import DayHours, day_hours
from zconsole.tunables.catalog import BY_NAME
from zconsole.tunables.control import Control
from zconsole.tunables.hold_latency import (
    FASTEST,
    GENTLEST,
    LEVERS,
    Meter,
    Steering,
    added,
    longest,
    steered,
    values,
)
from zconsole.tunables.holds import autopilot_promise
from zconsole.tunables.parameters import Parameters
from zconsole.tunables.store import SavedTunable
from zconsole.units import duration, latency

ACTION = "hold-latency"
"""Name of each step in the audit log."""


def scanning(pools: Iterable[Pool]) -> tuple[Pool, ...]:
    """Return the pools with a resilver, scrub or rebuild that is running or paused."""
    return tuple(pool for pool in pools if any(scan.active for scan in pool.scans))


def histograms(pool: Pool) -> dict[str, list[int]]:
    """Return the sum of the latency histograms of all devices; empty if the source has none."""
    return added([leaf.histograms for leaf in pool.root.leaves() if leaf.histograms])


def at_risk(pool: Pool) -> bool:
    """Whether the next failure of a device may lose data of a pool."""
    return any(entry.left == 0 for _, entry in redundancy(pool))


def levers(parameters: Parameters) -> dict[str, int]:
    """Return the live values of the tunables that the autopilot sets.

    Raises UnavailableError if none of them can be read on this kernel.
    """
    found = {name: parameters.read(name) for name in LEVERS}
    known = {name: value for name, value in found.items() if value is not None}
    if not known:
        raise UnavailableError("no tunable of scans can be read: see /sys/module/zfs/parameters")
    return known


def defaults(parameters: Parameters, found: Mapping[str, int]) -> dict[str, int]:
    """Return the defaults of this OpenZFS version, or of an unknown one the values in ``found``."""
    known = {name: BY_NAME[name].default(parameters.version) for name in found}
    return {n: found[n] if value is None else value for n, value in known.items()}


class Pilot:
    """Decides from samples, and sets tunables or restores them; the caller tells it the time."""

    def __init__(
        self, control: Control, parameters: Parameters, targets: Targets, below: bool = False
    ) -> None:
        """``below``: whether scans may go below the defaults while a pool has no redundancy left.

        Raises UnavailableError if there is nothing to set.
        """
        self._control = control
        self.parameters = parameters
        self._targets = targets
        self._below = below
        self.originals = levers(parameters)
        self._defaults = defaults(parameters, self.originals)
        self.ours = dict(self.originals)
        """Values that we set last, or found."""
        self._begun = self.ours
        """Values that the newest step wanted: if it failed, some of them may be in the kernel."""
        self.slowest = False
        """Whether no lower level is gentler, so that the latency can't be lowered any more."""
        self.steering = Steering(targets.usual)
        self._meters: dict[str, Meter] = {}

    def set_by_others(self) -> str:
        """Return the name of a tunable that others changed since; empty if there is none."""
        read = self.parameters.read
        return next((name for name, value in self.ours.items() if read(name) != value), "")

    def take(self, pools: Sequence[Pool], clock: float, at: float) -> bool:
        """Make one step from samples of the pools with scans; ``clock`` is steady, ``at`` epoch.

        The pool with the longest latency counts. Returns whether tunables were set. Raises
        ZconsoleError if one can't be.
        """
        meters = [self._measure(each, clock) for each in pools]
        bounded = not self._below and any(map(at_risk, pools))
        least = self._defaults if bounded else {}
        now = before = replace(self.steering, target=self._targets.at(at))
        if all(meter.ready for meter in meters):
            found = [wait for meter in meters if (wait := meter.latency) is not None]
            now = steered(before, max(found, default=None))
        end = values(GENTLEST, self.originals, least)
        if now.wanted < before.wanted and self.ours == end:
            now = before  # lower levels would change nothing, and make the way back longer
        wanted = values(now.level, self.originals, least)
        self.steering = now
        changed = {n: v for n, v in wanted.items() if v != self.ours[n]}
        if changed:
            self._begun = wanted
            self._control.set(changed, at, action=f"{ACTION} {now.target:g}")
            self.ours = wanted
        self.slowest = self.ours == end
        return bool(changed)

    def _measure(self, pool: Pool, clock: float) -> Meter:
        meter = self._meters.setdefault(pool.guid or pool.name, Meter())
        meter.take(clock, histograms(pool))
        return meter

    def restore(self, at: float) -> None:
        """Restore the originals, except of tunables that somebody else changed meanwhile.

        Raises the kernel's first refusal, once all the others are restored.
        """
        left: dict[str, SavedTunable] = {}
        """Our values that are live, known even if the file of originals is gone."""
        for name, original in self.originals.items():
            now = self.parameters.read(name)
            if now is not None and now in (self.ours[name], self._begun[name]) and now != original:
                left[name] = SavedTunable(original, now, at)
        held = self.originals.keys() & self._control.held()
        self._control.restore(at, sorted(held | left.keys()), left)


# Targets

LEAST, MOST = 0.0005, 10.0
"""Limits of a target latency, in seconds."""
FORM = "a latency such as 20ms or 0.02s"

_BARE = re.compile(r"\d+(?:\.\d+)?", re.ASCII)
_LATENCY = re.compile(r"(\d+(?:\.\d+)?)(ms|s)?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Hours:
    """A target for a part of each day."""

    time: DayHours
    target: float
    """Seconds."""


@dataclass(frozen=True, slots=True)
class Targets:
    """The latencies to hold over the day."""

    usual: float
    """Target outside of all ``hours``, in seconds."""
    hours: tuple[Hours, ...] = ()

    def at(self, t: float, local: Callable[[float], time.struct_time] = time.localtime) -> float:
        """Return the target (seconds) at ``t`` (epoch seconds)."""
        now = local(t)
        found = (h.target for h in self.hours if h.time.has(now.tm_hour, now.tm_min))
        return next(found, self.usual)

    @property
    def words(self) -> tuple[str, ...]:
        """The targets in the form that ``targets`` parses."""
        return (f"{self.usual:g}", *(f"{h.time}={h.target:g}" for h in self.hours))

    def __str__(self) -> str:
        """Describe the targets: ``20ms, 22:00-06:00 100ms``."""
        hours = (f"{h.time} {latency(h.target)}" for h in self.hours)
        return ", ".join([latency(self.usual), *hours])


def targets(words: Sequence[str]) -> Targets:
    """Parse targets such as ``20ms 22:00-06:00=100ms``. Raises UsageError for invalid words."""
    if not words:
        raise UsageError(f"hold-latency needs {FORM}")
    hours = tuple(map(_hours, words[1:]))
    taken: set[int] = set()
    for each in hours:
        if each.time.start == each.time.end or taken & each.time.minutes():
            raise UsageError(f"{each.time}: the whole day, or in another's time")
        taken |= each.time.minutes()
    return Targets(_seconds(words[0]), hours)


def without_unit(words: Sequence[str]) -> str:
    """Return the first latency that is a bare number, read as seconds; empty if there is none."""
    numbers = (word.rpartition("=")[2] for word in words)
    return next((number for number in numbers if _BARE.fullmatch(number)), "")


def _hours(word: str) -> Hours:
    time_of_day, _, rest = word.partition("=")
    try:
        found = day_hours(time_of_day)
    except ValueError:
        raise UsageError(
            f"{word!r} is not HH:MM-HH:MM=LATENCY, such as 22:00-06:00=100ms"
        ) from None
    return Hours(found, _seconds(rest))


def _seconds(word: str) -> float:
    found = _LATENCY.fullmatch(word)
    if found is None:
        raise UsageError(f"{word!r} is not {FORM}")
    value = float(found[1]) / (1000.0 if found[2] == "ms" else 1.0)
    if not LEAST <= value <= MOST:
        raise UsageError(f"{word} is out of range: {latency(LEAST)} to {MOST:g}s")
    return value


# The plan, before it starts

BELOW = "below-defaults"
"""The word that lets scans go below the defaults while a pool has no redundancy left."""
MEASURES = (
    "Latency is the time within which 95 % of the applications' synchronous reads or writes are"
    " answered: in ZFS's queue and in the disk. Asynchronous requests are not counted."
)
ROUGHLY = (
    "It is approximate, and rather too high: the kernel counts in powers of two (up to a factor of"
    " 2), and in the disk it counts the scan's requests with the others."
)


@dataclass(frozen=True, slots=True)
class HoldOrder:
    """An order to the autopilot, as typed."""

    targets: Targets
    below: bool = False
    """Whether a scan may go below the defaults while its pool has no redundancy left."""

    @property
    def words(self) -> tuple[str, ...]:
        """The order in the form that ``order`` parses."""
        return (*self.targets.words, *((BELOW,) if self.below else ()))


def order(words: Sequence[str]) -> HoldOrder:
    """Parse an order such as ``20ms 22:00-06:00=100ms below-defaults``.

    Raises UsageError for invalid words.
    """
    rest = [word for word in words if word != BELOW]
    return HoldOrder(targets(rest), len(rest) < len(words))


@dataclass(frozen=True, slots=True)
class HoldPlan:
    """The plan of an order, in lines for people."""

    pools: tuple[str, ...]
    sets: tuple[str, ...]
    """Each tunable with the range of its values."""
    warnings: tuple[str, ...]
    effects: tuple[str, ...]

    @property
    def lines(self) -> tuple[str, ...]:
        """All lines, as the command line prints them."""
        return (*self.pools, *self.effects, *self.sets, *self.warnings)


def plan(
    wanted: HoldOrder,
    pools: Iterable[Pool],
    parameters: Parameters,
    left: Mapping[str, float | None],
    watched: bool = False,
) -> HoldPlan:
    """Return the plan of an order; ``left`` has the seconds that each pool's scan still takes.

    ``watched``: whether the autopilot ends with the console that starts it. Raises UnavailableError
    without a scan, or if the latencies or tunables can't be read.
    """
    active = scanning(pools)
    if not active:
        raise UnavailableError(
            "no pool has a resilver, scrub or rebuild: nothing to steer. Start it while one runs"
        )
    if blind := next((pool.name for pool in active if "sync_r" not in histograms(pool)), ""):
        raise UnavailableError(f"{blind}: no latency histograms; they need libzfs")
    found = levers(parameters)
    usual = defaults(parameters, found)
    risky = [pool for pool in active if at_risk(pool)]
    least = usual if risky and not wanted.below else {}
    slow, fast = values(GENTLEST, found, least), values(FASTEST, found, least)
    return HoldPlan(
        tuple(f"{pool.name}: {_scans(pool)}" for pool in active),
        tuple(_range(name, slow[name], fast[name], found[name]) for name in found),
        tuple(_warnings(wanted, risky, usual, left)),
        (
            "Lets scans go as fast as they can while the latency of applications stays at"
            f" {wanted.targets}; one autopilot for all pools.",
            MEASURES,
            ROUGHLY,
            f"The autopilot {autopilot_promise(watched)}; also when you set one of these tunables.",
        ),
    )


def _scans(pool: Pool) -> str:
    return ", ".join(f"{scan.function} {scan.state}" for scan in pool.scans if scan.active)


def _range(name: str, slow: int, fast: int, now: int) -> str:
    low, high, value = map(BY_NAME[name].rounded, (slow, fast, now))
    return f"{name}  {low} to {high}, now {value}"


def _warnings(
    wanted: HoldOrder,
    risky: Sequence[Pool],
    usual: Mapping[str, int],
    left: Mapping[str, float | None],
) -> Iterable[str]:
    for pool in risky:
        if not wanted.below:
            yield (
                f"{pool.name} can't lose another device: its scan is never made slower than by the"
                f" defaults, so latency may stay above the target. To allow that, add {BELOW}"
            )
            continue
        scan = next(scan for scan in pool.scans if scan.active)
        times, still = longest(scan.function, usual), left.get(pool.name)
        hours = "unknown" if still is None else duration(still * (times - 1))
        yield (
            f"{pool.name} can't lose another device, and its {scan.function} may take up to"
            f" {times:.0f} times as long: up to {hours} more without redundancy"
        )
    if wanted.below and not risky:
        yield (
            "A pool that loses its redundancy meanwhile may resilver up to"
            f" {longest('resilver', usual):.0f} times as long as by the defaults"
        )


def present(measured: float | None) -> str:
    """Describe the measured latency, such that it isn't taken for the mean in the device table."""
    if measured is None:
        return "too few application requests to measure their latency"
    return f"95 % of application requests wait at most {latency(measured)}"
