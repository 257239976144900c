"""The tunables that matter for a resilver, scrub, rebuild or rebalance.

Meanings and defaults: zfs(4), and module/zfs/{dsl_scan,vdev_queue,vdev_rebuild,metaslab,arc,dmu}.c
of OpenZFS 0.6.5 to 2.4.4. Ranges are narrower than the kernel's where its own are absurd.
"""

from __future__ import annotations

from zconsole.tunables.tunable import MIB, U64, Tunable

_SLOWER_SYNC = (
    "stretches every transaction group: synchronous writes of every pool wait longer"
)

SCAN_TIME = (
    Tunable(
        "zfs_resilver_min_time_ms", "least time a transaction group gives to resilvering", "ms",
        1, 60_000, (((0, 6), 3000), ((2, 4, 1), 1500)), "resilver", note=_SLOWER_SYNC,
    ),
    Tunable(
        "zfs_scrub_min_time_ms", "least time a transaction group gives to scrubbing", "ms",
        1, 60_000, (((0, 8), 1000), ((2, 4, 1), 750)), "scrub", note=_SLOWER_SYNC,
    ),
    Tunable(
        "zfs_free_min_time_ms", "least time a transaction group gives to freeing blocks", "ms",
        1, 60_000, (((0, 6), 1000), ((2, 4, 1), 500)), "everything",
    ),
    Tunable(
        "zfs_txg_timeout", "longest time between transaction groups", "s", 1, 300,
        (((0, 6), 5),), "everything", note="leave it",
    ),
)

QUEUES = (
    Tunable(
        "zfs_vdev_max_active", "I/Os a device is given at once, all classes together", "I/Os",
        1, 100_000, (((0, 6), 1000),), "everything", note="at least the sum of the classes' own",
    ),
    Tunable(
        "zfs_vdev_scrub_min_active", "scan reads a device gets while other I/O waits", "I/Os",
        1, 1000, (((0, 6), 1),), "scans", note="of healing resilvers and scrubs",
    ),
    Tunable(
        "zfs_vdev_scrub_max_active", "scan reads a device gets when nothing else waits", "I/Os",
        1, 1000, (((0, 6), 2), ((2, 0), 3)), "scans", note="of healing resilvers and scrubs",
    ),
    Tunable(
        "zfs_vdev_rebuild_min_active", "rebuild I/Os a device gets while other I/O waits", "I/Os",
        1, 1000, (((2, 0), 1),), "rebuild",
    ),
    Tunable(
        "zfs_vdev_rebuild_max_active", "rebuild I/Os a device gets when nothing else waits",
        "I/Os", 1, 1000, (((2, 0), 3),), "rebuild",
    ),
    Tunable(
        "zfs_vdev_async_write_min_active", "writes a device gets when little is dirty", "I/Os",
        1, 1000, (((0, 6), 1), ((0, 7), 2)), "writes",
        note="a healing resilver writes to the new disk with it: raise it when that disk is the"
        " limit and not fully busy",
    ),
    Tunable(
        "zfs_vdev_async_write_max_active", "writes a device gets when much is dirty", "I/Os",
        1, 1000, (((0, 6), 10),), "writes",
    ),
    Tunable(
        "zfs_vdev_async_read_min_active", "prefetch reads a device gets at least", "I/Os",
        1, 1000, (((0, 6), 1),), "scans", note="scan metadata is prefetched with it",
    ),
    Tunable(
        "zfs_vdev_async_read_max_active", "prefetch reads a device gets at most", "I/Os",
        1, 1000, (((0, 6), 3),), "scans",
    ),
    Tunable(
        "zfs_vdev_nia_delay", "quiet I/Os before scans get their maximum", "I/Os", 1, 1000,
        (((2, 0), 5),), "scans",
    ),
    Tunable(
        "zfs_vdev_nia_credit", "scan I/Os allowed while other I/O is at work", "I/Os", 1, 1000,
        (((2, 0), 5),), "scans",
    ),
)

SCAN = (
    Tunable(
        "zfs_scan_vdev_limit", "scan reads in flight for each disk of a vdev", "bytes", MIB // 16,
        1024 * MIB, (((0, 8), 4 * MIB), ((2, 1, 12), 16 * MIB)), "scans",
        note="all together at most a quarter of the largest ARC",
    ),
    Tunable(
        "zfs_scan_legacy", "1 scans in one unsorted stage, as before 0.8", "0/1", 0, 1,
        (((0, 8), 0),), "scans", running_scan=False, note="slower; a running scan cannot go back",
    ),
    Tunable(
        "zfs_scan_mem_lim_fact", "memory to sort in: 1/N of RAM", "1/N", 1, 10_000,
        (((0, 8), 20),), "scans",
    ),
    Tunable(
        "zfs_scan_mem_lim_soft_fact", "below the limit by 1/N before scanning goes on", "1/N",
        1, 10_000, (((0, 8), 20),), "scans",
    ),
    Tunable(
        "zfs_scan_strict_mem_lim", "1 never exceeds the memory limit", "0/1", 0, 1,
        (((0, 8), 0),), "scans",
    ),
    Tunable(
        "zfs_scan_issue_strategy", "order of issue: 0 by need, 1 by address, 2 by size", "choice",
        0, 2, (((0, 8), 0),), "scans",
    ),
    Tunable(
        "zfs_scan_checkpoint_intval", "how often progress is saved to disk", "s", 60, 86_400,
        (((0, 8), 7200),), "scans", note="what a reboot loses of the scan",
    ),
    Tunable(
        "zfs_scan_fill_weight", "how much fuller extents are preferred", "factor", 1, 100,
        (((0, 8), 3),), "scans", running_scan=False,
    ),
    Tunable(
        "zfs_scan_max_ext_gap", "largest gap inside a sorted extent", "bytes", 4096, 1024 * MIB,
        (((0, 8), 2 * MIB),), "scans", running_scan=False,
    ),
    Tunable(
        "zfs_scan_suspend_progress", "1 freezes every scan of every pool", "0/1", 0, 1,
        (((0, 8), 0),), "scans", guarded=True,
        note="the only way to hold a resilver; redundancy stays missing meanwhile, so a guard"
        " process puts it back",
    ),
    Tunable(
        "zfs_scan_report_txgs", "transaction groups in zpool's own rate; 0 is the whole pass",
        "txgs", 0, 100_000, (((2, 1, 12), 0),), "scans",
    ),
    Tunable(
        "zfs_no_scrub_prefetch", "1 walks metadata without prefetching", "0/1", 0, 1,
        (((0, 6), 0),), "scans",
    ),
    Tunable(
        "zfs_scan_ignore_errors", "1 calls a resilver good in spite of errors", "0/1", 0, 1,
        (((0, 8), 0),), "scans", never="it declares redundancy restored that is not",
    ),
    Tunable(
        "zfs_no_scrub_io", "1 walks a scan without reading a block", "0/1", 0, 1,
        (((0, 6), 0),), "scans", never="it lets a scan finish that has read nothing",
    ),
    Tunable(
        "zfs_resilver_disable_defer", "1 restarts a running resilver for every new disk", "0/1",
        0, 1, (((0, 8), 0),), "resilver",
    ),
    Tunable(
        "zfs_resilver_defer_percent", "below this a running resilver restarts for a new disk",
        "%", 0, 100, (((2, 3), 10),), "resilver",
    ),
    Tunable(
        "zfs_import_defer_txgs", "transaction groups that scans wait after import", "txgs", 0,
        1000, (((2, 4), 5),), "scans", running_scan=False,
    ),
)

REBUILD = (
    Tunable(
        "zfs_rebuild_max_segment", "largest read of a rebuild", "bytes", 4096, 16 * MIB,
        (((2, 0), MIB),), "rebuild",
    ),
    Tunable(
        "zfs_rebuild_vdev_limit", "rebuild I/O in flight for each disk of a vdev", "bytes",
        MIB, 1024 * MIB, (((2, 1), 32 * MIB), ((2, 1, 12), 64 * MIB)), "rebuild",
    ),
    Tunable(
        "zfs_rebuild_queue_limit", "rebuild I/Os in flight for each vdev (2.0 only)", "I/Os",
        1, 1000, (((2, 0), 20),), "rebuild",
    ),
    Tunable(
        "zfs_rebuild_scrub_enabled", "1 scrubs by itself after a rebuild", "0/1", 0, 1,
        (((2, 1), 1),), "rebuild", note="keep it: a rebuild checks no checksum",
    ),
    Tunable(
        "zfs_scrub_after_expand", "1 scrubs by itself after a raidz expansion", "0/1", 0, 1,
        (((2, 3), 1),), "scrub",
    ),
)

SPACE = (
    Tunable(
        "metaslab_perf_bias", "how much faster vdevs get more of the writes", "choice", 0, 2,
        (((2, 4), 1),), "writes", running_scan=False, note="0 while rebalancing",
    ),
    Tunable(
        "metaslab_bias_enabled", "1 gives emptier vdevs more of the writes", "0/1", 0, 1,
        (((0, 6), 1),), "writes", running_scan=False,
    ),
    Tunable(
        "metaslab_aliquot", "bytes written to a vdev before it is the next one's turn", "bytes",
        4096, 1024 * MIB, (), "writes", running_scan=False,
    ),
    Tunable(
        "zfs_bclone_enabled", "1 lets copies share blocks", "0/1", 0, 1,
        (((2, 2, 1), 0), ((2, 3), 1)), "everything", running_scan=False,
        note="host-wide; rebalance copies in a way that it does not touch",
    ),
    Tunable(
        "zfs_delete_blocks", "larger files are freed in the background", "blocks", 1, U64,
        (((0, 6), 20_480),), "everything", running_scan=False,
    ),
    Tunable(
        "zfs_dmu_offset_next_sync", "1 syncs a dirty file to find its holes", "0/1", 0, 1,
        (((0, 7), 0), ((2, 1), 1)), "everything", running_scan=False,
    ),
    Tunable(
        "spa_slop_shift", "space held back: 1/2^N of the pool", "shift", 1, 31, (((0, 6), 5),),
        "everything", running_scan=False, never="it takes away what lets a full pool be deleted"
        " from",
    ),
)

MEMORY = (
    Tunable(
        "zfs_dirty_data_max", "unwritten data before writers are slowed", "bytes", 64 * MIB,
        U64, (), "everything", note="leave it; depends on RAM",
    ),
    Tunable(
        "zfs_arc_max", "largest ARC; 0 lets ZFS choose", "bytes", 64 * MIB, U64, (((0, 6), 0),),
        "everything", running_scan=False,
        never="it shrinks slowly and cannot be set back to 0: use /etc/modprobe.d",
    ),
    Tunable(
        "zfs_prefetch_disable", "1 reads no file ahead", "0/1", 0, 1, (((0, 6), 0),),
        "everything", running_scan=False,
    ),
)

TUNABLES: tuple[Tunable, ...] = (*SCAN_TIME, *QUEUES, *SCAN, *REBUILD, *SPACE, *MEMORY)
"""Every known tunable, those one reaches for first at the top."""

BY_NAME = {tunable.name: tunable for tunable in TUNABLES}
