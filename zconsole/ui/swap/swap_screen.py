"""The screen of a checklist: updated with every sample, controlled by keys.

Leaving the screen leaves the checklist open.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType

from zconsole.actions.plan import ActionPlan, Facts
from zconsole.errors import ZconsoleError
from zconsole.keyed_text import KeyedText
from zconsole.swap.disk import DONE, REPLACE_FIRST, Checklist, SwapDisk, sentence
from zconsole.swap.report import markdown
from zconsole.swap.stage import SwapStage
from zconsole.swap.store import Hands
from zconsole.swap.way_back import light_words, plan_light
from zconsole.system.daemon_thread import in_daemon_thread
from zconsole.ui.actions.plan_lines import said_lines, wrapped
from zconsole.ui.actions.session import FlowSession
from zconsole.ui.dialogs.confirm import Confirmation, ConfirmScreen
from zconsole.ui.dialogs.screens import Dialog, Offers, PickScreen
from zconsole.ui.keys import bindings
from zconsole.ui.new_file import keep_new
from zconsole.ui.panes.help import key_row, short_key
from zconsole.ui.swap.followed import FollowedSwap
from zconsole.ui.swap.swap_lines import eta_note, restored_note, swap_lines, swap_title
from zconsole.ui.themed_app import begin
from zconsole.ui.widgets.draw import Line, Span, crop, joined
from zconsole.ui.widgets.lines_view import FooterView, LinesView

LOOK = 0.5
"""Seconds between checks for a new sample."""
HANDS = "Demo's hands"
DEMO = HANDS.upper()
TOLD = 3.0
"""Seconds for which the demo shows how much time passes."""
GIVE_UP = "give up"
"""The words to type to give up a swap that leaves something undone."""
NO_WAY_BACK = "There is nothing to undo here."


class SwapScreen(Dialog[SwapDisk | None]):
    """The screen of one checklist, which stays open when the screen is left.

    Its result is a device of another pool to swap next, or None.
    """

    groups: ClassVar[tuple[str, ...]] = ("Swap",)
    BINDINGS: ClassVar[list[BindingType]] = bindings("Swap")

    def __init__(self, context: FlowSession, followed: FollowedSwap) -> None:
        super().__init__()
        self._flow = context
        self._followed = followed
        self._said = ""
        self._saved = ""
        """Path of the saved report."""
        self._unwanted = False
        """Whether the operator said that no report is wanted."""
        self._seen: tuple[float, float | None] | None = None
        """Times of the sample, and of the reading, that were seen last."""
        self._looking = self._due = False
        """Whether a look is under way, and whether another is due after it."""

    @property
    def filed(self) -> bool:
        """Whether the report, the last step, is saved or not wanted."""
        return self._unwanted or bool(self._saved)

    def compose(self) -> ComposeResult:
        """Create the view of the checklist and the row of keys."""
        yield LinesView(id="swap", focusable=True)
        yield FooterView(id="hint")

    def on_mount(self) -> None:
        """Draw, and update at intervals."""
        self.query_one("#swap", LinesView).focus()
        self.set_interval(LOOK, self._again)
        self.look_again()

    def on_screen_resume(self) -> None:
        """Update at once after a dialog over this screen."""
        self.look_again()

    def _again(self) -> None:
        """Update if there is a new sample, or none at all."""
        frame = self._flow.frame_of(self._followed.checklist.pool)
        # A suspended pool gives no new sample, but the return of its disks must be seen.
        seen = (frame.t, frame.looked) if frame is not None else None
        if seen != self._seen or seen is None:
            self._seen = seen
            before = self._followed.stage
            self._followed.advance()
            if self._followed.stage is not before:
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
        return self.is_attached and self.app.screen is self and not self._flow.under_way

    async def _look_while_due(self) -> None:
        self._looking = True
        try:
            while self._due and self._may_look():
                self._due = False
                await self._look()
        finally:
            self._looking = False

    async def _look(self) -> None:
        before = self._followed.stage
        try:
            await self._followed.look()
        except ZconsoleError as error:
            self._said = str(error)
        after = self._followed.stage
        if before is not None and after is not None and before.title != after.title:
            self._said = ""  # the message was about the previous step
            # A new step is read from its top.
            self.query_one("#swap", LinesView).edge(-1)
        if before is not None and after is not None and after.over and not before.over:
            self._saved = ""  # the saved report lacks the end
        if self.is_attached:
            self.update()

    # Drawing

    def draw(self) -> None:
        """Draw the checklist as last read."""
        view, width = self.query_one("#swap", LinesView), self.app.size.width
        followed, look = self._followed, self._flow.look
        stage = followed.stage
        filed = bool(self._saved)
        title = swap_title(followed.checklist, stage, look, filed)
        if stage is None:
            view.show(((Span(" looking at the machine", "dim"),),), title)
        else:
            notes = tuple(self._notes())
            view.show(swap_lines(followed.checklist, stage, notes, look, width, filed), title)
        self.query_one("#hint", FooterView).show_below(view, self._hint())

    def _notes(self) -> Iterator[Span]:
        followed, stage = self._followed, self._followed.stage
        if followed.hold:
            yield Span(f"Watching only: {followed.hold}.", "warning")
        if followed.guide.problem:
            what = "can't be read now" if followed.hold else "is not kept"
            yield Span(f"This checklist {what}: {followed.guide.problem}", "warning")
        frame, swap = self._flow.frame_of(followed.checklist.pool), followed.checklist
        scan = frame.scan if frame is not None else None
        if scan is not None and (said := eta_note(scan, stage, swap)):
            yield Span(said, "notice")
        if stage is not None and stage.over and frame is not None:
            yield from restored_note(frame, swap)
        if stage is not None and stage.over and not self._saved:
            yield Span(f"A saved report is a new file in {report_directory()}.")
        if self._saved:
            copies = KeyedText("", " ({keys} copies its path)", "copy")
            yield Span(f"Report saved: {self._saved}" + copies, "good")

    def _hint(self) -> tuple[Line, ...]:
        width, look = self.app.size.width, self._flow.look
        said = wrapped(self._said, "warning", look, width, " ") if self._said else ()
        offers = offered(self._followed, bool(self._saved))
        # Labels of keys that differ in this step from the usual ones.
        stage, words = self._followed.stage, dict[str, str]()
        if stage is not None and stage.plan is None:
            over = {"do": "save report", "stop": "no report"}
            words = over if stage.over else {"do": "look again"}
        if stage is not None and stage.answers:
            words["answer"] = stage.answers[0].key if len(stage.answers) == 1 else "choose"
        if stage is not None and stage.back is not None:
            words["undo"] = stage.back.key
        keys = (key for key in look.keys.of("Swap") if key.name in offers)
        parts = [
            short_key(key._replace(action=f"screen.{key.name}"), words.get(key.name))
            for key in keys
        ]
        ends = [short_key(look.keys.titled("help")), short_key(look.keys.titled("back"), "leave")]
        return (*said, key_row(parts, joined(ends, "  ", width)[0], width))

    def copies(self) -> Offers:
        """Return what can be copied: the saved report's path, else commands and serial number."""
        swap, stage = self._followed.checklist, self._followed.stage
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
        stage = self._followed.stage
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
        stage = self._followed.stage
        if stage is not None and stage.answers:
            self._ask(partial(self._answer, stage))
        else:
            self._say("Nothing to confirm here.")

    def action_undo(self) -> None:
        """Undo: confirm its plan, or say what to do by hand."""
        stage = self._followed.stage
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
        swap, stage = self._followed.checklist, self._followed.stage
        if not swap.old.light:
            self._say("The bay has no light that can be switched.")
        elif stage is not None and elsewhere(swap, stage):
            new = swap.new
            self._say(
                f"{swap.old.spot} is not touched yet."
                if new is None
                else f"The disk to compare is in {new.spot}: zconsole light on {new.whole}."
            )
        elif stage is not None and stage.alarm:
            self._say(f"The light of {swap.old.spot} stays until the alarm is over.")
        elif stage is not None and (swap.lit or not stage.over):
            lit = self._followed.checklist.lit
            self._ask(partial(self._light, stage if lit else replace(stage, step="light")))

    def action_stop(self) -> None:
        """Ask, then close the checklist; a finished one is left without a report."""
        stage = self._followed.stage
        if stage is not None and stage.over:
            self._unwanted = True
            self.dismiss(None)
        elif stage is not None:
            self._ask(partial(self._give_up, stage))

    def action_other_pool(self) -> None:
        """Leave to swap a device of another pool that was on the disk."""
        stage = self._followed.stage
        if stage is not None and stage.over and stage.then:
            self.dismiss(stage.then[0])
        else:
            self._say("No other pool needs a swap here.")

    def action_report(self) -> None:
        """Save the report, but only one after the end.

        Allowed with --read-only, which is about pools.
        """
        over = self._followed.stage is not None and self._followed.stage.over
        if over and self._saved:
            self._say(f"The report is saved: {self._saved}")
        elif not any(w.group == "swap-report" and not w.is_finished for w in self.workers):
            begin(self, self._save, group="swap-report", exit_on_error=False)

    # Questions

    def _ask(self, question: Callable[[], Awaitable[None]]) -> None:
        """Ask a question if this console may act on the checklist; else say why not."""
        hold = self._followed.hold
        if hold and hold != self._flow.denied:
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
        situation = await self._followed.situation()
        facts = situation.facts if situation else Facts()
        ran = partial(self._followed.write, self._followed.guide.ran, stage, plan)
        made = self._flow.confirmation(plan, facts, stage.paths, ran)
        # Warnings of the step do not apply to its light or to the way back.
        own = plan is stage.plan
        warned = [Span(sentence(text), "error") for text in stage.warnings if own]
        if stage.final and own:
            warned.append(Span(f"{stage.final}.", "warning"))

        def _body(width: int) -> tuple[Line, ...]:
            return (*said_lines(warned, self._flow.look, width), *made.body(width))

        await self._put(replace(made, body=_body))

    async def _answer(self, stage: SwapStage) -> None:
        """Ask the operator to confirm one of the step's answers."""
        questions: list[Confirmation] = []
        for answer in stage.answers:
            said = [Span(answer.means)]
            if answer.typed:  # other answers don't do what the step warns of
                said += [Span(sentence(text), "error") for text in stage.warnings]
            do = partial(self._followed.write, self._followed.guide.answer, answer)
            questions.append(self._question(answer.text, said, do, answer.typed))
        await self._put(*questions)

    async def _give_up(self, stage: SwapStage) -> None:
        """Ask whether to close the checklist; a word must be typed if something is left undone."""
        back, swap = stage.back, self._followed.checklist
        typed, said = None, [Span("Nothing is left to undo. You can save a report afterwards.")]
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
        question = self._question("Give up this swap?", said, self._close, typed, verb="Give up")
        if not swap.lit:
            await self._put(question)
            return
        off = Span(f"The light of {swap.old.spot} goes off: the state found before is restored.")
        rest = [span for span in said if span.text not in map(sentence, light_words(swap))]
        title = "Give up this swap, and switch the light off?"
        dark = self._question(title, [off, *rest], self._close, typed, verb="Give up")
        await self._put(
            replace(dark, run=partial(self._dark_and_close, replace(stage, step="light-off"))),
            replace(question, title="Give up this swap, and leave the light on?"),
        )

    async def _dark_and_close(self, stage: SwapStage, _: str | None) -> AsyncIterator[Span]:
        """Switch the light off, then close the checklist; it stays open if the light stays on."""
        plan = await self._light_plan()
        ran = partial(self._followed.write, self._followed.guide.ran, stage, plan)
        async for said in self._flow.confirmation(plan, Facts(), (), ran).run(None):
            yield said
        if self._followed.checklist.lit:
            raise ZconsoleError("The light is still on, and the checklist open.")
        await self._close()

    async def _close(self) -> None:
        """Close the checklist with what is undone now, unless it ended meanwhile."""
        # A disk may have been pulled while the question was open. A machine that can't be read must
        # not keep the checklist open.
        with suppress(ZconsoleError):
            await self._followed.look()
        stage = self._followed.stage
        if stage is not None and not stage.over:
            await self._followed.write(self._followed.guide.close, stage.undone)

    async def _light(self, stage: SwapStage) -> None:
        await self._confirm(stage, await self._light_plan())

    async def _light_plan(self) -> ActionPlan:
        """Return the plan that toggles the bay's light. Raises ZconsoleError."""
        situation, swap = await self._followed.situation(), self._followed.checklist
        if situation is None:
            raise ZconsoleError(f"{swap.pool} is not imported")
        return plan_light(situation, swap.old, on=not swap.lit)

    def _question(
        self,
        title: str,
        said: list[Span],
        do: Callable[[], Awaitable[None]],
        typed: str | None,
        verb: str = "Yes",
    ) -> Confirmation:
        """Build a question whose answer runs no command; ``typed``: a word to type first."""

        def _body(width: int) -> tuple[Line, ...]:
            return said_lines(said, self._flow.look, width)

        async def _run(_: str | None) -> AsyncIterator[Span]:
            await do()
            yield Span("Done.")

        barred = bool(self._flow.denied)
        return Confirmation(title, _body, _run, typed, barred, verb=verb, leaves=True)

    async def _put(self, *questions: Confirmation) -> None:
        await self.app.push_screen_wait(ConfirmScreen(questions))

    # The report

    async def _save(self) -> None:
        """Write the report to a new file in the current directory."""
        swap = self._followed.checklist
        zone = self._flow.look.zone
        when = datetime.fromtimestamp(self._flow.backend.clock(), zone)
        text = markdown(swap, zone)
        try:
            save = partial(keep_new, text, Path.cwd(), when, "report", "md")
            path = await in_daemon_thread(save)
        except OSError as error:
            self._say(f"no report: {error.strerror}")
        else:
            self._saved = str(path)
            self._say("")

    def _say(self, text: str) -> None:
        """Show a message above the keys."""
        self._said = text
        if self.is_attached:
            self.update()


class DemoSwapScreen(SwapScreen):
    """The screen for a simulated shelf, with keys to pull and insert disks."""

    groups: ClassVar[tuple[str, ...]] = ("Swap", HANDS)
    BINDINGS: ClassVar[list[BindingType]] = bindings(HANDS)

    def __init__(self, context: FlowSession, followed: FollowedSwap, hands: Hands) -> None:
        super().__init__(context, followed)
        self._hands = hands

    def _hint(self) -> tuple[Line, ...]:
        width, look = self.app.size.width, self._flow.look
        keys = (key._replace(action=f"screen.{key.name}") for key in look.keys.of(HANDS))
        parts = [short_key(key) for key in keys]
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
        said = self._hands.wait(self._followed.checklist.pool)
        self._flow.app.withdraw(said.partition(":")[0])
        self.app.notify(said, timeout=TOLD, markup=False)

    def _hand(self, do: Callable[[str, str], Awaitable[str]]) -> None:
        begin(self, partial(self._handed, do), group="swap-ask", exit_on_error=False)

    async def _handed(self, do: Callable[[str, str], Awaitable[str]]) -> None:
        """Run a simulated action; offers the disk that was pulled by mistake first."""
        swap = self._followed.checklist
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
        full = [each for each in self._hands.bays() if each.disk]
        rows = [f"{each.bay}  {each.disk}" for each in full]
        start = next((n for n, each in enumerate(full) if each.bay == bay), 0)
        picked = await pick(self._flow, f"{DEMO}  pull which disk?", rows, start=start)
        return "" if picked is None else self._hands.pull(full[picked].bay)

    async def _insert(self, bay: str, serial: str) -> str:
        """Ask for the disk and its bay, and insert it; return what was done, or "".

        The cursor starts at the disk of this ``serial`` number and at this ``bay``, if present.
        Raises ZconsoleError if there is no disk or no empty bay.
        """
        drawer = self._hands.drawer()
        free = [each.bay for each in self._hands.bays() if not each.disk]
        if not drawer or not free:
            raise ZconsoleError("no disk lies in the drawer" if free else "no bay is empty")
        start = next((n for n, each in enumerate(drawer) if serial and each.endswith(serial)), 0)
        title = f"{DEMO}  insert which disk of the drawer?"
        disk = await pick(self._flow, title, drawer, start=start)
        if disk is None:
            return ""
        start = free.index(bay) if bay in free else 0
        place = await pick(self._flow, f"{DEMO}  into which bay?", free, start=start)
        return "" if place is None else self._hands.insert(disk, free[place])


def elsewhere(swap: Checklist, stage: SwapStage) -> bool:
    """Return whether the step is about a new disk in another bay than the old one."""
    if stage.step == "insert":
        return swap.mode == REPLACE_FIRST and swap.pulled is None
    return stage.step == "replace" and swap.new is not None and swap.new.spot != swap.old.spot


def offered(followed: FollowedSwap, filed: bool = False) -> frozenset[str]:
    """Return the actions available in the present step; ``filed``: the report is saved."""
    swap, stage, hold = followed.checklist, followed.stage, bool(followed.hold)
    if stage is None or (hold and not stage.over):
        return frozenset({"report"})
    if stage.over:
        able = {
            "do": not filed,
            "stop": not filed and swap.state == DONE,
            "highlight": swap.lit and not hold,
            "other_pool": bool(stage.then) and not hold,
        }
    else:
        able = {
            "do": stage.plan.refused is None if stage.plan is not None else stage.alarm,
            "answer": bool(stage.answers),
            "undo": stage.back is not None and not stage.back.closes,
            # While another disk has to be put back, this bay must not be lit.
            "highlight": bool(swap.old.light) and not stage.alarm and not elsewhere(swap, stage),
            "report": True,
            "stop": True,
        }
    return frozenset(action for action, can in able.items() if can)


async def pick(
    context: FlowSession,
    title: str,
    rows: Sequence[str],
    abouts: Sequence[Sequence[str]] | None = None,
    start: int = 0,
    barred: Mapping[int, str] | None = None,
) -> int | None:
    """Ask for one of these rows; return its index, or None if the list was left.

    ``abouts``: texts shown below the list for each row. None shows nothing below; an empty sequence
    shows the whole row. ``barred``: rows that can't be chosen, with the reason.
    """
    look = context.look

    def _lines(width: int) -> tuple[Line, ...]:
        made = ((Span(f"  {look.text(row)}"),) for row in rows)
        return tuple(crop(line, width, look.glyphs.ellipsis) for line in made)

    def _about(index: int, width: int) -> tuple[Line, ...]:
        texts = (rows[index], *(abouts[index] if abouts else ()))
        return tuple(line for text in texts for line in wrapped(text, "", look, width, " "))

    about = None if abouts is None else _about
    screen = PickScreen(title, _lines, start=start, wide=True, about=about, barred=barred)
    return await context.app.push_screen_wait(screen)


def report_directory() -> str:
    """Return the directory of the report, in words."""
    try:
        return str(Path.cwd())
    except OSError:  # the directory was removed; saving will fail and say so
        return "the directory in which zconsole was started"
