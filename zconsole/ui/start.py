"""Start of the console; textual is imported only after the environment it reads is set."""

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
"""Settings of the theme: for most terminals, and for those with sixteen colors."""
_GRACE = 5
"""Seconds to exit in order, even on a busy machine; then the alarm ends the process."""
_CLOSING = 0.5
"""Seconds for the sources to close, after the terminal is given back to the shell."""
_NAMED = 2
"""Most broken themes named one by one; more would fill a small screen."""


def run_console(
    feed: Feed, options: ConsoleOptions, make_backend: MakeBackend | None = None
) -> int:
    """Run the console on the terminal until the operator quits; return the exit code.

    Without ``make_backend`` the console is read-only; it is called after the first paint. Raises
    what ended the feed, as for a pool that does not exist.
    """
    with _silent() as restore:
        with _starting():
            prepare(os.environ)
            options = replace(options, take_terminal=restore)
            console = make_console(feed, options, as_started(os.environ), make_backend)
        console.call_later(_catch_signals, console)  # needs the running loop
        asyncio.run(_run(console, options.mouse))
    if console.failure is not None:
        raise console.failure
    return console.return_code or ExitCode.OK


_LOCAL = 3
"""Index of the local modes in the result of ``tcgetattr``."""


@contextlib.contextmanager
def _silent() -> Iterator[Callable[[], None]]:
    """Turn off echo until the console has taken the terminal, or has failed.

    Yields a function that restores the terminal; what is typed can still be read. SIGTERM raises
    KeyboardInterrupt, as Ctrl-C does: ending at once would leave a shell without echo.
    """
    fd = sys.__stdin__.fileno() if sys.__stdin__ else -1
    before: list[list[int | list[bytes | int]]] = []

    def _restore() -> None:
        """Restore the terminal; only once, as others may use it afterwards."""
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
    """Show that the console is starting, as loading takes long on a slow machine."""
    _write(" zconsole: starting\r")
    try:
        yield
    finally:
        _write("\x1b[2K")


def _write(text: str) -> None:
    with contextlib.suppress(OSError):  # the console itself reports what is wrong
        sys.stderr.write(text)
        sys.stderr.flush()


async def _run(console: Console, mouse: bool) -> None:
    """Run the console, then close its feed.

    Otherwise its child processes would outlive it (``zpool events`` until the next event of a
    pool), and what it saw last would not be saved.
    """
    try:
        await console.run_async(mouse=mouse)
    finally:
        if console.feed.alerts is not None and console.feed.alerts.is_sending:
            _write("zconsole: the hook still runs for the last alerts; Ctrl+C ends it\n")
        await console.feed.aclose(_CLOSING)


def make_console(
    feed: Feed,
    options: ConsoleOptions,
    environ: Mapping[str, str],
    make_backend: MakeBackend | None = None,
) -> Console:
    """Return a console with these options and environment; it does not run yet."""
    from zconsole.ui.actions.controller import ActionController
    from zconsole.ui.app import Console
    from zconsole.ui.display_format import DisplayFormat
    from zconsole.ui.widgets.graph import ASCII, UNICODE

    plain = ascii_only(environ) if options.ascii is None else options.ascii
    themes = find_themes(environ)
    config = options.config
    wanted = (options.theme, *map(options.setting, THEMES))
    # Only the console knows its terminal's colors, and with them which setting to use.
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
        # Under NO_COLOR, textual sends gray levels as RGB unless ANSI colors are on.
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
"""Settings that save bytes on a slow line: no easing, and at most 40 redraws per second.

Fewer would save more, but each paint, including the first, waits for up to one such period."""


def prepare(environ: MutableMapping[str, str]) -> None:
    """Set the variables that textual reads when imported, unless the operator has set them."""
    for name, value in _SETTINGS.items():
        environ.setdefault(name, value)


def as_started(
    environ: Mapping[str, str], memory: Path = Path("/proc/self/environ")
) -> Mapping[str, str]:
    """Return ``environ`` without the ``LC_CTYPE`` that Python sets in the C locale (PEP 538).

    The original environment is read from the process's memory; if it can't be read, nothing is
    removed.
    """
    try:
        given = memory.read_bytes().split(b"\0")
    except OSError:
        return environ
    if any(word.startswith(b"LC_CTYPE=") for word in given):
        return environ
    return {name: value for name, value in environ.items() if name != "LC_CTYPE"}


def ascii_only(environ: Mapping[str, str]) -> bool:
    """Return whether the terminal needs ASCII: no UTF-8 locale, or a Linux console.

    The locale is read from the environment, as Python coerces ``C`` to ``C.UTF-8``. Pass the result
    of ``as_started``, as Python changes ``LC_CTYPE``, too.
    """
    if environ.get("TERM") == "linux":
        return True
    names = (environ.get(name, "") for name in ("LC_ALL", "LC_CTYPE", "LANG"))
    locale = next((name for name in names if name), "C")
    return "utf8" not in locale.lower().replace("-", "")


def theme_problems(themes: Themes) -> list[str]:
    """Return messages on broken theme files."""
    problems = [f"theme {path.name} not used: {why}" for path, why in themes.failed]
    if len(problems) > _NAMED:
        problems = [f"{len(problems)} theme files not used; zconsole themes says why"]
    return problems


def _catch_signals(console: Console) -> None:
    """Exit in order, with the terminal restored, on signals and if the terminal is gone."""

    def _end() -> None:
        """Quit; the alarm ends the process if a dead terminal blocks textual."""
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(_GRACE)
        console.exit(return_code=ExitCode.INTERRUPTED)

    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, _end)
