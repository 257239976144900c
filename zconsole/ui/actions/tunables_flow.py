"""The flow of the tunables pane: list, ask, confirm, set, and round again."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from functools import partial

from zconsole.actions.backend import FROZEN
from zconsole.errors import ZconsoleError
from zconsole.system.daemon_thread import in_daemon_thread
from zconsole.timeline.frame import Frame
from zconsole.tunables.catalog import BY_NAME, BYTES, exact, named, preset
from zconsole.tunables.control import Setting
from zconsole.tunables.hold_latency import LEVERS
from zconsole.tunables.holds import Hold, Setter, grouped, promise
from zconsole.ui.actions.context import FlowContext
from zconsole.ui.actions.hold_flow import hold_flow, running
from zconsole.ui.actions.plan_lines import part, said_lines
from zconsole.ui.actions.tunables_pane import Shown, TunablesScreen, allowed, question_lines
from zconsole.ui.dialogs.confirm import Confirmation, ConfirmScreen
from zconsole.ui.dialogs.screens import AskScreen
from zconsole.ui.panes.advice import suggested
from zconsole.ui.widgets.draw import Span

ACTS = "Acts on every pool of this machine, at once."
LIFTS = {
    "new-disk-writes": "too few writes to the new disk at once",
    "txg-time": "other I/O takes the scan's time",
    "scan-reads": "too few reads at once",
    "rebuild": "too few requests of the rebuild at once",
    "memory": "too little memory to sort in",
}
"""What a preset can lift, in words."""

_LIFTED = {"foreground": "txg-time", "random": "scan-reads", "memory": "memory"}
"""Maps a verdict's cause to a key of ``presets.LIMITS``."""

OUT_OF_REACH = ("new-disk", "slow-disk", "bus", "smr", "cpu", "disks", "metadata")
"""Causes that no tunable lifts."""
_NO_DISK = ("cpu", "metadata")
"""Those of them for which it doesn't matter how many requests the disks have at once."""

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
    names = [setting.tunable.name for setting in settings]
    found = suggested(context.frame) if context.frame else None
    return names.index(found.tunable) if found and found.tunable in names else 0


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
    changes = context.past.changes
    newest = {change.name: change for change in changes}

    def _shown_one(setting: Setting) -> Shown:
        name = setting.tunable.name
        change = newest.get(name)
        effect = context.watch.effect(frame.pool, change, changes) if frame and change else None
        told = _suggested_of(context, name)
        return Shown(setting, _promised(context, setting.hold), change, effect, told)

    return tuple(map(_shown_one, settings))


def _suggested_of(context: FlowContext, name: str) -> str:
    """What is suggested to do with this tunable; empty where nothing is."""
    found = suggested(context.frame) if context.frame else None
    return found.beside if found and found.tunable == name else ""


def _promised(context: FlowContext, hold: Hold | None) -> str:
    """When a value is restored, and the keys that change that; empty where none was set."""
    if hold is None:
        return ""
    keys = context.look.keys
    said = f"{promise(hold, context.scans())}; {keys.shown('restore')} restores it now"
    if not hold.can_switch:
        return said
    ends = "keeps it" if hold.until is not None else "when the scan ends"
    return f"{said}, {keys.shown('restore-at-end')} {ends}"


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
    lines = partial(question_lines, setting, _suggested_of(context, name), context.look)
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
    would = [_promised(context, _would_hold(name, value)) for name, value in values.items()]
    effects = [ACTS, *(f"{said[0].upper()}{said[1:]}." for said in dict.fromkeys(would))]
    said += [*part("Will set", changes, "bold"), *part("What it does", effects, "")]

    async def _run(_: str | None) -> AsyncIterator[Span]:
        held = {n: v for n, v in values.items() if named(n).guarded and v}
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
            yield Span(f"{name} is {exact(name, live(name))}", "notice")

    words = " ".join(f"{name}={value}" for name, value in values.items())
    await _show(context, title, said, _run, f"zconsole tunables set {words}")


def _would_hold(name: str, value: int) -> Hold:
    """How a value is held once this console has set it."""
    by = Setter.GUARD if named(name).guarded and value else Setter.CONSOLE
    seconds = FROZEN if by is Setter.GUARD else None
    return Hold(by, "here", own=True, seconds=seconds)


def _ends_autopilot(context: FlowContext, names: Iterable[str]) -> str:
    """What setting these does to an autopilot; empty where that goes on, or none runs."""
    if context.held is None or not any(name in LEVERS for name in names):
        return ""
    return (
        f"Ends the autopilot (latency target {context.held.held}):"
        " the other tunables that it has set get their originals back."
    )


def _change(name: str, before: int | None, after: int | None, arrow: str) -> str:
    tunable = named(name)
    unit = "" if tunable.unit in ("0/1", BYTES) else f" {tunable.unit}"
    return f"{name}  {tunable.exact(before)} {arrow} {tunable.exact(after)}{unit}"


async def _restore(context: FlowContext) -> None:
    control = context.backend.control
    ours = [s for s in await in_daemon_thread(control.list) if s.set_by_us is not None]
    kept = (await in_daemon_thread(control.past)).holds
    foreign = [name for name in kept if name not in BY_NAME]
    if not kept:
        await in_daemon_thread(control.check_saved)
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
    said += [Span(f"{name}  set by another version", "bold") for name in foreign]

    ends = _ends_autopilot(context, (s.tunable.name for s in ours if s.ours))
    others = {s.tunable.name: s.hold for s in ours if s.hold and _is_others(s.hold)}
    held = [f"{', '.join(names)}: {text}" for text, names in grouped(others).items()]
    said += part("Warnings", filter(None, [ends, *held]), "warning")

    async def _run(_: str | None) -> AsyncIterator[Span]:
        for done in await in_daemon_thread(partial(control.restore, context.backend.clock())):
            yield Span(f"{done.name} {done.text}", "notice" if done.put_back else "warning")

    await _show(context, "Restore the values set here", said, _run, "zconsole tunables restore")


def _is_others(hold: Hold) -> bool:
    """Whether another console holds it that runs."""
    return hold.by is Setter.CONSOLE and bool(hold.process) and not hold.own


async def _until_the_end(context: FlowContext) -> None:
    """Have what was set from here go back by itself when the scan of the pool on show ends."""
    frame = context.frame
    if frame is None or frame.guid is None:
        raise ZconsoleError("cannot restore at the scan's end: this pool's GUID is unknown")
    if context.denied:
        raise ZconsoleError(context.denied)
    goes = await in_daemon_thread(context.backend.control.until, frame.guid)
    held = Hold(Setter.CONSOLE, "here", own=True, until=frame.guid)
    said = promise(held if goes else Hold(Setter.COMMAND), context.scans())
    context.app.notify(f"Values set here: {said}", markup=False)


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


def likely_limit(frame: Frame) -> str | None:
    """A key of ``presets.LIMITS``; None when nothing is clear, or no tunable would help."""
    scan = frame.scan.scan if frame.scan else None
    if scan is None or scan.state != "running" or frame.limit is None:
        return None
    if frame.limit.cause != "throttle":
        return _LIFTED.get(frame.limit.cause)
    if scan.function == "rebuild":
        return "rebuild"
    writes = frame.limit.suggestion.tunable == "zfs_vdev_async_write_min_active"
    return "new-disk-writes" if writes else "scan-reads"


def hopeless(frame: Frame) -> str | None:
    """Why tunables make the scan hardly faster, and what they cost; None when one might help."""
    if frame.limit is None or frame.limit.cause not in OUT_OF_REACH:
        return None
    disks = frame.limit.cause not in _NO_DISK
    more = "little to gain, and latency rises" if disks else "no tunable helps"
    return f"{frame.limit.text}: {more}"
