"""Following removals, expansions, checkpoint discards, trims and initializes of one pool."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from zconsole.eta.estimate import Forecast, forecast, nothing
from zconsole.eta.progress_curve import ProgressCurve
from zconsole.eta.work import activity_reading, activity_work
from zconsole.history.views import ActivityView
from zconsole.pool.model import Activity, Pool, Progress, Sample
from zconsole.pool.topology import Placed

ActivityKey = tuple[str, str | None, float | None]


class ActivityTracker:
    """The progress of every running activity."""

    def __init__(self) -> None:
        self._courses: dict[ActivityKey, ProgressCurve] = {}

    def push(self, sample: Sample, tree: Mapping[str, Placed]) -> tuple[ActivityView, ...]:
        """Take in a sample; a view of each of its activities, running or not.

        ``tree`` holds its vdevs by key.
        """
        kept: dict[ActivityKey, ProgressCurve] = {}
        found = tuple(activities(sample.pool, tree.values()))
        for activity in found:
            reading = activity_reading(sample.t, sample.clock, activity)
            if reading is None or activity.state not in ("running", "paused"):
                continue
            key = _key(activity)
            course = kept[key] = self._courses.get(key, ProgressCurve())
            course.add(reading)
        self._courses = kept
        expected = ((activity, self._forecast(activity)) for activity in found)
        return tuple(ActivityView(activity, f.rate, f.estimate) for activity, f in expected)

    def _forecast(self, activity: Activity) -> Forecast:
        if activity.state != "running":
            return Forecast(nothing(activity.state))
        course, work = self._courses.get(_key(activity)), activity_work(activity)
        if work is None or course is None:
            counted = activity.percent is not None
            why = "not counted in bytes" if counted else "the total is unknown"
            return Forecast(nothing(f"no estimate: {why}"))
        return forecast(course, work)


def activities(pool: Pool, tree: Iterable[Placed]) -> Iterator[Activity]:
    """The pool's activities, then every leaf's trim and initialize as one."""
    yield from pool.activities
    for place in tree:
        vdev = place.vdev
        for kind, progress in (("trim", vdev.trim), ("initialize", vdev.initialize)):
            if progress is not None:
                yield _of_leaf(kind, vdev.name, progress)


def _of_leaf(kind: str, name: str, progress: Progress) -> Activity:
    states = {"active": "running", "suspended": "paused", "complete": "finished"}
    percent = None if progress.share is None else 100 * progress.share
    return Activity(
        kind=kind,
        state=states.get(progress.state, progress.state),
        vdev=name,
        start=progress.time,
        done_bytes=progress.done,
        total_bytes=progress.total,
        percent=percent,
    )


def _key(activity: Activity) -> ActivityKey:
    return (activity.kind, activity.vdev, activity.start)
