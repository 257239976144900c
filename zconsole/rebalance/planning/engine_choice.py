"""Choice of the engine for a directory, with the reason; or the reason for none.

Options of ``zfs rewrite`` (zfs-rewrite(8)): ``-P`` since 2.4.0, with the pool feature
physical_rewrite; ``-S`` and ``-C`` after 2.4 (master of August 2026). See zfs_rewrite in
module/zfs/zfs_vnops.c.
"""

from __future__ import annotations

from dataclasses import dataclass

from zconsole.pool.model import Version
from zconsole.rebalance.planning.facts import Dataset, JobDirectory, PoolFacts
from zconsole.rebalance.planning.settings import Settings

EXCHANGING = frozenset({"ext4", "xfs", "btrfs", "tmpfs", "f2fs", "bcachefs"})
"""Filesystems with RENAME_EXCHANGE and leases (renameat2(2), fcntl(2)); ZFS has both from 2.2."""
REWRITE = (2, 3, 4)
EXCHANGE = (2, 2, 0)
_SKIPS = "files that others change meanwhile are skipped"
COPIES = (
    f"{_SKIPS}; copying changes inode numbers, ctimes and birth times: inotify watches end,"
    " backups that compare inode or ctime read the files again, a reader that is not seen (tail"
    " -f) keeps the old file. A descriptor on its way through a socket is not seen: what is written"
    " with it is lost"
)
NESTED = (
    "in a user namespace (an unprivileged container) a copy would lose attributes that only the"
    " host's root sees: run the job on the host"
)
READ_ONLY = "mounted read-only"
IN_PLACE = f"in place: inodes stay, so files in use are safe; {_SKIPS}"
VERIFIED = "verified copies, leased where the filesystem grants leases"
HIDDEN = {
    "noacl": "noacl: a copy would drop ACLs that are not shown",
    "nouser_xattr": "nouser_xattr: a copy would drop attributes that are not shown",
}
"""Mount options of ext4, btrfs or f2fs that hide metadata of files, and the consequence."""
_STOP = ": stop its containers, or leave these directories out"


@dataclass(frozen=True, slots=True)
class Choice:
    """The chosen engine (copy, rewrite or None) and the reason, either way."""

    engine: str | None
    why: str


def choose(
    settings: Settings,
    place: JobDirectory,
    version: Version,
    unseen: str,
    in_use: str | None = None,
    nested: bool = False,
) -> Choice:
    """Choose the engine for one directory.

    ``unseen``: why writes by others may go unnoticed, empty if they don't. ``in_use``: which use of
    the directory, such as a mounted overlay, forbids copying. ``nested``: this process is in a user
    namespace.
    """
    bar = f"{in_use}{_STOP}" if in_use else why_hidden(place, nested)
    dataset, wanted = place.dataset, settings.engine
    if place.read_only:
        return Choice(None, READ_ONLY)
    no_copy = _no_copy(settings, place, version, unseen, bar)
    if dataset is None:
        return Choice(None, no_copy) if no_copy else Choice("copy", f"{place.kind} has no rewrite")
    if dataset.is_on("dedup") and settings.aim in ("balance", "width"):
        return Choice(None, "dedup is on: the same content again only adds a reference")
    no_rewrite = _no_rewrite(settings, dataset, version)
    if wanted == "rewrite" or (wanted == "auto" and not no_rewrite):
        return Choice(None, no_rewrite) if no_rewrite else Choice("rewrite", IN_PLACE)
    if no_copy:
        both = f"rewrite: {no_rewrite}; copy: {no_copy}"
        return Choice(None, both if wanted == "auto" else no_copy)
    before = f"{no_rewrite}; " if wanted == "auto" else ""
    after = "" if no_rewrite else "; rewrite would keep every inode (--engine=rewrite)"
    return Choice("copy", f"{before}{VERIFIED}{after}")


def _no_rewrite(settings: Settings, dataset: Dataset, version: Version) -> str:
    """Reason why files can't be rewritten in place; empty if they can."""
    if version < REWRITE:
        words = ".".join(map(str, version)) or "this version"
        return f"OpenZFS {words} has no rewrite (2.3.4)"
    if settings.aim == "recordsize":
        return "rewrite keeps the recordsize a file has"
    if dataset.drops_unchanged and settings.aim != "properties":
        checksum, compression = (dataset.properties[p] for p in ("checksum", "compression"))
        return (
            f"checksum={checksum} with compression={compression} drops writes of unchanged content"
            " (nop-write): rewrite would move nothing"
        )
    return ""


def _no_copy(
    settings: Settings, place: JobDirectory, version: Version, unseen: str, bar: str
) -> str:
    """Reason why files can't be copied; empty if they can.

    ``bar``: a reason that holds even if the operator accepts races.
    """
    dataset, kind = place.dataset, place.kind
    if dataset is None and not settings.allow_non_zfs:
        return f"not on ZFS but {kind} (--allow-non-zfs to copy all the same)"
    if dataset is None and settings.engine == "rewrite":
        return f"{kind} has no rewrite"
    if bar or settings.accept_races:
        return bar
    if dataset is None and kind not in EXCHANGING:
        return f"{kind} cannot exclude lost writes (--accept-races)"
    if dataset is not None and version < EXCHANGE:
        return "names cannot be exchanged before OpenZFS 2.2 (--accept-races)"
    shared = why_shared(dataset, unseen)
    return f"{shared} (--accept-races)" if shared else ""


def why_hidden(place: JobDirectory, nested: bool, before: str = "") -> str:
    """Reason why a copy would lack hidden metadata of its original; empty if all can be seen.

    Checked again when a planned job runs: ``before`` are the mount options at planning time. A
    dataset's mount options show its current properties (zpl_show_options). ZFS has ACLs off by
    default, which the plan notes; if they were on before, files may have some.
    """
    if nested:
        return NESTED
    dataset, options = place.dataset, place.options.split(",")
    if dataset is None:
        dropped = (HIDDEN[option] for option in options if option in HIDDEN)
        return next((f"mounted {why}" for why in dropped), "")
    if dataset.properties.get("acltype") in ("nfsv4", "nfs4"):
        return "acltype=nfsv4: a copy would drop ACLs that Linux does not show"
    if dataset.properties.get("xattr") == "off" or "noxattr" in options:
        return "xattr=off: a copy would drop attributes that are not shown"
    if "noacl" in options and "posixacl" in before.split(","):
        return "acltype=off by now: a copy would drop ACLs that are not shown"
    return ""


def why_shared(dataset: Dataset | None, exported: str) -> str:
    """Reason why other machines may have files open; empty if they can't."""
    for name in ("sharenfs", "sharesmb") if dataset else ():
        if dataset and dataset.is_on(name):
            return f"exported over NFS or SMB ({name} is on)"
    return exported


FLAGS = {"P": 0x1, "S": 0x2, "C": 0x4}
"""``ZFS_REWRITE_PHYSICAL``, ``_SKIP_SNAPSHOT``, ``_SKIP_BRT`` (include/sys/fs/zfs.h)."""
SINCE: dict[str, tuple[Version, str]] = {
    "P": ((2, 4), "2.4"),
    "S": ((2, 4, 99), "2.5"),
    "C": ((2, 4, 99), "2.5"),
}
"""For each option, the module version that has it at least, and the release to name."""
FEATURE = "feature@physical_rewrite"


def flags_of(letters: str) -> int:
    """Return the flags of ZFS_IOC_REWRITE for option letters."""
    return sum(FLAGS[letter] for letter in letters)


def checked(chosen: Choice, letters: str, version: Version, pool: PoolFacts | None) -> Choice:
    """Return the chosen engine, or none if it can't honor these options of ``zfs rewrite``."""
    if not letters or chosen.engine is None:
        return chosen
    if chosen.engine != "rewrite":
        return Choice(None, f"-{letters} is for rewriting in place, but: {chosen.why}")
    for letter in letters:
        since, release = SINCE[letter]
        if version < since:
            return Choice(None, f"zfs rewrite -{letter} needs OpenZFS {release}")
    state = pool.properties.get(FEATURE) if pool else None
    if "P" in letters and state not in ("enabled", "active", None):
        return Choice(None, "zfs rewrite -P needs the pool feature physical_rewrite to be enabled")
    return Choice("rewrite", f"{chosen.why} (zfs rewrite -{letters})")
