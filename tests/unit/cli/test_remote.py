from __future__ import annotations

import sys

import pytest

from zconsole.cli.main import main


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--hook", ""], 2, "--hook needs a command"),
        (["--hook", "'x"], 2, "--hook"),
        (["--hook", "/nonexistent/hook me"], 3, "command '/nonexistent/hook' not found"),
        (["--stalled-after", "0"], 2, "must be a number above 0"),
        (["--stalled-after", "soon"], 2, "must be a number above 0"),
        (["--slip", "0"], 2, "must be a share above 0"),
        (["--slip", "much"], 2, "must be a share above 0"),
        (["--free-floor", "2"], 2, "must be a share of a pool"),
        (["--free-floor", "nan"], 2, "must be a share of a pool"),
        (["--free-floor", "100%"], 2, "must be a share of a pool"),
    ],
)
def test_bad_input_is_one_line_before_anything_is_watched(capsys, words, code, said):
    assert main(["watch", *words]) == code
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert said in err


@pytest.mark.parametrize(
    "words", [["--slip", "25%"], ["--free-floor", "0"], ["--hook", sys.executable]]
)
def test_good_input_goes_on_to_the_pools(capsys, monkeypatch, words):
    monkeypatch.setattr("zconsole.cli.event_loop.run", lambda main: main.close() or 0)
    assert main(["watch", *words]) == 0
    assert capsys.readouterr().err == ""
