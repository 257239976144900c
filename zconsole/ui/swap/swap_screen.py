"""The screen of a checklist: updated with every sample, controlled by keys.

Leaving the screen leaves the checklist open.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import Path
from time import monotonic
from types import MappingProxyType
from typing import Any

from zconsole.actions.facts import situation_of
from zconsole.actions.plan import ActionPlan, Facts
from zconsole.errors import ZconsoleError
from zconsole.keyed_text import KeyedText
from zconsole.swap.disk import DONE, REPLACE_FIRST, Checklist, MachineView, SwapDisk, sentence
from zconsole.swap.report import markdown
from zconsole.swap.stage import SwapStage, light_words, plan_light
from zconsole.swap.steps import comes_before
from zconsole.swap.store import WHILE, Guide, Hands
from zconsole.swap.watch import current
from zconsole.system.daemon_thread import in_daemon_thread
from zconsole.ui.actions.plan_lines import said_lines
from zconsole.ui.actions.session import FlowSession
from zconsole.ui.dialogs.confirm import Confirmation, question
from zconsole.ui.dialogs.screens import Dialog, Offers, PickList
from zconsole.ui.display_format import DisplayFormat
from zconsole.ui.messages import PAGE
from zconsole.ui.new_file import keep_new
from zconsole.ui.panes.help import key_row, short_key
from zconsole.ui.swap.swap_lines import eta_note, restored_note, scrub_note, swap_lines, swap_title
from zconsole.ui.themed_app import begin, begin_next
from zconsole.ui.widgets.draw import Lines, Span, joined
from zconsole.units import duration
from zconsole.zfs.zpool_output import ZpoolOutput

LOOK = 0.5
"""Seconds between checks for a new sample."""
HANDS = "Demo's hands"
DEMO = HANDS.upper()
TOLD = 3.0
"""Seconds for which the demo shows how much time passes."""
GIVE_UP = "give up"
"""The words to type to give up a swap that leaves something undone."""
NO_WAY_BACK = "There is nothing to undo here."


class SwapScreen(Dialog[SwapDisk | None], groups=("Swap",)):
    """The screen of one checklist, which stays open when the screen is left.

    Its result is a device of another pool to swap next, or None.
    """

    def __init__(self, ui: FlowSession, guide: Guide) -> None:
        super().__init__()
        self._ui = ui
        self._guide = guide
        self.stage: SwapStage | None = None
        """The current step, as of the newest look; None before the first."""
        self._machine: MachineView | None = None
        """The machine as of the newest look."""
        self._turn = asyncio.Lock()
        """Held by what writes: that may wait for a disk, so it is done in a thread, one by one."""
        self._said = ""
        self._saved = ""
        """Path of the saved report."""
        self._unwanted = False
        """Whether the operator said that no report is wanted."""
        self._seen: tuple[float, float | None] | None = None
        """Times of the sample, and of the reading, that were seen last."""
        self._stepped = float("-inf")
        """Time of the last change of steps, in seconds of ``monotonic``."""
        self._looking = self._due = False
        """Whether a look is under way, and whether another is due after it."""

    @property
    def checklist(self) -> Checklist:
        """The checklist as last saved or, if another process leads, as last seen here."""
        return self._guide.checklist

    @property
    def hold(self) -> str:
        """Why this console may not act on it; empty when it may."""
        other = "" if self._guide.leads else "another console leads this checklist"
        return self._ui.denied or other

    @property
    def filed(self) -> bool:
        """Whether the report, the last step, is saved or not wanted."""
        return self._unwanted or bool(self._saved)

    def on_mount(self) -> None:
        """Draw, and update at intervals."""
        self.set_interval(LOOK, self._again)
        self.look_again()

    def on_screen_resume(self) -> None:
        """Update at once after a dialog over this screen."""
        self.look_again()

    def _again(self) -> None:
        """Update if there is a new sample, or none at all."""
        frame = self._ui.frame_of(self.checklist.pool)
        # A suspended pool gives no new sample, but the return of its disks must be seen.
        seen = (frame.t, frame.looked) if frame is not None else None
        if seen != self._seen or seen is None:
            self._seen = seen
            before = self.stage
            if before is not None and (stage := self._advanced(before)) is not before:
                self._show_stage(stage)
                self.update()
            self.look_again()

    def look_again(self) -> None:
        """Update the step, unless a plan is running: its result is logged only afterwards.

        One look runs at a time, followed by one more for all requests meanwhile: reading the disks
        may take seconds, and queued looks would show outdated states.
        """
        self._due = True
        if self._may_look() and not self._looking:
            begin(self, self._look_while_due, group="swap-look", exit_on_error=False)

    def _may_look(self) -> bool:
        return self.is_attached and self.app.screen is self and not self._ui.under_way

    async def _look_while_due(self) -> None:
        self._looking = True
        try:
            while self._due and self._may_look():
                self._due = False
                await self._look()
        finally:
            self._looking = False

    async def _look(self) -> None:
        try:
            await self.read()
        except ZconsoleError as error:
            self._said = str(error)
        self.update()

    def _show_stage(self, after: SwapStage) -> None:
        """Take over the current step, with what changes on the screen if it is a new one."""
        before, self.stage = self.stage, after
        if before is None:
            return
        if before.title != after.title:
            self._said = ""  # the message was about the previous step
            # Messages about it go, too, once they were read or have lasted through a step.
            now = monotonic()
            self.app.messages.forget_before(self, max(self._stepped, now - PAGE))
            self._stepped = now
            # A new step is read from its top.
            self.text.edge(-1)
        if after.over and not before.over:
            self._saved = ""  # the saved report lacks the end
            # The end says it, and a message below the list of what happened reads as part of it.
            self._ui.app.withdraw((self.checklist.pool, "scrub"))

    async def read(self) -> None:
        """Read the current step, and save what is new. Raises ZconsoleError."""
        async with self._turn:
            view = await self._read_machine()
            if self._ui.under_way:
                return  # the plan's result is not logged yet: without it, the machine is misread
            now = self._ui.backend.clock()
            stage = await in_daemon_thread(partial(self._guide.look, view, now))
            stage = self._advanced(stage)
            self._show_stage(stage)
            self._ui.swaps.saw(self.checklist, stage)

    def _advanced(self, stage: SwapStage) -> SwapStage:
        """Return the step after the replace step if the newest sample shows that it has begun.

        A look at the machine may take half a minute, and compares the pool as it was at its start.
        """
        last, frame = self._machine, self._ui.frame_of(self.checklist.pool)
        if last is None or frame is None or stage.step != "replace" or stage.alarm:
            return stage
        if self._ui.under_way or frame.suspended:
            return stage
        try:
            seen = last.having(situation_of(frame, last.situation.facts))
        except ZconsoleError:
            return stage
        found = current(self.checklist, seen, self._ui.backend.clock())
        begun = found.over or not comes_before(self.checklist, found.step, "replace")
        return found if begun and not found.alarm else stage

    async def _read_machine(self) -> MachineView | None:
        """Read the state of the machine; None while the pool is not imported."""
        view = await self._ui.swaps.session.view_of(self.checklist)
        self._machine = view or self._machine
        return view

    async def _write(self, change: Callable[..., None], *args: object) -> None:
        """Call a method of the guide with the time and ``args``."""
        async with self._turn:
            await in_daemon_thread(change, self._ui.backend.clock(), *args)

    # Drawing

    def draw(self) -> None:
        """Draw the checklist as last read."""
        stage = self.stage
        # A report that is saved on the way isn't the last step.
        filed = bool(self._saved) and stage is not None and stage.over
        lines: Lines = ((Span(" looking at the machine", "dim"),),)
        if stage is not None:
            notes, width = tuple(self._notes(stage)), self.app.size.width
            lines = swap_lines(self.checklist, stage, notes, self.look, width, filed)
        self.text.show(lines, swap_title(self.checklist, stage, self.look, filed))
        self.footer.show_below(self.text, self._hint())

    def _notes(self, stage: SwapStage) -> Iterator[Span]:
        if self.hold:
            yield Span(f"Watching only: {self.hold}.", "warning")
        if self._guide.problem:
            what = "can't be read now" if self.hold else "is not kept"
            yield Span(f"This checklist {what}: {self._guide.problem}", "warning")
        swap = self.checklist
        frame = self._ui.frame_of(swap.pool)
        scan = frame.scan if frame is not None else None
        if scan is not None and (said := eta_note(scan, stage, swap)):
            yield Span(said, "notice")
        if frame is not None:
            yield from scrub_note(frame, stage)
        if stage.over and frame is not None:
            yield from restored_note(frame, swap)
        if stage.over and not self._saved:
            yield Span(f"A saved report is a new file in {report_directory()}.")
        if self._saved:
            copies = KeyedText("", " ({keys} copies its path)", "copy")
            yield Span(f"Report saved: {self._saved}" + copies, "good")

    def _hint(self) -> Lines:
        width, look = self.app.size.width, self.look
        said = look.wrapped(self._said, width, "warning") if self._said else ()
        offers = self._offered()
        # Labels of keys that differ in this step from the usual ones.
        stage, words = self.stage, dict[str, str]()
        if stage is not None and stage.plan is None:
            over = {"do": "save report", "stop": "no report"}
            words = over if stage.over else {"do": "look again"}
        if stage is not None and stage.answers:
            words["answer"] = stage.answers[0].key if len(stage.answers) == 1 else "choose"
        if stage is not None and stage.back is not None:
            words["undo"] = stage.back.key
        keys = [key for key in look.keys.of("Swap") if key.name in offers]
        if stage is not None and stage.alarm and stage.plan is None:
            # The headline says to undo first, and a narrow row drops its last keys.
            keys.sort(key=lambda key: key.name != "undo")
        parts = [
            short_key(key._replace(action=f"screen.{key.name}"), words.get(key.name))
            for key in keys
        ]
        ends = [short_key(look.keys.titled("help")), short_key(look.keys.titled("back"), "leave")]
        return (*said, key_row(parts, joined(ends, "  ", width)[0], width))

    def _offered(self) -> frozenset[str]:
        """Return the actions available in the present step."""
        swap, stage, hold = self.checklist, self.stage, bool(self.hold)
        if stage is None or (hold and not stage.over):
            return frozenset({"report"})
        if stage.over:
            able = {
                "do": not self._saved,
                "stop": not self._saved and swap.state == DONE,
                "highlight": swap.lit and not hold,
                "other_pool": bool(stage.then) and not hold,
            }
        else:
            plans = (stage.plan, None if stage.back is None else stage.back.plan)
            switches = any(plan is not None and plan.action == "locate" for plan in plans)
            # While another disk has to be put back, this bay must not be lit.
            lights = not (switches or stage.alarm or _is_elsewhere(swap, stage))
            able = {
                "do": stage.plan.refused is None if stage.plan is not None else stage.alarm,
                "answer": bool(stage.answers),
                "undo": stage.back is not None and not stage.back.closes,
                "highlight": bool(swap.old.light) and lights,
                "report": True,
                "stop": True,
            }
        return frozenset(action for action, can in able.items() if can)

    def copies(self) -> Offers:
        """Return what can be copied: the saved report's path, else commands and serial number."""
        swap, stage = self.checklist, self.stage
        plan = stage.plan if stage else None
        if self._saved:
            return (("path", self._saved),)
        offers = (
            *(("command", step.command) for step in (plan.steps if plan else ())),
            ("serial", swap.old.serial),
        )
        return tuple((what, text) for what, text in offers if text)

    # Keys

    def action_do(self) -> None:
        """Do the step: confirm its plan, answer it, look again, or save the report."""
        stage = self.stage
        if stage is None:
            return
        if stage.plan is not None:
            self._ask(partial(self._confirm, stage, stage.plan))
        elif stage.alarm:
            self._say(f"Looked again: still waiting for {stage.waits}.")
            self.look_again()
        elif stage.answers:
            self.action_answer()
        elif stage.over:
            self.action_report()
        else:
            self._say(f"Still waiting for: {stage.waits}.")

    def action_answer(self) -> None:
        """Ask to confirm one of the step's answers."""
        stage = self.stage
        if stage is not None and stage.answers:
            self._ask(partial(self._answer, stage))
        else:
            self._say("Nothing to confirm here.")

    def action_undo(self) -> None:
        """Undo: confirm its plan, or say what to do by hand."""
        stage = self.stage
        if stage is None:
            return
        if stage.back is None or stage.back.closes:
            self._say(f"{stage.final}." if stage.final else NO_WAY_BACK)
        elif stage.back.plan is not None:
            self._ask(partial(self._confirm, stage, stage.back.plan))
        else:
            self._say(f"{sentence(stage.back.text)}.")

    def action_highlight(self) -> None:
        """Switch the light of the bay on or off."""
        swap, stage = self.checklist, self.stage
        if not swap.old.light:
            self._say("The bay has no light that can be switched.")
        elif stage is not None and _is_elsewhere(swap, stage):
            new = swap.new
            self._say(
                f"{swap.old.spot} is not touched yet."
                if new is None
                else f"The disk to compare is in {new.spot}: zconsole light on {new.whole}."
            )
        elif stage is not None and stage.alarm:
            self._say(f"The light of {swap.old.spot} stays until the alarm is over.")
        elif stage is not None and (swap.lit or not stage.over):
            logged = stage if swap.lit else replace(stage, step="light")
            self._ask(partial(self._light, logged))

    def action_stop(self) -> None:
        """Ask, then close the checklist; a finished one is left without a report."""
        stage = self.stage
        if stage is not None and stage.over:
            self._unwanted = True
            self.dismiss(None)
        elif stage is not None:
            self._ask(partial(self._give_up, stage))

    def action_other_pool(self) -> None:
        """Leave to swap a device of another pool that was on the disk."""
        stage = self.stage
        if stage is not None and stage.over and stage.then:
            self.dismiss(stage.then[0])
        else:
            self._say("No other pool needs a swap here.")

    def action_report(self) -> None:
        """Save the report, but only one after the end.

        Allowed with --read-only, which is about pools.
        """
        if self.stage is not None and self.stage.over and self._saved:
            self._say(f"The report is saved: {self._saved}")
        else:
            begin_next(self.app, self._save, "swap-report")

    # Questions

    def _ask(self, question: Callable[[], Awaitable[None]]) -> None:
        """Ask a question if this console may act on the checklist; else say why not."""
        hold = self.hold
        if hold and hold != self._ui.denied:
            self._say(f"{sentence(hold)}: watching only.")
        else:
            begin(self, partial(self._guarded, question), group="swap-ask", exit_on_error=False)

    async def _guarded(self, question: Callable[[], Awaitable[None]]) -> None:
        """Ask a question, and show errors as a message."""
        try:
            await question()
        except ZconsoleError as error:
            self._say(str(error))

    async def _confirm(self, stage: SwapStage, plan: ActionPlan) -> None:
        """Show the plan with the step's warnings, and let it be run."""
        machine = await self._read_machine()
        facts = machine.situation.facts if machine else Facts()
        ran = partial(self._write, self._guide.ran, stage, plan)
        made = self._ui.confirmation(plan, facts, stage.paths, ran)
        # Warnings of the step do not apply to its light or to the way back.
        own = plan is stage.plan
        warned = [Span(sentence(text), "error") for text in stage.warnings if own]
        if stage.final and own:
            warned.append(Span(f"{stage.final}.", "warning"))

        def _body(look: DisplayFormat, width: int) -> Lines:
            return (*said_lines(warned, look, width), *made.body(look, width))

        await self._ui.confirmed(replace(made, body=_body))

    async def _answer(self, stage: SwapStage) -> None:
        """Ask the operator to confirm one of the step's answers."""
        questions: list[Confirmation] = []
        for answer in stage.answers:
            said = [Span(answer.means)]
            if answer.typed:  # other answers don't do what the step warns of
                said += [Span(sentence(text), "error") for text in stage.warnings]
            do = partial(self._write, self._guide.answer, answer)
            questions.append(self._question(answer.text, said, do, typed=answer.typed))
        await self._ui.confirmed(*questions)

    async def _give_up(self, stage: SwapStage) -> None:
        """Ask whether to close the checklist; a word must be typed if something is left undone."""
        back, swap = stage.back, self.checklist
        typed, said = None, [Span(f"{sentence(swap.undoable)}. You can save a report afterwards.")]
        if back is None or not back.closes:
            typed = GIVE_UP
            said = [
                Span("What was done stays as it is; the checklist ends here.", "warning"),
                *(Span(sentence(text), "error") for text in stage.undone),
            ]
            if back is not None:
                keys = KeyedText("Back", "{keys}", "back", "undo-step")
                undo = KeyedText("Back", "{keys}", "undo-step")
                said.append(Span("To undo it step by step instead: " + keys + "."))
                said.append(Span(undo + f" would now: {back.text}."))
        ask = partial(self._question, verb="Give up", typed=typed)
        if not swap.lit:
            await self._ui.confirmed(ask("Give up this swap?", said, self._close))
            return
        off = Span(f"The light of {swap.old.spot} goes off: the state found before is restored.")
        rest = [span for span in said if span.text != sentence(light_words(swap))]
        dark = ask("Give up this swap, and switch the light off?", [off, *rest], self._close)
        await self._ui.confirmed(
            replace(dark, run=partial(self._dark_and_close, replace(stage, step="light-off"))),
            ask("Give up this swap, and leave the light on?", said, self._close),
        )

    async def _dark_and_close(self, stage: SwapStage, _: str | None) -> AsyncIterator[Span]:
        """Switch the light off, then close the checklist; it stays open if the light stays on."""
        plan = await self._light_plan()
        ran = partial(self._write, self._guide.ran, stage, plan)
        async for said in self._ui.confirmation(plan, Facts(), (), ran).run(None):
            yield said
        if self.checklist.lit:
            raise ZconsoleError("The light is still on, and the checklist open.")
        await self._close()

    async def _close(self) -> None:
        """Close the checklist with what is undone now, unless it ended meanwhile."""
        # A disk may have been pulled while the question was open. A machine that can't be read must
        # not keep the checklist open.
        with suppress(ZconsoleError):
            await self.read()
        stage = self.stage
        if stage is not None and not stage.over:
            await self._write(self._guide.close, stage.undone)

    async def _light(self, stage: SwapStage) -> None:
        await self._confirm(stage, await self._light_plan())

    async def _light_plan(self) -> ActionPlan:
        """Return the plan that toggles the bay's light. Raises ZconsoleError."""
        machine, swap = await self._read_machine(), self.checklist
        if machine is None:
            raise ZconsoleError(f"{swap.pool} is not imported")
        return plan_light(machine.situation, swap.old, on=not swap.lit)

    def _question(
        self, title: str, said: list[Span], do: Callable[[], Awaitable[None]], **more: Any
    ) -> Confirmation:
        """Return a question that can only be read if nothing may be changed."""
        return question(title, said, do, barred=bool(self._ui.denied), **more)

    # The report

    async def _save(self) -> None:
        """Write the report to a new file in the current directory."""
        swap = self.checklist
        zone = self.look.zone
        when = datetime.fromtimestamp(self._ui.backend.clock(), zone)
        outputs: Sequence[ZpoolOutput] = ()
        with suppress(ZconsoleError):
            outputs = await self._ui.feed.zpool_outputs(swap.pool)
        text = markdown(swap, zone, outputs)
        try:
            save = partial(keep_new, text, Path.cwd(), when, "report", "md")
            path = await in_daemon_thread(save)
        except OSError as error:
            self._say(f"no report: {error.strerror}")
        except ZconsoleError as error:
            self._say(str(error))
        else:
            self._saved = str(path)
            self._say("")

    def _say(self, text: str) -> None:
        """Show a message above the keys."""
        self._said = text
        self.update()


class DemoSwapScreen(SwapScreen, groups=("Swap", HANDS)):
    """The screen for a simulated shelf, with keys to pull and insert disks."""

    def __init__(self, ui: FlowSession, guide: Guide, hands: Hands) -> None:
        super().__init__(ui, guide)
        self._hands = hands

    def _hint(self) -> Lines:
        width, look = self.app.size.width, self.look
        frame = self._ui.frame_of(self.checklist.pool)
        runs = frame is not None and any(view.scan.active for view in frame.scans)
        words = {"wait": "skip to its end" if runs else f"skip {duration(WHILE)}"}
        parts = [
            short_key(key._replace(action=f"screen.{key.name}"), words.get(key.name))
            for key in look.keys.of(HANDS)
        ]
        parts.insert(0, (Span(f" {HANDS} ", "badge-notice"),))
        hands = [(Span(" "), *line) for line in joined(parts, "  ", width - 2)]
        return (*hands, *super()._hint())

    def action_pull(self) -> None:
        """Pull the disk of a bay: any disk, also the wrong one."""
        self._hand(self._pull)

    def action_insert(self) -> None:
        """Insert a disk of the drawer into an empty bay."""
        self._hand(self._insert)

    def action_wait(self) -> None:
        """Skip to the end of the running scan, else a while ahead."""
        said = self._hands.wait(self.checklist.pool)
        self.app.answer(said, TOLD)

    def _hand(self, do: Callable[[str, str], Awaitable[str]]) -> None:
        begin(self, partial(self._handed, do), group="swap-ask", exit_on_error=False)

    async def _handed(self, do: Callable[[str, str], Awaitable[str]]) -> None:
        """Run a simulated action; offers the disk that was pulled by mistake first."""
        swap = self.checklist
        disk, serial = swap.old, ""
        if swap.wrong:
            disk, serial = swap.wrong[0], swap.wrong[0].serial
        try:
            said = await do(disk.bay, serial)
        except ZconsoleError as error:
            said = str(error)
        if said:
            self._say(said)

    async def _pull(self, bay: str, _: str) -> str:
        """Ask for the bay, starting at ``bay``, and pull its disk; return what was done, or ""."""
        full = {name: disk for name, disk in self._hands.bays().items() if disk}
        rows, names = [f"{name}  {disk}" for name, disk in full.items()], [*full]
        start = names.index(bay) if bay in full else 0
        picked = await self._ui.pick(text_list(f"{DEMO}  pull which disk?", rows, start))
        return "" if picked is None else self._hands.pull(names[picked])

    async def _insert(self, bay: str, serial: str) -> str:
        """Ask for the disk and its bay, and insert it; return what was done, or "".

        The cursor starts at the disk of this ``serial`` number and at this ``bay``, if present.
        Raises ZconsoleError if there is no disk or no empty bay.
        """
        drawer = self._hands.drawer()
        free = [name for name, disk in self._hands.bays().items() if not disk]
        if not drawer or not free:
            raise ZconsoleError("no disk lies in the drawer" if free else "no bay is empty")
        at = next((n for n, each in enumerate(drawer) if serial and each.endswith(serial)), 0)
        start = free.index(bay) if bay in free else 0
        title = f"{DEMO}  insert which disk of the drawer?"
        while (disk := await self._ui.pick(text_list(title, drawer, at))) is not None:
            place = await self._ui.pick(text_list(f"{DEMO}  into which bay?", free, start))
            if place is not None:
                return self._hands.insert(disk, free[place])
            at = disk
        return ""


def _is_elsewhere(swap: Checklist, stage: SwapStage) -> bool:
    """Return whether the step is about a new disk in another bay than the old one."""
    if stage.step == "insert":
        return swap.mode == REPLACE_FIRST and swap.pulled is None
    return stage.step == "replace" and swap.new is not None and swap.new.spot != swap.old.spot


def text_list(
    title: str,
    rows: Sequence[str],
    start: int = 0,
    abouts: Sequence[Sequence[str]] | None = None,
    barred: Mapping[int, str] = MappingProxyType({}),
) -> PickList:
    """Return a list of these rows.

    ``abouts``: texts shown below the list for each row, with the whole row; None shows nothing.
    ``barred``: rows that can't be chosen, with the reason.
    """

    def _lines(look: DisplayFormat, width: int) -> Lines:
        return tuple(look.crop((Span(f"  {look.text(row)}"),), width) for row in rows)

    def _about(index: int, look: DisplayFormat, width: int) -> Lines:
        texts = (rows[index], *(abouts[index] if abouts else ()))
        return tuple(line for text in texts for line in look.wrapped(text, width))

    about = None if abouts is None else _about
    return PickList(title, _lines, start, about, barred=barred)


def report_directory() -> str:
    """Return the directory of the report, in words."""
    try:
        return str(Path.cwd())
    except OSError:  # the directory was removed; saving will fail and say so
        return "the directory in which zconsole was started"
