"""Capacities from ``zpool list [-v]``: plain, ``-H``, ``-Hp`` and JSON, FreeBSD 9 to OpenZFS 2.4.

Source: zpool_do_list, print_list_stats and print_one_column in cmd/zpool/zpool_main.c.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from zconsole.errors import NotUnderstoodError
from zconsole.pool.model import GROUP_KINDS, Vdev, Volumes
from zconsole.zfs.decode.builders import MOST_VDEVS
from zconsole.zfs.decode.values import (
    CLASSES,
    disk_name,
    documents_of,
    has_documents,
    is_cell,
    kind_of,
    leaf_kind,
    mapping,
    merge_documents,
    number,
    without_nbsp,
)

_FIELDS = {
    "SIZE": "size",
    "ALLOC": "alloc",
    "USED": "alloc",
    "FREE": "free",
    "AVAIL": "free",
    "FRAG": "frag",
    "HEALTH": "health",
}
_PROPERTIES = {
    "size": "size",
    "allocated": "alloc",
    "free": "free",
    "fragmentation": "frag",
    "health": "health",
}
_MODERN = ("NAME", "SIZE", "ALLOC", "FREE", "CKPOINT", "EXPANDSZ", "FRAG", "CAP", "DEDUP", "HEALTH")
_BARE_LAYOUTS = {
    11: (*_MODERN, "ALTROOT"),
    10: (*_MODERN[:4], *_MODERN[5:], "ALTROOT"),
    8: ("NAME", "SIZE", "ALLOC", "FREE", "CAP", "DEDUP", "HEALTH", "ALTROOT"),
    7: ("NAME", "SIZE", "ALLOC", "FREE", "CAP", "HEALTH", "ALTROOT"),
}
"""Columns of ``-H`` output, which has no heading, by the number of fields in a pool's line."""
MOST_ROWS = 10 * MOST_VDEVS
"""Most lines of a listing, or of several concatenated."""
_HEALTH = re.compile(r"[A-Z]{3,}")
_CLOSED = frozenset({"FAULTED", "UNAVAIL", "SUSPENDED"})
_BROKEN_HEADING = re.compile(r"^NAME +SIZE\b.*\n[A-Z \r]+$", re.MULTILINE)
"""A heading that a narrow window broke, which means that every row below it is broken, too."""
_REST = re.compile(r"-$|[\d.,]*[%x]$|(?!NAME$)[A-Z]+$")
"""A cell of FRAG, CAP, DEDUP, HEALTH or ALTROOT, or the end of one: the remainder of a broken
row."""


def capacities(listing: Mapping[str, Any] | str) -> tuple[Vdev, ...]:
    """Parse a listing, JSON or text, to the root of every pool with its top-level vdevs.

    Sizes are the printed ones: for a single device (2.1+) its own size, which is more than can be
    allocated (``space_of``). From text, the ``width`` of a vdev counts positions: a device being
    replaced and its replacement share one.

    Raises NotUnderstoodError if it is not ``zpool list`` output.
    """
    if isinstance(listing, str) and has_documents(listing):
        try:
            listing = merge_documents(documents_of(listing))
        except NotUnderstoodError as error:
            raise NotUnderstoodError(f"not `zpool list -j` output: {error}") from None
    if isinstance(listing, str) and listing.count("\n") > MOST_ROWS:
        raise NotUnderstoodError(f"not `zpool list` output: more than {MOST_ROWS} lines")
    try:
        found = tuple(
            _from_text(listing)
            if isinstance(listing, str)
            else _from_json(mapping(listing, "list"))
        )
    except RecursionError:
        raise NotUnderstoodError("not `zpool list` output: nested too deep") from None
    if not found and not (isinstance(listing, str) and "no pools available" in listing):
        raise NotUnderstoodError("not `zpool list` output")
    return found


def space_of(top: Vdev) -> int | None:
    """Return the allocatable bytes of a listed vdev: allocated plus free."""
    if top.alloc_bytes is None or top.free_bytes is None:
        return top.size_bytes
    return top.alloc_bytes + top.free_bytes


def _from_text(text: str) -> Iterator[Vdev]:
    columns: Sequence[str] = ()
    headed = reading = False
    broken = _BROKEN_HEADING.search(text) is not None
    found: Vdev | None = None
    tops: list[Vdev] = []
    vclass = "normal"
    for line in without_nbsp(text).splitlines():
        words = line.split()
        if words[:2] == ["NAME", "SIZE"]:
            columns, headed, reading = words, True, True
        elif not words or (headed and not reading) or (broken and all(map(_REST.match, words))):
            continue
        elif words[0] in CLASSES and set(words[1:]) <= {"-"}:
            vclass = CLASSES[words[0]]
        elif line[0] in " \t" or (found is not None and _is_vdev(line, columns)):
            if found is not None:
                _add_vdev(tops, vclass, line, columns)
        else:
            if found is not None:
                yield found._replace(children=tuple(tops))
            tops, vclass = [], "normal"
            if not columns:
                cells = line.split("\t")
                layout = _BARE_LAYOUTS.get(len(cells), ())
                is_pool = layout and _HEALTH.fullmatch(cells[layout.index("HEALTH")])
                columns = layout if is_pool else ()
            row = _row(*_cells(line, columns), "root", "normal")
            reading = row.size_bytes is not None or bool(row.state)
            found = row if reading else None  # the table has ended: other output follows
    if found is not None:
        yield found._replace(children=tuple(tops))


def _is_vdev(line: str, columns: Sequence[str]) -> bool:
    """Return whether a line without indentation is that of a vdev.

    Vdevs have no DEDUP; pools lack it only if zpool cannot open them.
    """
    name, values = _split(line)
    cells = dict(zip(columns[1:], values, strict=False))
    closed = cells.get("SIZE") == "-" and cells.get("HEALTH") in _CLOSED
    return kind_of(name) is not None or (cells.get("DEDUP") == "-" and not closed)


def _add_vdev(tops: list[Vdev], vclass: str, line: str, columns: Sequence[str]) -> None:
    """Add one line below a pool: a top-level vdev, or a device of the last one.

    ``-H`` has no indentation, but only top-level vdevs have their own value in ALLOC.
    """
    name, cells = _cells(line, columns)
    if not cells:
        return
    row = _row(name, cells, kind_of(name) or leaf_kind(name), vclass)
    indent = len(line) - len(line.lstrip(" "))
    if row.alloc_bytes is not None or (indent == 2 and line[0] == " "):
        tops.append(row)
    elif tops:
        more = -1 if row.kind in GROUP_KINDS else 1
        tops[-1] = tops[-1]._replace(width=(tops[-1].width or 0) + more)


def _cells(line: str, columns: Sequence[str]) -> tuple[str, dict[str, str]]:
    """Return the name, and the cells by field name."""
    name, values = _split(line)
    cells = dict(zip(columns[1:], values, strict=False))
    return name, {_FIELDS[c]: v.strip() for c, v in cells.items() if c in _FIELDS}


def _split(line: str) -> tuple[str, list[str]]:
    """Split a line into the name, which may contain blanks, and the cells."""
    if "\t" in line:
        name, *values = line.strip("\n").lstrip("\t").split("\t")
        return name, values
    words = line.split()
    end = next((i for i, word in enumerate(words) if i and is_cell(word)), len(words))
    return " ".join(words[:end]), words[end:]


def _row(name: str, cells: Mapping[str, Any], kind: str, vclass: str) -> Vdev:
    health = cells.get("health")
    return Vdev(
        name,
        kind,
        vclass,
        state=str(health) if health not in (None, "-") else "",
        size_bytes=number(cells.get("size")),
        alloc_bytes=number(cells.get("alloc")),
        free_bytes=number(cells.get("free")),
        fragmentation=_share(cells.get("frag")),
    )


def _share(value: object) -> float | None:
    """Convert a percentage, with or without sign, to a share."""
    try:
        return float(str(value).rstrip("%").replace(",", ".")) / 100
    except ValueError:
        return None


def _from_json(document: Mapping[str, Any]) -> Iterator[Vdev]:
    for key, value in mapping(document.get("pools"), "pools").items():
        node = mapping(value, key)
        cells = _properties(node)
        if not cells:
            raise NotUnderstoodError(f"not `zpool list -j` output: pool {key!r} has no properties")
        # Vdevs of the other classes are grouped, among the normal top-level vdevs.
        tops: list[Vdev] = []
        for name, each in mapping(node.get("vdevs"), "vdevs").items():
            vdev = mapping(each, name)
            if name in CLASSES and "properties" not in vdev:
                members = ((inner, mapping(m, inner)) for inner, m in vdev.items())
                tops += [_json_row(inner, member, CLASSES[name]) for inner, member in members]
            else:
                tops.append(_json_row(name, vdev, "normal"))
        row = _row(str(node.get("name", key)), cells, "root", "normal")
        yield row._replace(children=tuple(tops))


def _json_row(key: str, node: Mapping[str, Any], vclass: str) -> Vdev:
    name = str(node.get("name", key))
    if node.get("vdev_type") == "disk" and name.startswith("/"):
        name = disk_name(name, None)
    return _row(name, _properties(node), kind_of(name) or leaf_kind(name), vclass)


def _properties(node: Mapping[str, Any]) -> dict[str, Any]:
    properties = mapping(node.get("properties"), "properties")
    return {
        short: mapping(properties[name], name).get("value")
        for name, short in _PROPERTIES.items()
        if name in properties
    }


DATASET_COLUMNS = "type,usedbydataset,usedbysnapshots,dedup"


def dataset_bytes(text: str) -> tuple[int, Volumes | None]:
    """Add up the bytes of all datasets in ``zfs list -Hp -o DATASET_COLUMNS``, and of volumes.

    Reservations are left out. Blocks that dedup shares count for each dataset: if a volume has it,
    how much lies in volumes is unknown (None).
    """
    every, volumes, shared = 0, list[int](), False
    for line in text.splitlines():
        kind, *cells = line.split("\t")
        used = sum(int(cell) for cell in cells if cell.isdecimal())
        every += used
        if kind == "volume":
            volumes.append(used)
            shared |= cells[-1:] != ["off"]
    return every, None if shared else Volumes(len(volumes), sum(volumes))
