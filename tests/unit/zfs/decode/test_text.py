"""Pools, sections, trees and error lists of ``zpool status`` text."""

from __future__ import annotations

from datetime import UTC, timedelta, timezone
from pathlib import Path

import pytest

from tests.table import rows
from tests.unit.zfs.decode.texts import HEAD, TABLE, pool
from zconsole.errors import NotUnderstoodError
from zconsole.pool.model import Vdev
from zconsole.zfs.decode.text import pools_of

FIXTURES = Path(__file__).parents[3] / "fixtures"
LISTINGS = sorted([*FIXTURES.glob("captures/*/*/list*.txt"), *FIXTURES.glob("corpus/list/*.txt")])


def tree(vdev: Vdev) -> object:
    return (vdev.name, [tree(child) for child in vdev.children]) if vdev.children else vdev.name


class TestSections:
    def test_messages_come_on_one_line(self) -> None:
        text = (
            "  pool: tank\n state: DEGRADED\nstatus: One or more devices\n\tcould not be used.\n"
            "action: Replace it.\n   see: https://x/ZFS-8000-4J\ncomment: rack 4\nconfig:\n\n"
            f"{TABLE}\ttank        DEGRADED     0     0     0\n"
        )
        found = pool(text)
        assert found.message == "One or more devices could not be used."
        assert (found.action, found.see) == ("Replace it.", "https://x/ZFS-8000-4J")
        assert (found.error_count, found.errors, found.comment) == (None, None, "rack 4")

    @rows(("columns", "seen"), [(16, True), (17, False)])
    def test_it_may_stand_in_the_middle_of_the_page(self, columns: int, seen: bool) -> None:
        text = f"  pool: tank\n state: ONLINE\n\n{' ' * columns}errors: 3 data errors\n"
        assert (pool(text).error_count == 3) == seen

    def test_several_scans_the_running_one_first(self) -> None:
        text = (
            "  pool: tank\n state: ONLINE\n"
            "  scan: scrub repaired 0B in 00:00:09 with 0 errors on Sun Aug  3 15:14:45 2014\n"
            "  scan: resilver (mirror-0) in progress since Mon Aug  4 15:14:45 2014\n"
            "\t191M / 240M scanned at 3.96M/s, 191M / 240M issued at 3.96M/s\n"
            "\t183M resilvered, 79.56% done, no estimated completion time\n"
            " scrub: error scrub canceled on Tue Aug  5 15:14:45 2014\nconfig:\n\n" + TABLE
        )
        assert [s.function for s in pool(text).scans] == ["rebuild", "errorscrub", "scrub"]

    def test_activities(self) -> None:
        text = (
            "  pool: tank\n state: ONLINE\n"
            "remove: Removal of vdev 1 copied 1.5G in 0h3m, completed on Sun Aug  3 15:14:45 2014\n"
            "\t16.4K memory used for removed device mappings\n"
            "checkpoint: discarding, 10.1M remaining.\n"
            "expand: expansion of raidz1-0 in progress since Sun Aug  3 15:14:45 2014\n"
            "\t45.0M / 721M copied at 3.75M/s, 6.24% done, paused for resilver or clear\n"
            "condense: log_spacemap: condensing, 5/1.25K metaslabs done in 00:00:03\nconfig:\n\n"
            + TABLE
        )
        found = {a.kind: a for a in pool(text).activities}
        assert (found["removal"].state, found["removal"].vdev) == ("finished", "indirect-1")
        assert found["removal"].done_bytes == 1610612736
        assert (found["checkpoint"].state, found["checkpoint"].total_bytes) == ("running", 10590618)
        expansion = found["expansion"]
        assert (expansion.state, expansion.vdev, expansion.percent) == ("paused", "raidz1-0", 6.24)
        assert expansion.note == "paused for resilver or clear"
        assert (found["condense"].state, found["condense"].percent) == ("running", 0.390625)
        assert found["condense"].note == "5/1.25K metaslabs"

    @rows(
        ("line", "state", "note"),
        [
            ("cancelled, 5/20 metaslabs done in 00:00:03", "canceled", "5/20 metaslabs"),
            ("done, 20 metaslabs done in 1 days 00:00:03", "finished", "20 metaslabs"),
        ],
    )
    def test_metadata_that_was_condensed(self, line: str, state: str, note: str) -> None:
        text = f"  pool: tank\n state: ONLINE\ncondense: log_spacemap: {line}\nconfig:\n\n{TABLE}"
        (found,) = pool(text).activities
        assert (found.kind, found.vdev) == ("condense", "log_spacemap")
        assert (found.state, found.note, found.percent) == (state, note, None)

    def test_a_draid_of_two_failure_groups(self) -> None:
        rows = "".join(f"\t    {name}  ONLINE  0  0  0\n" for name in ("a", "b", "c", "d"))
        name = "draid1:1d:2c:4w:0s-0"
        head = "\tNAME  STATE  READ WRITE CKSUM\n\ttank  ONLINE  0  0  0\n"
        table = f"{head}\t  {name}  ONLINE  0  0  0\n{rows}"
        (top,) = pool(f"  pool: tank\n state: ONLINE\nconfig:\n\n{table}").root.children
        assert (top.name, top.kind, top.data_disks, top.failure_group) == (name, "draid1", 1, 2)

    @rows(
        ("named", "tops", "leaving"),
        [
            # Releases before 2.2 print no "(removing)".
            ("/dev/disk/by-id/ata-X-part1", "ata-X|sda", "ata-X"),
            ("sdb", "sda|sdb", "sdb"),
            ("mirror", "sda|mirror-1", "mirror-1"),
            ("mirror", "mirror-0|mirror-1", None),
            # zpool names it by its path and without its number, whatever names its table has.
            ("mirror", "mirror-0|mirror-1  (removing)", "mirror-1"),
            ("/dev/sdb1", "/dev/sda1|/dev/sdb1  (removing)", "/dev/sdb1"),
            (
                "mirror",
                "9450834580345803450|2230834580345803451  (removing)",
                "2230834580345803451",
            ),
        ],
    )
    def test_a_removal_is_of_a_vdev_in_the_table(
        self, named: str, tops: str, leaving: str | None
    ) -> None:
        cells = "  ONLINE       0     0     0"
        table = "".join(f"\t  {cells.join(f'{top}  '.split('  ', 1))}\n" for top in tops.split("|"))
        found = pool(
            f"  pool: tank\n state: ONLINE\nremove: Evacuation of {named} in progress since Sun Aug"
            "  3 15:14:45 2014\n\t16.5K copied out of 200M at 889/s, 0.01% done, 65h31m to go\n"
            f"config:\n\n\ttank{cells}\n{table}"
        )
        (removal,) = found.activities
        assert removal.vdev == (leaving or named)
        assert [v.name for v in found.root.children if v.removing] == [leaving][: bool(leaving)]
        assert (removal.total_bytes, removal.zpool_eta, removal.zpool_rate) == (
            200 << 20,
            235860.0,
            889,
        )

    def test_dates_follow_the_zone(self) -> None:
        text = HEAD.replace("config", "  scan: scrub canceled on Sun Aug  3 15:14:45 2014\nconfig")
        (berlin,) = pools_of(text + TABLE, timezone(timedelta(hours=2)))
        assert pool(text + TABLE).scan.end == (berlin.scan.end or 0) + 7200

    def test_colours_and_carriage_returns_are_dropped(self) -> None:
        plain = f"{HEAD}{TABLE}\ttank        ONLINE       0     0     0\n"
        coloured = plain.replace("ONLINE", "\x1b[32mONLINE\x1b[0m").replace("\n", "\r\n")
        assert pool(coloured) == pool(plain)

    def test_the_device_details_of_solaris_11_are_no_part_of_the_table(self) -> None:
        table = (
            f"{HEAD}{TABLE}\ttank        DEGRADED     0     0     0\n"
            "\t  c0d0      UNAVAIL      0     0     0\n\n"
        )
        details = (
            "device details:\n\n        c0d0                     UNAVAIL          cannot open\n"
            "        status: ZFS detected errors on this device.\n"
            "                The device was missing.\n"
            "           see: http://support.oracle.com/msg/ZFS-8000-LR for recovery\n\n\n"
        )
        errors = "errors: No known data errors\n"
        assert pool(table + details + errors) == pool(table + errors)

    @rows("text", ["no pools available\n", "all pools are healthy\n", "pool 'a b' is healthy\n"])
    def test_no_pools(self, text: str) -> None:
        assert pools_of(text, UTC) == ()

    @rows("mark", ["> ", ">", ">> ", "> > "])
    def test_what_a_mail_quotes_is_the_same(self, mark: str) -> None:
        text = HEAD + TABLE + TestTree.ROWS + "\nerrors: No known data errors\n"
        quoted = "".join(f"{mark}{line}\n" for line in text.splitlines())
        assert pool(f"On Tuesday he wrote:\n{quoted}\nand I agree\n") == pool(text)

    @rows(
        "text",
        [
            "",
            "hello\nworld\n",
            "pool: x\n",
            '{"a": 1}',
            "status: fine\n",
            "root:x:0:0:a\n",
            "Seq Read  Avg IOPS  3,414  3,411  3,402\n",
        ],
    )
    def test_other_text_is_refused_in_one_line(self, text: str) -> None:
        with pytest.raises(NotUnderstoodError) as caught:
            pools_of(text, UTC)
        assert "\n" not in str(caught.value)

    @rows("path", LISTINGS)
    def test_a_listing_is_refused(self, path: Path) -> None:
        with pytest.raises(NotUnderstoodError):
            pools_of(path.read_text(), UTC)

    def test_a_scan_alone_is_a_fragment_without_name_or_state(self) -> None:
        lines = (
            "resilver in progress since Sun Aug  3 15:14:45 2014\n"
            "    12.9T scanned\n    488G resilvered at 331M/s, 3.70% done, 10h54m to go\n"
        )
        for text in (lines, f"  scan: {lines}"):
            found = pool(text)
            assert (found.name, found.state, found.scan.percent) == ("", None, 3.7)


class TestErrors:
    LISTED = (
        f"{HEAD}{TABLE}\ttank        ONLINE       0     0     0\n\n"
        "errors: Permanent errors have been detected in the following files:\n\n"
    )

    def test_names_keep_their_blanks_and_may_look_like_anything(self) -> None:
        names = (
            "/tank/a b ",
            " /odd",
            "errors: none",
            "pool: x",
            "tank/ds:<0x1>",
            "<metadata>:<0x3>",
        )
        text = self.LISTED + "".join(f"        {name}\n" for name in names)
        found = pool(text)
        assert found.errors == names
        assert found.error_count == len(names)

    def test_names_with_newlines_and_escapes_as_zpool_prints_them(self) -> None:
        names = ("/tank/odd/new\nline", "/tank/odd/\x1b[31mred", "/tank/odd/tab\there", "/tank/b")
        text = self.LISTED + "".join(f"        {name}\n" for name in names)
        assert pool(text + "root@zcvm:~# \n").errors == names

    def test_a_next_pool_ends_the_list(self) -> None:
        first = self.LISTED + "        /tank/a\n"
        pools = pools_of(f"{first}\n{HEAD.replace('tank', 'zwei')}{TABLE}", UTC)
        assert [p.name for p in pools] == ["tank", "zwei"]
        assert pools[0].errors == ("/tank/a",)

    def test_a_list_ends_where_another_saved_output_begins(self) -> None:
        first = self.LISTED + "        /tank/a\n"
        pools = pools_of(first + HEAD.replace("tank", "zwei") + TABLE, UTC)
        assert [(p.name, p.error_count) for p in pools] == [("tank", 1), ("zwei", None)]
        assert pools[0].errors == ("/tank/a",)

    @rows(
        "below",
        [
            "              capacity     operations     bandwidth\n"
            "pool        alloc   free   read  write   read  write\n"
            "tank         1.5T   100G     10     20   1.1M   2.2M\n",
            "NAME         SIZE  ALLOC   FREE    CAP  HEALTH  ALTROOT\n"
            "tank        21.8T  10.2T  11.6T    46%  ONLINE  -\n"
            "  mirror-0  21.8T  10.2T  11.6T    46%  ONLINE\n",
        ],
    )
    def test_a_table_of_another_command_below_is_not_read_as_names(self, below: str) -> None:
        names = ("/tank/a", "  /tank/b")
        found = pool(self.LISTED + "".join(f"        {name}\n" for name in names) + below)
        assert (found.error_count, found.errors) == (2, names)

    def test_names_that_lost_their_indentation(self) -> None:
        names = ("/tank/data/aaa", "tank/ds:<0x1>", "<metadata>:<0x3>", "tank/ds@s:/b c")
        text = self.LISTED + "".join(f"{name}\n" for name in names)
        for after in ("", "\n", "root@host:~# exit\n", "\nroot@host:~# cat /tank/x\n"):
            assert pool(text + after).errors == names

    def test_a_prompt_below_the_heading_is_no_name(self) -> None:
        assert pool(f"{self.LISTED}root@host:/# zpool clear tank\n").errors is None

    def test_no_names_below_the_heading_are_unknown(self) -> None:
        assert (pool(self.LISTED).error_count, pool(self.LISTED).errors) == (None, None)

    def test_two_lines_where_the_list_is_not_permitted(self) -> None:
        denied = "errors: List of errors unavailable: permission denied\n"
        count = "errors: 3 data errors, use '-v' for a list\n"
        for lines in (denied + count, count + denied):
            found = pool(f"{HEAD}{TABLE}\n{lines}")
            assert (found.error_count, found.errors) == (3, None)
        assert pool(f"{HEAD}{TABLE}\n{denied}").error_count is None

    def test_a_table_of_deduplicated_blocks_below_is_not_read_as_names(self) -> None:
        ddt = "\n dedup: DDT entries 2, size 300B on disk\n\nbucket   allocated\n"
        found = pool(f"{HEAD}{TABLE}\nerrors: No known data errors\n{ddt}")
        assert (found.error_count, found.errors) == (0, ())

    def test_a_count_without_names(self) -> None:
        found = pool(f"{HEAD}{TABLE}errors: 12 data errors, use '-v' for a list\n")
        assert (found.error_count, found.errors) == (12, None)


class TestTree:
    ROWS = (
        "\ttank        ONLINE       0     0     0\n"
        "\t  mirror-0  ONLINE       0     0     0\n"
        "\t    sda     ONLINE       0     0     0\n"
        "\t    replacing-1  DEGRADED     0     0     0\n"
        "\t      sdb   OFFLINE      0     0     0\n"
        "\t      sdc   ONLINE       0     0     0  (resilvering)\n"
        "\tspecial\t\n"
        "\t  sdd       ONLINE       0     0     0\n"
        "\tlogs\t\n"
        "\t  mirror-2  ONLINE       0     0     0\n"
        "\t    sde     ONLINE       0     0     0\n"
        "\tcache\n"
        "\t  sdf       ONLINE       0     0     0\n"
        "\tspares\n"
        "\t  sdg       AVAIL   \n"
        "\t  sdh       INUSE     currently in use\n"
        "\t  sdi       UNAVAIL   cannot open\n"
    )
    SHAPE = (
        "tank",
        [
            ("mirror-0", ["sda", ("replacing-1", ["sdb", "sdc"])]),
            "sdd",
            ("mirror-2", ["sde"]),
            "sdf",
            "sdg",
            "sdh",
            "sdi",
        ],
    )

    def test_nesting_and_classes(self) -> None:
        root = pool(HEAD + TABLE + self.ROWS).root
        assert tree(root) == self.SHAPE
        classes = [child.vclass for child in root.children]
        assert classes == ["normal", "special", "log", "cache", "spare", "spare", "spare"]
        assert root.children[2].children[0].vclass == "log"
        assert [(v.state, v.note) for v in root.children[4:]] == [
            ("AVAIL", ""),
            ("INUSE", "currently in use"),
            ("UNAVAIL", "cannot open"),
        ]
        assert root.children[4].errors.read is None
        assert root.children[0].children[1].children[1].resilvering

    def test_tabs_expanded_or_the_whole_indented(self) -> None:
        text = HEAD + TABLE + self.ROWS
        expected = pool(text).root
        assert pool(text.expandtabs()).root == expected
        assert pool("".join(f"   {line}\n" for line in text.splitlines())).root == expected

    def test_tables_copied_from_a_web_page(self) -> None:
        text = HEAD + TABLE + self.ROWS
        copied = HEAD + (TABLE + self.ROWS).expandtabs().replace("  ", "\xa0 ")
        assert pool(copied).root == pool(text).root
        name = "        /tank/a\xa0b\n"
        assert pool(TestErrors.LISTED + name).errors == ("/tank/a\xa0b",)

    def test_an_odd_indentation_makes_no_device_a_parent(self) -> None:
        rows = self.ROWS.replace("\t    sda ", "\t     sda").replace("\t      sdc", "\t        sdc")
        assert tree(pool(HEAD + TABLE + rows).root) == self.SHAPE

    def test_a_group_that_was_moved_left_still_holds_its_devices(self) -> None:
        rows = (
            "        tank         DEGRADED     0     0     0\n"
            "          mirror-0   ONLINE       0     0     0\n"
            "            sda      ONLINE       0     0     0\n"
            "          raidz1-1   DEGRADED     0     0     0\n"
            "      replacing-2    DEGRADED     0     0     0\n"
            "        sdb/old      FAULTED      0     0     0  corrupted data\n"
            "        sdb          ONLINE       0     0     0  (resilvering)\n"
            "            sdc      ONLINE       0     0     0\n"
        )
        raidz = ("raidz1-1", [("replacing-2", ["sdb/old", "sdb"]), "sdc"])
        shape = ("tank", [("mirror-0", ["sda"]), raidz])
        heading = "        NAME         STATE     READ WRITE CKSUM\n"
        assert tree(pool(heading + rows).root) == shape
        assert tree(pool(HEAD + heading + rows).root) == shape

    def test_devices_as_far_left_as_their_group(self) -> None:
        rows = self.ROWS.replace("\t      sd", "\t    sd").replace(
            "(resilvering)\n", "(resilvering)\n\t    sdx     ONLINE       0     0     0\n"
        )
        mirror = ("mirror-0", ["sda", ("replacing-1", ["sdb", "sdc"]), "sdx"])
        assert tree(pool(HEAD + TABLE + rows).root) == ("tank", [mirror, *self.SHAPE[1][1:]])

    def test_a_table_without_any_indentation_is_nested_by_its_names(self) -> None:
        text = "".join(f"{line.strip()}\n" for line in (HEAD + TABLE + self.ROWS).splitlines())
        assert tree(pool(text).root) == self.SHAPE
        stripe = "tank ONLINE 0 0 0\nsda ONLINE 0 0 0\nsdb ONLINE 0 0 0\n"
        assert tree(pool("pool: tank\nstate: ONLINE\nconfig:\n\n" + stripe).root) == (
            "tank",
            ["sda", "sdb"],
        )

    def test_a_fragment_takes_name_and_state_from_its_root_row(self) -> None:
        found = pool(TABLE + self.ROWS)
        assert (found.name, found.state, tree(found.root)) == ("tank", "ONLINE", self.SHAPE)
        assert tree(pool(self.ROWS).root) == self.SHAPE

    def test_a_fragment_without_a_root_row_has_no_state(self) -> None:
        rows = "".join(self.ROWS.splitlines(keepends=True)[1:6])
        for text in (rows, TABLE + rows):
            found = pool(text)
            assert (found.name, found.state) == ("", None)
            assert tree(found.root) == ("", [self.SHAPE[1][0]])

    def test_a_pool_line_and_another_name_in_its_root_row(self) -> None:
        found = pool(HEAD.replace("tank", "zwei") + TABLE + self.ROWS)
        assert (found.name, found.state, found.root.name) == ("zwei", "ONLINE", "zwei")
        assert found.root.children[0].name == "mirror-0"

    def test_a_class_heading_with_a_state_as_solaris_10_prints_it(self) -> None:
        rows = "\ttank  ONLINE  0 0 0\n\t  c0d0  ONLINE  0 0 0\n\tlogs  ONLINE  0 0 0\n"
        root = pool(HEAD + TABLE + rows + "\t  c1d0      ONLINE  0 0 0\n").root
        assert [(v.name, v.vclass) for v in root.children] == [("c0d0", "normal"), ("c1d0", "log")]

    def test_old_names_without_a_number(self) -> None:
        rows = "\ttank  ONLINE  0 0 0\n\t  raidz  ONLINE  0 0 0\n\t    c0d0  ONLINE  0 0 0\n"
        raidz = pool(HEAD + TABLE + rows).root.children[0]
        assert (raidz.name, raidz.kind) == ("raidz", "raidz1")


NEXT = (
    "NAME   SIZE  ALLOC   FREE    CAP  DEDUP   HEALTH  ALTROOT\n"
    "tank   960M    40M   920M     4%  1.00x   ONLINE  -\n",
    "               capacity     operations     bandwidth\n"
    "pool         alloc   free   read  write   read  write\n"
    "tank           40M   920M      0      1  1.2K  3.4K\n",
)


@rows("below", NEXT)
@rows("between", ["", "\n", "root@nas:~# zpool list\n"])
def test_other_output_below_a_table_without_an_errors_line(below: str, between: str) -> None:
    text = f"{HEAD}{TABLE}\ttank        ONLINE       0     0     0\n\t  sda       ONLINE 0 0 0\n"
    assert pool(f"{text}{between}{below}") == pool(f"{text}\n")
    assert pool(f"{text.replace(HEAD, '')}{between}{below}") == pool(text.replace(HEAD, ""))
