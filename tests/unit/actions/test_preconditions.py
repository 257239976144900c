"""No plan is ever made in a situation that violates its preconditions.

The preconditions are written here a second time, independently, from zpool's own rules.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.records import replace
from tests.unit.actions.pools import NEW, keys, situations
from zconsole.actions.add import Layout, plan_add
from zconsole.actions.allocating import plan_allocating
from zconsole.actions.checkpoint import plan_add_with_way_back, plan_discard
from zconsole.actions.clear import plan_clear
from zconsole.actions.growth import plan_attach, plan_autoexpand, plan_expand
from zconsole.actions.offline import plan_detach, plan_offline, plan_online
from zconsole.actions.plan import ActionPlan, Situation, failing
from zconsole.actions.remove import plan_cancel, plan_remove
from zconsole.actions.replace import plan_batch, plan_replace
from zconsole.actions.scrub import (
    ScrubDates,
    plan_pause,
    plan_resilver,
    plan_scrub,
    plan_scrub_dates,
    plan_scrub_new,
    plan_stop,
)
from zconsole.actions.sit_out import plan_autosit, plan_sit_out
from zconsole.actions.target import Swap
from zconsole.actions.trim import plan_work
from zconsole.pool.model import Pool, Vdev
from zconsole.pool.redundancy import redundancy

pytestmark = pytest.mark.slow

OTHERS = (NEW, *(f"/dev/other{n}" for n in range(5)))
PLANS = (
    lambda s, key: plan_replace(s, Swap(key, NEW)),
    lambda s, key: plan_replace(s, Swap(key, NEW), sequential=True),
    lambda s, key: plan_batch(s, (Swap(key, NEW),)),
    plan_offline,
    lambda s, key: plan_offline(s, key, temporary=True),
    plan_online,
    plan_expand,
    lambda s, key: plan_attach(s, key, NEW),
    plan_detach,
    lambda s, key: plan_work("trim", s, key),
    lambda s, key: plan_work("initialize", s, key, "cancel"),
    plan_clear,
    lambda s, _: plan_clear(s),
    lambda s, _: plan_scrub(s),
    lambda s, _: plan_scrub(s, errors_only=True),
    lambda s, _: plan_scrub_new(s),
    lambda s, k: plan_sit_out(s, k, on=True),
    lambda s, k: plan_sit_out(s, k, on=False),
    lambda s, k: plan_autosit(s, k, on=True),
    lambda s, k: plan_allocating(s, k, on=False),
    lambda s, k: plan_allocating(s, k, on=True),
    lambda s, _: plan_scrub_dates(s, ScrubDates("2026-11-01")),
    lambda s, _: plan_pause(s),
    lambda s, _: plan_stop(s),
    lambda s, _: plan_resilver(s),
    lambda s, _: plan_autoexpand(s, True),
    plan_remove,
    lambda s, _: plan_cancel(s),
    lambda s, _: plan_discard(s),
    lambda s, _: plan_add_with_way_back(s, Layout("normal", "mirror"), OTHERS[:2]),
    *(
        lambda s, _, layout=layout, count=count: plan_add(s, layout, OTHERS[:count])
        for layout, count in (
            (Layout("normal"), 1),
            (Layout("normal", "mirror"), 2),
            (Layout("normal", "raidz1"), 4),
            (Layout("normal", "raidz2"), 5),
            (Layout("special", "mirror"), 3),
            (Layout("dedup", "mirror"), 2),
            (Layout("log"), 1),
            (Layout("cache"), 2),
            (Layout("spare"), 1),
        )
    ),
)


def words(plan: ActionPlan) -> list[str]:
    return [word for step in plan.steps for word in step.argv]


def violation(s: Situation, plan: ActionPlan) -> str | None:
    """Return why zpool or the kernel would refuse the plan's first command, or None."""
    verb = plan.steps[0].argv[1]
    active = {scan.function for scan in s.pool.scans if scan.state in ("running", "paused")}
    doing = {(a.kind, a.state) for a in s.pool.activities}
    if s.suspended and verb != "clear":
        return "suspended"
    fills = verb in ("replace", "attach")
    running = {x.function for x in s.pool.scans if x.state == "running"}
    starts = verb == "scrub" and not set(plan.steps[0].argv) & {"-p", "-s"}
    checkpoint = {("checkpoint", "exists"), ("checkpoint", "running")}
    stops = verb == "remove" and "-s" in plan.steps[0].argv
    takes_checkpoint = verb == "checkpoint" and "-d" not in plan.steps[0].argv
    moving = {("removal", "running"), ("expansion", "running")}
    other = "resilver" if "-s" in words(plan) else "rebuild"
    against = {
        "checkpoint": (fills or verb in ("detach", "remove")) and not stops and doing & checkpoint,
        "removal": (fills or verb in ("add", "remove"))
        and not stops
        and ("removal", "running") in doing,
        "checkpoint during other work": takes_checkpoint
        and (active & {"resilver", "rebuild"} or doing & {*checkpoint, *moving}),
        "resilver to come": takes_checkpoint and any(map(lacks, s.pool.root.leaves())),
        "nothing to cancel": stops and not doing & {("removal", "running"), ("removal", "paused")},
        "no vdev to remove": verb == "remove" and not stops and stays(s, plan.steps[0].argv[-1]),
        "likelier lost than the rest": verb == "add" and weakens(s, words(plan)),
        "the other way of resilvering runs": fills and other in active,
        "new device in use": (fills or (verb == "add" and NEW in words(plan)))
        and s.facts.devices
        and s.facts.devices[0].mounted,
        "busy": starts and running & {"scrub", "resilver", "rebuild"},
        "resilver in the way": verb == "scrub" and active & {"resilver", "rebuild"},
        "data would be lost": verb == "offline" and lost(s, plan.steps[0].argv[-1]),
    }
    found = next((why for why, holds in against.items() if holds), None)
    return found or lacking(s, list(plan.steps[0].argv)) or misplaced(s, plan.steps[0].argv)


def lacks(leaf: Vdev) -> bool:
    """Return whether a device has failed, or waits for a resilver."""
    return leaf.awaiting_resilver or leaf.state in ("OFFLINE", "FAULTED", "UNAVAIL", "REMOVED")


def stays(s: Situation, word: str) -> bool:
    """Return whether spa_vdev_remove_top_check refuses to remove this vdev."""
    tops = s.pool.root.children
    top = next(v for v in tops if word in (v.guid, v.name))
    parts = [v.kind for each in tops for v in each.walk()]
    rigid = any(kind.startswith(("raidz", "draid", "replacing", "spare")) for kind in parts)
    return rigid or len(tops) < 2 or all(lacks(leaf) or leaf.resilvering for leaf in top.leaves())


def weakens(s: Situation, said: list[str]) -> bool:
    """Return whether an added vdev holds data and survives fewer failures than the pool's vdevs."""
    if {"log", "cache", "spare"} & set(said):
        return False
    kind = next((word for word in said if word.startswith(("mirror", "raidz"))), "disk")
    devices = sum(word.startswith("/dev/") for word in said)
    tops = [(v.kind, len(v.children)) for v in s.pool.root.children]
    present = [survives for survives in map(survived, tops) if survives]
    return survived((kind, devices)) < min(present, default=1)


def survived(layout: tuple[str, int]) -> int:
    kind, devices = layout
    return devices - 1 if kind == "mirror" else int(kind[-1]) if kind[-1].isdigit() else 0


def lacking(s: Situation, said: list[str]) -> str | None:
    """Return what the pool's features or version do not allow, if they are known."""
    # Only a release that supports error scrubs has one to resume.
    knows_error_scrubs = any(scan.function == "errorscrub" for scan in s.pool.scans)
    needs = {
        "resilver_defer": ("resilver" in said, ()),
        "head_errlog": ("-e" in said and "scrub" in said and not knows_error_scrubs, (2, 2)),
        "device_rebuild": ("replace" in said and "-s" in said, (2, 0)),
        "raidz_expansion": ("attach" in said and any("raidz" in word for word in said), (2, 3)),
    }
    for feature, (needed, version) in needs.items():
        if needed and s.facts.features.get(feature) == "disabled":
            return feature
        if needed and s.facts.version and s.facts.version < version:
            return f"OpenZFS {version}"
    return None


def misplaced(s: Situation, argv: tuple[str, ...]) -> str | None:
    """Return what zpool would refuse to do to a vdev of this kind, in this place or state."""
    family = [
        (top, parent, vdev)
        for top in s.pool.root.children
        for parent, vdev in ((s.pool.root, top), *((p, v) for p in top.walk() for v in p.children))
        if vdev.guid in argv
    ]
    for top, parent, vdev in family:
        if argv[1] == "replace" and vdev.children:
            return "no device"
        if argv[1] == "detach" and parent.kind not in ("mirror", "replacing", "spare"):
            return "not a side of a mirror"
        if argv[1] == "replace" and "-s" in argv and top.kind.startswith("raidz"):
            return "raidz has no sequential rebuild"
        if argv[1] in ("trim", "initialize") and vdev.state not in ("ONLINE", "DEGRADED"):
            return "not there to work on"
        if argv[1] == "online" and "-e" not in argv and vdev.state == "ONLINE":
            return "online already"
    return None


def lost(s: Situation, guid: str) -> bool:
    """Return whether a vdev that has its data would lose it without this device."""

    def without(v: Vdev) -> Vdev:
        if v.guid == guid:
            return replace(v, state="OFFLINE")
        return replace(v, children=tuple(without(child) for child in v.children))

    def holes(v: Vdev) -> int:
        return sum(
            not any(
                leaf.state == "ONLINE" and not leaf.resilvering and not leaf.awaiting_resilver
                for leaf in member.leaves()
            )
            for member in (v.children if v.kind not in ("replacing", "spare") else ()) or (v,)
        )

    tolerance = {"mirror": -1, "raidz1": 1, "raidz2": 2, "raidz3": 3, "draid1": 1, "disk": 0}
    for before, after in zip(s.pool.root.children, without(s.pool.root).children, strict=True):
        limit = tolerance[before.kind]
        limit = len(before.children) - 1 if limit < 0 else limit
        if holes(after) > limit and holes(after) > holes(before):
            return True
    return False


@given(situations(), st.data())
def test_no_plan_from_a_situation_that_forbids_it(s, data):
    key = data.draw(st.sampled_from(keys(s)))
    for make in PLANS:
        plan = make(s, key)
        if plan.refused is None:
            assert violation(s, plan) is None, plan.title


@given(situations(), situations(), st.data())
def test_no_plan_survives_into_a_situation_that_forbids_it(before, after, data):
    """ZED or another operator acts between the plan and the run."""
    key = data.draw(st.sampled_from(keys(before)))
    now = data.draw(
        st.sampled_from(
            (
                after,
                replace(
                    before,
                    suspended=after.suspended,
                    pool=replace(
                        before.pool, activities=after.pool.activities, scans=after.pool.scans
                    ),
                ),
            )
        )
    )
    for make in PLANS:
        plan = make(before, key)
        if (
            plan.refused is None
            and failing(plan.preconditions + plan.steps[0].requires, now) is None
        ):
            assert violation(now, plan) is None, plan.title


@given(situations(), st.data())
def test_every_command_is_plain(s, data):
    key = data.draw(st.sampled_from(keys(s)))
    for make in PLANS:
        plan = make(s, key)
        for step in plan.steps:
            assert step.argv[0] == "zpool"
            assert not {"-f", "-F", "-X", "-n"} & set(step.argv)
            assert set(step.argv[2:]) & {"tank"}
        if plan.refused is None:
            assert plan.steps
            assert plan.consequences


@given(situations(), st.data())
def test_a_batch_never_leaves_a_vdev_more_absent_than_its_parity(s, data):
    chosen = data.draw(st.lists(st.sampled_from(keys(s)), min_size=1, max_size=4, unique=True))
    plan = plan_batch(s, tuple(Swap(key, f"/dev/{n}") for n, key in enumerate(chosen)))
    if plan.refused is None:
        for _, entry in redundancy(Pool("tank", None, s.pool.root)):
            assert entry.left >= 0
        touched = [t for t in s.pool.root.children if set(chosen) & {v.guid for v in t.walk()}]
        for top in touched:
            limits = {"mirror": len(top.children) - 1, "disk": 0}
            limit = limits.get(top.kind, int(top.kind[-1]) if top.kind[-1].isdigit() else 0)
            absent = sum(
                not any(
                    leaf.state == "ONLINE" and not (leaf.resilvering or leaf.awaiting_resilver)
                    for leaf in member.leaves()
                )
                for member in top.children or (top,)
            )
            assert absent <= limit
