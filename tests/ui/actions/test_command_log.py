"""Commands in the records of the audit log."""

from __future__ import annotations

from tests.table import rows
from zconsole.ui.actions.log_flow import logged_commands


def record(event: str, t: float = 1.0, **fields: object) -> dict[str, object]:
    return {"t": t, "event": event, "who": {"user": "root", "sudo_user": "ann"}, **fields}


def command(event: str, t: float, *argv: str, **fields: object) -> dict[str, object]:
    return record(event, t, kind="command", argv=list(argv), **fields)


def test_the_newest_is_first_with_its_result_and_who_ran_it():
    found = logged_commands(
        [
            command("begun", 1.0, "zpool", "scrub", "tank"),
            command("ended", 2.0, "zpool", "scrub", "tank", ok=True, result="done"),
            command("begun", 3.0, "zpool", "clear", "my pool"),
            command("ended", 4.0, "zpool", "clear", "my pool", ok=False, result="failed: busy"),
        ]
    )
    assert [(each.command, each.ok, each.result) for each in found] == [
        ("zpool clear 'my pool'", False, "failed: busy"),
        ("zpool scrub tank", True, "done"),
    ]
    assert [each.t for each in found] == [4.0, 2.0]
    assert {each.user for each in found} == {"ann"}


def test_one_that_only_began_is_there_without_a_result():
    begun = command("begun", 1.0, "zpool", "scrub", "tank")
    other = command("ended", 2.0, "zpool", "clear", "tank", ok=True, result="done")
    clear, scrub = logged_commands([begun, other])
    assert (scrub.ok, scrub.result) == (None, "no result yet")
    assert clear.ok


def test_the_same_command_again_ends_once_each():
    argv = ("zpool", "scrub", "tank")
    twice = [command(e, t, *argv, ok=True) for e, t in (("begun", 1), ("ended", 2)) * 2]
    assert [each.ok for each in logged_commands(twice)] == [True, True]


def test_tunables_and_jobs_are_commands_too():
    values = [{"name": "zfs_x", "old": 1, "new": 2}, {"name": "zfs_y", "old": 1, "new": 3}]
    tunable = record("ended", kind="tunable", values=values, ok=True, result="done")
    job = record("ended", kind="job", action="run", argv=["zconsole", "rebalance"], ok=True)
    assert [each.command for each in logged_commands([tunable, job])] == [
        "zconsole rebalance",
        "zconsole tunables set zfs_x=2 zfs_y=3",
    ]


@rows(
    ("action", "argv", "command"),
    [
        ("run", ["/usr/lib/zconsole/__main__.py", "rebalance", "run", "/a b"], "run '/a b'"),
        ("pause", ["zconsole"], "pause d3a0"),
        ("resume", ["zconsole"], "resume d3a0"),
    ],
)
def test_a_job_is_the_command_that_does_the_same(action, argv, command):
    lines = [
        record(e, kind="job", action=action, job="d3a0", argv=argv) for e in ("begun", "ended")
    ]
    (found,) = logged_commands(lines)
    assert found.command == f"zconsole rebalance {command}"


def test_a_change_of_limits_is_one_line():
    what = {"kind": "job", "action": "limits", "job": "d3a0", "argv": ["zconsole"]}
    (found,) = logged_commands(
        [record("begun", limits={"rate": 9}, **what), record("ended", **what)]
    )
    assert found.command == "limits of job d3a0 changed"


@rows(
    "odd",
    [
        {"t": 1.0},
        record("evidence", kind="command", argv=["x"]),
        record("ended", kind="action", text="x"),
        record("ended", kind="command", argv="x"),
        record("ended", kind=[], argv=None),
        record("ended", kind="tunable", values=3),
    ],
)
def test_what_is_no_command_is_left_out(odd):
    assert logged_commands([odd]) == ()


def test_a_record_of_nobody_has_no_user():
    assert logged_commands([{**command("ended", 1.0, "x"), "who": 3}])[0].user == ""


def test_what_the_autopilot_did_is_called_its_own_with_its_start_and_end():
    values = [{"name": "zfs_x", "old": 1, "new": 2}]
    flight = {"kind": "autopilot", "action": "hold-latency"}
    step = {"kind": "tunable", "action": "hold-latency 0.02", "values": values}
    found = logged_commands(
        [
            record("begun", target="20ms", **flight),
            record("begun", **step),
            record("ended", ok=True, result="done", **step),
            record("ended", result="failed: no pool", **flight),
            record("begun", target="20ms", **flight),
            record("ended", result="told to stop", **flight),
        ]
    )
    assert [(each.command, each.ok) for each in reversed(found)] == [
        ("autopilot started: target 20ms", True),
        ("autopilot set zfs_x=2", True),
        ("autopilot ended: failed: no pool", False),
        ("autopilot started: target 20ms", True),
        ("autopilot ended: told to stop", True),
    ]
