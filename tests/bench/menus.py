"""Cost of a menu compared with an OptionList: bytes to the terminal and function calls.

    python -m tests.bench.menus [COLUMNSxLINES]

The demo runs with a single sample in a counting terminal, so that nothing but the menu changes: the
menu of ``A`` is opened, its cursor moved, and the menu closed; then the same is done with its lines
as options of an OptionList, without the title and the description of the selected line. The figures
are those of the third time, when styles and lines are cached.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from functools import partial
from statistics import median
from typing import Any
from unittest.mock import patch

from textual.app import ComposeResult
from textual.drivers.headless_driver import HeadlessDriver
from textual.screen import Screen
from textual.widgets import OptionList

from tests.ui.actions.acting import Acting, acting
from zconsole.ui.dialogs.screens import PickView

TIMES = 3
MOVES = ("down",) * 6 + ("up",) * 6


class CountedTerminal(HeadlessDriver):
    """A terminal driver that counts the bytes sent."""

    sent = 0

    @property
    def is_headless(self) -> bool:
        return False

    def write(self, data: str) -> None:
        self.sent += len(data.encode())


class OptionScreen(Screen[None]):
    """A screen with the lines of a menu as options."""

    CSS = "OptionList { height: 1fr; border: none; padding: 0; }"

    def __init__(self, lines: list[str]) -> None:
        super().__init__()
        self._lines = lines

    def compose(self) -> ComposeResult:
        """Compose the option list."""
        yield OptionList(*self._lines, markup=False)


async def cost(console: Acting, done: Callable[[], Awaitable[object]]) -> tuple[int, int]:
    """Return the bytes sent and functions called until the result of ``done`` is painted."""
    terminal: Any = console.app._driver
    before, calls = terminal.sent, 0

    def _count(_: object, event: str, __: object) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(_count)
    await done()
    sys.setprofile(None)
    return terminal.sent - before, calls


async def costs(console: Acting, opened: Callable[[], Awaitable[object]]) -> list[str]:
    """Return the costs of opening the list and of moving the cursor, one line each."""
    _, idle = await cost(console, console.rest)
    for _ in range(TIMES):
        first = await cost(console, opened)
        moves = [await cost(console, partial(console.press, key)) for key in MOVES]
        await console.home()
    key = [int(median(each)) for each in zip(*moves, strict=True)]
    found = {"open": first, "a key": key}
    return [f"  {w:6}{n:8,} bytes{calls - idle:8,} calls" for w, (n, calls) in found.items()]


async def main(size: str) -> list[str]:
    """Return the figures of both."""
    columns, lines = map(int, size.split("x"))
    with patch("textual.drivers.headless_driver.HeadlessDriver", CountedTerminal):
        async with acting("resilver", (columns, lines)) as console:
            await console.to("bay05")
            ours = await costs(console, partial(console.press, "A"))
            await console.press("A")
            view = console.app.screen.query_one(PickView)
            texts = ["".join(s.text for s in view.line_at(n)) for n in range(view.line_count())]
            await console.press("escape")

            async def _open() -> None:
                await console.app.push_screen(OptionScreen(texts))
                await console.rest()

            return [f"{size}, a menu", *ours, "its lines as options", *await costs(console, _open)]


if __name__ == "__main__":
    os.environ["TEXTUAL_COLOR_SYSTEM"] = "truecolor"
    print(*asyncio.run(main(*sys.argv[1:] or ("80x24",))), sep="\n")
