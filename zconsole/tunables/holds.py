"""Who holds a tunable that was set, until when, and what becomes of it once that process is gone.

What a console holds stays in the kernel when it ends, by ``q``, a dropped ssh or SIGKILL, until it
is due: then the keeper restores it, or a console that runs. What the keeper holds itself, as a
guard or the autopilot, it restores before it ends. `promise` is the one sentence about it that
screens and commands show.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from zconsole.units import duration


class Setter(StrEnum):
    """The kind of process that set a tunable."""

    CONSOLE = "console"
    GUARD = "guard"
    AUTOPILOT = "autopilot"
    COMMAND = "command line"


LEFT_BY = {
    Setter.CONSOLE: "a console",
    Setter.GUARD: "a guard",
    Setter.AUTOPILOT: "an autopilot",
    Setter.COMMAND: "a console",  # whose E was to restore it
}
"""Of what is left: the process that is gone."""


@dataclass(frozen=True, slots=True)
class Hold:
    """Who holds one tunable that was set, and until when."""

    by: Setter
    process: str = ""
    """Id of the process that holds it; empty where none does."""
    own: bool = False
    """Whether that is this very console."""
    until: str | None = None
    """GUID of the pool at whose scan's end it is restored."""
    seconds: float | None = None
    """How long its guard holds it, where that is known."""

    @property
    def is_left(self) -> bool:
        """Whether a process had it to restore that is gone."""
        return not self.process and (self.by is not Setter.COMMAND or self.until is not None)

    @property
    def can_switch(self) -> bool:
        """Whether this console may say when it is restored: nobody else holds it."""
        return self.by in (Setter.CONSOLE, Setter.COMMAND) and (self.own or not self.process)

    @property
    def brief(self) -> str:
        """How it is held, for the column of a list; empty where only that it was set."""
        if self.is_left:
            return f"left by {LEFT_BY[self.by]}"
        if self.by in (Setter.GUARD, Setter.AUTOPILOT):
            return f"by {'a guard' if self.by is Setter.GUARD else 'the autopilot'}"
        return "until the scan ends" if self.until is not None else ""

    @property
    def holder(self) -> str | None:
        """One word for scripts; None for what is set to stay."""
        return self.by.value if self.process else "nobody" if self.is_left else None


@dataclass(frozen=True, slots=True)
class Scans:
    """What is known of scans: names of pools by GUID."""

    running: Mapping[str, str] = field(default_factory=dict)
    """Pools with a scan that runs or is paused."""
    idle: Mapping[str, str] = field(default_factory=dict)
    """Pools without one."""
    ended: Collection[str] = ()
    """GUIDs of those whose scan was just seen to end."""
    whole: bool = False
    """Whether these are all the pools of the machine."""


def is_due(hold: Hold, scans: Scans) -> bool:
    """Whether to restore a tunable now.

    Never what a live process holds, but for its own at the end of the scan. What a guard or the
    autopilot left is due at once: it may freeze a scan, or nobody watches what it costs.
    """
    if hold.process:
        return hold.own and hold.until in scans.ended
    if not hold.is_left:
        return False
    if hold.by in (Setter.GUARD, Setter.AUTOPILOT) or hold.until in scans.idle:
        return True
    return scans.whole and not scans.running


def promise(hold: Hold, scans: Scans | None = None) -> str:
    """Say who restores a tunable, when, and what becomes of it if an ssh connection drops."""
    scans = scans or Scans()
    if not hold.process:
        gone = LEFT_BY[hold.by].partition(" ")[2]
        left = f"its {gone} is gone; {restored_later(hold, scans)}"
        return left if hold.is_left else "set to stay: nothing restores it before the next boot"
    if hold.by is Setter.GUARD:
        watched = ", or when its console ends (or ssh drops)" * (hold.own or hold.seconds is None)
        time = "when its time is over" if hold.seconds is None else f"in {duration(hold.seconds)}"
        return f"restored by a guard process {time}{watched}"
    if hold.by is Setter.AUTOPILOT:
        return (
            "restored by the autopilot when it ends: with the scans, or with the console that"
            " started it"
        )
    console = "this console" if hold.own else f"the console of process {hold.process}"
    gone = f"{console} is gone{' (or ssh drops)' * hold.own}"
    if hold.until is None:
        return f"restored by the keeper or a console once {gone} and no scan runs"
    scan = "the next scan" if hold.until in scans.idle else "the scan"
    ends = f"restored when {scan}{_of_pool(hold, scans)} ends"
    # No scan is waited for that may never begin: see `is_due`.
    waits = hold.until in scans.running
    return f"{ends}, even if {gone} by then" if waits else f"{ends}, or once {gone} while none runs"


def restored_later(hold: Hold, scans: Scans) -> str:
    """Say when a tunable is restored whose holder has gone, or will have."""
    if hold.by in (Setter.GUARD, Setter.AUTOPILOT):
        return "restored by the next console at once"
    return f"restored by the keeper or a console once no scan{_of_pool(hold, scans)} runs"


def _of_pool(hold: Hold, scans: Scans) -> str:
    names = {**scans.running, **scans.idle}
    return f" of {names[hold.until]}" if hold.until in names else ""


def grouped(
    holds: Mapping[str, Hold],
    scans: Scans | None = None,
    say: Callable[[Hold, Scans], str] = promise,
) -> dict[str, list[str]]:
    """What is said of tunables, each with the names of those of which it is."""
    found: dict[str, list[str]] = {}
    for name, hold in holds.items():
        found.setdefault(say(hold, scans or Scans()), []).append(name)
    return found


def autopilot_promise(watched: bool) -> str:
    """Say when the autopilot ends; ``watched``: whether also with the console that started it."""
    ends = "or with the console that started it (or ssh drops)" if watched else "or when told to"
    return f"ends with the scans, {ends}, and restores the original values"
