"""One job on one tree: a lock file a running job in the state directory, with what it claims.

A second job on the same tree, on one inside it or on one around it finds a claim in its way,
through a bind mount, too. The kernel drops the lock of a process that dies; its file is removed
by the next job.

Nobody else can reach the state directory, so nobody else can keep a job waiting. In turn, jobs
of another user or another state directory aren't seen. Two such jobs on one tree lose nothing:
each has leases on the originals it copies, and skips those the other has.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator, Sequence
from itertools import combinations
from pathlib import Path

from zconsole.errors import UsageError, ZconsoleError
from zconsole.rebalance.engine.syscalls import Sys
from zconsole.rebalance.job.claims import Claim, claim
from zconsole.system.safe_path import make_directory
from zconsole.system.state_dir import lock_within, read_private, remove, state_dir, try_lock

TURN = "trees.lock"
"""Held while claims are compared and a new one is written."""
PATIENCE = 10.0
"""Seconds to wait for that."""
MOST_BYTES = 1 << 24


class BusyTreeError(ZconsoleError):
    """Another job works on the tree, inside it, or around it."""


class TreeLocks:
    """A claim held until ``close``."""

    def __init__(self, sys: Sys, roots: Sequence[bytes]) -> None:
        """Take the locks. Raises BusyTreeError, UsageError, StateError, OSError."""
        self.roots = tuple(roots)
        claims = [claim(sys, root) for root in roots]
        _refuse_own(claims)
        where = state_dir(create=True) / "locks"
        make_directory(where)
        with _turn(where / TURN):
            for other in _others(where):
                _refuse_overlap(claims, other)
            self._file = where / f"tree-{os.urandom(8).hex()}.lock"
            self._fd: int | None = _written(self._file, claims)

    def close(self) -> None:
        """Drop the locks."""
        if self._fd is not None:
            fd, self._fd = self._fd, None
            with contextlib.suppress(OSError, ZconsoleError):  # the next job removes it
                remove(self._file)
            os.close(fd)


def _refuse_own(claims: Sequence[Claim]) -> None:
    """Raise UsageError where two directories of one job overlap, through a bind mount."""
    for one, other in combinations(claims, 2):
        if one.overlaps(other):
            raise UsageError(f"{one.path} and {other.path} overlap. Name only one of them")


@contextlib.contextmanager
def _turn(path: Path) -> Iterator[None]:
    handle = lock_within(path, PATIENCE)
    if handle is None:
        raise BusyTreeError(
            f"{path} is locked by another zconsole for over {PATIENCE:g} s."
            " End that one (see /proc/locks) and try again"
        )
    try:
        yield
    finally:
        os.close(handle)


def _others(where: Path) -> Iterator[list[Claim] | None]:
    """The claims of every running job, None for one that cannot be read; of dead ones the files
    are removed."""
    for file in where.glob("tree-*.lock"):
        handle = try_lock(file)
        if handle is not None:
            remove(file)
            os.close(handle)
            continue
        with contextlib.suppress(FileNotFoundError):
            try:
                found = json.loads(read_private(file, MOST_BYTES))
                yield [Claim.from_json(data) for data in found["claims"]]
            except (ValueError, KeyError, TypeError):
                yield None


def _refuse_overlap(claims: Sequence[Claim], others: Sequence[Claim] | None) -> None:
    if others is None:
        raise BusyTreeError("a job of another version is running. Wait for its end")
    for one in claims:
        for other in others:
            if one.overlaps(other):
                raise BusyTreeError(
                    f"another job works in {other.path}, which overlaps {one.path}."
                    " Wait for its end, or stop it (zconsole rebalance status)"
                )


def _written(file: Path, claims: Sequence[Claim]) -> int:
    """A new lock file, held, which says what is claimed."""
    handle = try_lock(file)
    if handle is None:
        raise BusyTreeError(f"{file} is locked by another process. Try again")
    try:
        data = json.dumps({"claims": [one.as_json() for one in claims]}).encode()
        while data:
            data = data[os.write(handle, data) :]
    except OSError:
        os.close(handle)
        remove(file)
        raise
    return handle
