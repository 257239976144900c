"""A pool and its vdevs, made of what a reader found in a form.

A reader checks what it reads, once; nothing is looked at twice here. JSON and the kernel's config
have figures, of which a vdev's row is worked out as zpool does. Text has the rows, and what a form
tells outright goes into the model as it is. Names are those of ``zpool status -j``, which the forms
have in common.

Source: status_callback_json and vdev_stats_nvlist in cmd/zpool/zpool_main.c (2.3.9).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from zconsole.errors import NotUnderstoodError
from zconsole.pool.model import GROUP_KINDS, ErrorCounters, Pool, Scan, Vdev
from zconsole.pool.topology import APART
from zconsole.zfs.decode.devices import Devices
from zconsole.zfs.decode.values import number, text_of, word
from zconsole.zfs.decode.words import aux_text, draid_shape, parity_of, state_word, suspension

DEEPEST = 32
"""Levels of vdevs, far more than ZFS nests: pool, top-level vdev, spare, replacing, disk. What
works through a tree calls itself for each level, and Python has an end to that."""
MOST_VDEVS = 20_000
"""Vdevs of all pools together: a thousand raidz2 with ten disks each are 11,004 in four pools. Each
takes about 13 KB from its text to the frames that are shown."""
TOO_MANY = f"damaged ZFS output: more than {MOST_VDEVS} vdevs"
TOO_DEEP = "damaged ZFS output: vdevs are nested too deep"
LONGEST = 4096 + 64
"""Characters of the longest name, a path with its partition or kind (PATH_MAX of Linux)."""
TOO_LONG = "damaged ZFS output: a vdev's name is longer than any path"
Node = Mapping[str, Any]
Nodes = Collection[Any]
"""Vdevs as their form has them."""


class _VdevPlace(NamedTuple):
    """Where in the tree a vdev stands."""

    vclass: str
    above: str = ""
    """The state of the vdev above it."""
    top: bool = True
    rebuilt: bool = False
    """Below a top-level vdev with an active rebuild."""
    written: bool = False
    """A rebuild writes to it: the new device of a replacing or spare group, any of a dRAID, whose
    spare space is spread over all."""


class Figures(NamedTuple):
    """The kernel's words and numbers of a vdev; a number is None where the form can't tell it."""

    state: str
    """The word of the state, "" where the form has none."""
    aux: str
    was: str | None
    """The path of a device that is missing."""
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
    """JSON lacks it."""
    resilver_deferred: int | None
    configured_ashift: int | None
    physical_ashift: int | None


NUMBERS = Figures._fields[3:]
_BLANK = {**dict.fromkeys(Vdev._fields), **Vdev._field_defaults}
"""Every field of a vdev in order. Two dozen names cost a call more than all else of a vdev."""


class VdevForm(NamedTuple):
    """One vdev of a form, checked."""

    name: str
    kind: str
    below: Nodes
    figures: Figures | None
    """None where all of its row is told."""
    told: Mapping[str, Any]
    """Fields of ``Vdev`` that need no working out."""


Read = Callable[[Any], VdevForm]
"""Reads one vdev of a form."""


class _Context(NamedTuple):
    """What every vdev of one pool shares."""

    read: Read
    devices: Devices
    function: str | None
    """The active healing scan's function."""
    rebuilding: frozenset[str | None]
    """Top-level vdevs with an active sequential rebuild."""


def pool_of(printed: Node, root: Vdev, told: Mapping[str, Any]) -> Pool:
    """The pool, of what is ``printed`` of it by the names of JSON.

    ``told``: fields of ``Pool``, its scans (``work_of``) and whatever else the form tells.
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
    return Pool(root.name, state, root, **{**known, **told})


def root_of(
    form: VdevForm,
    groups: Iterable[tuple[str, Nodes]],
    read: Read,
    devices: Devices,
    scans: Iterable[Scan] = (),
) -> Vdev:
    """The root vdev, of its own form and the top-level vdevs of each class.

    ``scans``: those of the pool, where a form leaves what they do to vdevs to be worked out.
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
    return Vdev(form.name, "root", children=with_spares(tuple(children)), **known, **form.told)


def _vdev(node: Any, place: _VdevPlace, context: _Context) -> Vdev:
    form = context.read(node)
    if place.top and form.name in context.rebuilding:
        place = place._replace(rebuilt=True)
    children: tuple[Vdev, ...] = ()
    if form.below:
        told = state_word(form.figures.state, form.figures.aux) if form.figures else ""
        group = form.kind in GROUP_KINDS  # the last device of one is the new one
        written = not group and (place.written or form.kind.startswith("draid"))
        under = place._replace(top=False, written=written, above=told or place.above)
        last = under._replace(written=group or written)
        *first, newest = form.below
        children = (*[_vdev(each, under, context) for each in first], _vdev(newest, last, context))
    known = {**_BLANK, "name": form.name, "kind": form.kind, "vclass": place.vclass}
    if form.figures is not None:
        known |= _worked_out(form, form.figures, place, children, context.function)
    known |= form.told
    if not place.top:
        known["fragmentation"] = None
    if place.vclass == "spare":
        known["io"] = None  # it has none of its own: what stands in elsewhere counts it
    if form.kind.startswith("draid") and (shape := draid_shape(form.name)):
        known |= {"data_disks": shape.data, "width": shape.width, "failure_group": shape.group}
    if children:
        known["children"] = children
    else:
        known |= context.devices.fields(form.name, known["path"])
    return Vdev._make(known.values())


def _worked_out(
    form: VdevForm,
    figures: Figures,
    place: _VdevPlace,
    children: Sequence[Vdev],
    function: str | None,
) -> dict[str, Any]:
    """The fields of a vdev that zpool works out of its figures, or leaves out of its row."""
    leaf, spare = not children, place.vclass == "spare"
    state = state_word(figures.state, figures.aux) or _derived_state(form.kind, children, place)
    if spare and (figures.aux == "SPARED" or figures.state == "ONLINE"):
        state = "INUSE" if figures.aux == "SPARED" else "AVAIL"
    errors = ErrorCounters() if spare else _errors(figures, leaf)
    deferred = leaf and bool(figures.resilver_deferred)
    marker = _marker(figures, place, function, deferred) if leaf and state == "ONLINE" else ""
    removing, told = bool(figures.removing), figures.noalloc is not None
    fields = {
        "state": state,
        "note": _note(form.told, figures, errors, marker, leaf),
        "errors": errors,
        "resilvering": marker == "(resilvering)",
        "awaiting_resilver": deferred and marker != "(resilvering)",
        "removing": removing,
        "ashift": figures.configured_ashift or None,
        "physical_ashift": figures.physical_ashift or None,
    }
    if place.top and figures.total_space:
        fields |= {"alloc_bytes": figures.alloc_space, "size_bytes": figures.total_space}
    elif leaf:
        fields["size_bytes"] = figures.phys_space or figures.rep_dev_size or None
    if place.top and not spare and told:
        # Nothing new goes to a vdev that is leaving; older releases don't tell.
        fields["allocating"] = not (figures.noalloc or removing)
    if leaf and not spare:
        rebuilt = figures.rebuild_processed if place.rebuilt else None
        fields["scan_processed"] = figures.scan_processed if rebuilt is None else rebuilt
    return fields


def _errors(figures: Figures, leaf: bool) -> ErrorCounters:
    counted = figures.read_errors, figures.write_errors, figures.checksum_errors
    return ErrorCounters(*counted, figures.slow_ios if leaf else None)


def _note(told: Node, figures: Figures, errors: ErrorCounters, marker: str, leaf: bool) -> str:
    """The printed note of a vdev; its parts are two blanks apart."""
    parts = []
    configured, native = figures.configured_ashift or 0, figures.physical_ashift or 0
    if figures.was is not None:
        parts.append(f"was {figures.was}")
    elif figures.aux not in ("", "NONE"):
        parts.append(aux_text(figures.aux, bool(errors.slow) and errors.total == 0))
    elif leaf and 0 < configured < native < 64:
        parts.append(f"block size: {1 << configured}B configured, {1 << native}B native")
    # zpool names a leaving vdev in its row since 2.2, which tells what takes no new writes.
    if figures.removing and figures.noalloc is not None:
        parts.append("(removing)")
    elif figures.noalloc:
        parts.append("(non-allocating)")
    if marker:
        parts.append(marker)
    for key, mark in (("initialize", "(initializing)"), ("trim", "(trimming)")):
        if (progress := told.get(key)) is not None and progress.state == "active":
            parts.append(mark)
    return "  ".join(parts)


def _marker(figures: Figures, place: _VdevPlace, function: str | None, deferred: bool) -> str:
    """The marker of an ONLINE leaf while ``function`` (resilver, scrub) or a rebuild is active.

    Where rebuilt bytes are not told, the new device has it.
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
    """The state of a vdev that has none in the form, "" where nothing tells it.

    zpool finds no state of a dRAID before 2.3.3, and none of a disk with ``-L``. As in
    vdev_raidz_state_change and vdev_mirror_state_change (module/zfs): what is ONLINE has nothing
    but ONLINE devices.
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
    """The root's children with what only all of them together tell of spares.

    Hot spares in several places are marked; they are known by GUID, or by name where a source has
    none. Each dRAID has its number of distributed spares still available: these are named after
    it, ``draid1-0-1`` is spare 1 of the top-level vdev with id 0 (zpool_draid_spare_name,
    module/zcommon).
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
    """The number of vdevs.

    Raises NotUnderstoodError where they are too many, too deep, or have too long names.
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


def check_rows(lengths: Iterable[int]) -> None:
    """Raise NotUnderstoodError where tables have more rows than there may be vdevs.

    Before they are read, which takes a hundred times as long as to count them. Some rows are
    headings.
    """
    if sum(lengths) > 2 * MOST_VDEVS:
        raise NotUnderstoodError(TOO_MANY)
