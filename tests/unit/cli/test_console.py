from __future__ import annotations

from tests.table import rows
from zconsole.cli import console
from zconsole.cli.main import main


@rows(
    ("words", "named"),
    [([], None), (["--host", "root@a"], "root@a"), (["--host", "a,b"], ""), (["--host=a,a"], "a")],
)
def test_one_machine_is_named_and_of_several_each_pool_has_its_own(monkeypatch, words, named):
    shown = {}
    monkeypatch.setattr(console, "has_terminal", lambda: True)
    monkeypatch.setattr(console, "open_console", lambda *_, **how: shown.update(how) or 0)
    assert main(words) == 0
    assert shown["host"] == named


def test_a_bad_host_is_one_line(monkeypatch, capsys):
    monkeypatch.setattr(console, "has_terminal", lambda: True)
    assert main(["--host", "a b"]) == 2
    assert capsys.readouterr().err.count("\n") == 1
