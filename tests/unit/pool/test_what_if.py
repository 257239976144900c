from __future__ import annotations

import json

import pytest

from tests.table import rows
from zconsole.cli.main import main
from zconsole.errors import UsageError
from zconsole.output.what_if import outlook_lines, outlook_object, spread_words
from zconsole.pool.model import Vdev
from zconsole.pool.what_if import disk_of, grown, outlook, parse_changes, shape_of

TIB = 1 << 40

LIST = """\
NAME           SIZE  ALLOC   FREE  EXPANDSZ   FRAG    CAP  DEDUP  HEALTH  ALTROOT
jackscoldsweat 16.3T  12.9T  3.41T         -    31%    79%  1.00x  ONLINE  -
  raidz2-0     16.3T  12.9T  3.41T         -    31%  79.1%      -  ONLINE
"""


def pool(*tops):
    return Vdev("tank", "root", children=tops)


def raidz(name, disks, size, alloc, parity=2):
    leaves = tuple(Vdev(f"{name}-{i}", "disk") for i in range(disks))
    kind = f"raidz{parity}"
    return Vdev(
        name, kind, size_bytes=round(size * TIB), alloc_bytes=round(alloc * TIB), children=leaves
    )


OLD = raidz("raidz2-0", 6, 16.3, 12.9)


def shares(root, adds, resizes=None):
    after = grown(
        root, [shape_of(a) for a in adds], {k: shape_of(v) for k, v in (resizes or {}).items()}
    )
    return [round(v.new_write_share, 2) for v in outlook(root, after, "2.3.9").after.vdevs]


def test_the_first_reports_choice_adding_five_terabyte_disks_or_swapping_them_in_first():
    """12.9T on six 3 TB disks: adding six 5 TB ones leaves 11 % of new writes to the old vdev.

    Replacing the old disks by them, and adding the 3 TB ones, halves the writes.
    """
    root = pool(OLD)
    assert shares(root, ["raidz2:6x4.55T"]) == [0.11, 0.89]
    assert shares(root, ["raidz2:6x2.73T"], {"raidz2-0": "6x4.55T"}) == [0.47, 0.53]


def test_levelling_costs_less_where_free_space_is_alike():
    root = pool(OLD)
    added = outlook(root, grown(root, [shape_of("raidz2:6x4.55T")], {}))
    swapped = outlook(
        root, grown(root, [shape_of("raidz2:6x2.73T")], {"raidz2-0": shape_of("6x4.55T")})
    )
    assert added.after.spread > 0.7
    assert swapped.after.spread == pytest.approx(0.47, abs=0.01)
    assert swapped.rewrite_bytes is not None
    assert added.rewrite_bytes is None or added.rewrite_bytes > 0
    assert swapped.spread_after <= 0.05


def test_a_vdev_of_unknown_size_is_left_out_of_what_is_to_be_rewritten():
    known = pool(OLD, raidz("raidz2-1", 6, 20, 3))
    more = pool(*known.children, Vdev("gone", "disk"))
    assert outlook(known, known).rewrite_bytes
    assert outlook(more, more).rewrite_bytes == outlook(known, known).rewrite_bytes


def test_up_to_2_3_wider_vdevs_get_more_of_the_writes():
    root = pool(raidz("raidz1-0", 3, 10, 5, parity=1))
    after = grown(root, [shape_of("raidz1:6x1T")], {})
    old = [v.new_write_share for v in outlook(root, after, "2.3.9").after.vdevs]
    new = [v.new_write_share for v in outlook(root, after, "2.4.0").after.vdevs]
    assert old[1] == pytest.approx(6 * 5 / (5 * 2 + 6 * 5))
    assert new[1] == pytest.approx(6 / 11)


def test_a_mirror_is_as_large_as_one_side():
    assert shape_of("mirror:2x4T").raw == 4 * TIB
    assert shape_of("raidz2:6x3T").raw == 18 * TIB
    assert shape_of("36.4T").raw == round(36.4 * TIB)


@rows(
    "word",
    [
        "",
        "x",
        "6x",
        "raidz2:3x4T",
        "raidz9:6x4T",
        "0",
        "-4T",
        "4TT",
        "raidz1:4T",
        "mirror:1x4T",
        "4tb",
        "4TIB",
        f"{'9' * 5000}x3T",
        "9" * 400,
        "99999E",
        "99999999x4T",
        "raidz2:10001x4T",
    ],
)
def test_what_is_no_size_is_refused(word):
    with pytest.raises(UsageError):
        shape_of(word)


@rows(
    ("word", "each"),
    [
        ("18T", 18 * TIB),
        ("18TiB", 18 * TIB),
        ("18TB", 18 * 10**12),
        ("raidz2:6x18TB", 18 * 10**12),
        ("mirror:2x1.92TB", 1920 * 10**9),
        ("64M", 64 << 20),
    ],
)
def test_a_b_after_the_unit_means_a_drives_decimal_one(word, each):
    assert shape_of(word).member_bytes == each
    assert parse_changes(f"raidz2-0={word}").resizes["raidz2-0"].member_bytes == each


def test_the_disk_timed_may_be_of_a_drives_decimal_size():
    assert parse_changes("disk=18TB").disk == disk_of("18TB") == 18 * 10**12


@rows("word", ["2", "63M", "raidz2:6x2", "mirror:2x60MB", "64KB"])
def test_what_zfs_takes_for_no_disk_is_refused(word):
    for question in (word, f"raidz2-0={word}", f"disk={word}", f"{word} raidz2:6x18T"):
        with pytest.raises(UsageError, match="smallest disk of ZFS is 64M"):
            parse_changes(question)


def test_a_number_before_a_size_is_told_how_two_are_asked_for():
    with pytest.raises(UsageError, match="for 2 vdevs, write the SIZE 2 times"):
        parse_changes("2 raidz2:6x18T")
    assert parse_changes("raidz2:6x18T raidz2:6x18T").adds == (shape_of("raidz2:6x18T"),) * 2


def test_a_mirror_without_a_number_has_two_sides():
    assert shape_of("mirror:4T") == shape_of("mirror:2x4T")


@rows(
    ("adds", "bare"),
    [
        ("4T", ("new-1",)),
        ("disk:4T", ("new-1",)),
        ("6x4T", ("new-1",)),
        ("mirror:4T 4T raidz1:3x4T disk:2T", ("new-2", "new-4")),
        ("mirror:2x4T raidz1:3x4T", ()),
        ("", ()),
    ],
)
def test_an_added_vdev_without_redundancy_is_called_that(adds, bare):
    root = pool(OLD)
    look = outlook(root, grown(root, parse_changes(adds).adds, {}))
    assert look.without_redundancy == bare
    assert outlook_object(look)["without_redundancy"] == list(bare)
    told = [line for line in outlook_lines(look) if "no redundancy" in line]
    assert len(told) == bool(bare)
    assert all(name in told[0] for name in bare)


def test_a_disk_that_is_in_the_pool_already_is_no_news():
    root = pool(OLD, Vdev("sdz", "disk", size_bytes=TIB, alloc_bytes=0))
    assert outlook(root, grown(root, parse_changes("mirror:4T").adds, {})).without_redundancy == ()


def test_what_is_added_does_not_read_as_if_it_made_the_balance_worse():
    root = pool(OLD)
    added = outlook(root, grown(root, parse_changes("raidz2:6x4T").adds, {}))
    assert spread_words(added) == (
        "79.1 % at first (0.0 % now): what is added is empty, and writes fill it faster"
    )
    swapped = outlook(pool(OLD, raidz("raidz2-1", 6, 20, 3)), pool(OLD, raidz("x", 6, 16.3, 12)))
    assert spread_words(swapped) == "5.5 % then (64.1 % now)"


def test_unknown_vdevs_and_sizes_that_do_not_hold_the_data_are_refused():
    with pytest.raises(UsageError, match="no vdev"):
        grown(pool(OLD), [], {"raidz2-7": shape_of("6x5T")})
    with pytest.raises(UsageError, match="holds more"):
        grown(pool(OLD), [], {"raidz2-0": shape_of("6x1T")})


@rows("text", ["+raidz2:6x4T raidz2-0=6x8T disk=8T", " + raidz2:6x4T  disk=8T raidz2-0=6x8T "])
def test_a_question_is_asked_in_the_commands_own_words(text):
    found = parse_changes(text)
    assert found.adds == (shape_of("raidz2:6x4T"),)
    assert found.resizes == {"raidz2-0": shape_of("6x8T")}
    assert found.disk == 8 * TIB


def test_nothing_asked_changes_nothing():
    assert not parse_changes("")
    assert not parse_changes("disk=4T")
    assert parse_changes("4T")


@rows(
    "text",
    [
        *("big", "raidz2-0", "=4T", "raidz2-0=", "disk=", "disk=?", "disk=2x4T", "disk=mirror:4T"),
        *("'4T", "4T raidz1"),
    ],
)
def test_a_question_that_is_none_is_refused(text):
    with pytest.raises(UsageError):
        parse_changes(text)


def test_the_command_prints_the_table_and_the_json(tmp_path, capsys):
    path = tmp_path / "list"
    path.write_text(LIST)
    words = ["balance", "--from", str(path), "--add-vdev", "raidz2:6x4.55T"]
    assert main(words) == 0
    out = capsys.readouterr().out
    assert "raidz2-1" in out
    assert "after parity" in out
    row = next(line for line in out.splitlines() if line.startswith("raidz2-1"))
    assert row.split()[1] == "18.2T"
    assert "100.0 % -> 11.1 %" in out
    assert main([*words, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [v["name"] for v in found["vdevs"]] == ["raidz2-0"]
    assert found["after"]["vdevs"][1]["fill"] == 0


@rows(
    "words",
    [
        ["--add-vdev", "2", "raidz2:6x18T"],
        ["--resize", "nope=5T"],
        ["--disk", ""],
    ],
)
def test_bad_input_is_one_line_and_code_2(tmp_path, capsys, words):
    path = tmp_path / "list"
    path.write_text(LIST)
    assert main(["balance", "--from", str(path), *words]) == 2
    assert capsys.readouterr().err.count("\n") == 1


TWINS = """\
NAME        SIZE  ALLOC   FREE  CKPOINT  EXPANDSZ   FRAG    CAP  DEDUP    HEALTH  ALTROOT
storage     138T  95.2T  43.1T        -         -     0%    68%  1.00x    ONLINE  -
  raidz1    102T  95.1T  6.77T        -         -     1%  93.3%      -  ONLINE
  raidz1   36.4T  78.0G  36.3T        -         -     0%  0.20%      -  ONLINE
"""


def test_vdevs_of_one_name_are_told_apart_by_their_place(tmp_path, capsys):
    path = tmp_path / "list"
    path.write_text(TWINS)
    assert main(["balance", "--from", str(path), "--add-vdev", "36T"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[1] for line in lines[2:5]] == ["102T", "36.4T", "36T"]
    assert main(["balance", "--from", str(path), "--resize", "raidz1=200T"]) == 2
    assert "2 vdevs are called" in capsys.readouterr().err


@rows(
    ("old", "add", "aim", "busy"),
    [
        # Live pools of 2.3.9, with few and with many writes: 1 to 2 and 7 %, 15 and 21, 76 and 52.
        (raidz("raidz2-0", 10, 10, 0.01), "mirror:2x1T", 0.01, 0.09),
        (raidz("raidz1-0", 5, 5, 3.6, parity=1), "mirror:2x1T", 0.15, 0.17),
        (raidz("raidz1-0", 5, 5, 3.5, parity=1), "raidz1:5x1T", 0.77, 0.50),
    ],
)
def test_the_share_of_new_writes_is_told_for_idle_and_for_busy_disks(old, add, aim, busy):
    root = pool(old)
    look = outlook(root, grown(root, parse_changes(add).adds, {}), "2.3.9")
    (new,) = look.added
    assert round(new.new_write_share, 2) == aim
    assert round(new.busy_write_share, 2) == busy
    told = [line for line in outlook_lines(look) if line.startswith("new writes: about")]
    assert len(told) == (abs(busy - aim) > busy / 5)


def test_no_share_for_busy_disks_where_the_disks_of_a_vdev_are_not_listed():
    root = pool(OLD._replace(children=()))
    look = outlook(root, grown(root, parse_changes("mirror:2x1T").adds, {}))
    assert look.busy_share is None


def test_a_full_vdev_takes_nothing_however_busy_the_disks_are():
    root = pool(raidz("raidz1-0", 5, 5, 5, parity=1))
    (_, new) = outlook(root, grown(root, parse_changes("raidz2:6x4T").adds, {})).after.vdevs
    assert (new.new_write_share, new.busy_write_share) == (1, 1)
