"""The lock's only link to the functions that make plans; the kept texts have none of their names.

When functions of `zconsole` move or get other parameters, only this module changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from tests.lock.plans import situations as made
from zconsole.actions.add import Layout, layouts, plan_add
from zconsole.actions.candidates import ranked
from zconsole.actions.checkpoint import plan_discard
from zconsole.actions.clear import plan_clear
from zconsole.actions.growth import plan_attach, plan_autoexpand, plan_expand
from zconsole.actions.locate import plan_lights_off, plan_locate
from zconsole.actions.offline import plan_detach, plan_offline, plan_online
from zconsole.actions.plan import ActionOutcome, ActionPlan, Situation, failing
from zconsole.actions.replace import plan_batch, plan_replace
from zconsole.actions.scrub import (
    ScrubDates,
    plan_pause,
    plan_resilver,
    plan_scrub,
    plan_scrub_dates,
    plan_scrub_new,
    plan_stop,
    plan_stop_resilver,
)
from zconsole.actions.scrub_window import plan_beside_window, plan_window, plan_window_off
from zconsole.actions.sit_out import plan_autosit, plan_sit_out
from zconsole.actions.target import Swap, Target, find
from zconsole.actions.trim import CHANGES, plan_work
from zconsole.pool.model import FAILED, Vdev, placed
from zconsole.pool.scrub_window import ScrubWindow
from zconsole.pool.spares import spares
from zconsole.swap.effects import plan_offline_safely

DETAILS = ("check first", "where", "effect", "never undone", "bug", "warning", "needs")
"""Prefixes of lines that are not kept for every plan."""
Make = Callable[[Situation], ActionPlan]


@dataclass(frozen=True, slots=True)
class Wish:
    """An action that an operator may want in a situation."""

    about: str
    """A vdev, or the pool."""
    name: str
    plan: Make
    target: Target | None = None


def _printed(vdev: Vdev) -> str:
    """Return the name as in ``zpool status``, with the former path if the name is a GUID."""
    return f"{vdev.name} ({vdev.note})" if vdev.note.startswith("was ") else vdev.name


def wishes(s: Situation, every: bool = False) -> Iterator[Wish]:
    """Yield every action that can be planned in a situation, including those that are refused.

    Of equivalent vdevs, only the first is used unless ``every`` one is wanted.
    """
    for name, plan in _of_pool(s).items():
        yield Wish("the pool", name, plan)
    found = _targets(s)
    leaves = [target for target in found if not target.vdev.children]
    for target in found if every else unlike(s):
        for name, plan in _of_vdev(s, target, leaves).items():
            yield Wish(_printed(target.vdev), name, plan, target)


def unlike(s: Situation) -> list[Target]:
    """Return one vdev of each kind, the first of all equivalent ones."""
    return list({_alike(target): target for target in reversed(_targets(s))}.values())[::-1]


def _targets(s: Situation) -> list[Target]:
    found = (find(s.pool, place.key) for place in placed(s.pool.root))
    return [target for target in found if target is not None]


def _alike(target: Target) -> tuple[object, ...]:
    """Return everything that may affect a vdev's plans, except its name."""
    vdev, top = target.vdev, target.top
    group = target.group
    return (
        (vdev.kind, vdev.vclass, vdev.state, vdev.resilvering, vdev.awaiting_resilver),
        (vdev.unfilled, vdev.sitting_out, vdev.trim, vdev.initialize, bool(vdev.errors.total)),
        None if group is None else (group.kind, group.children[0] is vdev),
        (top.kind, top.vclass, top.state, top.autosit),
        sum(leaf.state != "ONLINE" for leaf in top.leaves()),
        (vdev.note.split(" ")[0], (vdev.path or " ")[0], (vdev.name or " ")[0] == "-"),
    )


def candidates(s: Situation, target: Target | None) -> Iterator[str]:
    """Yield every device of the machine with its verdict as a replacement for a vdev."""
    for found in () if target is None else ranked(s.pool, target, s.facts):
        said = "; ".join((*found.problems, *found.cautions)) or "fits"
        old = " [the old one]" if found.is_old else ""
        yield f"{found.device.path}: {'' if found.usable else 'no: '}{said}{old}"


def lines(plan: ActionPlan) -> Iterator[str]:
    """Yield the lines of a plan, for people."""
    yield f"{plan.title} [{plan.action}]"
    if plan.refused is not None:
        yield f"  refused: {plan.refused}"
    for text in plan.alternatives:
        yield f"  instead: {text}"
    yield from _details(plan)


def _details(plan: ActionPlan) -> Iterator[str]:
    for step in plan.steps:
        yield f"  $ {step.command}  # {step.why}"
        yield from (f"  needs: for this step, {need.text}" for need in step.requires)
        if step.light is not None:
            where = step.light.device.path if step.light.device else "every light"
            yield f"    light {'on' if step.light.on else 'off'}: {where}"
        if step.window is not None:
            yield f"    hours of {step.window.pool}: {step.window.hours or 'any'}"
    needs = "; ".join(need.text for need in plan.preconditions)
    before = (plan.doubts, plan.where, plan.consequences, plan.not_undone, plan.hazards)
    parts = zip(DETAILS, (*before, plan.warnings, filter(None, (needs,))), strict=True)
    yield from (f"  {head}: {text}" for head, texts in parts for text in texts)
    marks = {
        f"type {plan.needs_typed}": plan.needs_typed is not None,
        f"begins a {plan.begins}": bool(plan.begins),
        "ends earlier ones": plan.supersedes,
        "keeps the counters first": plan.saves_evidence,
        "is followed": plan.follow is not None,
        f"is for pool {plan.pool}, GUID {plan.guid or 'unknown'}": bool(plan.steps),
    }
    if said := [text for text, holds in marks.items() if holds]:
        yield f"  {', '.join(said)}"


def always(plan: ActionPlan, s: Situation) -> bool:
    """Return whether a plan may run in a situation even if no log can be written."""
    return plan.urgent(s)


def afterwards(plan: ActionPlan, now: Situation) -> Iterator[str]:
    """Yield what a later situation says about a plan: whether it may run, how it ended."""
    for step in plan.steps:
        if step.skip is not None and (why := step.skip(now)):
            yield f"skips {step.why}: {why}"
    first = plan.steps[0].requires if plan.steps else ()
    yield f"later: {failing((*plan.preconditions, *first), now) or 'may still run'}"
    if plan.follow is not None:
        end = plan.follow(now)
        yield "end: " + ("none yet" if end is None else outcome(end))


def outcome(end: ActionOutcome) -> str:
    """Return the outcome of an action as text."""
    return f"{'well' if end.ok else 'badly'}: {end.text}"


def _of_pool(s: Situation) -> dict[str, Make]:
    """Return the plans for a whole pool."""
    window = ScrubWindow(s.pool.name, s.pool.guid or "77", "22:00-06:00", True, True)
    found: dict[str, Make] = {
        "scrub": plan_scrub,
        "scrub of the errors": lambda now: plan_scrub(now, errors_only=True),
        "scrub of what is new": plan_scrub_new,
        "scrub by dates": plan_scrub_dates,
        "scrub since a date": lambda now: plan_scrub_dates(now, ScrubDates("2026-11-01")),
        "scrub between dates": lambda now: plan_scrub_dates(
            now, ScrubDates("2026-11-01", "2026-11-20 18:00")
        ),
        "pause": plan_pause,
        "stop": plan_stop,
        "resilver": plan_resilver,
        "stop of the resilver": plan_stop_resilver,
        "hours": plan_window,
        "hours of the night": lambda now: plan_window(now, "22:00-06:00"),
        "hours of the day": lambda now: plan_window(now, "10:00-20:00"),
        "scrub beside hours": lambda now: plan_beside_window(now, (window,)),
        "no hours": lambda now: plan_window_off(now, (window,)),
        "no hours where none are set": lambda now: plan_window_off(now, ()),
        "clear": plan_clear,
        "clear of a stranger": lambda now: plan_clear(now, "none"),
        "replace of a stranger": lambda now: plan_replace(now, Swap("none", made.GOOD)),
        "discard": plan_discard,
        "autoexpand on": lambda now: plan_autoexpand(now, on=True),
        "autoexpand off": lambda now: plan_autoexpand(now, on=False),
        "lights off": plan_lights_off,
    }
    wanted = {
        **{layout: most or 2 for layout, most in layouts(s)},
        **dict.fromkeys((Layout("normal"), Layout("cache"), Layout("log")), 1),
        Layout("normal", "mirror"): 2,
        Layout("normal", "raidz2"): 5,
        Layout("special"): 1,
    }
    for layout, most in wanted.items():
        found[f"add {layout.name} of {most}"] = _add(layout, _fresh(s)[:most])
    for path in (made.SMALL, made.MOUNTED, made.FOREIGN, made.ODD):
        found[f"add a spare, {path}"] = _add(Layout("spare"), (path,))
    found["add a mirror of one disk twice"] = _add(Layout("normal", "mirror"), (made.GOOD,) * 2)
    return found | _batches(s)


def _fresh(s: Situation) -> tuple[str, ...]:
    """Return devices that are in no pool: the machine's, and some that it lacks."""
    there = (device.path for device in s.facts.devices if device.contents.zfs_pool is None)
    return tuple(dict.fromkeys((*there, *made.FREE)))


def _add(layout: Layout, devices: tuple[str, ...]) -> Make:
    return lambda now: plan_add(now, layout, devices)


def _batches(s: Situation) -> dict[str, Make]:
    """Return plans to replace several devices: those that failed, any two, one of them twice."""
    every = [target for target in _targets(s) if not target.vdev.children]
    lost = [target.key for target in every if target.vdev.state in FAILED]
    some = [target.key for target in every[:2]]
    return {
        "batch of none": _batch(s, ()),
        "batch of the failed": _batch(s, lost),
        "batch of the first two": _batch(s, some),
        "sequential batch of the first two": _batch(s, some, sequential=True),
        "batch of three": _batch(s, [target.key for target in every[:3]]),
        "batch of one twice": _batch(s, some[:1] * 2),
        "batch with a stranger": _batch(s, [*some[:1], "none"]),
        "batch with one new disk": lambda now: plan_batch(
            now, tuple(Swap(key, made.GOOD) for key in some)
        ),
    }


def _batch(s: Situation, keys: Sequence[str], sequential: bool = False) -> Make:
    swaps = tuple(Swap(key, new) for key, new in zip(keys, _fresh(s), strict=False))
    return lambda now: plan_batch(now, swaps, sequential)


def _of_vdev(s: Situation, target: Target, leaves: Sequence[Target]) -> dict[str, Make]:
    """Return the plans for one vdev."""
    key, new = target.key, _fresh(s)[0]
    found: dict[str, Make] = {
        "replace": _replace(key, new),
        "attach": lambda now: plan_attach(now, key, new),
        "offline": lambda now: plan_offline(now, key),
        "online": lambda now: plan_online(now, key),
        "detach": lambda now: plan_detach(now, key),
        "expand": lambda now: plan_expand(now, key),
        "autosit on": lambda now: plan_autosit(now, key, on=True),
        "autosit off": lambda now: plan_autosit(now, key, on=False),
        "trim": lambda now: plan_work("trim", now, key),
        "clear": lambda now: plan_clear(now, key),
    }
    if target.vdev.children:
        return found
    other = next((leaf for leaf in leaves if leaf.key != key and leaf.vdev.path), target)
    choices = (made.SMALL, made.SECTORS, made.MOUNTED, made.FOREIGN, made.FILLED, made.ODD)
    news = {
        **{f"by {path}": path for path in (*choices, made.UNKNOWN)},
        **{f"by hot spare {path}": path for path in spares(s.pool)},
        "by itself": (target.vdev.path or target.vdev.name).removesuffix("-part1"),
        "by another member": other.vdev.path or "",
    }
    for name, path in news.items():
        found[f"replace {name}"] = _replace(key, path)
    return found | {
        "sequential replace": lambda now: plan_replace(now, Swap(key, new), sequential=True),
        "attach of a small one": lambda now: plan_attach(now, key, made.SMALL),
        "offline for now": lambda now: plan_offline(now, key, temporary=True),
        "offline before a pull": lambda now: plan_offline_safely(now, key),
        "open again": lambda now: plan_online(now, key, reopen=True),
        "sit out": lambda now: plan_sit_out(now, key, on=True),
        "sit in": lambda now: plan_sit_out(now, key, on=False),
        "light on": lambda now: plan_locate(now, key, on=True),
        "light off": lambda now: plan_locate(now, key, on=False),
        **{f"{change} trim": _trim(key, change) for change in CHANGES},
        **{f"{change} initialize": _initialize(key, change) for change in CHANGES},
    }


def _replace(key: str, new: str) -> Make:
    return lambda now: plan_replace(now, Swap(key, new))


def _trim(key: str, change: str) -> Make:
    return lambda now: plan_work("trim", now, key, change)


def _initialize(key: str, change: str) -> Make:
    return lambda now: plan_work("initialize", now, key, change)
