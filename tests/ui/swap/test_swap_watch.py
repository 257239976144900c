"""The checklists that a console watches, among the activities of a pool."""

from __future__ import annotations

import asyncio
from functools import partial
from math import inf

from tests.factory import frame, mirror_pool
from tests.unit.swap.playing import WRONG, Play
from zconsole.sim.backends.actions import simulated_backend
from zconsole.sim.probes import smart_of
from zconsole.sim.source import World
from zconsole.swap.store import SwapBackend, SwapStore
from zconsole.ui.swap.swap_watch import SwapWatch


def test_a_disk_pulled_by_mistake_is_known_before_it_is_complete_and_after():
    play = Play()
    play.wrong()
    stage = play.put_back()
    watch = SwapWatch(None, simulated_backend(play.world), lambda: ())
    watch.saw(play.checklist, stage)
    key = str(play.leaf(WRONG).guid)
    assert watch.pulled("tank") == {key: inf}
    play.run_alarm()
    stage = play.refilled()
    watch.saw(play.checklist, stage)
    assert watch.pulled("tank") == {key: play.checklist.returned[0].t}


def test_a_checklist_that_cannot_be_read_is_named_and_not_dropped(tmp_path):
    tmp_path.chmod(0o700)
    path = tmp_path / "swap-0123abcd.json"
    path.write_text("{")
    path.chmod(0o600)
    world = World("swap", 1)
    backend = SwapBackend(lambda _: SwapStore(None, (tmp_path,)), partial(smart_of, world))
    watch = SwapWatch(backend, simulated_backend(world), lambda: ())
    asyncio.run(watch.look())
    (line,) = watch.shown(frame(mirror_pool()))
    assert line.activity.state == "unreadable:"
    assert line.activity.note == "swap-0123abcd.json; zconsole swap --json says why"
    path.unlink()
    asyncio.run(watch.look())
    assert watch.shown(frame(mirror_pool())) == ()
