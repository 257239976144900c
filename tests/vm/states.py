"""The states of pools, each created on a real pool by a small function.

Scans that should be seen running are slowed by slow disks: they advance a little between two
samples, as real ones do, and last long enough for every source to read them.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import dataclass

from tests.vm.holding import (
    FILL_MB,
    MIB,
    PARAMETERS,
    SCAN_HOLD,
    SLOW_BPS,
    filled_mirror,
    leaf_guid,
    little_in_flight,
    start_replace,
    with_hold,
)
from tests.vm.pools import PoolFactory

ODD_FILES = (
    "a b",
    "tab\there",
    "new\nline",
    "ünïcode",
    "quote'\"",
    "\x1b[31mred",
    "-rf",
    " errors: none",
)
"""File names that are difficult to report."""

ODD_PATHS = tuple(f"/tank/odd/{name}" for name in ODD_FILES)

NOT_UTF8 = "/tank/odd/bad-\udcff-byte"
"""The path of a file whose name has a byte 0xff (surrogate-escaped)."""

ODD_POOL = "errors: a.b-c_d"
"""A pool name that zpool allows and that looks like a line of its own output."""

ODD_VDEVS = ("mirror-0", "a b (c)", "state: ONLINE", "ünï")
"""Names of file vdevs, in separate directories."""

NOTHING = "nothing"
"""Value of ``shows`` for a state without a scan or activity."""

Enter = Callable[[PoolFactory], None]


@dataclass(frozen=True)
class State:
    """A state, the function that creates it, and the first OpenZFS release that has it."""

    name: str
    enter: Enter
    shows: str = NOTHING
    """A scan or activity with its state, as every source reports it."""
    since: tuple[int, int] = (2, 1)
    moving: bool = False
    """Whether a scan or other activity is running, so that two samples differ."""
    pool: str = "tank"
    damaged: tuple[str, ...] = ()
    """Paths of the files with permanent errors."""


def healthy_raidz2(pool: PoolFactory) -> None:
    pool.create("raidz2 d0 d1 d2 d3 d4")
    pool.fill(20)


def healthy_mirrors(pool: PoolFactory) -> None:
    pool.create("mirror d0 d1 mirror d2 d3")
    pool.fill(20)


def scrub_running(pool: PoolFactory) -> None:
    filled_mirror(pool)
    pool.slow(1, bps=SLOW_BPS)
    pool.zpool("scrub", "tank")
    pool.wait_status("scrub in progress")


def scrub_paused(pool: PoolFactory) -> None:
    scrub_running(pool)
    pool.zpool("scrub", "-p", "tank")
    pool.wait_status("scrub paused")


def scrub_canceled(pool: PoolFactory) -> None:
    scrub_running(pool)
    pool.zpool("scrub", "-s", "tank")
    pool.wait_status("scrub canceled")


def scrub_repaired(pool: PoolFactory) -> None:
    filled_mirror(pool)
    pool.machine.corrupt(1, 8 * MIB, 900 * MIB)
    pool.zpool("scrub", "-w", "tank")
    pool.wait_status("scrub repaired [1-9]")


def thorough_scrub_running(pool: PoolFactory) -> None:
    filled_mirror(pool)
    pool.slow(1, bps=SLOW_BPS)
    pool.zpool("scrub", "-t", "tank")
    pool.wait_status("thorough scrub in progress")


def thorough_scrub_paused(pool: PoolFactory) -> None:
    thorough_scrub_running(pool)
    pool.zpool("scrub", "-p", "tank")
    pool.wait_status("thorough scrub paused")


def thorough_scrub_finished(pool: PoolFactory) -> None:
    filled_mirror(pool)
    pool.zpool("scrub", "-t", "-w", "tank")
    pool.wait_status("thorough scrub repaired")


def replace_running(pool: PoolFactory) -> None:
    filled_mirror(pool)
    start_replace(pool, "d1", 2)


def replace_of_offline(pool: PoolFactory) -> None:
    filled_mirror(pool)
    pool.zpool("offline", "tank", "d1")
    start_replace(pool, "d1", 2)


def replace_of_missing(pool: PoolFactory) -> None:
    """Replace a disk that is gone for good: zpool knows it only by its GUID."""
    filled_mirror(pool)
    guid = leaf_guid(pool, 1)
    pool.zpool("export", "tank")
    pool.machine.pull(1)
    pool.zpool("import", "tank")
    start_replace(pool, guid, 2)


def replace_deferred(pool: PoolFactory) -> None:
    """Defer a second replacement until the first one's resilver, which is paused, is done."""
    # Since 2.3, a resilver that has only just begun is restarted instead of waited for.
    percent = f"{PARAMETERS}/zfs_resilver_defer_percent"
    pool.machine.run(f"[ ! -e {percent} ] || echo 0 >{percent}")
    replace_two(pool)
    pool.wait_status("awaiting resilver")


def replace_two_at_once(pool: PoolFactory) -> None:
    replace_two(pool)
    pool.zpool("resilver", "tank")
    pool.machine.run(f"echo 0 >{PARAMETERS}/zfs_scan_suspend_progress")
    pool.wait_until("! zpool status | grep -q 'awaiting resilver'")
    pool.wait_status("resilver in progress")


def replace_two(pool: PoolFactory) -> None:
    """Replace two disks of a raidz2, the second while the first one's resilver is paused."""
    pool.create("raidz2 d0 d1 d2 d3")
    pool.fill(FILL_MB)
    pool.machine.run(f"echo 1 >{PARAMETERS}/zfs_scan_suspend_progress")
    pool.zpool("replace", "-f", "tank", "d0", "d4")
    pool.wait_status("resilver in progress")
    pool.zpool("replace", "-f", "tank", "d1", "d5")
    pool.slow(4, 5, bps=SLOW_BPS // 4)


def replace_finished(pool: PoolFactory) -> None:
    filled_mirror(pool)
    pool.zpool("replace", "-w", "tank", "d1", "d2")
    pool.wait_status("resilvered [1-9]")


def rebuild_running(pool: PoolFactory) -> None:
    filled_mirror(pool)
    pool.slow(2, bps=SLOW_BPS)
    running = "resilver \\(mirror-0\\) in progress"
    with_hold(pool, SCAN_HOLD, running, "replace", "-s", "tank", "d1", "d2")


def rebuild_finished(pool: PoolFactory) -> None:
    filled_mirror(pool)
    pool.zpool("replace", "-s", "-w", "tank", "d1", "d2")
    pool.wait_status("resilvered \\(mirror-0\\)")


def draid_spare_running(pool: PoolFactory) -> None:
    """Rebuild onto the distributed spare, which reads and writes every child."""
    pool.create("draid1:2d:6c:1s d0 d1 d2 d3 d4 d5")
    pool.fill(2 * FILL_MB)
    little_in_flight(pool)
    pool.zpool("offline", "tank", "d0")
    pool.slow(1, 2, 3, 4, 5, bps=SLOW_BPS)
    running = "resilver \\(draid1:2d:6c:1s-0\\) in progress"
    with_hold(pool, SCAN_HOLD, running, "replace", "-s", "tank", "d0", "draid1-0-0")


def draid_spare_in_use(pool: PoolFactory) -> None:
    pool.create("draid1:2d:6c:1s d0 d1 d2 d3 d4 d5")
    pool.fill(20)
    pool.zpool("offline", "tank", "d0")
    pool.zpool("replace", "-w", "tank", "d0", "draid1-0-0")


def draid_domain_lost(pool: PoolFactory) -> None:
    """Lose the second device of both failure groups, as with an enclosure."""
    pool.create("draid1:2d:4c:8w:0s d0 d1 d2 d3 d4 d5 d6 d7")
    pool.fill(20)
    for disk in ("d1", "d5"):
        pool.zpool("offline", "tank", disk)


def sitting_out(pool: PoolFactory) -> None:
    healthy_raidz2(pool)
    pool.zpool("set", "sit_out=on", "tank", "d1")


def hot_spare_in_use(pool: PoolFactory) -> None:
    pool.create("raidz1 d0 d1 d2 spare d3 d4")
    pool.fill(20)
    pool.zpool("offline", "tank", "d0")
    pool.zpool("replace", "-w", "tank", "d0", "d3")
    pool.wait_status("LABDISK3 +INUSE")


def every_class(pool: PoolFactory) -> None:
    groups = "mirror d0 d1 special mirror d2 d3 dedup mirror d4 d5 log mirror d6 d7"
    pool.create(f"{groups} cache d8 spare d9")
    pool.fill(20)


def faulted(pool: PoolFactory) -> None:
    filled_mirror(pool)
    pool.zpool("offline", "-f", "tank", "d1")
    pool.wait_status("LABDISK1 +FAULTED")


def removed(pool: PoolFactory) -> None:
    pool.create("mirror d0 d1")
    pool.machine.pull(1)
    pool.fill(20)  # without I/O and zed(8), nobody notices
    pool.wait_status("LABDISK1 +REMOVED")


def checkpoint(pool: PoolFactory) -> None:
    healthy_mirrors(pool)
    pool.zpool("checkpoint", "tank")
    pool.wait_status("checkpoint: created")


def removal_running(pool: PoolFactory) -> None:
    pool.create("d0 d1")
    pool.fill(2 * FILL_MB)
    pool.slow(1, bps=SLOW_BPS)
    hold = "zfs_removal_suspend_progress"
    with_hold(pool, hold, "remove:.*in progress|Evacuation of", "remove", "tank", "d1")


def removal_finished(pool: PoolFactory) -> None:
    pool.create("d0 d1 d2")
    pool.fill(60)
    pool.zpool("remove", "-w", "tank", "d1")
    pool.wait_status("Removal of vdev 1 copied")


def expansion_running(pool: PoolFactory) -> None:
    pool.create("raidz1 d0 d1 d2")
    pool.fill(FILL_MB)
    pool.slow(3, bps=SLOW_BPS)
    pool.zpool("attach", "tank", "raidz1-0", "d3")
    pool.wait_status("expansion of raidz1-0 in progress")


def expansion_finished(pool: PoolFactory) -> None:
    pool.create("raidz1 d0 d1 d2")
    pool.fill(40)
    pool.zpool("attach", "-w", "tank", "raidz1-0", "d3")
    pool.wait_status("expanded raidz1-0")


def condense_running(pool: PoolFactory) -> None:
    """Start a condense; it waits for a txg that takes a while on slow disks."""
    healthy_mirrors(pool)
    pool.slow(0, 1, 2, 3, bps=SLOW_BPS // 16)
    pool.machine.run(f"cat $(yes /run/block | head -n {FILL_MB}) >/tank/more")
    pool.machine.run("(zpool sync >/dev/null 2>&1 &) ; sleep 1")
    pool.machine.run("(zpool condense -t log_spacemap tank >/dev/null 2>&1 &)")
    pool.wait_status("log_spacemap: condensing")


def condense_canceled(pool: PoolFactory) -> None:
    condense_running(pool)
    pool.zpool("condense", "-c", "-t", "log_spacemap", "tank")
    pool.slow(0, 1, 2, 3, bps=0)
    pool.zpool("sync", "tank")
    pool.wait_status("log_spacemap: cancelled")


def condense_finished(pool: PoolFactory) -> None:
    healthy_mirrors(pool)
    pool.zpool("condense", "-w", "tank")
    pool.wait_status("log_spacemap: done")


def trim_running(pool: PoolFactory) -> None:
    pool.create("mirror d0 d1")
    # The rate limit works between two extents of a metaslab, which by default is a single one.
    pool.machine.run(f"echo {4 * MIB} >{PARAMETERS}/zfs_trim_extent_bytes_max")
    pool.zpool("trim", "-r", "8M", "tank")
    pool.wait_status("trimming")


def trim_finished(pool: PoolFactory) -> None:
    healthy_mirrors(pool)
    pool.zpool("trim", "-w", "tank")


def trim_suspended(pool: PoolFactory) -> None:
    trim_running(pool)
    pool.zpool("trim", "-s", "tank")


def initialize_running(pool: PoolFactory) -> None:
    pool.create("mirror d0 d1")
    pool.slow(0, 1, bps=8 * SLOW_BPS)
    pool.zpool("initialize", "tank")
    pool.wait_status("initializing")


def initialize_suspended(pool: PoolFactory) -> None:
    initialize_running(pool)
    pool.zpool("initialize", "-s", "tank")


def permanent_errors(pool: PoolFactory) -> None:
    damaged_files(pool, ODD_PATHS)


def permanent_error_not_utf8(pool: PoolFactory) -> None:
    damaged_files(pool, (NOT_UTF8,))


def error_scrub_finished(pool: PoolFactory) -> None:
    damaged_files(pool, ("/tank/odd/file",))
    pool.machine.run("sleep 1")  # JSON leaves out one that began in the same second
    pool.zpool("scrub", "-e", "-w", "tank")


def damaged_files(pool: PoolFactory, paths: tuple[str, ...]) -> None:
    """Damage the only copy of files in dataset ``tank/odd``, and find that by a scrub."""
    pool.create("d0")
    writes = [f"head -c 64K /dev/urandom >{shlex.quote(path)}" for path in paths]
    # On one processor, files are numbered, and listed by zpool, in this order: the last one ends
    # text.
    first = "taskset --cpu-list --pid 0 $$ && zfs create tank/odd"
    pool.machine.run(" && ".join([first, *writes, "zpool sync"]))
    pool.damage("tank/odd", paths, 0)
    pool.zpool("scrub", "-w", "tank")
    pool.wait_status("^ +/tank/")


def odd_names(pool: PoolFactory) -> None:
    """Create a pool and leaves with names that look like zpool's own words."""
    paths = [f"/var/tmp/odd{number}/{name}" for number, name in enumerate(ODD_VDEVS)]
    for path in paths:
        quoted = shlex.quote(path)
        pool.machine.run(f'mkdir -p "$(dirname {quoted})" && truncate -s 256M {quoted}')
    pool.zpool("create", "-f", ODD_POOL, "mirror", *paths[:2], "mirror", *paths[2:])


STATES = (
    State("healthy raidz2", healthy_raidz2),
    State("healthy mirrors", healthy_mirrors),
    State("scrub running", scrub_running, "scrub running", moving=True),
    State("scrub paused", scrub_paused, "scrub paused"),
    State("scrub canceled", scrub_canceled, "scrub canceled"),
    State("scrub finished with repairs", scrub_repaired, "scrub finished"),
    State(
        "thorough scrub running",
        thorough_scrub_running,
        "scrub running",
        since=(2, 5),
        moving=True,
    ),
    State("thorough scrub paused", thorough_scrub_paused, "scrub paused", since=(2, 5)),
    State("thorough scrub finished", thorough_scrub_finished, "scrub finished", since=(2, 5)),
    State("replace running", replace_running, "resilver running", moving=True),
    State("replace of an offline disk", replace_of_offline, "resilver running", moving=True),
    State("replace of a missing disk", replace_of_missing, "resilver running", moving=True),
    State("replace deferred", replace_deferred, "resilver running"),
    State("two replaces at once", replace_two_at_once, "resilver running", moving=True),
    State("replace finished", replace_finished, "resilver finished"),
    State("sequential rebuild running", rebuild_running, "rebuild running", moving=True),
    State("sequential rebuild finished", rebuild_finished, "rebuild finished"),
    State("draid rebuild running", draid_spare_running, "rebuild running", moving=True),
    State("draid spare in use", draid_spare_in_use, "resilver finished"),
    State("draid failure domain lost", draid_domain_lost, since=(2, 5)),
    State("sitting out", sitting_out, since=(2, 4)),
    State("hot spare in use", hot_spare_in_use, "resilver finished"),
    State("every class", every_class),
    State("faulted", faulted),
    State("removed", removed),
    State("checkpoint", checkpoint, "checkpoint exists"),
    State("removal running", removal_running, "removal running", moving=True),
    State("removal finished", removal_finished, "removal finished"),
    State(
        "raidz expansion running", expansion_running, "expansion running", since=(2, 3), moving=True
    ),
    State("raidz expansion finished", expansion_finished, "expansion finished", since=(2, 3)),
    State("condense running", condense_running, "condense running", since=(2, 5), moving=True),
    State("condense canceled", condense_canceled, "condense canceled", since=(2, 5)),
    State("condense finished", condense_finished, "condense finished", since=(2, 5)),
    State("trim running", trim_running, "trim running", moving=True),
    State("trim suspended", trim_suspended),
    State("trim finished", trim_finished),
    State("initialize running", initialize_running, "initialize running", moving=True),
    State("initialize suspended", initialize_suspended),
    State("permanent errors", permanent_errors, "scrub finished", damaged=ODD_PATHS),
    State(
        "permanent error not UTF-8", permanent_error_not_utf8, "scrub finished", damaged=(NOT_UTF8,)
    ),
    State(
        "error scrub finished",
        error_scrub_finished,
        "errorscrub finished",
        since=(2, 2),
        damaged=("/tank/odd/file",),
    ),
    State("odd names", odd_names, pool=ODD_POOL),
)
"""Every state that all sources can read; `suspended` is not among them."""
