"""Builds a pool and its vdevs from what a reader found in a form, with the devices below leaves.

Each reader validates what it reads; nothing is validated again here. JSON and the kernel's config
contain figures, from which a vdev's row is derived as zpool does. Text contains the rows
themselves; whatever a form states directly goes into the model unchanged. Names are those of
``zpool status -j``, which all forms share.

Devices are I/O counters (rows of /proc/diskstats), disks and their slots, and enclosures. A
recording may come from anyone: of these, values of an unexpected type count as unknown, and text is
cleaned of control characters.

Source: status_callback_json and vdev_stats_nvlist in cmd/zpool/zpool_main.c (2.3.9).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from operator import add, itemgetter
from typing import Any, NamedTuple

from zconsole.errors import NotUnderstoodError
from zconsole.pool.chassis import Enclosure, LeafDisk, Slot
from zconsole.pool.model import APART, GROUP_KINDS, BlockCounters, ErrorCounters, Pool, Scan, Vdev
from zconsole.system.printable import clean
from zconsole.zfs.decode.values import (
    aux_text,
    draid_shape,
    integers,
    is_time,
    mapping,
    number,
    parity_of,
    state_word,
    suspension,
    text_of,
    word,
)
from zconsole.zfs.raw import Raw

_SECTOR = 512
_FIELDS = 14
"""major, minor, name and the eleven counters that every kernel since 2.6.25 has."""
_COUNTED = itemgetter(3, 5, 6, 7, 9, 10, 12)
"""Reads, sectors read, milliseconds reading; writes, sectors written, milliseconds writing;
milliseconds busy."""


LONGEST_WORD = 128
"""Longest word that is kept, in characters."""
MOST = 1024
"""Most slots of an enclosure, and most enclosures, that are read."""


REMEMBERED = 4096
"""Disks that are cached: each occurs again in every sample, and cleaning its words takes most of
the time (7 of 8 ms for 1,000 disks)."""

_WORDS = tuple(name for name in LeafDisk._fields if name != "temperature")


@dataclass(frozen=True)
class Enclosures(Collection[Enclosure]):
    """Enclosures that are decoded only when the map of slots needs them, which is seldom."""

    forms: Sequence[Mapping[str, object]]

    def __iter__(self) -> Iterator[Enclosure]:
        return map(_enclosure, self.forms)

    def __len__(self) -> int:
        return len(self.forms)

    def __contains__(self, enclosure: object) -> bool:
        return enclosure in tuple(self)


class Devices:
    """Devices of a raw form: counters and disks by the paths of their leaves, and enclosures.

    Fields of the counters: Documentation/admin-guide/iostats.rst of Linux; sectors of 512 bytes,
    milliseconds.
    """

    def __init__(self, raw: Raw) -> None:
        stats: Any = raw.get("diskstats")
        lines = stats.splitlines() if isinstance(stats, str) else stats
        rows = lines if isinstance(lines, list | tuple) else ()
        # A recording may have rows as lines of text.
        split = (row.split() if isinstance(row, str) else row for row in rows)
        self._rows = {
            row[2]: row for row in split if isinstance(row, list | tuple) and len(row) >= _FIELDS
        }
        clock = raw.get("diskstats_clock")
        self._clock = clock if is_time(clock) else None
        self._blocks: Mapping[str, Sequence[str]] = raw.get("devices") or {}
        """Leaf path to the names in ``_rows`` that count its I/O."""
        disks, shelves = raw.get("disks"), raw.get("enclosures")
        forms = disks.items() if isinstance(disks, Mapping) else ()
        self.disks = {path: _disk(form) for path, form in forms if isinstance(form, Mapping)}
        found = shelves[:MOST] if isinstance(shelves, list | tuple) else ()
        self.enclosures = Enclosures([each for each in found if isinstance(each, Mapping)])
        """Enclosures of the machine."""
        self.names: Mapping[str, str] = mapping(raw.get("names"), "names")
        """Path to the name that zpool prints, if the form has only one of them."""

    @cached_property
    def paths(self) -> Mapping[str, str]:
        """Printed name to path."""
        return {name: path for path, name in self.names.items()}

    def counters(self, path: str) -> BlockCounters | None:
        """Return the counters for a leaf path; without ``devices`` the name after /dev is tried."""
        names = self._blocks.get(path) or (path.removeprefix("/dev/"),)
        known = tuple([name for name in names if name in self._rows])
        if not known:
            return None
        counts = list(map(int, _COUNTED(self._rows[known[0]])))
        for name in known[1:]:
            # Busy times are added, too: the paths to a multipath disk take turns, so they do not
            # overlap, neither now nor in the totals since boot.
            counts = list(map(add, counts, map(int, _COUNTED(self._rows[name]))))
        integers(counts, "diskstats")
        reads, sectors_read, reading, writes, sectors_written, writing, busy = counts
        return BlockCounters(
            known,
            reads,
            sectors_read * _SECTOR,
            reading / 1000,
            writes,
            sectors_written * _SECTOR,
            writing / 1000,
            busy / 1000,
            self._clock,
        )

    def all_counters(self) -> dict[str, BlockCounters | None]:
        """Return the counters of every path in ``devices``; None for a device that has left."""
        return {path: self.counters(path) for path in self._blocks}


def _disk(found: Mapping[str, object]) -> LeafDisk:
    degrees = found.get("temperature")
    known = isinstance(degrees, int | float) and math.isfinite(degrees)
    words = [value if isinstance(value, str) else "" for value in map(found.get, _WORDS)]
    return _made(degrees if known else None, *words)


@lru_cache(maxsize=REMEMBERED)
def _made(degrees: float | None, *words: str) -> LeafDisk:
    named: dict[str, Any] = dict(zip(_WORDS, map(_word, words), strict=True))
    return LeafDisk(**named, temperature=degrees)


def _enclosure(found: Mapping[str, object]) -> Enclosure:
    slots = found.get("slots")
    rows = slots[:MOST] if isinstance(slots, list | tuple) else ()
    places = []
    for row in rows:
        if isinstance(row, list | tuple) and len(row) > 1:
            number, name, *disks = row
            known = isinstance(number, int) and not isinstance(number, bool)
            words = tuple(map(_word, disks[:MOST]))
            places.append(Slot(_word(name), number if known else None, words))
    return Enclosure(_word(found.get("key")), _word(found.get("name")), tuple(places))


def _word(value: object) -> str:
    return clean(value)[:LONGEST_WORD] if isinstance(value, str) else ""


def disk_form(disk: LeafDisk) -> dict[str, Any]:
    """Convert a disk to its raw form: the fields that are known."""
    return {key: value for key, value in disk._asdict().items() if value not in ("", None)}


def enclosure_form(found: Enclosure) -> dict[str, Any]:
    """Convert an enclosure to its raw form."""
    slots = [[slot.number, slot.name, *slot.disks] for slot in found.slots]
    return {"key": found.key, "name": found.name, "slots": slots}


DEEPEST = 32
"""Levels of vdevs, far more than ZFS nests: pool, top-level vdev, spare, replacing, disk. Functions
on the tree recurse per level, and Python limits recursion."""
MOST_VDEVS = 20_000
"""Vdevs of all pools together: a thousand raidz2 of ten disks each are 11,004 in four pools. Each
takes about 13 KB from its text to the frames that are shown."""
TOO_MANY = f"damaged ZFS output: more than {MOST_VDEVS} vdevs"
TOO_DEEP = "damaged ZFS output: vdevs are nested too deep"
LONGEST = 4096 + 64
"""Characters of the longest name: a path (PATH_MAX of Linux) with its partition or kind."""
TOO_LONG = "damaged ZFS output: a vdev's name is longer than any path"
Node = Mapping[str, Any]
Nodes = Collection[Any]
"""Vdevs in the representation of their form."""


class _VdevPlace(NamedTuple):
    """Position of a vdev in the tree."""

    vclass: str
    above: str = ""
    """State of the parent vdev."""
    top: bool = True
    rebuilt: bool = False
    """True below a top-level vdev with an active rebuild."""
    written: bool = False
    """True if a rebuild writes to it: the new device of a replacing or spare group, and any device
    of a dRAID, whose spare space is distributed over all."""


class Figures(NamedTuple):
    """The kernel's words and numbers of a vdev; a number is None if the form does not have it."""

    state: str
    """State word, "" if the form has none."""
    aux: str
    was: str | None
    """The former path of a missing device."""
    alloc_space: int | None
    total_space: int | None
    rep_dev_size: int | None
    phys_space: int | None
    read_errors: int | None
    write_errors: int | None
    checksum_errors: int | None
    slow_ios: int | None
    removing: int | None
    noalloc: int | None
    scan_processed: int | None
    rebuild_processed: int | None
    """Not in JSON."""
    resilver_deferred: int | None
    configured_ashift: int | None
    logical_ashift: int | None
    physical_ashift: int | None


NUMBERS = Figures._fields[3:]
_BLANK = {**dict.fromkeys(Vdev._fields), **Vdev._field_defaults}
"""Every field of a vdev, in order. Vdevs are made from these values because passing two dozen
keyword arguments costs more than everything else about a vdev."""


class VdevForm(NamedTuple):
    """One vdev of a form, validated."""

    name: str
    kind: str
    below: Nodes
    figures: Figures | None
    """None if ``stated`` contains its whole row."""
    stated: Mapping[str, Any]
    """Fields of ``Vdev`` that the form states directly."""


Read = Callable[[Any], VdevForm]
"""Function that reads one vdev of a form."""


class _Context(NamedTuple):
    """Data shared by every vdev of one pool."""

    read: Read
    devices: Devices
    function: str | None
    """Function of the active resilver or scrub."""
    rebuilding: frozenset[str | None]
    """Top-level vdevs with an active sequential rebuild."""


def pool_of(printed: Node, root: Vdev, stated: Mapping[str, Any]) -> Pool:
    """Build the pool; ``printed`` holds what its form has, under the names of zpool's JSON.

    ``stated`` are fields of ``Pool``: its scans (``work_of``) and whatever else the form states
    directly.
    """
    state, errors = word(printed.get("state")), number(printed.get("error_count"))
    message, number_of_it = text_of(printed.get("status")), text_of(printed.get("msgid"))
    see, listed = text_of(printed.get("moreinfo")), printed.get("errlist")
    files: tuple[str, ...] | None = () if errors == 0 else None
    if isinstance(listed, Sequence) and not isinstance(listed, str):
        files = tuple(map(str, listed))
    known = {
        "guid": word(printed.get("pool_guid")),
        "message": message,
        "action": text_of(printed.get("action")),
        "see": see or number_of_it,
        "suspension": suspension(state, message, number_of_it, see),
        "error_count": errors,
        "errors": files,
        "comment": text_of(printed.get("comment")),
    }
    return Pool(root.name, state, root, **{**known, **stated})


def root_of(
    form: VdevForm,
    groups: Iterable[tuple[str, Nodes]],
    read: Read,
    devices: Devices,
    scans: Iterable[Scan] = (),
) -> Vdev:
    """Build the root vdev, from its own form and the top-level vdevs of each class.

    ``scans`` are those of the pool, if the form leaves their effect on vdevs to be derived.
    """
    active = [scan for scan in scans if scan.active]
    healing = next((s.function for s in active if s.function in ("resilver", "scrub")), None)
    rebuilt = frozenset(scan.vdev for scan in active if scan.function == "rebuild")
    context = _Context(read, devices, healing, rebuilt)
    known: dict[str, Any] = {}
    if form.figures is not None:
        figures = form.figures
        known = {
            "state": state_word(figures.state, figures.aux),
            "note": aux_text(figures.aux),
            "errors": _errors(figures, leaf=False),
            "alloc_bytes": figures.alloc_space,
            "size_bytes": figures.total_space,
        }
    children = [
        _vdev(node, _VdevPlace(vclass, known.get("state", "")), context)
        for vclass, nodes in groups
        for node in nodes
    ]
    return Vdev(form.name, "root", children=with_spares(tuple(children)), **known, **form.stated)


def _vdev(node: Any, place: _VdevPlace, context: _Context) -> Vdev:
    form = context.read(node)
    if place.top and form.name in context.rebuilding:
        place = place._replace(rebuilt=True)
    children: tuple[Vdev, ...] = ()
    if form.below:
        state = state_word(form.figures.state, form.figures.aux) if form.figures else ""
        group = form.kind in GROUP_KINDS  # the last device of a group is the new one
        written = not group and (place.written or form.kind.startswith("draid"))
        under = place._replace(top=False, written=written, above=state or place.above)
        last = under._replace(written=group or written)
        *first, newest = form.below
        children = (*[_vdev(each, under, context) for each in first], _vdev(newest, last, context))
    known = {**_BLANK, "name": form.name, "kind": form.kind, "vclass": place.vclass}
    if form.figures is not None:
        known |= _derived_fields(form, form.figures, place, children, context.function)
    known |= form.stated
    if not place.top:
        known["fragmentation"] = None
    if place.vclass == "spare":
        known["io"] = None  # a spare counts none of its own: the device in use elsewhere does
    if form.kind.startswith("draid") and (shape := draid_shape(form.name)):
        known |= {"data_disks": shape.data, "width": shape.width, "failure_group": shape.group}
    if children:
        known["children"] = children
    else:
        # Text alone has no paths, but the name that it prints for a disk in /dev is the device's.
        # ``with_measurements`` checks whether a failed leaf's path leads to another disk by now.
        path, devices = known["path"], context.devices
        known["block"] = devices.counters(path or form.name)
        known["disk"] = devices.disks.get(path) if path else None
    return Vdev._make(known.values())


def _derived_fields(
    form: VdevForm,
    figures: Figures,
    place: _VdevPlace,
    children: Sequence[Vdev],
    function: str | None,
) -> dict[str, Any]:
    """Return the fields of a vdev that zpool derives from its figures, or omits from its row."""
    leaf, spare = not children, place.vclass == "spare"
    state = state_word(figures.state, figures.aux) or _derived_state(form.kind, children, place)
    if spare and (figures.aux == "SPARED" or figures.state == "ONLINE"):
        state = "INUSE" if figures.aux == "SPARED" else "AVAIL"
    errors = ErrorCounters() if spare else _errors(figures, leaf)
    deferred = leaf and bool(figures.resilver_deferred)
    marker = _marker(figures, place, function, deferred) if leaf and state == "ONLINE" else ""
    removing, counts_noalloc = bool(figures.removing), figures.noalloc is not None
    fields = {
        "state": state,
        "note": _note(form.stated, figures, errors, marker, leaf),
        "errors": errors,
        "resilvering": marker == "(resilvering)",
        "awaiting_resilver": deferred and marker != "(resilvering)",
        "removing": removing,
        "ashift": figures.configured_ashift or None,
        "logical_ashift": figures.logical_ashift or None,
        "physical_ashift": figures.physical_ashift or None,
    }
    if place.top and figures.total_space:
        fields |= {"alloc_bytes": figures.alloc_space, "size_bytes": figures.total_space}
    elif leaf:
        fields["size_bytes"] = figures.phys_space or figures.rep_dev_size or None
    if place.top and not spare and counts_noalloc:
        # Nothing new is written to a vdev being removed; older releases lack the counter.
        fields["allocating"] = not (figures.noalloc or removing)
    if leaf and not spare:
        rebuilt = figures.rebuild_processed if place.rebuilt else None
        fields["scan_processed"] = figures.scan_processed if rebuilt is None else rebuilt
    return fields


def _errors(figures: Figures, leaf: bool) -> ErrorCounters:
    counted = figures.read_errors, figures.write_errors, figures.checksum_errors
    return ErrorCounters(*counted, figures.slow_ios if leaf else None)


def _note(stated: Node, figures: Figures, errors: ErrorCounters, marker: str, leaf: bool) -> str:
    """Return the printed note of a vdev; its parts are separated by two blanks."""
    parts = []
    configured, native = figures.configured_ashift or 0, figures.physical_ashift or 0
    if figures.was is not None:
        parts.append(f"was {figures.was}")
    elif figures.aux not in ("", "NONE"):
        parts.append(aux_text(figures.aux, bool(errors.slow) and errors.total == 0))
    elif leaf and 0 < configured < native < 64:
        parts.append(f"block size: {1 << configured}B configured, {1 << native}B native")
    # zpool prints "(removing)" in a vdev's row since 2.2, which also added ``noalloc``.
    if figures.removing and figures.noalloc is not None:
        parts.append("(removing)")
    elif figures.noalloc:
        parts.append("(non-allocating)")
    if marker:
        parts.append(marker)
    for key, mark in (("initialize", "(initializing)"), ("trim", "(trimming)")):
        if (progress := stated.get(key)) is not None and progress.state == "active":
            parts.append(mark)
    return "  ".join(parts)


def _marker(figures: Figures, place: _VdevPlace, function: str | None, deferred: bool) -> str:
    """Return the note of an ONLINE leaf while ``function`` (resilver, scrub) or a rebuild runs.

    If rebuilt bytes are unknown, the new device is marked.
    """
    if place.rebuilt and figures.rebuild_processed:
        return "(resilvering)"
    if function is not None and figures.scan_processed:
        return "(resilvering)" if function == "resilver" else "(repairing)"
    if function is not None and deferred:
        return "(awaiting resilver)"
    is_new = place.rebuilt and place.written and figures.rebuild_processed is None
    return "(resilvering)" if is_new else ""


def _derived_state(kind: str, children: Sequence[Vdev], place: _VdevPlace) -> str:
    """Return the state of a vdev whose form has none, "" if it cannot be derived.

    zpool finds no state of a dRAID before 2.3.3, and none of a disk with ``-L``. The rules are
    those of vdev_raidz_state_change and vdev_mirror_state_change (module/zfs); a vdev that is
    ONLINE has only ONLINE devices.
    """
    states = {child.state for child in children}
    if not states:
        return "ONLINE" if place.above == "ONLINE" and place.vclass not in APART else ""
    if "" in states:
        return ""
    bad = sum(child.state not in ("ONLINE", "DEGRADED") for child in children)
    most = len(children) - 1 if kind in ("mirror", *GROUP_KINDS) else parity_of(kind) or 0
    return "UNAVAIL" if bad > most else "ONLINE" if states == {"ONLINE"} else "DEGRADED"


def with_spares(children: tuple[Vdev, ...]) -> tuple[Vdev, ...]:
    """Return the root's children with the facts about spares that need all of them.

    Hot spares used in several places are marked; they are identified by GUID, or by name if a
    source has none. Each dRAID gets the number of its distributed spares still available: these are
    named after it, ``draid1-0-1`` is spare 1 of the top-level vdev with id 0
    (zpool_draid_spare_name, module/zcommon).
    """
    groups = [v for child in children for v in child.walk() if v.kind == "spare" and v.children]
    spares = {id(v): v for group in groups for new in group.children[1:] for v in new.leaves()}
    uses = Counter(spare.guid or spare.name for spare in spares.values())
    if shared := {spare for spare, count in uses.items() if count > 1}:
        children = _marked(children, shared)
    if not any(child.kind.startswith("draid") for child in children):
        return children
    available = [child for child in children if child.kind == "dspare" and child.state == "AVAIL"]
    left = Counter(spare.name.rpartition("-")[0] for spare in available)
    return tuple(
        child._replace(spares_left=left[f"{child.kind}-{child.name.rpartition('-')[2]}"])
        if child.kind.startswith("draid")
        else child
        for child in children
    )


def _marked(vdevs: tuple[Vdev, ...], shared: Collection[str]) -> tuple[Vdev, ...]:
    return tuple(
        vdev._replace(children=_marked(vdev.children, shared))
        if vdev.children
        else vdev._replace(shared=(vdev.guid or vdev.name) in shared)
        for vdev in vdevs
    )


def check_size(roots: Iterable[Vdev]) -> int:
    """Return the number of vdevs.

    Raises NotUnderstoodError if there are too many, they are nested too deep, or a name is too
    long.
    """
    count, level, depth = 0, list(roots), 0
    while level:
        count, depth = count + len(level), depth + 1
        if depth > DEEPEST:
            raise NotUnderstoodError(TOO_DEEP)
        if count > MOST_VDEVS:
            raise NotUnderstoodError(TOO_MANY)
        if any(len(vdev.name) > LONGEST or len(vdev.kind) > LONGEST for vdev in level):
            raise NotUnderstoodError(TOO_LONG)
        level = [child for vdev in level for child in vdev.children]
    return count
