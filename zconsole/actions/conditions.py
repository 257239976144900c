"""Preconditions that plans share; each says in words why it does not hold."""

from __future__ import annotations

from zconsole.actions.plan import Precondition, Situation
from zconsole.actions.target import Target, find, progress
from zconsole.pool.model import Scan

_SCAN_WORDS = {
    "scrub": "scrub",
    "resilver": "resilver",
    "rebuild": "sequential rebuild",
    "errorscrub": "error scrub",
}


def describe(scan: Scan) -> str:
    """A running scan in words: ``scrub, paused at 38.2 %``, ``rebuild of mirror-0 at 3.0 %``."""
    word = _SCAN_WORDS.get(scan.function, scan.function)
    where = f" of {scan.vdev}" if scan.vdev else ""
    at = "paused at" if scan.state == "paused" else "at"
    return f"{word}{where}, {at} {progress(scan)}"


def answering() -> Precondition:
    """The pool is not suspended."""
    return Precondition(
        "the pool is not suspended",
        lambda s: (
            "the pool is suspended: it waits for a device and takes no command until that is"
            " back and the pool is cleared"
            if s.suspended
            else None
        ),
    )


def present(target: Target) -> Precondition:
    """The device the plan is about is still in the pool, and still of the same kind."""

    def _check(s: Situation) -> str | None:
        now = find(s.pool, target.key)
        if now is None:
            return f"{target.name} is no longer in {s.pool.name}; something changed the pool"
        if now.group is None and target.group is not None:
            return f"{target.name} is no longer in {target.group.name}; something changed the pool"
        if now.group is not None and target.group is None:
            return f"{target.name} is in {now.group.name} now; a replace of it has begun elsewhere"
        return None

    return Precondition(f"{target.name} is in the pool, where it was when this was planned", _check)


def same_scans(s: Situation) -> Precondition:
    """What runs on the pool is what ran when the consequences were written."""
    planned = {(*scan.key, scan.state) for scan in s.running}

    def _check(now: Situation) -> str | None:
        found = {(*scan.key, scan.state) for scan in now.running}
        if found == planned:
            return None
        running = "; ".join(describe(scan) for scan in now.running) or "no scan"
        return f"what runs on the pool has changed since this was planned: now {running}"

    return Precondition("the same scans run as when this was planned", _check)


def no_checkpoint() -> Precondition:
    """No checkpoint exists or is being discarded (spa_vdev_attach, spa_vdev_detach in spa.c)."""

    def _check(s: Situation) -> str | None:
        states = {a.state for a in s.pool.activities if a.kind == "checkpoint"}
        if not states & {"exists", "running"}:
            return None
        if "exists" not in states:
            return "a checkpoint is being discarded; wait until that is done"
        return (
            "the pool has a checkpoint, which forbids replace, attach and detach; discard it"
            " first (zpool checkpoint -d), after which it cannot be rewound to"
        )

    return Precondition("no checkpoint exists", _check)


def no_activity(kind: str, words: str) -> Precondition:
    """No removal or expansion runs, which makes the kernel answer "busy"."""

    def _check(s: Situation) -> str | None:
        found = any(a.kind == kind and a.state in ("running", "paused") for a in s.pool.activities)
        return f"{words} is running; wait until it is done" if found else None

    return Precondition(f"no {words} is running", _check)


def scan_is(function: str, states: tuple[str, ...], text: str, why: str) -> Precondition:
    """A scan of this function is in one of these states; ``why`` is said when it is not."""

    def _check(s: Situation) -> str | None:
        scan = s.active(function)
        return None if scan is not None and scan.state in states else why

    return Precondition(text, _check)


def nothing_runs(*functions: str, paused: bool = True) -> Precondition:
    """None of these scans is running, nor paused unless ``paused`` is False."""

    def _check(s: Situation) -> str | None:
        counted = (scan for scan in s.running if paused or scan.state == "running")
        found = next((scan for scan in counted if scan.function in functions), None)
        return None if found is None else f"it is not possible beside the {describe(found)}"

    names = ", ".join(_SCAN_WORDS[name] for name in functions)
    return Precondition(f"no {names} runs", _check)


def version_from(minimum: tuple[int, ...], what: str) -> Precondition:
    """The running OpenZFS has this; an unknown version is given the benefit of the doubt."""
    words = ".".join(map(str, minimum))

    def _check(s: Situation) -> str | None:
        old = s.facts.version and s.facts.version < minimum
        return f"{what} needs OpenZFS {words}" if old else None

    return Precondition(f"OpenZFS is {words} or newer", _check)


def feature(name: str, what: str) -> Precondition:
    """A pool feature is enabled; unknown is given the benefit of the doubt."""

    def _check(s: Situation) -> str | None:
        if s.facts.has(name) is False:
            return f"{what} needs the pool feature {name}, which is not enabled on this pool"
        return None

    return Precondition(f"feature {name} is enabled", _check)
