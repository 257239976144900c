"""Scenarios of xfstests (tests/generic) and of CrashMonkey's seq-1, run next to a job.

Those tests check what a filesystem makes of names after a power cut. Here the files that they work
on are being moved at the same time. Left out because they have no meaning here:

- generic/509: a file without any name (O_TMPFILE), which the engine never makes;
- generic/510, generic/784: a directory that takes another's place. Jobs refuse directories that
  were moved, and what they leave there has other paths than the model looks at;
- generic/547: fsstress, whose parts are the other workloads;
- generic/779: symbolic links, which are never moved;
- of seq-1: falloc and mmap (files with blocks reserved are skipped; writing through a mapping
  needs a descriptor for writing, as the others have), mkdir, rmdir and symlink.
"""

from __future__ import annotations

from tests.cuts.disk import Tree
from tests.cuts.scripts import Step
from tests.cuts.timeline import JOURNALLING
from tests.cuts.workloads import Workload


def _files(tree: Tree) -> None:
    tree.directory(b"a")
    tree.directory(b"b")
    tree.file(b"foo", b"content of foo")
    tree.file(b"bar", b"content of bar")
    tree.file(b"a/one", b"content of one")
    tree.file(b"b/two", b"content of two")


def _linked(tree: Tree) -> None:
    tree.directory(b"a")
    tree.directory(b"b")
    tree.file(b"a/foo", b"content of foo")
    tree.link(b"a/foo", b"b/foo")
    tree.link(b"a/foo", b"a/bar")
    tree.file(b"b/two", b"content of two")


def _scenario(name: str, *steps: Step, linked: bool = False) -> Workload:
    build = _linked if linked else _files
    return Workload(name, build, batch=2, modes=JOURNALLING, steps=steps)


_FOO, _BAR, _NEW = b"foo", b"bar", b"of the new file"
SCENARIOS = (
    # Two names are exchanged.
    _scenario("generic/025 exchange", Step("exchange", _FOO, _BAR)),
    # A file that the engine has open is replaced by another.
    _scenario("generic/035 overwrite", Step("rename", _FOO, _BAR)),
    # A renamed file is synced.
    _scenario("generic/322 rename and sync", Step("rename", _FOO, _BAR), Step("fsync", _BAR)),
    # A file goes to another directory; the one it left is synced.
    _scenario(
        "generic/335 other directory", Step("rename", b"a/one", b"b/one"), Step("fsync", b"a")
    ),
    # One of two links is removed, another file leaves that directory, the linked one is synced.
    _scenario(
        "generic/336 link removed",
        Step("unlink", b"b/foo"),
        Step("rename", b"b/two", b"two"),
        Step("fsync", b"a/foo"),
        linked=True,
    ),
    # A file is renamed, and a new one with its name is synced.
    _scenario(
        "generic/342 old name again",
        Step("rename", _FOO, b"was-foo"),
        Step("create", _FOO, _NEW),
        Step("fsync", _FOO),
    ),
    # A file gets a link in a directory that another file moves to; then it is synced.
    _scenario(
        "generic/343 link and move",
        Step("link", _FOO, b"a/foo"),
        Step("rename", b"b/two", b"a/two"),
        Step("fsync", _FOO),
    ),
    # Like generic/342, but the renamed file is synced.
    _scenario(
        "generic/376 old name, renamed synced",
        Step("rename", _FOO, b"was-foo"),
        Step("create", _FOO, _NEW),
        Step("fsync", b"was-foo"),
    ),
    # A synced file gets a link, whose directory is synced.
    _scenario(
        "generic/498 link, directory synced",
        Step("fsync", _FOO),
        Step("link", _FOO, b"a/foo"),
        Step("fsync", b"a"),
    ),
    # Two links are renamed in turn, and a new file takes the last free name.
    _scenario(
        "generic/502 links in turn",
        Step("rename", b"a/bar", b"a/third"),
        Step("rename", b"a/foo", b"a/bar"),
        Step("create", b"a/foo", _NEW),
        Step("fsync", b"a/foo"),
        linked=True,
    ),
    # Names are renamed and linked in a ring; a new file with an old name is synced.
    _scenario(
        "generic/526 ring of names",
        Step("rename", _BAR, b"third"),
        Step("rename", _FOO, _BAR),
        Step("link", b"third", _FOO),
        Step("create", b"fourth", _NEW),
        Step("fsync", b"fourth"),
    ),
    # Like the scenario above, with a removal.
    _scenario(
        "generic/527 ring with removal",
        Step("unlink", _BAR),
        Step("rename", _FOO, _BAR),
        Step("create", _FOO, _NEW),
        Step("fsync", _FOO),
    ),
    # A directory is synced, a file leaves it, and something else is synced.
    _scenario(
        "generic/640 other inode synced",
        Step("fsync", b"a"),
        Step("rename", b"a/one", b"b/one"),
        Step("fsync", _FOO),
    ),
    # CrashMonkey, seq-1: one operation, then a sync. ``others`` covers writing and attributes.
    _scenario("seq-1 creat", Step("create", b"a/new", _NEW), Step("fsync", b"a/new")),
    _scenario("seq-1 link", Step("link", _FOO, b"b/foo"), Step("sync")),
    _scenario("seq-1 unlink", Step("unlink", _FOO), Step("sync")),
    _scenario("seq-1 remove a link", Step("unlink", b"a/bar"), Step("sync"), linked=True),
    _scenario("seq-1 rename", Step("rename", _FOO, b"b/foo"), Step("sync")),
)
