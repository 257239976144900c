"""The header's status of the newest round, as time passes."""

from __future__ import annotations

import json

from tests.records import replace
from tests.table import rows
from tests.ui import frames
from tests.ui.drawn import LOOK
from zconsole.timeline.feed import ReplayFeed, Update
from zconsole.timeline.session import Session
from zconsole.ui.console_options import ConsoleOptions
from zconsole.ui.view_state import ViewState
from zconsole.zfs.sources.base import Capabilities
from zconsole.zfs.sources.replay import Playback, ReplaySource


def said(frame, passed):
    """Return the status ``passed`` seconds after a round with that frame."""
    state = ViewState(ConsoleOptions(), LOOK)
    state.take(Update((frame,), Capabilities("libzfs")), 100.0)
    return state.status(100.0 + passed, 1.0)


@rows("stale", [0.0, 90.0])
def test_the_clock_goes_on_while_a_pool_does_not_answer(stale):
    fresh = frames.healthy()
    old = replace(fresh, problem="no answer", stale_seconds=stale) if stale else fresh
    status = said(old, 2.0)
    assert (status.age, status.now) == (stale + 2.0, fresh.t + stale + 2.0)


def test_the_clock_goes_on_before_a_pool_was_ever_seen():
    never = replace(frames.healthy(), problem="no answer", stale_seconds=None)
    status = said(never, 2.0)
    assert (status.age, status.now) == (None, never.t + 2.0)


def test_a_sample_that_is_shown_again_says_its_age():
    again = replace(frames.healthy(), age=3.0)
    status = said(again, 0.5)
    assert (status.age, status.now) == (3.5, again.t + 3.5)


@rows(("options", "pools"), [((), ["vault"]), (("old",), ["vault", "old"])])
def test_a_pool_that_was_imported_under_another_name_leaves_the_list(options, pools):
    """The history went on under the other name: nothing is known of the old one."""
    gone = {"t": 1.0, "pool": "old", "problem": "no longer imported", "absent": True}
    state = ViewState(ConsoleOptions(pools=options), LOOK, pool="vault")
    renamed = replace(frames.healthy(), pool="vault")
    state.take(Update((renamed, *Session().advance([gone])), Capabilities("libzfs")), 100.0)
    assert [frame.pool for frame in state.frames] == pools


TEXT = """  pool: {0}
 state: ONLINE
config:

\t{0}  ONLINE  0 0 0
\t  sda  ONLINE  0 0 0
"""


@rows(
    ("lines", "shown"),
    [
        (["a", "b", "a"], [("a", 0), ("b", 30)]),
        (["a", "b", "b"], [("a", 30), ("b", 0)]),
        (["a", "b", "a", "a", "a"], [("a", 0)]),
        # A line that can't be read is a round of the pool that it names.
        (["a", "b", "a?"], [("a", 30), ("b", 30)]),
    ],
)
async def test_a_replay_shows_a_pool_again_that_did_not_answer_for_a_while(lines, shown, tmp_path):
    path = tmp_path / "recording"
    with path.open("w") as file:
        for at, name in enumerate(lines):
            raw = {"t": 1000.0 + 30 * max(0, at - 1), "pool": name[0]}
            text = {} if name.endswith("?") else {"text": TEXT.format(name)}
            file.write(f"{json.dumps(raw | text)}\n")
    feed = ReplayFeed(ReplaySource(str(path), None), Session(), Session)
    state = ViewState(ConsoleOptions(), LOOK, pool="b", playback=feed.playback)
    while (update := await feed.next()) is not None:
        state.take(update, 100.0)
    assert [(frame.pool, frame.stale_seconds) for frame in state.frames] == shown


async def test_a_jump_back_in_a_replay_keeps_nothing_of_later():
    state = ViewState(ConsoleOptions(), LOOK, pool="b", playback=Playback(1.0))
    one, other = (replace(frames.healthy(), pool=name) for name in ("a", "b"))
    state.take(Update((one, other), Capabilities("replay")), 100.0)
    earlier = replace(one, t=one.t - 30.0)
    state.take(Update((earlier,), Capabilities("replay")), 101.0)
    assert state.frames == (earlier,)
