"""`python -m tests.mutants`: mistakes planted in the copy engine, which the tests must catch.

With the word `planted` first: mistakes all over zconsole, which suite or lock must catch.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tests.mutants import campaign, planted
from tests.mutants.campaign import Progress
from tests.mutants.equivalent import REASONS
from tests.mutants.generate import ENGINE, MODULES, PACKAGE, Mutant, mutants
from tests.proof import INTERRUPTED, cache, digest, table

ROUNDS = 3
HEADS = (
    "module", "mutants", "by model", "by tests", "hang", "equivalent", "survived", "left", "caught",
)  # fmt: skip


def main(words: list[str] | None = None) -> int:
    """Try, continue or show mutants; returns 1 if one survived that is not equivalent."""
    words = sys.argv[1:] if words is None else words
    if words[:1] == ["planted"]:
        return planted.main(words[1:])
    arguments = _parser().parse_args(words)
    chosen = [mutant for module in MODULES for mutant in mutants(module)]
    chosen = [each for each in chosen if arguments.only in f"{each.name} {each.identity}"]
    path = cache("mutants") / "all.json"
    if arguments.again:
        path.unlink(missing_ok=True)
    progress = Progress.load(path, sources())
    if arguments.survivors:
        _again(progress, chosen)

    def _kept(mutant: Mutant) -> None:
        progress.save(path)
        verdict = progress.of(mutant)
        print(f"{verdict.caught_by or 'not caught'}: {mutant.name}", flush=True)

    stopped = 0
    try:
        if not arguments.show:
            campaign.run(_worth(chosen), progress, arguments.rounds, _kept)
    except KeyboardInterrupt:
        print("\nstopped; the same command goes on from here")
        stopped = INTERRUPTED
    return show(chosen, progress, arguments.what) or stopped


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument(
        "--only", default="", metavar="TEXT", help="mutants with this in their name"
    )
    parser.add_argument(
        "--rounds", type=int, default=ROUNDS, help="rounds of the model (%(default)s)"
    )
    parser.add_argument("--survivors", action="store_true", help="try again what survived")
    parser.add_argument("--again", action="store_true", help="forget what earlier runs did")
    parser.add_argument("--show", action="store_true", help="print the table, try nothing")
    parser.add_argument("--what", action="store_true", help="print what caught each mutant")
    return parser


def _worth(chosen: Sequence[Mutant]) -> list[Mutant]:
    """Return the mutants that are not known to be equivalent."""
    return [mutant for mutant in chosen if mutant.identity not in REASONS]


def _again(progress: Progress, chosen: Sequence[Mutant]) -> None:
    for mutant in chosen:
        if not progress.of(mutant).caught_by:
            del progress.verdicts[mutant.identity]


def show(chosen: Sequence[Mutant], progress: Progress, what: bool) -> int:
    """Print the table and the survivors; returns 1 if there are any."""
    kinds = {mutant.identity: _kind(mutant, progress) for mutant in chosen}
    rows: list[tuple[str, ...]] = [HEADS]
    for module in (*MODULES, "all"):
        counts = Counter(kinds[each.identity] for each in chosen if module in (each.module, "all"))
        if counts:
            rows.append(_row(module.removeprefix(ENGINE), counts))
    print(table(rows))
    for mutant in chosen:
        kind = kinds[mutant.identity]
        if what or kind == "survived":
            print(f"{kind}: {mutant.name}\n  {mutant.identity}")
            print(f"  {REASONS.get(mutant.identity, '') or progress.of(mutant).what}" * what)
    return int("survived" in kinds.values())


def _kind(mutant: Mutant, progress: Progress) -> str:
    """Return the column in which a mutant is counted."""
    verdict = progress.of(mutant)
    if mutant.identity in REASONS:
        return "equivalent"
    if verdict.hangs:
        return "hang"
    if verdict.caught_by:
        return f"by {verdict.caught_by}"
    return "survived" if verdict.stages == len(campaign.stages(ROUNDS)) else "left"


def _row(module: str, counts: Counter[str]) -> tuple[str, ...]:
    caught = counts["by model"] + counts["by tests"] + counts["hang"]
    visible = counts.total() - counts["equivalent"]
    share = f"{caught / visible:.1%}" if visible else "-"
    columns = (str(counts[head]) for head in HEADS[2:-1])
    return (module, str(counts.total()), *columns, share)


def sources() -> str:
    """Return a digest of the mutated code and the tests; when it changes, all is tried again."""
    tests = Path(__file__).parents[1]
    trees = [PACKAGE / "rebalance", tests / "faults", tests / "cuts"]
    trees += [tests / "unit" / "rebalance", Path(__file__).parent]
    files = (file for tree in trees for file in tree.rglob("*.py"))
    return digest(file for file in files if file.name != "equivalent.py")


if __name__ == "__main__":
    sys.exit(main())
