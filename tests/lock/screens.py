"""Screens: keys typed into the demo, and the screens that follow."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path

from tests.lock.case import Case
from tests.lock.picture import Row, picture
from tests.lock.scripts import Script, read
from tests.lock.terminal import Terminal, typed

RECORDING = Path(__file__).parents[1] / "fixtures/limits/memory-turns.jsonl"


def cases() -> Iterable[Case]:
    """Return a case for each script."""
    for script in read():
        look = _still if script.name.startswith("still/") else _typing
        yield Case(script.name, partial(_see, script, look), script.cost)


def _see(script: Script, look: Callable[[Terminal, Script], Iterator[str]], _: bool) -> str:
    """Return the command line of a script, and what ``look`` sees on its terminal."""
    early = typed(*script.early.split("&")) if script.early else b""
    terminal = Terminal(script.words, script.size, script.env, [RECORDING], early)
    try:
        terminal.start()
        return "\n".join([f"$ zconsole {script.run}", *look(terminal, script)])
    finally:
        terminal.close()


def _typing(terminal: Terminal, script: Script) -> Iterator[str]:
    """Yield the first screen, then the changed rows after each step."""
    screens: list[list[Row]] = []
    for keys in _steps(script):
        for key in keys:
            _do(terminal, key)
        yield f"> {len(screens)} {' '.join(keys) or '{}x{}'.format(*script.size)}"
        yield from (f"copied {text}" for text in terminal.take_copied())
        yield from (f"wrote {line}" for line in terminal.take_files())
        if terminal.process.returncode is not None:
            yield f"exit {terminal.process.returncode}"
            yield from (line.rstrip() for line in terminal.screen.display if line.strip())
            return
        screens.append(picture(terminal.screen))
        yield from _changed(screens)


def _steps(script: Script) -> Iterator[list[str]]:
    """Yield the keys of each step: first none, then one key, or a group in parentheses."""
    unseen: list[str] | None = None
    yield []
    for key in script.keys.split():
        if key == "(":
            unseen = []
        elif key == ")":
            yield unseen or []
            unseen = None
        elif unseen is None:
            yield [key]
        else:
            unseen.append(key)


def _do(terminal: Terminal, key: str) -> None:
    """Press a key of a script, or do what its word stands for."""
    if match := re.fullmatch(r"(\d+)s", key):
        terminal.pass_time(float(match[1]), main_only=True)
    elif match := re.fullmatch(r"(\d+)x(\d+)", key):
        terminal.resize((int(match[1]), int(match[2])))
    elif match := re.fullmatch(r"click:(\d+),(\d+)", key):
        terminal.send("".join(f"\x1b[<0;{match[1]};{match[2]}{end}" for end in "Mm").encode())
    elif match := re.fullmatch(r"paste:(.+)", key):
        terminal.send(f"\x1b[200~{match[1]}\x1b[201~".encode())
    else:
        terminal.send(typed(*key.split("&")))


def _changed(screens: list[list[Row]]) -> Iterator[str]:
    """Yield the rows of the newest screen that differ from the one before it.

    If an earlier screen is much more similar, because a dialog was closed, that one is named and
    used.
    """
    *earlier, new = screens
    apart = [_distance(screen, new) for screen in earlier]
    base = [Row("", "")] * len(new)
    if apart and min(apart) < len(new):
        nearest = max(at for at, rows in enumerate(apart) if rows == min(apart))
        if 2 * apart[nearest] < apart[-1]:
            yield f"as after {nearest}{', but' if apart[nearest] else ''}"
            base = earlier[nearest]
        elif len(earlier[-1]) == len(new):
            base = earlier[-1]
    for number, (old, row) in enumerate(zip(base, new, strict=True), 1):
        if old.text != row.text:
            yield f"{number:2} {row.text}"
        if old.roles != row.roles:
            yield f"{number:2}~ {row.roles or 'plain'}"


def _distance(old: list[Row], new: list[Row]) -> int:
    """Return the number of rows that differ; all of them if the terminal had another size."""
    if len(old) != len(new):
        return len(new)
    return sum(before != after for before, after in zip(old, new, strict=True))


def _still(terminal: Terminal, script: Script) -> Iterator[str]:
    """Yield the screen with cells that change from second to second replaced by ░."""
    before, looks = script.keys.split()
    _do(terminal, before)
    first = [*terminal.screen.display]
    moved: set[tuple[int, int]] = set()
    for _ in range(int(looks.removesuffix("s"))):
        terminal.pass_time(1.0, main_only=True)
        for y, (old, new) in enumerate(zip(first, terminal.screen.display, strict=True)):
            moved |= {(y, x) for x in range(len(old)) if old[x] != new[x]}
    for y, line in enumerate(first):
        yield "".join("░" if (y, x) in moved else line[x] for x in range(len(line))).rstrip()
