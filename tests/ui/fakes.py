"""A feed that gives what a test puts in, and a console over it."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from datetime import UTC
from functools import cache

from zconsole.pool.chassis import Lights
from zconsole.timeline.feed import Update
from zconsole.timeline.frame import Frame
from zconsole.ui.app import Console
from zconsole.ui.console_options import ConsoleOptions
from zconsole.ui.display_format import DisplayFormat
from zconsole.ui.theme.files import ThemeFile, find_themes
from zconsole.ui.widgets.glyphs import ASCII, UNICODE
from zconsole.zfs.sources.base import Capabilities


class FakeFeed:
    """Gives the rounds put in, then waits for more."""

    def __init__(self, *rounds: tuple[Frame, ...], interval: float = 0.0) -> None:
        self.queue: asyncio.Queue[Update | None] = asyncio.Queue()
        self.interval = interval
        self.asked: list[tuple[str, str]] = []
        self.closed = False
        self.playback = None
        self.faster = None
        for frames in rounds:
            self.put(*frames)

    def put(self, *frames: Frame, live: bool = True) -> None:
        self.queue.put_nowait(Update(frames, Capabilities("demo", live=live)))

    def end(self) -> None:
        self.queue.put_nowait(None)

    @property
    def pace(self) -> float:
        return self.interval

    def set_interval(self, seconds: float) -> None:
        self.interval = seconds

    async def next(self) -> Update | None:
        return await self.queue.get()

    async def details(self, pool: str, key: str) -> tuple[tuple[str, str], ...]:
        self.asked.append((pool, key))
        return (("serial", "WD-\x1b[1m123"), ("model", "WDC WD40EFRX"))

    async def lights(self) -> Lights:
        return {}

    async def aclose(self) -> None:
        self.closed = True


class Clock:
    """Seconds that pass when a test says so."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@cache
def shipped() -> tuple[ThemeFile, ...]:
    """The shipped themes, read once for all consoles."""
    return tuple(find_themes({"XDG_CONFIG_HOME": "/nonexistent"}).found.values())


def console(
    feed: FakeFeed,
    *,
    plain: bool = False,
    theme: str = "dark",
    clock: Clock | None = None,
    writable: bool = True,
    ansi_color: bool | None = None,
    **options: object,
) -> Console:
    """A console over the shipped themes, in UTC."""
    made = Console(
        feed,
        ConsoleOptions(host="nas1", zone=UTC, clock=clock or Clock(), **options),  # type: ignore[arg-type]
        DisplayFormat(ASCII if plain else UNICODE, zone=UTC),
        shipped(),
        writable=lambda: writable,
        ansi_color=ansi_color,
    )
    made.theme = theme
    return made


def screen_text(app: Console) -> str:
    """The screen as text, a line a row, without the blanks at line ends."""
    width, height = app.size
    strips = app.screen._compositor.render_strips()
    lines = ["".join(segment.text for segment in strip).rstrip() for strip in strips]
    assert len(lines) == height, (width, height)
    return "\n".join(lines) + "\n"


@asynccontextmanager
async def view_state(*made, size=(80, 24), feed=None, notifications=False, **options):
    """A console with these frames on its screen; yields it, its pilot and a way to read it."""
    feed = feed or FakeFeed(tuple(made))
    app = console(feed, **options)
    async with app.run_test(size=size, notifications=notifications) as pilot:
        await pilot.pause()
        yield app, pilot, lambda: screen_text(app)


async def until(pilot, seen):
    """Go on once something is seen, however busy the machine is."""
    for _ in range(1500):
        if seen():
            return
        await pilot.pause(0.02)
    raise AssertionError(screen_text(pilot.app))
