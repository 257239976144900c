"""Plan and run one action inside a guest, as the console does; prints JSON lines.

``python -m tests.vm.act [--plan] [--typed TEXT] [--follow] POOL ACTION [ARGUMENT…]``; devices of
the pool are given by name, path or GUID.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from zconsole.actions.add import Layout, plan_add
from zconsole.actions.allocating import plan_allocating
from zconsole.actions.checkpoint import plan_add_with_way_back, plan_discard
from zconsole.actions.clear import plan_clear
from zconsole.actions.executor import Executor
from zconsole.actions.facts import PATIENCE, MachineFacts, Refresher, is_answer
from zconsole.actions.growth import plan_attach, plan_autoexpand, plan_expand
from zconsole.actions.offline import plan_detach, plan_offline, plan_online
from zconsole.actions.plan import ActionPlan, Situation
from zconsole.actions.remove import plan_cancel, plan_remove
from zconsole.actions.replace import (
    plan_batch,
    plan_replace,
)
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
from zconsole.errors import NotFoundError
from zconsole.hardware.machine import devices
from zconsole.pool.model import placed
from zconsole.system.async_process import ProcessRunner
from zconsole.system.audit import audit_log
from zconsole.system.host import ROOT, steady_clock
from zconsole.timeline.frame import Frame
from zconsole.timeline.session import Session
from zconsole.tunables.parameters import Parameters
from zconsole.zfs.sources.base import Source
from zconsole.zfs.sources.live import LiveSource

STATE = Path("/root/state")


def swaps(s: Situation, words: list[str]) -> tuple[Swap, ...]:
    return tuple(Swap(key(s, old), new) for old, new in (word.split("=", 1) for word in words))


def key(s: Situation, word: str) -> str:
    """Return the key of the device with a name, path or GUID."""
    for place in placed(s.pool.root):
        vdev = place.vdev
        if word in (vdev.guid, vdev.name) or (vdev.path or "").removesuffix("-part1") == word:
            return place.key
    raise SystemExit(f"no {word} in {[p.vdev.name for p in placed(s.pool.root)]}")


ACTIONS: dict[str, Callable[[Situation, list[str]], ActionPlan]] = {
    "replace": lambda s, w: plan_replace(s, swaps(s, w)[0]),
    "replace-s": lambda s, w: plan_replace(s, swaps(s, w)[0], sequential=True),
    "batch": lambda s, w: plan_batch(s, swaps(s, w)),
    "scrub": lambda s, _: plan_scrub(s),
    "scrub-e": lambda s, _: plan_scrub(s, errors_only=True),
    "scrub-C": lambda s, _: plan_scrub_new(s),
    "scrub-S": lambda s, w: plan_scrub_dates(s, ScrubDates(*w)),
    "pause": lambda s, _: plan_pause(s),
    "stop": lambda s, _: plan_stop(s),
    "resilver": lambda s, _: plan_resilver(s),
    "offline": lambda s, w: plan_offline(s, key(s, w[0])),
    "offline-t": lambda s, w: plan_offline(s, key(s, w[0]), temporary=True),
    "online": lambda s, w: plan_online(s, key(s, w[0])),
    "expand": lambda s, w: plan_expand(s, key(s, w[0])),
    "autoexpand": lambda s, w: plan_autoexpand(s, w[0] == "on"),
    "attach": lambda s, w: plan_attach(s, key(s, w[0]), w[1]),
    "detach": lambda s, w: plan_detach(s, key(s, w[0])),
    # For example "special:mirror", "normal:raidz1", "log:disk".
    "add": lambda s, w: plan_add(s, Layout(*w[0].split(":")), tuple(w[1:])),
    "add-after-checkpoint": lambda s, w: plan_add_with_way_back(
        s, Layout(*w[0].split(":")), tuple(w[1:])
    ),
    "discard": lambda s, _: plan_discard(s),
    "remove": lambda s, w: plan_remove(s, key(s, w[0])),
    "cancel-removal": lambda s, _: plan_cancel(s),
    "trim": lambda s, w: plan_work("trim", s, key(s, w[0]), *w[1:]),
    "initialize": lambda s, w: plan_work("initialize", s, key(s, w[0]), *w[1:]),
    "sit-out": lambda s, w: plan_sit_out(s, key(s, w[0]), on=w[1] == "on"),
    "allocating": lambda s, w: plan_allocating(s, key(s, w[0]), on=w[1] == "on"),
    "autosit": lambda s, w: plan_autosit(s, key(s, w[0]), on=w[1] == "on"),
    "clear": lambda s, w: plan_clear(s, key(s, w[0]) if w else None),
}


class FreshFrames:
    """A feed that is sampled until a sample that began after the question gave an answer."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._session = Session()

    async def __call__(self, pool: str, since: float) -> Frame:
        until = steady_clock() + PATIENCE
        while True:
            frames = self._session.advance(await self._source.sample() or ())
            frame = next((f for f in frames if f.pool == pool), None)
            if frame is None or frame.absent:
                raise NotFoundError(f"{pool}: no such pool is imported")
            found = is_answer(frame.looked, frame.problem, frame.suspended, since)
            if found or steady_clock() > until:
                return frame


def say(**fields: object) -> None:
    print(json.dumps(fields), flush=True)


async def main(args: argparse.Namespace) -> int:
    runner = ProcessRunner()
    source = LiveSource([])
    paths = tuple(word.rpartition("=")[2] for word in args.words if "/" in word)
    look = Refresher(
        FreshFrames(source), MachineFacts(runner, Parameters(), partial(devices, ROOT)), paths
    )
    if args.wait:
        say(kind="seen", text=str((await look(args.pool, steady_clock())).pool.state))
        sys.stdin.readline()
    plan = ACTIONS[args.action](await look(args.pool, steady_clock()), args.words)
    say(
        kind="plan",
        title=plan.title,
        refused=plan.refused,
        typed=plan.needs_typed,
        commands=[step.command for step in plan.steps],
        said=[*plan.consequences, *plan.not_undone, *plan.warnings, *plan.alternatives],
        preconditions=plan.checks,
    )
    kind = "plan"
    if not args.plan:
        executor = Executor(runner, look, audit_log(lambda: STATE))
        async for event in executor.run(plan, args.typed):
            kind = event.kind
            say(kind=kind, text=event.text, meaning=event.meaning)
        if args.follow and kind == "done" and plan.follow is not None:
            while (outcome := plan.follow(await look(args.pool, steady_clock()))) is None:
                await asyncio.sleep(0.5)
            executor.ended(plan, outcome)
            say(kind="end", ok=outcome.ok, text=outcome.text)
    await source.aclose()
    return 0 if kind in ("plan", "done") else 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--plan", action="store_true")
    parser.add_argument("--wait", action="store_true", help="look, then wait for a line")
    parser.add_argument("--typed")
    parser.add_argument("--follow", action="store_true")
    parser.add_argument("pool")
    parser.add_argument("action", choices=ACTIONS)
    parser.add_argument("words", nargs="*")
    STATE.mkdir(mode=0o700, exist_ok=True)
    sys.exit(asyncio.run(main(parser.parse_args())))
