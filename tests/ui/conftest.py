"""What every test of a console shares."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest
from textual._compositor import Compositor
from textual.css.model import RuleSet
from textual.css.stylesheet import Stylesheet
from textual.message_pump import MessagePump
from textual.pilot import Pilot

from zconsole.sim import simulation
from zconsole.system import daemon_thread
from zconsole.system.patient import begun
from zconsole.ui import themed_app
from zconsole.ui.theme.files import ThemeFile
from zconsole.ui.theme.styles import palette, textual_theme

STEP = 0.002
"""Seconds textual's pilot sleeps before it looks whether all is still."""
PATIENCE = 30.0
TURNS = 5
"""Turns of the loop at which all are at rest: workers between them have gone on."""
SOON = 50
"""Looks without a pause between them at widgets that have just been sent something."""

MOST_STEPS = 10
"""Steps in which the time between two samples is simulated."""


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sleep for no key and no pause, and paint at once.

    Textual's pilot sleeps until the process takes next to no time, at least 20 ms for each of them:
    several times the work of one. Here each widget is seen to be at rest.
    """

    async def _turn(_: float = 0) -> None:
        await asyncio.sleep(0)

    for place in ("app", "pilot"):
        monkeypatch.setattr(f"textual.{place}.wait_for_idle", _turn)
    monkeypatch.setattr("textual.screen.UPDATE_PERIOD", STEP / 2)


@pytest.fixture(autouse=True)
def calls(monkeypatch: pytest.MonkeyPatch) -> list[Future[Any]]:
    """Calls made in threads, which a busy machine may take long to begin."""
    made: list[Future[Any]] = []

    def _begun(job: Callable[[], Any]) -> Future[Any]:
        made.append(begun(job))
        return made[-1]

    monkeypatch.setattr(daemon_thread, "begun", _begun)
    return made


@pytest.fixture
def unwatched(monkeypatch: pytest.MonkeyPatch) -> None:
    """Do not wait for calls made in threads: one of them is to hang."""
    monkeypatch.setattr(daemon_thread, "begun", begun)


@pytest.fixture(autouse=True)
def unasked(calls: list[Future[Any]], monkeypatch: pytest.MonkeyPatch) -> None:
    """See whether widgets are at rest, and do not send each a message to hear that it is.

    Textual's pilot does so for each key and pause, a third of all that a test does.
    """

    async def _at_rest(pilot: Pilot[Any]) -> bool:
        app = pilot.app
        nodes, looks, still = [app, *app.screen.walk_children(with_self=True)], 0, 0
        async with asyncio.timeout(PATIENCE):
            while still < TURNS:
                calls[:] = [call for call in calls if not call.done()]
                still = 0 if calls or any(map(_is_busy, nodes)) else still + 1
                if app._exception_event.is_set():
                    return False
                if still == 1 and app.screen_stack:
                    app.screen._on_timer_update()  # what is to be drawn waits for no clock
                looks += 1
                await asyncio.sleep(0 if looks < SOON else STEP)
        return True

    monkeypatch.setattr(Pilot, "_wait_for_screen", _at_rest)


def _is_busy(node: MessagePump) -> bool:
    """Whether a widget works on a message, or has some left: it does not wait for one."""
    waits = any(not waiter.done() for waiter in node._message_queue.ready_event._waiters)
    return not (waits or node._closing or node._closed)


@pytest.fixture(scope="session")
def rules() -> dict[object, list[RuleSet]]:
    """The rules of styles that consoles of this process have read."""
    return {}


@pytest.fixture(autouse=True)
def read_once(monkeypatch: pytest.MonkeyPatch, rules: dict[object, list[RuleSet]]) -> None:
    """Read the styles of all consoles once, not twice for each."""
    parse = Stylesheet._parse_rules

    def _parsed(sheet: Stylesheet, *what: Any, **how: Any) -> list[RuleSet]:
        key = (tuple(sheet._variables.items()), what, tuple(how.items()))
        if key not in rules:
            rules[key] = parse(sheet, *what, **how)
        return rules[key]

    monkeypatch.setattr(Stylesheet, "_parse_rules", _parsed)


@pytest.fixture(scope="session")
def dresses() -> dict[object, Any]:
    """The styles of themes that consoles of this process have worn."""
    return {}


@pytest.fixture(autouse=True)
def dressed_once(monkeypatch: pytest.MonkeyPatch, dresses: dict[object, Any]) -> None:
    """Work out the styles of a theme once for all consoles: the same file gives the same."""

    def _once(make: Callable[..., Any]) -> Callable[..., Any]:
        def _made(theme: ThemeFile, **how: bool) -> Any:
            key = (make, repr(theme), *how.items())
            if key not in dresses:
                dresses[key] = make(theme, **how)
            return dresses[key]

        return _made

    for make in (palette, textual_theme):
        monkeypatch.setattr(themed_app, make.__name__, _once(make))


@pytest.fixture(autouse=True)
def unsent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw a screen when a test reads it, not also what a terminal would be sent, and is not."""
    render = Compositor.render_update

    def _render(compositor: Compositor, full: bool = False, **options: Any) -> object:
        if full:  # of a picture
            return render(compositor, full, **options)
        return compositor._dirty_regions.clear()

    monkeypatch.setattr(Compositor, "render_update", _render)


@pytest.fixture(autouse=True)
def coarse(monkeypatch: pytest.MonkeyPatch) -> None:
    """Simulate what passes between two samples in few steps.

    The simulation takes up to 40 of its own accord, which only its own tests need.
    """
    monkeypatch.setattr(simulation.advance, "__defaults__", (MOST_STEPS,))


@pytest.fixture(autouse=True)
def elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Run in a directory of its own: a key saves a picture where the console was started."""
    monkeypatch.chdir(tmp_path)
