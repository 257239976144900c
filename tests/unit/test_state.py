from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from zconsole import state
from zconsole.state import StateError


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


def test_a_link_in_the_directorys_place_is_refused(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    with pytest.raises(StateError, match="not a directory"):
        state.state_dir(True, {"ZCONSOLE_STATE": str(tmp_path / "link")})


def test_a_directory_others_may_write_to_is_refused(tmp_path):
    tmp_path.chmod(0o777)
    with pytest.raises(StateError, match="others may write"):
        state.state_dir(True, {"ZCONSOLE_STATE": str(tmp_path)})


def test_a_directory_of_somebody_else_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: tmp_path.stat().st_uid + 1)
    if tmp_path.stat().st_uid == 0:
        os.chown(tmp_path, 12345, 0)
    with pytest.raises(StateError, match="somebody else"):
        state.state_dir(True, {"ZCONSOLE_STATE": str(tmp_path)})


def test_a_file_where_the_directory_should_be_is_one_clear_error(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(StateError, match="state directory"):
        state.state_dir(True, {"ZCONSOLE_STATE": str(tmp_path / "file" / "below")})


def test_what_was_written_is_read_and_private(tmp_path):
    path = tmp_path / "kept"
    state.write_private(path, b"one")
    state.write_private(path, b"two")
    assert state.read_private(path, 10) == b"two"
    assert mode(path) == 0o600
    assert [p.name for p in tmp_path.iterdir()] == ["kept"]


def test_more_than_expected_is_not_read(tmp_path):
    state.write_private(tmp_path / "kept", b"x" * 100)
    with pytest.raises(StateError, match="over 99 bytes"):
        state.read_private(tmp_path / "kept", 99)


def test_links_fifos_and_files_of_everybody_are_refused(tmp_path):
    (tmp_path / "target").write_text("secret")
    (tmp_path / "link").symlink_to("target")
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "open").write_text("x")
    (tmp_path / "open").chmod(0o666)
    for name in ("link", "fifo", "open"):
        with pytest.raises(StateError):
            state.open_private(tmp_path / name)
    with pytest.raises(FileNotFoundError):
        state.open_private(tmp_path / "nothing")


def test_a_write_that_fails_leaves_the_old_contents(tmp_path, monkeypatch):
    path = tmp_path / "kept"
    state.write_private(path, b"old")

    def full(handle: int) -> None:
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


def test_a_lock_that_stays_held_is_waited_for_only_so_long(tmp_path):
    slept: list[float] = []
    held = state.try_lock(tmp_path / "lock")
    assert held is not None
    assert state.lock_within(tmp_path / "lock", 1.0, slept.append) is None
    os.close(held)
    assert sum(slept) == pytest.approx(1.0)
