"""What each option of a rebalance is for, in a phrase: for the command line and the console."""

from __future__ import annotations

HELP = {
    "engine": "copy files, rewrite them in place, or choose",
    "aim": "what to gain: even fill (default); parity width after an expansion; "
    "new compression or checksum; new recordsize",
    "rewrite_options": "options of zfs rewrite: P keeps incremental sends from growing (OpenZFS"
    " 2.4); S and C leave alone what snapshots hold and what was cloned (2.5)",
    "accept_races": "copy even where another program's write could be lost: directories shared"
    " over NFS or SMB, or before OpenZFS 2.2",
    "during_scan": "don't wait for scans to end",
    "rate": "move at most this much per second",
    "max_latency": "throttle while the latency of the disks is above this",
    "max_bytes": "stop after moving this much",
    "until_spread": "stop when the fills of the vdevs differ by no more than this",
    "min_free": "keep this share of the pool free",
    "window": "work only in these hours of the day",
}
"""By the option's name in the settings."""
