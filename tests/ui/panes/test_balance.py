"""The balance: one bar per vdev, and the imbalance."""

from __future__ import annotations

import re

from tests.records import replace
from tests.table import rows
from tests.ui import frames
from tests.ui.drawn import LOOK, plain, text
from zconsole.pool.volumes import VolumeLimit
from zconsole.ui.panes.balance import balance_lines, balance_title


class TestBalance:
    def test_spread_and_shares(self):
        frame = frames.imbalance()
        for width, amount in (
            (80, "  24.8T above the mean (raw) "),
            (60, "  24.8T surplus "),
            (50, " ─"),
        ):
            title = plain(balance_title(frame.balance, LOOK, width))
            assert f"spread 93.1 %{amount}" in title
            assert len(title) == width
        lines = balance_lines(frame.balance, LOOK, 80)
        assert "93.3 %" in plain(lines[0])
        assert "84 %" in plain(lines[1])

    @rows(
        ("width", "said"),
        [
            (120, "  at best 40.0 %: 9T in 14 volumes stay "),
            (80, "  at best 40.0 %: volumes "),
            (60, " ─"),
        ],
    )
    def test_what_volumes_keep_of_the_spread_is_in_the_title(self, width, said):
        limit = VolumeLimit(14, 9 << 40, 0.4, ("raidz1-0",))
        title = plain(
            balance_title(replace(frames.imbalance().balance, volumes=limit), LOOK, width)
        )
        assert f"spread 93.1 %{said}" in title
        assert len(title) == width
        few = replace(frames.imbalance().balance, volumes=replace(limit, least_spread=0.01))
        assert "surplus" in plain(balance_title(few, LOOK, 60))

    @rows(("spread", "said"), [(0.02, "2.0 %"), (0.0503, "5.0 %")])
    def test_what_counts_as_even_has_nothing_out_of_place(self, spread, said):
        even = replace(frames.imbalance().balance, spread=spread)
        assert f"spread {said}  even ─" in plain(balance_title(even, LOOK, 80))

    def test_wide_has_room_for_the_whole_name(self):
        base = frames.imbalance().balance
        vdev = replace(base.vdevs[0], name="draid2:8d:24c:2s-0")
        balance = replace(base, vdevs=(vdev, *base.vdevs[1:]))
        assert "draid2:8d:24c:2s-0  " in text(balance_lines(balance, LOOK, 120))
        assert "draid2:8d:24c:2s-0" not in text(balance_lines(balance, LOOK, 80))
        assert len({len(plain(line)) for line in balance_lines(balance, LOOK, 120)}) == 1

    def test_the_fullest_and_the_emptiest_come_first_where_not_all_fit(self):
        base = frames.imbalance().balance.vdevs[0]
        fills = (0.5, 0.2, 0.6, 0.9, 0.4)
        vdevs = tuple(replace(base, name=f"raidz1-{i}", fill=f) for i, f in enumerate(fills))
        balance = replace(frames.imbalance().balance, vdevs=vdevs)

        def order(room):
            lines = balance_lines(balance, LOOK, 80, room)
            return [int(n) for n in re.findall(r"raidz1-(\d)", text(lines))]

        assert order(1) == order(2) == [1, 3, 0, 2, 4]
        assert order(3) == order(5) == order(None) == [0, 1, 2, 3, 4]

    def test_two_share_a_line_where_not_each_has_its_own(self):
        base = frames.imbalance().balance.vdevs[0]
        vdevs = tuple(replace(base, name=f"raidz1-{i}", fill=0.5) for i in range(3))
        balance = replace(frames.imbalance().balance, vdevs=vdevs)
        lines = [plain(line) for line in balance_lines(balance, LOOK, 80, 2)]
        assert [line.count("50.0 %") for line in lines] == [2, 1]
        assert max(map(len, lines)) <= 80
        heads = plain(balance_title(balance, LOOK, 80, 2))
        assert heads.index("raw free") + len("raw free") == lines[0].rindex("T") + 1
        assert heads.index("new") + len("new") == lines[0].rindex("%") + 1
        assert "writes" not in heads, "a rate of writes, it seemed"
        exact = balance_lines(balance, replace(LOOK, unit="exact"), 80, 2)
        assert [plain(line).count("50.0 %") for line in exact] == [1, 1, 1]

    def test_vdevs_of_unknown_fill_keep_their_order(self):
        base = frames.imbalance().balance.vdevs[0]
        fills = {"raidz1-0": None, "raidz1-1": None, "raidz1-2": 0.5}
        vdevs = tuple(replace(base, name=name, fill=fill) for name, fill in fills.items())
        balance = replace(frames.imbalance().balance, vdevs=vdevs)
        lines = balance_lines(balance, LOOK, 80, 1)
        assert re.findall(r"raidz1-\d", text(lines)) == ["raidz1-2", "raidz1-0", "raidz1-1"]
