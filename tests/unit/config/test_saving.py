"""A saved setting changes its own line and nothing else of the file."""

from __future__ import annotations

import os
import stat
import tomllib

import pytest

from tests.table import rows
from zconsole.config import saving
from zconsole.config.saving import edited, save, toml
from zconsole.errors import NotUnderstoodError
from zconsole.system.safe_path import StateError

KEPT = """\
# Night watch
interval = 2  # seconds
units = "decimal"   # as the vendor prints
panes = [
  "scan",  # first
  "devices",
]
unknown = { a = 1 }

[keys]
# theirs
units = "F"
"""


def test_comments_order_and_other_settings_stay():
    after = edited(KEPT, {"units": "exact", "sort": "busy"})
    assert after == KEPT.replace('"decimal"   #', '"exact"  #').replace(
        "unknown = { a = 1 }\n", 'unknown = { a = 1 }\nsort = "busy"\n'
    )


def test_a_setting_of_several_lines_is_replaced_as_one():
    after = edited(KEPT, {"panes": ("events",)})
    assert tomllib.loads(after) == {**tomllib.loads(KEPT), "panes": ["events"]}
    assert '"devices"' not in after


@rows(
    "text",
    [
        *(
            "",
            "\n",
            "# a comment",
            "# a comment\n\n[keys]\nup = 'e'",
            "# a comment\n[keys]\nup = 'e'",
        ),
        *("[keys]\n", "\n[keys]", "[keys]\n\nup = 'e'", "'sort'='tree'", "bell = true\r\n"),
    ],
)
def test_a_setting_finds_its_place_in_any_file(text):
    after = tomllib.loads(edited(text, {"sort": "busy"}))
    assert after == {**tomllib.loads(text), "sort": "busy"}


@rows("text", ["sort = ", 'a = """\nsort = "tree"\n"""\n', "\x00"])
def test_what_cannot_be_changed_without_damage_is_refused(text):
    with pytest.raises(ValueError, match=r"."):
        edited(text, {"sort": "busy"})


@rows("value", ['a"b', "a\\b", "é\x7f\n", "#", True, 0.25, ["a", "b"]])
def test_every_value_is_read_as_it_was_written(value):
    assert tomllib.loads(f"x = {toml(value)}")["x"] == value


def test_a_new_file_is_its_users_only(tmp_path):
    path = tmp_path / "new" / "config.toml"
    save(path, {"sort": "busy"})
    assert path.read_text() == 'sort = "busy"\n'
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_the_machines_file_is_for_all_to_read(tmp_path, monkeypatch):
    path = tmp_path / "etc" / "config.toml"
    monkeypatch.setattr(saving, "SYSTEM", path)
    save(path, {"sort": "busy"})
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o755


def test_a_link_stays_a_link_and_the_mode_stays(tmp_path):
    kept, path = tmp_path / "kept", tmp_path / "config.toml"
    kept.write_text(KEPT)
    kept.chmod(0o640)
    path.symlink_to(kept)
    save(path, {"units": "exact"})
    assert path.is_symlink()
    assert tomllib.loads(kept.read_text())["units"] == "exact"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o640


def test_a_file_that_others_can_change_is_not_written(tmp_path):
    path = tmp_path / "config.toml"
    path.write_text(KEPT)
    path.chmod(0o666)
    with pytest.raises(StateError):
        save(path, {"units": "exact"})
    assert path.read_text() == KEPT


def test_a_file_that_is_not_toml_is_not_written(tmp_path):
    path = tmp_path / "config.toml"
    path.write_text("units = \n")
    with pytest.raises(NotUnderstoodError, match=r"config\.toml"):
        save(path, {"units": "exact"})
    assert path.read_text() == "units = \n"


def test_a_full_disk_leaves_the_file_as_it_was(tmp_path, monkeypatch):
    path = tmp_path / "config.toml"
    path.write_text(KEPT)

    def full(_handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises((StateError, OSError), match="No space left"):
        save(path, {"units": "exact"})
    assert path.read_text() == KEPT
    assert [each.name for each in tmp_path.iterdir()] == ["config.toml"]
