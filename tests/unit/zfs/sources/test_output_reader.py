"""What zpool itself says: asked on request, each command with a deadline, made printable."""

from __future__ import annotations

import asyncio

import pytest

from tests.unit.zfs.sources.sampled import JSON, source
from tests.unit.zfs.sources.source_fakes import HANG, CannedRunner, printed, set_state
from zconsole.errors import UnavailableError
from zconsole.zfs.sources.output_reader import DEADLINE, OutputReader
from zconsole.zfs.zpool_output import MOST, zpool_output

STATUS = ("zpool", "status", "-v")
IOSTAT = ("zpool", "iostat", "-v")
EVENTS = ("zpool", "events")
SAID = {STATUS: printed("  pool: tank\n"), IOSTAT: printed("x\n"), EVENTS: printed("y\n")}


async def test_each_command_is_asked_of_this_pool_within_a_deadline():
    runner = CannedRunner(SAID)
    outputs = await OutputReader(runner).read("tank")
    assert runner.asked == [(*STATUS, "tank"), (*IOSTAT, "tank"), (*EVENTS, "tank")]
    assert runner.deadlines == [DEADLINE] * 3
    assert [output.text for output in outputs] == [
        "$ zpool status -v tank\n  pool: tank",
        "$ zpool iostat -v tank  # averages since boot\nx",
        "$ zpool events tank\ny",
    ]


async def test_what_fails_says_why_in_its_place():
    denied = printed("", 1, "cannot get events: permission denied\n")
    answers = {STATUS: OSError(2, "No such file or directory"), IOSTAT: printed("", 3)}
    outputs = await OutputReader(CannedRunner({**answers, EVENTS: denied})).read("tank")
    assert [output.lines for output in outputs] == [
        ("zpool: No such file or directory",),
        ("exit status 3",),
        ("cannot get events: permission denied",),
    ]


async def test_a_warning_stands_below_what_was_printed():
    warned = printed("  pool: tank\n", 0, "zpool: beware\n")
    (status, _, _) = await OutputReader(CannedRunner({**SAID, STATUS: warned})).read("tank")
    assert status.lines == ("  pool: tank", "zpool: beware")


async def test_what_hangs_is_not_run_again_before_it_is_gone():
    runner = CannedRunner({**SAID, STATUS: HANG})
    reader = OutputReader(runner)
    for _ in range(2):
        (status, iostat, _) = await reader.read("tank")
        assert status.lines == ("zpool gave no answer",)
        assert iostat.lines == ("x",)
    assert runner.asked.count((*STATUS, "tank")) == 1
    runner.stuck, runner.answers = False, SAID
    (status, _, _) = await reader.read("tank")
    assert status.lines == ("  pool: tank",)


class Slow(CannedRunner):
    """Answers once it may."""

    def __init__(self) -> None:
        super().__init__(SAID)
        self.may = asyncio.Event()

    async def run(self, argv, deadline):
        found = await super().run(argv, deadline)
        await self.may.wait()
        return found


async def test_who_asks_again_meanwhile_gets_the_same_answer():
    runner = Slow()
    reader = OutputReader(runner)
    first = asyncio.create_task(reader.read("tank"))
    await asyncio.sleep(0)
    first.cancel()  # its screen was left
    with pytest.raises(asyncio.CancelledError):
        await first
    second = asyncio.create_task(reader.read("tank"))
    await asyncio.sleep(0)
    runner.may.set()
    assert len(await second) == 3
    assert len(runner.asked) == 3


async def test_closing_ends_what_is_in_flight():
    reader = OutputReader(Slow())
    asking = asyncio.create_task(reader.read("tank"))
    await asyncio.sleep(0)
    (ending,) = reader.close()
    await asyncio.wait((asking, ending))
    assert ending.cancelled()


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("a\x1b[2J\tb\n", (r"a\x1b[2J   b",)),
        ("a\x85b\u2028c\x0cd\n", (r"a\x85b\u2028c\x0cd",)),
        ("bad\udcff\n\n\tx\n\n", (r"bad\xff", "", "        x")),
        ("", ("",)),
    ],
)
def test_it_is_printable_and_keeps_its_lines(text, lines):
    assert zpool_output("zpool status", text).lines == lines


def test_of_too_much_the_rest_is_named():
    *_, last, rest = zpool_output("zpool status", f"a\n{'b' * MOST}").lines
    assert len(last) == MOST - 2
    assert rest == "(2 more characters)"


async def test_a_suspended_pool_is_not_asked(tmp_path):
    made = source(tmp_path, {"tank": "ONLINE"}, {**JSON, **SAID})
    with pytest.raises(UnavailableError, match="no sample yet"):
        await made.zpool_outputs("tank")
    await made.sample()
    assert (await made.zpool_outputs("tank"))[0].lines == ("  pool: tank",)
    set_state(tmp_path, "tank", "SUSPENDED")
    await made.sample()
    with pytest.raises(UnavailableError, match="the pool is SUSPENDED: zpool would hang"):
        await made.zpool_outputs("tank")
    await made.aclose()
