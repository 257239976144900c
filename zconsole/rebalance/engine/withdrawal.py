"""Withdrawal from files that others use or change, or on which a call fails: undone or kept."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from zconsole.rebalance.engine import file_locks
from zconsole.rebalance.engine.content import ChangedError
from zconsole.rebalance.engine.file_locks import FilesInUse, Users
from zconsole.rebalance.engine.item import Item, SkipError, outcome_of
from zconsole.rebalance.engine.results import Results
from zconsole.rebalance.engine.swap import GRACE, ConflictError, Swappers
from zconsole.rebalance.engine.syscalls import Sys


@dataclass(slots=True)
class Withdrawal:
    """Gives names back to originals, and discards or keeps the copies."""

    sys: Sys
    swappers: Swappers
    results: Results
    users: Users
    clock: Callable[[], float]
    sleep: Callable[[float], None]
    given_back: list[tuple[Item, str]] = field(default_factory=list)
    """Items whose names have their originals again, with the outcome of each.

    Their copies are removed at the end of the batch.
    """

    def guarded(self, item: Item, step: Callable[[Item], None]) -> None:
        """Run one step of one item; an error ends that item only."""
        if item.done:
            return
        try:
            step(item)
        except ConflictError as error:
            self.keep_both(item, str(error))
        except SkipError as error:
            self.retreat(item, str(error))
        except (ChangedError, FileNotFoundError):
            self.retreat(item, "changed")
        except OSError as error:
            outcome, reason = outcome_of(error)
            self.retreat(item, reason, outcome)

    def retreat(self, item: Item, reason: str, outcome: str = "skipped") -> None:
        """Give an original its names back, and discard the copy, at once if nobody can have it."""
        if item.done:
            return
        item.reason = reason
        self.results.unsynced.add(item.status.st_dev)
        with self._ending(item):
            self.swappers.of(item).undo(item)
            if item.seen:
                item.names_changed_at = self.clock()
                item.let_go(self.sys)
                self.given_back.append((item, outcome))
            else:
                self._discard(item, outcome)

    def spare_users(self, items: Iterable[Item], look: FilesInUse) -> None:
        """Give up items whose original others use; keep both versions if both are used."""
        items = list(items)
        _add_unreached(look, items)
        for item in items:
            device = item.status.st_dev
            reason = look.user(device, item.old)
            for place in item.places if look.layers else ():
                reason = reason or look.inside_overlay(place.directory.fd)
            if reason and item.in_place and look.user(device, item.new):
                self.keep_both(item, "both in use")
            elif reason:
                self.retreat(item, reason)

    def keep_both(self, item: Item, why: str) -> None:
        """Keep both versions of a file, as both are in use or changed; the report names both."""
        item.close(self.sys)
        for place in item.places:
            kept = place.kept or place.temp
            reason = f"{why}; the other version is {os.fsdecode(kept)}"
            if not (place.swapped or place.linked):
                reason = f"another name of it was {why}"
            self.results.keep(place.row, reason, kept)

    def wait_grace(self, items: Iterable[Item], service: Callable[[], None]) -> None:
        """Wait until GRACE after the last exchange of any of these."""
        changed = [item.names_changed_at for item in items]
        if changed and (left := GRACE - (self.clock() - max(changed))) > 0:
            self.sleep(left)
        service()

    def discard_all(self, service: Callable[[], None]) -> None:
        """Remove the copies of items that were given back; those in use by others are kept."""
        if not self.given_back:
            return
        self.wait_grace((item for item, _ in self.given_back), service)
        look = self.users.look(service)
        _add_unreached(look, (item for item, _ in self.given_back))
        locks = file_locks.locked_inodes()
        while self.given_back:
            item, outcome = self.given_back.pop()
            with self._ending(item):
                fd, device = item.places[0].directory.fd, item.status.st_dev
                if used := look.user(device, item.new):
                    raise ConflictError(used)
                if look.may_be_locked(locks, fd, device, item.new):
                    raise ConflictError("locked during the move")
                self._discard(item, outcome)

    def drop(self, item: Item) -> None:
        """Close a file whose move is broken off, and remove its copy unless others can have it.

        The journal still lists the file as unfinished.
        """
        if not item.in_place and not item.seen:
            # If this fails, recovery removes the copy, by the journal.
            with contextlib.suppress(OSError, ConflictError):
                self.swappers.of(item).discard(item)
        item.close(self.sys)

    def _discard(self, item: Item, outcome: str) -> None:
        self.swappers.of(item).discard(item)
        item.close(self.sys)
        self.results.add(item.names, outcome, item.reason)

    @contextlib.contextmanager
    def _ending(self, item: Item) -> Iterator[None]:
        """Enclose the withdrawal from an item, and deal with errors.

        After a ConflictError both versions are kept. After an OSError the journal still lists the
        file as unfinished, for recovery.
        """
        try:
            yield
        except ConflictError as error:
            self.keep_both(item, str(error))
        except OSError as error:
            item.close(self.sys)
            self.results.leave(item.names, "failed", f"{item.reason}; {error.strerror}")


def _add_unreached(look: FilesInUse, items: Iterable[Item]) -> None:
    """Add the mounted files that only the directories of these items lead to."""
    for directory in {place.directory.fd for item in items for place in item.places}:
        look.add_unreached(directory)
