"""The console saves its appearance, and restores it at its next start."""

from __future__ import annotations

from contextlib import asynccontextmanager
from functools import partial

import pytest

from tests.ui import frames
from tests.ui.fakes import screen_text, until, view_state
from tests.ui.test_start import UTF8, made
from zconsole.config import file
from zconsole.config.file import Config, read_config

KEPT = '# Night watch\ninterval = 2  # seconds\nunits = "binary"  # as zpool\n\n[keys]\nup = "e"\n'


@pytest.fixture
def path(tmp_path, monkeypatch):
    found = tmp_path / "config.toml"
    monkeypatch.setattr(file, "config_path", lambda: found)
    monkeypatch.setattr("zconsole.ui.app.Console.sixteen", False)
    return found


@asynccontextmanager
async def opened(*keys, **options):
    """Open a console with the current configuration, and press these keys."""
    made_of = {"config": read_config(), "notifications": True, **options}
    async with view_state(frames.healthy(), **made_of) as (app, pilot, _):
        await pilot.press(*keys)
        yield app, partial(until, pilot)


async def test_what_was_chosen_is_the_theme_of_the_next_start(path):
    async with opened("t", "down", "down", "enter") as (_, seen):
        await seen(path.exists)
    assert path.read_text() == 'theme = "light"\n'
    assert made(UTF8, config=read_config()).theme == "light"
    assert made(UTF8, config=read_config(), theme="colorblind").theme == "colorblind"


async def test_a_demo_keeps_a_theme_for_this_run_only_and_says_so(path):
    async with opened("t", "down", "down", saves=False) as (app, seen):
        assert "Enter keeps it for this run" in screen_text(app)
        await app.run_action("screen.open")
        await seen(lambda: list(app.messages))
        (notice,) = app.messages
        assert notice.message == "theme light for this run only: a demo saves nothing"
        assert app.theme == "light"
        offered = [command.title for command in app.get_system_commands(app.screen)]
        assert "Save how the console looks" not in offered
    assert not path.exists()


async def test_where_a_theme_is_saved_is_shown_before_it_is_kept(path):
    async with opened("t") as (app, _):
        said = "".join(line[46:].strip() for line in screen_text(app).splitlines())
        assert f"Entersavesitto{path}" in said.replace(" ", "")


async def test_what_was_only_looked_at_is_not_saved(path):
    async with opened("t", "down", "escape") as (app, _):
        assert app.theme == "dark"
    assert not path.exists()


async def test_without_a_configuration_nothing_is_saved(path):
    async with view_state(frames.healthy()) as (app, pilot, _):
        await pilot.press("t", "down", "down", "enter")
        await pilot.pause()
        assert app.theme == "light"
    assert not path.exists()


def test_sixteen_colors_have_a_theme_of_their_own(path, monkeypatch):
    path.write_text('theme = "light"\n')
    assert made(UTF8, config=read_config()).theme == "light"
    monkeypatch.setattr("zconsole.ui.app.Console.sixteen", True)
    assert made(UTF8, config=read_config()).theme == "ansi16"
    path.write_text('theme = "light"\ntheme-16 = "high-contrast"\n')
    assert made(UTF8, config=read_config()).theme == "high-contrast"


async def test_a_saved_look_keeps_comments_and_other_settings(path):
    path.write_text(KEPT)
    async with opened("u", "s", "2") as (app, seen):
        app.action_save_look()
        await seen(lambda: path.read_text() != KEPT)
    assert path.read_text() == KEPT.replace('"binary"  #', '"decimal"  #').replace(
        "as zpool\n", 'as zpool\nsort = "latency"\npanes = ["scan", "balance", "events"]\n'
    )
    again = made(UTF8, config=read_config())
    async with again.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        assert again.view_state.look.unit == "decimal"
        assert again.devices.arrangement.sort == "latency"
        assert again.main_screen.chosen["devices"] is False


async def test_a_look_that_is_saved_already_is_not_written_again(path):
    path.write_text('sort = "busy"\n')
    async with opened() as (app, seen):
        before = path.stat()
        app.action_save_look()
        await seen(lambda: list(app.messages))
        (notice,) = app.messages
        assert notice.message.startswith("nothing to save")
        assert path.stat().st_ino == before.st_ino


async def test_where_nothing_can_be_written_one_line_says_so(path):
    path.parent.chmod(0o777)
    async with opened("t", "down", "down", "enter") as (app, seen):
        await seen(lambda: list(app.messages))
        (notice,) = app.messages
        assert notice.message.startswith("not saved: ")
        assert app.theme == "light"
    assert not path.exists()


def test_a_theme_that_is_gone_is_the_default_and_one_notice(path):
    app = made(UTF8, config=Config(path, values={"theme": "mine"}))
    assert (app.theme, len(app._notices)) == ("dark", 1)
