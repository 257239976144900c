"""One verdict for a scan whose stages take turns: what limited its issuing for longest of late."""

from __future__ import annotations

from collections import deque

from zconsole.diagnosis.bottleneck.finding import Verdict

SPAN = 120.0
"""Seconds of issuing that are looked back on."""


class Hysteresis:
    """Fed with what was found at every sample of such a scan."""

    def __init__(self) -> None:
        self._found: deque[tuple[float, Verdict]] = deque()
        self._clock: float | None = None

    def push(self, clock: float, stage: str | None, found: Verdict | None) -> Verdict | None:
        """Take in what was found at the monotonic ``clock``; returns what to show.

        What is found while it walks metadata is shown only before any issuing was seen.
        """
        seconds, self._clock = clock - (self._clock or clock), clock
        issuing = stage == "issuing"
        if issuing and found is not None and found.sure > 0:
            self._found.append((seconds, found))
        while self._found and sum(s for s, _ in self._found) - self._found[0][0] > SPAN:
            self._found.popleft()
        shown = self._longest()
        if shown is None:
            return found
        if issuing or shown.cause == "memory":
            return shown
        return shown._replace(text=f"{shown.text}, when it issues; now it scans metadata")

    def _longest(self) -> Verdict | None:
        """The newest verdict of the cause that was found for longest."""
        times: dict[str, float] = {}
        newest: dict[str, Verdict] = {}
        for seconds, found in self._found:
            times[found.cause] = times.get(found.cause, 0.0) + seconds
            newest[found.cause] = found
        return newest[max(times, key=lambda cause: times[cause])] if times else None
