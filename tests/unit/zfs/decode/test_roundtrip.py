"""The text that zpool would print of any pool is decoded to that pool."""

from __future__ import annotations

from datetime import UTC

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.records import replace
from zconsole.pool.model import Activity, ErrorCounters, Pool, Scan, Vdev
from zconsole.sim.zpool_text import status
from zconsole.zfs.decode.builders import with_spares
from zconsole.zfs.decode.text import pools_of
from zconsole.zfs.decode.values import kind_of

pytestmark = pytest.mark.slow

SIZES = st.builds(lambda n, k: n * 1024**k, st.integers(1, 999), st.integers(0, 5))
TIMES = st.integers(0, 2**32).map(float)
COUNTS = st.integers(0, 999)
ERRORS = st.builds(ErrorCounters, COUNTS, COUNTS, COUNTS, st.none())
STATES = st.sampled_from(["ONLINE", "DEGRADED", "FAULTED", "OFFLINE", "UNAVAIL", "REMOVED"])
DISKS = st.one_of(
    st.integers(0, 10**9).map(lambda n: f"wwn-0x{n:x}-part3"),
    st.sampled_from(
        ["sda", "c0t50014EE6ADAECACFd0", "gpt/disk 1", "OK disk", "größe", "da0p1.eli"]
    ),
)
NOTES = st.sampled_from(["", "cannot open", "too many errors", "(non-allocating)"])
FILES = st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]), min_size=1)
PERCENTS = st.integers(0, 20000).map(lambda n: n / 100)


@st.composite
def disks(draw: st.DrawFn, vclass: str) -> Vdev:
    if vclass == "spare":
        state = draw(st.sampled_from(["AVAIL", "INUSE", "UNAVAIL"]))
        note = "currently in use" if state == "INUSE" else ""
        return Vdev(draw(DISKS), "disk", vclass, state, note=note)
    note = draw(NOTES)
    allocating = False if "non-alloc" in note else None
    errors, state = draw(ERRORS), draw(STATES)
    return Vdev(draw(DISKS), "disk", vclass, state, note=note, errors=errors, allocating=allocating)


@st.composite
def groups(draw: st.DrawFn, vclass: str, index: int) -> Vdev:
    stem = draw(st.sampled_from(["mirror", "raidz1", "raidz2", "raidz3"]))
    children = draw(st.lists(disks(vclass), min_size=1, max_size=4))
    if draw(st.booleans()):
        inner = draw(st.lists(disks(vclass), min_size=2, max_size=2))
        kind = draw(st.sampled_from(["replacing", "spare"]))
        name = f"{kind}-{len(children)}"
        errors = draw(ERRORS)
        children.append(
            Vdev(name, kind, vclass, draw(STATES), errors=errors, children=tuple(inner))
        )
    name = f"{stem}-{index}"
    kind_found = kind_of(name) or ""
    return Vdev(
        name=name,
        kind=kind_found,
        vclass=vclass,
        state=draw(STATES),
        errors=draw(ERRORS),
        children=tuple(children),
    )


@st.composite
def roots(draw: st.DrawFn, name: str) -> Vdev:
    children: list[Vdev] = []
    for vclass in ("normal", "dedup", "special", "log", "cache", "spare"):
        for _ in range(draw(st.integers(vclass == "normal", 2))):
            grouped = vclass not in ("cache", "spare") and draw(st.booleans())
            children.append(draw(groups(vclass, len(children)) if grouped else disks(vclass)))
    errors = draw(ERRORS)
    found = with_spares(tuple(children))
    return Vdev(name, "root", state=draw(STATES), errors=errors, children=found)


@st.composite
def active_scans(draw: st.DrawFn) -> Scan:
    function = draw(st.sampled_from(["scrub", "resilver", "rebuild"]))
    paused = function == "scrub" and draw(st.booleans())
    scanned, total, scan_rate = draw(SIZES), draw(SIZES), draw(SIZES)
    walked = scanned == total
    return Scan(
        function=function,
        state="paused" if paused else "running",
        stage=None if paused else "issuing" if walked else "scanning",
        vdev="mirror-0" if function == "rebuild" else None,
        start=draw(TIMES),
        total_bytes=total,
        scanned_bytes=scanned,
        issued_bytes=draw(SIZES),
        processed_bytes=draw(SIZES),
        percent=draw(PERCENTS),
        zpool_eta=None if paused else draw(st.none() | st.integers(0, 10**7).map(float)),
        zpool_scan_rate=None if paused else scan_rate,
        zpool_issue_rate=None if paused else draw(SIZES),
        paused_since=draw(TIMES) if paused else None,
        thorough=False if function == "scrub" else None,
    )


@st.composite
def ended_scans(draw: st.DrawFn) -> Scan:
    function = draw(st.sampled_from(["scrub", "resilver", "rebuild"]))
    vdev = "draid1:3d:7c:1s-0" if function == "rebuild" else None
    end = draw(TIMES)
    if draw(st.booleans()):
        thorough = False if function == "scrub" else None
        return Scan(function, "canceled", vdev=vdev, end=end, thorough=thorough)
    return Scan(
        function=function,
        state="finished",
        vdev=vdev,
        end=end,
        processed_bytes=draw(SIZES),
        errors=draw(COUNTS),
        duration=float(draw(st.integers(0, 10**7))),
        thorough=False if function == "scrub" else None,
    )


@st.composite
def activities(draw: st.DrawFn) -> Activity:
    if draw(st.booleans()):
        return Activity("checkpoint", "exists", start=draw(TIMES), total_bytes=draw(SIZES))
    return Activity(
        kind="expansion",
        state="running",
        vdev="raidz1-0",
        start=draw(TIMES),
        done_bytes=draw(SIZES),
        total_bytes=draw(SIZES),
        percent=draw(PERCENTS),
        zpool_eta=9.0,
        zpool_rate=1 << 20,
    )


@st.composite
def pools(draw: st.DrawFn) -> Pool:
    name = draw(st.sampled_from(["tank", "my pool", "z.a-b_c:1"]))
    files = tuple(draw(st.lists(FILES, max_size=3)))
    count = len(files) or draw(COUNTS)
    active, ended = (st.lists(scans, max_size=1) for scans in (active_scans(), ended_scans()))
    return Pool(
        name=name,
        state=draw(STATES),
        root=draw(roots(name)),
        message=draw(st.none() | st.just("One or more devices. Sufficient replicas exist.")),
        action=draw(st.none() | st.just("Wait for the resilver to complete.")),
        scans=(*draw(active), *draw(ended)),
        activities=tuple(draw(st.lists(activities(), max_size=1))),
        error_count=count,
        errors=files if files else (() if count == 0 else None),
    )


def without_resolution(pool: Pool) -> Pool:
    """Return a pool without the resolution of figures, which is not printed."""
    scans = (replace(scan, resolution=0.0, printed=False) for scan in pool.scans)
    copies = (replace(activity, resolution=0.0) for activity in pool.activities)
    return replace(pool, scans=tuple(scans), activities=tuple(copies))


@given(st.lists(pools(), min_size=1, max_size=2))
@settings(max_examples=55, suppress_health_check=[HealthCheck.too_slow])
def test_printed_pools_read_back(several: list[Pool]) -> None:
    text = "\n".join(status(pool) for pool in several)
    assert [without_resolution(pool) for pool in pools_of(text, UTC)] == several
