"""Tracks removals, expansions, checkpoint discards, trims and initializes of one pool."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from zconsole import units
from zconsole.keyed_text import KeyedText
from zconsole.pool.model import Activity, Pool, Sample
from zconsole.timeline.eta.estimate import SUSPENDED, Forecast, forecast, nothing
from zconsole.timeline.eta.progress import (
    ProgressCurve,
    ProgressReading,
    activity_work,
    copied_bytes,
)
from zconsole.timeline.frame import UPKEEP, ActivityView

ActivityKey = tuple[str, str | None, float | None]

STUCK_SECONDS = 300.0
"""Seconds without progress after which an activity is stuck: each writes its progress with every
txg, and even a slow one moves a little in each."""
STILL_SECONDS = 30.0
"""Seconds without progress after which this is reported: an earlier average would look like the
present speed."""
UNMOVED_SECONDS = 8.0
"""Seconds without progress after which this is reported of an activity that has not been seen to
move at all: a txg of 5 seconds, the default of ``zfs_txg_timeout``, and ``TXG_SLACK``."""
TXG_SLACK = 3.0
"""Seconds beyond ``zfs_txg_timeout`` that writing a txg takes. If this kernel has a longer timeout,
both limits above are at least that plus this slack."""


@dataclass(slots=True)
class _Followed:
    """An activity as far as it was watched: its course, and how long it has not moved."""

    course: ProgressCurve
    amount: tuple[object, ...] = ()
    """Its present progress; empty while that is not counted."""
    since: float = 0.0
    """When it got there, in seconds of the sample's clock."""
    moved: bool = False
    """True once it was seen to move."""

    def push(self, sample: Sample, activity: Activity) -> None:
        """Add a sample of the activity."""
        done, runs = copied_bytes(activity), activity.state == "running"
        if done is not None:
            self.course.add(ProgressReading(sample.t, sample.clock, runs, done[0]))
        # zpool's text has whole percents of a trim or initialize, or only that it runs.
        counted = activity.kind not in UPKEEP or activity.done_bytes is not None
        if not runs or activity.discarding or not counted:
            self.amount, self.moved = (), False
            return
        amount = (activity.done_bytes, activity.percent, activity.note)
        if amount != self.amount:
            self.moved, self.since = bool(self.amount), sample.clock
        self.amount, self.since = amount, min(self.since, sample.clock)  # falls at a reboot

    def idle(self, sample: Sample, activity: Activity) -> float | None:
        """Return seconds without progress, once rounding of bytes cannot explain them."""
        hidden = 4 * activity.resolution / max(1.0, activity.zpool_rate or 1.0)
        least = STILL_SECONDS if self.moved else UNMOVED_SECONDS
        txg = sample.tunables.get("zfs_txg_timeout", 0) + TXG_SLACK
        idle = sample.clock - self.since
        return idle if self.amount and idle >= max(least, hidden, txg) else None


class ActivityTracker:
    """Tracks the progress of every running activity."""

    def __init__(self, goes_on: bool = False) -> None:
        """``goes_on`` is True if more than one sample is taken."""
        self._goes_on = goes_on
        self._followed: dict[ActivityKey, _Followed] = {}

    def push(self, sample: Sample) -> tuple[ActivityView, ...]:
        """Add a sample; return a view of each of its activities, running or not."""
        found = [*sample.pool.activities]
        # The trim and the initialize of every leaf, too.
        states = {"active": "running", "suspended": "paused", "complete": "finished"}
        for vdev in sample.pool.root.walk():
            for kind, progress in (("trim", vdev.trim), ("initialize", vdev.initialize)):
                if progress is not None:
                    work = Activity(
                        kind=kind,
                        state=states.get(progress.state, progress.state),
                        vdev=vdev.name,
                        start=progress.time,
                        done_bytes=progress.done,
                        total_bytes=progress.total,
                        percent=None if progress.share is None else 100 * progress.share,
                    )
                    found.append(work)
        before, self._followed = self._followed, {}
        views = []
        for activity in found:
            key = (activity.kind, activity.vdev, activity.start)
            followed = before.get(key) or _Followed(ProgressCurve(goes_on=self._goes_on))
            if activity.state in ("running", "paused"):
                followed.push(sample, activity)
                self._followed[key] = followed
            views.append(_view(activity, followed, sample))
        return tuple(views)


def _view(activity: Activity, followed: _Followed, sample: Sample) -> ActivityView:
    if sample.pool.suspended and activity.state == "running":
        return ActivityView(activity, None, nothing(SUSPENDED))
    still = followed.idle(sample, activity)
    stalled = still if still is not None and still >= STUCK_SECONDS else None
    if still is not None:
        why = f"no progress for {units.duration(still)}"
        expected = Forecast(nothing(why if stalled is None else f"stuck: {why}"), 0.0)
    # Not yet seen to move between samples, although exact bytes would have shown that.
    elif (
        followed.amount
        and not followed.moved
        and sample.clock > followed.since
        and sample.exact
        and not activity.resolution
    ):
        expected = Forecast(nothing("not seen to move yet"))
    elif activity.state != "running":
        expected = Forecast(nothing(activity.state))
    elif (work := activity_work(activity)) is not None:
        expected = forecast(followed.course, work)
    else:
        counted = activity.percent is not None
        why = "not counted in bytes" if counted else "the total is unknown"
        expected = Forecast(nothing(f"no estimate: {why}"))
    advice = activity_advice(activity, sample.pool, still)
    return ActivityView(activity, expected.rate, expected.estimate, stalled, advice)


def activity_advice(activity: Activity, pool: Pool, still: float | None) -> str:
    """Return why an activity does not continue, or is past 100 %, and what to do.

    Empty if all is well. ``still`` is the seconds without progress, None if it moves.

    An expansion that waits continues once the vdev's devices are complete, after a resilver or
    ``zpool clear``; its total is what is allocated now, and shrinks when data is deleted
    (spa_raidz_expand_get_stats and vdev_raidz_reflow in module/zfs/vdev_raidz.c).
    """
    resilvers = any(scan.active and scan.function == "resilver" for scan in pool.scans)
    if activity.kind == "expansion" and activity.state == "paused":
        if resilvers:
            return "goes on after the resilver"
        first = f"{bad}, then " if (bad := _bad_devices(activity, pool)) else ""
        act = KeyedText(
            f"zpool clear {shlex.quote(pool.name)}", "clear the pool ({keys})", "actions"
        )
        return f"no resilver is running: {first}" + act
    if still is not None and resilvers:
        return "goes on after the resilver"
    if still is not None and ((bad := _bad_devices(activity, pool)) or still >= STUCK_SECONDS):
        return bad or "look for slow or failing devices (zpool events)"
    if activity.kind == "expansion" and (activity.percent or 0.0) > 100.0:
        return "past 100 %: data was deleted meanwhile; it goes on to the end"
    return ""


def _bad_devices(activity: Activity, pool: Pool) -> str:
    """Return what to do about devices of its vdev that are not ONLINE, "" if there are none."""
    vdev = next((v for v in pool.root.walk() if v.name == activity.vdev), None)
    bad = [leaf for leaf in vdev.leaves() if leaf.state != "ONLINE"] if vdev is not None else []
    named = ", ".join(f"{leaf.name} ({leaf.state})" for leaf in bad)
    return f"replace or bring back {named}" if named else ""
