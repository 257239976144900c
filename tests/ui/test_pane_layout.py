from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from zconsole.ui.pane_layout import PANES, WantedHeights, allot, graph_rows, past_graph_rows

WANTED = WantedHeights(header=3, scan=4, devices=9, balance=2)


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
    ),
    st.dictionaries(st.sampled_from(PANES), st.booleans()),
    st.sampled_from([None, *PANES]),
)
def test_never_more_lines_than_there_are(width, height, wanted, chosen, zoomed):
    heights = allot(width, height, wanted, chosen, zoomed)
    assert used(heights) <= max(0, height - wanted.header - 1)
    assert min(heights.scan, heights.devices, heights.balance, heights.events) >= 0


def test_events_take_what_the_devices_do_not_fill():
    heights = allot(80, 24, WANTED, {})
    assert heights == (4, 9, 2, 5, False)
    assert allot(200, 50, WANTED, {}) == (4, 9, 33, 33, True)
    alone = allot(200, 50, WANTED._replace(balance=0), {})
    assert (alone.devices, alone.balance, alone.events, alone.side) == (9, 0, 33, False)


def test_devices_have_what_is_left_where_events_are_hidden():
    assert allot(80, 24, WANTED, {"events": False}) == (4, 14, 2, 0, False)
    assert allot(200, 50, WANTED, {"events": False}).devices >= 30


def test_many_devices_leave_a_quarter_for_the_lower_panes_where_it_is_wide():
    many = WANTED._replace(devices=1000)
    assert allot(80, 24, many, {}).events == 0
    heights = allot(200, 50, many, {})
    assert (heights.balance, heights.events) == (10, 10)


def test_the_graph_has_several_rows_on_tall_screens_only():
    at = dict.fromkeys(((60, 15), (80, 24), (120, 29)), 1)
    at |= {(120, 30): 6, (120, 40): 8, (200, 50): 8}
    assert {size: graph_rows(*size, WANTED) for size in at} == at
    many = WANTED._replace(devices=1000)
    assert [graph_rows(120, height, many) for height in (37, 40)] == [1, 4]


def test_the_rows_of_the_graph_seldom_follow_the_number_of_devices():
    rows = {graph_rows(120, 40, WANTED._replace(devices=n)) for n in range(2, 60)}
    assert rows == {4, 6, 8}


def test_the_graph_of_a_zoomed_scan_takes_what_there_is():
    assert graph_rows(80, 24, WANTED, zoomed=True) == 16
    assert graph_rows(80, 10, WANTED._replace(scan=8), zoomed=True) == 1
    assert graph_rows(200, 90, WANTED, zoomed=True) == 20


def test_the_graph_of_a_scan_that_is_over_has_free_rows_only():
    at = {(80, 24): 0, (120, 30): 0, (120, 40): 4, (200, 50): 4}
    assert {size: past_graph_rows(*size, WANTED) for size in at} == at
    assert past_graph_rows(80, 24, WANTED, zoomed=True) == 15
    assert past_graph_rows(80, 8, WANTED, zoomed=True) == 0


def test_a_small_screen_is_for_devices():
    heights = allot(60, 15, WANTED, {})
    assert heights.devices == 7
    assert heights.balance == heights.events == 0


def test_a_pane_asked_for_takes_room_from_the_devices():
    heights = allot(60, 15, WANTED, {"events": True})
    assert heights.events >= 2
    assert heights.devices >= 4


def test_a_pane_hidden_stays_hidden():
    heights = allot(80, 50, WANTED, {"balance": False, "scan": False})
    assert heights.balance == heights.scan == 0


def test_the_balance_of_several_vdevs_has_room_beside_many_devices_and_that_of_one_has_not():
    many = WANTED._replace(devices=30, balance=7)
    assert allot(80, 24, many, {}).balance == 3
    assert allot(80, 24, many._replace(balance=2), {}).balance == 0
    assert allot(80, 24, many._replace(balance=2), {"balance": True}).balance == 3
    assert allot(60, 15, many, {}).balance == 0


def test_zoom_gives_everything_to_one():
    heights = allot(80, 24, WANTED, {}, zoomed="balance")
    assert (heights.scan, heights.devices, heights.balance, heights.events) == (0, 0, 20, 0)


def test_wide_screens_put_the_lower_panes_beside_each_other():
    assert allot(200, 50, WANTED, {}).side
    assert not allot(120, 50, WANTED, {}).side
