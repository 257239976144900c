"""`python -m tests.lock`: keep what the program does now, or compare it with what was kept."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from importlib import import_module

from tests.lock import kept
from tests.lock.lock import PARTS, TREE, cases, check, seen


def main(words: Sequence[str] | None = None) -> int:
    """Run one command; returns 1 where something differs that nobody meant to change."""
    arguments = _parser().parse_args(words)
    if arguments.command == "show":
        part, _, name = arguments.parts[0].partition("/")
        print(next(case.see(True) for case in cases(part) if case.name == name))
        return 0
    if arguments.command == "costs":
        import_module("tests.lock.costs").main()
        return 0
    failed = 0
    for part in arguments.parts or PARTS:
        began = time.monotonic()
        chosen = cases(part)
        texts = seen(part, chosen, arguments.jobs)
        if arguments.command == "make":
            kept.write(part, texts)
        else:
            failed += check(part, texts)
        print(f"{part}: {len(chosen)} cases ({time.monotonic() - began:.0f}s)", flush=True)
    if arguments.command == "make":
        (kept.KEPT / "commit").write_text(_clean_commit() + "\n")
        print(f"{kept.size():,} of {kept.LIMIT:,} bytes")
        return int(kept.size() > kept.LIMIT)
    return int(failed > 0)


def _clean_commit() -> str:
    """Return the commit of the sources; raises SystemExit where they differ from it."""
    status = ["git", "status", "--porcelain", "--", "zconsole", "themes"]
    if subprocess.run(status, cwd=TREE, capture_output=True, text=True, check=True).stdout:
        raise SystemExit("commit zconsole/ and themes/ first: what is kept notes their commit")
    head = ["git", "rev-parse", "HEAD"]
    return subprocess.run(head, cwd=TREE, capture_output=True, text=True, check=True).stdout.strip()


def _parser() -> argparse.ArgumentParser:
    """Return the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.lock", description=__doc__)
    parser.add_argument("command", choices=("make", "check", "show", "costs"))
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}")
    jobs = len(os.sched_getaffinity(0))
    parser.add_argument("--jobs", type=int, default=jobs, help="processes (%(default)s)")
    return parser


if __name__ == "__main__":
    sys.exit(main())
