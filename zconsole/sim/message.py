"""The ``status:`` and ``action:`` texts zpool prints for a state (print_status_reason)."""

from __future__ import annotations

from typing import Any

from zconsole.sim.state import PoolState

_SUFFICIENT = (
    "\tSufficient replicas exist for the pool to continue functioning in a\n\tdegraded state.\n"
)
_URL = "https://openzfs.github.io/openzfs-docs/msg/"

RESILVERING = (
    "One or more devices is currently being resilvered.  The pool will\n"
    "\tcontinue to function, possibly in a degraded state.\n",
    "Wait for the resilver to complete.\n",
    "",
)
SUSPENDED = (
    "One or more devices are faulted in response to IO failures.\n",
    "Make sure the affected devices are connected, then run 'zpool clear'.\n",
    "ZFS-8000-HC",
)
CORRUPT = (
    "One or more devices has experienced an error resulting in data\n"
    "\tcorruption.  Applications may be affected.\n",
    "Restore the file in question if possible.  Otherwise restore the\n"
    "\tentire pool from backup.\n",
    "ZFS-8000-8A",
)
FAULTED = (
    f"One or more devices are faulted in response to persistent errors.\n{_SUFFICIENT}",
    "Replace the faulted device, or use 'zpool clear' to mark the device\n\trepaired.\n",
    "",
)
MISSING = (
    "One or more devices could not be opened.  Sufficient replicas exist for\n"
    "\tthe pool to continue functioning in a degraded state.\n",
    "Attach the missing device and online it using 'zpool online'.\n",
    "ZFS-8000-2Q",
)
REMOVED = (
    f"One or more devices have been removed.\n{_SUFFICIENT}",
    "Online the device using zpool online' or replace the device with\n\t'zpool replace'.\n",
    "",
)
OFFLINE = (
    f"One or more devices has been taken offline by the administrator.\n{_SUFFICIENT}",
    "Online the device using 'zpool online' or replace the device with\n\t'zpool replace'.\n",
    "",
)
ERRORS = (
    "One or more devices has experienced an unrecoverable error.  An\n"
    "\tattempt was made to correct the error.  Applications are unaffected.\n",
    "Determine if the device needs to be replaced, and clear the errors\n"
    "\tusing 'zpool clear' or replace the device with 'zpool replace'.\n",
    "ZFS-8000-9P",
)


def message(pool: PoolState) -> dict[str, Any]:
    """The ``message`` of the raw form: status, action, see and names of damaged files."""
    found: dict[str, Any] = {"errors": list(pool.damaged)}
    texts = _reason(pool)
    if texts is not None:
        found["status"], found["action"] = texts[0], texts[1]
        if texts[2]:
            found["see"] = _URL + texts[2]
    return found


def _reason(pool: PoolState) -> tuple[str, str, str] | None:
    """The first that applies, in the order of check_status (lib/libzfs/libzfs_status.c)."""
    leaves = [leaf for top in pool.tops for leaf in top.leaves()]
    states = {leaf.state for leaf in leaves}
    if pool.suspended:
        return SUSPENDED
    if pool.resilvering or pool.rebuilding:
        return RESILVERING
    if int(pool.data_errors):
        return CORRUPT
    for state, texts in ((5, FAULTED), (4, MISSING), (2, OFFLINE), (3, REMOVED)):
        if state in states:
            return texts
    if any(int(x.reads.errors) + int(x.writes.errors) + int(x.cksum_errors) for x in leaves):
        return ERRORS
    return None
