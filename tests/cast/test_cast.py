"""Tests of the saved recording and its picture; ``python -m tests.cast`` makes both anew."""

from __future__ import annotations

import json
import re
from xml.etree import ElementTree

import pytest

from tests.cast import CAST, MOST, PICTURE, script
from tests.cast.asciicast import INPUT, OUTPUT, Cast, Event, dumped, loaded
from tests.cast.picture import drawn
from tests.cast.recorder import SENT
from tests.cast.rows import Pen
from tests.cast.screens import screens

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def kept():
    return loaded(CAST.read_text("utf-8"))


@pytest.fixture(scope="module")
def picture():
    return PICTURE.read_text("utf-8")


def written(*texts: str, columns: int = 10) -> Cast:
    """Return a recording with one text written per second."""
    events = tuple(Event(float(at), OUTPUT, text) for at, text in enumerate(texts))
    return Cast(columns, 2, "demo", float(len(texts)), events)


def test_the_recording_is_an_asciicast_of_version_2():
    header, *events = map(json.loads, CAST.read_text("utf-8").removesuffix("\n").split("\n"))
    assert header["version"] == 2
    assert (header["width"], header["height"]) == (script.COLUMNS, script.ROWS)
    times = [at for at, kind, text in events if kind in (INPUT, OUTPUT) and isinstance(text, str)]
    assert len(times) == len(events)
    assert times == sorted(times)
    assert 0.0 <= times[0] <= times[-1] <= header["duration"] == script.SECONDS


def test_the_recording_is_of_the_script(kept):
    assert kept.title == " ".join(script.COMMAND)
    pressed = [event for event in kept.events if event.kind == INPUT]
    assert [event.text for event in pressed] == [SENT.get(key, key) for _, key in script.KEYS]
    assert [event.at for event in pressed] == pytest.approx([at for at, _ in script.KEYS], abs=0.5)


def test_the_picture_is_made_from_the_recording(kept, picture):
    assert drawn(kept, script.STILL) == picture


def test_the_picture_is_small_enough(picture):
    assert len(picture.encode()) <= MOST


def test_the_picture_needs_nothing_from_outside_and_runs_no_script(picture):
    elements = list(ElementTree.fromstring(picture).iter())
    assert {element.tag.removeprefix(SVG) for element in elements} <= {
        *("svg", "title", "style", "defs", "g", "use", "rect", "path", "text")
    }
    named = {f"#{element.get('id')}" for element in elements}
    attributes = [pair for element in elements for pair in element.items()]
    assert {value for name, value in attributes if name.endswith("href")} <= named
    assert not [name for name, _ in attributes if name.startswith("on")]
    assert not re.search(r"url\(|@import|@font-face", picture)


def test_every_color_of_the_picture_is_a_number(picture):
    colors = re.findall(r'fill(?::|=")#?([^;"}]*)', picture)
    assert not [color for color in colors if not re.fullmatch("[0-9a-f]{6}", color)]


def test_one_screen_stands_still_where_nothing_may_move(picture):
    assert len(re.findall(r'class="m s"', picture)) == 1
    assert "@media(prefers-reduced-motion:reduce)" in picture


def test_a_recording_is_read_as_it_was_written():
    cast = written("\x1b[1mé\x85\u2028", "\r\n")
    assert loaded(dumped(cast)) == cast


def test_a_row_that_stays_is_drawn_once():
    picture = drawn(written("same", "\r\nnext", "\x1b[2K"), 0.0)
    assert picture.count(">same</text>") == 1
    assert picture.count('<use href="#r0"') == len(screens(written("same", "\r\nnext", "\x1b[2K")))


def test_what_changes_nothing_is_no_new_screen():
    assert [screen.at for screen in screens(written("a", "\ra", "\rb"))] == [0.0, 2.0]


def elements(text: str) -> str:
    """Return the elements of the first row of a screen with that text."""
    return Pen("default").drawn(screens(written(text))[0].rows[0])


def test_text_of_one_color_is_one_element_as_wide_as_its_cells():
    assert elements("a  <b") == '<text class="l0" x="0" textLength="50">a  &lt;b</text>'


def test_equal_blocks_are_one_area_and_a_narrow_one_ends_it():
    assert elements("x██▌") == (
        '<text class="l0" x="0" textLength="10">x</text>'
        '<path class="l0" d="M10 -15h20v20h-20zM30 -15h5v20h-5z"/>'
    )


def test_a_ground_of_another_color_is_drawn_below_the_text():
    assert elements("a\x1b[48;2;1;2;3mb ") == (
        '<path fill="#010203" d="M10 -15h20v20h-20z"/>'
        '<text class="l0" x="0" textLength="20">ab</text>'
    )
