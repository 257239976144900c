"""What quitting the console would leave behind, said before it is done."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from zconsole.actions.plan import ActionPlan
from zconsole.ui.dialogs.confirm import OutputLine


@dataclass(slots=True)
class UnderWay:
    """A plan that is being carried out, and how many of its commands have begun."""

    plan: ActionPlan
    begun: int = 0


def left_behind(under_way: Iterable[UnderWay], until_end: Iterable[str]) -> tuple[OutputLine, ...]:
    """What quitting now means for plans under way, and for tunables that wait for a scan's end.

    Empty when nothing is left behind.
    """
    said = [line for each in under_way for line in _of_plan(each)]
    names = ", ".join(until_end)
    if names:
        said.append(
            OutputLine(
                f"{names}: put back at the end of the scan by a console that runs then; without"
                " one, the value stays until the next console offers to put it back (T, then u"
                " does it now)",
                "warning",
            )
        )
    return tuple(said)


def _of_plan(each: UnderWay) -> Iterator[OutputLine]:
    yield OutputLine(f"{each.plan.title} is being carried out.", "bold")
    steps = each.plan.steps
    if each.begun:
        yield OutputLine(f"$ {steps[each.begun - 1].command}", "accent")
        yield OutputLine("This goes on without the console; nobody will be told here how it ends.")
    rest = steps[each.begun :]
    if rest:
        yield OutputLine(f"Not run then, {len(rest)} to run by hand:", "warning")
        yield from (OutputLine(f"$ {step.command}", "accent") for step in rest)
