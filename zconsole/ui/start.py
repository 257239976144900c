"""Starting the console; textual is imported only once the environment it reads is set."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import termios
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from zconsole.errors import ExitCode
from zconsole.timeline.feed import Feed
from zconsole.ui.console_options import ConsoleOptions
from zconsole.ui.keys import SHIPPED
from zconsole.ui.theme.files import (
    DEFAULT,
    SIXTEEN,
    ThemeError,
    ThemeFile,
    Themes,
    choose,
    find_themes,
)

if TYPE_CHECKING:
    from zconsole.ui.actions.controller import MakeBackend
    from zconsole.ui.app import Console

THEMES = ("theme", "theme-16")
"""Settings: of most terminals, and of those with sixteen colors."""
_GRACE = 5
"""Seconds to leave in order, also on a machine that is choked; then the alarm ends the process."""
_CLOSING = 0.5
"""Seconds for the feed to close, once the terminal is the shell's again."""
_NAMED = 2
"""Broken themes named each with its fault; more would fill a small screen."""


def run_console(
    feed: Feed, options: ConsoleOptions, make_backend: MakeBackend | None = None
) -> int:
    """Run the console on the terminal until the operator quits; returns the exit code.

    Without ``make_backend``, which is called once something is on the screen, it only watches.

    Raises what the feed raised before its first round (a pool that does not exist).
    """
    with _silent() as restore:
        with _starting():
            prepare(os.environ)
            options = replace(options, take_terminal=restore)
            console = make_console(feed, options, as_started(os.environ), make_backend)
        console.call_later(_catch_signals, console)
        asyncio.run(_run(console, options.mouse))
    if console.failure is not None:
        raise console.failure
    return console.return_code or ExitCode.OK


_LOCAL = 3
"""Index of the local modes in what ``tcgetattr`` gives."""


@contextlib.contextmanager
def _silent() -> Iterator[Callable[[], None]]:
    """Show nothing of what is typed until the console has the terminal, or has failed.

    Gives what puts the terminal back as it was found; it can be read all the time. ``kill`` ends
    the start as Ctrl-C does: at once it would leave a shell that shows nothing.
    """
    fd = sys.__stdin__.fileno() if sys.__stdin__ else -1
    before: list[list[int | list[bytes | int]]] = []

    def _restore() -> None:
        """Once: after that the terminal may be in use by others."""
        with contextlib.suppress(termios.error):
            while before:
                termios.tcsetattr(fd, termios.TCSANOW, before.pop())

    found = signal.signal(signal.SIGTERM, signal.default_int_handler)
    with contextlib.suppress(termios.error):
        usual, quiet = termios.tcgetattr(fd), termios.tcgetattr(fd)
        quiet[_LOCAL] &= ~termios.ECHO
        termios.tcsetattr(fd, termios.TCSANOW, quiet)
        before.append(usual)
    try:
        yield _restore
    finally:
        _restore()
        signal.signal(signal.SIGTERM, found)


@contextlib.contextmanager
def _starting() -> Iterator[None]:
    """Say so on the terminal while the program is loaded, which a slow machine takes long for."""
    _write(" zconsole: starting\r")
    try:
        yield
    finally:
        _write("\x1b[2K")


def _write(text: str) -> None:
    with contextlib.suppress(OSError):  # the console itself finds out what is wrong
        sys.stderr.write(text)
        sys.stderr.flush()


async def _run(console: Console, mouse: bool) -> None:
    """Run it, then close its feed.

    Else the commands that it follows would outlive it, ``zpool events`` until something happens
    to a pool, and what was seen last would not be kept.
    """
    try:
        await console.run_async(mouse=mouse)
    finally:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_CLOSING):
                await console.feed.aclose()


def make_console(
    feed: Feed,
    options: ConsoleOptions,
    environ: Mapping[str, str],
    make_backend: MakeBackend | None = None,
) -> Console:
    """The console as these options and this environment want it; not yet running."""
    from zconsole.ui.actions.controller import ActionController
    from zconsole.ui.app import Console
    from zconsole.ui.display_format import DisplayFormat
    from zconsole.ui.widgets.glyphs import ASCII, UNICODE

    plain = ascii_only(environ) if options.ascii is None else options.ascii
    themes = find_themes(environ)
    config = options.config
    wanted = (options.theme, *map(options.setting, THEMES))
    # Which of the two of the configuration suits the terminal only the console knows.
    picked: list[ThemeFile | None] = []
    problems = [*(config.lines() if config else ()), *theme_problems(themes)]
    for name in wanted:
        picked.append(None)
        try:
            picked[-1] = None if name is None else choose(name, themes)
        except ThemeError as error:
            problems.append(str(error))
    keys, _ = SHIPPED.remapped(config.keys if config else {})
    console = Console(
        feed,
        replace(options, in_tmux=bool(environ.get("TMUX"))),
        DisplayFormat(ASCII if plain else UNICODE, options.setting("units"), options.zone, keys),
        (*themes.found.values(), *filter(None, picked)),
        ActionController(feed, make_backend),
        notices=problems,
        ansi_color=True if environ.get("NO_COLOR") is not None else None,
    )
    given, usual, sixteen = picked
    theme = given or (sixteen if console.sixteen else usual)
    console.theme = theme.name if theme else SIXTEEN if console.sixteen else DEFAULT
    return console


_SETTINGS = {
    "TEXTUAL_ANIMATIONS": "none",
    "TEXTUAL_SMOOTH_SCROLL": "0",
    "TEXTUAL_FPS": "40",
    "ESCDELAY": "50",
}
"""Each saves bytes on a slow line: no easing, and bursts of changes drawn at most 40 times/s.

Fewer would save more, but every paint, the first too, waits for up to one such moment."""


def prepare(environ: MutableMapping[str, str]) -> None:
    """Set what textual reads when it is imported, where the operator has not set it."""
    for name, value in _SETTINGS.items():
        environ.setdefault(name, value)


def as_started(
    environ: Mapping[str, str], memory: Path = Path("/proc/self/environ")
) -> Mapping[str, str]:
    """``environ`` without the ``LC_CTYPE`` that Python itself sets where the locale is C (PEP 538).

    What the process was started with stays in its memory; where that cannot be read, nothing is
    taken off.
    """
    try:
        given = memory.read_bytes().split(b"\0")
    except OSError:
        return environ
    if any(word.startswith(b"LC_CTYPE=") for word in given):
        return environ
    return {name: value for name, value in environ.items() if name != "LC_CTYPE"}


def ascii_only(environ: Mapping[str, str]) -> bool:
    """Whether the terminal should get ASCII only: the locale is not UTF-8, or a Linux console.

    The locale is read from the environment, because Python coerces ``C`` to ``C.UTF-8``; give it
    the environment ``as_started``, because Python coerces that too.
    """
    if environ.get("TERM") == "linux":
        return True
    names = (environ.get(name, "") for name in ("LC_ALL", "LC_CTYPE", "LANG"))
    locale = next((name for name in names if name), "C")
    return "utf8" not in locale.lower().replace("-", "")


def theme_problems(themes: Themes) -> list[str]:
    """What the operator should know of broken theme files."""
    problems = [f"theme {path.name} not used: {why}" for path, why in themes.failed]
    if len(problems) > _NAMED:
        problems = [f"{len(problems)} theme files not used; zconsole themes says why"]
    return problems


def _catch_signals(console: Console) -> None:
    """Leave in order, the terminal restored, when told to end or when the terminal is gone."""

    def _end() -> None:
        """Quit; should a dead terminal keep textual from it, the alarm ends the process."""
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(_GRACE)
        console.exit(return_code=ExitCode.INTERRUPTED)

    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, _end)
