"""What is asked before a step of a checklist is done, answered, undone or given up."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import replace
from functools import partial
from typing import Any

from zconsole.actions.plan import ActionPlan, Facts
from zconsole.errors import ZconsoleError
from zconsole.swap.light import plan_light
from zconsole.swap.stage import Answer, SwapStage, sentence
from zconsole.swap.undone import light_words
from zconsole.ui.actions.asking import confirmation_of
from zconsole.ui.actions.context import FlowContext
from zconsole.ui.actions.plan_lines import said_lines
from zconsole.ui.dialogs.confirm import Confirmation, ConfirmScreen
from zconsole.ui.display_format import DisplayFormat
from zconsole.ui.swap.followed import FollowedSwap
from zconsole.ui.widgets.draw import Line, Span

GIVE_UP = "give up"
"""What to type to give up a swap that leaves something undone."""


async def plan_question(
    context: FlowContext, followed: FollowedSwap, stage: SwapStage, plan: ActionPlan
) -> None:
    """Show the plan with what the step says of it, and let it be run."""
    s = await followed.situation()
    ran = partial(followed.ran, stage, plan)
    made = confirmation_of(context, plan, s.facts if s else Facts(), stage.paths, ran)
    # They are about the step: they say nothing of its light, or of the way back.
    own = plan is stage.plan
    warned = [Span(text, "error") for text in stage.warnings if own]
    if stage.final and own:
        warned.append(Span(f"{stage.final_line}.", "warning"))

    def _body(width: int) -> tuple[Line, ...]:
        return (*said_lines(warned, context.look, width), *made.body(width))

    await _ask(context, replace(made, body=_body))


async def answer_question(context: FlowContext, followed: FollowedSwap, stage: SwapStage) -> None:
    """Ask whether it is so as one of the step's answers says."""
    questions = [_answering(context, followed, stage, answer) for answer in stage.answers]
    await _ask(context, *questions)


def _answering(
    context: FlowContext, followed: FollowedSwap, stage: SwapStage, answer: Answer
) -> Confirmation:
    own = [Span(stage.title, "bold"), *(Span(text) for text in stage.text)]
    said = [Span(answer.means)] if answer.means else own
    said += [Span(text, "error") for text in stage.warnings]
    body = partial(_lines, said, context.look)
    run = partial(_done, partial(followed.answer, answer.name))
    barred = bool(context.denied)
    return Confirmation(answer.text, body, run, answer.typed, barred, verb="Yes", leaves=True)


async def give_up_question(context: FlowContext, followed: FollowedSwap, stage: SwapStage) -> None:
    """Ask whether to close the checklist; what is not undone is said, and a word to be typed."""
    back = stage.back
    clean = back is not None and back.closes
    said = [Span("Nothing is left to undo. The report is kept.")]
    if not clean:
        said = [
            Span("What was done stays as it is; the checklist ends here.", "warning"),
            *(Span(sentence(text), "error") for text in stage.undone),
        ]
        if back is not None:
            said.append(Span("To undo it step by step instead: Esc, then Z."))
            said.append(Span(f"Z would now: {back.text}."))
    question = Confirmation(
        "Give up this swap?",
        partial(_lines, said, context.look),
        partial(_done, followed.close),
        None if clean else GIVE_UP,
        bool(context.denied),
        verb="Give up",
        leaves=True,
    )
    if not followed.checklist.lit:
        await _ask(context, question)
        return
    lit = replace(question, title="Give up this swap, and leave the light on?")
    await _ask(context, _darkening(context, followed, stage, said, question), lit)


def _darkening(
    context: FlowContext,
    followed: FollowedSwap,
    stage: SwapStage,
    said: list[Span],
    question: Confirmation,
) -> Confirmation:
    """The same question, with the light of the bay switched off first."""
    c = followed.checklist
    off = Span(f"The light of {c.old.spot} goes off: the state found before is restored.")
    rest = [span for span in said if span.text not in map(sentence, light_words(c))]
    return replace(
        question,
        title="Give up this swap, and switch the light off?",
        body=partial(_lines, [off, *rest], context.look),
        run=partial(_dark_and_close, context, followed, stage),
    )


async def _dark_and_close(
    context: FlowContext, followed: FollowedSwap, stage: SwapStage, _: str | None
) -> AsyncIterator[Span]:
    """Switch the light off, then close; it stays open where the light can't be switched."""
    plan = await light_plan(followed)
    ran = partial(followed.ran, replace(stage, step="light-off"), plan)
    async for said in confirmation_of(context, plan, Facts(), (), ran).run(None):
        yield said
    if followed.checklist.lit:
        raise ZconsoleError("The light is still on, and the checklist open.")
    await followed.look()
    await followed.close()


async def light_plan(followed: FollowedSwap) -> ActionPlan:
    """The plan that switches the light of the bay the other way. Raises ZconsoleError."""
    s, c = await followed.situation(), followed.checklist
    if s is None:
        raise ZconsoleError(f"{c.pool} is not imported")
    return plan_light(s, c.old, on=not c.lit)


def _lines(said: list[Span], look: DisplayFormat, width: int) -> tuple[Line, ...]:
    return said_lines(said, look, width)


async def _done(do: Callable[[], Coroutine[Any, Any, None]], _: str | None) -> AsyncIterator[Span]:
    await do()
    yield Span("Done.")


async def _ask(context: FlowContext, *questions: Confirmation) -> None:
    await context.app.push_screen_wait(ConfirmScreen(questions, context.look))
