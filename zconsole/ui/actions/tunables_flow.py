"""The flow of the tunables pane: list, ask, confirm, set, and round again."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from zconsole.errors import ZconsoleError
from zconsole.monitor.preset_advice import hopeless, likely_limit
from zconsole.system.daemon_thread import beside
from zconsole.tunables.control import Setting
from zconsole.tunables.presets import preset
from zconsole.ui.actions.plan_lines import wrapped
from zconsole.ui.actions.tunables_pane import Shown, TunablesScreen, question_lines
from zconsole.ui.dialogs.ask import AskScreen
from zconsole.ui.dialogs.confirm import ConfirmScreen, Deed, Said
from zconsole.ui.widgets.draw import Line

if TYPE_CHECKING:
    from zconsole.ui.actions.controller import Actor

Run = Callable[[str | None], AsyncIterator[Said]]


async def tunables_flow(actor: Actor) -> None:
    """Show the pane until it is left with Esc."""
    row = 0
    while True:
        settings = tuple(s for s in actor.kit.control.list() if s.value is not None)
        if not settings:
            raise ZconsoleError("this machine has no ZFS tunables")
        screen = _screen(actor, settings, row)
        picked = await actor.pick(screen)
        if picked is None:
            return
        row = picked
        try:
            await _fulfil(actor, screen.wish, settings[picked])
        except ZconsoleError as error:
            actor.console.notify(str(error), severity="error", markup=False)


def _screen(actor: Actor, settings: tuple[Setting, ...], row: int) -> TunablesScreen:
    look = actor.console.showing.look
    return TunablesScreen(lambda: _shown(actor, settings), look, actor.colors, row)


def _shown(actor: Actor, settings: tuple[Setting, ...]) -> tuple[Shown, ...]:
    """The tunables with their newest changes and what these did to the pool on show."""
    frame = actor.console.showing.frame
    until = actor.kit.control.due(frame.guid) if frame and frame.guid else ()
    changes = actor.kit.control.changes()
    newest = {change.name: change for change in changes}

    def shown(setting: Setting) -> Shown:
        name = setting.tunable.name
        change = newest.get(name)
        effect = actor.watch.effect(frame.pool, change, changes) if frame and change else None
        return Shown(setting, name in until, change, effect)

    return tuple(map(shown, settings))


async def _fulfil(actor: Actor, wish: str, setting: Setting) -> None:
    if wish == "set":
        await _ask_value(actor, setting)
    elif wish == "restore":
        await _restore(actor)
    elif wish == "until":
        _until_the_end(actor)
    else:
        await _preset(actor, wish)


async def _ask_value(actor: Actor, setting: Setting) -> None:
    lines = partial(question_lines, setting, actor.console.showing.look)
    answer = await actor.console.push_screen_wait(
        AskScreen(f"SET {setting.tunable.name}", lines, actor.colors)
    )
    if answer is None:
        return
    if not (answer.isascii() and answer.isdigit()):
        raise ZconsoleError(f"{answer}: not a whole number")
    name, value = setting.tunable.name, int(answer)
    if problem := actor.kit.control.problem(name, value):
        raise ZconsoleError(problem)
    await _confirm_values(actor, f"Set {name}", {name: value}, setting.tunable.note)


async def _preset(actor: Actor, name: str) -> None:
    frame = actor.console.showing.frame
    faster = frame is not None and name == "faster-resilver"
    limit = likely_limit(frame) if frame is not None and faster else None
    chosen = preset(name, actor.kit.parameters, limit)
    if not chosen.values:
        raise ZconsoleError(f"the preset {name} has nothing to change here")
    aims = f"It aims at {limit}, which seems to be the limit now." if limit else ""
    doubt = hopeless(frame) if frame is not None and faster else None
    remarks = (aims, doubt or "", *chosen.warnings)
    action = f"preset {name}"
    await _confirm_values(actor, action.capitalize(), chosen.values, *remarks, action=action)


async def _confirm_values(
    actor: Actor, title: str, values: Mapping[str, int], *remarks: str, action: str = "set"
) -> None:
    control = actor.kit.control
    said = [
        Said(f"{name}  {control.setting(name).value} to {value}", "accent")
        for name, value in values.items()
    ]
    said.append(Said("It acts on every pool of this machine, at once."))
    said.append(Said("The values before are remembered; u puts them back, e at the scan's end."))
    said += [Said(text, "warning") for text in remarks if text]

    async def run(typed: str | None) -> AsyncIterator[Said]:
        held = {n: v for n, v in values.items() if control.setting(n).tunable.guarded and v}
        try:
            plain = {n: v for n, v in values.items() if n not in held}
            now = actor.kit.clock()
            await beside(partial(control.set, plain, now, action=action))
            for name, value in held.items():
                await actor.kit.freeze(name, value)
        except ZconsoleError as error:
            yield Said(str(error), "error")
            return
        for name in values:
            yield Said(f"{name} is {control.setting(name).value}", "notice")

    await _show(actor, title, said, run)


async def _restore(actor: Actor) -> None:
    control = actor.kit.control
    ours = [setting for setting in control.list() if setting.set_by_us is not None]
    if not ours:
        raise ZconsoleError("nothing was set from here")
    said = [
        Said(f"{s.tunable.name}  {s.value} to {s.original}", "accent")
        if s.ours
        else Said(f"{s.tunable.name}  stays {s.value}: somebody else set it", "dim")
        for s in ours
    ]

    async def run(typed: str | None) -> AsyncIterator[Said]:
        for done in control.restore(actor.kit.clock()):
            yield Said(f"{done.name} {done.text}", "notice" if done.put_back else "warning")

    await _show(actor, "Put back what was set", said, run)


def _until_the_end(actor: Actor) -> None:
    """Have what was set from here go back by itself when the scan of the pool on show ends."""
    frame = actor.console.showing.frame
    if frame is None or frame.guid is None:
        raise ZconsoleError("the pool on show has no GUID to remember this by")
    if actor.console.denied:
        raise ZconsoleError(actor.console.denied)
    goes = actor.kit.control.until(frame.guid)
    actor.console.notify(
        f"what was set from here {'goes back' if goes else 'stays'} at the end of the scan",
        markup=False,
    )


async def _show(actor: Actor, title: str, said: Sequence[Said], run: Run) -> None:
    look = actor.console.showing.look
    told = [*said, *([Said(actor.console.denied, "error")] if actor.console.denied else [])]

    def body(width: int) -> tuple[Line, ...]:
        return tuple(line for s in told for line in wrapped(s.text, s.role, look, width))

    deed = Deed(title, body, run, barred=bool(actor.console.denied))
    await actor.console.push_screen_wait(ConfirmScreen([deed], look, actor.colors))
