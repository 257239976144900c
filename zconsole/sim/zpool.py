"""``zpool`` command lines carried out on the simulated pools: the actions' runner for the demo."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from zconsole.sim import commands, jobs
from zconsole.sim.commands import DONE, CommandOutcome
from zconsole.sim.source import World
from zconsole.sim.state import PoolState
from zconsole.system.process import Completed

Command = Callable[[PoolState, frozenset[str], Sequence[str]], CommandOutcome]


class SimulatedRunner:
    """Runs ``zpool …`` argument vectors on a world; nothing leaves the process."""

    def __init__(self, world: World) -> None:
        """``world`` is what the commands act on, at the moment it has come to."""
        self.world = world

    async def run(self, argv: Sequence[str], deadline: float) -> Completed:
        """See CommandRunner.run. Raises FileNotFoundError for any program but zpool."""
        if not argv or argv[0].rsplit("/", 1)[-1] != "zpool":
            program = argv[0] if argv else "program"
            raise FileNotFoundError(f"the simulated machine has no {program}")
        outcome = execute(self.world.pools, argv[1:])
        return Completed(tuple(argv), outcome.status, outcome.stdout, outcome.stderr)


def execute(pools: Sequence[PoolState], words: Sequence[str]) -> CommandOutcome:
    """Carries out ``zpool`` with ``words`` as its arguments (zpool(8), 2.3)."""
    name, *rest = words or [""]
    command = _COMMANDS.get(name)
    if command is None:
        return CommandOutcome(2, f"unrecognized command '{name}'\n")
    options = frozenset(letter for word in rest if _is_option(word) for letter in word[1:])
    operands = [word for word in rest if not _is_option(word)]
    if name == "set":
        operands = operands[::-1]
    if not operands:
        return CommandOutcome(2, "missing pool name argument\n")
    pool = next((p for p in pools if p.name == operands[0]), None)
    if pool is None:
        return CommandOutcome(1, f"cannot open '{operands[0]}': no such pool\n")
    if pool.suspended and name != "clear":
        return CommandOutcome(1, f"cannot {name} '{pool.name}': pool I/O is currently suspended\n")
    try:
        return command(pool, options, operands[1:])
    except IndexError:
        return CommandOutcome(2, "missing device specification\n")


def _is_option(word: str) -> bool:
    return word.startswith("-") and word != "-"


def _replace(pool: PoolState, options: frozenset[str], rest: Sequence[str]) -> CommandOutcome:
    return commands.replace(pool, rest[0], rest[1] if len(rest) > 1 else rest[0], "s" in options)


def _attach(pool: PoolState, options: frozenset[str], rest: Sequence[str]) -> CommandOutcome:
    return commands.attach(pool, rest[0], rest[1], "s" in options)


def _detach(pool: PoolState, options: frozenset[str], rest: Sequence[str]) -> CommandOutcome:
    return commands.detach(pool, rest[0])


def _offline(pool: PoolState, options: frozenset[str], rest: Sequence[str]) -> CommandOutcome:
    rest[0]
    return _each(rest, lambda device: commands.offline(pool, device, "f" in options))


def _online(pool: PoolState, options: frozenset[str], rest: Sequence[str]) -> CommandOutcome:
    rest[0]
    return _each(rest, lambda device: commands.online(pool, device, "e" in options))


def _each(devices: Sequence[str], act: Callable[[str], CommandOutcome]) -> CommandOutcome:
    """The first refusal, else the last answer."""
    outcome = DONE
    for device in devices:
        outcome = act(device)
        if outcome.status:
            return outcome
    return outcome


def _clear(pool: PoolState, options: frozenset[str], rest: Sequence[str]) -> CommandOutcome:
    return commands.clear(pool, rest[0] if rest else None)


def _scrub(pool: PoolState, options: frozenset[str], rest: Sequence[str]) -> CommandOutcome:
    action = "stop" if "s" in options else "pause" if "p" in options else "start"
    return commands.scrub(pool, action)


def _resilver(pool: PoolState, options: frozenset[str], rest: Sequence[str]) -> CommandOutcome:
    return commands.resilver(pool)


def _job_action(options: frozenset[str]) -> str:
    return "cancel" if "c" in options else "suspend" if "s" in options else "start"


def _trim(pool: PoolState, options: frozenset[str], rest: Sequence[str]) -> CommandOutcome:
    return jobs.trim(pool, _job_action(options), rest[0] if rest else None)


def _initialize(pool: PoolState, options: frozenset[str], rest: Sequence[str]) -> CommandOutcome:
    return jobs.initialize(pool, _job_action(options), rest[0] if rest else None)


def _checkpoint(pool: PoolState, options: frozenset[str], rest: Sequence[str]) -> CommandOutcome:
    return jobs.checkpoint(pool, "d" in options)


def _remove(pool: PoolState, options: frozenset[str], rest: Sequence[str]) -> CommandOutcome:
    return jobs.remove(pool, rest[0])


def _set(pool: PoolState, options: frozenset[str], rest: Sequence[str]) -> CommandOutcome:
    name, _, value = rest[0].partition("=")
    if name != "autoexpand" or value not in ("on", "off"):
        text = f"cannot set property for '{pool.name}': invalid property '{name}'\n"
        return CommandOutcome(1, text)
    pool.autoexpand = value == "on"
    return DONE


def _nothing(pool: PoolState, options: frozenset[str], rest: Sequence[str]) -> CommandOutcome:
    return DONE


_COMMANDS: dict[str, Command] = {
    "replace": _replace,
    "attach": _attach,
    "detach": _detach,
    "offline": _offline,
    "online": _online,
    "clear": _clear,
    "scrub": _scrub,
    "resilver": _resilver,
    "trim": _trim,
    "initialize": _initialize,
    "checkpoint": _checkpoint,
    "remove": _remove,
    "set": _set,
    "sync": _nothing,
    "reopen": _nothing,
    "wait": _nothing,
}
