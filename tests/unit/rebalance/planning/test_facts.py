from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.table import rows
from zconsole.errors import UnavailableError
from zconsole.pool.allocator import Space
from zconsole.pool.model import Vdev, Volumes
from zconsole.rebalance.planning.facts import (
    Condition,
    Dataset,
    FactsReader,
    Run,
    last_addition,
    mount_of,
    spaces_of,
)
from zconsole.system.mounts import mount_at
from zconsole.system.process import Completed
from zconsole.zfs.decode.listing import capacities

LIST = (
    "tank\t2013265920\t795516416\t1217749504\t-\t-\t9\t39\t1.00\tONLINE\t-\n"
    "\traidz1-0\t3189768192\t795516416\t2224029696\t-\t-\t18\t26\t-\tONLINE\n"
    "\t\tsda\t1063256064\t-\t-\t-\t-\t-\t-\t-\tONLINE\n"
    "\t\tsdb\t1063256064\t-\t-\t-\t-\t-\t-\t-\tONLINE\n"
    "\t\tsdc\t1063256064\t-\t-\t-\t-\t-\t-\t-\tONLINE\n"
    "\tmirror-1\t1063256064\t0\t1006632960\t-\t-\t0\t0\t-\tONLINE\n"
    "special      -      -      -        -         -      -      -      -  -\n"
    "\tmirror-2\t1063256064\t10\t1006632950\t-\t-\t0\t0\t-\tONLINE\n"
)


ROW = "\t{}\t1063256064\t-\t-\t-\t-\t-\t-\t-\tONLINE\n"
REPLACING = "".join(map(ROW.format, ("replacing-1", "sdb", "sde")))
DRAID = LIST.splitlines(keepends=True)[0] + (
    "\tdraid2:4d:11c:1s-0\t3189768192\t795516416\t2224029696\t-\t-\t18\t26\t-\tONLINE\n"
    + "".join("\t" + ROW.format(f"sd{letter}") for letter in "abcdefghijk")
)
RAIDZ = Space("raidz1-0", 795516416 + 2224029696, 795516416, 2.0, 2 / 3, 3, 3)
MIRROR = Space("mirror-1", 1006632960, 0, speed=1, disks=0)


def prints(text: str) -> Run:
    """Return a runner of commands that all print this text."""
    return lambda argv, _deadline: Completed(tuple(argv), 0, text, "")


@rows(
    ("listed", "version", "spaces"),
    [
        (LIST, (2, 3, 9), [RAIDZ, MIRROR]),
        (LIST, (2, 4, 4), [RAIDZ._replace(weight=1.0), MIRROR]),
        # A device and the one that replaces it are one disk.
        (LIST.replace("\t" + ROW.format("sdb"), REPLACING), (2, 3, 9), [RAIDZ, MIRROR]),
        # Every group of a dRAID counts for the allocator.
        (
            DRAID,
            (2, 3, 9),
            [Space("draid2:4d:11c:1s-0", RAIDZ.size, RAIDZ.alloc, 8.0, 4 / 6, 11, 10)],
        ),
    ],
)
def test_normal_vdevs_with_what_the_allocator_makes_of_them(
    listed: str, version: tuple[int, ...], spaces: list[Space]
) -> None:
    (root,) = capacities(listed)
    assert list(spaces_of(root, version)) == spaces


@rows(
    ("vdev", "space"),
    [
        (Vdev("sda", "disk"), Space("sda", 0, 0, disks=0, speed=1)),
        (Vdev("raidz1-1", "raidz1"), Space("raidz1-1", 0, 0, disks=0)),
        (
            Vdev("draid2:4d:14c:1s-0", "draid2", width=14),
            Space("draid2:4d:14c:1s-0", 0, 0, 11.0, 4 / 6, 14, 13),
        ),
    ],
)
def test_a_vdev_without_devices_or_sizes_has_what_its_name_tells(vdev: Vdev, space: Space) -> None:
    assert spaces_of(Vdev("tank", "root", children=(vdev,)), (2, 3, 9)) == (space,)


def test_the_devices_of_a_pool_are_told_by_their_paths(tmp_path: Path) -> None:
    told = (
        "tank\t9\n\t/dev/sda1\t9\n\tmirror-1\t9\n\t\t/dev/sdb1\t9\n\t\tsdc\t9\n"
        "special\t-\n\tmirror-2\t9\n\t\t/dev/sdd1\t9\n\t\t/dev/sde1\t9\n"
        "logs\t-\n\t/dev/sdf1\t9\ncache\t-\n\tsdg\t9\n"
    )

    assert FactsReader(prints(told), root=tmp_path).device_paths("tank") == [
        ["/dev/sda1", "/dev/sdb1"],
        ["/dev/sdd1", "/dev/sde1"],
        ["/dev/sdf1"],
    ]


@rows(
    ("properties", "drops"),
    [
        ({"checksum": "sha256", "compression": "lz4"}, True),
        ({"checksum": "blake3", "compression": "on"}, True),
        ({"checksum": "on", "compression": "lz4"}, False),
        ({"checksum": "sha256", "compression": "off"}, False),
        ({"checksum": "sha512", "compression": "lz4", "dedup": "on"}, False),
        ({"checksum": "sha512", "compression": "lz4", "encryption": "aes-256-gcm"}, False),
    ],
)
def test_nop_write_needs_a_strong_checksum_and_compression(
    properties: dict[str, str], drops: bool
) -> None:
    assert Dataset("tank/a", properties).drops_unchanged is drops


@rows(
    ("words", "counts"),
    [
        ("tank sdb", True),
        ("-f -o ashift=12 tank mirror sdb sdc", True),
        ("-o ashift=12 -f tank raidz1 sdb sdc sdd log sde", True),
        ("--allow-in-use tank sdb", True),
        ("-fo ashift=12 tank log sdb", False),
        ("-foashift=12 tank log sdb", False),
        ("tank spare sdb", False),
        ("-f tank cache sdb", False),
        ("-o ashift=12 tank log mirror sdb sdc", False),
        ("tank special mirror sdb sdc", False),
        ("tank dedup sdb", False),
        ("log sdb", True),  # a pool with that name
        ("", False),
    ],
)
def test_only_data_vdevs_tell_old_files_from_new(words: str, counts: bool) -> None:
    create = "History for 'tank':\n2024-01-02.03:04:05 zpool create tank sda\n"
    first = "2024-02-02.03:04:05 zpool add tank mirror sdx sdy\n"
    last = f"2024-03-02.03:04:05 zpool add {words}\n2024-04-02.03:04:05 zfs snapshot a@zpool add\n"
    date = "2024-03-02.03:04:05" if counts else "2024-02-02.03:04:05"
    found = last_addition(f"{create}{first}{last}")
    assert found == last_addition(f"{date} zpool add tank sda\n") is not None
    assert last_addition(create) is None


def test_a_suspended_pool_is_not_asked(tmp_path: Path) -> None:
    def run(argv: Sequence[str], _deadline: float) -> Completed:
        raise AssertionError(argv)

    state = tmp_path / "proc/spl/kstat/zfs/tank/state"
    state.parent.mkdir(parents=True)
    state.write_text("SUSPENDED\n")
    reader = FactsReader(run, root=tmp_path)
    assert reader.condition("tank") == Condition("SUSPENDED")
    with pytest.raises(UnavailableError, match="suspended"):
        reader.listing("tank")


@pytest.mark.parametrize(
    ("code", "text", "ashift", "sector"),
    [(0, "-\n9\n12\n", "0", 4096), (2, "", "9", 512), (2, "", "0", None), (0, "-\n", "12", None)],
)
def test_the_sector_of_a_pool(
    tmp_path: Path, code: int, text: str, ashift: str, sector: int | None
) -> None:
    def run(argv: Sequence[str], _deadline: float) -> Completed:
        if argv[-1] == "all-vdevs":
            return Completed(tuple(argv), code, text, "")
        said = {"get": f"ashift\t{ashift}\n", "list": LIST, "status": ""}
        return Completed(tuple(argv), 0, said[argv[1]], "")

    assert FactsReader(run, root=tmp_path).pool("tank").sector == sector


CAPTURES = Path(__file__).parents[3] / "fixtures/captures"


def captured(name: str) -> str:
    """Return what `zpool status` printed on a real pool."""
    return (CAPTURES / name / "status.txt").read_text()


@rows(
    ("text", "condition"),
    [
        (
            "  pool: tank\n state: DEGRADED\n  scan: scrub in progress since Sat Aug  5 12:00\n",
            Condition("DEGRADED", "scrub"),
        ),
        (
            "  pool: tank\n state: ONLINE\n  scan: resilver (draid1-0) in progress since"
            " Sat Aug  5 12:00:00 2023\n",
            Condition("ONLINE", "resilver"),
        ),
        (captured("2.3.9/scrub-paused"), Condition("ONLINE")),
        # What moves the blocks of a vdev by itself is no scan.
        (captured("2.4.4/expand-running"), Condition("ONLINE", None, "raidz expansion")),
        (captured("2.3.9/removal-running"), Condition("ONLINE", None, "vdev removal")),
        (captured("2.3.9/checkpoint"), Condition("ONLINE", checkpoint=True)),
        ("", Condition("UNKNOWN")),
    ],
)
def test_the_condition_of_a_pool(tmp_path: Path, text: str, condition: Condition) -> None:
    reader = FactsReader(prints(text), root=tmp_path)
    assert reader.condition("tank") == condition
    with pytest.raises(UnavailableError, match="not `zpool list` output"):
        reader.listing("tank")


@pytest.mark.parametrize(
    ("row", "state"),
    [
        ("\t    bad    FAULTED      3    88     0  too many errors\n", "DEGRADED"),
        ("\t    sdb    ONLINE       0     0     0\n", "ONLINE"),
        ("\tcache\n\t  sdc    FAULTED      0     0     0\n", "ONLINE"),
        ("\tspares\n\t  sdd    UNAVAIL\n", "ONLINE"),
    ],
)
def test_a_pool_called_online_with_a_lost_disk_is_degraded(
    tmp_path: Path, row: str, state: str
) -> None:
    text = (
        "  pool: tank\n state: ONLINE\nconfig:\n\n\tNAME  STATE     READ WRITE CKSUM\n"
        "\ttank  ONLINE       0     0     0\n\t  raidz1-0  ONLINE       0     0     0\n"
        f"{row}\nerrors: No known data errors\n"
    )
    said = {"get": "health\tONLINE\n", "list": LIST, "status": text}
    run = lambda argv, deadline: Completed(tuple(argv), 0, said[argv[1]], "")  # noqa: E731
    reader = FactsReader(run, root=tmp_path)
    assert reader.condition("tank") == Condition(state)
    assert reader.pool("tank").condition == Condition(state), "a plan and its run see the same"


def test_a_mount_by_its_number(tmp_path: Path) -> None:
    """A device doesn't identify a mount: a bind has the same, files on btrfs an unlisted one."""
    (tmp_path / "mountinfo").write_text(
        "36 35 0:44 / /tank/a\\040b rw,noatime shared:1 - zfs tank/a\\040b rw,xattr\n"
        "37 35 0:44 / /bound ro,noatime shared:1 - zfs tank/a\\040b rw,xattr\n"
    )
    mount, bound = mount_of(36, tmp_path), mount_of(37, tmp_path)
    assert mount is not None
    assert bound is not None
    assert (mount.kind, mount.source, mount.point) == (b"zfs", b"tank/a b", b"/tank/a b")
    assert (bound.point, mount.read_only, bound.read_only) == (b"/bound", False, True)
    assert mount_of(44, tmp_path) is None


def test_the_mount_of_a_directory_is_the_one_it_is_reached_through(tmp_path: Path) -> None:
    mount = mount_of(mount_at(os.fsencode(tmp_path)))
    assert mount is not None
    assert tmp_path.is_relative_to(os.fsdecode(mount.point))


NO_WRITES = (
    "  pool: tank\n state: ONLINE\nconfig:\n\n\tNAME  STATE     READ WRITE CKSUM\n"
    "\ttank  ONLINE       0     0     0\n\t  raidz1-0  ONLINE       0     0     0\n"
    "\t    sda    ONLINE       0     0     0\n"
    "\t  mirror-1  ONLINE       0     0     0  {}\n\terrors: No known data errors\n"
)


@rows(
    ("note", "weights"),
    [("", [2.0, 1.0]), ("(non-allocating)", [2.0, 0.0]), ("(removing)", [2.0, 0.0])],
)
def test_a_vdev_that_takes_no_writes_has_no_weight(
    tmp_path: Path, note: str, weights: list[float]
) -> None:
    module = tmp_path / "sys/module/zfs/version"
    module.parent.mkdir(parents=True, exist_ok=True)
    module.write_text("2.3.9-1\n")

    def run(argv: Sequence[str], _deadline: float) -> Completed:
        text = {"list": LIST, "status": NO_WRITES.format(note), "get": ""}[argv[1]]
        return Completed(tuple(argv), 0, text, "")

    reader = FactsReader(run, root=tmp_path)
    assert [space.weight for space in reader.listing("tank")[0]] == weights
    assert [space.weight for space in reader.pool("tank").spaces] == weights


FILES, ZVOL, SNAP = "filesystem\t", "volume\t", "snapshot\t"


@rows(
    ("used", "saved", "factor", "volumes"),
    [
        (f"{FILES}400000000\t130000000\n{ZVOL}0\t344011\toff\n{SNAP}-\t-\n", "0", 1.5, (1, 344011)),
        (f"{FILES}400000000\t130000000\n{FILES}500344011\t0\n", "500000000", 1.5, (0, 0)),
        (f"{ZVOL}800000000\t10\toff\n{ZVOL}100000000\t0\toff\n", "0", 1.0, (2, 900000010)),
        (f"{ZVOL}800000000\t10\ton\n{ZVOL}100000000\t0\toff\n", "0", 1.0, None),
        ("", "0", 1.0, (0, 0)),
        (f"{FILES}5\t0\n", "10", 1.0, (0, 0)),
    ],
)
def test_what_is_only_reserved_is_not_allocated(
    tmp_path: Path, used: str, saved: str, factor: float, volumes: tuple[int, int] | None
) -> None:
    """A thick volume counts with its whole size in what the pool's dataset uses."""

    def run(argv: Sequence[str], _deadline: float) -> Completed:
        if argv[:2] == ("zfs", "list"):
            asked = dict.fromkeys(argv[argv.index("-o") + 1].split(","))
            return Completed(tuple(argv), 0, used if "used" not in asked else "3000000000\n", "")
        said = {"get": f"bclonesaved\t{saved}\n", "list": LIST, "status": ""}
        return Completed(tuple(argv), 0, said[argv[1]], "")

    found = FactsReader(run, root=tmp_path).pool("tank")
    assert found.raw_factor == pytest.approx(factor, rel=0.01)
    assert found.volumes == (volumes and Volumes(*volumes))
