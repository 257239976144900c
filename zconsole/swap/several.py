"""Several disks to swap: in which order, and what each choice costs in time and redundancy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from zconsole.actions.candidates import ranked
from zconsole.actions.target import FAILED, Target, find, members
from zconsole.pool.redundancy import is_complete, may_fail, parity
from zconsole.scan_report.report import ScanReport
from zconsole.scan_report.resilver_time import PastRate, member_duration, paces
from zconsole.swap.effects import left_without, others_missing
from zconsole.swap.view import MachineView
from zconsole.units import counted, duration


@dataclass(frozen=True, slots=True)
class SwapOrder:
    """One way to swap several disks."""

    together: bool
    """Whether one resilver fills all new disks."""
    keys: tuple[str, ...]
    """The devices, in the order in which to swap them."""
    seconds: float | None
    """How long the resilvers take in all; None when unknown."""
    least: int
    """How many more devices the weakest vdev may lose at the worst moment."""
    text: tuple[str, ...]
    refused: str = ""


def orders(
    v: MachineView, keys: Sequence[str], seconds: Mapping[str, float | None]
) -> tuple[SwapOrder, ...]:
    """One after the other, and together; ``seconds``: what a resilver of each is predicted to take.

    The choice that keeps more redundancy is first; of equal ones the faster.
    """
    targets = urgent_first(v, keys)
    found = (_in_turn(targets, seconds), _together(v, targets, seconds))
    return tuple(sorted(found, key=_rank))


def predicted(
    v: MachineView,
    keys: Sequence[str],
    reports: Sequence[ScanReport] = (),
    running: Iterable[PastRate] = (),
) -> Mapping[str, float | None]:
    """Seconds that a resilver of each device would take, by scans of the pool.

    Past ones count; where none is known, those ``running``.
    """
    pool = v.situation.pool
    known = paces(pool.root, pool.scans, reports) or tuple(running)
    targets = (find(pool, key) for key in keys)
    times = ((t.key, member_duration(t.top, known)) for t in targets if t is not None)
    return {key: None if estimate is None else estimate.eta for key, estimate in times}


def urgent_first(v: MachineView, keys: Sequence[str]) -> tuple[Target, ...]:
    """The devices in the order in which to swap them.

    First where the vdev has the least redundancy; there the failed ones, then those with the most
    errors.
    """
    found = (find(v.situation.pool, key) for key in keys)
    return tuple(sorted((t for t in found if t is not None), key=_urgency))


def _urgency(target: Target) -> tuple[int, bool, int, str]:
    left = parity(target.top) - sum(not is_complete(m) for m in members(target.top))
    return (left, target.vdev.state not in FAILED, -target.vdev.errors.total, target.name)


def _rank(order: SwapOrder) -> tuple[bool, int, float]:
    return (bool(order.refused), -order.least, order.seconds or float("inf"))


def _in_turn(targets: Sequence[Target], seconds: Mapping[str, float | None]) -> SwapOrder:
    times = [seconds.get(target.key) for target in targets]
    total = sum(t for t in times if t is not None) if None not in times else None
    least = min((max(0, left_without(target)) for target in targets), default=0)
    names = ", then ".join(target.name for target in targets)
    return SwapOrder(
        False,
        tuple(target.key for target in targets),
        total,
        least,
        (
            f"one after the other: {names}",
            f"{counted(len(targets), 'resilver')}, {duration(total, 'of unknown duration')} in all",
            f"meanwhile, {may_fail(least)} in the weakest vdev; begin each"
            " only when the resilver before it is done",
        ),
    )


def _together(
    v: MachineView, targets: Sequence[Target], seconds: Mapping[str, float | None]
) -> SwapOrder:
    """All new disks filled by one resilver while the old ones stay in (``plan_batch``)."""
    free = _free_disks(v, targets)
    times = [seconds.get(target.key) for target in targets]
    longest = max((t for t in times if t is not None), default=None)
    least = min((_left_now(target) for target in targets), default=0)
    missing = len(targets) - free
    return SwapOrder(
        True,
        tuple(target.key for target in targets),
        longest,
        least,
        (
            f"together: replace all {len(targets)} at once, pull the old disks afterwards",
            f"one resilver, {duration(longest, 'of unknown duration')}; where a device has to wait,"
            " the resilver restarts once at its beginning",
            f"old disks that still read count until then: {may_fail(least)} in the weakest vdev",
        ),
        refused=f"{counted(missing, 'more free disk')} needed in the machine"
        if missing > 0
        else "",
    )


def _left_now(target: Target) -> int:
    own = target.vdev.state in FAILED
    return max(0, parity(target.top) - len(others_missing(target)) - own)


def _free_disks(v: MachineView, targets: Sequence[Target]) -> int:
    """How many disks of the machine fit in all of these places."""
    s = v.situation
    fits = [
        {c.device.path for c in ranked(s.pool, t, s.facts) if c.usable and c.device.kind == "disk"}
        for t in targets
    ]
    return len(set.intersection(*fits)) if fits else 0
