"""The autopilot's hand on the tunables: samples of pools in, steps and their restoring out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from zconsole.errors import UnavailableError
from zconsole.pool.model import Pool
from zconsole.pool.redundancy import of_pool
from zconsole.tunables.catalog import BY_NAME
from zconsole.tunables.control import Control
from zconsole.tunables.hold_latency import (
    GENTLEST,
    LEVERS,
    Meter,
    Steering,
    added,
    steered,
    values,
)
from zconsole.tunables.parameters import Parameters
from zconsole.tunables.store import SavedTunable
from zconsole.tunables.targets import Targets

ACTION = "hold-latency"
"""What the audit log calls each step."""


def scanning(pools: Iterable[Pool]) -> tuple[Pool, ...]:
    """The pools with a resilver, scrub or rebuild that runs or is paused."""
    return tuple(pool for pool in pools if any(scan.active for scan in pool.scans))


def histograms(pool: Pool) -> dict[str, list[int]]:
    """The latency histograms of all its devices as one; empty where the source has none."""
    return added([leaf.histograms for leaf in pool.root.leaves() if leaf.histograms])


def at_risk(pool: Pool) -> bool:
    """Whether the next failure of a device may lose data of this pool."""
    return any(entry.left == 0 for _, entry in of_pool(pool))


def levers(parameters: Parameters) -> dict[str, int]:
    """What the autopilot sets, as it is now.

    Raises UnavailableError where this kernel has none of them that can be read.
    """
    found = {name: parameters.read(name) for name in LEVERS}
    known = {name: value for name, value in found.items() if value is not None}
    if not known:
        raise UnavailableError("no tunable of scans can be read: see /sys/module/zfs/parameters")
    return known


def defaults(parameters: Parameters, found: Mapping[str, int]) -> dict[str, int]:
    """The defaults of this release; of a release that isn't known, the values as found."""
    known = {name: BY_NAME[name].default(parameters.version) for name in found}
    return {n: found[n] if value is None else value for n, value in known.items()}


class Pilot:
    """Decides from samples and sets the tunables; asks for neither time nor signals."""

    def __init__(
        self, control: Control, parameters: Parameters, targets: Targets, below: bool = False
    ) -> None:
        """``below``: whether it may go below the defaults while a pool has no redundancy left.

        Raises UnavailableError where there is nothing to set.
        """
        self._control = control
        self._parameters = parameters
        self._targets = targets
        self._below = below
        self.originals = levers(parameters)
        self._defaults = defaults(parameters, self.originals)
        self.ours = dict(self.originals)
        """What each was set to, or found at."""
        self._begun = self.ours
        """What a step that failed wanted: some of that may be in the kernel."""
        self.slowest = False
        """Whether no level below is gentler: what latency is left is not lowered from here."""
        self.steering = Steering(targets.usual)
        self._meters: dict[str, Meter] = {}

    def set_by_others(self) -> str:
        """A tunable that is not as it was left; empty while there is none."""
        read = self._parameters.read
        return next((name for name, value in self.ours.items() if read(name) != value), "")

    def take(self, pools: Sequence[Pool], clock: float, t: float) -> bool:
        """Decide on a round of the pools that scan, at ``clock`` (steady) and ``t`` (epoch).

        The pool whose applications wait longest counts. True where tunables were set; raises
        ZconsoleError where one cannot be.
        """
        meters = [self._measure(each, clock) for each in pools]
        bounded = not self._below and any(map(at_risk, pools))
        least = self._defaults if bounded else {}
        now = before = replace(self.steering, target=self._targets.at(t))
        if all(meter.ready for meter in meters):
            found = [wait for meter in meters if (wait := meter.latency) is not None]
            now = steered(before, max(found, default=None))
        end = values(GENTLEST, self.originals, least)
        if now.wanted < before.wanted and self.ours == end:
            now = before  # lower levels would all be the same, and the way back longer
        wanted = values(now.level, self.originals, least)
        self.steering = now
        changed = {n: v for n, v in wanted.items() if v != self.ours[n]}
        if changed:
            self._begun = wanted
            self._control.set(changed, t, action=f"{ACTION} {now.target:g}")
            self.ours = wanted
        self.slowest = self.ours == end
        return bool(changed)

    def _measure(self, pool: Pool, clock: float) -> Meter:
        meter = self._meters.setdefault(pool.guid or pool.name, Meter())
        meter.take(clock, histograms(pool))
        return meter

    def restore(self, t: float) -> None:
        """Put the originals back, but for what somebody else set meanwhile.

        Raises, once all the others are back, what the kernel answered to the first it refused.
        """
        left: dict[str, SavedTunable] = {}
        """What is in the kernel of ours, also where the file of originals is gone."""
        for name, original in self.originals.items():
            now = self._parameters.read(name)
            if now is not None and now in (self.ours[name], self._begun[name]) and now != original:
                left[name] = SavedTunable(original, now, t)
        held = self.originals.keys() & self._control.held()
        self._control.restore(t, sorted(held | left.keys()), left)
