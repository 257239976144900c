"""The past of a device as graphs: how wide, how high, what they say."""

from __future__ import annotations

import pytest

from tests.ui import frames
from tests.ui.drawn import LOOK, plain
from zconsole.pool.model import IoRates
from zconsole.ui.display_format import DisplayFormat
from zconsole.ui.panes.device_graphs import graphs
from zconsole.ui.widgets.draw import width_of
from zconsole.ui.widgets.glyphs import ASCII

FRAME = frames.resilver()
SLOW = FRAME.rows[6].key


def drawn(width, rows, look=LOOK, frame=FRAME, key=SLOW):
    return [plain(line) for line in graphs(key, frame, look, width, rows)]


@pytest.mark.parametrize("rows", [1, 3])
def test_each_has_its_name_and_scale_and_all_have_one_time(rows):
    lines = drawn(80, rows)
    assert [line.split()[0] for line in lines if line[0] != " "] == ["latency", "read", "write"]
    assert lines[0].endswith("  0-64ms")
    assert lines[rows].endswith("  0-64M")
    assert lines[2 * rows] == "write      none"
    assert lines[-1].split() == ["last", {1: "59s", 3: "1m59s"}[rows], "now"]
    assert len(lines) == 2 * rows + 2


@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize("width", range(1, 400, 7))
def test_they_fit_and_are_no_wider_than_what_is_kept(width, rows):
    for line in graphs(SLOW, FRAME, LOOK, width, rows):
        assert width_of(line) <= min(width, 260)


def test_plain_characters_do():
    lines = drawn(60, 3, DisplayFormat(ASCII))
    assert all(line.isascii() for line in lines)
    assert any("@" in line for line in lines)


def test_latency_below_a_millisecond_has_a_scale_in_microseconds():
    frame = frames.resilver()
    frame.series.rates = {SLOW: IoRates(latency=0.0001)}
    assert drawn(60, 1, frame=frame)[0].endswith("  0-128us")


def test_a_device_of_which_nothing_is_known_has_none():
    assert drawn(80, 1, key="nothing") == []
