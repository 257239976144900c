"""The header's status of the newest round, as time passes."""

from __future__ import annotations

from tests.records import replace
from tests.table import rows
from tests.ui import frames
from tests.ui.drawn import LOOK
from zconsole.timeline.feed import Update
from zconsole.timeline.session import Session
from zconsole.ui.console_options import ConsoleOptions
from zconsole.ui.view_state import ViewState
from zconsole.zfs.sources.base import Capabilities


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
