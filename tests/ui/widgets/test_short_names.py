from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from tests.table import rows
from zconsole.ui.widgets.draw import formerly, in_runs, middle, short_names

MODEL = "ata-WDC_WD40EFRX-68N32N0_WD-"


def test_names_that_fit_stay_whole():
    assert short_names(["sda", "sdb"], 5) == {"sda": "sda", "sdb": "sdb"}


def test_serials_survive():
    names = [MODEL + "WCC7K0ECACF", MODEL + "WCC7K00B76A"]
    short = short_names(names, 12)
    assert short[names[0]] == "…WCC7K0ECACF"
    assert short[names[1]] == "…WCC7K00B76A"


def test_a_common_ending_goes_before_what_differs():
    names = ["scsi-35000c500a1b2c3d4-part1", "scsi-35000c500a1b2c3d5-part1"]
    short = short_names(names, 6)
    assert short[names[0]].endswith("3d4…")
    assert short[names[1]].endswith("3d5…")


def test_what_differs_in_the_middle_is_found():
    names = [f"{'a' * 30}{n}{'b' * 30}" for n in "12"]
    short = short_names(names, 10)
    assert "1" in short[names[0]]
    assert "2" in short[names[1]]


def test_what_no_part_tells_apart_is_numbered_and_fits():
    names = ["a" * 60, f"{'a' * 20}x{'a' * 39}", f"{'a' * 40}x{'a' * 19}"]
    assert max(map(len, short_names(names, 10).values())) == 10


def test_middle_keeps_both_ends():
    assert middle("draid2:11d:22c:2s-0", 12) == "dra…22c:2s-0"


@given(
    st.sets(
        st.text(st.characters(codec="utf-8", exclude_categories=["C", "M"]), max_size=40),
        max_size=12,
    ),
    st.integers(6, 30),
)
def test_different_names_stay_different_and_fit(names, width):
    short = short_names(sorted(names), width)
    assert set(short) == names
    assert len(set(short.values())) == len(names)
    assert all(cell_len(shown) <= width for shown in short.values())


@rows(
    ("names", "runs"),
    [
        (["Slot 02", "Slot 01", "Slot 03", "Slot 09", "Slot 10"], ["Slots 01-03", "09-10"]),
        (["Slot 4"], ["Slot 4"]),
        (["A1", "A3", "A4", "B2"], ["A1", "A3-4", "B2"]),
        (["shelf 1 bay 7", "shelf 2 bay 7", "rear"], ["shelf 1 bay 7", "shelf 2 bay 7", "rear"]),
        (["rear", "rear"], ["rear"]),
        ([], []),
    ],
)
def test_places_in_a_row_are_told_together(names, runs):
    assert in_runs(names) == runs


def test_of_what_a_device_was_the_end_is_kept():
    text = "8608373 UNAVAIL (was /dev/disk/by-id/ata-HGST_HDS721010_YNJSSERK-part1)"
    assert formerly(text, 80) == text
    assert formerly(text, 60) == "8608373 UNAVAIL (was ata-HGST_HDS721010_YNJSSERK)"
    assert len(formerly(text, 40)) == 40
    assert formerly(text, 40).endswith("YNJSSERK)")
    assert formerly("was /dev/sdb1", 3) == "was sdb1"
    assert formerly("was /a/very/long/one/that/is/no/longer", 9, "*") == "was longer"
