"""What the autopilot is asked to do, and the plan of it before it starts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from zconsole.errors import UnavailableError
from zconsole.pool.model import Pool
from zconsole.tunables.catalog import BY_NAME
from zconsole.tunables.hold_latency import FASTEST, GENTLEST, longest, values
from zconsole.tunables.holds import autopilot_promise
from zconsole.tunables.parameters import Parameters
from zconsole.tunables.pilot import at_risk, defaults, histograms, levers, scanning
from zconsole.tunables.targets import Targets, targets
from zconsole.units import duration, latency

BELOW = "below-defaults"
"""The word that lets a scan go below the defaults without redundancy."""
MEASURES = (
    "Latency is the time within which 95 % of the applications' synchronous reads or writes are"
    " answered: in ZFS's queue and in the disk. Asynchronous requests are not counted."
)
ROUGHLY = (
    "It is approximate, and rather too high: the kernel counts in powers of two (up to a factor of"
    " 2), and in the disk it counts the scan's requests with the others."
)


@dataclass(frozen=True, slots=True)
class Order:
    """What the autopilot is to hold."""

    targets: Targets
    below: bool = False
    """Whether a scan may go below the defaults while its pool has no redundancy left."""

    @property
    def words(self) -> tuple[str, ...]:
        """What ``order`` reads."""
        return (*self.targets.words, *((BELOW,) if self.below else ()))


def order(words: Sequence[str]) -> Order:
    """``20ms 22:00-06:00=100ms below-defaults``. Raises UsageError for words that are none."""
    rest = [word for word in words if word != BELOW]
    return Order(targets(rest), len(rest) < len(words))


@dataclass(frozen=True, slots=True)
class HoldPlan:
    """What would happen, in lines for people."""

    pools: tuple[str, ...]
    sets: tuple[str, ...]
    """Each tunable with the values it may get."""
    warnings: tuple[str, ...]
    effects: tuple[str, ...]

    @property
    def lines(self) -> tuple[str, ...]:
        """All of it, as the command line prints it."""
        return (*self.pools, *self.effects, *self.sets, *self.warnings)


def plan(
    wanted: Order,
    pools: Iterable[Pool],
    parameters: Parameters,
    left: Mapping[str, float | None],
    watched: bool = False,
) -> HoldPlan:
    """The plan of an autopilot; ``left`` has the seconds that the scan of each pool still takes.

    ``watched``: whether it ends with the console that starts it. Raises UnavailableError where
    nothing scans, or where the latencies or tunables can't be read.
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
    wanted: Order, risky: Sequence[Pool], usual: Mapping[str, int], left: Mapping[str, float | None]
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
    """What applications wait now, in words that nobody takes for the mean of the device table."""
    if measured is None:
        return "too few application requests to measure their latency"
    return f"95 % of application requests wait at most {latency(measured)}"
