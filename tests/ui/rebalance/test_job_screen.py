"""The keys of a job."""

from __future__ import annotations

from tests.records import replace
from tests.ui.actions.acting import acting
from tests.ui.rebalance.samples import JOB
from tests.ui.rebalance.steps import running, settled, until
from zconsole.ui.rebalance.job_screen import KEYS, offered

ALL = frozenset(key.action for key in KEYS)


def test_the_keys_that_do_something_follow_the_state():
    assert offered(JOB) == ALL
    assert offered(replace(JOB, state="paused")) == ALL
    assert offered(replace(JOB, state="dead")) == frozenset({"hold"})
    assert offered(replace(JOB, state="finished")) == frozenset({"hold"})
    assert offered(replace(JOB, state="finished", failed={})) == frozenset()
    assert offered(replace(JOB, files_total=None, why="counting files")) == ALL
    assert offered(None) == frozenset()


async def test_of_a_job_its_id_and_its_command_are_copied():
    async with acting("added-vdev") as a:
        await running(a)
        await a.press("y")
        said = await a.read(a.press("j", "enter"))
        assert a.app.clipboard.startswith("zconsole rebalance status ")
        assert "nothing to copy" not in said


async def test_to_pause_instead_of_a_stop_is_offered_where_the_job_runs():
    async with acting("added-vdev") as a:
        await running(a)
        assert "Only for a while? Esc, then P" in await a.read(a.press("X"))
        await a.press("escape", "P")
        await settled(a)
        said = await a.read(a.press("X"))
        assert "Stop rebalance job" in said
        assert "Only for a while?" not in said


async def test_that_a_job_was_stopped_is_said_no_longer_once_it_is_resumed():
    async with acting("added-vdev") as a:
        await running(a)
        await a.press("X", "right", "enter")
        await settled(a)
        told = a.app.messages
        await until(a, lambda: any("stopped" in message.message for message in told))
        await a.press("P")
        said = await a.read(settled(a))
        assert not any("stopped" in message.message for message in told), said


async def test_the_keys_stay_where_one_of_them_can_do_nothing_now():
    async with acting("added-vdev") as a:
        await running(a)
        await a.press("X", "right", "enter")
        await settled(a)
        said = await a.read(a.press("M"))
        assert "the job is stopped" in said
        assert "P resume" in said.splitlines()[-1]
        assert "Esc back" in said.splitlines()[-1]
