"""Theme files: found, checked, chosen, and drawn."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest
from textual.geometry import Region

from tests.table import rows
from tests.ui import frames
from tests.ui.fakes import FakeFeed, console, screen_text
from tests.ui.theme.contrast import contrast
from zconsole.ui.dialogs.screens import Prompt
from zconsole.ui.start import theme_problems
from zconsole.ui.theme.files import (
    COLORS,
    ThemeError,
    choose,
    find_themes,
    packaged_directory,
    read_theme,
)
from zconsole.ui.theme.styles import textual_theme

NOWHERE = {"HOME": "/nonexistent"}
SHIPPED = find_themes(NOWHERE).found
GOOD = """
[colors]
background = "#000000"
foreground = "#ffffff"
warning = "#ffff00"
error = "#f00"
"""


def write(tmp_path, name, text):
    directory = tmp_path / "zconsole" / "themes"
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / name
    path.write_text(text, encoding="utf-8")
    return path


def search(tmp_path):
    return find_themes({"XDG_CONFIG_HOME": str(tmp_path)})


def test_shipped_themes():
    assert set(SHIPPED) == {"dark", "light", "ansi16", "high-contrast", "colorblind"}
    assert not find_themes(NOWHERE).failed
    assert {path.name for path in packaged_directory().glob("*.toml")} >= {
        f"{name}.toml" for name in SHIPPED
    }


@rows("variable", ["XDG_CONFIG_HOME", "HOME"])
def test_a_directory_that_cannot_be_asked_hides_no_shipped_theme(variable):
    assert find_themes({variable: "/" + "x" * 4000}).found == SHIPPED


def test_themes_of_the_working_directory_are_none_of_the_operators(tmp_path, monkeypatch):
    write(tmp_path / "home/.config", "mine.toml", GOOD)
    monkeypatch.chdir(tmp_path)
    for environ in ({"HOME": "home"}, {"HOME": "/x", "XDG_CONFIG_HOME": "home/.config"}):
        assert find_themes(environ).found == SHIPPED


@pytest.mark.parametrize("name", [n for n, t in SHIPPED.items() if not t.ansi])
async def test_what_an_empty_input_says_can_be_read(name):
    app = console(FakeFeed((frames.resilver(),)), theme=name)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("slash")
        await pilot.pause()
        prompt = app.query_one("#prompt", Prompt)
        (strip,) = prompt.render_lines(Region(0, 0, 80, 1))
        style = next(s.style for s in strip if s.text.strip() and s.text in str(prompt.placeholder))
        front, back = (c.get_truecolor().hex for c in (style.color, style.bgcolor))
        assert contrast(front, back) >= 4.5


async def test_every_theme_draws():
    app = console(FakeFeed((frames.resilver(),)))
    async with app.run_test(size=(80, 24)) as pilot:
        for name in SHIPPED:
            app.theme = name
            await pilot.pause()
            assert "DEGRADED" in screen_text(app)


def test_a_theme_needs_four_colors_and_fills_in_the_rest(tmp_path):
    theme = read_theme(write(tmp_path, "mine.toml", GOOD))
    assert theme.name == "mine"
    assert set(theme.colors) == set(COLORS)
    assert theme.colors["dim"] == "#ffffff"
    assert textual_theme(theme).error == "#f00"


def test_a_file_dropped_in_is_found_and_hides_a_shipped_name(tmp_path):
    path = write(tmp_path, "dark.toml", GOOD)
    assert search(tmp_path).found["dark"].path == path


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("colors = [", "not TOML"),
        (GOOD.replace("#000000", "reddish"), "colors.background must be written #rrggbb"),
        (GOOD + "sparkle = '#fff'", "unknown color 'sparkle'"),
        ("surprise = 1" + GOOD, "unknown key 'surprise'"),
        ("dark = 'yes'" + GOOD, "dark must be a bool"),
        (GOOD.replace('error = "#f00"', ""), "colors.error is missing"),
        ("ansi = true" + GOOD, "must be written ansi_NAME"),
    ],
)
def test_a_broken_theme_is_named_with_its_fault_and_the_others_still_work(tmp_path, text, why):
    path = write(tmp_path, "broken.toml", text)
    found = search(tmp_path)
    assert [p for p, _ in found.failed] == [path]
    assert why in found.failed[0][1]
    assert "dark" in found.found
    with pytest.raises(ThemeError, match="broken"):
        choose("broken", found)


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda path: path.mkdir(), "not a file"),
        (os.mkfifo, "not a file"),
        (lambda path: path.symlink_to("/dev/zero"), "not a file"),
        (lambda path: path.symlink_to("nowhere"), "No such file"),
        (lambda path: path.symlink_to(path), "symbolic links"),
        (lambda path: path.write_text(GOOD + "#" * 70_000), "larger than 8192 bytes"),
    ],
)
def test_what_is_no_file_or_too_large_is_not_read(tmp_path, make, why):
    directory = tmp_path / "zconsole" / "themes"
    directory.mkdir(parents=True)
    make(directory / "odd.toml")
    ((path, said),) = search(tmp_path).failed
    assert path.name == "odd.toml"
    assert why in said


def test_a_theme_without_a_name_has_that_of_its_file(tmp_path):
    assert read_theme(write(tmp_path, "mine.toml", 'name = ""' + GOOD)).name == "mine"


def test_many_broken_themes_are_counted_and_few_are_named(tmp_path):
    for name in ("a", "b"):
        write(tmp_path, f"{name}.toml", "colors = [")
    assert len(theme_problems(search(tmp_path))) == 2
    write(tmp_path, "c.toml", "colors = [")
    assert theme_problems(search(tmp_path)) == ["3 theme files not used; zconsole themes says why"]


def test_choosing_by_name_or_path(tmp_path):
    path = write(tmp_path, "mine.toml", GOOD)
    found = search(tmp_path)
    assert choose("light", found).name == "light"
    assert choose(str(path), found).path == path
    with pytest.raises(ThemeError, match="no theme nope; there are ansi16, colorblind"):
        choose("nope", found)
    with pytest.raises(ThemeError, match="No such file"):
        choose(str(tmp_path / "gone.toml"), found)


def test_a_pipe_that_takes_the_place_of_a_theme_is_not_waited_for(tmp_path, monkeypatch):
    """Another process may swap the two between the check and the open."""
    file, pipe, errors = tmp_path / "file.toml", tmp_path / "pipe.toml", []
    file.write_text(GOOD)
    os.mkfifo(pipe)
    looking = file.stat()
    monkeypatch.setattr(Path, "stat", lambda self, **_: looking)

    def read():
        with pytest.raises(ThemeError) as error:
            read_theme(pipe)
        errors.append(str(error.value))

    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    thread.join(5)
    assert errors == ["not a file"]
