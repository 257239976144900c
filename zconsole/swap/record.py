"""A checklist and its current step as one JSON object."""

from __future__ import annotations

from typing import Any

from zconsole.swap.checklist import Checklist
from zconsole.swap.choice import SwapChoice
from zconsole.swap.disk import SwapDisk
from zconsole.swap.stage import SwapStage


def checklist_record(c: Checklist, stage: SwapStage | None) -> dict[str, Any]:
    """What scripts read; ``stage`` is None where the machine was not looked at."""
    return {
        "id": c.id,
        "pool": c.pool,
        "guid": c.guid,
        "vdev": c.vdev,
        "mode": c.mode,
        "state": c.state,
        "begun": c.begun,
        "ended": c.ended,
        "old": _disk(c.old),
        "new": None if c.new is None else _disk(c.new),
        "step": stage.step if stage else c.at,
        "steps": list(c.steps),
        **(_stage(stage) if stage else {}),
        "log": [
            {
                "t": entry.t,
                "step": entry.step,
                "text": entry.text,
                "command": entry.command or None,
                "result": entry.result or None,
            }
            for entry in c.log
        ],
    }


def choice_record(choice: SwapChoice) -> dict[str, Any]:
    """What a swap would be, before it begins."""
    return {
        "pool": choice.old.pool,
        "guid": choice.guid,
        "vdev": choice.vdev,
        "old": _disk(choice.old),
        "gone": choice.gone,
        "found": list(choice.found),
        "cause": choice.cause,
        "redundancy": list(choice.redundancy),
        "must_stay": [_disk(disk) for disk in choice.untouchable],
        "effects": [
            {"pool": e.pool, "device": e.name, "vdev": e.vdev, "left": e.left}
            for e in choice.effects
        ],
        "ways": [
            {
                "mode": way.mode,
                "why": way.why,
                "new": None if way.new is None else _disk(way.new),
                "refused": way.refused or None,
            }
            for way in choice.ways
        ],
        "refused": choice.refused or None,
        "by_hand": list(choice.refusal.manual) if choice.refusal else [],
    }


def _disk(disk: SwapDisk) -> dict[str, Any]:
    return {
        "name": disk.name,
        "path": disk.whole or None,
        "serial": disk.serial or None,
        "wwn": disk.wwn or None,
        "model": disk.model or None,
        "size_bytes": disk.size,
        "bay": disk.bay or None,
        "port": disk.port or None,
    }


def _stage(stage: SwapStage) -> dict[str, Any]:
    return {
        "title": stage.title,
        "text": list(stage.text),
        "warnings": list(stage.warnings),
        "waits_for": stage.waits or None,
        "alarm": stage.alarm,
        "question": asks(stage),
        "commands": [step.command for step in stage.plan.steps] if stage.plan else [],
        "refused": stage.plan.refused if stage.plan else None,
        "answers": [answer.name for answer in stage.answers],
    }


def asks(stage: SwapStage) -> bool:
    """Whether the step needs somebody's yes or word, rather than time or hands."""
    return not stage.over and (stage.plan is not None or not stage.waits)
