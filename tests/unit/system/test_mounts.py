"""Mount tables: the position of a path within its filesystem, whatever its name."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.table import rows
from zconsole.rebalance.engine import overlays
from zconsole.system import mounts
from zconsole.system.mounts import MountPoint, Spot, View

HOST = rb"""
20 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
21 20 0:50 / /tank rw - zfs tank rw,xattr
22 21 0:51 / /tank/data rw - zfs tank/data rw
23 20 0:60 / /net rw - nfs4 server:/export rw,hard
24 23 0:51 /below /net/inside rw - zfs tank/data rw
25 20 0:51 /conf\040file\134 /etc/conf rw - zfs tank/data rw
26 22 0:70 / /tank/data/covered rw - tmpfs tmpfs rw
27 20 8:1 /srv /srv rw - ext4 /dev/sda1 rw
28 20 0:52 / /srv rw - zfs tank/srv rw
""".strip()


def view(text: bytes = HOST, process: Path = Path("/nowhere")) -> View:
    return View(process, mounts.parse(text))


def test_a_line_is_read_whole_and_without_escapes() -> None:
    assert mounts.parse(HOST)[25] == MountPoint(
        25, 20, b"0:51", b"/conf file\\", b"/etc/conf", b"zfs", b"rw", b"tank/data"
    )


@rows("line", [b"", b"20 1 8:1 / /", b"20 1 8:1 / / rw - ext4", b"no mount"])
def test_a_line_that_is_none_is_left_out(line: bytes) -> None:
    assert mounts.parse(line) == {}


@rows(
    ("path", "number"),
    [(b"/etc", 20), (b"/tank/data/x", 22), (b"/tank/database", 21), (b"/srv/x", 28), (b"/", 20)],
)
def test_the_mount_of_a_path_is_the_topmost(path: bytes, number: int) -> None:
    top = view().top(path)
    assert top is not None
    assert top.number == number


def test_what_is_mounted_or_lies_under_a_mount_has_a_place_in_its_filesystem() -> None:
    assert set(view().spots()) == {
        Spot(b"8:1", b"/tank"),
        Spot(b"0:50", b"/data"),
        Spot(b"8:1", b"/net"),
        Spot(b"0:60", b"/inside"),
        Spot(b"0:51", b"/below"),
        Spot(b"8:1", b"/etc/conf"),
        Spot(b"0:51", b"/conf file\\"),
        Spot(b"0:51", b"/covered"),
        Spot(b"8:1", b"/srv"),
    }


def test_a_place_is_reached_where_nothing_covers_it_and_its_path_is_short_enough() -> None:
    reached = view().local_path
    assert reached(Spot(b"0:51", b"/conf file\\")) == b"/tank/data/conf file\\"
    assert reached(Spot(b"0:51", b"/covered")) is None
    assert reached(Spot(b"0:51", b"/covered/more")) is None
    assert reached(Spot(b"9:9", b"/x")) is None
    longest = b"/" + b"x" * (4095 - len(b"/tank/data/"))
    assert reached(Spot(b"0:51", longest)) == b"/tank/data" + longest
    assert reached(Spot(b"0:51", longest + b"x")) is None


def test_no_server_is_passed_on_the_way_to_a_place() -> None:
    only = b"\n".join(line for line in HOST.splitlines() if line[:2] not in (b"22", b"25"))
    assert view(only).local_path(Spot(b"0:51", b"/below/x")) is None
    assert view(only).local_path(Spot(b"0:60", b"/x")) is None


@rows(
    ("outer", "inner", "held"),
    [
        (Spot(b"8:1", b"/a"), Spot(b"8:1", b"/a"), True),
        (Spot(b"8:1", b"/a"), Spot(b"8:1", b"/a/b"), True),
        (Spot(b"8:1", b"/"), Spot(b"8:1", b"/a/b"), True),
        (Spot(b"8:1", b"/a"), Spot(b"8:1", b"/ab"), False),
        (Spot(b"8:1", b"/a"), Spot(b"8:2", b"/a/b"), False),
        (Spot(b"8:1", b"/a/b"), Spot(b"8:1", b"/a"), False),
    ],
)
def test_a_place_holds_what_is_in_it(outer: Spot, inner: Spot, held: bool) -> None:
    assert outer.holds(inner) is held


@pytest.fixture
def process(tmp_path: Path) -> Path:
    """The directory of a process whose root is ``tmp_path/root``."""
    root = tmp_path / "root"
    (root / "tank/data/one/two").mkdir(parents=True)
    (root / "net/inside").mkdir(parents=True)
    (root / "link").symlink_to("tank/./data/one")
    (root / "absolute").symlink_to("/tank/data")
    (root / "loop").symlink_to("loop")
    (root / "net" / "link").symlink_to("/tank")
    return tmp_path


@pytest.mark.parametrize(
    ("path", "spot"),
    [
        (b"/tank/data/one", Spot(b"0:51", b"/one")),
        (b"//tank/./data//one/", Spot(b"0:51", b"/one")),
        (b"/link/two", Spot(b"0:51", b"/one/two")),
        (b"/link/../one/two/..", Spot(b"0:51", b"/one")),
        (b"/absolute/one", Spot(b"0:51", b"/one")),
        (b"/../tank", Spot(b"0:50", b"/")),
        (b"/tank/data/none", None),
        (b"/loop/x", None),
        (b"/", Spot(b"8:1", b"/")),
    ],
)
def test_links_are_followed(process: Path, path: bytes, spot: Spot | None) -> None:
    assert view(process=process).follow(path) == spot


def test_no_name_on_a_server_is_looked_at(process: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    readlink = Path.readlink

    def noted(self: Path) -> Path:
        asked.append(str(self))
        return readlink(self)

    monkeypatch.setattr(Path, "readlink", noted)
    seen = view(process=process)
    assert seen.follow(b"/net/link/x") == Spot(b"0:60", b"/link/x")
    assert seen.follow(b"/net/inside/x") == Spot(b"0:51", b"/below/x")
    assert seen.follow(b"/net/inside/x", sure=True) is None
    assert not [path for path in asked if "/net" in path]


def test_no_name_on_an_overlay_is_looked_at(process: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its layers may be on a server: a container's root, say, on a share."""
    monkeypatch.setattr(Path, "readlink", lambda self: pytest.fail(str(self)))
    over = view(rb"20 1 0:30 / / rw - overlay overlay rw,lowerdir=/net/a:/net/b", process)
    assert over.follow(b"/link/two") == Spot(b"0:30", b"/link/two")


OVER = rb"30 20 0:80 / /merged rw - overlay overlay "


@rows(
    ("options", "found"),
    [
        (rb"rw,lowerdir=/a:/b,upperdir=/u,workdir=/w,index=off", {b"/a", b"/b", b"/u", b"/w"}),
        (rb"lowerdir=/a\134:b:/c\134\054d", {b"/a:b", b"/c,d"}),
        (rb"lowerdir=/a\040b::/data\054", {b"/a b", b"/data,"}),
        (rb"lowerdir+=/a:b,datadir+=/c,redirect_dir=on", {b"/a:b", b"/c"}),
        (rb"lowerdir=l/A:l/B,upperdir=x/diff", {b"l/A", b"l/B", b"x/diff"}),
        (rb"rw", set()),
    ],
)
def test_the_directories_of_an_overlay(options: bytes, found: set[bytes]) -> None:
    assert set(overlays.layers(options)) == found


def test_relative_directories_are_found_beside_the_others(process: Path) -> None:
    """Container engines use relative paths if the options would be longer than a page."""
    (process / "root/tank/data/snapshots/2/fs").mkdir(parents=True)
    line = OVER + rb"rw,lowerdir=2/fs,upperdir=/tank/data/snapshots/1/fs"
    (process / "root/tank/data/snapshots/1/fs").mkdir(parents=True)
    seen = view(HOST + b"\n" + line, process)
    assert overlays.found(seen.mounts[30], [seen]).spots == {
        Spot(b"0:51", b"/snapshots/1/fs"),
        Spot(b"0:51", b"/snapshots/2/fs"),
    }


@rows(
    ("line", "directories"),
    [
        (rb"/tank/data/one rw,ecryptfs_sig=1a,ecryptfs_cipher=aes", {b"/tank/data/one"}),
        (rb"/tank/a\040b rw", {b"/tank/a b"}),
    ],
)
@rows("kind", [b"ecryptfs", b"shiftfs"])
def test_what_stacks_upon_one_directory_names_it_as_its_source(
    line: bytes, directories: set[bytes], kind: bytes
) -> None:
    mount = mounts.parse(rb"30 20 0:80 / /merged rw - " + kind + b" " + line)[30]
    assert set(overlays.directories(mount)) == directories


def test_branches_of_aufs_are_in_its_options_or_in_sysfs(tmp_path: Path) -> None:
    """Formats are as in au_show_options (fs/aufs/super.c) and sysaufs_si_br (fs/aufs/sysfs.c)."""
    (tmp_path / "si_1a").mkdir()
    for name, text in (("br0", "/u=rw\n"), ("br12", "/l = x=ro+wh\n"), ("brid0", "64\n")):
        (tmp_path / "si_1a" / name).write_text(text)
    head = rb"30 20 0:80 / /merged rw - aufs none rw,"
    named, shown = (mounts.parse(head + b)[30] for b in (b"br:/u=rw:/l\\040x=ro+wh", b"si=1a,dio"))
    assert set(overlays.directories(named, tmp_path)) == {b"/u", b"/l x"}
    assert set(overlays.directories(shown, tmp_path)) == {b"/u", b"/l = x"}


def test_a_stack_whose_directories_are_not_known_is_lost(process: Path) -> None:
    seen = view(HOST + b"\n30 20 0:80 / /merged rw - aufs none rw,si=none", process)
    assert overlays.found(seen.mounts[30], [seen]) == (set(), True)


def test_only_a_newline_ends_a_line() -> None:
    table = b"30 1 0:50 / /tank/a\rb rw - zfs tank/a\rb rw\n31 1 0:51 / /c ro - zfs c rw\n"
    found = [(each.point, each.source, each.read_only) for each in mounts.rows(table)]
    assert found == [(b"/tank/a\rb", b"tank/a\rb", False), (b"/c", b"c", True)]
