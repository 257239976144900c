"""Options override the file, the file overrides defaults."""

from __future__ import annotations

import pytest

from zconsole.cli.config import (
    FAULT,
    applied,
    checked,
    denied,
    fault_of,
    refuse_denied,
    scrub_overdue_after,
)
from zconsole.cli.options import CONFIGURED, parser_of
from zconsole.config import file
from zconsole.errors import UsageError

DAY = 86400.0


@pytest.fixture
def path(tmp_path, monkeypatch):
    found = tmp_path / "config.toml"
    monkeypatch.setattr(file, "config_path", lambda: found)
    return found


def parsed(name, *words):
    parser = parser_of(name)
    return applied(name, parser, words, parser.parse_args(words))


def test_the_command_line_goes_before_the_file_and_that_before_the_default(path):
    assert parsed("watch").interval == 1
    path.write_text("interval = 5\nbell = true\n")
    assert parsed("watch").interval == 5
    assert parsed("watch", "--interval", "7").interval == 7
    assert parsed("watch", "--interval", "7").bell is True


def test_hosts_of_the_file_are_those_of_the_command_line(path):
    path.write_text('hosts = ["root@nas1", "nas2"]\n')
    assert parsed("watch").host == parsed("watch", "--host", "root@nas1,nas2").host
    assert parsed("watch", "--host", "nas9").host == "nas9"


@pytest.mark.parametrize("name", sorted(CONFIGURED - {"rebalance", "tunables", "replay", "record"}))
def test_no_command_gets_an_attribute_it_has_no_option_for(name, path):
    bare = vars(parsed(name)).keys()
    path.write_text('interval = 5\nhosts = ["nas"]\nbell = true\nread-only = true\nslip = 0.5\n')
    assert vars(parsed(name)).keys() == bare


def test_a_demo_takes_only_looks(path):
    path.write_text('read-only = true\nhosts = ["nas"]\nascii = true\nsort = "busy"\n')
    args = parsed("demo")
    assert (args.ascii, args.config.value("sort")) == (True, "busy")
    assert denied(args) == ""


def test_saved_output_needs_no_configuration(path, tmp_path):
    path.write_text("nonsense\n")
    assert parsed("status", "--from", str(tmp_path / "status.txt")).config is None


@pytest.mark.parametrize("name", ["console", "watch", "export", "status"])
def test_every_command_that_samples_has_the_same_idea_of_overdue(name, path, tmp_path):
    saved = ("status", "--from", str(tmp_path / "status.txt"))
    assert scrub_overdue_after(parsed(name)) == 35 * DAY
    path.write_text('scrub-overdue-after = "50d"\n')
    assert scrub_overdue_after(parsed(name)) == 50 * DAY
    assert scrub_overdue_after(parsed(*saved)) == 35 * DAY


def test_a_wrong_entry_is_told_and_nothing_may_be_changed(path, capsys):
    path.write_text('interval = 5\nsort = "speed"\n')
    args = parsed("tunables", "list")
    assert capsys.readouterr().err.startswith(f"zconsole: {path}: sort: must be one of")
    assert fault_of(args) == FAULT
    with pytest.raises(UsageError, match="configuration has an error"):
        refuse_denied(args, "setting a tunable", undoes=False)


def test_a_wrong_entry_keeps_nobody_from_stopping_what_runs(path):
    path.write_text('sort = "speed"\n')
    refuse_denied(parsed("tunables", "restore"), "restoring", undoes=True)
    with pytest.raises(UsageError):
        refuse_denied(parsed("tunables", "restore", "--read-only"), "restoring", undoes=True)


def test_read_only_says_which_of_the_two_it_was(path):
    path.write_text("read-only = true\n")
    assert denied(parsed("tunables", "list")) == f"not allowed with read-only = true in {path}"
    path.unlink()
    assert denied(parsed("tunables", "list", "--read-only")) == "not allowed with --read-only"
    assert denied(parsed("tunables", "list")) == ""
    refuse_denied(parsed("tunables", "list"), "setting a tunable", undoes=False)


def test_a_clash_of_keys_is_told_with_both_names(path):
    path.write_text('[keys]\nreplace = "T"\npause = "P"\n')
    config = checked(file.read_config())
    assert [(w.key, w.problem) for w in config.wrong] == [
        ("keys.replace", "T is also the key of tunables")
    ]
    assert config.keys == {"pause": ("P",)}
