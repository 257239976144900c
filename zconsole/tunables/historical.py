"""Names from old guides and other systems: what they were, and what stands for them now."""

from __future__ import annotations

from zconsole.tunables.catalog import BY_NAME, HISTORICAL


def explain(name: str) -> str | None:
    """What an old or FreeBSD name was and what to use; None for a name that is neither."""
    if entry := HISTORICAL.get(name):
        return f"{name}: {entry['explanation']}; now: {', '.join(entry['now'])}"
    return _freebsd(name) if name.startswith("vfs.zfs.") else None


def _freebsd(name: str) -> str:
    """FreeBSD drops ``zfs_`` and puts ``vfs.zfs.`` first, with a dot for some prefixes."""
    words = name.removeprefix("vfs.zfs.").replace(".", "_")
    for linux in (f"zfs_{words}", words):
        if linux in HISTORICAL:
            return f"{name} is FreeBSD's name of {explain(linux)}"
        if linux in BY_NAME:
            return f"{name} is a FreeBSD sysctl; on Linux it is {linux}"
    return f"{name} is a FreeBSD sysctl; on Linux it has no counterpart known here"
