from __future__ import annotations

import os
import sys

from tests.table import rows
from zconsole.cli.terminal import has_terminal

STREAMS = ("stdin", "stdout", "stderr")


@rows("lacking", [None, *STREAMS])
@rows("term", ["xterm", "dumb"])
def test_a_console_needs_all_of_a_terminal(monkeypatch, tmp_path, term, lacking):
    monkeypatch.setenv("TERM", term)
    ours, theirs = os.openpty()
    with (
        os.fdopen(ours),
        os.fdopen(theirs, "r+b", buffering=0) as tty,
        (tmp_path / "log").open("w") as file,
        monkeypatch.context() as changed,
    ):
        for name in STREAMS:
            changed.setattr(sys, name, file if name == lacking else tty)
        found = has_terminal()
    assert found == (term == "xterm" and lacking is None)
