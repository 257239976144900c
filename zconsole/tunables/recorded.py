"""What the audit log says of tunables: each with its old and new value, before and after."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from zconsole.system.audit import Log
from zconsole.tunables.store import Change

DONE = "done"


@dataclass(slots=True)
class TunableRecord:
    """The lines of one change of tunables, inside ``recorded``."""

    log: Log
    t: float
    """Epoch seconds."""
    action: str
    """set, ``preset NAME`` or restore."""
    done: list[Change] = field(default_factory=list)
    """What was written to the kernel, in order."""
    _begun: bool = False

    def begin(self, wanted: Iterable[Change], restore: bool = False) -> None:
        """Write down what is about to be set. Raises AuditError when that can be kept nowhere.

        What is put back waits for no log.
        """
        if changes := [change for change in wanted if change.before != change.after]:
            keep = self.log.note if restore else self.log.write
            keep(self.t, "begun", **self._fields(changes))
            self._begun = True

    def _fields(self, changes: Iterable[Change]) -> dict[str, Any]:
        values = [{"name": c.name, "old": c.before, "new": c.after} for c in changes]
        return {"kind": "tunable", "action": self.action, "values": values}

    def end(self, result: str) -> None:
        """Write down what became of what was begun; waits for no log."""
        if self._begun:
            fields = {**self._fields(self.done), "ok": result == DONE, "result": result}
            self.log.note(self.t, "ended", **fields)


@contextlib.contextmanager
def recorded(log: Log, t: float, action: str) -> Iterator[TunableRecord]:
    """The record of a change at ``t``; its last line is written when the block ends."""
    record = TunableRecord(log, t, action)
    try:
        yield record
    except BaseException as error:
        record.end(f"failed: {error}")
        raise
    record.end(DONE)
