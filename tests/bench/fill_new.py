"""Bytes moved to an even pool, with the full vdev kept from new writes and without.

Run as root, on two empty disks that are given over to it: ``python -m tests.bench.fill_new DISK
DISK [--mebibytes N] [--spread F]``. Fills a pool of the first disk, adds the second, and moves
files until the spread is reached: by each engine, with ``--fill-new`` and without, each on a new
pool. Prints the bytes of files moved, as predicted and as they were, and the spread reached.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence
from itertools import product
from typing import Any

POOL = "fillnew"
DATA = f"/{POOL}/data"
FILE = 8 << 20
"""Bytes of a file."""


def output(*words: str) -> str:
    """Return the output of a command that must succeed."""
    return subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout


def lopsided(full: str, empty: str, mebibytes: int) -> None:
    """Create a pool whose second disk is empty."""
    output("zpool", "create", "-f", "-O", "compression=off", "-O", "recordsize=128K", POOL, full)
    write = f"mkdir {DATA}; for n in $(seq {mebibytes * (1 << 20) // FILE}); do"
    output("sh", "-ec", f"{write} head -c {FILE} /dev/urandom >{DATA}/$n; done; zpool sync {POOL}")
    output("zpool", "add", "-f", POOL, empty)


def rebalanced(engine: str, spread: float, options: Sequence[str]) -> tuple[Any, Any]:
    """Return the plan and the summary of a job on the pool's files."""
    words = [DATA, "--engine", engine, "--until-spread", f"{spread:g}", *options, "--json"]
    command = [sys.executable, "-m", "zconsole", "rebalance"]
    made = json.loads(output(*command, "plan", *words))
    lines = output(*command, "run", "--yes", *words).splitlines()
    return made, json.loads(lines[-1])["summary"]


def spread_now() -> float:
    """Return the spread of the pool, once what was freed shows."""
    for _ in range(3):
        output("zpool", "sync", POOL)
    spread: float = json.loads(
        subprocess.run(
            (sys.executable, "-m", "zconsole", "rebalance", "plan", DATA, "--json"),
            check=False,
            stdout=subprocess.PIPE,
            text=True,
        ).stdout
    )["spread_before"]
    return spread


def main(words: Sequence[str] | None = None) -> int:
    """Measure each engine on new pools, which are destroyed afterwards."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("disks", nargs=2, metavar="DISK")
    parser.add_argument("--mebibytes", type=int, default=2048, help="data to begin with")
    parser.add_argument("--spread", type=float, default=0.05)
    args = parser.parse_args(words)
    full, empty = args.disks
    moved: dict[tuple[str, bool], int] = {}
    for engine, fill_new in product(("rewrite", "copy"), (False, True)):
        lopsided(full, empty, args.mebibytes)
        try:
            made, told = rebalanced(engine, args.spread, ["--fill-new"] * fill_new)
            spread = spread_now()
        finally:
            output("zpool", "destroy", POOL)
        moved[engine, fill_new] = told["bytes_moved"]
        print(
            f"{engine:8} {'full vdev kept' if fill_new else 'usual':15}"
            f" predicted {made['bytes_to_target'] / 2**20:6.0f} MiB,"
            f" moved {told['bytes_moved'] / 2**20:6.0f} MiB, spread {made['spread_before']:.3f}"
            f" to {spread:.3f} in {told['seconds']:.0f} s ({told['stopped_by']})",
            flush=True,
        )
        if fill_new:
            saved = 1 - moved[engine, True] / moved[engine, False]
            print(f"{engine:8} {saved:.0%} fewer bytes moved (wanted: a quarter)", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
