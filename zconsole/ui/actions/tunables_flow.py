"""Flows of the tunables pane: set, restore and presets, and the autopilot that holds a latency."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial

from zconsole.actions.backend import FROZEN
from zconsole.diagnosis.bottleneck.finding import Suggestion
from zconsole.errors import UsageError, ZconsoleError
from zconsole.system.daemon_thread import in_daemon_thread
from zconsole.timeline.frame import Frame
from zconsole.tunables.autopilot import Status
from zconsole.tunables.catalog import BY_NAME, BYTES, LIMITS, Preset, exact, named, preset
from zconsole.tunables.control import Setting
from zconsole.tunables.hold_latency import LEVERS
from zconsole.tunables.holds import Hold, Restoring, Setter, grouped, next_way, promise
from zconsole.tunables.pilot import BELOW, HoldOrder, HoldPlan, order, plan, present, without_unit
from zconsole.tunables.store import Change
from zconsole.ui.actions.plan_lines import part
from zconsole.ui.actions.session import FlowSession
from zconsole.ui.actions.tunables_pane import (
    MEASURING,
    ChangeEffect,
    TunableRow,
    TunablesScreen,
    allowed,
    changes_text,
    question_lines,
)
from zconsole.ui.dialogs.screens import TextQuestion
from zconsole.ui.display_format import DisplayFormat
from zconsole.ui.panes.reasons import suggested
from zconsole.ui.widgets.draw import Lines, Span
from zconsole.units import counted, duration, percent

FASTER = "faster-resilver"
"""Name of the faster preset, and of its key."""
ACTS = "Acts on every pool of this machine, at once."
LIFTS = {
    "new-disk-writes": "too few writes to the new disk at once",
    "txg-time": "other I/O takes the scan's time",
    "scan-reads": "too few reads at once",
    "rebuild": "too few requests of the rebuild at once",
    "memory": "too little memory to sort in",
}
"""Description of what a preset can improve, by limit."""

_VERBS = {"raise": "raise", "restore": "restore", "wait": MEASURING}
"""Words for acts of a suggestion that say what to do, or what is done, also without a value."""
_LIFTED = {"foreground": "txg-time", "random": "scan-reads", "memory": "memory"}
"""Maps a bottleneck's cause to a key of LIFTS."""

_NO_DISK = ("cpu", "metadata")
"""Causes out of reach for which it doesn't matter how many requests the disks have at once."""


async def tunables_flow(ui: FlowSession, _: str) -> None:
    """Show the tunables pane until it is left with Esc."""
    now: dict[str, Setting] = {}
    fast = ""

    async def _read() -> None:
        """Read the values, which others may set meanwhile, and what is known of who set them."""
        nonlocal fast
        found = await in_daemon_thread(ui.backend.control.list)
        now.update((each.tunable.name, each) for each in found if each.value is not None)
        fast = await in_daemon_thread(lambda: _faster(ui).hint(ui.look.keys.shown(FASTER)))
        await ui.read_past()
        await ui.read_autopilot()

    await _read()
    if not now:
        raise ZconsoleError("this machine has no ZFS tunables")
    suggested_row = next((row for row, name in enumerate(now) if _suggestion_of(ui, name)), None)
    row = next(iter(_set_last(ui, now)), 0) if suggested_row is None else suggested_row
    while True:
        screen = TunablesScreen(
            partial(_shown, ui, now), row, partial(running, ui), lambda: fast, _read, _guid(ui)
        )
        picked = await ui.show(screen)
        if picked is None:
            return
        row, known = picked, ui.past.changes
        try:
            match screen.request:
                case "set":
                    await _ask_value(ui, list(now.values())[picked])
                case "restore":
                    await _restore(ui)
                case "hold":
                    await hold_flow(ui)
                case "until":
                    await _switch_restoring(ui)
                case name:
                    await _preset(ui, name)
        except ZconsoleError as error:
            ui.show_error(error)
        await _read()
        newest = _set_last(ui, now)
        if ui.past.changes != known and row not in newest:
            row = next(iter(newest), row)


def _set_last(ui: FlowSession, names: Iterable[str]) -> list[int]:
    """Return the rows of the tunables that were set or restored last, together."""
    changes = ui.past.changes
    last = {change.name for change in changes if change.t == changes[-1].t}
    return [row for row, name in enumerate(names) if name in last]


def _shown(ui: FlowSession, settings: Mapping[str, Setting]) -> tuple[TunableRow, ...]:
    """Return the tunables with their newest changes, and the effects on the pool on show."""
    frame = ui.frame
    changes = ui.past.changes

    def _done(change: Change) -> ChangeEffect:
        effect = ui.effects.effect(frame, change, changes) if frame else None
        when = ui.look.when(change.t, frame.t) if frame else ""
        return ChangeEffect(change, effect, sum(each.t == change.t for each in changes), when)

    def _shown_one(name: str, setting: Setting) -> TunableRow:
        newest = [change for change in reversed(changes) if change.name == name][:2]
        done = tuple(map(_done, newest))
        restored = len(done) > 1 and not setting.ours and setting.value == newest[0].after
        row = TunableRow(
            setting,
            _promised(ui, setting.hold),
            done[0] if done else None,
            done[1] if restored else None,
        )
        if (found := _suggestion_of(ui, name)) is None:
            return row
        advice = _VERBS.get(found.act or "", "suggested")
        if found.value not in (None, setting.value):
            advice = f"suggested {setting.tunable.exact(found.value)}"
        return replace(row, suggested=found.beside, advice=advice)

    return tuple(_shown_one(name, setting) for name, setting in settings.items())


def _suggestion_of(ui: FlowSession, name: str) -> Suggestion | None:
    """Return the pool's suggestion if it is about this tunable, or None."""
    found = suggested(ui.frame) if ui.frame else None
    return found if found and found.tunable == name else None


def _promised(ui: FlowSession, hold: Hold | None) -> str:
    """Describe when a value is restored, and the keys that change that; empty if it was not set."""
    if hold is None:
        return ""
    keys, said = ui.look.keys, promise(hold, ui.scans())
    now = f"{keys.shown('restore')}: restored now"
    way = next_way((hold, *ui.past.holds.values()), _guid(ui))
    # The key may also change others only.
    if not hold.can_switch or (way is Restoring.AT_END and hold.until is not None):
        return f"{said}; {now}"
    return f"{said}; {keys.shown('restore-at-end')}: {way}, {now}"


def _guid(ui: FlowSession) -> str:
    """Return the GUID of the pool on show; empty if that is unknown."""
    return (ui.frame and ui.frame.guid) or ""


async def _ask_value(ui: FlowSession, setting: Setting) -> None:
    """Ask until the answer is a permitted value, or the question is left."""
    name, tunable = setting.tunable.name, setting.tunable
    found = _suggestion_of(ui, name)
    lines = partial(question_lines, setting, found.beside if found else "")

    def _read(answer: str) -> int:
        if (value := tunable.number(answer)) is None:
            raise ZconsoleError(f"{answer}: not {tunable.kind}")
        if problem := ui.backend.control.problem(name, value):
            raise ZconsoleError(problem)
        return value

    wanted = found.value if found is not None and found.act != "wait" else None
    typed = "" if wanted is None else str(wanted)
    value = await ui.ask(TextQuestion(f"SET {name}", lines, allowed(setting), typed), _read)
    if value is not None:
        warning = tunable.warning(setting.value, value)
        await _confirm_values(ui, f"Set {name}", {name: value}, warning)


@dataclass(frozen=True, slots=True)
class Faster:
    """What the faster preset sets now."""

    chosen: Preset
    limit: str | None
    """The likely limit, a key of LIFTS; None if it is unclear, or the preset does not lift it."""
    beyond: bool = False
    """Whether it lifts other limits, as what lifts the likely one is set already."""

    @property
    def aims(self) -> str:
        """What it aims at, as a sentence; empty without a likely limit."""
        if self.beyond:
            return "Goes beyond the likely limit: what lifts that is set already."
        return f"Aims at the likely limit: {LIFTS[self.limit]}." if self.limit else ""

    def hint(self, key: str) -> str:
        """Describe what its key would do."""
        if not (count := len(self.chosen.values)):
            return f"{key} sets nothing: the whole faster preset is set already"
        what = ", the whole faster preset"
        if self.limit:
            what = f" for the likely limit: {LIFTS[self.limit]}"
        if self.beyond:
            what = " beyond the likely limit: what lifts that is set already"
        return f"{key} sets {counted(count, 'tunable')}{what}"


def _faster(ui: FlowSession) -> Faster:
    """Return the faster preset for the likely limit, or all of it if that has nothing to set."""
    parameters, limit = ui.backend.parameters, likely_limit(ui.frame) if ui.frame else None
    found = Faster(preset(FASTER, parameters, limit), limit)
    if limit is None or found.chosen.values:
        return found
    return Faster(preset(FASTER, parameters), limit, beyond=True)


async def _preset(ui: FlowSession, name: str) -> None:
    frame = ui.frame if name == FASTER else None
    faster = _faster(ui) if name == FASTER else None
    chosen = faster.chosen if faster else preset(name, ui.backend.parameters)
    live = ui.backend.parameters.read
    aims = faster.aims if faster else ""
    if frame is not None and frame.limit is not None and (held := frame.limit.throttle) is not None:
        is_set = held.tunable in chosen.values
        aims = "Aims at the likely limit" if is_set else "Does not change what limits the scan"
        aims += f": {held.tunable} is {exact(held.tunable, live(held.tunable))}."
    values = {n: value for n, value in chosen.values.items() if live(n) != value}
    if not values:
        raise ZconsoleError(f"preset {name}: nothing to change, all of it is set already")
    doubt = (hopeless(frame) if frame is not None else None) or ""
    action = f"preset {name}"
    title = f"Faster scans ({action})" if name == FASTER else action.capitalize()
    await _confirm_values(ui, title, values, *chosen.warnings, note=doubt, action=action, aims=aims)


async def _confirm_values(
    ui: FlowSession,
    title: str,
    values: Mapping[str, int],
    *warnings: str,
    note: str = "",
    action: str = "set",
    aims: str = "",
) -> None:
    control, live = ui.backend.control, ui.backend.parameters.read
    now = {each.tunable.name: each for each in await in_daemon_thread(control.list)}
    changes = [_change(ui, name, live(name), value) for name, value in values.items()]
    said = part("Warnings", (_ends_autopilot(ui, values), *warnings), "warning")
    said += part("Notes", (note, *_tried(ui, values)), "")
    held = {name: value for name, value in values.items() if named(name).guarded and value}
    until = next((hold.until for hold in ui.past.holds.values() if hold.own and hold.until), None)
    here = Hold(Setter.CONSOLE, "here", own=True, until=until)
    guard = Hold(Setter.GUARD, "here", own=True, seconds=FROZEN)
    would = [
        "back to the value before: nothing to restore later"
        if now[name].ours and value == now[name].original
        else _promised(ui, guard if name in held else here)
        for name, value in values.items()
    ]
    sentences = (f"{said[0].upper()}{said[1:]}." for said in dict.fromkeys(would))
    said += [*_will_set(ui, changes), *part("What it does", (aims, ACTS, *sentences), "")]

    async def _run(_: str | None) -> AsyncIterator[Span]:
        plain = {n: v for n, v in values.items() if n not in held}
        now = ui.backend.clock()
        await in_daemon_thread(partial(control.set, plain, now, action=action))
        for name, value in held.items():
            # A guard process restores the value, even if the console is killed.
            await ui.backend.freeze(name, value)
        for name in values:
            yield Span(f"{name} is {exact(name, live(name))}", "notice")

    words = " ".join(f"{name}={value}" for name, value in values.items())
    await ui.confirm_change(title, said, _run, f"zconsole tunables set {words}")


def _will_set(ui: FlowSession, changes: Iterable[str]) -> list[Span]:
    """Return the values to write, under the directory of their files."""
    directory = ui.backend.parameters.path("").rstrip("/")
    return part(f"Will set in {directory}", changes, "bold")


def _tried(ui: FlowSession, values: Mapping[str, int]) -> Iterable[str]:
    """Yield what was measured after these values were set before."""
    frame, changes = ui.frame, ui.past.changes
    newest = {change.name: change for change in changes if change.after == values.get(change.name)}
    for t in sorted({change.t for change in newest.values()}):
        together = [change for change in changes if change.t == t]
        effect = ui.effects.effect(frame, together[0], changes) if frame else None
        if effect is not None and effect.gain is not None:
            yield f"Set before: {changes_text(together, effect)}."


def _ends_autopilot(ui: FlowSession, names: Iterable[str]) -> str:
    """Return how setting these affects a running autopilot; empty if it goes on, or none runs."""
    if ui.autopilot is None or not any(name in LEVERS for name in names):
        return ""
    return (
        f"Ends the autopilot (latency target {ui.autopilot.held}):"
        " the other tunables that it has set get their originals back."
    )


def _change(ui: FlowSession, name: str, before: int | None, after: int | None) -> str:
    tunable, arrow = named(name), ui.look.glyphs.arrow
    unit = "" if tunable.unit in ("0/1", BYTES) else f" {tunable.unit}"
    return f"{name}  {tunable.exact(before)} {arrow} {tunable.exact(after)}{unit}"


async def _restore(ui: FlowSession) -> None:
    control = ui.backend.control
    ours = [s for s in await in_daemon_thread(control.list) if s.set_by_us is not None]
    kept = (await in_daemon_thread(control.past)).holds
    foreign = [name for name in kept if name not in BY_NAME]
    if not kept:
        await in_daemon_thread(control.check_saved)
        raise ZconsoleError("nothing to restore: no tunable was set here")
    changes = [_change(ui, s.tunable.name, s.value, s.original) for s in ours if s.ours]
    said = _will_set(ui, [*changes, *(f"{name}  set by another version" for name in foreign)])
    changed = [f"{s.tunable.name}  {s.tunable.exact(s.value)}" for s in ours if not s.ours]
    said += part("Stays: changed by somebody else since", changed, "dim")
    ends = _ends_autopilot(ui, (s.tunable.name for s in ours if s.ours))
    others = {  # held by another running console
        s.tunable.name: s.hold
        for s in ours
        if s.hold and s.hold.by is Setter.CONSOLE and s.hold.process and not s.hold.own
    }
    held = [f"{', '.join(names)}: {text}" for text, names in grouped(others).items()]
    said += part("Warnings", [ends, *held], "warning")

    async def _run(_: str | None) -> AsyncIterator[Span]:
        for done in await in_daemon_thread(partial(control.restore, ui.backend.clock())):
            yield Span(f"{done.name} {done.text}", "notice" if done.put_back else "warning")

    await ui.confirm_change("Restore the values set here", said, _run, "zconsole tunables restore")


async def _switch_restoring(ui: FlowSession) -> None:
    """Switch when the tunables set from here are restored: at the scan's end, or in another way."""
    if not (guid := _guid(ui)):
        raise ZconsoleError("cannot restore at the scan's end: this pool's GUID is unknown")
    if ui.denied:
        raise ZconsoleError(ui.denied)
    held = await in_daemon_thread(ui.backend.control.until, guid)
    ui.app.notify(f"Each value set here is {promise(held, ui.scans())}")


def likely_limit(frame: Frame) -> str | None:
    """Return the limit of the running scan, a key of LIFTS; None if unclear or none helps."""
    scan = frame.scan.scan if frame.scan else None
    if scan is None or scan.state != "running" or frame.limit is None:
        return None
    if frame.limit.suggestion.act == "restore" or frame.limit.is_out_of_reach:
        return None
    if frame.limit.cause not in ("throttle", "new-disk"):
        return _LIFTED.get(frame.limit.cause)
    name, usual = frame.limit.suggestion.tunable, "scan-reads"
    usual = "rebuild" if scan.function == "rebuild" else usual
    return next((limit for limit, values in LIMITS.items() if name in values), usual)


def hopeless(frame: Frame) -> str | None:
    """Explain why tunables hardly make the scan faster, and their cost; None if one might help."""
    if frame.limit is None or not frame.limit.is_out_of_reach:
        return None
    disks = frame.limit.cause not in _NO_DISK
    more = "little to gain, and latency rises" if disks else "no tunable helps"
    return f"{frame.limit.text}: {more}"


EXAMPLE = "20ms, or 20ms 22:00-06:00=100ms"
COMMAND = "zconsole tunables hold-latency"


async def hold_flow(ui: FlowSession) -> None:
    """Confirm and start the autopilot, or stop the one that runs, whoever started it.

    Raises ZconsoleError if nothing scans, or if latencies or tunables can't be read.
    """
    if status := await ui.backend.autopilots.status():
        await _stop(ui, status)
        return
    _planned(ui, order(["1s"]))  # a trial target: report obstacles before anything is asked

    def _read(answer: str) -> HoldOrder:
        words = answer.split()
        if bare := without_unit(words):  # ms is usual, but s would be 1000 times as long
            raise UsageError(f"{bare} has no unit: write {bare}ms or {bare}s")
        return order(words)

    question = TextQuestion("LIMIT APPLICATION LATENCY", partial(_asked, ui), EXAMPLE)
    if (wanted := await ui.ask(question, _read)) is not None:
        await _start(ui, wanted)


def running(ui: FlowSession) -> str:
    """Describe the state of the autopilot; empty if none runs."""
    key, status = ui.look.keys.shown("hold-latency"), ui.autopilot
    if status is None:
        return ""
    reached, at = ui.effects.latency(), ui.backend.clock()
    if status.misses(reached, at):
        return (
            f"Autopilot: target {status.held} can't be reached, scans can't go slower; now"
            f" {present(reached)}. {_cost(ui, status)} {key} stops it."
        )
    rests = ", near the target: nothing to change" * status.rests(reached, at)
    said = f"Autopilot: {status}; now {present(reached)}{rests}."
    return f"{said} {key} stops it; it also ends when you set a tunable that it sets."


def _cost(ui: FlowSession, status: Status) -> str:
    """Describe what the autopilot costs the scan on show, or else the first scan that it steers."""
    frames = (ui.frame, *map(ui.frame_of, status.pools))
    steered = (each for each in frames if each and each.scan and each.pool in status.pools)
    frame = next(steered, None)
    lost = ui.effects.rate_lost(frame) if frame else None
    if frame is None or frame.scan is None or not lost:
        return "Cost: unknown, no faster rate was seen."
    rate, best = frame.scan.issue_rate, frame.effects.best_rate
    rates = " against ".join(map(ui.look.rate, (rate, best)))
    left = frame.scan.left
    eta = f"; ETA {duration(left)} against about {duration(left * (1 - lost))}" if left else ""
    return f"Cost: {rates} at best (-{percent(lost)}){eta}."


def _asked(ui: FlowSession, look: DisplayFormat, width: int) -> Lines:
    texts = (
        "Type the latency that 95 % of the applications' synchronous requests should stay within,"
        " with its unit (20ms). Scans then go as fast as that allows. Values for times of the day"
        " may follow (22:00-06:00=100ms).",
        f"{_now(ui)} Less than now slows the scan, more lets it go faster.",
        "A pool that can't lose another device is not slowed below OpenZFS's defaults, whatever the"
        f" latency. To allow that, add {BELOW}.",
    )
    return tuple(line for text in texts for line in look.wrapped(text, width, "", "  "))


def _now(ui: FlowSession) -> str:
    return f"Now {present(ui.effects.latency())}."


def _planned(ui: FlowSession, wanted: HoldOrder) -> HoldPlan:
    frames = [frame for frame in ui.app.view_state.frames if frame.sample]
    left = {f.seen.name: f.scan.left if f.scan else None for f in frames}
    pools, parameters = [frame.seen for frame in frames], ui.backend.parameters
    return plan(wanted, pools, parameters, left, watched=True)


async def _start(ui: FlowSession, wanted: HoldOrder) -> None:
    made = _planned(ui, wanted)
    said = part("Warnings", made.warnings, "warning")
    said += part("Pools that scan now", made.pools, "bold")
    said += part("What it does", (*made.effects, _now(ui)), "")
    said += part(
        "Sets these, step by step; each step is logged and marked on the graph", made.sets, ""
    )

    async def _run(_: str | None) -> AsyncIterator[Span]:
        await ui.backend.autopilots.start(wanted)
        yield Span(f"Autopilot started: target {wanted.targets}", "notice")

    words = " ".join((COMMAND, *wanted.words))
    typed = BELOW if wanted.below else None
    await ui.confirm_change(f"Hold latency at {wanted.targets}", said, _run, words, typed)


async def _stop(ui: FlowSession, status: Status) -> None:
    runs: tuple[str, ...] = (f"Autopilot: {status}.", _now(ui))
    if status.misses(ui.effects.latency(), ui.backend.clock()):
        runs = (*runs, f"The target can't be reached. {_cost(ui, status)}")
    said = part("Runs now", runs, "bold")
    said += part("Steers", status.pools, "")
    said += part("What it does", ("Ends the autopilot and restores the original values.",), "")

    async def _run(_: str | None) -> AsyncIterator[Span]:
        stopped = await ui.backend.autopilots.stop()
        yield Span(
            "The original values are restored" if stopped else "It had ended already", "notice"
        )

    await ui.confirm_change("Stop the autopilot", said, _run, f"{COMMAND} off")
