"""Rows of the table in ``zpool status`` text: counters, names, notes."""

from __future__ import annotations

from tests.table import rows
from tests.unit.zfs.decode.texts import HEAD, TABLE, leaf, pool


class TestRow:
    def test_counters_with_units(self) -> None:
        errors = leaf("\t  sda       ONLINE       3 38.5K 1.88M").errors
        assert (errors.read, errors.write, errors.cksum, errors.slow) == (3, 39424, 1971323, None)

    def test_slow_power_and_dio_columns(self) -> None:
        text = (
            HEAD + "\tNAME        STATE     READ WRITE CKSUM  SLOW POWER   DIO\n"
            "\ttank        ONLINE       0     0     0     -     -     -\n"
            "\t  sda       ONLINE       1     2     3     4    on     5  (trimming)\n"
        )
        (disk,) = pool(text).root.leaves()
        assert (disk.errors.total, disk.errors.slow, disk.note) == (6, 4, "(trimming)")
        assert pool(text).root.errors.slow is None

    def test_names_with_blanks_and_wide_characters(self) -> None:
        text = (
            HEAD + "\tNAME             STATE     READ WRITE CKSUM\n"
            "\ttank             ONLINE       0     0     0\n"
            "\t  /a/my OK disk  ONLINE       0     0     0\n"
            "\t  /a/größe       ONLINE       0     0     0\n"
        )
        assert [v.name for v in pool(text).root.leaves()] == ["/a/my OK disk", "/a/größe"]

    def test_a_missing_device_is_named_by_its_guid(self) -> None:
        disk = leaf("\t  3166455989486803094  UNAVAIL      0     0     0  was /dev/ada5p1")
        assert (disk.name, disk.path) == ("3166455989486803094", "/dev/ada5p1")
        assert disk.note == "was /dev/ada5p1"

    def test_two_notes_keep_their_blanks(self) -> None:
        disk = leaf(
            "\t  sda       ONLINE       0     0     0  (non-allocating)  (awaiting resilver)"
        )
        assert disk.note == "(non-allocating)  (awaiting resilver)"
        assert (disk.allocating, disk.awaiting_resilver, disk.resilvering) == (False, True, False)

    def test_block_size_note(self) -> None:
        row = "\t  sda       ONLINE       0     0     0  block size: 512B configured, 4096B native"
        assert (leaf(row).ashift, leaf(row).physical_ashift) == (9, 12)

    def test_trim_and_initialize_notes(self) -> None:
        disk = leaf(
            "\t  sda       ONLINE       0     0     0  (12% initialized, suspended, started at"
            " Sun Aug  3 15:14:45 2014)  (100% trimmed, completed at Sun Aug  3 15:14:45 2014)"
        )
        assert disk.initialize is not None
        assert disk.trim is not None
        assert (disk.initialize.state, disk.initialize.share) == ("suspended", 0.12)
        assert (disk.trim.state, disk.trim.share, disk.trim.time) == ("complete", 1.0, 1407078885.0)
        assert leaf("\t  sda       ONLINE       0     0     0  (uninitialized)").initialize is None

    @rows(
        ("note", "trimmable"),
        [
            ("(trim unsupported)", False),
            ("(untrimmed)", True),
            ("(7% trimmed, started at Sun Aug  3 15:14:45 2014)", True),
            ("(trimming)", True),
            ("(uninitialized)", None),
            ("", None),
        ],
    )
    def test_a_note_tells_whether_a_device_can_be_trimmed(
        self, note: str, trimmable: bool | None
    ) -> None:
        assert leaf(f"\t  sda       ONLINE       0     0     0  {note}").trimmable == trimmable

    @rows(
        ("cells", "note"),
        [
            ("ATA  WDC WD80  8T", ""),
            ("-  -  -", ""),
            ("was /dev/sdb1  -  -  8T", "was /dev/sdb1"),
            ("in use by pool 'a b'  ATA  X  8T", "in use by pool 'a b'"),
            ("too many errors  ATA  was new (removing)  8T", "too many errors"),
            ("(resilvering)  ATA  X (a)  8T  (trimming)", "(resilvering)  (trimming)"),
        ],
    )
    def test_columns_of_scripts_are_no_notes(self, cells: str, note: str) -> None:
        """``-c`` puts them after zpool's own notes, and before those on initialize and trim."""
        heading = TABLE.replace("\n", "  vendor  model  size\n")
        row = f"\t  sda         ONLINE       0     0     0  {cells}\n"
        (disk,) = pool(
            f"{HEAD}{heading}\ttank        ONLINE       0     0     0\n{row}"
        ).root.children
        assert disk == leaf(f"\t  sda         ONLINE       0     0     0  {note}")

    def test_resilvered_amounts_of_solaris_10(self) -> None:
        text = (
            "  pool: tank\n state: ONLINE\n scrub: resilver in progress for 0h2m, 16.43% done"
            f", 0h13m to go\nconfig:\n\n{TABLE}\ttank        ONLINE       0     0     0\n"
            "\t  mirror-0  ONLINE       0     0     0\n"
            "\t    c0d0    ONLINE       0     0     0  85.0M resilvered\n"
        )
        (disk,) = pool(text).root.leaves()
        assert (disk.resilvering, disk.scan_processed) == (True, 85 * 1024**2)
        done = text.replace(
            "in progress for 0h2m, 16.43% done, 0h13m to go", "completed after 0h1m"
        )
        (disk,) = pool(done).root.leaves()
        assert not disk.resilvering

    def test_an_unknown_state_is_kept(self) -> None:
        assert leaf("\t  sda       UNAVAI       0     0     0 cannot open").state == "UNAVAI"


ODD = """\
  pool: errors: a.b
 state: ONLINE
config:

\tNAME           STATE     READ WRITE CKSUM
\terrors: a.b    ONLINE       0     0     0
\t  mirror-0     ONLINE       0     0     0
\t    scan: b    ONLINE       0     0     0
\t    pool: c    ONLINE       0     0     0

errors: No known data errors
"""


def test_names_that_look_like_lines_of_the_output_stay_names() -> None:
    odd = pool(ODD)
    assert (odd.name, odd.root.name, odd.root.state) == ("errors: a.b", "errors: a.b", "ONLINE")
    assert [disk.name for disk in odd.root.leaves()] == ["scan: b", "pool: c"]
    assert odd.error_count == 0


IMPORTABLE = """\
   pool: errors: a.b
     id: 12345678901234567890
  state: ONLINE
 action: The pool can be imported using its name or numeric identifier.
 config:

\terrors: a.b    ONLINE
\t  scan: b      ONLINE
"""


def test_names_in_a_list_of_pools_to_import_stay_names_too() -> None:
    odd = pool(IMPORTABLE)
    assert (odd.root.name, odd.root.state, odd.lacks) == ("errors: a.b", "ONLINE", None)
    assert [disk.name for disk in odd.root.leaves()] == ["scan: b"]


def test_tags_of_an_output_that_is_indented_as_a_whole_are_no_rows() -> None:
    table = ODD.replace("errors: a.b", "tank").replace("scan: b", "sda").replace("pool: c", "sdb")
    indented = pool("".join(f"\t{line}" for line in table.splitlines(keepends=True)))
    assert [disk.name for disk in indented.root.leaves()] == ["sda", "sdb"]
    assert (indented.name, indented.error_count) == ("tank", 0)


class TestBrokenRows:
    """Rows as wrapped by a window of 40 columns or by a mail program."""

    WHOLE = (
        "\tNAME        STATE     READ WRITE CKSUM\n"
        "\ttank        ONLINE       0     0     0\n"
        "\t  mirror-0  ONLINE       0     0     0\n"
        "\t    sda     ONLINE       0     1     2  (resilvering)\n"
        "\t    sdb     FAULTED      3     4  1.5K  too many errors\n"
        "\t    1234    UNAVAIL      0     0     0  was /dev/sdc1\n"
        "\tspares\n"
        "\t  sdd       AVAIL   \n"
        "\t  5678      AVAIL   \n"
    )

    @rows(
        ("whole", "broken"),
        [
            ("    0     0     0\n", "    0     0\n    0\n"),
            ("     2  (res", "\n     2  (res"),
            ("  (resilvering)", "\n(resilvering)"),
            ("  1.5K  too", "\n1.5K  too"),
            ("ONLINE       0     1     2  (", "ONLINE\n0 1 2  ("),
            ("  was /dev", "\n  was /dev"),
            (" CKSUM", "\nCKSUM"),
        ],
    )
    def test_what_was_broken_off_is_put_back(self, whole: str, broken: str) -> None:
        assert whole in self.WHOLE
        assert pool(HEAD + self.WHOLE.replace(whole, broken)) == pool(HEAD + self.WHOLE)

    def test_all_at_once(self) -> None:
        lines = [line.expandtabs() for line in self.WHOLE.splitlines()]
        text = "".join(f"{line[:40].rstrip()}\n{line[40:]}\n" for line in lines)
        assert pool(HEAD + text) == pool(HEAD + self.WHOLE)

    LONG = (
        "\tNAME                                        STATE     READ WRITE CKSUM\n"
        "\ttank                                        DEGRADED     0     0     0\n"
        "\t  mirror-0                                  DEGRADED     0     0     0\n"
        "\t    ata-WDC_WD40EFRX-68N32N0_WD-WCC7AAAAAA  ONLINE       0     1    12  (resilvering)\n"
        "\t    ata-WDC_WD40EFRX-68N32N0_WD-WCC7BBBBBB  FAULTED     13   214  1.5K"
        "  too many errors\n"
        "\t    ata-WDC_WD40EFRX-68N32N0_WD-WCC7DDDDDD  ONLINE       0     0     0"
        "  (resilvering)  (7% initialized, started at Sun Aug  3 15:14:45 2014)  (untrimmed)\n"
        "\t    3166455989486803094                     UNAVAIL      0     0     0"
        "  was /dev/disk/by-id/ata-WDC_WD40EFRX-68N32N0_WD-WCC7CCCCCC-part1\n"
        "\tspares\n"
        "\t  ata-WDC_WD40EFRX-68N32N0_WD-WCC7EEEEEE    AVAIL   \n"
    )

    @rows("width", range(70, 130))
    def test_a_window_breaks_words_too(self, width: int) -> None:
        lines = [line.expandtabs() for line in self.LONG.splitlines()]
        text = "".join(
            f"{line[at : at + width]}\n"
            for line in lines
            for at in range(0, len(line), width)
            if line[at : at + width].strip()
        )
        assert pool(HEAD + text).root == pool(HEAD + self.LONG).root

    @rows("rest", ["root@nas:~#", "$", "joe@nas ~ % zpool list", "(END)", "x"])
    def test_what_stands_below_a_table_is_no_part_of_it(self, rest: str) -> None:
        rows = self.LONG.splitlines()
        for end in range(2, len(rows)):
            above = "\n".join(rows[:end]) + "\n"
            found = pool(f"{HEAD}{above}{rest}\n").root
            if rest != "x" or "was " not in rows[end - 1]:
                assert found == pool(HEAD + above).root

    @rows("rest", ["0 0", "zero", "(a) sda", "0 ONLINE 0 0 0", "(x) ONLINE 0 0 0", "cache"])
    def test_other_lines_are_left_alone(self, rest: str) -> None:
        rows = "\ttank        ONLINE       0     0     0\n\t  sda       ONLINE       0     0\n"
        (first, *_) = pool(f"{HEAD}{TABLE}{rows}\t  {rest}\n").root.children
        assert (first.name, first.errors.write, first.errors.cksum) == ("sda", 0, None)
        assert first.note == ""
