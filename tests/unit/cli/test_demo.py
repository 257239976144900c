from __future__ import annotations

from zconsole.cli import demo
from zconsole.cli.options import parser_of


def test_a_demo_leaves_the_configuration_as_it_is(monkeypatch):
    shown = {}
    monkeypatch.setattr(demo, "has_terminal", lambda: True)
    monkeypatch.setattr(demo, "open_console", lambda *args, **how: shown.update(how) or 0)
    assert demo.run(parser_of("demo").parse_args([])) == 0
    assert shown["saves"] is False
