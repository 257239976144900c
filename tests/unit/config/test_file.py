"""The configuration file: its values, which of them apply, and which file is trusted."""

from __future__ import annotations

import os
import re
import stat
import tomllib

import pytest

from tests.table import rows
from zconsole.config import file
from zconsole.config.file import LARGEST, config_path, edited, read_config, save, toml
from zconsole.config.settings import COMMAND_LINE_ONLY, ENTRIES
from zconsole.errors import NotUnderstoodError
from zconsole.system import safe_path
from zconsole.system.safe_path import StateError

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs another owner")


@pytest.fixture
def path(tmp_path, monkeypatch):
    found = tmp_path / "config.toml"
    monkeypatch.setattr(file, "config_path", lambda: found)
    return found


def only_problem(config):
    """Return the problem of the only wrong entry, which is reported in one line."""
    (line,) = config.lines()
    assert "\n" not in line
    assert line.startswith(f"{config.path}: ")
    assert line.endswith("Correct it, then run: zconsole config check")
    return config.wrong[0].problem


def test_root_has_the_machines_file_and_others_their_own(monkeypatch):
    monkeypatch.setattr(file.os, "geteuid", lambda: 0)
    monkeypatch.setenv("XDG_CONFIG_HOME", "/xdg")
    assert config_path() == file.SYSTEM
    monkeypatch.setattr(file.os, "geteuid", lambda: 1000)
    monkeypatch.setenv("HOME", "/home/ann")
    assert str(config_path()) == "/xdg/zconsole/config.toml"
    for relative in ("", "xdg"):
        monkeypatch.setenv("XDG_CONFIG_HOME", relative)
        assert str(config_path()) == "/home/ann/.config/zconsole/config.toml"


@pytest.mark.usefixtures("path")
def test_without_a_file_every_setting_has_its_default():
    config = read_config()
    assert (config.exists, config.lines(), config.values) == (False, (), {})
    assert all(config.value(name) == entry.default for name, entry in ENTRIES.items())


EVERYTHING = """
interval = 2
theme = "light"
theme-16 = "/themes/mine.toml"
units = "decimal"
panes = ["scan", "devices"]
columns = ["errors", "latency"]
sort = "latency"
chassis = ["0x5001: 12x5", "SAS3x40: 4x6 by-column from-bottom"]
ascii = true
no-mouse = true
read-only = true
hosts = ["root@nas1", "nas2"]
stalled-after = 300
scrub-overdue-after = "28d12h"
slip = "50%"
free-floor = 0.1
hook = "true"
bell = true
notify = true

[keys]
replace = "F"
up = ["Up", "e"]
"""


def test_every_setting_can_stand_in_the_file(path):
    path.write_text(EVERYTHING)
    config = read_config()
    assert config.lines() == ()
    assert config.values.keys() == ENTRIES.keys()
    assert all(config.value(name) != entry.default for name, entry in ENTRIES.items())
    assert config.value("scrub-overdue-after") == 28.5 * 86400
    assert (config.value("slip"), config.value("hosts")) == (0.5, ("root@nas1", "nas2"))
    assert config.keys == {"replace": ("F",), "up": ("Up", "e")}


WRONG = {
    "interval = 0": "must be at least 0.1 seconds, not 0",
    'interval = "2"': "must be at least 0.1 seconds, not '2'",
    "interval = nan": "must be at least 0.1 seconds, not nan",
    "interval = true": "must be at least 0.1 seconds, not True",
    "interval = 2026-01-01": "must be at least 0.1 seconds",
    'theme = ""': 'must be text such as "name"',
    'theme = "./mine"': "must be the name of a theme or a path that begins with /",
    'theme-16 = ["dark"]': 'must be text such as "name"',
    'units = "si"': "must be one of binary, decimal, exact, not 'si'",
    "panes = []": 'must be a list such as ["a", "b"]',
    'panes = ["scan", "pool"]': "must be one of scan, devices, balance, events, not 'pool'",
    'columns = "errors"': 'must be a list such as ["a", "b"]',
    "sort = 3": "must be one of tree, latency, busy, read, write, errors, not 3",
    'chassis = "0x5001: 12x5"': 'must be a list such as ["a", "b"]',
    'chassis = ["0x5001: 12"]': 'must be layouts such as "SAS3x40: 4x6 by-column from-bottom"',
    "ascii = 1": "must be true or false, not 1",
    'no-mouse = "yes"': "must be true or false, not 'yes'",
    "read-only = {}": "must be true or false, not {}",
    'hosts = "nas1"': 'must be a list such as ["a", "b"]',
    "scrub-overdue-after = 0": "must be a number above 0, not 0",
    'scrub-overdue-after = "5 weeks"': 'must be a duration such as "35d", or seconds above 0',
    f'scrub-overdue-after = "{"9" * 400}d"': 'must be a duration such as "35d"',
    'scrub-overdue-after = "0d"': 'must be a duration such as "35d"',
    "stalled-after = -1": "must be a number above 0, not -1",
    f"slip = {'9' * 400}": "must be a share above 0: 0.25 or 25%",
    "slip = 11": "must be a share above 0: 0.25 or 25%, not 11",
    'free-floor = "100%"': "must be a share of a pool: 0.05 or 5%, not '100%'",
    "hook = 1": 'must be text such as "name", not 1',
    "bell = 0": "must be true or false, not 0",
    'notify = "x"': "must be true or false, not 'x'",
    'keys = "F"': "must be a table: [keys]",
    "keys.replace = 1": 'must be a key such as "F", or a list of keys, not 1',
    "keys.replace = []": 'must be a key such as "F", or a list of keys, not []',
    "stalled_after = 9": "unknown setting (did you mean stalled-after?)",
    "what = 9": "unknown setting; there are interval, theme,",
    "[pool.tank]": "unknown setting",
    'units = "decimal': "not TOML: ",
    "= 3": "not TOML: ",
    "bell = true\nbell = true": "not TOML: ",
}


def test_every_setting_can_be_wrong_in_a_line_each(path):
    assert {entry.partition(" ")[0] for entry in WRONG} >= ENTRIES.keys()
    path.write_text('units = "si"\nnope = 1\nsort = "busy"\n[keys]\nup = 1\n')
    config = read_config()
    assert sorted(entry.key for entry in config.wrong) == ["keys.up", "nope", "units"]
    assert config.value("sort") == "busy"


@pytest.mark.slow
@rows("entry", WRONG)
def test_a_wrong_entry_is_one_line_and_the_others_count(entry, path):
    other = "slip" if entry.startswith("interval") else "interval"
    path.write_text(f"{other} = 5\n{entry}\n")
    config = read_config()
    assert WRONG[entry] in only_problem(config)
    if not WRONG[entry].startswith("not TOML"):
        assert config.value(other) == 5


@rows(
    "text, why",
    [
        (b'units = "exact"\nbell\nsort = "busy"\ncolumns = [\n', "not TOML: .*line 2"),
        (b"bell = true\n# \xff\n", "line 2 is not UTF-8$"),
    ],
)
def test_nothing_counts_of_a_file_that_is_not_toml_and_it_is_not_written(text, why, path):
    path.write_bytes(text)
    config = read_config()
    assert re.match(why, only_problem(config))
    assert config.values == {}
    with pytest.raises(NotUnderstoodError, match=r"config\.toml"):
        save(path, {"units": "exact"})
    assert path.read_bytes() == text


@rows("name", sorted(COMMAND_LINE_ONLY))
def test_consent_is_for_the_command_line_only(name, path):
    path.write_text(f"{name} = true\n")
    assert only_problem(read_config()) == "only the command line may say this"


def test_a_long_value_is_cut_in_its_line(path):
    path.write_text(f'units = "{"x" * 9999}"\n')
    assert len(read_config().lines()[0]) < 400


@as_root
def test_a_hook_counts_only_in_a_file_of_its_user(path, monkeypatch):
    path.write_text('hook = "true"\nbell = true\n')
    assert read_config().value("hook") == "true"
    monkeypatch.setattr(file.os, "geteuid", lambda: 1000)
    config = read_config()
    assert only_problem(config) == "a hook counts only in a file of the user who runs it"
    assert (config.value("hook"), config.value("bell")) == (None, True)


@rows("mode", [0o666, 0o620, 0o602])
def test_a_file_that_others_can_change_or_put_there_does_not_count(mode, path, monkeypatch):
    # Treat no group as private here: the detection has tests of its own.
    monkeypatch.setattr(safe_path, "_is_private_group", lambda _gid: False)
    path.write_text("bell = true\n")
    path.chmod(mode)
    config = read_config()
    assert only_problem(config)
    assert config.value("bell") is False
    path.chmod(0o600)
    path.parent.chmod(0o777)
    assert only_problem(read_config())
    path.parent.chmod(0o700)


UNUSABLE = {
    "fifo": os.mkfifo,
    "directory": os.mkdir,
    "loop": lambda path: path.symlink_to(path),
    "device": lambda path: path.symlink_to("/dev/zero"),
    "huge": lambda path: path.write_bytes(b"# \n" * LARGEST),
    "sparse": lambda path: path.touch() or os.truncate(path, 1 << 40),
    "zeros": lambda path: path.write_bytes(bytes(100)),
    "deep": lambda path: path.write_text(f"hosts = {'[' * 5000}\n"),
    "digits": lambda path: path.write_text(f"interval = {'9' * 5000}\n"),
}


@pytest.mark.parametrize("make", UNUSABLE.values(), ids=UNUSABLE)
def test_what_is_no_usable_file_is_one_line(make, path):
    make(path)
    config = read_config()
    assert only_problem(config)
    assert config.values == {}


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


@pytest.mark.parametrize(("machines", "modes"), [(False, (0o600, 0o700)), (True, (0o644, 0o755))])
def test_a_new_file_is_its_users_only_and_the_machines_is_for_all_to_read(
    tmp_path, monkeypatch, machines, modes
):
    path = tmp_path / "new" / "config.toml"
    if machines:
        monkeypatch.setattr(file, "SYSTEM", path)
    save(path, {"sort": "busy"})
    assert path.read_text() == 'sort = "busy"\n'
    assert tuple(stat.S_IMODE(each.stat().st_mode) for each in (path, path.parent)) == modes


def test_a_link_to_a_file_of_ones_own_counts_and_stays_a_link_and_the_mode_stays(path, tmp_path):
    """Many people keep such files in a repository."""
    kept = tmp_path / "kept"
    kept.write_text("bell = true\n")
    kept.chmod(0o640)
    path.symlink_to(kept)
    config = read_config()
    assert (config.lines(), config.value("bell")) == ((), True)
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
