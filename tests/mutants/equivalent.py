"""Mutants that change nothing anybody can see, each with its reason."""

from __future__ import annotations

EQUIVALENT: dict[str, tuple[str, ...]] = {
    "``finish`` looks at the same once more before anything is removed": (
        "swap.Swapper.replace: ignore raise SkipError('open for writing')",
        "swap.Swapper.replace: ignore raise SkipError('changed') #2",
    ),
    "``undo``, to which the SkipError after it leads, asks the same": (
        "swap.Swapper.finish: drop self._need_pristine(item)",
    ),
    "the call with no name fails, too, and every error there leads to ``undo``": (
        "swap.Swapper._give_back: ignore"
        " raise FileNotFoundError(errno.ENOENT, 'no longer in its directory') from None",
    ),
    "a function that ends returns None": ("swap.Swapper._inode: ignore except FileNotFoundError:",),
    "closing directories writes nothing to the journal": (
        "recovery.Recovery.run: swap"
        " self.journal.record(self._results) <> self.directories.close()",
    ),
}
"""By reason the identities of mutants (``Mutant.identity``)."""
REASONS = {identity: reason for reason, those in EQUIVALENT.items() for identity in those}
