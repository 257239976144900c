"""Scripted flows: a session on a simulated pool whose questions are answered without an app.

The questions of a flow are collected as text in ``shown``, and the script answers them in order.
After its last answer, further questions are left as by Esc.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC
from inspect import isawaitable
from typing import Any, cast

from tests.ui.drawn import plain
from tests.worlds import world_of
from zconsole.actions.backend import ActionBackend
from zconsole.pool.chassis import Lights
from zconsole.sim.backends.actions import simulated_backend
from zconsole.sim.source import World
from zconsole.timeline.feed import Feed, Update
from zconsole.timeline.session import Session
from zconsole.ui.actions.tunables_pane import TunablesScreen
from zconsole.ui.actions.upkeep import Upkeep
from zconsole.ui.console_options import ConsoleOptions
from zconsole.ui.dialogs.confirm import Confirmation
from zconsole.ui.dialogs.screens import PickList, PickScreen, TextQuestion, TextScreen
from zconsole.ui.display_format import DisplayFormat
from zconsole.ui.swap.swap_watch import SwapWatch
from zconsole.ui.themed_app import ThemedApp, Work
from zconsole.ui.view_state import ViewState
from zconsole.ui.widgets.draw import Line
from zconsole.ui.widgets.graph import UNICODE
from zconsole.zfs.sources.base import Capabilities
from zconsole.zfs.zpool_output import ZpoolOutput

WIDTH = 100


@dataclass(frozen=True)
class Run:
    """An answer that runs a plan, in one of its ways, with the word to type if it requires one."""

    way: int = 0
    typed: str | None = None


AGREED = Run()
ENTER = AGREED
"""Picks the line at the cursor."""
ESC = None
Reply = str | Run | Callable[[Any], Any] | None
"""Answer to a question: the beginning of a line to pick, a text to type, or how to run a plan; for
a text or any other screen also a function, or a coroutine function, that returns it."""


DEMO = Capabilities("demo", flags=("DEMO",))


class ScriptedFeed(Feed):
    """A feed of a world's frames, one round whenever ``step`` is called or a flow waits for one."""

    def __init__(self, world: World, capabilities: Capabilities | None) -> None:
        super().__init__(1.0)
        self.world, self.capabilities = world, capabilities or DEMO
        self.elapsed = 0.0
        self.session = Session()
        self.hear: Callable[[Update], None] = lambda _: None

    def later(self, seconds: float) -> Update:
        """Advance simulated time, and return a round."""
        self.elapsed += seconds
        self.world.advance(self.elapsed)
        return Update(self.session.advance(self.world.raws()), self.capabilities)

    async def zpool_outputs(self, pool: str) -> tuple[ZpoolOutput, ...]:
        return self.world.zpool_outputs(pool)

    def step(self, seconds: float = 1.0) -> None:
        """Advance simulated time, and provide a round."""
        self._newest = self.later(seconds)
        if self.contributor is not None:
            self.contributor.take(self._newest)
        if (update := self.joined()) is not None:
            self.hear(update)

    @contextmanager
    def hurried(self, seconds: float) -> Iterator[None]:
        """Provide the two rounds that a flow waits for."""
        self.step(seconds)
        self.step(seconds)
        yield

    async def sample(self) -> Update | None:
        raise NotImplementedError

    async def details(self, pool: str, key: str) -> tuple[tuple[str, str], ...]:
        return ()

    async def lights(self) -> Lights:
        return {}

    async def close_sources(self) -> None:
        return None


@dataclass
class Background:
    """Work beside the flows, done when a test lets it."""

    work: Work
    group: str
    is_finished: bool = False


class SilentApp:
    """The parts of an app that a session needs besides screens."""

    main_on_top = True

    def __init__(self, view_state: ViewState) -> None:
        self.view_state = view_state
        self.messages: list[str] = []
        self._of: dict[str, tuple[object, Callable[[], str] | None]] = {}
        """Subject of each message, and what it follows."""
        self.awaited = 0
        self.workers: list[Background] = []

    def run_worker(self, work: Work, *, group: str, **_: object) -> None:
        self.workers.append(Background(work, group))

    async def rest(self) -> None:
        """Do the work beside the flows."""
        while self.workers:
            await self.workers.pop(0).work()

    def notify(
        self,
        message: str,
        *,
        about: object = None,
        follows: Callable[[], str] | None = None,
        **_: object,
    ) -> None:
        said = self.view_state.look.said(message)
        if about is not None:
            self.withdraw(about)
        self.messages.append(said)
        self._of[said] = about, follows

    def withdraw(self, about: object) -> None:
        self.messages = [text for text in self.messages if self._of[text][0] != about]

    def update_messages(self) -> None:
        """Let messages follow the newest frames."""
        for text in list(self.messages):
            about, follows = self._of[text]
            if follows is not None and (now := follows()) != text:
                self.messages.remove(text)
                if now:
                    self.notify(now, about=about, follows=follows)

    def await_filled(self) -> None:
        self.awaited += 1


def asking(request: str, row: int = 0) -> Callable[[TunablesScreen], int]:
    """Return an answer that presses a request's key with the cursor on a tunable."""

    def _press(screen: TunablesScreen) -> int:
        screen.request = request
        return row

    return _press


async def kept(backend: ActionBackend) -> None:
    """Wait until the keeper of a simulated machine has done everything that is due now."""

    async def _done() -> None:
        keeper._keeper.act_on_due()
        while acts := keeper._keeper._acting.values():
            await asyncio.wait(acts)

    keeper = backend.autopilots.ask.__self__  # type: ignore[attr-defined]
    if keeper._loop is not None:
        await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(_done(), keeper._loop))


class ScriptedSession(Upkeep):
    """A session whose questions are answered by a script."""

    def __init__(
        self,
        scenario: str,
        *answers: Reply,
        capabilities: Capabilities | None = None,
        prepare: Callable[[World], None] = lambda _: None,
        **options: object,
    ) -> None:
        """Open a session on a scenario; ``prepare`` changes the world before its first sample."""
        self.world = world_of(scenario)
        prepare(self.world)
        feed = ScriptedFeed(self.world, capabilities)
        settings = ConsoleOptions(host="nas1", zone=UTC, **options)  # type: ignore[arg-type]
        self.silent = SilentApp(ViewState(settings, DisplayFormat(UNICODE, zone=UTC)))
        app, backend = cast("ThemedApp", self.silent), simulated_backend(self.world)
        swaps = SwapWatch(None, backend, lambda: self.silent.view_state.frames)
        super().__init__(app, feed, backend, swaps)
        self.stepped = feed
        self.answers = deque(answers)
        self.shown: list[str] = []
        self.plans: list[str] = []
        """The plans in ``shown``, each in all its ways."""
        self.ran: list[str] = []
        """Messages of plans while they ran."""
        self.barred = False
        """Whether the plan that was to be run could only be read."""
        self.asked_for: str | None = None
        """Word that had to be typed for the plan that was to be run."""
        feed.contributor = self
        feed.hear = self._heard_update
        feed.step(0.0)

    def _heard_update(self, update: Update) -> None:
        self.silent.view_state.take(update, 0.0)
        self.silent.update_messages()

    def pass_time(self, seconds: float, step: float = 60.0) -> None:
        """Let rounds pass, without the work beside them."""
        for _ in range(int(seconds / step)):
            self.stepped.step(step)

    async def wait(self, seconds: float, step: float = 60.0) -> None:
        """Let rounds pass, and console and keeper do their work beside them."""
        for _ in range(int(seconds / step)):
            self.stepped.step(step)
            await kept(self.backend)
            await self.silent.rest()

    def key(self, name: str) -> str:
        """Return the key of the vdev with this name, or of the device whose name contains it."""
        assert self.frame is not None
        rows = [row for row in self.frame.rows if row.vdev.name == name] or [
            row for row in self.frame.rows if not row.vdev.children and name in row.vdev.name
        ]
        assert rows, name
        return rows[0].key

    @property
    def said(self) -> str:
        """Return the last question, joined to one line."""
        return " ".join(self.shown[-1].split())

    @property
    def plan(self) -> str:
        """Return the plan shown last, joined to one line."""
        return " ".join(self.plans[-1].split())

    @property
    def messages(self) -> list[str]:
        return self.silent.messages

    @property
    def commands(self) -> list[list[str]]:
        records = self.backend.log.records  # type: ignore[attr-defined]
        return [step["argv"][1:] for r in records if r["event"] == "action" for step in r["steps"]]

    def _reply(self, *lines: Line | str) -> Reply:
        self.shown.append("\n".join(x if isinstance(x, str) else plain(x) for x in lines))
        return self.answers.popleft() if self.answers else ESC

    async def pick(self, choice: PickList) -> int | None:
        start = choice.start if choice.fill is None else await choice.fill()
        start = start if choice.picked is None else choice.picked
        texts = [plain(line).strip() for line in choice.lines(self.look, WIDTH)]
        about = choice.about(start, self.look, WIDTH) if choice.about else ()
        reply = self._reply(choice.title, *texts, *about)
        if reply is ESC:
            return None
        found = [start]
        if reply is not ENTER:
            found = [n for n, text in enumerate(texts) if text.startswith(cast("str", reply))]
        assert found, f"no {reply} in\n{self.shown[-1]}"
        choice.picked = found[0]
        return found[0]

    async def typed(self, question: TextQuestion) -> str | None:
        reply = self._reply(question.title, *question.lines(self.look, WIDTH), question.example)
        return cast("str | None", reply(question) if callable(reply) else reply)

    async def confirmed(self, *confirmations: Confirmation) -> bool:
        lines: list[Line | str] = []
        for each in confirmations:
            lines += [each.title, *each.body(self.look, WIDTH), *each.checks]
        reply = self._reply(*lines)
        self.plans.append(self.shown[-1])
        if not isinstance(reply, Run):
            return False
        chosen = confirmations[reply.way]
        self.barred, self.asked_for = chosen.barred, chosen.typed
        if chosen.barred:
            return False
        self.ran.append("\n".join([said.text async for said in chosen.run(reply.typed)]))
        return True

    async def show(self, screen: Any) -> Any:
        lines = screen._make(self.look, WIDTH) if isinstance(screen, TextScreen) else ()
        reply = self._reply(type(screen).__name__, *lines)
        if isinstance(screen, PickScreen) and isinstance(reply, str):
            return [plain(line).strip().startswith(reply) for line in lines].index(True)
        result = reply(screen) if callable(reply) else reply
        return await result if isawaitable(result) else result
