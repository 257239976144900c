"""Fixtures of all console tests."""

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

from zconsole.actions import facts
from zconsole.sim import simulation
from zconsole.system import daemon_thread
from zconsole.system.patient import begun
from zconsole.ui import themed_app
from zconsole.ui.theme.files import ThemeFile
from zconsole.ui.theme.styles import palette, textual_theme

STEP = 0.002
"""Seconds that textual's pilot sleeps before it checks again whether everything is at rest."""
PATIENCE = 30.0
TURNS, AFTER_CALLS = 2, 5
"""Successive turns of the event loop in which nothing else may run and all widgets must be at rest,
and how many after a call in a thread has ended, whose result has yet to reach the loop."""
SOON = 50
"""Checks without a pause for widgets that have just been sent something."""

MOST_STEPS = 3
"""Steps in which the time between two samples is simulated."""


@pytest.fixture(scope="session")
def known() -> dict[object, Any]:
    """Cache of parsed rules and theme styles, shared by all consoles of this process."""
    return {}


@pytest.fixture(autouse=True, scope="module")
def calls(known: dict[object, Any]) -> Iterator[list[Future[Any]]]:
    """Run consoles without sleeping, and draw only what is read; yields calls in threads.

    A busy machine may take long to start such a call, so tests wait for them.
    """
    made: list[Future[Any]] = []
    with pytest.MonkeyPatch.context() as patch:
        _sleep_for_nothing(patch, made)
        _read_styles_once(patch, known)
        _draw_what_is_read(patch)
        # By default the simulation takes up to 40 steps, which only its own tests need.
        patch.setattr(simulation.advance, "__defaults__", (MOST_STEPS,))
        yield made


@pytest.fixture(autouse=True)
def apart(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, calls: list[Future[Any]]) -> None:
    """Run in an empty directory, where pictures and reports are saved, and with no calls yet.

    A call that another test has left hanging is no longer waited for.
    """
    monkeypatch.chdir(tmp_path)
    calls.clear()


@pytest.fixture
def unwatched(monkeypatch: pytest.MonkeyPatch) -> None:
    """Do not wait for calls made in threads: one of them will hang."""
    monkeypatch.setattr(daemon_thread, "begun", begun)


def _sleep_for_nothing(patch: pytest.MonkeyPatch, calls: list[Future[Any]]) -> None:
    """Make the pilot sleep for no key and no pause, and paint at once.

    Textual's pilot sleeps until the process takes next to no time, at least 20 ms per key or pause:
    several times as long as the work. It also sends each widget a message to learn that it is at
    rest, a third of all that a test does. Here, each widget's message queue is checked instead.
    """

    def _begun(job: Callable[[], Any]) -> Future[Any]:
        calls.append(begun(job))
        return calls[-1]

    async def _turn(_: float = 0) -> None:
        await asyncio.sleep(0)

    async def _at_rest(pilot: Pilot[Any]) -> bool:
        app = pilot.app
        ready = asyncio.get_running_loop()._ready  # type: ignore[attr-defined]
        nodes, looks, still = [app, *app.screen.walk_children(with_self=True)], 0, 0
        wanted = TURNS
        async with asyncio.timeout(PATIENCE):
            while still < wanted:
                if calls:
                    wanted = AFTER_CALLS
                    calls[:] = [call for call in calls if not call.done()]
                still = 0 if calls or ready or any(map(_is_busy, nodes)) else still + 1
                if app._exception_event.is_set():
                    return False
                if still == 1 and app.screen_stack:
                    app.screen._on_timer_update()  # paint now, not on a timer
                looks += 1
                await asyncio.sleep(0 if looks < SOON else STEP)
        return True

    for place in ("app", "pilot"):
        patch.setattr(f"textual.{place}.wait_for_idle", _turn)
    patch.setattr("textual.screen.UPDATE_PERIOD", STEP / 2)
    for place in (daemon_thread, facts):
        patch.setattr(place, "begun", _begun)
    patch.setattr(Pilot, "_wait_for_screen", _at_rest)


def _is_busy(node: MessagePump) -> bool:
    """Return whether a widget is working on a message, or has some left."""
    waits = any(not waiter.done() for waiter in node._message_queue.ready_event._waiters)
    return not (waits or node._closing or node._closed)


def _read_styles_once(patch: pytest.MonkeyPatch, known: dict[object, Any]) -> None:
    """Read the rules of all consoles, and build the styles of each theme, once per process."""
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
    patch.setattr(RuleSet, "__hash__", object.__hash__)  # same result, without a Python call
    for make in (palette, textual_theme):
        patch.setattr(themed_app, make.__name__, _once(make))


def _draw_what_is_read(patch: pytest.MonkeyPatch) -> None:
    """Draw a screen when a test reads it, but not for a terminal, because there is none."""
    render = Compositor.render_update

    def _render(compositor: Compositor, full: bool = False, **options: Any) -> object:
        if full:  # for a picture
            return render(compositor, full, **options)
        return compositor._dirty_regions.clear()

    patch.setattr(Compositor, "render_update", _render)
