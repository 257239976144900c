"""Sources, sessions and feeds for the pools of this machine, with their history on disk."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress

from zconsole.cli.output import local_zone
from zconsole.config.settings import SCRUB_OVERDUE_AFTER
from zconsole.errors import ZconsoleError
from zconsole.hardware.located_source import LocatedSource
from zconsole.pool.scrub_window import NAME, ScrubWindow
from zconsole.scan_report.recorder import ReportKeeper
from zconsole.scan_report.report import ScanReport
from zconsole.scan_report.store import ReportStore
from zconsole.system.daemon_thread import in_daemon_thread
from zconsole.system.patient import Patient, made_state_dir
from zconsole.system.record_file import AsyncWriter, LockedStore
from zconsole.system.state_dir import StateError, state_dirs
from zconsole.timeline.alerts.alerting import SentAlerts
from zconsole.timeline.devices import DeviceProber
from zconsole.timeline.feed import SessionFeed, Update
from zconsole.timeline.frame import Additions, Frame
from zconsole.timeline.session import Session
from zconsole.timeline.store import HistoryStore
from zconsole.zfs.sources.base import NO_READER, Capabilities, Source
from zconsole.zfs.sources.live import LiveSource


def session(
    keep: bool = True,
    scrub_overdue_after: float = SCRUB_OVERDUE_AFTER,
    most_cpu: float | None = None,
    goes_on: bool = False,
) -> Session:
    """Return a session for samples of this machine, with dates in the user's time zone.

    History is read from the state directories; with ``keep`` it is also written, if this user has
    a directory for it. ``scrub_overdue_after`` is in seconds. ``most_cpu``: seconds of CPU time
    that decoding a sample may take. ``goes_on``: whether more than one round is taken.
    """
    readable = state_dirs()
    notes: list[str] = []
    try:
        directory = made_state_dir() if keep else None
    except StateError as error:
        notes.append(f"no history kept: {error}")
        directory = None
    writer = AsyncWriter()
    kept = ReportStore(directory, readable, writer)
    return Session(
        zone=local_zone(),
        store=HistoryStore(directory, readable, writer),
        reports=ReportKeeper(kept),
        writer=writer,
        notes=notes,
        scrub_overdue_after=scrub_overdue_after,
        most_cpu=most_cpu,
        goes_on=goes_on,
    )


def sent_alerts(hook: Sequence[str], host: str | None, pools: Sequence[str]) -> SentAlerts:
    """Return the stored alerts that this user's watches of these pools have sent to a hook."""
    try:
        directory = made_state_dir()
    except StateError:
        directory = None  # the session's notes say why
    store = LockedStore(directory, writer=AsyncWriter())
    return SentAlerts(store, json.dumps([hook, host, sorted(pools)]))


def source(pools: Sequence[str]) -> Source:
    """Return a source of the named pools, or of all, which also locates their disks in bays."""
    return LocatedSource(LiveSource(pools))


def feed_on_demand(pools: Sequence[str] = (), prober: DeviceProber | None = None) -> SessionFeed:
    """Return a feed that samples this machine's pools on request, and stores nothing."""
    return SessionFeed(LiveSource(pools), session(keep=False), 0.0, None, prober)


async def once(pools: Sequence[str], scrub_overdue_after: float = SCRUB_OVERDUE_AFTER) -> Update:
    """Take one round of this machine's pools; store nothing. ``scrub_overdue_after``: seconds."""
    feed = SessionFeed(source(pools), session(False, scrub_overdue_after), 0.0)
    feed.contributor = ScrubHours()
    try:
        return await feed.next() or Update((), Capabilities(NO_READER))
    finally:
        await feed.aclose()


class ScrubHours:
    """Adds to frames the hours to which scrubs keep: those this user set, else the machine's."""

    def __init__(self) -> None:
        self._patient = Patient()
        self._windows: Mapping[str, ScrubWindow] = {}
        """By the pool's GUID; the last ones that could be read."""

    def take(self, _: Update) -> None:
        """Read the hours again, before a round is added to."""
        with suppress(OSError, ZconsoleError):
            self._windows = self._patient.call(_read_windows)

    def additions(self, frame: Frame) -> Additions:
        """Return the hours of a pool's scrub, with a line on how it fares."""
        window = self._windows.get(frame.guid or "")
        if window is None:
            return Additions()
        from zconsole.actions.scrub_window import hours_added  # lazy, as below

        return hours_added(frame, window)


def _read_windows() -> Mapping[str, ScrubWindow]:
    place = next((place for place in state_dirs() if (place / NAME).is_file()), None)
    if place is None:
        return {}
    # Lazy import: mostly no hours are set, and the plans behind this take time to load.
    from zconsole.actions.scrub_window import MachineWindows

    return {window.guid: window for window in MachineWindows(place).windows()}


async def past(guid: str) -> Sequence[ScanReport]:
    """Return the stored reports of a pool's scans, newest first; they are read in a thread."""
    return await in_daemon_thread(ReportStore(None, state_dirs()).reports, None, guid)
