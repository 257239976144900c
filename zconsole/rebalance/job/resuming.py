"""Resuming a job by its journal: what else is asked for must be what the job is about."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from zconsole.errors import UsageError
from zconsole.rebalance.planning.settings import Settings

OPTIONS = ("engine", "aim", "accept_races", "allow_non_zfs", "during_scan")
"""What a job keeps for its whole life; its limits may change."""


def refuse_difference(
    journal: Path, job: Settings, dirs: Collection[str], options: Mapping[str, Any]
) -> None:
    """Raise UsageError where other directories or options were given than the job has.

    Without ``dirs``, and with options as they are by default, nothing was given.
    """
    if dirs and set(dirs) != set(job.dirs):
        raise UsageError(
            f"{journal} is the journal of a job on {' '.join(job.dirs)}, not on {' '.join(dirs)}."
            " Leave out the directories to resume it, or name a new journal"
        )
    usual = Settings(dirs=())
    for name in OPTIONS:
        given, own = options[name], getattr(job, name)
        if given not in (own, getattr(usual, name)):
            option = f"--{name.replace('_', '-')}"
            raise UsageError(
                f"{journal} is the journal of a job without {option}{_value(given)}."
                f" Leave out {option} to resume it, or name a new journal"
            )


def _value(given: Any) -> str:
    return "" if given is True else f" {given}"
