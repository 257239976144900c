"""A run over any source: turns raw forms into frames, with a history of its own for each pool."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, tzinfo
from typing import TYPE_CHECKING, Protocol

from zconsole.config.settings import SCRUB_OVERDUE_AFTER
from zconsole.errors import NotUnderstoodError
from zconsole.pool.model import Pool, Sample, SampleFailure
from zconsole.system.patient import CpuLimitError, cpu_limit
from zconsole.system.state_dir import StateError
from zconsole.timeline.frame import Frame
from zconsole.timeline.pool import PoolTimeline
from zconsole.zfs.decode import decode
from zconsole.zfs.decode.builders import check_size
from zconsole.zfs.decode.values import is_time
from zconsole.zfs.raw import Raw

if TYPE_CHECKING:
    from zconsole.system.record_file import AsyncWriter
    from zconsole.timeline.devices import DeviceProber
    from zconsole.timeline.store import HistoryStore
    from zconsole.zfs.sources.recording import Gaps

REST = 60.0
"""Seconds during which answers are not decoded after one that took too long."""
SETTLE = 0.5
"""Seconds to wait at the end for pending writes."""


class FrameKeeper(Protocol):
    """Stores data of every good frame beyond the run: the scan reports (``ReportKeeper``)."""

    def lacks(self, guid: str | None) -> bool:
        """Return whether ``recall`` must succeed before frames of a pool are pushed."""

    def recall(self, guid: str) -> float | None:
        """Load what was stored of a pool; return when its last full scrub ended (epoch seconds).

        Raises StateError if the disk does not answer in time.
        """

    def push(self, frame: Frame) -> object:
        """Process a frame. Raises StateError if something cannot be written."""

    def close(self) -> None:
        """Write unfinished reports once more. Raises StateError if that fails."""


class Session:
    """Turns the rounds of one source into frames, remembering each pool between them."""

    def __init__(
        self,
        zone: tzinfo = UTC,
        flags: tuple[str, ...] = (),
        store: HistoryStore | None = None,
        reports: FrameKeeper | None = None,
        writer: AsyncWriter | None = None,
        notes: Iterable[str] = (),
        gaps: Gaps | None = None,
        scrub_overdue_after: float | None = SCRUB_OVERDUE_AFTER,
        most_cpu: float | None = None,
        goes_on: bool = False,
    ) -> None:
        """Create a session that by default stores nothing, as for recordings, demos, saved output.

        ``store`` keeps histories between runs, ``reports`` the reports of scans; ``writer`` writes
        them in the background, and ``notes`` are their problems at the start. ``gaps`` counts
        unreadable samples of a recording, which then don't end it. ``scrub_overdue_after`` is in
        seconds; None if scrubs are not to be judged. ``most_cpu`` is the CPU time in seconds for
        decoding a sample, used for other machines; after a sample that took longer, none is decoded
        for REST seconds. ``goes_on`` is True if more than one round is taken, so that estimates can
        wait for more data.
        """
        self._zone = zone
        self._flags = flags
        self._store = store
        self._reports = reports
        self._writer = writer
        self._notes = dict.fromkeys(notes, False)
        """Problems, and whether each was taken."""
        self._timelines: dict[str, PoolTimeline] = {}
        self._gaps = gaps
        self._scrub_overdue_after = scrub_overdue_after
        self._most_cpu = most_cpu
        self._goes_on = goes_on
        self._rests_until = float("-inf")

    def advance(self, raws: Iterable[Raw]) -> tuple[Frame, ...]:
        """Return one frame for every pool of this round, in the round's order.

        A raw form that cannot be read gives a frame with a ``problem`` if the pool is known, and
        raises NotUnderstoodError if it is not. In a recording with ``gaps`` it counts as a gap, and
        as a problem of every pool that it may concern.
        """
        frames = list[Frame]()
        for raw in raws:
            for seen in self.identify(raw):
                if isinstance(seen, Sample) and self.lacks_past(seen.pool):
                    self.recall(seen.pool)
                frames.append(self.push(seen))
        return tuple(frames)

    def identify(self, raw: Raw) -> Iterator[Sample | SampleFailure]:
        """Decode a raw form, and assign each of its pools to its own timeline.

        A timeline that another pool of that name left is dropped; one under an earlier name of this
        pool is continued. Push each pool before asking for the next. Raises as ``advance`` does.
        """
        try:
            found = self._decode(raw)
        except NotUnderstoodError as error:
            if self._gaps is None:
                raise
            self._gaps.add(str(error))
            # In a gap each pool is missing. Rates do not span it: the counters start again.
            t, text = raw["t"], f"gap in the recording: {error}"
            missed = [f for name, f in self._frames().items() if raw.get("pool", name) == name]
            found = tuple(
                SampleFailure(last.pool, t, last.clock + t - last.t, text, gap=True)
                for last in missed
            )
        names: set[str] = set()
        for seen in found:
            name = seen.pool if isinstance(seen, SampleFailure) else seen.pool.name
            if isinstance(seen, Sample):
                if name in names:
                    # Two outputs in one file: the time between them is unknown, and whether they
                    # are of the same machine.
                    self._timelines.pop(name, None)
                last, guid = self.last(name), seen.pool.guid
                if guid is not None and (last is None or last.guid not in (None, guid)):
                    if last is not None:  # another pool had this name
                        self._keep(last, at_once=True)
                        del self._timelines[name]
                    for old, frame in self._frames().items():
                        if frame.guid == guid:  # this pool was renamed
                            self._timelines[name] = self._timelines.pop(old)
            names.add(name)
            yield seen

    def lacks_past(self, pool: Pool) -> bool:
        """Return whether ``recall`` must be called before the pool's sample is pushed."""
        keeps = self._store is not None or self._reports is not None
        is_new = keeps and self.last(pool.name) is None and pool.guid is not None
        return is_new or (self._reports is not None and self._reports.lacks(pool.guid))

    def recall(self, pool: Pool) -> None:
        """Start a pool's history with what was stored of it; reads a disk, and may hang.

        Reports that are not read in time are asked for again at its next sample.
        """
        name, guid = pool.name, pool.guid or ""
        if self._store is not None and self.last(name) is None:
            self._note(name, self._store.recall(guid, self.timeline(name)))
        if self._reports is not None:
            try:
                self.timeline(name).scrubs.recall(self._reports.recall(guid))
            except StateError as error:
                self._note(name, f"reports not read: {error}")

    def push(self, seen: Sample | SampleFailure, prober: DeviceProber | None = None) -> Frame:
        """Process a sample, or the reason why there is none, and store what is due.

        With ``prober``, devices in trouble are probed in the background.
        """
        if isinstance(seen, SampleFailure):
            frame = self.timeline(seen.pool).push_failure(seen)
        else:
            frame = self.timeline(seen.pool.name).push(seen)
        if prober is not None:
            frame = prober.look(frame)
        if isinstance(seen, SampleFailure):
            return frame
        self._keep(frame)
        if self._reports is not None and not self._reports.lacks(frame.guid):
            try:
                self._reports.push(frame)
            except StateError as error:
                self._note(frame.pool, f"report not kept: {error}")
        return frame

    def end(self) -> None:
        """Finish after the source has ended.

        Raises the first NotUnderstoodError of a recording in which nothing could be read.
        """
        if self._gaps is not None and self._gaps.count and not self._frames():
            raise NotUnderstoodError(self._gaps.first)

    def timeline(self, pool: str) -> PoolTimeline:
        """Return the timeline of a pool; empty for a new one."""
        if pool not in self._timelines:
            self._timelines[pool] = PoolTimeline(
                self._zone, self._flags, self._scrub_overdue_after, self._goes_on
            )
        return self._timelines[pool]

    def timelines(self) -> dict[str, PoolTimeline]:
        """Return a copy of every pool's timeline by name, for ``go_on_from``."""
        return {name: timeline.copy() for name, timeline in self._timelines.items()}

    def go_on_from(self, timelines: Mapping[str, PoolTimeline]) -> None:
        """Continue timelines that were copied before, which stay as they are."""
        self._timelines = {name: timeline.copy() for name, timeline in timelines.items()}

    def last(self, pool: str) -> Frame | None:
        """Return the last good frame of a pool; None if there was none."""
        timeline = self._timelines.get(pool)
        return timeline.frame if timeline is not None else None

    def _frames(self) -> dict[str, Frame]:
        """Return the last good frame of every pool that has one, by name."""
        known = ((name, timeline.frame) for name, timeline in self._timelines.items())
        return {name: frame for name, frame in known if frame is not None}

    def take_notes(self) -> tuple[str, ...]:
        """Return problems with stored history and reports since the last call, each once."""
        new = tuple(note for note, taken in self._notes.items() if not taken)
        self._notes.update(dict.fromkeys(new, True))
        return new

    def close(self) -> None:
        """Store every history once more and release the files."""
        for frame in self._frames().values():
            self._keep(frame, at_once=True)
        if self._store is not None:
            self._store.close()
        if self._reports is not None:
            try:
                self._reports.close()
            except StateError as error:
                self._note("reports", f"not kept: {error}")
        if self._writer is not None:
            self._writer.settle(SETTLE)

    def _decode(self, raw: Raw) -> tuple[Sample | SampleFailure, ...]:
        try:
            if "gap" in raw:
                raise NotUnderstoodError(raw["gap"])
            found = self._decode_briefly(raw) if self._most_cpu else decode(raw, self._zone)
            if raw.get("source") == "replay":
                self._check_recorded(found)
            return found
        except NotUnderstoodError as error:
            name = raw.get("pool")
            if name is None or self._gaps is not None or not is_time(raw.get("t")):
                place = f"{raw['place']}: " if raw.get("place") else ""
                raise NotUnderstoodError(f"{place}{error}") from None
            clock = raw.get("clock", raw["t"])
            return (SampleFailure(name, raw["t"], clock, str(error), raw.get("kstat")),)

    def _decode_briefly(self, raw: Raw) -> tuple[Sample | SampleFailure, ...]:
        now, most = raw.get("clock", raw["t"]), self._most_cpu or 0.0
        if now >= self._rests_until:
            with contextlib.suppress(CpuLimitError), cpu_limit(most):
                return decode(raw, self._zone)
            self._rests_until = now + REST
        raise NotUnderstoodError(f"its answer takes over {most:g} s to be read")

    def _check_recorded(self, found: Iterable[Sample | SampleFailure]) -> None:
        """Raise NotUnderstoodError for a recording without a pool, or with too many vdevs."""
        seen = {sample.pool.name: sample for sample in found if isinstance(sample, Sample)}
        if not seen:
            raise NotUnderstoodError("no pool in it")
        last = self._frames()
        if seen.keys() - last.keys():
            known = (f.root for name, f in last.items() if name not in seen and f.root)
            check_size((*known, *(sample.pool.root for sample in seen.values())))

    def _keep(self, frame: Frame, at_once: bool = False) -> None:
        if self._store is None or frame.guid is None:
            return
        try:
            self._store.keep(frame.guid, self.timeline(frame.pool), frame.t, at_once)
        except StateError as error:
            self._note(frame.pool, f"history not kept: {error}")

    def _note(self, pool: str, trouble: str | None) -> None:
        if trouble is not None:
            self._notes.setdefault(f"{pool}: {trouble}", False)
