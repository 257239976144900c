"""``zconsole swap``: its list on the simulated shelf, and the console that it opens."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.records import replace
from tests.table import rows
from zconsole.actions.facts import RoundsOnDemand
from zconsole.cli import local, swap
from zconsole.cli.main import main
from zconsole.cli.options import parser_of
from zconsole.cli.swap import SwapListing
from zconsole.diagnosis.device_errors.faults import SmartCounts
from zconsole.errors import NotFoundError, UnavailableError
from zconsole.sim.backends.actions import simulated_backend
from zconsole.sim.backends.swap import SimulatedHands, simulated_swap
from zconsole.sim.source import SimulatedSource
from zconsole.swap import store
from zconsole.swap.choice import choose
from zconsole.swap.disk import BACKED_OUT, DONE, PULL_FIRST, Checklist, device_named
from zconsole.swap.several import started
from zconsole.swap.store import SwapSession, SwapStore
from zconsole.system.async_process import ProcessRunner
from zconsole.timeline.feed import SessionFeed
from zconsole.timeline.session import Session


class Machine:
    """A simulated shelf and a session of the command."""

    def __init__(self, place: Path) -> None:
        self.clock = 0.0
        self.place = place
        place.chmod(0o700)
        self.source = SimulatedSource("swap", clock=lambda: self.clock)
        self.hands = SimulatedHands(self.source.world)

    @property
    def store(self) -> SwapStore:
        return SwapStore(self.place)

    def swap(self, *words: str) -> int:
        return self.asked(SwapListing.show, *words)

    def asked(self, ask: Callable[[SwapListing], Awaitable[Any]], *words: str) -> Any:
        """Return the result of ``ask`` for the checklists that a command line selects."""
        args = parser_of("swap").parse_args(list(words))
        return asyncio.run(self._in_session(lambda s: ask(SwapListing(args, s, self.store))))

    def begin(self, bay: str) -> Checklist:
        """Begin the swap of a disk by its pull."""

        backend = simulated_backend(self.source.world)

        async def _begun(session: SwapSession) -> Checklist:
            v = await session.view(lambda s: s.pool.name == "tank")
            assert v is not None
            choice = choose(v, device_named(v, bay))
            assert choice is not None
            way = next(way for way in choice.ways if way.mode == PULL_FIRST)
            store = self.store
            try:
                return started(choice, way, store, backend.clock()).checklist
            finally:
                store.close()

        return asyncio.run(self._in_session(_begun))

    def keep(self, c: Checklist) -> None:
        store = self.store
        store.save(c)
        store.close()

    async def _in_session(self, work: Callable[[SwapSession], Awaitable[Any]]) -> Any:
        rounds = RoundsOnDemand(SessionFeed(self.source, Session(), 0.0))
        world = self.source.world
        return await work(
            SwapSession(simulated_backend(world), simulated_swap(world), rounds.frames)
        )


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_without_a_terminal_a_question_is_2(machine: Machine, capsys):
    assert machine.swap("tank", "Slot 07") == 2
    assert "Pull first" in capsys.readouterr().out
    assert machine.swap("tank", "Slot 07", "--json") == 2
    assert json.loads(capsys.readouterr().out)["old"]["bay"] == "Slot 07"
    machine.begin("Slot 07")
    assert machine.swap("tank") == 2
    assert machine.swap() == 0
    assert "Take " in capsys.readouterr().out


def test_a_disk_that_another_checklist_swaps_is_no_wrong_one_where_both_are_listed(
    machine: Machine, capsys
):
    machine.begin("Slot 01")
    machine.keep(replace(machine.begin("Slot 07"), at="pull"))
    machine.hands.pull("Slot 07")
    assert machine.swap() == 0
    said = capsys.readouterr().out
    assert len(said.splitlines()) == 2
    assert "WRONG DISK" not in said


def test_a_swap_that_ended_is_shown_with_its_code(machine: Machine, capsys):
    c = machine.begin("Slot 07")
    machine.keep(replace(c, state=BACKED_OUT, ended=c.begun + 60.0))
    assert machine.swap("tank", "Slot 07", "--json") == 1
    assert json.loads(capsys.readouterr().out)["state"] == "backed out"


@rows("words", [("none",), ("tank", "Slot 99")])
def test_a_pool_or_device_that_does_not_exist_is_not_opened(machine: Machine, words):
    with pytest.raises(NotFoundError):
        machine.asked(SwapListing.wanted, *words)


def test_the_console_opens_at_the_device_that_is_named_or_whose_checklist_is_open(
    machine: Machine,
):
    assert machine.asked(SwapListing.wanted) == ("tank", "")
    leaf = next(x for x in machine.source.world.pools[0].leaves() if x.slot == 7)
    at = ("tank", str(leaf.guid))
    assert machine.asked(SwapListing.wanted, "tank", "Slot 07") == at
    machine.begin("Slot 07")
    assert machine.asked(SwapListing.wanted) == at


def test_where_zfs_cannot_be_asked_it_fails_unless_a_checklist_is_open(machine: Machine, capsys):
    async def _gone():
        raise UnavailableError("ZFS not found")

    sample, machine.source.sample = machine.source.sample, _gone
    with pytest.raises(UnavailableError, match="ZFS not found"):
        machine.swap()
    machine.source.sample = sample
    machine.begin("Slot 07")
    machine.source.sample = _gone
    assert machine.swap("--json") == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["state"] == "open"
    assert "ZFS not found" in err


@pytest.fixture
def terminal(machine: Machine, monkeypatch) -> list[object]:
    """A terminal on which the console is not drawn; collects what it was opened with."""
    opened: list[object] = []
    monkeypatch.setenv("ZCONSOLE_STATE", str(machine.place))
    monkeypatch.setattr(swap, "has_terminal", lambda: True)
    monkeypatch.setattr(swap, "is_root", lambda: True)
    monkeypatch.setattr(swap.console, "run", lambda args: opened.append(args.swap_at) or 0)

    async def _asked(args, ask):
        work = machine._in_session(lambda s: ask(SwapListing(args, s, machine.store)))
        return await work

    monkeypatch.setattr(swap, "_on_this_machine", _asked)
    return opened


def test_on_a_terminal_the_console_opens_at_the_swap_and_its_end_is_the_code(
    machine: Machine, terminal, monkeypatch, capsys
):
    assert main(["swap", "tank"]) == 1
    assert terminal == [("tank", "")]
    assert "No swap was started." in capsys.readouterr().err
    c = machine.begin("Slot 07")
    assert main(["swap", "tank"]) == 130
    assert "The checklist stays open" in capsys.readouterr().err
    for state, code in ((DONE, 0), (BACKED_OUT, 1)):
        ended = replace(c, state=state, ended=2.0**33)
        monkeypatch.setattr(swap.console, "run", lambda _, ended=ended: machine.keep(ended) or 0)
        assert main(["swap", "tank", "Slot 07"]) == code
        assert capsys.readouterr().out.startswith("# Disk swap in tank")


@pytest.mark.usefixtures("terminal")
def test_only_root_is_led_and_not_where_nothing_may_be_changed(monkeypatch, capsys):
    assert main(["swap", "--read-only"]) == 2
    monkeypatch.setattr(swap, "is_root", lambda: False)
    assert main(["swap"]) == 4
    assert "run it as root" in capsys.readouterr().err


def test_the_disks_of_this_machine_are_asked_what_they_say_of_themselves(
    machine: Machine, monkeypatch
):
    machine.hands.insert(0, "Slot 11")
    asked: list[str] = []

    async def _smart_of(runner: object, node: str) -> SmartCounts | None:
        assert isinstance(runner, ProcessRunner)
        asked.append(node)
        return None

    monkeypatch.setenv("ZCONSOLE_STATE", str(machine.place))
    monkeypatch.setattr(local, "LiveSource", lambda _pools: machine.source)
    monkeypatch.setattr(swap, "DeviceProber", lambda _signs_of: None)
    backend = simulated_backend(machine.source.world)
    monkeypatch.setattr(swap, "live_backend", lambda **_: backend)
    monkeypatch.setattr(store, "smart_of", _smart_of)
    assert main(["swap", "tank", "Slot 07"]) == 2
    assert asked
