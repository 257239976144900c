"""All plans of a situation as text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby

from tests.lock.case import digest
from tests.lock.plans import adapter
from zconsole.actions.plan import ActionPlan, Situation

EVERY = 150
"""One plan in this many is kept as text, for human readers; of the others, a digest."""


def planned(place: str, s: Situation, later: Situation | None, whole: bool) -> Iterator[str]:
    """Yield all plans of a pool; unless ``whole``, each vdev's actions, a digest, some plans."""
    number = int(digest(place), 16)  # otherwise the same plans would be kept for every situation
    for about, wanted in groupby(adapter.wishes(s), key=lambda wish: wish.about):
        texts: list[str] = []
        possible: list[str] = []
        target = None
        for wish in wanted:
            plan, target = wish.plan(s), wish.target
            texts.append(safe(f"{wish.name} of {about}: {_told(plan, s, later)}"))
            possible += [wish.name] * (plan.refused is None)
            number += 1
            if whole or number % EVERY == 0:
                yield texts[-1]
        yield safe(f"{about} can: {', '.join(possible) or 'nothing'}")
        fitting = [safe(f"for {about}, {line}") for line in adapter.candidates(s, target)]
        yield from fitting if whole else ()
        if not whole:
            yield f"sha256 {digest(chr(10).join(texts + fitting))} {safe(about)}"


def _told(plan: ActionPlan, s: Situation, later: Situation | None) -> str:
    said = [*adapter.lines(plan), *(["  runs without a log, too"] * adapter.always(plan, s))]
    if later is not None and plan.steps:
        said += (f"  {line}" for line in adapter.afterwards(plan, later))
    return "\n".join(said)


def alike(pairs: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Return each text once, after all the labels that it belongs to."""
    found: dict[str, list[str]] = {}
    for text, of in pairs:
        found.setdefault(text, []).append(of)
    return (f"{', '.join(dict.fromkeys(each))}: {text}" for text, each in found.items())


def safe(text: str) -> str:
    """Escape what a terminal would interpret, or what cannot stand in a line of a file."""
    if text.replace("\n", "").isprintable():
        return text
    return "".join(
        mark if mark.isprintable() or mark == "\n" else ascii(mark)[1:-1] for mark in text
    )
