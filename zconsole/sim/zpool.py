"""``zpool`` command lines carried out on the simulated pools: the actions' runner for the demo."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from zconsole.sim import commands, lifecycle
from zconsole.sim.commands import CommandError
from zconsole.sim.source import World
from zconsole.sim.state import PoolState
from zconsole.system.process import Completed


@dataclass(frozen=True, slots=True)
class Words:
    """What stands after a command's name: option letters, then operands without the pool."""

    options: frozenset[str]
    operands: Sequence[str]

    def __getitem__(self, number: int) -> str:
        """The operand of that number. Raises CommandError without it."""
        if number >= len(self.operands):
            raise CommandError("missing device specification", 2)
        return self.operands[number]


Command = Callable[[PoolState, Words], str | None]
"""Carries a command out; returns what it prints. Raises CommandError."""


class SimulatedRunner:
    """Runs ``zpool …`` argument vectors on a world; nothing leaves the process."""

    def __init__(self, world: World) -> None:
        """``world`` is what the commands act on, at the moment it has come to."""
        self.world = world

    async def run(self, argv: Sequence[str], deadline: float) -> Completed:
        """See CommandRunner.run. Raises FileNotFoundError for any program but zpool."""
        del deadline  # a simulated machine answers at once
        if not argv or argv[0].rsplit("/", 1)[-1] != "zpool":
            program = argv[0] if argv else "program"
            raise FileNotFoundError(f"the simulated machine has no {program}")
        return execute(self.world.pools, argv)


def execute(pools: Sequence[PoolState], argv: Sequence[str]) -> Completed:
    """Carries out a ``zpool`` command line (zpool(8), 2.3)."""
    try:
        return Completed(tuple(argv), 0, _execute(pools, argv[1:]) or "", "")
    except CommandError as error:
        return Completed(tuple(argv), error.status, "", str(error))


def _execute(pools: Sequence[PoolState], words: Sequence[str]) -> str | None:
    name, *rest = words or [""]
    command = _COMMANDS.get(name)
    if command is None:
        raise CommandError(f"unrecognized command '{name}'", 2)
    options = frozenset(letter for word in rest if _is_option(word) for letter in word[1:])
    operands = [word for word in rest if not _is_option(word)]
    if name == "set":  # the one command that names the pool last
        operands = operands[::-1]
    if not operands:
        raise CommandError("missing pool name argument", 2)
    pool = next((p for p in pools if p.name == operands[0]), None)
    if pool is None:
        raise CommandError(f"cannot open '{operands[0]}': no such pool")
    if pool.suspended and name != "clear":
        raise CommandError(f"cannot {name} '{pool.name}': pool I/O is currently suspended")
    return command(pool, Words(options, operands[1:]))


def _is_option(word: str) -> bool:
    return word.startswith("-") and word != "-"


def _scrub(pool: PoolState, words: Words) -> None:
    action = "stop" if "s" in words.options else "pause" if "p" in words.options else "start"
    commands.scrub(pool, action)


def _job(kind: str) -> Command:
    def _change(pool: PoolState, words: Words) -> None:
        action = (
            "cancel" if "c" in words.options else "suspend" if "s" in words.options else "start"
        )
        commands.change(pool, kind, action, next(iter(words.operands), None))

    return _change


def _set(pool: PoolState, words: Words) -> None:
    name, _, value = words[0].partition("=")
    if name != "autoexpand" or value not in ("on", "off"):
        raise CommandError(f"cannot set property for '{pool.name}': invalid property '{name}'")
    pool.autoexpand = value == "on"


_COMMANDS: dict[str, Command] = {
    "replace": lambda pool, words: commands.replace(pool, words[0], words[1], "s" in words.options),
    "attach": lambda pool, words: commands.attach(pool, words[0], words[1]),
    "detach": lambda pool, words: commands.detach(pool, words[0]),
    "offline": lambda pool, words: commands.offline(pool, words[0]),
    "online": lambda pool, words: commands.online(pool, words[0], "e" in words.options),
    "clear": lambda pool, words: commands.clear(pool, next(iter(words.operands), None)),
    "scrub": _scrub,
    "resilver": lambda pool, _: lifecycle.resilver_all(pool),
    "trim": _job("trim"),
    "initialize": _job("initialize"),
    "set": _set,
}
