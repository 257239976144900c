"""Commands run from consoles, from the records of the audit log: command, result, time."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

DONE = "done"
AUTOPILOT = "autopilot"
"""The user shown for tunables set to hold a latency, and the first word of its entries."""


@dataclass(frozen=True, slots=True)
class LoggedCommand:
    """A command that was run, or a tunable that was set."""

    t: float
    """Epoch seconds of its end, or of its start if no end was logged."""
    command: str
    ok: bool | None
    """Whether it succeeded; None while unknown."""
    result: str
    user: str = ""
    """The user who ran it; with sudo, the original user."""


def logged_commands(records: Iterable[Mapping[str, Any]]) -> tuple[LoggedCommand, ...]:
    """Return commands, tunables and jobs, newest first; unfinished ones have no result yet."""
    found: list[LoggedCommand] = []
    open_at: dict[str, int] = {}
    for record in records:
        command = _command(record)
        event = record.get("event")
        if not command or event not in ("begun", "ended"):
            continue
        if event == "ended" and (at := open_at.pop(command, None)) is not None:
            del found[at]
            # The entries behind the deleted one have moved up.
            open_at = {each: n - (n > at) for each, n in open_at.items()}
        elif event == "begun":
            open_at[command] = len(found)
        found.append(_logged(record, command, ended=event == "ended"))
    return tuple(reversed(found))


def _logged(record: Mapping[str, Any], command: str, *, ended: bool) -> LoggedCommand:
    ok = record.get("ok") is True if ended else None
    if record.get("kind") == "autopilot":  # each record of an autopilot is an entry of its own
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
    """Return the command quoted for a shell; for tunables, the command that would set them."""
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
        if kind == "job":  # a console starts it as a python module
            words[:1] = ["zconsole"]
        return shlex.join(words)
    return ""


def _order(record: Mapping[str, Any]) -> str:
    """Return the command given to a running job; empty for the record of its own run."""
    action, job = record.get("action"), record.get("job")
    if not isinstance(job, str):
        return ""
    if action in ("pause", "stop", "resume"):
        return f"zconsole rebalance {action} {shlex.quote(job)}"
    return f"limits of job {job} changed" if action == "limits" else ""
