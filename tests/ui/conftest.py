"""What every test of a console shares."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
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

MOST_STEPS = 3
"""Steps in which the time between two samples is simulated."""


@pytest.fixture(scope="session")
def known() -> dict[object, Any]:
    """Rules that consoles of this process have read, and styles of themes they have worn."""
    return {}


@pytest.fixture(autouse=True, scope="module")
def calls(known: dict[object, Any]) -> Iterator[list[Future[Any]]]:
    """Calls made in threads by consoles that sleep for no key and draw only what a test reads.

    A busy machine may take long to begin a call.
    """
    made: list[Future[Any]] = []
    with pytest.MonkeyPatch.context() as patch:
        _sleep_for_nothing(patch, made)
        _read_styles_once(patch, known)
        _draw_what_is_read(patch)
        # The simulation takes up to 40 steps of its own accord, which only its own tests need.
        patch.setattr(simulation.advance, "__defaults__", (MOST_STEPS,))
        yield made


@pytest.fixture(autouse=True)
def apart(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, calls: list[Future[Any]]) -> None:
    """Run in a directory of its own, where pictures and reports are saved, and with no calls yet.

    One that another test has left hanging is waited for no longer.
    """
    monkeypatch.chdir(tmp_path)
    calls.clear()


@pytest.fixture
def unwatched(monkeypatch: pytest.MonkeyPatch) -> None:
    """Do not wait for calls made in threads: one of them is to hang."""
    monkeypatch.setattr(daemon_thread, "begun", begun)


def _sleep_for_nothing(patch: pytest.MonkeyPatch, calls: list[Future[Any]]) -> None:
    """Have the pilot sleep for no key and no pause, and paint at once.

    Textual's pilot sleeps until the process takes next to no time, at least 20 ms for each of them:
    several times the work of one. It also sends each widget a message to hear that it is at rest, a
    third of all that a test does. Here each widget is seen to be at rest.
    """

    def _begun(job: Callable[[], Any]) -> Future[Any]:
        calls.append(begun(job))
        return calls[-1]

    async def _turn(_: float = 0) -> None:
        await asyncio.sleep(0)

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

    for place in ("app", "pilot"):
        patch.setattr(f"textual.{place}.wait_for_idle", _turn)
    patch.setattr("textual.screen.UPDATE_PERIOD", STEP / 2)
    patch.setattr(daemon_thread, "begun", _begun)
    patch.setattr(Pilot, "_wait_for_screen", _at_rest)


def _is_busy(node: MessagePump) -> bool:
    """Whether a widget works on a message, or has some left: it does not wait for one."""
    waits = any(not waiter.done() for waiter in node._message_queue.ready_event._waiters)
    return not (waits or node._closing or node._closed)


def _read_styles_once(patch: pytest.MonkeyPatch, known: dict[object, Any]) -> None:
    """Read the rules of all consoles, and work out the styles of each theme, once a process."""
    parse = Stylesheet._parse_rules

    def _parsed(sheet: Stylesheet, *what: Any, **how: Any) -> list[RuleSet]:
        key = (tuple(sheet._variables.items()), what, tuple(how.items()))
        if key not in known:
            known[key] = parse(sheet, *what, **how)
        return known[key]

    def _once(make: Callable[..., Any]) -> Callable[..., Any]:
        def _made(theme: ThemeFile, **how: bool) -> Any:
            key = (make, repr(theme), *how.items())
            if key not in known:
                known[key] = make(theme, **how)
            return known[key]

        return _made

    patch.setattr(Stylesheet, "_parse_rules", _parsed)
    patch.setattr(RuleSet, "__hash__", object.__hash__)  # the same, without a call of Python
    for make in (palette, textual_theme):
        patch.setattr(themed_app, make.__name__, _once(make))


def _draw_what_is_read(patch: pytest.MonkeyPatch) -> None:
    """Draw a screen when a test reads it, not also what a terminal would be sent, and is not."""
    render = Compositor.render_update

    def _render(compositor: Compositor, full: bool = False, **options: Any) -> object:
        if full:  # of a picture
            return render(compositor, full, **options)
        return compositor._dirty_regions.clear()

    patch.setattr(Compositor, "render_update", _render)
