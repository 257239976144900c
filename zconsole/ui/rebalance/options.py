"""Options of a new job before it is planned: aim, engine and limits, as lists.

Limits are asked for, parsed and shown in people's notation; those of a running job, too.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from rich.cells import cell_len

from zconsole.errors import ZconsoleError
from zconsole.rebalance.backend import Counted, RebalanceBackend
from zconsole.rebalance.planning.plan_document import PlanDocument
from zconsole.rebalance.planning.settings import EVEN, FLOOR, HELP, Limits, Settings
from zconsole.system.day_hours import day_hours
from zconsole.ui.actions.plan_lines import said_lines
from zconsole.ui.actions.session import FlowSession
from zconsole.ui.dialogs.confirm import question
from zconsole.ui.dialogs.screens import PickList, TextQuestion
from zconsole.ui.display_format import DisplayFormat
from zconsole.ui.widgets.draw import Line, Lines, Span, fit
from zconsole.units import latency, parse_size, percent

NONE = ("none", "off", "-", "0")
"""Answers that remove a limit."""
_PERCENT = re.compile(r"(\d+(?:\.\d+)?) ?%?")
_WAIT = re.compile(r"(\d+(?:\.\d+)?) ?(ms|s)?")


@dataclass(frozen=True, slots=True)
class Limit:
    """A limit: its name in the settings, and its texts."""

    name: str
    label: str
    question: str
    read: Callable[[str], Any]
    """Parses an answer. Raises ZconsoleError."""
    show: Callable[[DisplayFormat, Any], str]
    unset: str = "none"

    def shown(self, limits: Limits, look: DisplayFormat) -> str:
        """Return the present value as text."""
        value = getattr(limits, self.name)
        return self.unset if value is None else look.text(self.show(look, value))

    def value(self, answer: str) -> Any:
        """Parse an answer; None means no limit. Raises ZconsoleError."""
        return None if answer.strip().lower() in NONE else self.read(answer.strip())


async def ask_limit(ui: FlowSession, limit: Limit, now: Limits) -> Mapping[str, Any]:
    """Ask for a limit; return its value by name, or an empty mapping if the question was left.

    An invalid answer is asked for again. ``now`` are the present limits.
    """
    said = [Span(limit.question, "dim"), Span(f"Now: {limit.shown(now, ui.look)}", "bold")]
    question = TextQuestion(limit.label.upper(), partial(said_lines, said))
    found = await ui.ask(question, lambda answer: {limit.name: limit.value(answer)})
    return found or {}


async def ask_races(ui: FlowSession) -> bool:
    """Ask whether the risk of lost writes is accepted; Cancel is the default."""
    title = "Accept that writes may be lost?"
    return await ui.confirmed(question(title, _RISK, verb="Accept the risk"))


def _share(answer: str) -> float:
    match = _PERCENT.fullmatch(answer)
    if match is None or float(match[1]) > 100:
        raise ZconsoleError(f"{answer}: not a percentage from 0 to 100")
    return float(match[1]) / 100


def _bytes(answer: str) -> int:
    value = parse_size(answer.upper().removesuffix("/S"))
    if not value:
        raise ZconsoleError(f"{answer}: not a size such as 200M")
    return value


def _wait(answer: str) -> float:
    match = _WAIT.fullmatch(answer)
    if match is None or not float(match[1]):
        raise ZconsoleError(f"{answer}: not a time such as 50ms")
    return float(match[1]) / (1 if match[2] == "s" else 1000)  # a bare number is in ms


def _window(answer: str) -> str:
    try:
        day_hours(answer)
    except ValueError as error:
        raise ZconsoleError(f"{answer}: not a time of the day such as 22:00-06:00") from error
    return answer


RATE = Limit(
    "rate",
    "Rate limit",
    "Bytes per second, for example 200M; none for no limit",
    _bytes,
    lambda look, value: look.rate(value),
)
TARGET = Limit(
    "until_spread",
    "Stop at a spread of",
    "Percent between the fullest and the emptiest vdev, by default"
    f" {EVEN * 100:g} where an even spread is the aim and within reach; with none, all files move",
    _share,
    lambda _, value: f"{value * 100:g} %{' (even)' * (value == EVEN)}",
    unset="none: all files move",
)
BEYOND = f"{TARGET.show(DisplayFormat(), EVEN)} is out of reach for these directories"
"""Shown if moving all of the directories can't make the pool even."""

MIN_FREE = Limit(
    "min_free",
    "Keep free",
    f"Percent of the pool, by default {FLOOR * 100:g}",
    _share,
    lambda _, value: percent(value, 1),
    unset=percent(FLOOR, 1),
)
LIMITS = (
    TARGET,
    RATE,
    Limit(
        "max_latency",
        "Throttle above latency",
        "Latency of other I/O, for example 50ms; none for no limit",
        _wait,
        lambda _, value: latency(value),
    ),
    MIN_FREE,
    Limit(
        "max_bytes",
        "Move at most",
        "Bytes in total, for example 2T; none for no limit",
        _bytes,
        lambda look, value: look.size(value),
    ),
    Limit(
        "window",
        "Only between",
        "Times of day, for example 22:00-06:00; none for all day",
        _window,
        lambda _, value: str(value),
        unset="all day",
    ),
)


AIMS = {
    "balance": "spread evenly over the vdevs",
    "width": "new data-to-parity ratio, after a raidz expansion",
    "properties": "new compression or checksum",
    "recordsize": "new recordsize (copies only)",
}
ENGINES = {
    "auto": "auto: chosen for each dataset",
    "copy": "copy: verified copies",
    "rewrite": "rewrite: in place (OpenZFS 2.3.4 and later)",
}
_SCANS = {False: "wait until they end", True: "run at the same time"}
_FULL = {
    False: "take new writes, too",
    True: "take none while the job runs (OpenZFS 2.2)",
}
_RACES = {
    False: "refuse if a write could be lost",
    True: "accept if a write could be lost",
}
_WITHOUT = {
    "during_scan": "the job waits while a scrub or resilver runs",
    "fill_new": "some of what the job writes lands on vdevs that are too full, and moves nothing",
    "accept_races": "copy nothing where another program's write could be lost: directories shared"
    " over NFS or SMB, or before OpenZFS 2.2",
}
"""What it means that a switch is off, by the name of the setting; HELP says what it does when on.
"""
_RISK = (
    Span(
        "If another program writes to a file while it is copied, that write may be lost. This"
        " can't be undone, and may go unnoticed.",
        "error",
    ),
    Span(
        "Only copies are concerned, and only where such writes can't be kept out, as in directories"
        " shared over NFS or SMB, or before OpenZFS 2.2. Unless you accept, these are refused."
    ),
    Span("Accept only if no program writes there until the job has ended."),
)
REWRITES = {
    "": "all blocks",
    "P": "-P: incremental sends do not grow (OpenZFS 2.4)",
    "SC": "-S -C: not what snapshots or clones hold (2.5)",
    "PSC": "-P -S -C: both (2.5)",
}


@dataclass(frozen=True, slots=True)
class OptionChoice:
    """An option with few values: its name in the settings, its label, and a text for each value."""

    name: str
    label: str
    values: Mapping[Any, str]

    def shown(self, settings: Settings) -> str:
        """Return the present value as text; a value that is not offered, as it is."""
        value = getattr(settings, self.name)
        return self.values.get(value, str(value))

    def made(self, settings: Settings, value: Any) -> Settings:
        """Return the settings with this value; another aim resets the target to its default."""
        if value == getattr(settings, self.name):
            return settings
        made = replace(settings, **{self.name: value})
        if self.name != "aim":
            return made
        return _until(made, EVEN if value == "balance" else None)


AIM = OptionChoice("aim", "Aim", AIMS)
ENGINE = OptionChoice("engine", "Engine", ENGINES)
FULL = OptionChoice("fill_new", "Full vdevs", _FULL)
RACES = OptionChoice("accept_races", "Risk (copy engine)", _RACES)
ASKED: tuple[OptionChoice | Limit, ...] = (AIM, TARGET, RATE)
"""Options asked for with every job: the lines before "More"."""
MORE: tuple[OptionChoice | Limit, ...] = (
    ENGINE,
    FULL,
    *LIMITS[2:],
    OptionChoice("during_scan", "Scrubs and resilvers", _SCANS),
    RACES,
    OptionChoice("rewrite_options", "Rewrite in place", REWRITES),
)
ENTRIES = (*ASKED, *MORE)
"""All options, in the order of their lines."""
OTHERS = len(ASKED)
"""Index of the line that opens the other options."""
PLAN = OTHERS + 1
"""Index of the last line, which leads to the plan."""


@dataclass(slots=True)
class NewJob:
    """A job being set up: its settings, the origin of its target, and its plan."""

    settings: Settings
    typed: bool = False
    """Whether the operator typed the target, so that no plan may drop it."""
    short: bool = False
    """Whether a plan dropped the default target, as the directories are too small to reach it."""
    plan: PlanDocument | None = None
    """The plan of these settings, once it is made."""

    async def planned(self, backend: RebalanceBackend) -> AsyncIterator[Counted]:
        """Make the plan, unless it is made, and yield the progress. Raises ZconsoleError.

        If the directories are too small to reach the default target, it is dropped, and the plan
        made again: then all their files move.
        """
        while self.plan is None:
            async for step in backend.plan(self.settings):
                if not isinstance(step, PlanDocument):
                    yield step
                elif self._is_short(step):
                    self.short = True
                    self.settings = _until(self.settings, None)
                else:
                    self.plan = step

    def _is_short(self, plan: PlanDocument) -> bool:
        """Return whether the default target is out of reach."""
        return (
            not self.typed
            and self.settings.aim == "balance"
            and self.settings.limits.until_spread == EVEN
            and plan.spread_before is not None
            and plan.bytes_to_target is None
        )

    def limit(self, changed: Mapping[str, Any]) -> None:
        """Set limits by name."""
        self.settings = replace(self.settings, limits=self.settings.limits.changed(changed))
        if TARGET.name in changed:
            self.typed, self.short = True, False

    def take(self, settings: Settings) -> None:
        """Replace the settings; another aim drops what is known of the target."""
        if settings.aim != self.settings.aim:
            self.typed = self.short = False
        self.settings = settings

    def kept(self) -> Settings:
        """Return the settings for other directories: no accepted risk, the default target."""
        kept = replace(self.settings, accept_races=False)
        return _until(kept, EVEN) if self.short else kept


def _until(settings: Settings, spread: float | None) -> Settings:
    """Return the settings with another target."""
    return replace(settings, limits=replace(settings.limits, until_spread=spread))


_LABEL = 26
_PLAN_LABEL = 17


def option_lines(new: NewJob, look: DisplayFormat, width: int) -> Lines:
    """Return the lines of the options asked for, a summary of the others, and the last line."""
    room = max(4, width - _PLAN_LABEL - 1)
    dirs = look.middle(dirs_text(new.settings, look), room)
    return (
        *entry_lines(ASKED, new, look, width),
        _row("More", _set_words(new, look), look, width),
        (Span(fit("  Show the plan", _PLAN_LABEL), "bold"), Span(dirs, "bold")),
    )


def entry_lines(
    entries: Sequence[OptionChoice | Limit], new: NewJob, look: DisplayFormat, width: int
) -> Lines:
    """Return a line per entry with its present value."""
    return tuple(_row(entry.label, _value(entry, new, look), look, width) for entry in entries)


def _row(label: str, value: str, look: DisplayFormat, width: int) -> Line:
    room = max(1, width - _LABEL - 3)
    return (Span(f"  {fit(label, _LABEL)}", "dim"), Span(look.cut(value, room)))


def _set_words(new: NewJob, look: DisplayFormat) -> str:
    """Summarize which of the other options differ from their defaults."""
    usual = NewJob(Settings(()))
    changed = [e.label for e in MORE if _value(e, new, look) != _value(e, usual, look)]
    return f"set: {', '.join(changed)}" if changed else f"{len(MORE)} options at their defaults"


def option_about(new: NewJob, index: int, look: DisplayFormat, width: int) -> Lines:
    """Explain a line of ``option_lines``, with its whole value if the line cut it."""
    if index < OTHERS:
        return entry_about(ASKED, new, index, look, width)
    if index == OTHERS:
        label, room, value = "More", width - _LABEL - 3, _set_words(new, look)
        whole, told = f"{label}: {value}", f"{', '.join(each.label for each in MORE)}."
    else:
        value = whole = dirs_text(new.settings, look)
        room, told = width - _PLAN_LABEL - 1, "Counts the files and shows the plan; moves nothing."
    return _about(value, room, whole, told, look, width)


def entry_about(
    entries: Sequence[OptionChoice | Limit],
    new: NewJob,
    index: int,
    look: DisplayFormat,
    width: int,
) -> Lines:
    """Explain an entry, with its whole value if its line cut it."""
    entry = entries[index]
    value = _value(entry, new, look)
    whole = f"{entry.label}: {value}"
    told = _told(entry, getattr(new.settings, entry.name, None))
    return _about(value, width - _LABEL - 3, whole, told, look, width)


def _about(value: str, room: int, whole: str, told: str, look: DisplayFormat, width: int) -> Lines:
    texts = (told,) if cell_len(value) <= room else (whole, told)
    return tuple(line for text in texts for line in look.wrapped(text, width))


def option_topics() -> Sequence[tuple[str, str]]:
    """Return the label and explanation of each entry, for the help."""
    return tuple((entry.label, _topic(entry)) for entry in ENTRIES)


def _topic(entry: OptionChoice | Limit) -> str:
    """Return the explanation of an entry; of a switch, that of each choice."""
    if entry.name not in _WITHOUT or not isinstance(entry, OptionChoice):
        return _told(entry)
    return " ".join(f"{said}: {_told(entry, value)}" for value, said in entry.values.items())


def _told(entry: OptionChoice | Limit, value: Any = None) -> str:
    """Return the explanation of an entry from its option's help, and how to answer it.

    ``value``: the present one, which the explanation of a switch is about.
    """
    text = HELP[entry.name]
    if value is False:
        text = _WITHOUT[entry.name]
    asked = f" {entry.question}." if isinstance(entry, Limit) else ""
    return f"{text[0].upper()}{text[1:]}.{asked}"


def _value(entry: OptionChoice | Limit, new: NewJob, look: DisplayFormat) -> str:
    """Return the present value of an entry as text."""
    if isinstance(entry, OptionChoice):
        return entry.shown(new.settings)
    if entry is TARGET and new.short:
        return f"{BEYOND}: all their files move"
    limits = new.settings.limits
    is_default = entry is TARGET and limits.until_spread == EVEN and not new.typed
    return entry.shown(limits, look) + ", or all files moved" * is_default


def dirs_text(settings: Settings, look: DisplayFormat) -> str:
    """Return the directories of a job."""
    return "  ".join(look.text(path) for path in settings.dirs)


async def ask_choice(ui: FlowSession, choice: OptionChoice, now: Settings) -> Settings:
    """Let a value be chosen from a list that starts at the present one; return the new settings."""
    values = list(choice.values)
    present = getattr(now, choice.name)

    def _lines(look: DisplayFormat, width: int) -> Lines:
        rows: list[Line] = [
            (Span(f"  {choice.values[value]}"), Span("  (now)" * (value == present), "dim"))
            for value in values
        ]
        return tuple(look.crop(row, width) for row in rows)

    start = values.index(present) if present in values else 0
    picked = await ui.pick(PickList(f"REBALANCE  {choice.label}", _lines, start))
    return now if picked is None else choice.made(now, values[picked])
