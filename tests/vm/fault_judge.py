"""Comparison of zconsole's reports with `zpool status`; pure functions, no machine."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

LATE = 4.0
"""Seconds by which zconsole's reports may lag behind zpool's."""
GOOD = ("OK", "ATTENTION")
_ONLINE = "ONLINE"
_DEVICE = re.compile(r"^\s+(\S*LABDISK(\d)(?:-part1)?|\d{6,}) +([A-Z]+) ", re.MULTILINE)
_WAS = re.compile(r"was /dev/\S*LABDISK(\d)")
_STATE = re.compile(r"^ *state: (\S+)$", re.MULTILINE)
_REPAIRED = re.compile(r"(?:scrub repaired|resilvered) (\S+) in \S+ with (\d+) errors")


class Truth(NamedTuple):
    """State of a pool in `zpool status` at one moment, parsed without zconsole's code."""

    t: float
    """Epoch seconds."""
    state: str
    bad: frozenset[int]
    """Numbers of the disks that are not ONLINE."""
    errors: bool
    """Whether there are permanent data errors."""


_FINE = Truth(0.0, _ONLINE, frozenset(), False)


def truth(t: float, text: str) -> Truth:
    """Parse one `zpool status`; a pool unknown to zpool counts as UNAVAIL."""
    found = _STATE.search(text)
    bad = {
        int(number or was)
        for name, number, state, was in _devices(text)
        if state != _ONLINE and (number or was)
    }
    fine = "errors: No known data errors" in text
    return Truth(t, found[1] if found else "UNAVAIL", frozenset(bad), not fine)


def _devices(text: str) -> Iterator[tuple[str, str, str, str]]:
    for line in text.splitlines():
        if found := _DEVICE.match(line + " "):
            was = _WAS.search(line)
            yield found[1], found[2] or "", found[3], was[1] if was else ""


def truths(text: str) -> list[Truth]:
    """Parse the output of a loop of `date +%s.%N; zpool status; echo END`, but for a cut end."""
    found = []
    for part in text.split("\nEND\n")[:-1]:
        moment, _, status = part.strip().partition("\n")
        found.append(truth(float(moment), status))
    return found


def repaired(text: str) -> tuple[str, int] | None:
    """Return the repaired bytes, as printed, and the errors of the last scrub, if one ended."""
    found = _REPAIRED.search(text)
    return (found[1], int(found[2])) if found else None


@dataclass
class Seen:
    """Everything recorded in one trial."""

    fault: str
    during: str
    parity: int
    victim: int
    frames: Sequence[Mapping[str, Any]] = ()
    truths: Sequence[Truth] = ()
    code: int | None = None
    """Exit code of ``watch --until-done`` or ``rebalance run``; None if it was stopped."""
    status_code: int = 0
    """Exit code of ``status --exit-status`` at the end."""
    end: Truth = _FINE
    after: str = ""
    """`zpool status` after the end of the fault and another scrub."""
    changed: Sequence[str] = ()
    """Files that have changed."""
    file: str = ""
    """Path of the file that is unreadable during the trial; empty if all are readable."""
    records: Sequence[Mapping[str, Any]] = field(default_factory=list)
    """JSON records that the rebalance printed."""


def dishonest(seen: Seen) -> list[str]:
    """Return every claim that was better than the pool's actual state."""
    return list(dict.fromkeys((*_claims(seen), *_ends(seen))))


def _claims(seen: Seen) -> Iterator[str]:
    for frame in seen.frames:
        known = [each for each in seen.truths if frame["t"] - LATE <= each.t <= frame["t"] + 1]
        if len(known) < 2:
            continue
        word = frame["health"]["word"]
        if word in GOOD and all(each.state != _ONLINE for each in known):
            yield f"says {word} while zpool says {known[-1].state}"
        if word in GOOD and all(each.errors for each in known):
            yield f"says {word} over damaged data"
        left = [n for n in frame["redundancy"].values() if n is not None]
        if left and all(seen.victim in each.bad for each in known) and left[0] > seen.parity - 1:
            yield f"says {left[0]} left of {seen.parity} without a device"


def _ends(seen: Seen) -> Iterator[str]:
    end = seen.end
    whole = end.state == _ONLINE and not end.bad and not end.errors
    if seen.status_code == 0 and (end.state != _ONLINE or end.errors):
        yield f"status --exit-status is 0 over {end.state}, damaged data: {end.errors}"
    if seen.changed:
        yield f"files changed: {', '.join(seen.changed)}"
    if seen.code != 0:
        return
    if seen.during == "rebalance":
        if any(record.get("outcome") == "failed" for record in seen.records):
            yield "the rebalance ends with 0 over a failed file"
        return
    if not whole:
        yield f"ends with 0 over {end.state}, {sorted(end.bad)}, damaged data: {end.errors}"
    last = repaired(seen.after)
    if seen.during != "scrub" and last is not None and last != ("0B", 0):
        yield f"ends with 0, and a further scrub repairs {last[0]} with {last[1]} errors"


def named(seen: Seen) -> tuple[bool, str]:
    """Return whether the fault was named correctly, and what was reported."""
    right = NAMED[seen.fault](seen)
    return right, _said(seen)


def _said(seen: Seen) -> str:
    texts = [each["text"] for frame in seen.frames[-1:] for each in frame["troubles"]]
    limits = _limits(seen)
    if seen.fault == "crawls" and limits:
        texts = [limits.most_common(1)[0][0][1]]
    word = seen.frames[-1]["health"]["word"] if seen.frames else "nothing"
    return "; ".join((f"{word}, exit {seen.code}", *texts))


def _accused(seen: Seen) -> dict[str, Mapping[str, Any]]:
    """Return every device that was reported as faulty, with the last report about it."""
    return {each["device"]: each for frame in seen.frames for each in frame["troubles"]}


def _of_victim(seen: Seen) -> Mapping[str, Any] | None:
    """Return the last report about the device, if no other device was reported."""
    accused = _accused(seen)
    if len(accused) != 1:
        return None
    [(name, said)] = accused.items()
    return said if name.endswith(f"LABDISK{seen.victim}") else None


def _nothing(seen: Seen) -> bool:
    health = bool(seen.frames) and seen.frames[-1]["health"]["word"] == "OK"
    return health and not _accused(seen) and seen.code == 0


def _counted(seen: Seen, own: str, others: Sequence[str]) -> bool:
    said = _of_victim(seen)
    return bool(said and said[own] and said[own] > max(said[each] or 0 for each in others))


def _gone(seen: Seen) -> bool:
    accused = _accused(seen)
    said = [each for name, each in accused.items() if name.endswith(f"LABDISK{seen.victim}")]
    reasons = seen.frames[-1]["health"]["reasons"] if seen.frames else []
    shown = any(f"LABDISK{seen.victim} " in reason for reason in reasons)
    return len(accused) <= 1 and (any(each["gone"] for each in said) or shown)


def _flaps(seen: Seen) -> int:
    said = _of_victim(seen)
    return int(said["flaps"]) if said else 0


def _limits(seen: Seen) -> Counter[tuple[str, str]]:
    found = [frame["scan"]["limit"] for frame in seen.frames if frame["scan"]]
    return Counter((each["cause"], each["text"]) for each in found if each and each["figures"])


def _crawls(seen: Seen) -> bool:
    causes: Counter[tuple[str, bool]] = Counter()
    for (cause, text), times in _limits(seen).items():
        causes[cause, re.search(rf"LABDISK{seen.victim}\b", text) is not None] += times
    return bool(causes) and causes.most_common(1)[0][0] == ("slow-disk", True)


def _file(seen: Seen) -> bool:
    if seen.during != "rebalance":
        return any(seen.file in frame["errors"] for frame in seen.frames)
    failed = [each["path"] for each in seen.records if each.get("outcome") == "failed"]
    return seen.code == 1 and failed == [seen.file]


def _kept(seen: Seen) -> bool:
    return not seen.changed and seen.code == 0


NAMED = {
    "none": _nothing,
    "read": lambda seen: _counted(seen, "read", ("write", "cksum")),
    "checksum": lambda seen: _counted(seen, "cksum", ("read", "write")),
    "gone": _gone,
    "returns": lambda seen: _flaps(seen) == 1,
    "flaps": lambda seen: _flaps(seen) > 1,
    "crawls": _crawls,
    "file": _file,
    "dropped": _kept,
}
"""By fault: function that returns whether it was named correctly."""
