"""Holds: the process that holds a tunable it set, until when, and who restores it after that.

A value that a console holds stays in the kernel when the console ends, by ``q``, a dropped ssh or
SIGKILL, until it is due: then the keeper or a running console restores it. Values that the keeper
itself holds, for a guard or the autopilot, it restores before it ends. `promise` is the sentence
about all this that screens and commands show.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
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
    Setter.COMMAND: "a console",  # whose key E (until the scan ends) was to restore it
}
"""The process that is gone, of a value that was left."""


@dataclass(frozen=True, slots=True)
class Hold:
    """The hold on one tunable that was set: by whom, and until when."""

    by: Setter
    process: str = ""
    """Id of the process that holds it; empty if none does."""
    own: bool = False
    """Whether this console holds it."""
    until: str | None = None
    """GUID of the pool at the end of whose scan it is restored."""
    seconds: float | None = None
    """Seconds for which a guard holds it, if known."""

    @property
    def is_left(self) -> bool:
        """Whether the process that was to restore it is gone."""
        return not self.process and (self.by is not Setter.COMMAND or self.until is not None)

    @property
    def can_switch(self) -> bool:
        """Whether this console may choose when it is restored, as no other process holds it."""
        return self.by in (Setter.CONSOLE, Setter.COMMAND) and (self.own or not self.process)

    @property
    def brief(self) -> str:
        """The hold in a few words, for the column of a list; empty if there is nothing to add."""
        if self.is_left:
            return f"left by {LEFT_BY[self.by]}"
        if self.by in (Setter.GUARD, Setter.AUTOPILOT):
            return f"by {'a guard' if self.by is Setter.GUARD else 'the autopilot'}"
        return "until the scan ends" if self.until is not None else ""

    @property
    def holder(self) -> str | None:
        """The holder in one word, for scripts; None for a value that is set to stay."""
        return self.by.value if self.process else "nobody" if self.is_left else None


@dataclass(frozen=True, slots=True)
class Scans:
    """The pools known, by whether they have a scan: names by GUID."""

    running: Mapping[str, str] = field(default_factory=dict)
    """Pools with a scan that is running or paused."""
    idle: Mapping[str, str] = field(default_factory=dict)
    """Pools without a scan."""
    ended: Collection[str] = ()
    """GUIDs of pools whose scan was just observed to end."""
    whole: bool = False
    """Whether these are all the pools of the machine."""


class Restoring(StrEnum):
    """When values set here are restored: the ways between which the operator switches, in words."""

    AT_END = "restored at the scan's end"
    NEVER = "kept until a reboot"
    AFTER_CONSOLE = "restored once this console is gone"


def next_way(holds: Iterable[Hold], pool_guid: str) -> Restoring:
    """Return the way of restoring that a switch leads to, from at the end of this pool's scan on.

    They follow in the order of ``Restoring``. Holds that can't be switched don't count.
    """
    ours = [hold for hold in holds if hold.can_switch]
    if ours and all(hold.until == pool_guid for hold in ours):
        return Restoring.NEVER
    if ours and all(hold.holder is None for hold in ours):
        return Restoring.AFTER_CONSOLE
    return Restoring.AT_END


def is_due(hold: Hold, scans: Scans) -> bool:
    """Whether to restore a tunable now.

    A value that a live process holds is due only for that process itself, at the end of the scan.
    A value that a guard or the autopilot left is due at once: it may freeze a scan, or slow down
    applications unwatched.
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
    drops = " (or ssh drops)" * hold.own
    if hold.until is None:
        return (
            f"kept while {console} is open, even after the scan's end; restored by zconsole in the"
            f" background once it is gone{drops} and no scan runs"
        )
    gone = f"{console} is gone{drops}"
    scan = "the next scan" if hold.until in scans.idle else "the scan"
    ends = f"restored when {scan}{_of_pool(hold, scans)} ends"
    # `is_due` does not wait for a scan of an idle pool, as none may ever begin.
    waits = hold.until in scans.running
    return f"{ends}, even if {gone} by then" if waits else f"{ends}, or once {gone} while none runs"


def restored_later(hold: Hold, scans: Scans) -> str:
    """Say when a tunable is restored whose holder has gone, or will have."""
    if hold.by in (Setter.GUARD, Setter.AUTOPILOT):
        return "restored by the next console at once"
    return f"restored by zconsole in the background once no scan{_of_pool(hold, scans)} runs"


def _of_pool(hold: Hold, scans: Scans) -> str:
    names = {**scans.running, **scans.idle}
    return f" of {names[hold.until]}" if hold.until in names else ""


def grouped(
    holds: Mapping[str, Hold],
    scans: Scans | None = None,
    say: Callable[[Hold, Scans], str] = promise,
) -> dict[str, list[str]]:
    """Return the sentences that ``say`` makes of holds, each with the names that it is true of."""
    found: dict[str, list[str]] = {}
    for name, hold in holds.items():
        found.setdefault(say(hold, scans or Scans()), []).append(name)
    return found


def autopilot_promise(watched: bool) -> str:
    """Say when the autopilot ends; ``watched``: whether also with the console that started it."""
    ends = "or with the console that started it (or ssh drops)" if watched else "or when told to"
    return f"ends with the scans, {ends}, and restores the original values"
