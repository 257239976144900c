from __future__ import annotations

from dataclasses import replace

import pytest

from tests.table import rows
from zconsole.rebalance.planning.engine_choice import Choice, choose, hides_acls, why_hidden
from zconsole.rebalance.planning.facts import Dataset, JobDirectory
from zconsole.rebalance.planning.settings import Settings

ZFS = ("zfs", "tank/a")
EXT4 = ("ext4", "/dev/sda1")
AUTO = Settings(())
PLAIN = Dataset("tank/a", {"checksum": "on", "compression": "lz4"})
STRONG = Dataset("tank/a", {"checksum": "sha256", "compression": "lz4"})


def engine(
    dataset: Dataset | None = PLAIN,
    settings: Settings = AUTO,
    version: tuple[int, ...] = (2, 3, 9),
    mount: tuple[str, str] = ZFS,
    exported: str = "",
) -> tuple[str | None, str]:
    choice = choose(settings, JobDirectory(b"/d", *mount, dataset), version, exported)
    return choice.engine, choice.why


def test_rewrite_where_there_is_one() -> None:
    assert engine()[0] == "rewrite"
    assert engine(version=(2, 3, 4))[0] == "rewrite"
    assert engine(version=(2, 3, 3))[0] == "copy"
    assert engine(version=())[0] is None


def test_copy_where_rewrite_would_move_nothing() -> None:
    chosen, why = engine(STRONG)
    assert chosen == "copy"
    assert "nop-write" in why
    assert engine(STRONG, Settings((), "rewrite"))[0] is None


def test_new_properties_are_rewritten_even_with_a_strong_checksum() -> None:
    assert engine(STRONG, Settings((), aim="properties"))[0] == "rewrite"


def test_a_new_recordsize_needs_a_copy() -> None:
    assert engine(settings=Settings((), aim="recordsize"))[0] == "copy"
    assert engine(settings=Settings((), "rewrite", "recordsize"))[0] is None


def test_dedup_moves_nothing() -> None:
    assert engine(Dataset("tank/a", {"dedup": "on"}))[0] is None


def test_no_exchange_before_2_2() -> None:
    old = (2, 1, 11)
    assert engine(version=old)[0] is None
    assert engine(settings=Settings((), accept_races=True), version=old)[0] == "copy"


@rows("shared", [{"sharenfs": "on"}, {"sharesmb": "on"}])
def test_exported_datasets_are_not_copied(shared: dict[str, str]) -> None:
    dataset = Dataset("tank/a", {"checksum": "sha256", "compression": "on", **shared})
    assert engine(dataset)[0] is None
    assert engine(dataset, Settings((), accept_races=True))[0] == "copy"


@rows("hiding", [{"acltype": "nfsv4"}, {"xattr": "off"}])
def test_what_is_hidden_is_not_dropped(hiding: dict[str, str]) -> None:
    dataset = Dataset("tank/a", hiding)
    assert engine(dataset, Settings((), "copy"))[0] is None
    assert engine(dataset)[0] == "rewrite"


@pytest.mark.parametrize("option", ["noacl", "nouser_xattr"])
def test_what_mount_options_hide_is_not_dropped(option: str) -> None:
    place = JobDirectory(b"/d", *EXT4, None, options=f"rw,{option},errors=remount-ro")
    for accept_races in (False, True):
        allowed = Settings((), allow_non_zfs=True, accept_races=accept_races)
        chosen = choose(allowed, place, (), "")
        assert chosen.engine is None
        assert chosen.why.startswith(f"mounted {option}: a copy would drop")


def test_acls_that_were_on_are_not_dropped_once_they_are_off() -> None:
    off = JobDirectory(b"/d", *ZFS, Dataset("tank/a", {"acltype": "off"}), options="rw,xattr,noacl")
    assert why_hidden(off, False) == ""
    assert why_hidden(off, False, "rw,xattr,noacl") == ""
    assert why_hidden(off, False, "rw,xattr,posixacl").startswith("acltype=off by now: ")
    on = replace(off, options="rw,xattr,posixacl")
    assert why_hidden(on, False, "rw,xattr,posixacl") == ""


def test_attributes_that_were_on_are_not_dropped_once_they_are_off() -> None:
    place = JobDirectory(b"/d", *ZFS, PLAIN, options="rw,noxattr,noacl")
    assert why_hidden(place, False).startswith("xattr=off: ")
    assert why_hidden(replace(place, options="rw,xattr,noacl"), False) == ""


def test_what_an_overlay_is_made_of_is_rewritten_or_nothing() -> None:
    in_use = "in use by an overlay (pid 7)"
    version = (2, 3, 9)
    assert choose(AUTO, JobDirectory(b"/d", *ZFS, PLAIN), version, "", in_use).engine == "rewrite"
    for settings, dataset, mount in (
        (Settings((), "copy", accept_races=True), PLAIN, ZFS),
        (AUTO, STRONG, ZFS),
        (Settings((), allow_non_zfs=True, accept_races=True), None, EXT4),
    ):
        chosen = choose(settings, JobDirectory(b"/d", *mount, dataset), version, "", in_use)
        assert chosen.engine is None
        assert f"{in_use}: stop its containers" in chosen.why


def test_a_rewrite_says_why_and_a_copy_says_what_it_could_be_instead() -> None:
    assert "inodes stay" in engine()[1]
    assert engine(settings=Settings((), "copy"))[1].endswith(
        "rewrite would keep every inode (--engine=rewrite)"
    )
    assert "--engine" not in engine(settings=Settings((), "copy"), version=(2, 3, 3))[1]


def test_acls_may_be_hidden_where_they_are_off() -> None:
    without, posix = (Dataset("tank/a", {"acltype": kind}) for kind in ("off", "posix"))
    copied, rewritten = Choice("copy", ""), Choice("rewrite", "")
    assert hides_acls(copied, without)
    assert not hides_acls(copied, posix)
    assert not hides_acls(rewritten, without)
    assert not hides_acls(copied, None)


def test_other_filesystems_only_when_allowed() -> None:
    assert engine(None, mount=EXT4)[0] is None
    allowed = Settings((), allow_non_zfs=True)
    assert engine(None, allowed, mount=EXT4)[0] == "copy"
    assert engine(None, allowed, mount=("nfs4", "host:/x"))[0] is None
    assert engine(None, Settings((), "rewrite", allow_non_zfs=True), mount=EXT4)[0] is None


def test_read_only_mounts_get_none() -> None:
    place = JobDirectory(b"/d", *ZFS, PLAIN, read_only=True)
    assert choose(AUTO, place, (2, 3, 9), "").engine is None
