"""Effects of environment and options on the console."""

from __future__ import annotations

import asyncio
import os
import pty
import signal
import subprocess
import sys
import termios
from datetime import UTC

import pytest

from tests.factory import frame, mirror_pool
from tests.table import rows
from tests.ui import frames
from tests.ui.fakes import FakeFeed, screen_text
from zconsole.system.process import Completed
from zconsole.timeline.alerts.alerting import Alerting
from zconsole.timeline.alerts.rules import AlertRules
from zconsole.timeline.feed import Feed, Update
from zconsole.ui.console_options import ConsoleOptions
from zconsole.ui.start import as_started, ascii_only, make_console, prepare, run_console
from zconsole.zfs.sources.base import Capabilities

UTF8 = {"LANG": "en_US.UTF-8", "TERM": "xterm-256color", "HOME": "/nonexistent"}


@rows(
    ("environ", "plain"),
    [
        ({"LANG": "en_US.UTF-8"}, False),
        ({"LANG": "C.utf8"}, False),
        ({"LANG": "C"}, True),
        ({}, True),
        ({"LANG": "en_US.UTF-8", "LC_ALL": "C"}, True),
        ({"LANG": "C", "LC_CTYPE": "de_DE.UTF-8"}, False),
        ({"LANG": "en_US.UTF-8", "TERM": "linux"}, True),
        ({"LANG": "ja_JP.eucJP"}, True),
    ],
)
def test_ascii_by_locale_and_terminal(environ, plain):
    assert ascii_only(environ) is plain


def test_the_locale_python_sets_for_itself_does_not_count(tmp_path):
    code = (
        "import os; from zconsole.ui.start import as_started, ascii_only;"
        "print(os.environ.get('LC_CTYPE'), ascii_only(as_started(os.environ)))"
    )
    given = {"PATH": os.environ["PATH"], "TERM": "vt100"}
    for locale, plain in ({"LANG": "C"}, True), ({}, True), ({"LC_CTYPE": "C.UTF-8"}, False):
        run = subprocess.run(
            [sys.executable, "-c", code],
            env={**given, **locale},
            stdout=subprocess.PIPE,
            check=True,
        )
        assert run.stdout.split()[1:] == [str(plain).encode()]
    assert as_started({"LC_CTYPE": "UTF-8"}, tmp_path / "absent") == {"LC_CTYPE": "UTF-8"}


def test_the_feed_is_closed_when_the_console_ends(monkeypatch):
    """Otherwise the process it follows (`zpool events`) would outlive it."""

    async def quits(*_, **__) -> None:
        return None

    monkeypatch.setattr("textual.app.App.run_async", quits)
    monkeypatch.setattr(os, "environ", dict(UTF8))
    feed = FakeFeed()
    assert run_console(feed, ConsoleOptions(zone=UTC)) == 0
    assert feed.closed


def test_an_alert_on_its_way_is_sent_though_the_console_ends_and_a_pool_hangs(monkeypatch, capsys):
    sent = []

    class Hanging(Feed):
        async def sample(self):
            return Update((frame(mirror_pool(), 1.0, kstat="SUSPENDED"),), Capabilities("live"))

        async def close_sources(self):
            await asyncio.Event().wait()

    class Mail:
        async def tell(self, argv, text, deadline):
            await asyncio.sleep(0.2)  # longer than the console waits for its sources
            sent.append(argv)
            return Completed(argv, 0, "", "")

    async def quits(console, **_) -> None:
        await console.feed.next()

    monkeypatch.setattr("textual.app.App.run_async", quits)
    monkeypatch.setattr("zconsole.ui.start._CLOSING", 0.05)
    monkeypatch.setattr(os, "environ", dict(UTF8))
    feed = Hanging(1.0)
    feed.alerts = Alerting(AlertRules(), Mail(), ("page",))
    assert run_console(feed, ConsoleOptions(zone=UTC)) == 0
    assert sent == [("page",)]
    assert "the hook still runs for the last alerts" in capsys.readouterr().err


@pytest.mark.parametrize("number", [None, signal.SIGTERM])
def test_a_start_that_is_ended_leaves_the_terminal_as_it_was(number, monkeypatch):
    ours, theirs = pty.openpty()
    handler = signal.getsignal(signal.SIGTERM)
    found = termios.tcgetattr(theirs)

    def fails(*_):
        assert not termios.tcgetattr(theirs)[3] & termios.ECHO
        if number is None:  # Ctrl-C
            raise KeyboardInterrupt
        signal.raise_signal(number)

    monkeypatch.setattr("zconsole.ui.start.make_console", fails)
    monkeypatch.setattr(os, "environ", dict(UTF8))
    with os.fdopen(theirs) as terminal:
        monkeypatch.setattr(sys, "__stdin__", terminal)
        with pytest.raises(KeyboardInterrupt):
            run_console(FakeFeed(), ConsoleOptions(zone=UTC))
        assert termios.tcgetattr(theirs) == found
    assert signal.getsignal(signal.SIGTERM) == handler
    os.close(ours)


def test_the_operators_settings_win():
    environ = {"TEXTUAL_ANIMATIONS": "full"}
    prepare(environ)
    assert environ["TEXTUAL_ANIMATIONS"] == "full"
    assert environ["TEXTUAL_SMOOTH_SCROLL"] == "0"


def test_starting_up_imports_no_textual_before_it_is_wanted():
    code = (
        "import sys, zconsole.ui.start, zconsole.ui.console_options, zconsole.ui.keys;"
        "import zconsole.ui.theme.files;"
        "sys.exit(any(m.split('.')[0] in ('textual', 'rich') for m in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def made(environ, **options):
    return make_console(
        FakeFeed((frames.resilver(),)), ConsoleOptions(zone=UTC, **options), environ
    )


async def read(app, size=(80, 24)):
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        return screen_text(app)


async def test_ascii_on_request():
    assert (await read(made(UTF8, ascii=True))).isascii()


async def test_ascii_where_the_locale_is_not_utf8():
    assert (await read(made(UTF8 | {"LANG": "C"}))).isascii()


async def test_unicode_otherwise():
    assert "█" in await read(made(UTF8))


async def test_a_theme_asked_for():
    assert made(UTF8, theme="light").theme == "light"


async def test_a_theme_that_is_not_there_is_one_notice_and_the_default():
    app = made(UTF8, theme="nope")
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await pilot.pause()
        assert [n.message for n in app.messages] == [
            "no theme nope; there are ansi16, colorblind, dark, high-contrast, light"
        ]
        assert app.theme != "nope"


async def test_a_theme_by_path(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(
        '[colors]\nbackground="#000000"\nforeground="#ffffff"\nwarning="#ffff00"\nerror="#ff0000"\n'
    )
    assert made(UTF8, theme=str(path)).theme == "mine"


def test_no_color_takes_the_terminals_own(monkeypatch):
    monkeypatch.setenv("NO_COLOR", "")
    assert made(UTF8 | {"NO_COLOR": ""}).native_ansi_color
