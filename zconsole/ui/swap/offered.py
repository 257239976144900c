"""What keys do in a step of a checklist, and which of them do anything."""

from __future__ import annotations

from zconsole.swap.checklist import DONE, Checklist
from zconsole.swap.stage import SwapStage
from zconsole.ui.swap.followed import FollowedSwap


def elsewhere(c: Checklist, stage: SwapStage) -> bool:
    """Whether the step is about the new disk, which is in another bay than the old one."""
    return stage.step == "replace" and c.new is not None and c.new.spot != c.old.spot


def doing(stage: SwapStage | None) -> dict[str, str]:
    """What keys do in the present step, where it isn't what they always do, in two words."""
    if stage is None or stage.plan is not None:
        return {}
    if stage.over:
        return {"do": "save report", "stop": "no report"}
    return {"do": "look again"}


def offered(followed: FollowedSwap, filed: bool = False) -> frozenset[str]:
    """The actions of keys that do something in the present step; ``filed``: the report is saved."""
    c, stage = followed.checklist, followed.stage
    if stage is None or stage.over or followed.hold:
        acts = stage is not None and not followed.hold
        lit = acts and c.lit
        then = acts and stage is not None and bool(stage.then)
        over = stage is not None and stage.over
        more = {
            "do": over and not filed,
            "stop": over and not filed and c.state == DONE,
            "highlight": lit,
            "other_pool": then,
            "report": not over,  # then Enter does it
        }
        return frozenset(action for action, can in more.items() if can)
    able = {
        "do": stage.plan.refused is None if stage.plan is not None else stage.alarm,
        "answer": bool(stage.answers),
        "undo": stage.back is not None and not stage.back.closes,
        # Its bay is not the one to find while another disk has to be put back.
        "highlight": bool(c.old.light) and not stage.alarm and not elsewhere(c, stage),
        "report": True,
        "stop": True,
    }
    return frozenset(action for action, can in able.items() if can)
