"""The flow of the tunables pane: list, ask, confirm, set, and round again."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from functools import partial

from zconsole.errors import ZconsoleError
from zconsole.monitor.preset_advice import hopeless, likely_limit, suggested
from zconsole.system.daemon_thread import in_daemon_thread
from zconsole.tunables.catalog import BYTES
from zconsole.tunables.control import Setting, known
from zconsole.tunables.hold_latency import LEVERS
from zconsole.tunables.presets import preset
from zconsole.ui.actions.context import FlowContext
from zconsole.ui.actions.hold_flow import hold_flow, running
from zconsole.ui.actions.plan_lines import part, said_lines
from zconsole.ui.actions.tunables_pane import Shown, TunablesScreen, allowed, question_lines
from zconsole.ui.dialogs.confirm import Confirmation, ConfirmScreen
from zconsole.ui.dialogs.screens import AskScreen
from zconsole.ui.widgets.draw import Span

EFFECTS = (
    "Acts on every pool of this machine, at once.",
    "The old values are kept: U restores them, E does when the scan ends.",
)
LIFTS = {
    "new-disk-writes": "too few writes to the new disk at once",
    "txg-time": "other I/O takes the scan's time",
    "scan-reads": "too few reads at once",
    "rebuild": "too few requests of the rebuild at once",
    "memory": "too little memory to sort in",
}
"""What a preset can lift, in words."""

Run = Callable[[str | None], AsyncIterator[Span]]


async def tunables_flow(context: FlowContext) -> None:
    """Show the pane until it is left with Esc."""
    row: int | None = None
    while True:
        found = await in_daemon_thread(context.backend.control.list)
        await context.read_past()
        settings = tuple(setting for setting in found if setting.value is not None)
        if not settings:
            raise ZconsoleError("this machine has no ZFS tunables")
        await context.read_held()
        row = _row_of_advice(context, settings) if row is None else row
        screen = _screen(context, settings, row)
        picked = await context.app.push_screen_wait(screen)
        if picked is None:
            return
        row = picked
        try:
            await _fulfil(context, screen.request, settings[picked])
        except ZconsoleError as error:
            context.complain(error)


def _row_of_advice(context: FlowContext, settings: tuple[Setting, ...]) -> int:
    """The row of the tunable that is suggested; the first, where none is."""
    name = suggested(context.frame)[0] if context.frame else ""
    names = [setting.tunable.name for setting in settings]
    return names.index(name) if name in names else 0


def _screen(context: FlowContext, settings: tuple[Setting, ...], row: int) -> TunablesScreen:
    """The list, whose values follow what an autopilot or somebody else sets meanwhile."""
    now = {setting.tunable.name: setting for setting in settings}

    async def _renew() -> None:
        found = await in_daemon_thread(context.backend.control.list)
        now.update((each.tunable.name, each) for each in found if each.tunable.name in now)
        await context.read_past()
        await context.read_held()

    return TunablesScreen(
        lambda: _shown(context, tuple(now.values())),
        lambda: context.look,
        row,
        partial(running, context),
        _renew,
    )


def _shown(context: FlowContext, settings: tuple[Setting, ...]) -> tuple[Shown, ...]:
    """The tunables with their newest changes and what these did to the pool on show."""
    frame = context.frame
    until = context.past.due(frame.guid) if frame else ()
    changes = context.past.changes
    newest = {change.name: change for change in changes}
    pilot = context.held is not None
    advised, advice = suggested(frame) if frame else ("", "")

    def _shown_one(setting: Setting) -> Shown:
        name = setting.tunable.name
        change = newest.get(name)
        effect = context.watch.effect(frame.pool, change, changes) if frame and change else None
        told = advice if name == advised else ""
        return Shown(setting, name in until, change, effect, _holder(setting, pilot), told)

    return tuple(map(_shown_one, settings))


def _holder(setting: Setting, pilot: bool) -> str:
    """Which process set it, and restores it at its end; empty where none did."""
    if not setting.ours:
        return ""
    if setting.tunable.guarded:
        return "by a guard"
    return "by the autopilot" if pilot and setting.tunable.name in LEVERS else ""


async def _fulfil(context: FlowContext, request: str, setting: Setting) -> None:
    if request == "set":
        await _ask_value(context, setting)
    elif request == "restore":
        await _restore(context)
    elif request == "hold":
        await hold_flow(context)
    elif request == "until":
        await _until_the_end(context)
    else:
        await _preset(context, request)


async def _ask_value(context: FlowContext, setting: Setting) -> None:
    """Ask until the answer is a value it may have, or the question is left."""
    name, typed = setting.tunable.name, ""
    advised, advice = suggested(context.frame) if context.frame else ("", "")
    lines = partial(question_lines, setting, advice * (advised == name), context.look)
    while True:
        screen = AskScreen(f"SET {name}", lines, allowed(setting), typed)
        answer = await context.app.push_screen_wait(screen)
        if answer is None:
            return
        value = setting.tunable.number(answer)
        problem = (
            f"{answer}: not {setting.tunable.kind}"
            if value is None
            else context.backend.control.problem(name, value)
        )
        if value is not None and not problem:
            warning = setting.tunable.warning(setting.value, value)
            await _confirm_values(context, f"Set {name}", {name: value}, warning)
            return
        context.complain(str(problem))
        typed = answer


async def _preset(context: FlowContext, name: str) -> None:
    frame = context.frame
    faster = frame is not None and name == "faster-resilver"
    limit = likely_limit(frame) if frame is not None and faster else None
    chosen = preset(name, context.backend.parameters, limit)
    live = context.backend.parameters.read
    values = {n: value for n, value in chosen.values.items() if live(n) != value}
    if not values:
        raise ZconsoleError(f"preset {name}: nothing to change, all values are set already")
    aims = f"Aims at the likely limit: {LIFTS[limit]}." if limit else ""
    doubt = hopeless(frame) if frame is not None and faster else None
    remarks = (aims, doubt or "", *chosen.warnings)
    action = f"preset {name}"
    await _confirm_values(context, action.capitalize(), values, *remarks, action=action)


async def _confirm_values(
    context: FlowContext,
    title: str,
    values: Mapping[str, int],
    *remarks: str,
    action: str = "set",
) -> None:
    control, live = context.backend.control, context.backend.parameters.read
    arrow = context.look.glyphs.arrow
    changes = [_change(name, live(name), value, arrow) for name, value in values.items()]
    remarks = (_ends_autopilot(context, values), *remarks)
    said = part("Warnings", filter(None, remarks), "warning")
    said += [*part("Will set", changes, "bold"), *part("What it does", EFFECTS, "")]

    async def _run(_: str | None) -> AsyncIterator[Span]:
        held = {n: v for n, v in values.items() if known(n).guarded and v}
        try:
            plain = {n: v for n, v in values.items() if n not in held}
            now = context.backend.clock()
            await in_daemon_thread(partial(control.set, plain, now, action=action))
            for name, value in held.items():
                await context.backend.freeze(name, value)
        except ZconsoleError as error:
            yield Span(str(error), "error")
            return
        for name in values:
            yield Span(f"{name} is {known(name).exact(live(name))}", "notice")

    words = " ".join(f"{name}={value}" for name, value in values.items())
    await _show(context, title, said, _run, f"zconsole tunables set {words}")


def _ends_autopilot(context: FlowContext, names: Iterable[str]) -> str:
    """What setting these does to an autopilot; empty where that goes on, or none runs."""
    if context.held is None or not any(name in LEVERS for name in names):
        return ""
    return (
        f"Ends the autopilot (latency target {context.held.held}):"
        " the other tunables that it has set get their originals back."
    )


def _change(name: str, before: int | None, after: int | None, arrow: str) -> str:
    tunable = known(name)
    unit = "" if tunable.unit in ("0/1", BYTES) else f" {tunable.unit}"
    return f"{name}  {tunable.exact(before)} {arrow} {tunable.exact(after)}{unit}"


async def _restore(context: FlowContext) -> None:
    control = context.backend.control
    ours = [s for s in await in_daemon_thread(control.list) if s.set_by_us is not None]
    if not ours:
        raise ZconsoleError("nothing to restore: no tunable was set here")
    said = [
        Span(_change(s.tunable.name, s.value, s.original, context.look.glyphs.arrow), "bold")
        if s.ours
        else Span(
            f"{s.tunable.name}  stays {s.tunable.exact(s.value)}: changed by somebody else since",
            "dim",
        )
        for s in ours
    ]

    ends = _ends_autopilot(context, (s.tunable.name for s in ours if s.ours))
    said += part("Warnings", filter(None, [ends]), "warning")

    async def _run(_: str | None) -> AsyncIterator[Span]:
        for done in await in_daemon_thread(partial(control.restore, context.backend.clock())):
            yield Span(f"{done.name} {done.text}", "notice" if done.put_back else "warning")

    await _show(context, "Restore the values set here", said, _run, "zconsole tunables restore")


async def _until_the_end(context: FlowContext) -> None:
    """Have what was set from here go back by itself when the scan of the pool on show ends."""
    frame = context.frame
    if frame is None or frame.guid is None:
        raise ZconsoleError("cannot restore at the scan's end: this pool's GUID is unknown")
    if context.denied:
        raise ZconsoleError(context.denied)
    goes = await in_daemon_thread(context.backend.control.until, frame.guid)
    if not goes:
        said = "Values set here stay after the scan, until the next boot"
    elif any(view.scan.active for view in frame.scans):
        said = "Values set here are restored when the scan ends"
    else:
        said = "No scan runs: values set here are restored when the next one ends"
    context.app.notify(said, markup=False)


async def _show(
    context: FlowContext, title: str, said: Sequence[Span], run: Run, command: str
) -> None:
    """Have it confirmed; ``command`` does the same by hand."""
    if context.denied:
        said = [*said, Span(context.denied, "error")]
    look = context.look
    confirmation = Confirmation(
        title,
        lambda width: said_lines(said, look, width),
        run,
        barred=bool(context.denied),
        commands=(command,),
    )
    await context.app.push_screen_wait(ConfirmScreen([confirmation], look))
