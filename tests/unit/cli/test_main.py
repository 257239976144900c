from __future__ import annotations

import errno
import io
import json
import tempfile
import time
from contextlib import redirect_stderr
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.factory import frame, mirror_pool
from tests.table import rows
from tests.unit.cli.commandline import STATUS, saved_in
from zconsole import __version__
from zconsole.cli import main as cli
from zconsole.cli.main import command_of, main
from zconsole.cli.options import COMMANDS, parser_of
from zconsole.output.json import line, sample_object

CAPTURES = Path(__file__).parents[2] / "fixtures" / "captures"


@rows(
    ("words", "name"),
    [
        ([], "console"),
        (["tank"], "console"),
        (["status"], "status"),
        (["--ascii", "status"], "status"),
        (["--theme", "status", "tank"], "console"),
        (["--theme", "light", "watch"], "watch"),
        (["--slip", "0.5", "watch"], "watch"),
        (["console", "status"], "console"),
        (["--", "status"], "console"),
    ],
)
def test_the_first_word_chooses_the_command(words, name):
    assert command_of(words)[0] == name


def test_every_option_of_the_console_with_a_value_may_stand_before_a_command():
    actions = parser_of("console")._actions
    valued = [name for each in actions if each.nargs is None for name in each.option_strings]
    assert len(valued) >= 7
    assert {command_of([name, "tank", "watch"])[0] for name in valued} == {"watch"}


def test_options_of_every_command_may_stand_behind_its_own_commands():
    for words in (["--read-only", "status"], ["status", "--read-only"]):
        assert parser_of("rebalance").parse_args(words).read_only is True
    plain = parser_of("rebalance").parse_args(["plan", "--theme", "light"])
    assert (plain.theme, plain.ascii, plain.read_only, plain.no_mouse) == (
        *("light", None, False, False),
    )
    for inner in ("plan", "run", "status", "pause", "resume", "stop"):
        with pytest.raises(SystemExit) as left:
            main(["rebalance", inner, "--version"])
        assert left.value.code == 0


def test_no_rebalance_changes_anything_where_only_looking_is_allowed(tmp_path, capsys):
    kept = tmp_path / "kept"
    kept.write_text("content")
    before = kept.stat()
    words = ["run", str(tmp_path), "--yes", "--allow-non-zfs", "--read-only"]
    for asked in (words, ["pause", "1", "--read-only"], ["resume", "--all", "--read-only"]):
        assert main(["rebalance", *asked]) == 2
        assert "not allowed with --read-only" in capsys.readouterr().err
    assert kept.stat() == before
    assert main(["rebalance", "status", "--read-only"]) == 0


@rows(("columns", "width"), [("50", 48), ("120", 118), ("wide", 78)])
def test_help_is_as_wide_as_the_terminal(columns, width, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", columns)
    with pytest.raises(SystemExit):
        parser_of("watch").parse_args(["--help"])
    longest = max(map(len, capsys.readouterr().out.splitlines()))
    assert width - 12 < longest <= width


def test_version(capsys):
    with pytest.raises(SystemExit) as left:
        main(["--version"])
    assert (left.value.code, capsys.readouterr().out) == (0, f"zconsole {__version__}\n")


@pytest.fixture
def saved(tmp_path):
    return saved_in(tmp_path)


@rows(
    ("words", "code", "said"),
    [
        (["status", "--from", "/nonexistent/file"], 3, "/nonexistent/file"),
        (["status", "--from", "{empty}"], 5, ""),
        (["status", "--from", "{saved}", "other"], 3, "other"),
        (["status", "--from", "/"], 3, "zconsole: / is a directory, not a file\n"),
        (["balance", "--from", "/"], 3, "zconsole: / is a directory, not a file\n"),
        (["replay", "/", "--json"], 3, "zconsole: / is a directory, not a file\n"),
        (["report", "--from", "/"], 3, "zconsole: / is a directory, not a file\n"),
        (["report", "--compare", "/", "/"], 3, "zconsole: / is a directory, not a file\n"),
        (["record", "/"], 3, "zconsole: / is a directory, not a file\n"),
        (["replay", "/nonexistent/file", "--json"], 3, "/nonexistent/file"),
        (["replay", "{saved}", "--json"], 5, "zconsole status --from FILE reads saved"),
        (["replay", "{printed}", "--json"], 5, "printed by zconsole --json"),
        (["report", "--from", "{printed}"], 5, "zconsole demo --record FILE make recordings"),
        (["status", "--from", "{printed}"], 5, "printed by zconsole --json"),
        (["report", "--compare", "{saved}", "{saved}"], 5, "not a scan report (not JSON)"),
        (["demo", "--scenario", "no-such", "--json"], 2, "no-such"),
        (["balance", "--from", "{saved}"], 5, ""),
        (["watch", "--hook", "/nowhere/hook me"], 3, "command '/nowhere/hook' not found"),
        (["rebalance", "plan", "/nowhere"], 3, "/nowhere"),
        (["rebalance", "status", "nojob"], 3, "no job nojob"),
        (["rebalance", "pause", "nojob"], 3, "no job nojob"),
    ],
)
def test_bad_input_gets_one_line_and_its_exit_code(words, code, said, saved, tmp_path, capsys):
    empty = tmp_path / "empty"
    empty.write_text("nothing that zpool ever printed\n")
    printed = tmp_path / "printed"
    printed.write_text(f"{line(sample_object(frame(mirror_pool())))}\n" * 2)
    words = [w.format(saved=saved, empty=empty, printed=printed) for w in words]
    assert main(words) == code
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith("zconsole: ")
    assert said in err


@rows(
    ("words", "said"),
    [
        (
            ["watch", "--count", "0"],
            "not '0'; see zconsole watch --help",
        ),
        (["watch", "--count", "x"], "must be a whole number above 0, not 'x'"),
        (["demo", "--speed", "nan"], "must be a number above 0, not 'nan'"),
        (["watch", "--interval", "0.01"], "must be at least 0.1 seconds, not '0.01'"),
        (["watch", "--hook", ""], "--hook needs a command"),
        (["watch", "--hook", "'x"], "--hook"),
        (["watch", "--stalled-after", "0"], "must be a number above 0"),
        (["watch", "--slip", "0"], "must be a share above 0"),
        (["watch", "--free-floor", "2"], "must be a share of a pool"),
        (["export"], "--listen [ADDR:]PORT or --textfile PATH"),
        (["export", "--listen", "1", "--textfile", "x"], "either --listen"),
        (["export", "--listen", "no"], "--listen 'no' is not [ADDR:]PORT"),
        (["export", "--listen", "9" * 5000], "is not [ADDR:]PORT"),
        (["scrub", "window"], "window needs a POOL"),
        (["scrub", "off"], "off needs a POOL"),
        (["scrub", "off", "tank", "22:00-06:00"], "off takes no hours"),
        (["scrub", "list", "tank"], "list takes no POOL"),
        (["scrub", "resume", "tank"], "resume takes no POOL"),
        (["scrub", "window", "tank"], "such as 22:00-06:00"),
        (["scrub", "window", "tank", "night"], "not hours"),
        (["scrub", "window", "tank", "22:00-06:00", "--read-only"], "--read-only"),
        (["status", "--frobnicate"], "unrecognized arguments: --frobnicate"),
        (["record"], "arguments are required: FILE; see"),
        (["rebalance"], "see zconsole rebalance --help"),
        (["rebalance", "run", "--min-free", "7", "x"], "--min-free"),
        (["rebalance", "run", "/", "--window", "late"], "--window"),
        (["rebalance", "run", "--yes"], "name at least one directory"),
        (["rebalance", "run", "", "--yes", "--allow-non-zfs"], "directory argument is empty"),
        (["rebalance", "plan", "", "--allow-non-zfs"], "directory argument is empty"),
        (["demo", "--scenario", ""], "no scenario ''"),
        (["demo", "--record", "x", "--json"], "not both"),
        (["demo", "--count", "2"], "--count needs --json or --record"),
        (["rebalance", "resume"], "resume needs either a JOB or --all"),
        (["rebalance", "resume", "--all", "x"], "resume needs either a JOB or --all"),
        (["report", "--list", "--scan", "2"], "not allowed with argument"),
        (["report", "--list", "--compare", "1", "2"], "not allowed with argument"),
        (["report", "--list", "--svg"], "--svg draws one scan"),
        (["report", "--compare", "1", "2", "--svg"], "--svg draws one scan"),
    ],
)
def test_a_wrong_command_line_gets_one_line_and_exit_2(words, said, capsys):
    assert main(words) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith("zconsole: ")
    assert said in err


@rows(
    ("text", "said", "code"),
    [
        ("all pools are healthy\n", "all pools are healthy", 0),
        ("pool 'a\x1b[31mb' is healthy\n", r"pool 'a\x1b[31mb' is healthy", 0),
        ("no pools available\n", "no pools available", 3),
        (
            '{"output_version": {}, "pools": {}}',
            "no pools are imported",
            3,
        ),
    ],
)
def test_what_zpool_said_in_place_of_a_pool_is_repeated(text, said, code):
    """Where no pool is imported, a check must not pass, whether live or by saved output."""
    with tempfile.TemporaryDirectory() as directory, redirect_stderr(io.StringIO()) as err:
        path = saved_in(Path(directory), text)
        assert main(["status", "--from", path]) == 0
        assert main(["status", "--from", path, "--exit-status"]) == code
    assert err.getvalue() == f"zconsole: {said}\n" * 2


@rows(
    ("text", "pools", "code", "said"),
    [
        ("pool 'tank' is healthy\n", "tank", 0, "pool 'tank' is healthy"),
        ("Fri Nov 20 10:46:40 2026\npool 'tank' is healthy\n", "tank", 0, "'tank' is healthy"),
        ("pool 'a b' is healthy\n", "tank", 3, "no pool 'tank' in that output"),
        ("all pools are healthy\n", "tank", 3, "in that output: all pools are healthy"),
        ("no pools available\n", "tank", 3, "in that output: no pools available"),
        ("pool 'a' is healthy\npool 'b' is healthy\n", "a b", 0, "pool 'b' is healthy"),
        (STATUS + "pool 'a' is healthy\n", "a", 0, "pool 'a' is healthy"),
    ],
)
def test_a_pool_that_is_said_to_be_healthy_is_there(text, pools, code, said, tmp_path, capsys):
    path = saved_in(tmp_path, text)
    words = ["status", *pools.split(), "--from", path, "--exit-status"]
    assert main(words) == code
    out, err = capsys.readouterr()
    assert (out, said in err) == ("", True)


def test_what_is_told_of_the_healthy_stands_beside_the_others(tmp_path, capsys):
    path = saved_in(tmp_path, "pool 'a' is healthy\n" + STATUS)
    assert main(["status", "--from", path, "--json"]) == 0
    out, err = capsys.readouterr()
    assert (json.loads(out)["pool"], err) == ("tank", "zconsole: pool 'a' is healthy\n")
    assert main(["status", "tank", "--from", path, "--json"]) == 0
    assert capsys.readouterr().err == ""


def test_every_sample_of_saved_text_is_told_in_the_order_of_the_file(tmp_path, capsys):
    path = tmp_path / "s"
    other = STATUS.replace("tank", "other")
    path.write_text(STATUS + other + STATUS.replace("DEGRADED", "FAULTED", 1))
    assert main(["status", "--from", str(path), "--json", "--exit-status"]) == 11
    found = [json.loads(each) for each in capsys.readouterr().out.splitlines()]
    told = [("tank", "DEGRADED"), ("other", "DEGRADED"), ("tank", "FAULTED")]
    assert [(each["pool"], each["state"]) for each in found] == told


def test_the_health_of_scan_lines_alone_is_unknown(tmp_path, capsys):
    path = saved_in(tmp_path, "scan: scrub canceled on Fri Nov 20 09:24:46 2026\n")
    assert main(["status", "--from", path, "--exit-status"]) == 5
    assert "UNKNOWN" in capsys.readouterr().out


def test_escapes_in_names_do_not_reach_the_terminal(tmp_path, capsys):
    path = saved_in(tmp_path, STATUS.replace("sdb", "s\x1b[2Jb"))
    assert main(["status", "--from", path]) == 0
    assert "\x1b" not in capsys.readouterr().out


@rows(("zone", "hours"), [("UTC", 0), ("Asia/Tokyo", 9), (":Asia/Tokyo", 9), ("XXX5", -5), ("", 0)])
def test_dates_of_saved_output_are_in_the_users_zone(saved, zone, hours, capsys):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TZ", zone)
        time.tzset()
        assert main(["status", "--from", saved, "--json"]) == 0
    time.tzset()
    end = json.loads(capsys.readouterr().out)["scan"]["end"]
    assert end == datetime(2026, 11, 20, 9, 24, 46, tzinfo=UTC).timestamp() - hours * 3600


def record(path, lines):
    path.write_text("".join(json.dumps(each) + "\n" for each in lines))


def test_a_recording_that_was_cut_short_says_so(tmp_path, capsys):
    path = tmp_path / "r"
    path.write_text(json.dumps({"t": 1, "text": STATUS}) + '\n{"t": 2, "te')
    assert main(["replay", str(path), "--json"]) == 0
    out, err = capsys.readouterr()
    assert (out.count("\n"), err.count("\n")) == (1, 1)
    assert "cut short" in err


DAMAGED = [
    {"text": "what is this"},
    {"text": "    pool: b"},
    {"libzfs": {"name": "b", "vdev_tree": 5}},
    {"status": {"pools": {"b": {}}}},
]
"""Complete lines with malformed contents."""


@rows("damaged", DAMAGED)
def test_a_damaged_sample_is_a_gap_that_is_told_once(damaged, tmp_path, capsys):
    path = tmp_path / "r"
    good = [{"t": t, "text": STATUS} for t in (1, 2, 4)]
    lines = [*good[:2], {"t": 3, **damaged}, good[2]]
    record(path, lines)
    for words in (["--json"], []):
        assert main(["replay", str(path), *words]) == 0
        out, err = capsys.readouterr()
        assert (out.count("\n"), err.count("\n")) == (3, 1)
        assert err.startswith(f"zconsole: {path}: line 3: ")
        assert err.endswith(" (1 gap in the recording)\n")
    assert main(["status", "--from", str(path)]) == 0
    assert capsys.readouterr().err.startswith(f"zconsole: {path}: line 3: ")
    record(path, [lines[2]])
    for words in (["replay", str(path), "--json"], ["status", "--from", str(path)]):
        assert main(words) == 5
        assert capsys.readouterr().err.startswith(f"zconsole: {path}: line 1: ")


def test_a_pool_that_was_exported_for_a_while_is_a_gap_of_as_many_samples(tmp_path, capsys):
    path = tmp_path / "r"
    away = [{"t": 2, "text": "no pools available\n"}, {"t": 3, "status": {"pools": {}}}]
    lines = [{"t": 1, "text": STATUS}, *away, {"t": 4, "text": ""}, {"t": 5, "text": STATUS}]
    record(path, lines)
    assert main(["replay", str(path), "--json"]) == 0
    out, err = capsys.readouterr()
    assert [json.loads(each)["t"] for each in out.splitlines()] == [1, 5]
    gaps = "no pool in it (the first of 3 gaps in the recording)"
    assert err == f"zconsole: {path}: line 2: {gaps}\n"


@rows("bad", ["junk", '{"t": 1}', "[" * 200_000, '{"t": 1' + "0" * 400 + "}"])
def test_a_recording_that_begins_with_a_bad_line_is_one_all_the_same(bad, tmp_path, capsys):
    path = tmp_path / "r"
    path.write_text(f"{bad}\n" + json.dumps({"t": 5, "text": STATUS}) + "\n")
    for words in (["replay", "--json"], ["status", "--json", "--from"]):
        assert main([*words, str(path)]) == 0
        out, err = capsys.readouterr()
        assert json.loads(out)["t"] == 5
        assert err.startswith(f"zconsole: {path}: line 1: ")
        assert err.count("\n") == 1


def test_every_pool_of_a_recording_is_reported_as_it_was_last(tmp_path, capsys):
    path = tmp_path / "r"
    lines = [{"t": t, "text": STATUS.replace("tank", pool)} for t in (1, 99) for pool in "ab"]
    record(path, lines[:3])
    assert main(["status", "--json", "--from", str(path)]) == 0
    out, err = capsys.readouterr()
    found = [json.loads(each) for each in out.splitlines()]
    assert [(each["pool"], each["t"]) for each in found] == [("b", 1), ("a", 99)]
    assert err == "zconsole: b: last recorded 1m38s before the end\n"


@rows(
    "words",
    [
        ["status", "--from", ""],
        ["status", "--from="],
        ["balance", "--from", ""],
        ["report", "--from", ""],
        ["record", ""],
        ["replay", ""],
        ["export", "--textfile", ""],
    ],
)
def test_an_empty_word_is_no_file(words, capsys):
    """An unset variable may give an empty word; live pools are not what was asked for."""
    assert main(words) == 2
    assert "must be a file name, not ''" in capsys.readouterr().err


def test_what_may_not_be_read_or_written_is_permission_denied(monkeypatch, capsys):
    def refuse(_args):
        raise PermissionError(13, "Permission denied", "/root/scan.jsonl")

    monkeypatch.setattr("zconsole.cli.themes.run", refuse)
    assert main(["themes"]) == 4
    assert capsys.readouterr().err == "zconsole: /root/scan.jsonl: Permission denied\n"


@rows("name", COMMANDS)
def test_every_command_has_help_that_fits_80_columns(name, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit) as left:
        main([name, "--help"])
    out = capsys.readouterr().out
    assert (left.value.code, out.startswith("usage: zconsole")) == (0, True)
    assert max(map(len, out.splitlines())) <= 80


@rows(("name", "said"), [("/a", "/a: Is a directory"), (3, "Is a directory")])
def test_a_descriptor_is_no_name_of_what_failed(name: str | int, said: str) -> None:
    assert cli._reason(OSError(errno.EISDIR, "Is a directory", name)) == said


@rows(
    ("words", "said"),
    [
        ([], "no scan reports yet: zconsole keeps one for each scan it watches"),
        (["tank"], "no scan reports of tank yet: zconsole keeps one for each scan it watches"),
        (["--from", "{recording}"], "{recording} has no scan"),
    ],
)
def test_a_list_without_reports_says_so_beside_its_empty_output(words, said, tmp_path, capsys):
    recording = tmp_path / "recording"
    recording.write_text(json.dumps({"t": 1, "text": "  pool: tank\n state: ONLINE\n"}) + "\n")
    words = [word.format(recording=recording) for word in words]
    assert main(["report", "--list", *words]) == 0
    out, err = capsys.readouterr()
    assert (out, err) == ("", f"zconsole: {said.format(recording=recording)}\n")
    assert main(["report", *words]) == 3
    assert capsys.readouterr().err == err
