from __future__ import annotations

import contextlib
import errno
import grp
import os
import pwd
import stat
from pathlib import Path
from types import SimpleNamespace

import pytest

from zconsole.system import safe_path
from zconsole.system import state_dir as state
from zconsole.system.state_dir import StateError

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs another owner")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def test_the_directory_named_comes_before_any_other(tmp_path):
    chosen = tmp_path / "deep" / "state"
    assert state.state_dir(False, {"ZCONSOLE_STATE": str(chosen)}) == chosen
    assert not chosen.exists()
    assert state.state_dir(True, {"ZCONSOLE_STATE": str(chosen)}) == chosen
    assert mode(chosen) == 0o700


def test_root_has_the_systems_directory_and_others_their_own(monkeypatch, tmp_path):
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert state.state_dir(False, {}) == state.SYSTEM
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert state.state_dir(False, {"XDG_STATE_HOME": "/xdg"}) == Path("/xdg/zconsole")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert state.state_dir(False, {}) == tmp_path / ".local/state/zconsole"


def test_a_relative_directory_is_none(monkeypatch):
    """Otherwise every working directory would have its own originals and jobs."""
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setenv("HOME", "/home/ann")
    assert state.state_dir(False, {"XDG_STATE_HOME": "state"}) == Path(
        "/home/ann/.local/state/zconsole"
    )
    monkeypatch.setenv("HOME", "home")
    assert state.state_dir(False, {}) == state.HOMELESS / ".local/state/zconsole"


def test_a_user_without_a_home_gets_no_traceback(monkeypatch, tmp_path):
    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    monkeypatch.setattr(state, "HOMELESS", tmp_path / "file")
    monkeypatch.setattr(Path, "home", homeless)
    (tmp_path / "file").touch()
    assert state.state_dirs({})[0] == tmp_path / "file/.local/state/zconsole"
    assert state.state_dir(False, {"XDG_STATE_HOME": "/xdg"}) == Path("/xdg/zconsole")
    with pytest.raises(StateError, match="state directory"):
        state.state_dir(True, {})


def test_a_reader_falls_back_to_the_systems_directory_where_it_may_read(monkeypatch, tmp_path):
    own = tmp_path / "own"
    environ = {"ZCONSOLE_STATE": str(own)}
    monkeypatch.setattr(state, "SYSTEM", tmp_path / "system")
    assert state.state_dirs(environ) == (own,)
    (tmp_path / "system").mkdir()
    assert state.state_dirs(environ) == (own, tmp_path / "system")


@pytest.mark.parametrize(
    ("make", "place", "why"),
    [
        (lambda at: at.symlink_to("."), "at", "not a directory"),
        (lambda at: at.mkdir() or at.chmod(0o777), "at", "others may write"),
        (Path.touch, "at/below", "state directory"),
    ],
)
def test_a_directory_that_is_none_of_ours_is_refused(tmp_path, make, place, why):
    make(tmp_path / "at")
    with pytest.raises(StateError, match=why):
        state.state_dir(True, {"ZCONSOLE_STATE": str(tmp_path / place)})


def test_a_directory_of_somebody_else_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: tmp_path.stat().st_uid + 1)
    if tmp_path.stat().st_uid == 0:
        os.chown(tmp_path, 12345, 0)
    with pytest.raises(StateError, match="somebody else"):
        state.state_dir(True, {"ZCONSOLE_STATE": str(tmp_path)})


def test_what_was_written_is_read_and_private(tmp_path):
    path = tmp_path / "kept"
    state.write_private(path, b"one")
    state.write_private(path, b"two")
    assert state.read_private(path, 10) == b"two"
    with pytest.raises(StateError, match="over 2 bytes"):
        state.read_private(path, 2)
    assert mode(path) == 0o600
    assert [p.name for p in tmp_path.iterdir()] == ["kept"]


def test_links_fifos_and_files_of_everybody_are_refused(tmp_path):
    """Of a file with two names, somebody else may own the other one, and choose it for root."""
    (tmp_path / "target").write_text("secret")
    (tmp_path / "link").symlink_to("target")
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "open").write_text("x")
    (tmp_path / "open").chmod(0o666)
    (tmp_path / "other").hardlink_to(tmp_path / "target")
    for name, why in (("link", "."), ("fifo", "."), ("open", "."), ("other", "it has 2 names")):
        with pytest.raises(StateError, match=why):
            state.open_private(tmp_path / name)
    with pytest.raises(FileNotFoundError):
        state.open_private(tmp_path / "nothing")


@as_root
def test_a_file_of_somebody_else_is_refused_and_told_whose_it_is(tmp_path):
    state.write_private(tmp_path / "kept", b"x")
    os.chown(tmp_path / "kept", 12345, 0)
    with pytest.raises(StateError, match=r"belongs to somebody else \(uid 12345\)\. Run"):
        state.open_private(tmp_path / "kept")


@as_root
@pytest.mark.parametrize("mode", [0o700, 0o1777])
def test_a_directory_of_somebody_on_the_way_is_refused(tmp_path, mode):
    """Its owner could exchange what is below it between two calls."""
    (tmp_path / "his/ours").mkdir(parents=True)
    (tmp_path / "his/ours/file").touch(0o600)
    (tmp_path / "his").chmod(mode)
    os.chown(tmp_path / "his", 12345, 12345)
    for confirmation in (state.open_private, state.try_lock, state.remove, state.check_database):
        with pytest.raises(StateError, match="his belongs to somebody else"):
            confirmation(tmp_path / "his/ours/file")
    for confirmation in (state.write_private, state.create_private):
        with pytest.raises(StateError, match="his belongs to somebody else"):
            confirmation(tmp_path / "his/ours/new", b"x")
    with pytest.raises(StateError, match="his belongs to somebody else"):
        state.state_dir(True, {"ZCONSOLE_STATE": str(tmp_path / "his/new/state")})
    assert [path.name for path in tmp_path.rglob("*")] == ["his", "ours", "file"]


def test_a_directory_on_the_way_may_be_open_to_others_only_if_it_is_sticky(tmp_path):
    (tmp_path / "way/ours").mkdir(parents=True)
    (tmp_path / "way").chmod(0o1777)
    state.write_private(tmp_path / "way/ours/file", b"x")
    # In it, anybody may put files, such as a log next to a database.
    with pytest.raises(StateError, match="Choose a directory only you can write to"):
        state.write_private(tmp_path / "way/file", b"x")
    (tmp_path / "way").chmod(0o777)
    with pytest.raises(StateError, match="others may write to "):
        state.read_private(tmp_path / "way/ours/file", 10)


def test_links_of_ours_on_the_way_are_followed(tmp_path):
    (tmp_path / "real/state").mkdir(parents=True)
    (tmp_path / "way").symlink_to("real")
    state.write_private(tmp_path / "way/state/file", b"x")
    assert safe_path.resolved(tmp_path / "way/../way/state/file") == tmp_path / "real/state/file"
    (tmp_path / "real/state/link").symlink_to(tmp_path / "way/state/file")
    assert safe_path.resolved(tmp_path / "real/state/link") == tmp_path / "real/state/file"
    assert safe_path.resolved(tmp_path / "way/new") == tmp_path / "real/new"
    with pytest.raises(FileNotFoundError):
        safe_path.resolved(tmp_path / "way/nowhere/new")
    (tmp_path / "ring").symlink_to("ring")
    for path in (tmp_path / "ring", tmp_path / "ring/file"):
        with pytest.raises(StateError):
            safe_path.resolved(path)


@as_root
def test_links_of_somebody_on_the_way_are_not_followed(tmp_path):
    (tmp_path / "real/state").mkdir(parents=True)
    (tmp_path / "way").symlink_to("real")
    os.chown(tmp_path / "way", 12345, 12345, follow_symlinks=False)
    for confirmation in (state.open_private, safe_path.resolved):
        with pytest.raises(StateError, match="the link way belongs to somebody else"):
            confirmation(tmp_path / "way/state/file")


def test_a_database_and_all_beside_it_are_looked_at(tmp_path):
    path = tmp_path / "job.db"
    with pytest.raises(FileNotFoundError):
        state.check_database(path)
    state.create_private(path, b"")
    state.check_database(path)
    for companion in state.COMPANIONS:
        beside = path.with_name(path.name + companion)
        beside.symlink_to("job.db")
        with pytest.raises(StateError, match=f"job.db{companion} refused: it is a link"):
            state.check_database(path)
        beside.unlink()
        beside.touch(0o600)
        state.check_database(path)


@pytest.mark.parametrize("unnamed", [True, False])
def test_a_new_file_is_whole_or_not_there(tmp_path, monkeypatch, unnamed):
    real = os.open

    def old(path: str, flags: int, *rest: int, **places: int) -> int:
        if flags & os.O_TMPFILE == os.O_TMPFILE:
            raise OSError(95, "Operation not supported")
        return real(path, flags, *rest, **places)

    if not unnamed:
        monkeypatch.setattr(os, "open", old)
    path = tmp_path / "new"
    state.create_private(path, b"whole")
    assert (state.read_private(path, 10), mode(path)) == (b"whole", 0o600)
    with pytest.raises(FileExistsError):
        state.create_private(path, b"other")
    monkeypatch.setattr(os, "fsync", lambda handle: (_ for _ in ()).throw(OSError(28, "full")))
    with pytest.raises(OSError, match="full"):
        state.create_private(tmp_path / "second", b"x")
    assert [p.name for p in tmp_path.iterdir()] == ["new"]
    assert path.read_bytes() == b"whole"


@pytest.mark.parametrize("call", ["open", "fsync", "link"])
def test_a_new_file_that_the_disk_refuses_is_named(tmp_path, monkeypatch, call):
    real = getattr(os, call)

    def refuse(at, *rest, **places):
        if at == "/" or (call == "open" and at != "."):  # a directory on the way
            return real(at, *rest, **places)
        raise OSError(errno.EDQUOT, "Disk quota exceeded", at)

    monkeypatch.setattr(os, call, refuse)
    with pytest.raises(OSError, match="Disk quota exceeded") as raised:
        state.create_private(tmp_path / "new", b"x")
    assert raised.value.filename == str(tmp_path / "new")


@pytest.mark.parametrize(
    ("members", "name", "euid", "refused"),
    [
        ([], "ann", 1000, False),
        (["ann"], "ann", 1000, False),
        (["ann", "bob"], "ann", 1000, True),
        ([], "users", 1000, True),
        ([], "ann", 0, True),
    ],
)
def test_a_group_of_one_user_is_that_user(monkeypatch, members, name, euid, refused):
    """Directories created with umask 002 are like this; for root the rules are stricter."""
    monkeypatch.setattr(os, "geteuid", lambda: euid)
    monkeypatch.setattr(pwd, "getpwuid", lambda uid: SimpleNamespace(pw_name="ann", pw_gid=1000))
    group = SimpleNamespace(gr_name=name, gr_mem=members)
    monkeypatch.setattr(grp, "getgrgid", lambda gid: group)
    status = os.stat_result((stat.S_IFREG | 0o660, 1, 1, 1, euid, 1000, 0, 0, 0, 0))
    with pytest.raises(StateError) if refused else contextlib.nullcontext():
        safe_path.check_file(status, Path("/x"))


def test_the_end_of_a_file_is_read_from_where_it_was_once(tmp_path):
    state.write_private(tmp_path / "log", b"0123456789")
    assert state.read_end(tmp_path / "log", 4) == b"6789"
    assert state.read_end(tmp_path / "log", 100, 7) == b"789"


def test_a_write_that_fails_leaves_the_old_contents(tmp_path, monkeypatch):
    path = tmp_path / "kept"
    state.write_private(path, b"old")

    def full(_handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StateError, match="No space left"):
        state.write_private(path, b"new")
    assert path.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["kept"]


def test_a_lock_is_held_by_one(tmp_path):
    path = tmp_path / "lock"
    first = state.try_lock(path)
    assert first is not None
    assert state.try_lock(path) is None
    os.close(first)
    again = state.lock_within(path, 1.0)
    assert again is not None
    os.close(again)


def test_a_lock_that_stays_held_is_waited_for_only_so_long(tmp_path, monkeypatch):
    slept: list[float] = []
    monkeypatch.setattr(state.time, "sleep", slept.append)
    held = state.try_lock(tmp_path / "lock")
    assert held is not None
    assert state.lock_within(tmp_path / "lock", 1.0) is None
    os.close(held)
    assert sum(slept) == pytest.approx(1.0)


def test_a_mark_changes_with_the_directories_and_is_none_while_they_may_still(
    monkeypatch, tmp_path
):
    monkeypatch.setattr(state, "SYSTEM", tmp_path / "none")
    own = {"ZCONSOLE_STATE": str(tmp_path)}
    os.utime(tmp_path, (1e9, 1e9))
    assert state.change_mark(1e9 + state.SETTLED - 0.1, own) is None
    mark = state.change_mark(1e9 + state.SETTLED, own)
    assert mark is not None
    assert state.change_mark(2e9, own) == mark
    (tmp_path / "rebalance").mkdir()
    os.utime(tmp_path, (1e9, 1e9))
    os.utime(tmp_path / "rebalance", (1e9, 1e9))
    assert state.change_mark(2e9, own) not in (None, mark)
