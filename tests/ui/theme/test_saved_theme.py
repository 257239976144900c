"""The theme chosen is that of the next start, where it can be kept and is still there."""

from __future__ import annotations

import os
from contextlib import asynccontextmanager
from functools import partial

import pytest

from tests.ui import frames
from tests.ui.fakes import until, view_state
from tests.ui.test_start import UTF8, made
from zconsole.system.state_dir import StateError
from zconsole.ui.theme.files import SavedTheme


@pytest.fixture
def choice(tmp_path, monkeypatch):
    monkeypatch.setattr("zconsole.ui.app.Console.sixteen", False)
    return SavedTheme({"ZCONSOLE_STATE": str(tmp_path / "state")})


@asynccontextmanager
async def choosing(choice, *keys):
    async with view_state(frames.healthy(), choice=choice, notifications=True) as (app, pilot, _):
        await pilot.press("t", *keys)
        yield app, partial(until, pilot)


async def test_what_was_chosen_is_the_theme_of_the_next_start(choice):
    async with choosing(choice, "down", "down", "enter") as (app, seen):
        await seen(lambda: choice.recall(sixteen=False) == "light")
        assert not list(app.messages)
    assert made(UTF8, choice=choice).theme == "light"
    assert made(UTF8, choice=choice, theme="colorblind").theme == "colorblind"


async def test_what_was_only_looked_at_is_not(choice, tmp_path):
    async with choosing(choice, "down", "escape") as (app, _):
        assert app.theme == "dark"
    assert list(tmp_path.iterdir()) == []


def test_sixteen_colors_have_a_choice_of_their_own(choice, monkeypatch):
    choice.keep("light", sixteen=False)
    monkeypatch.setattr("zconsole.ui.app.Console.sixteen", True)
    assert made(UTF8, choice=choice).theme == "ansi16"
    choice.keep("high-contrast", sixteen=True)
    assert made(UTF8, choice=choice).theme == "high-contrast"


def test_a_theme_that_is_gone_is_forgotten(choice):
    choice.keep("mine", sixteen=False)
    app = made(UTF8, choice=choice)
    assert (app.theme, app._notices) == ("dark", ())


@pytest.mark.parametrize("text", [b"", b"\xff\0", b"dark\nlight\n", b" " * 9999])
def test_a_damaged_file_is_no_choice(choice, tmp_path, text):
    choice.keep("light", sixteen=False)
    (tmp_path / "state" / "theme").write_bytes(text)
    assert made(UTF8, choice=choice).theme == "dark"


@pytest.mark.parametrize("name", ["my theme", "b\udcffd", "é", "a\nb"])
def test_any_name_of_a_theme_is_kept(choice, name):
    choice.keep(name, sixteen=False)
    assert choice.recall(sixteen=False) == name


async def test_where_nothing_can_be_written_the_theme_is_put_on_and_one_line_says_so(tmp_path):
    (tmp_path / "state").write_text("a file")
    choice = SavedTheme({"ZCONSOLE_STATE": str(tmp_path / "state")})
    async with choosing(choice, "G", "enter") as (app, seen):
        await seen(lambda: app.messages)
        (notice,) = app.messages
        assert notice.message == (
            f"theme not remembered: state directory {tmp_path}/state refused:"
            " state is not a directory. Choose another place"
        )
        assert app.theme == "light"


def test_a_full_disk_leaves_what_was_kept(choice, tmp_path, monkeypatch):
    choice.keep("light", sixteen=False)

    def full(_handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StateError, match="No space left"):
        choice.keep("dark", sixteen=False)
    assert choice.recall(sixteen=False) == "light"
    assert [path.name for path in (tmp_path / "state").iterdir()] == ["theme"]
