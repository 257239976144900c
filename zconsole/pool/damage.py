"""What entries of zpool's error list mean that name no file.

zpool prints a path where it can find one, else the number of the object, of the dataset, or of
both (zpool_obj_to_path_impl in lib/libzfs/libzfs_pool.c, 2.1 to master). An entry leaves the list
once two scrubs in a row have completed without it (spa_errlog_rotate in module/zfs/spa_errlog.c).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

SCRUB_TWICE = "leaves the list after two scrubs"
_ID = "0x[0-9a-f]{1,16}"
_NAMELESS = re.compile(rf"(?:<(?P<gone>{_ID})>|(?P<dataset>.+)):<(?P<object>{_ID})>")
_METADATA = "<metadata>"
_OF_DATASET = {0: "its list of objects", 1: "a volume's data, or a filesystem's root metadata"}
"""Objects with a fixed number: DMU_META_DNODE_OBJECT; ZVOL_OBJ and MASTER_NODE_OBJ."""


def explained(entry: str, destroyed: Mapping[str, str]) -> str:
    """What an entry without a path means and what to do, "" for one with a path.

    ``destroyed``: hexadecimal id to the last name of a dataset, where that is known.
    """
    match = _NAMELESS.fullmatch(entry)
    if match is None:
        return ""
    number = int(match["object"], 16)
    if match["gone"]:
        name = destroyed.get(match["gone"])
        what = f"was in {name}, which is destroyed" if name else "a destroyed snapshot or dataset"
        return f"{what}: {SCRUB_TWICE}"
    if match["dataset"] == _METADATA:
        return (
            "the pool's own metadata, no file: scrub twice; if it is still listed, copy the data"
            " away and make the pool anew"
        )
    if number in _OF_DATASET:
        return f"{_OF_DATASET[number]}: restore {match['dataset']} from a backup, then scrub twice"
    return (
        f"a deleted file (inode {number}): {SCRUB_TWICE}. Unless {match['dataset']} is locked or"
        " not mounted: load its key, mount it and look again"
    )


def notes(entries: Iterable[str] | None, destroyed: Mapping[str, str]) -> dict[str, str]:
    """Each entry that needs explaining, and its explanation."""
    pairs = ((entry, explained(entry, destroyed)) for entry in entries or ())
    return {entry: note for entry, note in pairs if note}


def destroyed_ids(entries: Iterable[str] | None) -> Iterator[str]:
    """The hexadecimal ids of datasets that are no more, as the entries have them."""
    for entry in entries or ():
        if (match := _NAMELESS.fullmatch(entry)) and match["gone"]:
            yield match["gone"]
