"""Copies of records with some fields changed."""

from __future__ import annotations

import dataclasses
from typing import Any

from zconsole.pool.model import Pool, Sample, SampleFailure
from zconsole.timeline.frame import Frame


def replace(record: Any, **changes: Any) -> Any:
    """Return a copy of a dataclass or named tuple with ``changes`` (as ``copy.replace`` of 3.13).

    Fields that a frame takes from its sample, or from its sample's failure, are changed there.
    """
    if isinstance(record, Frame):
        return _frame(record, changes)
    if dataclasses.is_dataclass(record) and not isinstance(record, type):
        return dataclasses.replace(record, **changes)
    return record._replace(**changes)


def _frame(frame: Frame, changes: dict[str, Any]) -> Frame:
    own = {name: changes[name] for name in changes.keys() & _names(Frame)}
    rest = {name: changes[name] for name in changes.keys() - own.keys()}
    sample, failure = frame.sample, frame.failure
    if rest.keys() & {"problem", "stale_seconds", "absent"} or (failure and "kstat" in rest):
        failure = _failure(frame, rest)
    if "stale_seconds" in rest and rest["stale_seconds"] is None:
        sample = None
    if sample is not None:
        sample = _sample(sample, rest)
    if failure is not None and "looked" in rest:
        failure = failure._replace(began=rest["looked"])
    return dataclasses.replace(frame, **{"sample": sample, "failure": failure} | own)


def _failure(frame: Frame, changes: dict[str, Any]) -> SampleFailure | None:
    text = changes.get("problem", frame.problem)
    if text is None:
        raise ValueError("a frame with a sample has nothing of a failure but with a problem")
    t = changes.get("t", frame.t)
    age = changes.get("stale_seconds", frame.stale_seconds) or 0.0
    return SampleFailure(
        frame.pool,
        t + age,
        t + age,
        text,
        changes.get("kstat", frame.kstat),
        absent=changes.get("absent", frame.absent),
        began=frame.looked,
    )


def _sample(sample: Sample, changes: dict[str, Any]) -> Sample:
    names = {"looked": "began"}
    changes = {names.get(name, name): value for name, value in changes.items()}
    pool = {name: changes[name] for name in changes.keys() & _names(Pool)}
    own = {name: changes[name] for name in changes.keys() & _names(Sample)}
    return dataclasses.replace(sample, **{"pool": dataclasses.replace(sample.pool, **pool)} | own)


def _names(cls: type) -> set[str]:
    return {field.name for field in dataclasses.fields(cls)}
