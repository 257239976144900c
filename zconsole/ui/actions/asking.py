"""From plan to result: look anew, show the plan in its ways, have it confirmed, carry it out."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeVar

from zconsole.actions.executor import ExecutionEvent, Executor
from zconsole.actions.plan import ActionPlan, Facts, Situation
from zconsole.actions.refresh import Refresher, situation_of
from zconsole.errors import ZconsoleError
from zconsole.timeline.frame import OUTCOME
from zconsole.ui.actions.context import FlowContext, UnderWay
from zconsole.ui.actions.plan_lines import plan_lines, said_lines
from zconsole.ui.dialogs.confirm import Confirmation, ConfirmScreen
from zconsole.ui.dialogs.screens import AskScreen, Lines, PickScreen
from zconsole.ui.widgets.draw import Span

Answer = TypeVar("Answer")
Planner = Callable[[Situation], ActionPlan]
Ran = Callable[[Sequence[ExecutionEvent]], Awaitable[None]]
"""Takes what carrying out a plan gave, however it ended."""

_ROLES = {
    "begun": "bold",
    "output": "",
    "skipped": "dim",
    "warning": "warning",
    "failed": "error",
    "refused": "error",
    "done": "good",
}


def situation_shown(context: FlowContext) -> Situation:
    """The pool on show as the screen has it, without any facts. Raises ZconsoleError without."""
    if context.frame is None:
        raise ZconsoleError("no pool was sampled yet; try again in a moment")
    return situation_of(context.frame, Facts())


async def situation_now(
    context: FlowContext, paths: tuple[str, ...] = (), shown: Situation | None = None
) -> Situation:
    """The pool on show, or as it was ``shown``, with facts asked for now.

    Raises UnavailableError without a pool.
    """
    bare = shown or situation_shown(context)
    facts = await context.backend.ask(bare.pool, bare.suspended, paths)
    return replace(bare, facts=facts)


async def picked(context: FlowContext, screen: PickScreen) -> int | None:
    """What is picked of a list that is filled in while it is shown. Raises as its ``fill``."""
    chosen = await context.app.push_screen_wait(screen)
    if screen.failed is not None:
        raise screen.failed
    return chosen


async def confirm(
    context: FlowContext,
    ways: Sequence[Planner],
    paths: tuple[str, ...] = (),
    ran: Ran | None = None,
) -> bool:
    """Show the plan, in each of its ways, and let it be run; False when it was only read.

    ``ran`` is told what it did.
    """
    situation = await situation_now(context, paths)
    plans = [way(situation) for way in ways]
    # The first is what Enter would run: not one that is refused, nor one that meets a bug.
    plans.sort(key=lambda plan: bool(plan.refused or plan.hazards))
    able = [plan for plan in plans if plan.refused is None]
    if plans[0] in able and not plans[0].hazards:
        plans = able
    elif not able:
        plans = plans[:1]
    confirmations = [confirmation_of(context, plan, situation.facts, paths, ran) for plan in plans]
    screen = ConfirmScreen(confirmations, context.look)
    await context.app.push_screen_wait(screen)
    return screen.confirmed


async def ask(
    context: FlowContext,
    title: str,
    lines: Lines,
    example: str,
    read: Callable[[str], Awaitable[Answer]],
    use: Callable[[Answer], Awaitable[object]],
) -> bool:
    """Ask until ``read`` makes something of the answer, and do with it what ``use`` does.

    Ask again, with what was typed, where reading raises OSError or ZconsoleError, and where ``use``
    returns False, as of a plan that was only read. Return False when the question is left.
    """
    typed = ""
    while True:
        answer = await context.app.push_screen_wait(AskScreen(title, lines, example, typed))
        if answer is None:
            return False
        typed = answer
        try:
            found = await read(answer)
        except (OSError, ZconsoleError) as error:
            context.complain(error)
            continue
        if await use(found) is not False:
            return True


async def confirm_change(
    context: FlowContext,
    title: str,
    said: Sequence[Span],
    run: Callable[[str | None], AsyncIterator[Span]],
    command: str,
    typed: str | None = None,
) -> None:
    """Have something confirmed that is no plan; ``command`` does the same by hand."""
    denied, look = context.denied, context.look
    lines = [*said, Span(denied, "error")] if denied else said
    confirmation = Confirmation(
        title,
        lambda width: said_lines(lines, look, width),
        run,
        typed=typed,
        barred=bool(denied),
        commands=(command,),
    )
    await context.app.push_screen_wait(ConfirmScreen([confirmation], look))


def frame_look(context: FlowContext, paths: tuple[str, ...] = ()) -> Refresher:
    """Looks at a pool anew, by the next good frame of it."""
    return Refresher(context.watch.fresh, context.backend.ask, paths)


def executor_of(context: FlowContext, denied: str = "", paths: tuple[str, ...] = ()) -> Executor:
    """Runs plans by the backend; refuses them all when something is ``denied``."""
    return context.backend.executor(frame_look(context, paths), denied)


def confirmation_of(
    context: FlowContext,
    plan: ActionPlan,
    facts: Facts,
    paths: tuple[str, ...] = (),
    ran: Ran | None = None,
) -> Confirmation:
    """A plan to be confirmed; ``ran`` is told what it did."""
    denied = context.denied
    executor = executor_of(context, denied, paths)
    return Confirmation(
        plan.title,
        lambda width: plan_lines(plan, denied, context.look, width),
        partial(_carry_out, context, plan, facts, executor, ran),
        plan.needs_typed,
        barred=plan.refused is not None or bool(denied),
        commands=tuple(step.command for step in plan.steps),
        checks=() if plan.refused else plan.checks,
    )


async def _carry_out(
    context: FlowContext,
    plan: ActionPlan,
    facts: Facts,
    executor: Executor,
    ran: Ran | None,
    typed: str | None,
) -> AsyncIterator[Span]:
    kind, t = "", context.backend.clock()
    events: list[ExecutionEvent] = []
    context.under_way.append(now := UnderWay(plan))
    try:
        async for event in executor.run(plan, typed):
            kind = event.kind
            events.append(event)
            now.begun += kind in ("begun", "skipped")
            for said in _said(event, plan):
                yield said
    except ZconsoleError as error:
        yield Span(str(error), "error")
        return
    finally:
        if ran is not None:
            await ran(events)
        context.under_way.remove(now)
        if now.begun and kind == "done":
            context.watch.did(plan.pool, t, plan.title)
        elif now.begun:  # not on the timeline
            context.watch.did(plan.pool, t, f"{plan.title}: failed", OUTCOME, "error")
    if kind == "done" and (past := context.told.pop((plan.pool, plan.action), "")):
        context.app.unsay(past)  # as that a scrub is paused, which runs again
    if kind == "done" and plan.follow is not None:
        context.watch.follow(plan, facts, context.backend.clock())
        if plan.action == "replace" or (plan.action, plan.begins) == ("attach", "resilver"):
            context.app.await_filled()
        if plan.begins:
            yield Span(f"The console tells you when the {plan.begins} ends.", "dim")


def _said(event: ExecutionEvent, plan: ActionPlan) -> list[Span]:
    role = _ROLES.get(event.kind, "")
    done = "Started." if plan.begins else "Done."
    words = {"begun": f"$ {event.text}", "done": done, "skipped": f"Not needed: {event.text}"}
    said = [Span(words.get(event.kind, event.text), role)]
    if event.kind == "failed" and event.step is not None:
        said = [Span("Failed. No further command was run.", role)]
    return [*said, Span(event.meaning, "warning")] if event.meaning else said
