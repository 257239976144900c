"""What zpool's messages mean to the operator; the raw text is always kept beside them.

Texts from zpool_vdev_attach, zpool_standard_error and others in lib/libzfs/libzfs_pool.c and
libzfs_util.c (2.1 to 2.4).
"""

from __future__ import annotations

from collections.abc import Mapping

MEANINGS: Mapping[str, str] = {
    "permission denied": "This needs root.",
    "device is too small": "The new device is smaller than what this place needs.",
    "different optimal sector size": (
        "The new device's sectors are larger than this vdev is laid out for; use a device with"
        " smaller sectors."
    ),
    "cannot have a higher alignment requirement": (
        "The new device's sectors are larger than this vdev is laid out for; no option helps."
    ),
    "already in replacing/spare config": (
        "The device is being replaced or spared already, or its sectors do not fit; wait for that"
        " to end, or detach the newer device."
    ),
    "can only be replaced by another hot spare": (
        "The device is a spare that is in use; replace the failed device it stands in for."
    ),
    "cannot replace a log with a spare": "Hot spares cannot stand in for log devices.",
    "checkpoint exists": (
        "The pool has a checkpoint, which forbids this; discard it first (zpool checkpoint -d)."
    ),
    "discarding checkpoint": "A checkpoint is being discarded; wait until that is done.",
    "currently sequentially resilvering": (
        "A sequential rebuild runs; wait for its end, or use -s for this one as well."
    ),
    "only mirror and dRAID vdevs support sequential": (
        "raidz has no sequential rebuild; replace without -s."
    ),
    "requires the resilver_defer feature": (
        "Restarting a resilver needs the pool feature resilver_defer, which this pool lacks."
    ),
    "currently resilvering": (
        "A resilver runs; it can be neither paused nor canceled, and this must wait for its end."
    ),
    "currently scrubbing": "A scrub runs already.",
    "scrub is paused": "The scrub is paused already; starting it resumes it.",
    "there is no active scrub": "There is no scrub to pause or stop.",
    "no valid replicas": (
        "Nothing else holds what is on this device; the pool would lose data without it."
    ),
    "only applicable to mirror and replacing vdevs": (
        "Only sides of mirrors, and devices being replaced or spared, can be detached."
    ),
    "reserved as a hot spare": "The device is on the pool's list of hot spares.",
    "is in use and contains": (
        "The new device is in use: in a pool, mounted, or held by something else."
    ),
    "cannot resolve path": "There is no such device on this machine.",
    "use '-f' to override": (
        "Something is on the new device (see below). It is never overwritten by force here: wipe"
        " it first if it is of no use."
    ),
    "is busy": "The device is in use, or a removal runs on the pool.",
    "currently trimming": "The device is being trimmed already.",
    "trim operations are not supported": "The device cannot be trimmed.",
    "currently initializing": "The device is being initialized already.",
    "there is no active": "It is not running on this device.",
    "no such device in pool": "The device is no longer in the pool.",
    "no such pool": "The pool is no longer imported.",
    "remains in faulted state": (
        "ZFS accepted the command, but the device still does not answer: check cable and bay."
    ),
    "I/O is currently suspended": "The pool is suspended: it waits for a device.",
    "raidz_expansion feature": "The pool lacks the feature raidz_expansion.",
    "no such device": "The new device is not there.",
    "cannot open": "The device cannot be opened; see the text below.",
}
"""Part of zpool's message to what it means and what to do; the first that is found counts."""


def explain(text: str) -> str | None:
    """What a message of zpool means in words; None for one that is not known."""
    return next((meaning for part, meaning in MEANINGS.items() if part in text), None)
