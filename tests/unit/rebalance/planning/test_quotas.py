"""What a plan says of quotas: whoever is near one may find it exceeded while copies are made."""

from __future__ import annotations

from collections.abc import Sequence

from zconsole.rebalance.planning.engine_choice import Choice
from zconsole.rebalance.planning.facts import Dataset, Mount
from zconsole.rebalance.planning.plan_model import DirectoryPlan, JobDirectory
from zconsole.rebalance.planning.plan_notes import Quota, held, of_quotas
from zconsole.rebalance.planning.survey import Ages, Survey
from zconsole.system.process import Completed

MIB = 1 << 20
USERS = (
    "POSIX User\troot\t1024\t0\n"
    f"POSIX User\tbob\t{95 * MIB}\t{100 * MIB}\n"
    f"POSIX User\tann\t{2 * MIB}\t{900 * MIB}\n"
    f"SMB User\tc\x1bd@dom\t{100 * MIB}\t{90 * MIB}\n"
)
GROUPS = "POSIX Group\tstaff\t7\tnone\n"
PROJECTS = f"Project\t7\t{MIB}\t{2 * MIB}\n"


def zfs(argv: Sequence[str], _deadline: float) -> Completed:
    """OpenZFS of which no projects may be seen on tank/old."""
    if argv[-1] == "tank/old" and argv[1] == "projectspace":
        return Completed(tuple(argv), 1, "", "cannot get used/quota: feature not enabled")
    said = {"userspace": USERS, "groupspace": GROUPS, "projectspace": PROJECTS}
    return Completed(tuple(argv), 0, said[argv[1]], "")


def planned(name: str = "tank/a", engine: str = "copy", **properties: str) -> DirectoryPlan:
    place = JobDirectory(b"/" + name.encode(), Mount("zfs", name, "/"), Dataset(name, properties))
    found = DirectoryPlan(place, Survey(b"/", Ages()), Choice(engine, ""), 1, 1)
    found.pinned, found.in_flight = {"snapshots": 5000 * MIB}, 64 * MIB
    return found


def test_the_quotas_of_everybody_are_read() -> None:
    assert held(zfs, "tank/a") == [
        Quota("user bob", 95 * MIB, 100 * MIB),
        Quota("user ann", 2 * MIB, 900 * MIB),
        Quota(r"user c\x1bd@dom", 100 * MIB, 90 * MIB),
        Quota("project 7", MIB, 2 * MIB),
    ]
    assert len(held(zfs, "tank/old")) == 3


def test_who_is_near_a_quota_is_named() -> None:
    (said,) = of_quotas(zfs, [planned(), planned()])
    assert said.startswith(
        r"tank/a: near their quotas are user c\x1bd@dom (0 of 90M left), project 7 (1M of 2M left),"
        " user bob (5M of 100M left): copies count twice"
    )


def test_in_place_nobody_meets_a_quota() -> None:
    assert list(of_quotas(zfs, [planned(engine="rewrite")])) == []


def test_the_quota_of_a_dataset_is_told_where_it_is_near() -> None:
    near = {"quota": str(900 * MIB), "refquota": "0", "available": str(30 * MIB)}
    said = next(of_quotas(zfs, [planned(**near)]))
    assert said == "tank/a: quota of 900M: 30M left, and copies count twice until they are in place"
    far = near | {"available": str(300 * MIB)}
    assert not any("of 900M: " in note for note in of_quotas(zfs, [planned(**far)]))
