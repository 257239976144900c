"""The autopilot by keys: ask for the latency, show the plan, start it; or stop what runs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from functools import partial

from zconsole.errors import UsageError, ZconsoleError
from zconsole.tunables.autopilot import Status
from zconsole.tunables.pilot import BELOW, HoldOrder, HoldPlan, order, plan, present, without_unit
from zconsole.ui.actions.context import FlowContext
from zconsole.ui.actions.plan_lines import part, said_lines, wrapped
from zconsole.ui.dialogs.confirm import Confirmation, ConfirmScreen
from zconsole.ui.dialogs.screens import AskScreen
from zconsole.ui.widgets.draw import Line, Span

EXAMPLE = "20ms, or 20ms 22:00-06:00=100ms"
COMMAND = "zconsole tunables hold-latency"


async def hold_flow(context: FlowContext) -> None:
    """Start the autopilot as a plan; where one runs, whoever started it, stop it as a plan.

    Raises ZconsoleError where nothing scans, or where latencies or tunables can't be read.
    """
    if status := await context.backend.autopilots.status():
        await _stop(context, status)
        return
    _planned(context, order(["1s"]))  # whatever is in the way is said before anything is asked
    typed = ""
    while True:
        screen = AskScreen(
            "HOLD THE LATENCY OF APPLICATIONS", partial(_asked, context), EXAMPLE, typed
        )
        answer = await context.app.push_screen_wait(screen)
        if answer is None:
            return
        try:
            wanted = _typed_order(answer.split())
        except UsageError as error:
            context.complain(error)
            typed = answer
            continue
        await _start(context, wanted)
        return


def _typed_order(words: Sequence[str]) -> HoldOrder:
    """What was typed. Raises UsageError, also for a latency without unit: people mean ms."""
    if bare := without_unit(words):
        raise UsageError(f"{bare} has no unit: write {bare}ms or {bare}s")
    return order(words)


def running(context: FlowContext) -> str:
    """What the autopilot does, for the list of tunables; while none runs, which key starts it."""
    key, status = context.look.keys.way("hold-latency"), context.held
    if status is None:
        return f"{key} starts the autopilot: scans go as fast as a latency you set allows"
    reached = context.watch.waits()
    said = f"Autopilot: {status}; now {present(reached)}."
    if status.misses(reached, context.backend.clock()):
        said += " Scans can't go slower here: the rest of the latency is not from their speed."
    return f"{said} {key} stops it; it also ends when you set a tunable that it sets."


def _asked(context: FlowContext, width: int) -> tuple[Line, ...]:
    texts = (
        "Type the latency that 95 % of the applications' synchronous requests should stay within,"
        " with its unit (20ms). Scans then go as fast as that allows. Values for times of the day"
        " may follow (22:00-06:00=100ms).",
        f"{_now(context)} Less than now slows the scan, more lets it go faster.",
        "A pool that can't lose another device is not slowed below OpenZFS's defaults, whatever the"
        f" latency. To allow that, add {BELOW}.",
    )
    return tuple(line for text in texts for line in wrapped(text, "", context.look, width))


def _now(context: FlowContext) -> str:
    return f"Now {present(context.watch.waits())}."


def _planned(context: FlowContext, wanted: HoldOrder) -> HoldPlan:
    frames = [frame for frame in context.app.view_state.frames if frame.sample]
    left = {f.seen.name: f.scan.left if f.scan else None for f in frames}
    pools, parameters = [frame.seen for frame in frames], context.backend.parameters
    return plan(wanted, pools, parameters, left, watched=True)


async def _start(context: FlowContext, wanted: HoldOrder) -> None:
    made = _planned(context, wanted)
    said = part("Warnings", made.warnings, "warning")
    said += part("Pools that scan now", made.pools, "bold")
    said += part("What it does", (*made.effects, _now(context)), "")
    said += part(
        "Sets these, step by step; each step is logged and marked on the graph", made.sets, ""
    )

    async def _run(_: str | None) -> AsyncIterator[Span]:
        try:
            await context.backend.autopilots.start(wanted)
        except ZconsoleError as error:
            yield Span(str(error), "error")
            return
        yield Span(f"Autopilot started: target {wanted.targets}", "notice")

    words = " ".join((COMMAND, *wanted.words))
    typed = BELOW if wanted.below else None
    await _show(context, f"Hold latency at {wanted.targets}", said, _run, words, typed)


async def _stop(context: FlowContext, status: Status) -> None:
    said = part("Runs now", (f"Autopilot: {status}.", _now(context)), "bold")
    said += part("Steers", status.pools, "")
    said += part("What it does", ("Ends the autopilot and restores the original values.",), "")

    async def _run(_: str | None) -> AsyncIterator[Span]:
        try:
            stopped = await context.backend.autopilots.stop()
        except ZconsoleError as error:
            yield Span(str(error), "error")
            return
        yield Span(
            "The original values are restored" if stopped else "It had ended already", "notice"
        )

    await _show(context, "Stop the autopilot", said, _run, f"{COMMAND} off")


async def _show(
    context: FlowContext,
    title: str,
    said: list[Span],
    run: Callable[[str | None], AsyncIterator[Span]],
    command: str,
    typed: str | None = None,
) -> None:
    """Have it confirmed; ``command`` does the same by hand."""
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
