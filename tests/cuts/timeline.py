"""The changes that one run made to disk and journal, in order; and what a crash leaves of them."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import NamedTuple

from tests.cuts.choices import Choose
from tests.cuts.disk import Disk, Effect, Names, NewInode, Page

KILL, JOURNALLING, WORST = range(3)
"""What a crash takes: only the process; what a journaling filesystem may lose; what any may lose.

The second keeps metadata up to one moment. The third keeps the metadata of each directory and each
inode up to a moment of its own. Both lose any pages that were not synced.
"""
MODES = ("kill", "journalling", "worst")


class Change(NamedTuple):
    """A system call that changed something."""

    call: str
    effects: tuple[Effect, ...]
    pages: tuple[Page, ...] = ()


class Synced(NamedTuple):
    """Event: the whole filesystem was synced."""


class FileSynced(NamedTuple):
    """Event: one file was synced."""

    identity: int


class Committed(NamedTuple):
    """Event: the journal committed; holds its whole image, and whether it waited for the disk."""

    image: bytes
    durable: bool


class Noted(NamedTuple):
    """Event: another process did something, which the oracle must know."""

    what: str
    path: bytes
    content: bytes


class Stepped(NamedTuple):
    """Event: another process changed names; content by path, as it would be without the engine."""

    contents: dict[bytes, bytes]


Chain = tuple[str, int]
"""Metadata that stays in order on any filesystem: a directory's names, or an inode's attributes."""
Event = Change | Synced | FileSynced | Committed | Noted | Stepped


class Crash(NamedTuple):
    """Disk and journal after a crash."""

    disk: Disk
    journal: bytes
    power: bool
    """Whether the whole machine went down, not only the process."""
    mode: str


class _Pending(NamedTuple):
    """Changes that were not synced at a cut."""

    effects: list[tuple[int, Effect]]
    """Effects, each with the number of its call."""
    pages: list[Page]
    synced_pages: list[Page]
    """Pages of files that were synced individually."""
    calls: int
    kept_calls: int
    """Number of calls that are durable on a journaling filesystem."""
    kept_chains: dict[Chain, int]
    """Number of effects per chain that are durable on any filesystem."""


@dataclass(slots=True)
class Timeline:
    """The events of one run on a disk with a journal."""

    begin: Disk
    journal: bytes
    events: list[Event] = field(default_factory=list)
    _bases: dict[int, Disk] = field(default_factory=dict)
    _last: tuple[int, _Pending] | None = None

    def cuts(self) -> list[int]:
        """Return the points where a crash makes a difference, as numbers of past events."""
        kinds = (Change, Synced, FileSynced, Committed)
        return [0, *(at + 1 for at, event in enumerate(self.events) if isinstance(event, kinds))]

    def crash(self, cut: int, choose: Choose, modes: int = WORST) -> Crash | None:
        """Return the state after a crash at ``cut`` events; None if it is not possible."""
        mode = choose(modes)
        journal = self._journal(cut, choose if mode else lambda _most: 0)
        disk = self._base(cut).copy()
        pending = self._pending(cut)
        for effect in _surviving(pending, mode, choose):
            disk.apply(effect)
        # Pages reach the disk in any order: each may be lost on its own unless it was synced.
        kept = pending.pages if mode == KILL else _kept(pending.pages, choose)
        for page in (*pending.synced_pages, *kept):
            disk.apply(page)
        # No filesystem leaves two inodes with one number.
        if not disk.tidy():
            return None
        return Crash(disk, journal, mode != KILL, MODES[mode])

    def notes(self, cut: int) -> list[Noted]:
        """Return what others had done before a cut."""
        return [event for event in self.events[:cut] if isinstance(event, Noted)]

    def steps(self, cut: int) -> list[dict[bytes, bytes]]:
        """Return the names after each step of others before a cut."""
        return [event.contents for event in self.events[:cut] if isinstance(event, Stepped)]

    def _synced(self, cut: int) -> int:
        """Return the number of events up to the last full sync before a cut."""
        return next((at for at in range(cut, 0, -1) if isinstance(self.events[at - 1], Synced)), 0)

    def _base(self, cut: int) -> Disk:
        """Return the disk as of the last full sync before a cut."""
        at = self._synced(cut)
        if at not in self._bases:
            disk = self.begin.copy() if at == 0 else self._base(at - 1).copy()
            for event in self.events[self._synced(at - 1) if at else 0 : at]:
                if isinstance(event, Change):
                    for effect in (*event.effects, *event.pages):
                        disk.apply(effect)
            self._bases[at] = disk
        return self._bases[at]

    def _pending(self, cut: int) -> _Pending:
        if self._last is None or self._last[0] != cut:
            found = _Pending([], [], [], 0, 0, {})
            for event in self.events[self._synced(cut) : cut]:
                if isinstance(event, Change):
                    found = _changed(found, event)
                elif isinstance(event, FileSynced):
                    found = _file_synced(found, event.identity)
            self._last = cut, found
        return self._last[1]

    def _journal(self, cut: int, choose: Choose) -> bytes:
        """Return the journal as of its last durable commit, or as of a later commit."""
        images = [self.journal]
        for event in self.events[:cut]:
            if isinstance(event, Committed):
                if event.durable:
                    images.clear()
                images.append(event.image)
        return images[-1 - choose(len(images) - 1)]


def _changed(pending: _Pending, change: Change) -> _Pending:
    pending.effects.extend((pending.calls, effect) for effect in change.effects)
    pending.pages.extend(change.pages)
    return pending._replace(calls=pending.calls + 1)


def _file_synced(pending: _Pending, identity: int) -> _Pending:
    chain = ("inode", identity)
    pending.kept_chains[chain] = sum(_chain(effect) == chain for _, effect in pending.effects)
    synced = [page for page in pending.pages if page.identity == identity]
    return pending._replace(
        # On a journaling filesystem, fsync commits all metadata changed before it.
        kept_calls=pending.calls,
        pages=[page for page in pending.pages if page.identity != identity],
        synced_pages=[*pending.synced_pages, *synced],
    )


def _chain(effect: Effect) -> Chain:
    if isinstance(effect, Names | NewInode):
        return "names", effect.directory
    return "inode", effect.identity


def _surviving(pending: _Pending, mode: int, choose: Choose) -> list[Effect]:
    if mode == KILL:
        return [effect for _, effect in pending.effects]
    if mode == JOURNALLING:
        calls = pending.calls - choose(pending.calls - pending.kept_calls)
        return [effect for call, effect in pending.effects if call < calls]
    chains: defaultdict[Chain, list[Effect]] = defaultdict(list)
    for _, effect in pending.effects:
        chains[_chain(effect)].append(effect)
    kept: list[Effect] = []
    for chain, effects in sorted(chains.items(), key=_names_first):
        lost = choose(len(effects) - pending.kept_chains.get(chain, 0))
        kept += effects[: len(effects) - lost]
    return kept


def _kept(pages: list[Page], choose: Choose) -> list[Page]:
    """Choose all pages, none, or any subset."""
    match choose(2) if pages else 0:
        case 0:
            return pages
        case 1:
            return []
    return [page for page in pages if not choose(1)]


def _names_first(item: tuple[Chain, list[Effect]]) -> tuple[bool, int]:
    """Sort key: an inode comes with its first name, and its attributes change after that."""
    (kind, identity), _ = item
    return kind != "names", identity
