"""The dialogue of ``zconsole swap``: a question, its plan as text, an answer typed as a word."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import termios
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Protocol

from zconsole.actions.plan import ActionPlan
from zconsole.errors import ExitCode
from zconsole.swap.checklist import DONE
from zconsole.swap.guide import Guide
from zconsole.swap.session import SwapSession
from zconsole.swap.stage import SwapStage
from zconsole.system.printable import clean

PAUSE = 2.0
"""Seconds between two looks at the machine."""
SLOW = 5
"""… and how many times as many while a resilver is waited for: each look reads all disks."""
SELDOM = 15
"""Looks between two lines about a wait of which only a number has changed."""
YES, BACK, LEAVE = "yes", "back", "leave"


class DialogueLines(Protocol):
    """Where the dialogue is held."""

    def say(self, text: str) -> None:
        """Show a line."""

    async def line(self, seconds: float | None) -> str | None:
        """The next line typed; None when none comes in time. Raises EOFError at the end."""

    def forget(self) -> None:
        """Drop what was typed and not read: it was not meant for what is shown next."""


class TerminalLines:
    """The terminal of this process; messages go to stderr, for stdout carries the report."""

    def __init__(self) -> None:
        self._typed: deque[str] = deque()
        self._rest = b""
        self._ended = False

    def say(self, text: str) -> None:
        """See DialogueLines.say."""
        print(clean(text), file=sys.stderr, flush=True)

    async def line(self, seconds: float | None) -> str | None:
        """See DialogueLines.line."""
        loop, came = asyncio.get_running_loop(), asyncio.Event()
        loop.add_reader(sys.stdin.fileno(), self._read, came)
        try:
            async with asyncio.timeout(seconds):
                while not self._typed and not self._ended:
                    came.clear()
                    await came.wait()
        except TimeoutError:
            return None
        finally:
            loop.remove_reader(sys.stdin.fileno())
        if not self._typed:
            raise EOFError
        return self._typed.popleft()

    def forget(self) -> None:
        """See DialogueLines.forget."""
        self._typed.clear()
        self._rest = b""
        with contextlib.suppress(OSError, termios.error):
            termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)

    def _read(self, came: asyncio.Event) -> None:
        data = os.read(sys.stdin.fileno(), 4096)
        *whole, self._rest = (self._rest + data).split(b"\n")
        self._typed += (line.decode("utf-8", "replace").strip() for line in whole)
        self._ended = not data
        came.set()


class Dialogue:
    """Leads one person through a checklist, line by line."""

    def __init__(self, session: SwapSession, lines: DialogueLines, pause: float = PAUSE) -> None:
        """``pause``: seconds between two looks at the machine."""
        self._session = session
        self._lines = lines
        self._pause = pause

    async def pick(self, question: str, options: Sequence[str]) -> int | None:
        """The number of the option chosen, from 0; None for none of them."""
        for number, option in enumerate(options, 1):
            self._lines.say(f"  {number}  {option}")
        self._lines.say(f"{question} Type its number; anything else leaves:")
        word = await self._lines.line(None) or ""
        chosen = int(word) if word.isascii() and word.isdigit() and len(word) < 6 else 0
        return chosen - 1 if 1 <= chosen <= len(options) else None

    async def follow(self, guide: Guide) -> ExitCode:
        """Lead until the end. Raises EOFError when it is left open."""
        shown: object = None
        waited = 0
        while True:
            stage = await self._session.stage(guide)
            if stage.over:
                return self._over(guide, stage)
            now = _face(stage)
            if now != shown or waited >= SELDOM:
                self._show(guide, stage, whole=now != shown)
                shown, waited = now, 0
            waited += 1
            pauses = SLOW if stage.step in ("spare", "resilver") and stage.waits else 1
            word = await self._lines.line(self._pause * pauses)
            if word is not None:
                await self._take(guide, stage, word)
                shown = None

    def _over(self, guide: Guide, stage: SwapStage) -> ExitCode:
        for text in stage.text:
            self._lines.say(text)
        return ExitCode.OK if guide.checklist.state == DONE else ExitCode.FAILED

    def _show(self, guide: Guide, stage: SwapStage, whole: bool) -> None:
        if whole:
            self._lines.forget()
        for line in stage_lines(guide, stage) if whole else _wait_lines(stage):
            self._lines.say(line)

    async def _take(self, guide: Guide, stage: SwapStage, word: str) -> None:
        """Do what was typed."""
        if word == LEAVE:
            raise EOFError
        if not word:
            return
        if not guide.leads:
            self._lines.say("Another console leads this checklist: here you can only leave.")
            return
        answers = {answer.typed or answer.name: answer for answer in stage.answers}
        if word in answers:
            self._session.answer(guide, answers[word].name)
        elif word == BACK:
            await self._back(guide, stage)
        elif stage.plan is not None and word == (stage.plan.needs_typed or YES):
            await self._run(guide, stage, stage.plan)
        else:
            self._lines.say(f"{word!r} is not one of the words to type now.")

    async def _back(self, guide: Guide, stage: SwapStage) -> None:
        back = stage.back
        if back is None:
            self._lines.say(
                f"{stage.final_line}." if stage.final else "There is nothing to undo here."
            )
            return
        self._lines.say(f"Back: {back.text}.")
        if back.plan is None and not back.closes:
            return
        for line in plan_lines(back.plan) if back.plan else ():
            self._lines.say(line)
        needed = (back.plan.needs_typed if back.plan else None) or YES
        self._lines.say(f"Type {needed} to do that:")
        if await self._lines.line(None) != needed:
            self._lines.say("Nothing was done.")
        elif back.plan is not None:
            await self._run(guide, stage, back.plan)
        else:
            self._session.close(guide, stage)

    async def _run(self, guide: Guide, stage: SwapStage, plan: ActionPlan) -> None:
        async for event in self._session.run(guide, stage, plan, plan.needs_typed):
            words = {"begun": f"$ {event.text}", "done": "Done."}
            self._lines.say(words.get(event.kind, event.text))
            if event.meaning:
                self._lines.say(event.meaning)


def stage_lines(guide: Guide, stage: SwapStage) -> Iterator[str]:
    """The whole stage as text: what it is, its dangers, its plan, what can be typed."""
    c = guide.checklist
    yield ""
    if stage.alarm:
        yield f"!!! {stage.title}"
    else:
        listed = c.listed(stage.step)
        number = listed.index(stage.step) + 1 if stage.step in listed else 1
        yield f"[{number}/{len(listed)}] {stage.title}"
    yield from (f"  {text}" for text in stage.text)
    yield from (f"  Warning: {text}" for text in stage.warnings)
    if stage.plan is not None:
        yield from plan_lines(stage.plan)
    if stage.final:
        yield f"  {stage.final_line}"
    if stage.undo:
        yield f"  {stage.undo_line(BACK)}"
    yield from _wait_lines(stage)
    if guide.problem:
        yield f"  Warning: this checklist is not kept: {guide.problem}"
    yield from _typing_lines(stage, guide.leads)


def plan_lines(plan: ActionPlan) -> Iterator[str]:
    """A plan as text, as much as must be known before it runs."""
    if plan.refused is not None:
        yield f"  Not now: {plan.refused}"
    yield from (f"  $ {step.command}" for step in plan.steps)
    yield from (f"  Disk: {text}" for text in plan.where)
    yield from (f"  Effect: {text}" for text in plan.consequences)
    yield from (f"  Cannot be undone: {text}" for text in plan.not_undone)
    yield from (f"  Warning: {text}" for text in (*plan.warnings, *plan.hazards))
    yield from (f"  Instead: {text}" for text in plan.alternatives)


def _wait_lines(stage: SwapStage) -> Iterator[str]:
    if stage.waits:
        yield f"  Waiting for: {stage.waits}"


def _typing_lines(stage: SwapStage, leads: bool) -> Iterator[str]:
    """Every word that can be typed now, and what it does."""
    if not leads:
        yield "  Another console leads this checklist; you see what it does."
    elif stage.plan is not None and stage.plan.refused is None:
        yield f"  {stage.plan.needs_typed or YES}: run it"
    if leads:
        yield from (f"  {answer.typed or answer.name}: {answer.text}" for answer in stage.answers)
        if stage.back is not None:
            yield f"  {BACK}: {stage.back.text}"
    yield f"  {LEAVE}: go on later; the checklist stays open"


def _face(stage: SwapStage) -> object:
    """What makes a stage another one: all but the numbers of what it waits for."""
    plan = stage.plan
    known = None if plan is None else (plan.refused, tuple(step.argv for step in plan.steps))
    return (stage.step, stage.title, stage.text, stage.warnings, known, stage.answers)
