"""A swap as lines: the ways and the explanation before it begins; then step, steps and disks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from typing import NamedTuple

from zconsole.pool.redundancy import may_fail
from zconsole.pool.scan_outcome import WELL
from zconsole.swap.choice import SwapChoice, SwapWay
from zconsole.swap.disk import BACKED_OUT, DONE, OPEN, Checklist, sentence
from zconsole.swap.report import entry_words, explained, way_text
from zconsole.swap.stage import SwapStage
from zconsole.swap.steps import NOT_NEEDED, SCRUB_CANCELED, STEPS, listed, step_of
from zconsole.timeline.frame import Frame, ScanView
from zconsole.ui.actions.plan_lines import block_lines, device_name
from zconsole.ui.display_format import DisplayFormat
from zconsole.ui.keys import shown
from zconsole.ui.widgets.draw import Line, Lines, Span, beside, fit, width_of
from zconsole.units import duration

_APART = ("First", "Ways", "Not guided")
"""Parts of the explanation that are shown separately here."""
_PART_ROLES = {"What failed": "warning", "What is wrong": "warning", "Must stay": "error"}


def choice_lines(
    choice: SwapChoice,
    way: SwapWay | None,
    time: str,
    notes: Sequence[str],
    denied: str,
    look: DisplayFormat,
    width: int,
) -> Lines:
    """Return the confirmation text of a way: what it does and costs, then the explanation.

    ``way`` None: why there is none. ``time``: how long the way takes; ``notes`` are warnings.
    """
    parts = explained(choice)
    blocks = [
        ("First", parts.get("First", ()), "warning"),
        ("Check first", notes, "warning"),
        ("Unavailable", (denied,) if denied else (), "error"),
    ]
    if way is None:
        manual = choice.refusal.manual if choice.refusal else ()
        steps = [f"{number}. " + text for number, text in enumerate(manual, 1)]
        blocks += [("Not guided", (choice.refused,), "error"), ("By hand", steps, "bold")]
    else:
        blocks.append(("This way", (sentence(way.why), time), ""))
    others = [way_text(each) for each in choice.ways if each is not way]
    blocks.append(("Other ways", others, "dim"))
    shown = ((head, lines) for head, lines in parts.items() if head not in _APART)
    blocks += ((head, lines, _PART_ROLES.get(head, "")) for head, lines in shown)
    if way is not None:
        blocks.append(("Steps", [*_numbered(listed(choice.checklist(way)))], ""))
    return block_lines(blocks, look, width)


def _numbered(steps: Sequence[str]) -> Iterator[str]:
    """Yield the numbered steps, with a note on those that can't be undone."""
    for number, step in enumerate(steps, 1):
        brief = STEPS[step].brief
        yield f"{number}. {_title(step)}{f' ({brief})' if brief else ''}"


def _title(step: str) -> str:
    """Return the title of a step in a list."""
    return "Replace with the new disk" if step == "replace" else STEPS[step].title


class ListedStep(NamedTuple):
    """One line of the list of steps."""

    words: str
    state: str
    """Either "done", "current" or "to come", or why it was left out, such as "skipped"."""
    cost: str


def listed_steps(swap: Checklist, at: str, filed: bool = False) -> tuple[ListedStep, ...]:
    """Return the steps to list, ``at`` being the current one; those never needed are left out.

    ``filed``: whether its report is saved.
    """
    shown_steps = listed(swap, at)
    # A checklist that was given up got as far as the step that was current then.
    reached = swap.at if swap.state == BACKED_OUT else at
    now = shown_steps.index(reached) if reached in shown_steps else 0
    return tuple(
        ListedStep(
            _words(swap, step),
            "done" if filed and step == "report" else _state(swap, step, number - now, step == at),
            step_of(swap, step).brief,
        )
        for number, step in enumerate(shown_steps)
    )


def _words(swap: Checklist, step: str) -> str:
    """Return a step's title; a scrub that was not waited for was only started."""
    began = step == "scrub" and step in swap.passed and swap.scrub_begun is not None
    return "Start a scrub" if began else _title(step)


def _state(swap: Checklist, step: str, beyond: int, current: bool) -> str:
    """Return the state of a step; ``beyond``: its position relative to the current one."""
    if current or beyond >= 0:
        return "current" if current else "to come"
    own = [entry for entry in swap.log if entry.step == step]
    ran = any(entry.command for entry in own)
    if step == "scrub":
        if own and own[-1].text == SCRUB_CANCELED:
            return "canceled"
        return "done" if swap.scrub_begun is not None else "skipped"
    if own and own[-1].text.startswith(NOT_NEEDED):
        return NOT_NEEDED
    return "skipped" if step in swap.passed and not ran else "done"


SIDE_FROM = 76
"""Width in cells from which the steps stand beside the text; below that, under it."""
_STEPS = 33
_LABEL = 6
_ROLES = {"done": "good", "current": "notice", "to come": ""}


def swap_title(
    swap: Checklist, stage: SwapStage | None, look: DisplayFormat, filed: bool = False
) -> Line:
    """Return the title line: which swap, and its progress; ``filed``: its report is saved."""
    at = stage.step if stage else swap.at
    steps, reached = listed_steps(swap, at, filed), listed(swap, at)
    current = (n for n, step in enumerate(steps, 1) if step.state == "current")
    where = f"step {next(current, len(steps))} of {len(steps)}"
    if swap.state == BACKED_OUT and swap.at in reached:
        where = f"given up at step {reached.index(swap.at) + 1} of {len(steps)}"
    elif filed and stage is not None and stage.over:
        where = "finished"
    return (Span(f" SWAP {look.text(swap.old.words)}  {look.text(swap.pool)}  {where}", "title"),)


def eta_note(view: ScanView, stage: SwapStage | None, swap: Checklist | None = None) -> str:
    """Return when the running scan ends, by its own ETA; empty if none matters here.

    Before there is an ETA, how long the checklist's resilver was predicted to take.
    """
    scan, found = view.scan, view.estimate
    matters = scan.function != "scrub" or (stage is not None and stage.step == "scrub")
    left = duration(found.eta)
    if found.low is not None and found.high is not None:
        left = f"{left} ({duration(found.low)} to {duration(found.high)})"
    if scan.active and stage is not None and stage.deferred:
        starts = f", in about {left}" if found.eta else ""
        takes = f"; it takes about {duration(swap.predicted)}" if swap and swap.predicted else ""
        return f"This disk's {scan.function} starts after the running one{starts}{takes}."
    if not (scan.active and matters and found.eta):
        awaited = scan.active and stage is not None and stage.step == "resilver"
        if not (awaited and swap is not None and swap.predicted):
            return ""
        return f"No ETA yet; predicted to take {duration(swap.predicted)} in all ({swap.basis})."
    if swap is not None and (swap.same or (swap.wrong and swap.at != "resilver")):
        left += ", or much sooner: only what the disk missed is written"
    own = stage is not None and stage.step in ("resilver", "scrub")
    return f"The {'' if own else 'running '}{scan.function} ends in about {left}."


def scrub_note(frame: Frame, stage: SwapStage) -> Iterator[Span]:
    """Yield the note on how long the pool's last scrub took, before the next one begins."""
    took = next((past.seconds for past in frame.past if past.function == "scrub"), None)
    if stage.step == "scrub" and stage.plan is not None and took is not None:
        yield Span(f"The last scrub took {duration(took)}.", "notice")


def restored_note(frame: Frame, swap: Checklist) -> Iterator[Span]:
    """Yield the note that redundancy is restored once a swap is done, if it is."""
    left = next((each.left for each in frame.redundancy if each.vdev == swap.vdev), None)
    if swap.state in (OPEN, DONE) and left is not None and frame.health.word in WELL:
        text = f"Redundancy is restored: {may_fail(left)} in {swap.vdev} without losing data."
        yield Span(text, "good")


def swap_lines(
    swap: Checklist,
    stage: SwapStage,
    notes: Sequence[Span],
    look: DisplayFormat,
    width: int,
    filed: bool = False,
) -> Lines:
    """Return the lines of a checklist: the current step with notes, the steps and the disks."""
    steps = listed_steps(swap, stage.step, filed)
    end = ((), *_history(swap, look, width)) if stage.over else ()
    # An alarm goes across the screen: nothing else may be done before it is over.
    alarm = look.wrapped(stage.title, width, "badge-error") if stage.alarm else ()
    banner = [(Span(fit(span.text, width), "badge-error"),) for (span,) in alarm]
    listed, side = tuple(_steps(steps, look)), width >= SIDE_FROM
    room = width - _STEPS if side else width
    now, disks = _stage(stage, notes, look, room, filed), _disks(swap, look, room)
    if side:
        return (*banner, *_beside(listed, (*now, (), *disks)), *end)
    return (*banner, *now, (), *listed, (), *disks, *end)


def _stage(
    stage: SwapStage, notes: Sequence[Span], look: DisplayFormat, width: int, filed: bool
) -> Iterator[Line]:
    """Yield the current step: what to do, and its dangers."""

    def _said(text: str, role: str = "") -> Iterable[Line]:
        return look.wrapped(text, width, role)

    if not stage.alarm:
        leave = f"Finished: {look.keys.shown('back')} leaves the checklist"
        yield from _said(leave if filed and stage.over else stage.title, "bold")
    told = [Span(sentence(text), "error") for text in stage.warnings]
    told += [Span(text, "error" if stage.alarm else "") for text in stage.text]
    # What is wrong is read before how long a resilver takes.
    for said in (*told, *notes) if stage.alarm else (*notes, *told):
        yield from _said(said.text, said.role)
    yield from _doing(stage, look, width)
    if stage.final:
        yield from _said(stage.final, "warning")
    if stage.undo:
        yield from _said(stage.undo)
    for disk in stage.then[:1]:
        yield from _keyed(look, "other_pool", f"Begin the swap of {disk.pool}", width)
    if stage.over and not filed:
        yield from _keyed(look, "do", "Save the report as a file", width)


def _doing(stage: SwapStage, look: DisplayFormat, width: int) -> Iterator[Line]:
    """Yield what the step waits for, and the keys that do something now."""
    plan = stage.plan
    labeled = [("Waiting for: ", stage.waits, "notice")] if stage.waits else []
    if plan is not None and plan.refused is not None:
        labeled.append(("Not now: ", plan.refused, "warning"))
    for label, text, role in labeled:
        yield from beside(Span(f" {label}", role), look.text(text), width - 1, role)
    # One key for every answer: with several, its question shows them one by one.
    answers = "; or: ".join(
        f'{answer.text} (then type "{answer.typed}")' if answer.typed else answer.text
        for answer in stage.answers
    )
    several = len(stage.answers) > 1
    keyed = [("answer", f"Choose: {answers}" if several else answers)] if answers else []
    if stage.alarm and plan is None:
        keyed.insert(0, ("do", "Look at the machine again now"))
    elif plan is not None and plan.refused is None:
        what = ", ".join(dict.fromkeys(" ".join(step.argv[:2]) for step in plan.steps))
        keyed.insert(0, ("do", f"See the plan, then run it ({what})"))
    if stage.back is not None:
        # In an alarm that no plan ends yet, it is what the headline says to do first.
        place = 0 if stage.alarm and plan is None else len(keyed)
        keyed.insert(place, ("stop" if stage.back.closes else "undo", stage.back.text))
    for action, text in keyed:
        yield from _keyed(look, action, sentence(text), width)


def _keyed(look: DisplayFormat, action: str, text: str, width: int) -> Iterable[Line]:
    """Return a key and what it does now; a click does the same."""
    key = next(key for key in look.keys.of("Swap") if key.name == action).keys[0]
    head = Span(f" {fit(shown(key), 6)}", "key", f"screen.{action}")
    return beside(head, look.text(text), width - 1)


def _steps(steps: Sequence[ListedStep], look: DisplayFormat) -> Iterator[Line]:
    """Yield one line per step: its mark and title.

    A note below says that it can't be undone, or why it was left out.
    """
    ascii_only = look.glyphs.is_ascii
    marks = {
        "done": "+" if ascii_only else "✓",
        "current": look.glyphs.pointer,
        "to come": " ",
    }
    yield (Span(" Steps", "bold"),)
    for step in steps:
        role = _ROLES.get(step.state, "dim")
        words = Span(
            step.words, "bold" if step.state == "current" else role if role == "dim" else ""
        )
        yield (Span(f" {marks.get(step.state, look.glyphs.track)} ", role), words)
        if step.cost and step.state in ("current", "to come"):
            yield (Span(f"     {step.cost}", "warning"),)
        if step.state not in marks:
            yield (Span(f"     {step.state}", role),)


def _disks(swap: Checklist, look: DisplayFormat, width: int) -> Iterator[Line]:
    """Yield both disks: the place and label of each."""
    yield (Span(" Disks", "bold"),)
    disks = [("old", swap.old)]
    if swap.new is not None and not swap.same:
        disks.append(("new", swap.new))
    for label, disk in disks:
        size = look.size(disk.size) if disk.size else ""
        model = "" if disk.model in disk.name else disk.model
        facts = (disk.place, disk.mark, model, size, device_name(disk.name))
        text = look.text(", ".join(dict.fromkeys(filter(None, facts))))
        yield from beside(Span(f" {fit(label, _LABEL)}", "dim"), text, width - 1)


def _history(swap: Checklist, look: DisplayFormat, width: int) -> Iterator[Line]:
    """Yield the log: what happened, when, and by which commands."""
    yield (Span(" What happened", "bold"),)
    day = ""
    for entry in swap.log:
        if look.day(entry.t) != day:
            day = look.day(entry.t)
            yield (Span(f"  {day}", "dim"),)
        when = Span(f"  {look.clock(entry.t)}  ", "dim")
        said = ": ".join(filter(None, (entry_words(entry), entry.command, entry.result)))
        yield from beside(when, look.text(said), width - 1)


def _beside(left: Sequence[Line], right: Sequence[Line]) -> Iterator[Line]:
    """Yield two columns, the left one as wide as the list of steps."""
    for one, other in zip_longest(left, right, fillvalue=()):
        yield (*one, Span(" " * max(0, _STEPS - width_of(one))), *other)
