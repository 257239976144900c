from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from zconsole.ui.pane_layout import PANES, WantedHeights, allot

WANTED = WantedHeights(header=3, scan=4, devices=9, balance=2, events=4)


def used(heights):
    low = (heights.balance, heights.events)
    return heights.scan + heights.devices + (max(low) if heights.side else sum(low))


@given(
    st.integers(10, 250),
    st.integers(3, 100),
    st.builds(
        WantedHeights,
        st.integers(1, 5),
        st.integers(0, 30),
        st.integers(1, 1500),
        st.integers(0, 200),
        st.integers(0, 200),
    ),
    st.dictionaries(st.sampled_from(PANES), st.booleans()),
    st.sampled_from([None, *PANES]),
)
def test_never_more_lines_than_there_are(width, height, wanted, chosen, zoomed):
    heights = allot(width, height, wanted, chosen, zoomed)
    assert used(heights) <= max(0, height - wanted.header - 1)
    assert min(heights.scan, heights.devices, heights.balance, heights.events) >= 0


def test_devices_take_what_is_left():
    heights = allot(80, 24, WANTED, {})
    assert heights.scan == 4
    assert heights.devices >= 9
    assert heights.balance == 2


def test_a_small_screen_is_for_devices():
    heights = allot(60, 15, WANTED, {})
    assert heights.devices == 7
    assert heights.balance == heights.events == 0


def test_a_pane_asked_for_takes_room_from_the_devices():
    heights = allot(60, 15, WANTED, {"events": True})
    assert heights.events >= 2
    assert heights.devices >= 5


def test_a_pane_hidden_stays_hidden():
    heights = allot(80, 50, WANTED, {"balance": False, "scan": False})
    assert heights.balance == heights.scan == 0


def test_zoom_gives_everything_to_one():
    heights = allot(80, 24, WANTED, {}, zoomed="balance")
    assert (heights.scan, heights.devices, heights.balance, heights.events) == (0, 0, 20, 0)


def test_wide_screens_put_the_lower_panes_beside_each_other():
    assert allot(200, 50, WANTED, {}).side
    assert not allot(120, 50, WANTED, {}).side
