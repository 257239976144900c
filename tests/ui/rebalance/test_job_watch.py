"""Jobs that are announced, and marked in the frames."""

from __future__ import annotations

import asyncio

from tests.records import replace
from tests.ui import frames
from tests.ui.rebalance.samples import JOB
from zconsole.errors import UnavailableError
from zconsole.timeline.frame import Additions
from zconsole.ui.display_format import DisplayFormat
from zconsole.ui.rebalance.job_watch import JobWatch, activity


class Backend:
    """Returns the given lists of jobs, one per round."""

    def __init__(self, *rounds) -> None:
        self.rounds = list(rounds)

    async def jobs(self, pool):
        found = self.rounds.pop(0)
        if isinstance(found, Exception):
            raise found
        return found


async def test_the_watch_tells_of_interrupted_jobs_once_and_of_ends():
    dead, over = replace(JOB, state="dead"), replace(JOB, state="finished", why="done", failed={})
    gone = replace(JOB, state="dead", why="its process is gone; resume it")
    rebalance_backend = Backend((dead,), (dead,), (JOB,), (over,), (JOB,), (gone,))
    watch = JobWatch(lambda: rebalance_backend)
    told = [[news.text for news in await watch.look("tank")] for _ in range(6)]
    assert "was interrupted" in told[0][0]
    assert told[1] == told[2] == told[4] == []
    assert told[3] == ["Rebalance job abc123 is over: done"]
    assert "its process is gone" in told[5][0]


async def test_another_look_may_find_something_unless_all_jobs_are_known_and_finished():
    over = replace(JOB, state="finished")
    backend = Backend((over,), (over, JOB), UnavailableError("hangs"), (over,))
    watch = JobWatch(lambda: backend)
    assert watch.may_change(["tank"])
    said = []
    for _ in range(4):
        await watch.look("tank")
        said.append(watch.may_change(["tank"]))
    assert said == [False, True, True, False]


async def test_the_beginning_and_the_end_of_a_job_are_kept_for_the_events():
    stopped, over = replace(JOB, state="stopped", why="stop"), replace(JOB, state="finished")
    backend, kept = Backend((), (JOB,), (stopped,), (JOB,), (over,)), []
    watch = JobWatch(lambda: backend, lambda pool, news: kept.append((pool, news.text)))
    told = [await watch.look("tank") for _ in range(5)]
    assert [len(each) for each in told] == [0, 0, 1, 0, 1]
    assert [pool for pool, _ in kept] == ["tank"] * 4
    words = ("began", "stopped", "goes on", "is over")
    assert all(word in text for word, (_, text) in zip(words, kept, strict=True))


async def test_a_stop_that_was_ordered_is_news_and_another_a_warning():
    ordered = replace(JOB, state="stopped", why="stop")
    worn = replace(JOB, state="stopped", why="100 files failed in a row")
    backend = Backend((JOB,), (ordered,), (JOB,), (worn,))
    watch = JobWatch(lambda: backend)
    told = [await watch.look("tank") for _ in range(4)]
    assert [news.severity for news in told[1]] == ["information"]
    assert [news.severity for news in told[3]] == ["warning"]
    for news in (*told[1], *told[3]):
        assert "zconsole rebalance resume abc123 resumes it." in news.text
        assert "B lists it, P resumes it." in DisplayFormat().said(news.text)


async def test_a_look_that_began_before_another_does_not_undo_it():
    """A check may take seconds, and see a job as it was before it was resumed."""
    dead, gates = replace(JOB, state="dead"), [asyncio.Event(), asyncio.Event()]

    class Slow:
        def __init__(self):
            self.answers = [(dead,), (JOB,)]
            self.gates = list(gates)

        async def jobs(self, pool):
            found, gate = self.answers.pop(0), self.gates.pop(0)
            await gate.wait()
            return found

    slow = Slow()
    watch = JobWatch(lambda: slow)
    looks = [asyncio.create_task(watch.look("tank")) for _ in gates]
    for gate, look in zip(reversed(gates), reversed(looks), strict=True):
        await asyncio.sleep(0)
        gate.set()
        await look
    assert watch.jobs["tank"] == (JOB,)


async def test_frames_are_marked_with_the_job_at_work_or_interrupted():
    frame = replace(frames.ALL["healthy"](), pool="tank")
    watch = JobWatch(
        lambda: Backend((JOB,), (replace(JOB, state="dead"),), UnavailableError("stuck"))
    )
    assert frame.joined(Additions(watch.shown("tank", 0.0))) is frame
    await watch.look("tank")
    marked = frame.joined(Additions(watch.shown("tank", 0.0)))
    assert "REBALANCE" in marked.flags
    assert marked.activities[-1].activity.percent == 25.0
    await watch.look("tank")
    marked = frame.joined(Additions(watch.shown("tank", 0.0)))
    assert "REBALANCE" not in marked.flags
    assert marked.activities[-1].activity.state == "interrupted"
    await watch.look("tank")
    assert watch.problem == "stuck"
    assert frame.joined(Additions(watch.shown("tank", 0.0))) == marked


async def test_a_job_that_is_over_is_told_for_a_day():
    over = replace(JOB, state="finished", why="target spread reached", t=1000.0, failed={})
    watch = JobWatch(lambda: Backend((over,)))
    await watch.look("tank")
    (view,) = watch.shown("tank", 1000.0 + 80_000.0)
    assert (view.activity.state, view.activity.end, view.flag) == ("finished", 1000.0, "")
    assert view.activity.note == "logical sizes, 12 files skipped, target spread reached"
    assert watch.shown("tank", 1000.0 + 90_000.0) == ()


async def test_the_newest_job_is_shown_while_it_is_stopped_and_older_ones_are_not():
    stopped = replace(JOB, state="stopped", why="stop")
    over = replace(JOB, job="def456", state="finished")
    backend = Backend((stopped,), (JOB, stopped), (stopped, over), (over, stopped))
    watch, shown = JobWatch(lambda: backend), []
    for _ in range(4):
        await watch.look("tank")
        shown.append([view.activity.state for view in watch.shown("tank", 0.0)])
    assert shown == [["stopped"], [JOB.state], ["stopped"], ["finished"]]
    note = activity(stopped).activity.note
    said = DisplayFormat().said(note)
    assert said.startswith("at 25.0 %  (B lists it, P resumes it)  /")


def test_the_line_of_a_job_counts_what_it_left_out():
    job = replace(JOB, skipped={"in use": 11, "changed": 1}, failed={"no space": 1})
    assert activity(job).activity.note == "logical sizes, 12 files skipped, 1 file failed"
    assert activity(replace(JOB, skipped={}, failed={})).activity.note == "logical sizes"
