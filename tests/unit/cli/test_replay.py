from __future__ import annotations

from zconsole.cli import replay
from zconsole.cli.options import parser_of


def test_a_recording_is_not_shown_as_this_machines(monkeypatch):
    shown = {}
    monkeypatch.setattr(replay, "has_terminal", lambda: True)
    monkeypatch.setattr(replay, "open_console", lambda *args, **how: shown.update(how) or 0)
    assert replay.run(parser_of("replay").parse_args(["r.jsonl"])) == 0
    assert shown["host"] == ""
