"""zpool's refusals in the operator's words; the raw text is always kept beside them.

Texts from zpool_vdev_attach, zpool_standard_error and others in lib/libzfs/libzfs_pool.c and
libzfs_util.c (2.1 to 2.4).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Refusal:
    """What a message means and what to do about it."""

    marker: str
    """The part of zpool's message that tells it."""
    meaning: str


KNOWN: tuple[Refusal, ...] = (
    Refusal("permission denied", "This needs root."),
    Refusal("device is too small", "The new device is smaller than what this place needs."),
    Refusal(
        "different optimal sector size",
        "The new device's sectors are larger than this vdev is laid out for; use a device with"
        " smaller sectors.",
    ),
    Refusal(
        "cannot have a higher alignment requirement",
        "The new device's sectors are larger than this vdev is laid out for; no option helps.",
    ),
    Refusal(
        "already in replacing/spare config",
        "The device is being replaced or spared already, or its sectors do not fit; wait for that"
        " to end, or detach the newer device.",
    ),
    Refusal(
        "can only be replaced by another hot spare",
        "The device is a spare that is in use; replace the failed device it stands in for.",
    ),
    Refusal("cannot replace a log with a spare", "Hot spares cannot stand in for log devices."),
    Refusal(
        "checkpoint exists",
        "The pool has a checkpoint, which forbids this; discard it first (zpool checkpoint -d).",
    ),
    Refusal("discarding checkpoint", "A checkpoint is being discarded; wait until that is done."),
    Refusal(
        "currently sequentially resilvering",
        "A sequential rebuild runs; wait for its end, or use -s for this one as well.",
    ),
    Refusal(
        "only mirror and dRAID vdevs support sequential",
        "raidz has no sequential rebuild; replace without -s.",
    ),
    Refusal(
        "requires the resilver_defer feature",
        "Restarting a resilver needs the pool feature resilver_defer, which this pool lacks.",
    ),
    Refusal(
        "currently resilvering",
        "A resilver runs; it can be neither paused nor canceled, and this must wait for its end.",
    ),
    Refusal("currently scrubbing", "A scrub runs already."),
    Refusal("scrub is paused", "The scrub is paused already; starting it resumes it."),
    Refusal("there is no active scrub", "There is no scrub to pause or stop."),
    Refusal(
        "no valid replicas",
        "Nothing else holds what is on this device; the pool would lose data without it.",
    ),
    Refusal(
        "only applicable to mirror and replacing vdevs",
        "Only sides of mirrors, and devices being replaced or spared, can be detached.",
    ),
    Refusal("reserved as a hot spare", "The device is on the pool's list of hot spares."),
    Refusal(
        "is in use and contains",
        "The new device is in use: in a pool, mounted, or held by something else.",
    ),
    Refusal("cannot resolve path", "There is no such device on this machine."),
    Refusal(
        "use '-f' to override",
        "Something is on the new device (see below). It is never overwritten by force here: wipe"
        " it first if it is of no use.",
    ),
    Refusal("is busy", "The device is in use, or a removal runs on the pool."),
    Refusal("currently trimming", "The device is being trimmed already."),
    Refusal("trim operations are not supported", "The device cannot be trimmed."),
    Refusal("currently initializing", "The device is being initialized already."),
    Refusal("there is no active", "It is not running on this device."),
    Refusal("no such device in pool", "The device is no longer in the pool."),
    Refusal("no such pool", "The pool is no longer imported."),
    Refusal(
        "remains in faulted state",
        "ZFS accepted the command, but the device still does not answer: check cable and bay.",
    ),
    Refusal("I/O is currently suspended", "The pool is suspended: it waits for a device."),
    Refusal("raidz_expansion feature", "The pool lacks the feature raidz_expansion."),
    Refusal("no such device", "The new device is not there."),
    Refusal("cannot open", "The device cannot be opened; see the text below."),
)


def explain(text: str) -> str | None:
    """What a message of zpool means in words; None for one that is not known."""
    return next((known.meaning for known in KNOWN if known.marker in text), None)
