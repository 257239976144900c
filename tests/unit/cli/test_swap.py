"""The dialogue of ``zconsole swap``, held with a script on the simulated shelf."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.records import replace
from zconsole.cli.options import parser_of
from zconsole.cli.swap import RoundsOnDemand, SwapCommand
from zconsole.cli.swap_dialogue import PAUSE, SLOW
from zconsole.errors import NotFoundError, UnavailableError, UsageError, ZconsoleError
from zconsole.sim.backends.actions import simulated_backend
from zconsole.sim.hands import SimulatedHands
from zconsole.sim.source import SimulatedSource
from zconsole.swap.onlooker import Onlooker
from zconsole.swap.session import SwapSession
from zconsole.swap.store import FileSwapStore
from zconsole.timeline.feed import SessionFeed
from zconsole.timeline.session import Session

Typed = str | float | Callable[[], object]
"""A word to type, seconds to wait, or something that hands do."""
LEAVE = "leave"


class Script:
    """Plays the person at the terminal."""

    def __init__(self, machine: Machine, *typed: Typed) -> None:
        self.said: list[str] = []
        self._machine = machine
        self._typed = list(typed)
        self._ahead: list[str] = []
        self.patience: list[float | None] = []

    def say(self, text: str) -> None:
        self.said.append(text)

    def forget(self) -> None:
        self._ahead.clear()

    async def line(self, seconds: float | None) -> str | None:
        self.patience.append(seconds)
        self._machine.clock += 1.0
        if self._ahead:
            return self._ahead.pop(0)
        if not self._typed:
            raise EOFError
        now = self._typed.pop(0)
        if isinstance(now, str):
            word, *self._ahead = now.split("\n")
            return word
        if isinstance(now, float):
            self._machine.clock += now
        else:
            now()
        return None

    @property
    def text(self) -> str:
        return "\n".join(self.said)


class Machine:
    """A simulated shelf with a session of the command."""

    def __init__(self, place: Path) -> None:
        self.clock = 0.0
        self.place = place
        place.chmod(0o700)
        self.source = SimulatedSource("swap", clock=lambda: self.clock)
        self.hands = SimulatedHands(self.source.world)
        self.denied = ""

    @property
    def store(self) -> FileSwapStore:
        return FileSwapStore(self.place)

    def swap(self, *words: str, script: Script | None = None) -> int:
        args = parser_of("swap").parse_args(list(words))
        return asyncio.run(self._swap(args, script))

    async def _swap(self, args, script: Script | None) -> int:
        rounds = RoundsOnDemand(SessionFeed(self.source, Session(), 0.0))
        backend = replace(simulated_backend(self.source.world), denied=self.denied)

        async def _no_smart(_node: str) -> None:
            return None

        look = Onlooker(backend.ask, _no_smart, "boot")
        session = SwapSession(backend, look, rounds.frames, rounds.fresh)
        store = self.store
        try:
            return await SwapCommand(args, session, store, script).run()
        finally:
            store.close()


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


@pytest.mark.slow
def test_a_whole_swap_by_words(machine: Machine, capsys):
    script = Script(
        machine,
        *("1", "yes", "yes"),
        lambda: machine.hands.pull("Slot 07"),
        lambda: machine.hands.insert(0, "Slot 07"),
        0.0,
        "yes",
        *[120.0] * 20,
        *("yes", "no-scrub"),
        0.0,
    )
    assert machine.swap("tank", "Slot 07", script=script) == 0
    assert set(script.patience) == {None, PAUSE, PAUSE * SLOW}
    assert "[1/9] Take " in script.text
    assert "Effect: it stays offline" in script.text
    assert "$ zpool replace tank" in script.text
    assert capsys.readouterr().out.startswith("# Disk swap in tank")


def test_a_device_with_errors_is_found_without_being_named(machine: Machine):
    script = Script(machine)
    assert machine.swap(script=script) == 130
    assert "Slot 07" in script.said[0]
    assert script.said[-1] == "No swap was started."


def test_a_wrong_disk_is_said_loudly(machine: Machine):
    script = Script(machine, "1", "yes", "yes", lambda: machine.hands.pull("Slot 06"), 0.0)
    assert machine.swap("tank", "Slot 07", script=script) == 130
    assert "!!! WRONG DISK: put Slot 06" in script.text


def test_a_checklist_left_open_goes_on_without_being_begun_again(machine: Machine):
    assert machine.swap("tank", "Slot 07", script=Script(machine, "1", "yes", "yes", LEAVE)) == 130
    script = Script(machine, 0.0)
    assert machine.swap(script=script) == 130
    assert any(line.startswith("[3/9] Pull Slot 07") for line in script.said)


@pytest.mark.slow
def test_back_to_the_beginning_ends_with_1(machine: Machine):
    script = Script(machine, "1", "yes", *["back", "yes"], *[120.0] * 8, *["back", "yes"], 0.0)
    assert machine.swap("tank", "Slot 07", script=script) == 1
    assert "stays in raidz2-0 of tank" in script.text


def test_a_question_answered_otherwise_begins_nothing(machine: Machine):
    assert machine.swap("tank", "Slot 07", script=Script(machine, "")) == 1
    assert machine.store.read() == ()


def test_an_unknown_word_runs_nothing(machine: Machine):
    script = Script(machine, "1", "y", LEAVE)
    assert machine.swap("tank", "Slot 07", script=script) == 130
    assert "'y' is not one of the words" in script.text
    assert "offline" not in [leaf.state for leaf in machine.source.world.pools[0].leaves()]


def test_a_second_terminal_may_only_watch(machine: Machine):
    machine.swap("tank", "Slot 07", script=Script(machine, "1", LEAVE))
    leader = machine.store
    assert leader.leads(leader.read()[0].id)
    script = Script(machine, "yes", LEAVE)
    assert machine.swap("tank", script=script) == 130
    assert "Another console leads" in script.text
    leader.close()


def test_without_a_terminal_a_question_is_2(machine: Machine, capsys):
    assert machine.swap("tank", "Slot 07") == 2
    assert "Pull first" in capsys.readouterr().out
    machine.swap("tank", "Slot 07", script=Script(machine, "1", LEAVE))
    assert machine.swap("tank") == 2
    assert machine.swap() == 0
    assert "Take " in capsys.readouterr().out


def test_as_json_each_checklist_is_a_line(machine: Machine, capsys):
    machine.swap("tank", "Slot 07", script=Script(machine, "1", "yes", "yes", LEAVE))
    capsys.readouterr()
    assert machine.swap("--json") == 0
    (line,) = capsys.readouterr().out.splitlines()
    found = json.loads(line)
    assert (found["pool"], found["step"], found["state"]) == ("tank", "pull", "open")
    assert found["old"]["bay"] == "Slot 07"
    assert found["waits_for"].startswith("Slot 07")
    assert found["log"][1]["command"].startswith("zpool offline tank")


def test_a_disk_that_another_checklist_swaps_is_no_wrong_one_where_both_are_listed(
    machine: Machine, capsys
):
    machine.swap("tank", "Slot 01", script=Script(machine, "1", LEAVE))
    machine.swap("tank", "Slot 07", script=Script(machine, "1", "yes", "yes", LEAVE))
    machine.hands.pull("Slot 07")
    capsys.readouterr()
    assert machine.swap() == 0
    said = capsys.readouterr().out
    assert len(said.splitlines()) == 2
    assert "WRONG DISK" not in said


def test_a_swap_that_ended_is_shown_with_its_code(machine: Machine, capsys):
    machine.swap("tank", "Slot 07", script=Script(machine, "1", *["back", "yes"], 0.0))
    capsys.readouterr()
    assert machine.swap("tank", "Slot 07", "--json") == 1
    assert json.loads(capsys.readouterr().out)["state"] == "backed out"


def test_what_would_be_swapped_is_json_too(machine: Machine, capsys):
    assert machine.swap("tank", "Slot 07", "--json") == 2
    assert json.loads(capsys.readouterr().out)["old"]["bay"] == "Slot 07"


def test_without_open_checklists_nothing_is_printed(machine: Machine, capsys):
    assert machine.swap("--json") == 0
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("words", "error"),
    [(("none",), NotFoundError), (("tank", "Slot 99"), NotFoundError)],
)
def test_a_pool_or_device_that_does_not_exist_is_3(machine: Machine, words, error):
    with pytest.raises(error):
        machine.swap(*words, script=Script(machine))


def test_only_root_is_led(machine: Machine):
    machine.denied = "not root"
    with pytest.raises(UnavailableError):
        machine.swap("tank", "Slot 07", script=Script(machine))


def test_read_only_is_not_led(machine: Machine):
    machine.denied = "read-only"
    with pytest.raises(UsageError):
        machine.swap("tank", "Slot 07", script=Script(machine))


def test_where_no_way_is_possible_it_says_why(machine: Machine):
    pool = machine.source.world.pools[0]
    pool.tops[0].nparity = 0
    with pytest.raises(ZconsoleError, match="loses data"):
        machine.swap("tank", "Slot 07", script=Script(machine))


def test_an_open_checklist_is_shown_where_zfs_cannot_be_asked(machine: Machine, capsys):
    machine.swap("tank", "Slot 07", script=Script(machine, "1", LEAVE))
    capsys.readouterr()

    async def _gone():
        raise UnavailableError("ZFS not found")

    machine.source.sample = _gone
    assert machine.swap("--json") == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["step"] == "offline"
    assert "ZFS not found" in err


def test_without_zfs_and_without_an_open_checklist_it_fails(machine: Machine):
    async def _gone():
        raise UnavailableError("ZFS not found")

    machine.source.sample = _gone
    with pytest.raises(UnavailableError, match="ZFS not found"):
        machine.swap()


def test_a_word_typed_twice_answers_one_step_only(machine: Machine):
    script = Script(machine, "1", "yes\nyes", 0.0)
    machine.swap("tank", "Slot 07", script=script)
    assert script.text.count("Done.") == 1
    assert "is not one of the words" not in script.text


def test_a_plan_says_which_disk_its_command_is_about(machine: Machine):
    script = Script(machine, "1")
    machine.swap("tank", "Slot 07", script=script)
    after = script.said[next(n for n, line in enumerate(script.said) if "$ zpool" in line) :]
    assert "Slot 07, serial " in after[1]


def test_of_several_the_dialogue_says_where_all_are_swapped_at_once(machine: Machine):
    leaf = next(x for x in machine.source.world.pools[0].leaves() if x.slot == 8)
    leaf.cksum_errors = 12.0
    script = Script(machine)
    assert machine.swap("tank", script=script) == 130
    assert "together: replace all 2 at once" in script.text
    assert "All at once: only the console does that, by C: zconsole console tank" in script.text
