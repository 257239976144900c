"""The condition of a pool in words: its health, redundancy, ends of scans, and problems."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace

from tests.lock.plans.table import alike
from zconsole.actions.follow import leftover
from zconsole.actions.plan import Situation
from zconsole.actions.target import suspects
from zconsole.pool.hazards import hazards
from zconsole.pool.health import (
    Health,
    health,
    spare_problems,
    too_small,
    unreachable,
    without_redundancy,
)
from zconsole.pool.model import Pool, SampleFailure, Scan, Vdev, parse_version
from zconsole.pool.redundancy import is_complete, may_fail, parity, redundancy
from zconsole.pool.scan_outcome import blocked_repair, last_scan, not_restored, scan_outcome

AGES = (0.0, 5.0, 19.0, 21.0, 3600.0)
"""Seconds since the end of a scan, before and after the time in which the kernel still settles."""
RELEASES = (
    *("0.8.6", "2.0.0", "2.1.0", "2.1.11", "2.2.0", "2.2.9", "2.2.10", "2.2.11", "2.3.0", "2.3.6"),
    *("2.3.7", "2.3.9", "2.4.0", "2.4.1", "2.4.2", "2.4.4", "2.5.0"),
)
COMMANDS = (
    *("replace", "replace -s", "clear", "detach", "attach", "trim", "scrub", "online", "add"),
    *("copy", "rewrite", "no leases on this filesystem"),
)


def _lacking(vdev: Vdev, names: Collection[str]) -> Vdev:
    """Return a tree in which the leaves of these names lack data."""
    if not vdev.children:
        return vdev._replace(unfilled=True) if vdev.name in names else vdev
    return vdev._replace(children=tuple(_lacking(child, names) for child in vdev.children))


def condition(s: Situation) -> Iterator[str]:
    """Yield what a pool's own figures tell about its condition."""
    pool, root = s.pool, s.pool.root
    spares = spare_problems(root, pool.scans, s.t)
    yield from alike((_told(found), label) for label, found in _healths(s).items())
    returned = [leaf.name for leaf in root.leaves() if leaf.vclass == "normal"][:1]
    bare = Pool(pool.name, pool.state, root)
    # Without a running repair, a device that just came back counts (``Absences.unfilled``).
    marked = replace(pool, root=_lacking(root, returned)) if s.repairing else pool
    back = {entry.vdev: entry.left for _, entry in redundancy(marked)}
    still = {entry.vdev: entry.left for _, entry in redundancy(bare)}
    for top, entry in redundancy(pool):
        only = f"; untouchable: {', '.join(entry.untouchable)}" if entry.untouchable else ""
        yield (
            f"{entry.vdev}: {may_fail(entry.left)} of {parity(top)}{only};"
            f" with the first device just back: {back.get(entry.vdev, 'unknown')};"
            f" were nothing filled: {still.get(entry.vdev, 'unknown')}"
        )
    missing = [leaf.name for leaf in root.leaves() if not is_complete(leaf)]
    yield f"incomplete: {', '.join(missing) or 'none'}"
    yield f"replace first: {', '.join(t.name for t in suspects(pool)) or 'nothing'}"
    yield from (f"spare {spare.name} ({spare.severity}): {spare.text}" for spare in spares)
    for room in (1 << 29, 3 << 40):
        yield f"a spare of {room} bytes: {too_small(root, room) or 'fits'}"
    for vdev in root.walk():
        if said := leftover(vdev):
            yield f"{vdev.name} stays: {said}"
    yield from (f"blocked: {text}" for text in blocked_repair(pool))
    yield from alike(_ends(s))


def _healths(s: Situation) -> dict[str, Health]:
    """Return a pool's health, from its figures alone and with other facts."""
    pool, root = s.pool, s.pool.root
    spares = spare_problems(root, pool.scans, s.t)
    plain = health(pool, s.t, spares=spares)
    repairs = (Scan("resilver", "running"),)
    return {
        "health": plain,
        "during a repair": without_redundancy(plain, redundancy(pool), repairs),
        "just regrouped": health(pool, s.t, regrouped=s.t - 1),
        "unsteady": health(pool, s.t, unsteady=("sdx: returned 3 times",)),
        "returned damage": health(pool, s.t, damaged=(("sdx", 1), ("sdy", 40))),
    }


def _told(found: Health) -> str:
    return f"{found.word} ({found.severity}) {'; '.join(found.reasons)}".rstrip()


def _ends(s: Situation) -> Iterator[tuple[str, str]]:
    """Yield how each finished scan went, with the label of the moment."""
    for scan in s.pool.scans:
        for age in AGES:
            now = (scan.end or s.t) + age
            word = health(s.pool, now).word
            last = last_scan(s.pool, scan, word, now)
            how = "not sure yet" if last is None else last.result
            seen = scan_outcome(scan, s.pool.root, word, None if scan.active else age)
            over = "over" if seen.over else "runs"
            left = ", something left behind" if seen.left_behind else ""
            lacks = "; ".join(not_restored(s.pool, now)) or "nothing"
            yield f"{over}, {how}{left}; not restored: {lacks}", f"{scan.name} {age:g} s after"


def silent() -> Iterator[str]:
    """Yield the health of pools that give no sample."""
    for state in ("ONLINE", "SUSPENDED", "FAULTED", "UNAVAIL", None):
        for absent in (False, True):
            trouble = SampleFailure("tank", 0.0, 0.0, "zpool hangs", state, absent=absent)
            found = unreachable(trouble, 3700.0)
            gone = ", not imported" if absent else ""
            yield f"{state}{gone}: {_told(found)}"


def bugs() -> Iterator[str]:
    """Yield the bugs that commands meet, by release."""
    for command in COMMANDS:
        for kind in ("mirror", "raidz2", "draid1"):
            met = ((text, release) for release in RELEASES for text in _met(command, release, kind))
            yield from (f"{command} with {kind} on {line}" for line in alike(met))


def _met(command: str, release: str, kind: str) -> Iterator[str]:
    for text in hazards(command, parse_version(release), (kind,)):
        yield text.replace(release, "THIS", 1)
