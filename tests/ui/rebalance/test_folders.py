"""The directory tree, without a screen: what is marked, open and shown."""

from __future__ import annotations

from tests.ui.drawn import plain
from zconsole.rebalance.backend import DirectoryListing, Measured
from zconsole.ui.display_format import DisplayFormat
from zconsole.ui.rebalance.folder_screen import (
    PATIENCE,
    Folders,
    folder_head,
    folder_lines,
    is_aged,
)
from zconsole.ui.widgets.graph import ASCII, UNICODE


def made() -> Folders:
    folders = Folders({"/tank": "tank", "/tank/vm": "tank/vm", "/mnt": "tank/m"})
    folders.open("/tank", 0.0)
    folders.take(DirectoryListing("/tank", ("a", "b")))
    folders.open("/tank/a", 0.0)
    folders.take(DirectoryListing("/tank/a", ("deep",)))
    return folders


def marks(folders: Folders) -> str:
    return "".join(row.mark for row in folders.rows(0.0))


def test_rows_are_the_roots_with_what_is_open_below():
    rows = made().rows(0.0)
    assert [(row.path, row.depth) for row in rows] == [
        ("/tank", 0),
        ("/tank/a", 1),
        ("/tank/a/deep", 2),
        ("/tank/b", 1),
        ("/tank/vm", 0),
        ("/mnt", 0),
    ]
    assert [row.dataset for row in rows] == ["", "", "", "", "", "tank/m"]


def test_a_directory_is_asked_for_once():
    folders = made()
    assert not folders.open("/tank", 5.0)
    assert folders.open("/mnt", 5.0)
    assert folders.close("/mnt") == "/mnt"
    assert folders.close("/tank/a/deep") == "/tank/a"
    assert folders.close("/tank/b") == "/tank"
    assert len(folders.rows(0.0)) == 3


def test_marking_a_directory_marks_what_is_in_it():
    folders = made()
    assert folders.mark("/tank/a/deep") == ""
    assert marks(folders) == "++x   "
    assert folders.mark("/tank/a") == ""
    assert list(folders.marked) == ["/tank/a"]
    assert marks(folders) == "+x-   "
    assert "included via /tank/a" in folders.mark("/tank/a/deep")
    assert folders.mark("/tank/a") == ""
    assert marks(folders) == "      "


def test_a_dataset_inside_a_marked_directory_is_a_job_of_its_own():
    folders = made()
    folders.mark("/tank")
    assert marks(folders) == "x---  "
    assert "run a job for each" in folders.mark("/tank/vm")
    folders.mark("/tank")
    folders.mark("/tank/vm")
    assert "run a job for each" in folders.mark("/tank")
    assert folders.mark("/mnt") == ""
    assert list(folders.marked) == ["/tank/vm", "/mnt"]


def test_what_is_marked_adds_up_as_it_is_known():
    folders = made()
    folders.mark("/tank/a")
    assert folders.marked_bytes() == (0, False)
    folders.take(Measured("/tank/a", 500, 2, done=False))
    assert folders.marked_bytes() == (500, False)
    folders.take(Measured("/tank/a", 700, 3))
    assert folders.marked_bytes() == (700, True)


def test_what_does_not_answer_is_told_after_a_while():
    folders = made()
    folders.open("/mnt", 100.0)
    folders.take(DirectoryListing("/tank/a", (), "Permission denied"))
    assert [row.problem for row in folders.rows(100.0)][-1] == "looking"
    late = folders.rows(100.0 + PATIENCE)
    assert late[-1].problem == "does not answer"
    assert late[1].problem == "Permission denied"


def test_lines_keep_to_the_width_and_to_ascii():
    folders = made()
    folders.take(DirectoryListing("/tank/a", ("ü\x1b" + "x" * 250,)))
    folders.take(Measured("/tank/a", 3 << 40, 12_000_000))
    for width in (54, 60, 80, 200):
        for look in (DisplayFormat(UNICODE), DisplayFormat(ASCII)):
            lines = [plain(line) for line in folder_lines(folders.rows(0.0), look, width)]
            assert all(len(line) <= width for line in lines), lines
            assert not any("\x1b" in line for line in lines)
            assert look.glyphs is UNICODE or all(line.isascii() for line in lines)


def test_names_are_shown_safely_and_a_size_that_grows_is_marked() -> None:
    folders = made()
    folders.take(DirectoryListing("/tank/a", ("a\x1b[31mb", "n\udcff\nl")))
    folders.take(Measured("/tank/a/a\x1b[31mb", 1000, 3, done=False))
    lines = map(plain, folder_lines(folders.rows(0.0), DisplayFormat(), 80))
    said = "\n".join(lines)
    assert "\\x1b[31m" in said
    assert "\\xff\\x0al" in said
    assert "1000+" in said


def test_the_head_names_the_columns_where_they_are():
    folders = made()
    folders.take(Measured("/tank/a", 3 << 40, 12_000))
    for width in (54, 60, 80, 200):
        for look in (DisplayFormat(UNICODE), DisplayFormat(ASCII)):
            head = plain(folder_head(look, width))
            line = plain(folder_lines(folders.rows(0.0), look, width)[1])
            assert len(head) <= width
            assert head.index("SIZE") + 4 == line.index("T") + 1
            assert head.index("FILES") + 5 == line.index("K") + 1
            assert head.index("DIRECTORY") == line.index("a", line.index("K")) - 2
            assert ("SHARE" in head) == (width >= 70)


def test_what_is_older_than_the_newest_vdev_has_a_column_where_it_is_known():
    folders = made()
    folders.take(Measured("/tank/a", 200, 2))
    assert not is_aged(folders.rows(0.0))
    folders.take(Measured("/tank/a", 200, 2, old=180))
    assert is_aged(folders.rows(0.0))
    for width in (54, 60, 80, 200):
        head = plain(folder_head(DisplayFormat(UNICODE), width, aged=True))
        lines = [
            plain(line) for line in folder_lines(folders.rows(0.0), DisplayFormat(UNICODE), width)
        ]
        assert head.index("OLD") + 3 == lines[1].index("%") + 1
        assert "90 %" in lines[1]
        assert all(len(line) <= width for line in (head, *lines))
        assert head.index("DIRECTORY") == lines[1].index("a", lines[1].index("%")) - 2


def test_a_directory_in_a_marked_one_names_that():
    folders = made()
    folders.mark("/tank/a")
    assert folders.included("/tank/a/deep") == "/tank/a"
    assert not folders.included("/tank/a")
    assert not folders.included("/tank/b")


def test_only_the_largest_of_all_directories_has_a_full_bar():
    folders = made()
    folders.take(Measured("/tank", 700, 3))
    folders.take(Measured("/tank/a", 300, 3))
    look = DisplayFormat(UNICODE)
    lines = [plain(line) for line in folder_lines(folders.rows(0.0), look, 80)]
    assert look.glyphs.full * 10 in lines[0]
    assert look.glyphs.full * 10 not in lines[1]
    assert look.glyphs.full * 4 in lines[1]
