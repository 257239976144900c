"""What the audit log says of tunables: each with its old and new value, before and after."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

from zconsole.system.audit.log import Log


@dataclass(frozen=True, slots=True)
class RecordedWrite:
    """One parameter, what it was and what it becomes."""

    name: str
    old: int | None
    new: int


@dataclass(slots=True)
class TunableRecord:
    """The lines of one change of tunables; the last is written when its block ends."""

    log: Log
    t: float
    """Epoch seconds."""
    action: str
    """set, ``preset NAME`` or restore."""
    done: list[RecordedWrite] = field(default_factory=list)
    """What was written to the kernel, in order."""
    _begun: bool = False

    def begin(self, wanted: Iterable[RecordedWrite]) -> None:
        """Write down what is about to be set. Raises AuditError when that can be kept nowhere."""
        if changes := [change for change in wanted if change.old != change.new]:
            self.log.write(self.t, "begun", **self._fields(changes))
            self._begun = True

    def begin_restore(self, wanted: Iterable[RecordedWrite]) -> None:
        """The same for what is put back, which waits for no log."""
        if changes := list(wanted):
            self.log.note(self.t, "begun", **self._fields(changes))
            self._begun = True

    def __enter__(self) -> TunableRecord:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._begun:
            result = "done" if error is None else f"failed: {error}"
            fields = {**self._fields(self.done), "ok": error is None, "result": result}
            self.log.note(self.t, "ended", **fields)

    def _fields(self, changes: Iterable[RecordedWrite]) -> dict[str, Any]:
        values = [{"name": c.name, "old": c.old, "new": c.new} for c in changes]
        return {"kind": "tunable", "action": self.action, "values": values}
