from __future__ import annotations

from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from tests.ui import frames
from tests.ui.fakes import FakeFeed, console
from zconsole.config.settings import PANES
from zconsole.ui.display_format import DisplayFormat
from zconsole.ui.panes.pane import Heights, Scene, Wish, allot
from zconsole.ui.panes.scan import graph_rows, past_graph_rows


class Wanted(NamedTuple):
    """Lines that each part would fill; events take whatever is left."""

    header: int = 3
    scan: int = 4
    devices: int = 9
    balance: int = 2

    @property
    def wishes(self) -> tuple[Wish, ...]:
        least = 3 if self.balance >= 3 else 0
        return (
            Wish("scan", "top", self.scan),
            Wish("devices", "list", self.devices, steady=self.devices),
            Wish("balance", "bottom", self.balance, least=least),
            Wish("events", "bottom", 10, least=4, fills=True),
        )


WANTED = Wanted()


class Given(NamedTuple):
    scan: int
    devices: int
    balance: int
    events: int
    side: bool = False


def allotted(width, height, wanted, chosen, zoomed=None) -> Given:
    """Return the lines that each pane gets in a terminal of this size."""
    room = max(0, height - wanted.header - 1)
    heights = allot(width, room, wanted.wishes, chosen, zoomed)
    return Given(**heights.lines, side=heights.side)


def scene(width, height, wanted, *, zoomed=False) -> Scene:
    return Scene(
        frames.healthy(),
        DisplayFormat(),
        None,
        width,
        height,
        max(0, height - wanted.header - 1),
        zoomed="scan" if zoomed else None,
        below=wanted.wishes[1:],
    )


def rows_of(share, width, height, wanted, *, zoomed=False) -> int:
    return share(scene(width, height, wanted, zoomed=zoomed), wanted.scan)


def used(heights):
    low = (heights.balance, heights.events)
    return heights.scan + heights.devices + (max(low) if heights.side else sum(low))


@given(
    st.integers(10, 250),
    st.integers(3, 100),
    st.builds(
        Wanted,
        st.integers(1, 5),
        st.integers(0, 30),
        st.integers(1, 1500),
        st.integers(0, 200),
    ),
    st.dictionaries(st.sampled_from(PANES), st.booleans()),
    st.sampled_from([None, *PANES]),
)
def test_never_more_lines_than_there_are(width, height, wanted, chosen, zoomed):
    heights = allotted(width, height, wanted, chosen, zoomed)
    assert used(heights) <= max(0, height - wanted.header - 1)
    assert min(heights.scan, heights.devices, heights.balance, heights.events) >= 0


def test_a_further_pane_below_the_list_has_its_share():
    more = (*WANTED.wishes[:3], Wish("jobs", "bottom", 3), WANTED.wishes[3])
    assert allot(80, 24, more, {}) == Heights(
        {"scan": 4, "devices": 9, "balance": 2, "jobs": 3, "events": 6}
    )
    wide = allot(200, 60, more, {}).lines
    assert wide["balance"] == wide["jobs"] == wide["events"]


def test_events_take_what_the_devices_do_not_fill():
    heights = allotted(80, 24, WANTED, {})
    assert heights == (4, 9, 2, 5, False)
    assert allotted(200, 50, WANTED, {}) == (4, 9, 33, 33, True)
    alone = allotted(200, 50, WANTED._replace(balance=0), {})
    assert (alone.devices, alone.balance, alone.events, alone.side) == (9, 0, 33, False)


def test_devices_have_what_is_left_where_events_are_hidden():
    assert allotted(80, 24, WANTED, {"events": False}) == (4, 14, 2, 0, False)
    assert allotted(200, 50, WANTED, {"events": False}).devices >= 30


def test_many_devices_leave_a_quarter_for_the_lower_panes_where_it_is_wide():
    many = WANTED._replace(devices=1000)
    assert allotted(80, 24, many, {}).events == 0
    heights = allotted(200, 50, many, {})
    assert (heights.balance, heights.events) == (10, 10)


def test_the_graph_has_several_rows_on_tall_screens_only():
    at = dict.fromkeys(((60, 15), (80, 24), (120, 29)), 1)
    at |= {(120, 30): 6, (120, 40): 8, (200, 50): 8}
    assert {size: rows_of(graph_rows, *size, WANTED) for size in at} == at
    many = WANTED._replace(devices=1000)
    assert [rows_of(graph_rows, 120, height, many) for height in (37, 40)] == [1, 4]


def test_the_rows_of_the_graph_seldom_follow_the_number_of_devices():
    rows = {rows_of(graph_rows, 120, 40, WANTED._replace(devices=n)) for n in range(2, 60)}
    assert rows == {4, 6, 8}


def test_the_graph_of_a_zoomed_scan_takes_what_there_is():
    assert rows_of(graph_rows, 80, 24, WANTED, zoomed=True) == 16
    assert rows_of(graph_rows, 80, 10, WANTED._replace(scan=8), zoomed=True) == 1
    assert rows_of(graph_rows, 200, 90, WANTED, zoomed=True) == 20


def test_the_graph_of_a_scan_that_is_over_has_free_rows_only():
    at = {(80, 24): 0, (120, 30): 0, (120, 40): 4, (200, 50): 4}
    assert {size: rows_of(past_graph_rows, *size, WANTED) for size in at} == at
    assert rows_of(past_graph_rows, 80, 24, WANTED, zoomed=True) == 15
    assert rows_of(past_graph_rows, 80, 8, WANTED, zoomed=True) == 0


def test_a_small_screen_is_for_devices():
    heights = allotted(60, 15, WANTED, {})
    assert heights.devices == 7
    assert heights.balance == heights.events == 0


def test_a_pane_asked_for_takes_room_from_the_devices():
    heights = allotted(60, 15, WANTED, {"events": True})
    assert heights.events >= 2
    assert heights.devices >= 4


def test_a_pane_hidden_stays_hidden():
    heights = allotted(80, 50, WANTED, {"balance": False, "scan": False})
    assert heights.balance == heights.scan == 0


def test_the_balance_of_several_vdevs_has_room_beside_many_devices_and_that_of_one_has_not():
    many = WANTED._replace(devices=30, balance=7)
    assert allotted(80, 24, many, {}).balance == 3
    assert allotted(80, 24, many._replace(balance=2), {}).balance == 0
    assert allotted(80, 24, many._replace(balance=2), {"balance": True}).balance == 3
    assert allotted(60, 15, many, {}).balance == 0


def test_zoom_gives_everything_to_one():
    heights = allotted(80, 24, WANTED, {}, zoomed="balance")
    assert (heights.scan, heights.devices, heights.balance, heights.events) == (0, 0, 20, 0)


def test_wide_screens_put_the_lower_panes_beside_each_other():
    assert allotted(200, 50, WANTED, {}).side
    assert not allotted(120, 50, WANTED, {}).side


def test_every_pane_can_be_named_in_the_configuration():
    assert tuple(console(FakeFeed()).main_screen.panes) == PANES
