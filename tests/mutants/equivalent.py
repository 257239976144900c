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
    "a function that ends returns None": (
        "swap.Swapper._inode: ignore except FileNotFoundError:",
        "link_names.LinkNames.inode: ignore except FileNotFoundError:",
    ),
    "indexes change how fast a journal answers, and none of its answers": (
        "journal.Journal.finish_walk: drop self._db.executescript(INDEXES)",
    ),
    "a journal is created in WAL mode, which is kept in its header": (
        "journal_database.connect: drop db.execute('PRAGMA journal_mode = WAL')",
    ),
    "neither of the two settings of a connection depends on the other": (
        "journal_database.connect: swap db.execute('PRAGMA journal_mode = WAL')"
        " <> db.execute('PRAGMA synchronous = FULL')",
    ),
    "closing directories writes nothing to the journal": (
        "recovery.Recovery.run: swap"
        " self.journal.record(self._results) <> self.directories.close()",
    ),
    "names are replaced after both, and after a death between them recovery removes the copy"
    " whichever came first": (
        "copy_engine.CopyPipeline.run: swap self._verify_all() <> self._commit_intents()",
    ),
    "the journal knows temporary names of files given up then, and recovery finds nothing there": (
        "copy_engine.CopyPipeline.run: swap self.withdrawal.spare_users(self.leases.live,"
        " self.users.recent()) <> self._commit_names()",
    ),
    "leases are looked at between any two files in either order, and each step looks at its own": (
        "copy_engine.CopyPipeline.run: swap self.leases.service() <> self._open(row)",
        "copy_engine.CopyPipeline._make_durable: swap"
        " self.leases.service() <> self.withdrawal.guarded(item, self.verifier.reopen)",
        "copy_engine.CopyPipeline._replace_all: swap"
        " self.leases.service() <> self.withdrawal.guarded(item, self._replace)",
        "copy_engine.CopyPipeline._finish_all: swap"
        " service() <> self.withdrawal.guarded(item, self._finish)",
    ),
    "two lists in memory, neither of which the other's call can see": (
        "results.Results.add: swap self.waiting.append(Result(row.number, STATES[outcome], reason))"
        " <> self.outcomes.append(FileOutcome(row, outcome, size, reason))",
        "results.Results.keep: swap self.waiting.append(Result(row.number, State.FAILED, reason,"
        " kept)) <> self.outcomes.append(FileOutcome(row, 'failed', 0, reason))",
    ),
    "a wait in small steps is stopped a step sooner or later": (
        "versions.Versions._unleased: swap self.sleep(PAUSE) <> self.tick(0)",
    ),
    "advice to the kernel on what to read ahead changes the speed, and no file": (
        "copy_engine.CopyPipeline._copy_all: invert self.admission.policy.ahead",
        "copy_engine.CopyPipeline._copy_all: invert item.done",
        "copy_engine.CopyPipeline._copy_all: drop front.step()",
        "copy_engine.CopyPipeline._copy_all: swap"
        " front.step() <> self.withdrawal.guarded(item, self._copy)",
        "copy_engine.CopyPipeline._ask: drop"
        " self.sys.fadvise(item.source, 0, count, os.POSIX_FADV_WILLNEED)",
    ),
    "the last line, and one behind it, end the same entry": (
        "config.saving._end: one more len(lines) + 1",
    ),
    "a second after 1970 is as long before the end of any scan as its first": (
        "actions.follow._ended_since: one more scan.end or 0.0",
    ),
}
"""By reason the identities of mutants (``Mutant.identity``)."""
REASONS = {identity: reason for reason, those in EQUIVALENT.items() for identity in those}
