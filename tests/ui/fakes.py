"""A feed with rounds given by a test, and a console on it."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from datetime import UTC
from functools import cache

from zconsole.errors import UnavailableError
from zconsole.pool.chassis import Lights
from zconsole.timeline.feed import Update
from zconsole.timeline.frame import Frame
from zconsole.ui.app import Console
from zconsole.ui.console_options import ConsoleOptions
from zconsole.ui.display_format import DisplayFormat
from zconsole.ui.theme.files import ThemeFile, find_themes
from zconsole.ui.widgets.graph import ASCII, UNICODE
from zconsole.zfs.sources.base import Capabilities
from zconsole.zfs.zpool_output import ZpoolOutput


class FakeFeed:
    """Returns the given rounds, then waits for more."""

    def __init__(self, *rounds: tuple[Frame, ...], interval: float = 0.0) -> None:
        self.queue: asyncio.Queue[Update | None] = asyncio.Queue()
        self.interval = interval
        self.asked: list[tuple[str, str]] = []
        self.closed = False
        self.alerts = None
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

    async def zpool_outputs(self, pool: str) -> tuple[ZpoolOutput, ...]:
        raise UnavailableError(f"{pool} is suspended")

    async def lights(self) -> Lights:
        return {}

    async def aclose(self, patience: float | None = None) -> None:
        self.closed = True


class Clock:
    """A clock that advances only when a test says so."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@cache
def shipped() -> tuple[ThemeFile, ...]:
    """Return the shipped themes, read once for all consoles."""
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
    """Return a console with the shipped themes, in UTC."""
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
    """Return the screen as text, one line per row, without trailing blanks."""
    width, height = app.size
    strips = app.screen._compositor.render_strips()
    lines = ["".join(segment.text for segment in strip).rstrip() for strip in strips]
    assert len(lines) == height, (width, height)
    return "\n".join(lines) + "\n"


@asynccontextmanager
async def view_state(*made, size=(80, 24), feed=None, notifications=False, **options):
    """Show these frames in a console; yields it, its pilot and a function that reads the screen."""
    feed = feed or FakeFeed(tuple(made))
    app = console(feed, **options)
    async with app.run_test(size=size, notifications=notifications) as pilot:
        await pilot.pause()
        yield app, pilot, lambda: screen_text(app)


async def until(pilot, seen):
    """Wait until ``seen`` returns true, however busy the machine is."""
    for _ in range(1500):
        if seen():
            return
        await pilot.pause(0.02)
    raise AssertionError(screen_text(pilot.app))
