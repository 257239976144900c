"""How a directory's files are moved: copied, rewritten in place, or not at all."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.table import rows
from zconsole.rebalance.planning.engine_choice import choose, why_hidden
from zconsole.rebalance.planning.facts import Dataset, JobDirectory
from zconsole.rebalance.planning.settings import Settings

AUTO, COPY = Settings(()), Settings((), "copy")
FOREIGN = Settings((), allow_non_zfs=True)
FOREIGN_RACES = Settings((), allow_non_zfs=True, accept_races=True)
PLAIN = JobDirectory(
    b"/d", "zfs", "tank/a", Dataset("tank/a", {"checksum": "on", "compression": "lz4"})
)
EXT4 = JobDirectory(b"/d", "ext4", "/dev/sda1", None)
OVERLAY = {"in_use": "in use by an overlay (pid 7)"}


def on(**properties: str) -> JobDirectory:
    """Return a directory on a dataset with these properties."""
    return replace(PLAIN, dataset=Dataset("tank/a", properties))


STRONG = on(checksum="sha256", compression="lz4")


@rows(
    ("place", "settings", "version", "more", "engine", "words"),
    [
        (PLAIN, AUTO, (2, 3, 4), {}, "rewrite", "files that others change meanwhile are skipped"),
        (PLAIN, AUTO, (2, 3, 3), {}, "copy", "has no rewrite (2.3.4)"),
        (PLAIN, AUTO, (), {}, None, ""),
        (on(sharesmb="on"), COPY, (2, 3, 9), {}, None, "(--accept-races)"),
        # Overlays, for which no acceptance of races allows.
        (PLAIN, AUTO, (2, 3, 9), OVERLAY, "rewrite", ""),
        (PLAIN, replace(COPY, accept_races=True), (2, 3, 9), OVERLAY, None, "stop its containers"),
        (STRONG, AUTO, (2, 3, 9), OVERLAY, None, "in use by an overlay (pid 7): stop"),
        (EXT4, FOREIGN_RACES, (), OVERLAY, None, "stop its containers"),
        # Metadata that a copy would not see.
        (replace(EXT4, options="rw,noacl"), FOREIGN, (), {}, None, "mounted noacl: a copy would"),
        (replace(EXT4, options="nouser_xattr"), FOREIGN_RACES, (), {}, None, "nouser_xattr: a"),
        # Other filesystems only with leases and exchange of names.
        (replace(EXT4, kind="nfs4"), FOREIGN, (), {}, None, "cannot exclude lost writes"),
        (replace(PLAIN, read_only=True), AUTO, (2, 3, 9), {}, None, "mounted read-only"),
    ],
)
def test_an_engine_is_chosen_where_the_lock_has_no_plan_of_it(
    place: JobDirectory,
    settings: Settings,
    version: tuple[int, ...],
    more: dict[str, Any],
    engine: str | None,
    words: str,
) -> None:
    chosen = choose(settings, place, version, "", **more)
    assert chosen.engine == engine
    assert words in chosen.why


@rows(
    ("properties", "options", "before", "why"),
    [
        ({"acltype": "off"}, "rw,xattr,noacl", "", ""),
        ({"acltype": "off"}, "rw,xattr,noacl", "rw,xattr,noacl", ""),
        ({"acltype": "off"}, "rw,xattr,noacl", "rw,xattr,posixacl", "acltype=off by now: "),
        ({"acltype": "off"}, "rw,xattr,posixacl", "rw,xattr,posixacl", ""),
        ({}, "rw,noxattr,noacl", "", "xattr=off: "),
    ],
)
def test_acls_and_attributes_that_were_on_are_not_dropped_once_they_are_off(
    properties: dict[str, str], options: str, before: str, why: str
) -> None:
    found = why_hidden(replace(on(**properties), options=options), False, before)
    assert found.startswith(why)
    assert bool(found) == bool(why)
