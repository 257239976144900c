"""Tunables left set, by whom, and what the next console reports, writes and takes over."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from types import MappingProxyType

import pytest

from tests.unit.tunables.conftest import Kernel
from tests.unit.tunables.test_guard import NAME as FROZEN
from zconsole.errors import UsageError, ZconsoleError
from zconsole.system.host import process_mark
from zconsole.tunables.holds import Scans, promise
from zconsole.tunables.parameters import Parameters
from zconsole.tunables.store import PILOT

TIME, SCRUB = "zfs_resilver_min_time_ms", "zfs_scrub_min_time_ms"
DEAD = "999999999:1"
"""The process mark of no process."""
TANK = MappingProxyType({"77": "tank"})
RUNS = Scans(running=TANK, whole=True)
IDLE = Scans(idle=TANK, whole=True)
ENDED = Scans(idle=TANK, ended=("77",), whole=True)
PART = Scans(idle={"1": "dozer"})
"""A console that only has dozer: it is unknown whether tank is resilvering."""
GONE = Scans(idle={"1": "dozer"}, whole=True)
"""Tank is no longer imported."""


@pytest.fixture
def live() -> Iterator[str]:
    """The mark of a running process."""
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    yield str(process_mark(process.pid))
    process.kill()
    process.wait()


def leave(kernel: Kernel, owner: str | None, until: str | None = None, name: str = TIME) -> None:
    """Set a tunable as the process with this mark does."""
    control = kernel.console(owner)
    value = 1 if name == FROZEN else 5000
    control.set({name: value}, 1.0, guard=True)
    if until:
        control.until(until)


def says(kernel: Kernel, scans: Scans, name: str = TIME, mark: str | None = None) -> str:
    hold = kernel.console(mark).setting(name).hold
    assert hold is not None
    return promise(hold, scans)


def remembered(kernel: Kernel) -> str:
    return (kernel.state / "tunables.json").read_text()


NEXT = "restored by the next console"
EVEN_AFTER = "even after the scan's end; "
LATER = "restored by zconsole in the background once"


@pytest.mark.parametrize(
    ("until", "scans", "said", "value"),
    [
        (None, IDLE, f"its console is gone; {LATER} no scan runs", 3000),
        (None, GONE, f"its console is gone; {LATER} no scan runs", 3000),
        (None, RUNS, f"its console is gone; {LATER} no scan runs", 5000),
        (None, PART, f"its console is gone; {LATER} no scan runs", 5000),
        ("77", IDLE, f"its console is gone; {LATER} no scan of tank runs", 3000),
        ("77", Scans(idle=TANK), f"its console is gone; {LATER} no scan of tank runs", 3000),
        ("77", RUNS, f"its console is gone; {LATER} no scan of tank runs", 5000),
        ("77", PART, f"its console is gone; {LATER} no scan runs", 5000),
        ("77", GONE, f"its console is gone; {LATER} no scan runs", 3000),
    ],
)
def test_what_a_console_left_that_is_gone_is_restored_when_its_time_has_come(
    kernel, until, scans, said, value
):
    leave(kernel, DEAD, until)
    assert says(kernel, scans) == said
    done = kernel.console("1:1").settle(2.0, scans)
    assert kernel.read(TIME) == value
    assert [each.text for each in done] == ["restored to 3000"] * (value == 3000)


@pytest.mark.parametrize("until", [None, "77"])
def test_what_is_not_yet_due_is_left_as_it_is_and_watched(kernel, until, live):
    leave(kernel, DEAD, until)
    console, woken = kernel.console(live), []
    console._wake = lambda: woken.append(1)
    before = remembered(kernel)
    assert console.settle(2.0, RUNS) == ()
    assert (woken, remembered(kernel)) == ([1], before)
    assert console.settle(3.0, IDLE) != ()
    assert (woken, kernel.read(TIME)) == ([1], 3000)


def test_what_a_console_holds_is_watched_from_the_start_and_what_stays_is_not(kernel, live):
    woken: list[int] = []
    for owner, value, times in ((None, 4000, 0), (live, 5000, 2)):
        console = kernel.console(owner)
        console._wake = lambda: woken.append(1)
        console.set({TIME: value}, 1.0)
        assert len(woken) == min(times, 1)
        if owner is not None:
            console.until("77")
        assert len(woken) == times
        console.restore(2.0)


@pytest.mark.parametrize("dies_at", [TIME, SCRUB])
def test_what_the_kernel_is_given_is_watched_before_whatever_happens_then(
    kernel, live, monkeypatch, dies_at
):
    """Neither a death nor a second, refused value leaves a tunable without a keeper."""
    woken: list[set[str]] = []

    def write(_parameters, name, value):
        assert any(name in names for names in woken)
        if name == dies_at:
            raise ZconsoleError("refused")
        kernel.write(name, value)

    monkeypatch.setattr(Parameters, "write", write)
    console = kernel.console(live)
    console._wake = lambda: woken.append({*kernel.console("1:1").past().holds})
    with pytest.raises(ZconsoleError, match="refused"):
        console.set({TIME: 5000, SCRUB: 2000}, 1.0)


def test_a_keeper_that_cannot_be_started_stops_nobody(kernel, live):
    def unable() -> None:
        raise ZconsoleError("out of processes")

    console = kernel.console(live)
    console._wake = unable
    console.set({TIME: 5000}, 1.0)
    assert kernel.read(TIME) == 5000


@pytest.mark.parametrize(
    ("until", "scans", "own", "said"),
    [
        (
            None,
            IDLE,
            False,
            f"kept while the console of process {{}} is open, {EVEN_AFTER}{LATER} it is gone"
            " and no scan runs",
        ),
        (
            None,
            IDLE,
            True,
            f"kept while this console is open, {EVEN_AFTER}{LATER} it is gone (or ssh drops)"
            " and no scan runs",
        ),
        (
            "77",
            RUNS,
            True,
            "restored when the scan of tank ends, even if this console is gone (or ssh drops)"
            " by then",
        ),
        (
            "77",
            RUNS,
            False,
            "restored when the scan of tank ends, even if the console of process {}"
            " is gone by then",
        ),
        (
            "77",
            Scans(),
            False,
            "restored when the scan ends, or once the console of process {}"
            " is gone while none runs",
        ),
        (
            "77",
            IDLE,
            True,
            "restored when the next scan of tank ends, or once this console is gone (or ssh drops)"
            " while none runs",
        ),
    ],
)
def test_the_console_that_holds_a_value_is_named(kernel, live, until, scans, own, said):
    leave(kernel, live, until)
    assert says(kernel, scans, mark=live if own else None) == said.format(live.partition(":")[0])


@pytest.mark.slow
@pytest.mark.parametrize("until", [None, "77"])
def test_what_a_live_console_holds_is_restored_by_it_at_the_end_of_a_scan_alone(
    kernel, live, until
):
    leave(kernel, live, until)
    other = Scans(TANK, {"1": "dozer"}, ("1",), whole=True)
    for mark, scans in (
        *(("1:1", scans) for scans in (IDLE, RUNS, ENDED, GONE)),
        *((live, scans) for scans in (IDLE, RUNS, other)),
    ):
        assert kernel.console(mark).settle(2.0, scans) == ()
    assert kernel.read(TIME) == 5000
    kernel.console(live).settle(3.0, ENDED)
    assert kernel.read(TIME) == (3000 if until else 5000)
    assert (kernel.console().setting(TIME).hold is None) is bool(until)


@pytest.mark.parametrize("scans", [IDLE, RUNS, GONE, PART, Scans()])
def test_no_scan_is_waited_for_after_a_console_unless_it_was_seen_to_run(kernel, live, scans):
    """What a console promises while it lives is what happens after it has died."""
    leave(kernel, live, "77")
    said = says(kernel, scans, mark=live)
    os.kill(pid := int(live.partition(":")[0]), signal.SIGKILL)
    os.waitpid(pid, 0)
    kernel.console("1:1").settle(2.0, IDLE)
    assert kernel.read(TIME) == 3000, "it is not kept for a scan that begins later"
    assert ("even if this console is gone" in said) == (scans is RUNS)


@pytest.mark.parametrize("scans", [IDLE, RUNS, GONE, Scans()])
def test_what_the_command_line_set_stays(kernel, scans):
    leave(kernel, None)
    assert says(kernel, scans) == "set to stay: nothing restores it before the next boot"
    done = kernel.console("1:1").settle(2.0, scans)
    assert (done, kernel.read(TIME)) == ((), 5000)


def test_what_a_console_was_told_to_keep_stays_without_it(kernel):
    console = kernel.console(DEAD)
    console.set({TIME: 5000}, 1.0)
    assert [console.until("77").until for _ in range(2)] == ["77", None]
    assert says(kernel, IDLE) == "set to stay: nothing restores it before the next boot"
    assert kernel.console("1:1").settle(2.0, IDLE) == ()


def test_what_was_to_stay_can_be_held_by_the_console_again(kernel, live):
    console = kernel.console(live)
    console.set({TIME: 5000}, 1.0)
    first = console.past().holds[TIME]
    assert [console.until("77") == first for _ in range(6)] == [False, False, True] * 2


@pytest.mark.parametrize("later", [TIME, SCRUB])
def test_what_is_set_after_the_switch_to_the_end_of_the_scan_follows(kernel, live, later):
    """It stayed until the console was gone, while those set before went back with the scan."""
    console = kernel.console(live)
    console.set({TIME: 5000}, 1.0)
    console.until("77")
    kernel.console(DEAD).set({"zfs_scan_vdev_limit": 1 << 20}, 2.0)
    console.set({later: 6000}, 3.0)
    assert {name: hold.until for name, hold in console.past().holds.items()} == {
        TIME: "77",
        later: "77",
        "zfs_scan_vdev_limit": None,
    }
    console.settle(4.0, ENDED)
    assert (kernel.read(TIME), kernel.read(SCRUB)) == (3000, 1000)


def test_what_the_command_line_set_is_held_by_the_console_that_restores_it_at_the_end(kernel, live):
    leave(kernel, None)
    for _ in range(2):
        kernel.console(live).until("77")
    kernel.console("1:1").settle(2.0, IDLE)
    assert kernel.read(TIME) == 5000
    kernel.console(live).settle(2.0, ENDED)
    assert kernel.read(TIME) == 3000


def test_an_earlier_version_kept_no_console_of_what_the_command_line_had_set(kernel):
    leave(kernel, DEAD, "77")
    file = kernel.state / "tunables.json"
    file.write_text(file.read_text().replace(f'"{DEAD}"', "null"))
    assert says(kernel, RUNS) == f"its console is gone; {LATER} no scan of tank runs"
    kernel.console("1:1").settle(2.0, IDLE)
    assert kernel.read(TIME) == 3000


@pytest.mark.parametrize("value", [7777, 3000])
def test_what_somebody_changed_since_is_left_and_said(kernel, value):
    leave(kernel, DEAD)
    kernel.write(TIME, value)
    (done,) = kernel.console("1:1").settle(2.0, IDLE)
    changed = "left at 7777: somebody else changed it (5000 was set here)"
    assert done.text == ("is 3000 already" if value == 3000 else changed)
    assert not done.put_back
    assert kernel.read(TIME) == value
    assert kernel.console("1:1").settle(3.0, IDLE) == ()


@pytest.mark.parametrize("scans", [IDLE, RUNS, Scans()])
def test_what_a_killed_autopilot_left_is_restored_at_once(kernel, scans):
    leave(kernel, DEAD)
    (kernel.state / PILOT).write_text(DEAD)
    (kernel.state / PILOT).chmod(0o600)
    assert says(kernel, scans) == f"its autopilot is gone; {NEXT} at once"
    kernel.console("1:1").settle(2.0, scans)
    assert kernel.read(TIME) == 3000


def test_what_a_live_autopilot_set_is_left_to_it(kernel, live):
    leave(kernel, live)
    (kernel.state / PILOT).write_text(live)
    (kernel.state / PILOT).chmod(0o600)
    assert says(kernel, RUNS).startswith("restored by the autopilot when it ends: with the scans,")
    kernel.console("1:1").settle(2.0, ENDED)
    assert kernel.read(TIME) == 5000


def test_what_a_killed_guard_left_is_restored_at_once_even_while_a_scan_runs(kernel, live):
    leave(kernel, live, name=FROZEN)
    assert says(kernel, RUNS, FROZEN) == (
        "restored by a guard process when its time is over, or when its console ends (or ssh drops)"
    )
    kernel.console("1:1").settle(2.0, RUNS)
    assert kernel.read(FROZEN) == 1
    pid = int(live.partition(":")[0])
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    assert says(kernel, RUNS, FROZEN) == f"its guard is gone; {NEXT} at once"
    kernel.console("1:1").settle(3.0, RUNS)
    assert kernel.read(FROZEN) == 0


def test_what_guards_and_autopilots_hold_is_not_switched_to_the_end_of_the_scan(kernel, live):
    leave(kernel, live, name=FROZEN)
    leave(kernel, None)
    console = kernel.console("1:1")
    assert [console.until("77").until for _ in range(2)] == [None, "77"]
    holds = console.past().holds
    assert (holds[FROZEN].until, holds[TIME].until) == (None, "77")


@pytest.mark.parametrize("until", [None, "77"])
def test_what_another_console_holds_is_switched_by_that_one_alone(kernel, live, until):
    leave(kernel, live, until)
    leave(kernel, DEAD, name=SCRUB)
    console = kernel.console("1:1")
    for switched in ("77", None):
        assert console.until("77").until == switched
        assert kernel.console(live).past().holds[TIME].own
        assert console.past().holds[TIME].until == until
    console.restore(2.0, [SCRUB])
    with pytest.raises(UsageError, match="another process"):
        console.until("77")
    assert console.past().holds[TIME].until == until
