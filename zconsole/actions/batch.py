"""Replacing several devices with one resilver: all at once, then one restart if any waits."""

from __future__ import annotations

from zconsole.actions import conditions as must
from zconsole.actions.follow import replaced
from zconsole.actions.plan import ActionPlan, Precondition, Situation, Step, decide, refuse, zpool
from zconsole.actions.replace import (
    common_conditions,
    redundancy_meanwhile,
    replace_step,
    warnings_of,
)
from zconsole.actions.running_scans import disturbed
from zconsole.actions.target import Swap, Target, find
from zconsole.pool.redundancy import is_complete, parity

LITTLE = 10.0
"""Percent of a resilver worth throwing away to have one pass; OpenZFS 2.3's own default."""


def plan_batch(s: Situation, swaps: tuple[Swap, ...], sequential: bool = False) -> ActionPlan:
    """Replace several devices with one resilver: all at once, then one restart if any waits."""
    title = "Replace 1 device" if len(swaps) == 1 else f"Replace {len(swaps)} devices at once"
    targets = [find(s.pool, swap.old) for swap in swaps]
    found = tuple(t for t in targets if t is not None)
    if not swaps or len(found) != len(swaps):
        return refuse("replace", title, s.pool.name, "not all of the old devices are in the pool")
    if why := _clash(swaps):
        return refuse("replace", title, s.pool.name, why)
    pairs = tuple(zip(found, swaps, strict=True))
    replaces = tuple(replace_step(s, target, swap.new, sequential) for target, swap in pairs)
    plan = ActionPlan(
        action="replace",
        title=title,
        pool=s.pool.name,
        steps=replaces if sequential else (*replaces, _restart_step(s.pool.name)),
        consequences=_batch_consequences(s, found, sequential),
        not_undone=("what is on the new devices is overwritten",),
        warnings=tuple(
            f"{t.name}: {text}" for t, swap in pairs for text in warnings_of(s, t, swap.new)
        ),
        preconditions=(
            must.same_scans(s),
            *common_conditions(sequential),
            *(need for step in replaces for need in step.requires),
            enough_left(found),
        ),
        follow=replaced(s, swaps),
    )
    return decide(plan, s)


def enough_left(targets: tuple[Target, ...]) -> Precondition:
    """In no vdev are more of its devices absent than its parity makes up for."""

    def _check(s: Situation) -> str | None:
        for top_key in {t.top_key for t in targets}:
            now = next((t for t in targets if t.top_key == top_key), None)
            fresh = find(s.pool, now.key) if now else None
            if fresh is None:
                continue
            absent = sum(not is_complete(v) for v in fresh.top.children or (fresh.top,))
            if absent > parity(fresh.top):
                return (
                    f"{fresh.top.name}: {absent} devices are absent or incomplete, its parity"
                    f" makes up for {parity(fresh.top)}"
                )
        return None

    return Precondition("no vdev has more absent devices than parity", _check)


def _clash(swaps: tuple[Swap, ...]) -> str | None:
    if len({swap.old for swap in swaps}) < len(swaps):
        return "an old device is named twice"
    if len({swap.new for swap in swaps}) < len(swaps):
        return "a new device is named twice"
    return None


def _batch_consequences(
    s: Situation, targets: tuple[Target, ...], sequential: bool
) -> tuple[str, ...]:
    order = ", then ".join(t.name for t in targets)
    once = (
        "one rebuild a vdev fills them together"
        if sequential
        else (
            "one resilver fills them all: if any has to wait, that resilver is restarted at once,"
            " while little is lost by it"
        )
    )
    disturbances = dict.fromkeys(text for t in targets for text in disturbed(s, t, sequential))
    return (
        f"order: {order}",
        once,
        *disturbances,
        "the old devices must stay plugged in until it is done; each still counts until then",
        *redundancy_meanwhile(s, targets),
    )


def _restart_step(pool: str) -> Step:
    def skip(now: Situation) -> str | None:
        if not any(leaf.awaiting_resilver for leaf in now.pool.root.leaves()):
            return "no device waits: one resilver has them all"
        scan = now.active("resilver")
        if scan is not None and (scan.percent or 0.0) > LITTLE:
            return (
                f"the running resilver is at {scan.percent:.1f} %: the waiting devices get their"
                " own pass after it"
            )
        return None

    return Step(
        zpool("resilver", operands=(pool,)),
        "only if a device has to wait: restart the resilver with all of them",
        skip=skip,
        requires=(must.feature("resilver_defer", "restarting a resilver"),),
    )
