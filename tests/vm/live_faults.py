"""`python -m tests.vm.live_faults`: break live pools on purpose, and judge what is said of them."""

from __future__ import annotations

import argparse
import json
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tests.proof import INTERRUPTED, digest, table
from tests.vm import fault_judge, fault_trial, image, zinject
from tests.vm.cache import exclusive, subdirectory
from tests.vm.errors import NotAvailableError, VmError
from tests.vm.fault_trial import Trial, trials
from tests.vm.machine import Machine
from tests.vm.pools import clear
from tests.vm.wheels import TREE

RELEASES = ("bookworm", "2.2", "trixie", "sid")
DISKS = (1 << 30,) * 6
HEADS = ("fault", "trials", "scans", "dishonest", "named right", "not made")
SOURCES = ("zconsole", "tests/vm/fault*")


def sources() -> str:
    """Return a digest of the tested code and the test code."""
    found = (file for part in SOURCES for place in TREE.glob(part) for file in _files(place))
    return digest(found)


def _files(place: Path) -> Iterator[Path]:
    return place.rglob("*.py") if place.is_dir() else iter((place,))


class Kept:
    """Results on one release so far, saved in a file."""

    def __init__(self, release: str) -> None:
        self.path = subdirectory("live-faults") / f"{release}.json"
        self.found: dict[str, dict[str, Any]] = {}
        if self.path.exists():
            self.found = json.loads(self.path.read_text())

    def add(self, trial: Trial, result: dict[str, Any]) -> None:
        """Add a result, and save it at once: the run may be stopped."""
        self.found[trial.name] = result
        draft = self.path.with_suffix(".draft")
        draft.write_text(json.dumps(self.found, indent=0))
        draft.replace(self.path)


def judged(machine: Machine, trial: Trial) -> dict[str, Any]:
    """Run a trial and judge it; observations are saved if something was wrong."""
    seen = fault_trial.make(machine, trial)
    right, said = fault_judge.named(seen)
    wrong = fault_judge.dishonest(seen)
    if wrong or not right:
        words = {"truths": [(*each[:2], sorted(each.bad), each.errors) for each in seen.truths]}
        kept = subdirectory("live-faults") / f"{trial.name.replace('/', '-')}.jsonl"
        kept.write_text("".join(json.dumps(each) + "\n" for each in (*seen.frames, words)))
    return {
        "fault": trial.fault,
        "during": trial.during,
        "pool": fault_trial.drawn(trial).layout,
        "frames": len(seen.frames),
        "code": seen.code,
        "dishonest": wrong,
        "right": right,
        "said": said,
    }


def run(release: str, arguments: argparse.Namespace) -> None:
    """Run the remaining trials on a release, one after another."""
    kept, tree = Kept(release), sources()
    counted = set() if arguments.again else _counted(kept.found, tree, arguments.older)
    left = [t for t in trials(release) if arguments.trial in t.name and t.name not in counted]
    if not left:
        return
    with Machine.boot(image.build(release), DISKS) as machine:
        machine.push_tree()
        zinject.install(machine)
        for trial in left:
            try:
                result = judged(machine, trial)
            except VmError as error:
                result = {"fault": trial.fault, "void": str(error)[-600:]}
            kept.add(trial, result | {"tree": tree})
            print(f"{trial.name}: {_line(result)}", flush=True)
            clear(machine)


def _counted(found: dict[str, dict[str, Any]], tree: str, older: bool) -> set[str]:
    """Return the trials that need no rerun; of older trees, only good results count."""
    return {
        name
        for name, each in found.items()
        if each["tree"] == tree or (older and not each.get("dishonest") and each.get("right"))
    }


def _line(result: dict[str, Any]) -> str:
    if "void" in result:
        return f"not made: {result['void'].splitlines()[0]}"
    words = "; ".join(f"DISHONEST: {each}" for each in result["dishonest"]) or "honest"
    return f"{words}; {'named right' if result['right'] else 'NOT NAMED'} ({result['said']})"


def show(releases: Sequence[str]) -> int:
    """Print the table and the problems; returns the number of dishonest trials."""
    found = {name: each for release in releases for name, each in Kept(release).found.items()}
    by_fault: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for each in found.values():
        by_fault[each["fault"]].append(each)
    by_fault["all"] = list(found.values())
    print(table([HEADS, *(_row(fault, each) for fault, each in by_fault.items())]))
    for name, each in found.items():
        if "void" not in each and (each["dishonest"] or not each["right"]):
            print(f"\n{name} ({each['pool']}): {_line(each)}")
    older = sum(each["tree"] != sources() for each in found.values())
    if older:
        print(f"\n{older} of these results are those of other versions of this tree.")
    return sum(bool(each.get("dishonest")) for each in found.values())


def _row(fault: str, found: Sequence[dict[str, Any]]) -> tuple[str, ...]:
    made = [each for each in found if "void" not in each]
    scans = sum(each["during"] != "rebalance" for each in made)
    wrong = sum(bool(each["dishonest"]) for each in made)
    right = sum(each["right"] for each in made)
    counts = (len(made), scans, wrong, right, len(found) - len(made))
    return (fault, *map(str, counts))


def main() -> int:
    """Start or continue; returns 1 if a claim was false."""
    arguments = _parser().parse_args()
    releases = arguments.releases or list(RELEASES)
    for release in releases:
        with exclusive(subdirectory("live-faults") / f"{release}.lock"):
            try:
                run(release, arguments)
            except NotAvailableError as error:
                print(f"{release} is left out: {error}")
            except KeyboardInterrupt:
                show(releases)
                print("stopped; the same command goes on from here")
                return INTERRUPTED
    return 1 if show(releases) else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.vm.live_faults", description=__doc__)
    parser.add_argument("releases", nargs="*", metavar="RELEASE", help="these only (all)")
    parser.add_argument("--trial", default="", help="only those with this in their names")
    parser.add_argument("--again", action="store_true", help="forget what earlier runs did")
    parser.add_argument(
        "--older", action="store_true", help="count what went well on other versions of this tree"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
