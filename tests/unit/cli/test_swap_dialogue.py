from __future__ import annotations

import os
import sys

import pytest

from zconsole.cli.swap_dialogue import TerminalLines


class Pipe:
    """A standard input that the test types into."""

    def __init__(self) -> None:
        self.end, self._typing = os.pipe()

    def fileno(self) -> int:
        return self.end

    def type(self, data: bytes) -> None:
        os.write(self._typing, data)

    def close(self) -> None:
        os.close(self._typing)


@pytest.fixture
def pipe(monkeypatch) -> Pipe:
    found = Pipe()
    monkeypatch.setattr(sys, "stdin", found)
    return found


async def test_lines_typed_together_are_read_one_by_one(pipe: Pipe):
    lines = TerminalLines()
    pipe.type(b"yes\n  back \nle")
    assert [await lines.line(1.0), await lines.line(1.0)] == ["yes", "back"]
    assert await lines.line(0.01) is None
    pipe.type(b"ave\n")
    assert await lines.line(1.0) == "leave"


async def test_what_was_typed_before_is_forgotten(pipe: Pipe):
    lines = TerminalLines()
    pipe.type(b"yes\nyes\nba")
    assert await lines.line(1.0) == "yes"
    lines.forget()
    assert await lines.line(0.01) is None
    pipe.type(b"back\n")
    assert await lines.line(1.0) == "back"


async def test_the_end_of_input_is_an_error(pipe: Pipe):
    pipe.close()
    with pytest.raises(EOFError):
        await TerminalLines().line(1.0)


def test_what_is_said_has_no_control_characters(capsys):
    TerminalLines().say("a\x1b[2J")
    out, err = capsys.readouterr()
    assert (out, "\x1b" in err) == ("", False)
