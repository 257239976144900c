"""Mutants without any visible effect, each with the reason."""

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
    "others who come between the two come before the time of a directory is noted: they are none of"
    " those it is watched for": (
        "directories.Directories.begin: swap"
        " self._watching.add(directory.number, directory.fd) <> self._look()",
    ),
    "before names are left to who has them locked there was a look, and the last is remembered": (
        "copy_engine.CopyPipeline._leave_locked: invert self.users.look()",
    ),
    "two lists in memory, neither of which the other's call can see": (
        "results.Results.add: swap self._wait(row, Result(row.number, STATES[outcome], reason))"
        " <> self.outcomes.append(FileOutcome(row, outcome, size, reason))",
        "results.Results.keep: swap self._wait(row, Result(row.number, State.FAILED, reason,"
        " kept)) <> self.outcomes.append(FileOutcome(row, 'failed', 0, reason))",
    ),
    "two collections in memory, neither of which the other's call can see; an error of the journal"
    " between the two ends the recovery": (
        "recovery.Recovery._put_back: swap"
        " self._joiner.settled.add(self._links.key(row)) <> self._given_back.append(given)",
    ),
    "a file is closed without an error told, and a list in memory says nothing of descriptors": (
        "withdrawal.Withdrawal._discard: swap"
        " item.close(self.sys) <> self.results.add(item.names, outcome, item.reason)",
        "withdrawal.Withdrawal._ending: swap item.close(self.sys)"
        " <> self.results.leave(item.names, 'failed', f'{item.reason}; {error.strerror}')",
        "withdrawal.Withdrawal.retreat: swap"
        " item.let_go(self.sys) <> self.given_back.append((item, outcome))",
    ),
    "no name has a result and an intent at once: its inode is moved once in a pass over the files,"
    " and all results of that are committed before the next": (
        "journal.Journal.record: swap self._db.executemany('UPDATE files SET state = ?, reason = ?,"
        " temp = ? WHERE id = ?', [(int(r.state), r.reason, r.temp, r.number) for r in results])"
        " <> self._db.executemany('UPDATE files SET state = ?, temp = ?, old = ?, new = ?,"
        " digest = ?, meta = ?, handle = ? WHERE id = ?',"
        " [(int(i.state), *i[2:], i.number) for i in intents])",
    ),
    "a wait in small steps is stopped a step sooner or later": (
        "versions.Versions._open_unleased: swap self.sleep(PAUSE) <> self.tick(0)",
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
        "config.file._end: one more len(lines) + 1",
    ),
    "a second after 1970 is as long before the end of any scan as its first": (
        "actions.follow._ended_since: one more scan.end or 0.0",
    ),
    "the moment itself, by a clock of fractions, is met by nobody": (
        "timeline.scans.ScanTracker._known: boundary scan.start >= self._last - FROM_START",
        "output.prometheus.server.Server.service_actions: boundary began <= began_by",
        "swap.steps._how_found: boundary now - max(switched) < LASTING",
        "cli.keeper._watch: boundary time.monotonic() > end + STOP_WITHIN",
        "zfs.sources.replay.ReplaySource._wait_for: boundary"
        " abs(self._due - loop.time()) > _STEERED",
    ),
    "neither of the two sees what the other does": (
        "actions.executor.RunRecord.left_running: swap"
        " self.steps.append({'argv': list(step.argv)}) <> self.log.note(self.clock(),"
        " 'ended', **self._of(step), ok=False, result=result)",
        "sim.commands.detach: swap lifecycle.release(pool, leaf)"
        " <> pool.note('vdev_remove', f'{leaf.name} detached', vdev=leaf.path)",
        "rebalance.planning.survey.survey: swap"
        " links.add(index, portion) <> _sample(sys, found, portion)",
        "rebalance.planning.survey.Survey.add: swap"
        " self._measure(statuses) <> self.sample.offer(statuses)",
        "ui.rebalance.folder_screen.FoldersScreen.draw: swap"
        " self.view.show(folder_lines(self._rows, self._look, width)) <> self._show_hint()",
        "ui.swap.swap_screen.SwapScreen.on_mount: swap"
        " self.set_interval(LOOK, self._again) <> self.look_again()",
        "zfs.sources.kernel.client._Helper.on_output: swap self.channel.abandon()"
        " <> self._end(_HelperEndedError('it gave no answer'))",
    ),
    "options are found by name, and no person starts this command, to read its help": (
        "cli.keeper.parsed: swap parser.add_argument('--root', type=Path, default=ROOT)"
        " <> parser.add_argument('--module', type=Path, default=MODULE)",
    ),
    "no serial number, taken away, is none": (
        "hardware.machine._without_shared_serials: without first each.serial and (not each.wwn)",
    ),
    "a place in a course is kept with a digit more": (
        "timeline.store.encode_past: one more round(at, 5)",
    ),
    "one device has one state and one id wherever it is shown": (
        "pool.model.path_is_reused: without first leaf.guid or ''",
    ),
    "another pass over no files moves none": (
        "rebalance.job.runner.JobRunner._left_over: always True"
        " State.PENDING in self.job.journal.counts()",
    ),
    "a quotient has the sign of the product": (
        "tunables.hold_latency._value: arithmetic (end - original) * way",
    ),
    "what is beside a command is so for at least five seconds": (
        "ui.panes.device_graphs._marks: one more happened((*scan, *own), frame, 0.0)",
    ),
    "the largest index of Python is 2**31 - 1 or 2**63 - 1": (
        "holders._is_ours: one more 2 ** 32",
    ),
    "an event names a simulated device by the end of its path, which is its name": (
        "sim.commands.detach: other field leaf.path",
    ),
    "an nvlist that is looked at begins with a byte 1, what is looked for in it with a byte 0": (
        "hardware.machine._pair: one more found < 0",
    ),
    "bytes that are no UTF-8 have no line end among them": (
        "config.file.read_config: other field error.start",
    ),
    "a nanosecond is no second": (
        "zfs.sources.events._details: one more _number(payload.get('zio_delay', '')) or 0",
    ),
}
"""Identities of mutants (``Mutant.identity``) by reason."""
REASONS = {identity: reason for reason, those in EQUIVALENT.items() for identity in those}
