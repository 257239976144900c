"""The raw form: one pool at one moment as a source returns it, and one line of a recording.

A ``Raw`` is the JSON object of the recording format. Live sources, recordings, saved output and the
simulated pool all produce it; only ``zconsole.zfs.decode`` turns it into the model, so that a
replayed sample is treated exactly like a live one. A recording needs a time ``t`` and one form of
the pool (``libzfs``, ``status`` or ``text``); other keys may be absent, and a reader ignores those
it does not know.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from struct import unpack
from typing import Any, Required, TypedDict

FORM_TYPES: Mapping[str, type] = {"libzfs": dict, "status": dict, "text": str}
FORMS = tuple(FORM_TYPES)
"""The forms in which a pool's state may be given, best first."""

_LONGER = {"scrub": "async_scrub", "trim": "async_trim"}
QUEUES: Mapping[str, tuple[str, str]] = {
    name: (f"vdev_{key}_pend_queue", f"vdev_{key}_active_queue")
    for name in ("sync_r", "sync_w", "async_r", "async_w", "scrub", "trim", "rebuild")
    for key in (_LONGER.get(name, name),)
}
"""Keys of the queue lengths in an nvlist, waiting and active, by class of I/O
(``ZPOOL_CONFIG_VDEV_*_QUEUE``), in the order of ``zpool iostat -q``."""
HISTOGRAMS: Mapping[str, str] = {
    name: f"vdev_{name}_lat_histo" for name in ("disk_r", "disk_w", "sync_r", "sync_w", "async_r")
}
"""Keys of the latency histograms in an nvlist (include/sys/fs/zfs.h): disk time by direction, and
queue wait of the I/O that applications request."""


class Raw(TypedDict, total=False):
    """One pool at one moment, as its source printed or returned it."""

    t: Required[float]
    """Epoch seconds when the sample was complete."""
    undated: bool
    """``t`` is only the time when saved output was read or its file written, so no rates or
    durations are derived from it."""
    clock: float
    """Seconds of CLOCK_BOOTTIME on the sampled machine, for time differences."""
    began: float
    """Seconds of ``clock`` when reading began: the form contains nothing older."""
    boot: str
    """The boot id for which ``clock`` is valid."""
    source: str
    """The origin of the sample: libzfs (the kernel's config, by the call that libzfs makes), json,
    text or demo; ``replay`` when read from a recording."""
    pool: str
    """The requested pool; always set by live sources."""
    libzfs: Mapping[str, Any]
    """The config nvlist as a JSON object: only the names the reader asks for, arrays as lists. If
    just read from the kernel, arrays of integers may still be packed (``numbers``)."""
    status: Mapping[str, Any]
    """A ``zpool status -jP --json-int`` document (numbers may also be strings)."""
    text: str
    """``zpool status`` output."""
    names: Mapping[str, str]
    """Leaf path to the name that ``zpool status`` prints, if the form has only the path."""
    message: Mapping[str, Any]
    """Information that only zpool has, for a libzfs sample: ``status``, ``action``, ``see``,
    ``errors``, and ``destroyed``, former names of datasets in errors that no longer exist."""
    sitting_out: Sequence[Mapping[str, str]]
    """``guid``, ``path`` and ``name`` of each leaf whose property ``sit_out`` is on."""
    autosit: Sequence[Mapping[str, str]]
    """``guid``, ``name`` and ``value`` (on or off) of each top-level vdev with that property."""
    history: Mapping[str, Any]
    """Scrubs from ``zpool history -i`` (``zfs.sources.occasional.PastScrubs``)."""
    volumes: Mapping[str, int]
    """``count`` and ``bytes`` of the pool's volumes (``pool.volumes.Volumes``)."""
    iostat: str
    """The newest rows of ``zpool iostat -HpPlqv`` (or ``-g`` rows, GUIDs for names)."""
    wait: str
    """The newest row of ``zpool wait -Hp``: remaining bytes."""
    list: Mapping[str, Any] | str
    """``zpool list -v``: the JSON document, or text (``-vHp`` or plain)."""
    diskstats: Sequence[Sequence[str]]
    """Rows of /proc/diskstats."""
    diskstats_clock: float
    """Seconds of ``clock`` when ``diskstats`` were read; as ``clock`` if absent."""
    devices: Mapping[str, Sequence[str]]
    """Leaf path to the names in /proc/diskstats that count its I/O."""
    disks: Mapping[str, Mapping[str, Any]]
    """Leaf path to the known fields of the disk below it (``LeafDisk``)."""
    enclosures: Sequence[Mapping[str, Any]]
    """The machine's enclosures: ``key``, ``name`` and ``slots``, each slot a list of its number,
    its name and the kernel's names of the disk in it."""
    objsets: Sequence[Mapping[str, str]]
    """Logical I/O of each mounted dataset and volume, if read with this sample: fields of its kstat
    ``objset-0x…`` by the kernel's names, and ``crtime`` and ``snaptime`` of its first line."""
    utc_offset: float
    """Seconds to add to UTC for the dates without a zone inside ``text``; UTC if absent."""
    place: str
    """File and line it was read from, for messages about damage."""
    kstat: str
    """The kernel's word for the pool's state (``/proc/spl/kstat/zfs/POOL/state``)."""
    version: str
    """OpenZFS version of the sampled machine (``2.3.9``)."""
    host: Mapping[str, Any]
    """``cpu`` (share), ``memory_total``, ``memory_available``, ``arc_bytes``; ``zed`` (whether ZED
    runs), where a pool may need it."""
    tunables: Mapping[str, int]
    """Module parameters of scans that could be read, by name."""
    events: Sequence[Mapping[str, Any]]
    """New events since the last sample: ``t``, ``name``, ``text``, ``severity``, ``vdev``."""
    age: float
    """Seconds since it was read, if a newer reading did not arrive in time."""
    gap: str
    """Why a line of a recording could not be read; there is no form then."""
    problem: str
    """Why there is no current state; there is no form then."""
    absent: bool
    """True if the reason is that the pool is no longer in the kernel's list."""


def config_vdevs(form: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield every vdev of a ``libzfs`` form, from the root down; nothing for another form."""
    rest = [form["libzfs"].get("vdev_tree", {})] if "libzfs" in form else []
    while rest:
        node = rest.pop()
        yield node
        for group in ("l2cache", "spares", "children"):
            if group in node:
                rest += reversed(node[group])


_ACTIVE = 1
"""DSS_SCANNING and VDEV_REBUILD_ACTIVE (include/sys/fs/zfs.h)."""


def has_active_scan(form: Mapping[str, Any]) -> bool:
    """Return whether any form of a pool shows a scan that runs or is paused."""
    if "libzfs" in form:
        tree = form["libzfs"].get("vdev_tree", {})
        rebuilds = (top.get("org.openzfs:rebuild_stats", ()) for top in tree.get("children", ()))
        states = (numbers(tree.get("scan_stats", ()))[1:2], *(numbers(r)[:1] for r in rebuilds))
        return (_ACTIVE,) in states
    if "status" in form:
        scans = [pool.get("scan_stats") for pool in form["status"].get("pools", {}).values()]
        return any(state in str(scans) for state in ("SCANNING", "ACTIVE"))
    return "in progress since" in form.get("text", "")


def plain(value: Mapping[str, Any] | Iterable[int] | bytes) -> object:
    """Return a mapping or an array of integers, packed or not, as a type that JSON has."""
    if isinstance(value, Mapping):
        return dict(value)
    return numbers(value) if isinstance(value, bytes) else list(value)


def numbers(array: Sequence[int] | bytes) -> tuple[int, ...]:
    """Return an array of integers: from a list, or from packed native unsigned 64-bit values."""
    return unpack(f"{len(array) // 8}Q", array) if isinstance(array, bytes) else tuple(array)
