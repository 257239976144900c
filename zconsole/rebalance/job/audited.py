"""Jobs of rebalance as the audit log has them: begun, steered, resumed, ended."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from zconsole.errors import ZconsoleError
from zconsole.rebalance.job import control
from zconsole.rebalance.job.job_store import Record
from zconsole.system.audit.log import Log

WORDS = {"run": "resume", "pause": "pause", "stop": "stop"}
"""An order to what the log calls it."""

AT_ONCE = ("pause", "stop")
"""Orders that wait for no log: whoever gives one wants a disk left alone."""


@dataclass(frozen=True, slots=True)
class AuditedJobs:
    """Orders to jobs, each with a line before and after it."""

    log: Log
    argv: Sequence[str] = field(default_factory=lambda: tuple(sys.argv))
    clock: Callable[[], float] = time.time

    def steer(
        self, record: Record, order: str | None, limits: Mapping[str, Any] | None = None
    ) -> None:
        """See control.steer. Raises AuditError where no log can be written, but for a pause or stop
        that changes nothing else."""
        action = WORDS.get(order or "", "limits")
        with self._told(action, record, limits, at_once=action in AT_ONCE and not limits):
            control.steer(record, order, limits)

    def resume(self, record: Record, limits: Mapping[str, Any] | None = None) -> None:
        """See control.resume. Raises AuditError where no log can be written."""
        with self._told("resume", record, limits):
            control.resume(record, limits)

    def start(self, record: Record) -> None:
        """See control.start. Raises AuditError where no log can be written."""
        with self._told("start", record):
            control.start(record)

    @contextmanager
    def run(self, record: Record) -> Iterator[None]:
        """The life of a job in this process. Raises AuditError where no log can be written."""
        settings = control.status(record).settings.as_json()
        with self._told("run", record, settings["limits"], settings=settings):
            yield

    @contextmanager
    def _told(
        self,
        action: str,
        record: Record,
        limits: Mapping[str, Any] | None = None,
        at_once: bool = False,
        **more: Any,
    ) -> Iterator[None]:
        what = {"kind": "job", "action": action, "job": record.job, "argv": list(self.argv)}
        fields = {**what, "limits": dict(limits or {}), **more}
        (self.log.note if at_once else self.log.write)(self.clock(), "begun", **fields)
        result = "failed"
        try:
            yield
            result = "done"
        except (OSError, ZconsoleError) as error:
            result = f"failed: {error}"
            raise
        finally:
            self.log.note(self.clock(), "ended", **what, ok=result == "done", result=result)
