from __future__ import annotations

import json

import pytest

from zconsole.cli import demo
from zconsole.cli.main import main
from zconsole.cli.options import DEMO, parser_of
from zconsole.errors import UsageError
from zconsole.sim import scenarios


def test_a_demo_leaves_the_configuration_as_it_is(monkeypatch):
    shown = {}
    monkeypatch.setattr(demo, "has_terminal", lambda: True)
    monkeypatch.setattr(demo, "open_console", lambda *args, **how: shown.update(how) or 0)
    assert demo.run(parser_of("demo").parse_args([])) == 0
    assert shown["saves"] is False


def test_a_scenario_is_a_word_or_an_option(monkeypatch):
    ran = []
    monkeypatch.setattr(demo, "has_terminal", lambda: True)
    monkeypatch.setattr(demo, "open_console", lambda args, *_, **__: ran.append(args.scenario) or 0)
    for words in (["swap"], ["--scenario", "swap"], []):
        assert demo.run(parser_of("demo").parse_args(words)) == 0
    assert ran == ["swap", "swap", DEMO] == ["swap", "swap", scenarios.DEFAULT]
    with pytest.raises(UsageError, match="name one"):
        demo.run(parser_of("demo").parse_args(["swap", "--scenario", "healthy"]))
    with pytest.raises(UsageError, match="no scenario"):
        demo.run(parser_of("demo").parse_args(["swop"]))


def test_the_list_says_how_to_run_one_where_somebody_reads_it(capsys, monkeypatch):
    assert demo.run(parser_of("demo").parse_args(["--list"])) == 0
    said = capsys.readouterr()
    assert [line.split()[0] for line in said.out.splitlines()] == list(scenarios.names())
    assert said.err == ""
    monkeypatch.setattr(demo.sys.stdout, "isatty", lambda: True)
    assert demo.run(parser_of("demo").parse_args(["--list"])) == 0
    assert "zconsole demo NAME" in capsys.readouterr().err


def test_a_recorded_demo_replays_as_it_was_printed(tmp_path, capsys):
    path = str(tmp_path / "demo.jsonl")
    simulated = ["demo", "six-disk-swap", "--seed", "2", "--interval", "60", "--count", "5"]
    assert main([*simulated, "--record", path]) == 0
    assert capsys.readouterr() == ("", f"zconsole: 5 samples in {path}\n")
    assert main(["replay", path, "--json"]) == 0
    replayed = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert main([*simulated, "--json"]) == 0
    printed = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert len(printed) == 5
    assert replayed == [{**each, "source": "replay"} for each in printed]
    assert main(["report", "--from", path]) == 0


def test_a_demo_that_is_recorded_ends_by_itself(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(demo, "RECORDED", 3)
    assert main(["demo", "--record", str(tmp_path / "demo.jsonl")]) == 0
    assert capsys.readouterr().err.startswith("zconsole: 3 samples in ")
