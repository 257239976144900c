"""Pools for planning: some hand-made, some random."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.records import replace
from zconsole.actions.plan import ActionPlan, Facts, Situation
from zconsole.actions.replace import plan_replace
from zconsole.actions.target import Swap
from zconsole.hardware.device import Device
from zconsole.pool.model import Activity, Pool, Scan, Vdev

GIB = 1 << 30
TIB = 1 << 40
NEW = "/dev/disk/by-id/ata-NEW"
NASTY = ("-f", "a b", "it's", '"', "$(touch x)", "a\nb", "\x1b[2J", "--", "; rm -rf /", "\udcff")

MODERN = Facts(
    version=(2, 3, 9),
    features={
        "resilver_defer": "enabled",
        "device_rebuild": "enabled",
        "raidz_expansion": "enabled",
        "head_errlog": "active",
    },
    parameters={"zfs_resilver_defer_percent": 10, "zfs_resilver_disable_defer": 0},
)


def disk(name: str, guid: int, state: str = "ONLINE", **fields) -> Vdev:
    return Vdev(
        name,
        "disk",
        state=state,
        guid=str(guid),
        path=f"/dev/disk/by-id/{name}-part1",
        size_bytes=TIB,
        **fields,
    )


def top(kind: str, index: int, width: int, *changes: Vdev) -> Vdev:
    """Return a vdev, such as ``raidz2-1`` of d10, d11…; ``changes`` replace its first leaves."""
    leaves = tuple(disk(f"d{index}{n}", 1000 + 10 * index + n) for n in range(width))
    children = (*changes, *leaves[len(changes) :])
    size = TIB * width if kind.startswith("raidz") else TIB
    return Vdev(
        f"{kind}-{index}",
        kind,
        guid=str(100 + index),
        children=children,
        size_bytes=size - 64 * (1 << 20),
        ashift=12,
    )


def pool(*tops: Vdev, scans: tuple[Scan, ...] = (), spares: tuple[Vdev, ...] = (), **fields):
    root = Vdev("tank", "root", guid="1", children=(*tops, *spares))
    return Pool("tank", "ONLINE", root, guid="1", scans=scans, **fields)


def group(kind: str, *children: Vdev) -> Vdev:
    return Vdev(f"{kind}-0", kind, guid="50", children=children)


def at(p: Pool, facts: Facts = MODERN, **fields) -> Situation:
    return Situation(p, facts, t=1000.0, **fields)


def new_disk(**fields) -> Device:
    return replace(
        Device(NEW, "/dev/sdx", ("/dev/sdx",), size=2 * TIB, logical=512, physical=4096), **fields
    )


def running(function: str, percent: float = 38.2, **fields) -> Scan:
    return Scan(function, **({"state": "running", "percent": percent, "start": 900.0} | fields))


CHECKPOINT = Activity("checkpoint", "exists")

_states = st.sampled_from(
    ("ONLINE", "ONLINE", "ONLINE", "ONLINE", "OFFLINE", "FAULTED", "UNAVAIL", "REMOVED", "DEGRADED")
)


@st.composite
def leaves(draw, counter):
    number = next(counter)
    busy = draw(st.sampled_from((0, 0, 0, 0, 1, 2)))
    leaf = disk(f"d{number}", 1000 + number, draw(_states))
    return replace(leaf, resilvering=busy == 1, awaiting_resilver=busy == 2)


@st.composite
def members(draw, counter):
    kind = draw(st.sampled_from(("leaf",) * 5 + ("replacing", "spare")))
    if kind == "leaf":
        return draw(leaves(counter))
    number = next(counter)
    pair = (draw(leaves(counter)), draw(leaves(counter)))
    return Vdev(f"{kind}-{number}", kind, guid=str(1000 + number), children=pair)


@st.composite
def tops(draw, counter, index):
    kind = draw(st.sampled_from(("mirror", "raidz1", "raidz2", "raidz3", "draid1", "disk")))
    if kind == "disk":
        return draw(leaves(counter))
    width = draw(st.integers(2 if kind == "mirror" else 4, 6))
    children = tuple(draw(members(counter)) for _ in range(width))
    return Vdev(f"{kind}-{index}", kind, guid=str(100 + index), children=children, ashift=12)


@st.composite
def scans(draw):
    function = draw(st.sampled_from(("scrub", "resilver", "rebuild", "errorscrub")))
    return Scan(
        function,
        draw(st.sampled_from(("running", "paused", "finished", "canceled"))),
        vdev="mirror-0" if function == "rebuild" else None,
        start=draw(st.sampled_from((100.0, 200.0))),
        percent=draw(st.one_of(st.none(), st.floats(0, 100))),
    )


def _slot(scan: Scan) -> str:
    """Return the name of a scan's counters, which scrub and resilver share in the kernel."""
    return "scan" if scan.function in ("scrub", "resilver") else scan.function


@st.composite
def situations(draw):
    counter = iter(range(1, 1000))
    count = draw(st.integers(1, 3))
    kinds = st.sampled_from(("checkpoint", "removal", "expansion"))
    states = st.sampled_from(("exists", "running", "finished", "paused"))
    activities = st.tuples(kinds, states).map(lambda words: Activity(*words))
    found = pool(
        *(draw(tops(counter, i)) for i in range(count)),
        scans=tuple(draw(st.lists(scans(), max_size=2, unique_by=_slot))),
        activities=tuple(draw(st.lists(activities, max_size=2))),
    )
    features = draw(
        st.dictionaries(
            st.sampled_from(tuple(MODERN.features)), st.sampled_from(("enabled", "disabled"))
        )
    )
    facts = Facts(
        version=draw(st.sampled_from(((), (0, 8, 6), (2, 1, 11), (2, 3, 9), (2, 4, 4)))),
        features=features,
        parameters=draw(st.sampled_from(({}, MODERN.parameters))),
        devices=draw(st.sampled_from(((), (new_disk(),), (new_disk(mounted=("/srv",)),)))),
    )
    return Situation(found, facts, 1000.0, draw(st.booleans()) and draw(st.booleans()))


def keys(s: Situation) -> list[str]:
    """Return the GUIDs of everything in the pool except the root."""
    return [v.guid for v in s.pool.root.walk() if v.guid and v is not s.pool.root]


FACTS = replace(MODERN, devices=(new_disk(),))
OLD_FEATURES = replace(FACTS, features={**MODERN.features, "resilver_defer": "disabled"})
V21 = replace(FACTS, version=(2, 1, 11), parameters={})


def raidz2(*scans, facts=FACTS, changes=(), **fields) -> Situation:
    return at(pool(top("raidz2", 0, 6, *changes), scans=scans, **fields), facts)


def mirror(*scans, facts=FACTS, changes=(), **fields) -> Situation:
    return at(pool(top("mirror", 0, 2, *changes), scans=scans, **fields), facts)


def said(plan: ActionPlan) -> str:
    return "\n".join((*plan.consequences, *plan.not_undone, *plan.warnings, plan.refused or ""))


def replaced(s: Situation, sequential: bool = False) -> ActionPlan:
    return plan_replace(s, Swap("1000", NEW), sequential)
