"""What was run from consoles, of the records of the audit log: command, result, time."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

DONE = "done"
AUTOPILOT = "autopilot"
"""Who sets tunables to hold a latency, and the first word of what it did."""


@dataclass(frozen=True, slots=True)
class LoggedCommand:
    """Something that was run, or set."""

    t: float
    """Epoch seconds at which it ended; at which it began where no end was written."""
    command: str
    ok: bool | None
    """Whether it succeeded; None while that is not known."""
    result: str
    user: str = ""
    """Who ran it, the one behind sudo first."""


def logged_commands(records: Iterable[Mapping[str, Any]]) -> tuple[LoggedCommand, ...]:
    """Commands, tunables and jobs, newest first; one that only began is there without a result."""
    found: list[LoggedCommand] = []
    open_at: dict[str, int] = {}
    for record in records:
        command = _command(record)
        event = record.get("event")
        if not command or event not in ("begun", "ended"):
            continue
        if event == "ended" and (at := open_at.pop(command, None)) is not None:
            del found[at]
            open_at = {each: n - (n > at) for each, n in open_at.items()}
        elif event == "begun":
            open_at[command] = len(found)
        found.append(_logged(record, command, ended=event == "ended"))
    return tuple(reversed(found))


def _logged(record: Mapping[str, Any], command: str, *, ended: bool) -> LoggedCommand:
    ok = record.get("ok") is True if ended else None
    if record.get("kind") == "autopilot":  # each of its lines stands for itself
        ok = not str(record.get("result", "")).startswith("failed")
        return LoggedCommand(float(record["t"]), command, ok, AUTOPILOT)
    result = str(record.get("result", "")) if ended else "no result yet"
    who = record.get("who")
    who = who if isinstance(who, Mapping) else {}
    user = str(who.get("sudo_user") or who.get("user") or "")
    if command.startswith(AUTOPILOT):
        user = AUTOPILOT
    return LoggedCommand(float(record["t"]), command, ok, result, user)


def _command(record: Mapping[str, Any]) -> str:
    """The command quoted for a shell; of tunables the one that sets the same."""
    kind, argv, values = record.get("kind"), record.get("argv"), record.get("values")
    if kind == AUTOPILOT:
        if record.get("event") == "begun":
            return f"{AUTOPILOT} started: target {record.get('target', 'unknown')}"
        return f"{AUTOPILOT} ended: {record.get('result', '')}"
    if kind == "tunable" and isinstance(values, list):
        pairs = (v for v in values if isinstance(v, Mapping))
        pairs_text = " ".join(f"{v.get('name')}={v.get('new')}" for v in pairs)
        steered = str(record.get("action", "")).startswith("hold-latency")
        return f"{AUTOPILOT if steered else 'zconsole tunables'} set {pairs_text}"
    if kind == "job" and (order := _order(record)):
        return order
    if kind in ("command", "job") and isinstance(argv, list):
        words = [str(word) for word in argv]
        if kind == "job":  # a console starts it as a module
            words[:1] = ["zconsole"]
        return shlex.join(words)
    return ""


def _order(record: Mapping[str, Any]) -> str:
    """What was asked of a job at work; empty for its run: a console's own words tell nothing."""
    action, job = record.get("action"), record.get("job")
    if not isinstance(job, str):
        return ""
    if action in ("pause", "stop", "resume"):
        return f"zconsole rebalance {action} {shlex.quote(job)}"
    return f"limits of job {job} changed" if action == "limits" else ""
