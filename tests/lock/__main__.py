"""`python -m tests.lock`: keep what the program does now, or compare it with what was kept.

make [PART]          write what the cases see to tests/lock/kept
check [PART[/NAME]]  compare what they see with that; exits with 1 if something differs that no
                     line of meant.toml wants. NAME: how the names of cases begin
show PART/NAME...    print what cases see, nothing abridged
costs                print what a refresh, a tick and a start take
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from importlib import import_module

from tests.lock import kept, meant
from tests.lock.case import RAISED
from tests.lock.difference import TREE
from tests.lock.lock import PARTS, cases, check, dearest_first, missing, see, seen


def main(words: Sequence[str] | None = None) -> int:
    """Run one command; returns 1 if an unintended difference was found."""
    arguments = _parser().parse_args(words)
    sys.stdout.reconfigure(errors="surrogateescape")
    chosen = arguments.parts or PARTS
    if arguments.command == "show":
        texts = {place: see(*place.split("/", 1), True) for place in chosen}
        print(kept.sections(texts), end="")
        return 0
    if arguments.command == "costs":
        import_module("tests.lock.costs").main()
        return 0
    if arguments.command == "make":
        return _make(chosen, arguments.jobs)
    return _check(chosen, arguments.jobs)


def _make(parts: Sequence[str], jobs: int) -> int:
    commit = _clean_commit()
    for part in parts:
        if lacking := missing(part):
            raise SystemExit(f"{part}: cannot see {', '.join(lacking)}: what they read is missing")
        texts = seen(part, dearest_first(cases(part)), jobs)
        if raised := [name for name, text in texts.items() if text.startswith(RAISED)]:
            raise SystemExit(f"{part}/{raised[0]} {texts[raised[0]]}")
        kept.write(part, texts, commit)
        print(f"{part}: {len(texts)} cases", flush=True)
    print(f"{kept.size():,} of {kept.LIMIT:,} bytes")
    return int(kept.size() > kept.LIMIT)


def _check(places: Sequence[str], jobs: int) -> int:
    began, counted, failed, wanted = time.monotonic(), 0, 0, 0
    for place in places:
        since = time.monotonic()
        part, _, prefix = place.partition("/")
        left_out = missing(part)
        for name in left_out:
            print(f"{part}/{name}: skipped, what they read is not beside this tree")
        texts = seen(part, dearest_first(cases(part, prefix)), jobs)
        if not texts:
            raise SystemExit(f"{place}: no case begins with that")
        old = {
            name: text
            for name, text in kept.read(part).items()
            if name.startswith(prefix) and not name.startswith(left_out)
        }
        found = check(part, texts, old)
        if not prefix:
            for line in meant.read():
                if line.part == part and line not in found.used:
                    print(f"meant.toml: nothing differs for {part}/{line.case} (#{line.issue})")
                    failed += 1
        counted, wanted = counted + found.cases, wanted + found.meant
        failed += len(found.failed)
        print(f"{place}: {found.cases} cases ({time.monotonic() - since:.0f}s)", flush=True)
    taken = time.monotonic() - began
    print(f"lock: {counted} cases, {failed} differ, {wanted} as meant ({taken:.0f}s)")
    return int(failed > 0)


def _clean_commit() -> str:
    """Return the commit of the tree. Raises SystemExit if files other than kept texts differ."""
    kept_files = [":(exclude)tests/lock/kept", ":(exclude)tests/lock/meant.toml"]
    status = ["git", "status", "--porcelain", "--", "zconsole", "themes", "tests", *kept_files]
    if subprocess.run(status, cwd=TREE, capture_output=True, text=True, check=True).stdout:
        raise SystemExit("commit zconsole, themes and tests first: their commit is noted")
    head = ["git", "rev-parse", "HEAD"]
    return subprocess.run(head, cwd=TREE, capture_output=True, text=True, check=True).stdout.strip()


def _parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    raw = argparse.RawDescriptionHelpFormatter
    name = "python -m tests.lock"
    parser = argparse.ArgumentParser(prog=name, description=__doc__, formatter_class=raw)
    parser.add_argument("command", choices=("make", "check", "show", "costs"))
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}")
    jobs = len(os.sched_getaffinity(0))
    parser.add_argument("--jobs", type=int, default=jobs, help="processes (%(default)s)")
    return parser


if __name__ == "__main__":
    sys.exit(main())
