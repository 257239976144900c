"""`python -m tests.cuts`: crashes of the copy engine on a model filesystem, very many of them."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import zconsole
from tests.cuts import campaign
from tests.cuts.campaign import Progress
from tests.cuts.machine import isolated
from tests.cuts.scenarios import SCENARIOS
from tests.cuts.workloads import WORKLOADS
from tests.proof import INTERRUPTED, cache, digest, table

EVERYTHING = (*WORKLOADS, *SCENARIOS)
CRASHES = 1_000_000
HEADS = ("workload", "calls", "cuts", "crash states", "errno runs", "others", "failures")


def main(words: list[str] | None = None) -> int:
    """Run, continue or repeat experiments; returns 1 if something was lost."""
    arguments = _parser().parse_args(words)
    with isolated():
        if arguments.repeat is not None:
            return _repeat(arguments.repeat)
        return _run(arguments)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.cuts", description=__doc__)
    parser.add_argument(
        "--crashes", type=int, default=CRASHES, help="crash states to try (%(default)s)"
    )
    parser.add_argument("--seed", default="0", help="what chance begins with (%(default)s)")
    parser.add_argument("--workload", default="", help="only those with this in their names")
    parser.add_argument("--again", action="store_true", help="forget what earlier runs did")
    parser.add_argument("--repeat", metavar="CHOICES", help="repeat one failure")
    return parser


def _repeat(choices: str) -> int:
    problems = campaign.repeated(EVERYTHING, choices)
    print("\n".join(problems) or "nothing is wrong")
    return 1 if problems else 0


def _run(arguments: argparse.Namespace) -> int:
    chosen = [each for each in EVERYTHING if arguments.workload in each.name]
    path = cache("cuts") / f"{arguments.seed}-{arguments.workload or 'all'}.json"
    if arguments.again:
        path.unlink(missing_ok=True)
    progress = Progress.load(path, arguments.seed, sources())
    began, before = time.monotonic(), progress.states

    def _kept() -> None:
        progress.save(path)
        rate = (progress.states - before) / (time.monotonic() - began)
        cpu = (progress.states - before) / time.process_time()
        line = f"{progress.states} crash states, {rate:.0f} per second, {cpu:.0f} of a processor"
        print(line, end="\r" if sys.stdout.isatty() else "\n", flush=True)

    try:
        campaign.run(chosen, progress, arguments.crashes, _kept)
    except KeyboardInterrupt:
        show(progress)
        print("stopped; the same command goes on from here")
        return INTERRUPTED
    show(progress)
    return 1 if any(tally.failed for tally in progress.tallies.values()) else 0


def show(progress: Progress) -> None:
    """Print the table, and for every failure the arguments that repeat it."""
    rows: list[tuple[str, ...]] = [HEADS]
    for tally in progress.tallies.values():
        counts = (tally.calls, tally.cuts, tally.states, tally.errors, tally.others, tally.failed)
        rows.append((tally.name, *map(str, counts)))
    sums = (sum(int(row[at]) for row in rows[1:]) for at in range(1, len(HEADS)))
    rows.append(("all", *map(str, sums)))
    print(table(rows))
    for tally in progress.tallies.values():
        for failure in tally.failures:
            print(f"\npython -m tests.cuts --repeat '{failure.repeat}'")
            print("\n".join(f"  {problem}" for problem in failure.problems))


def sources() -> str:
    """Return a digest of the tested code and the model; when it changes, all is tried again."""
    tree = Path(zconsole.__file__).parent / "rebalance"
    return digest([*tree.rglob("*.py"), *Path(__file__).parent.glob("*.py")])


if __name__ == "__main__":
    raise SystemExit(main())
