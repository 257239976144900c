"""The raw form: what a source hands on and a recording keeps, one pool a line.

A ``Raw`` is the JSON object of the recording format. Live sources, recordings, saved output and
the simulated pool all produce it; ``zconsole.zfs.decode`` alone turns it into the model, so that a
replayed sample goes the way a live one went. Keys beyond the format's own (``t``, ``libzfs``,
``status``, ``text``, ``diskstats``, ``list``, ``utc_offset``) are zconsole's additions; a reader
ignores keys it does not know.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from struct import unpack
from typing import Any, Required, TypedDict

FORM_TYPES: Mapping[str, type] = {"libzfs": dict, "status": dict, "text": str}
FORMS = tuple(FORM_TYPES)
"""The raw forms of a pool's state, best first."""

_LONGER = {"scrub": "async_scrub", "trim": "async_trim"}
QUEUES: Mapping[str, tuple[str, str]] = {
    name: (f"vdev_{key}_pend_queue", f"vdev_{key}_active_queue")
    for name in ("sync_r", "sync_w", "async_r", "async_w", "scrub", "trim", "rebuild")
    for key in (_LONGER.get(name, name),)
}
"""Class of I/O to where an nvlist has its requests that wait, and those that are under way
(``ZPOOL_CONFIG_VDEV_*_QUEUE``), in the order of ``zpool iostat -q``."""
HISTOGRAMS: Mapping[str, str] = {
    name: f"vdev_{name}_lat_histo" for name in ("disk_r", "disk_w", "sync_r", "sync_w", "async_r")
}
"""Disk time by direction, and queue wait of what applications ask for, to where an nvlist has it
(include/sys/fs/zfs.h)."""


class Raw(TypedDict, total=False):
    """One pool at one moment, as its source printed or returned it."""

    t: Required[float]
    """Epoch seconds when the sample was complete."""
    undated: bool
    """``t`` is only when saved output was read or its file written: nothing is worked out from
    it."""
    clock: float
    """Seconds of CLOCK_BOOTTIME on the sampled machine, for differences."""
    began: float
    """Seconds of ``clock`` when the reading began: the form shows nothing older."""
    boot: str
    """The boot id that ``clock`` belongs to."""
    source: str
    """What took the sample: libzfs (the kernel's config, by the call that libzfs makes), json, text
    or demo. A reader of a recording says ``replay``."""
    pool: str
    """The requested pool; always set by live sources."""
    libzfs: Mapping[str, Any]
    """The config nvlist as a JSON object: the names the reader asks for, arrays as lists. Just
    read from the kernel, its arrays of integers may still be packed (``numbers``)."""
    status: Mapping[str, Any]
    """A ``zpool status -jP --json-int`` document (string or number leaves both read)."""
    text: str
    """``zpool status`` output."""
    names: Mapping[str, str]
    """Leaf path to the name ``zpool status`` prints, where the form has only the path."""
    message: Mapping[str, Any]
    """What only zpool knows, for a libzfs sample: ``status``, ``action``, ``see``, ``errors``, and
    ``destroyed``, names of datasets in errors that are no more."""
    sitting_out: Sequence[Mapping[str, str]]
    """``guid``, ``path`` and ``name`` of each leaf whose property ``sit_out`` is on."""
    autosit: Sequence[Mapping[str, str]]
    """``guid``, ``name`` and ``value`` (on or off) of each top-level vdev with that property."""
    history: Mapping[str, Any]
    """What ``zpool history -i`` tells of scrubs: see ``zfs.sources.occasional.PastScrubs``."""
    iostat: str
    """The newest rows of ``zpool iostat -HpPlqv`` (or ``-g`` rows, GUIDs for names)."""
    wait: str
    """The newest row of ``zpool wait -Hp``: remaining bytes."""
    list: Mapping[str, Any] | str
    """``zpool list -v``: the JSON document, or text (``-vHp`` or plain)."""
    diskstats: Sequence[Sequence[str]]
    """Rows of /proc/diskstats."""
    devices: Mapping[str, Sequence[str]]
    """Leaf path to the names in /proc/diskstats that carry its I/O."""
    disks: Mapping[str, Mapping[str, Any]]
    """Leaf path to what is known of the disk below it: the fields of ``LeafDisk`` that are."""
    enclosures: Sequence[Mapping[str, Any]]
    """The machine's enclosures: ``key``, ``name`` and ``slots``, each slot a list of its number,
    its name and what the kernel calls the disk in it."""
    utc_offset: float
    """Seconds to add to UTC for the zoneless dates inside ``text``; absent: UTC."""
    place: str
    """Where it was read, file and line, for messages that say it is damaged."""
    kstat: str
    version: str
    """OpenZFS version of the sampled machine (``2.3.9``)."""
    host: Mapping[str, Any]
    """``cpu`` (share), ``memory_total``, ``memory_available``, ``arc_bytes``."""
    tunables: Mapping[str, int]
    """Module parameters of scans that could be read, by name."""
    events: Sequence[Mapping[str, Any]]
    """New events since the last sample: ``t``, ``name``, ``text``, ``severity``, ``vdev``."""
    age: float
    """Seconds since it was read, where a newer reading has not come in time."""
    gap: str
    """Why a line of a recording could not be read; then no form is present."""
    problem: str
    """Why there is no fresh state; then no form is present."""
    absent: bool
    """The problem is that the kernel's list of pools has it no longer."""


def config_vdevs(form: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Every vdev of a ``libzfs`` form, from the root down; nothing of another form."""
    rest = [form["libzfs"].get("vdev_tree", {})] if "libzfs" in form else []
    while rest:
        node = rest.pop()
        yield node
        for group in ("l2cache", "spares", "children"):
            if group in node:
                rest += reversed(node[group])


def plain(value: Mapping[str, Any] | Iterable[int] | bytes) -> object:
    """What JSON knows of a mapping or an array of integers, which may be packed."""
    if isinstance(value, Mapping):
        return dict(value)
    return numbers(value) if isinstance(value, bytes) else list(value)


def numbers(array: Sequence[int] | bytes) -> tuple[int, ...]:
    """An array of integers: a list of them, or unsigned 64-bit ones in this machine's order."""
    return unpack(f"{len(array) // 8}Q", array) if isinstance(array, bytes) else tuple(array)
