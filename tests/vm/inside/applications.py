"""Applications next to a scan: threads that think, read a block at a random place, and wait.

``python3 applications.py FILE LOG THREADS THINK`` (THINK in seconds, on average) writes a line for
each read: when it began (epoch seconds) and how long it took, as the reader saw it. Runs until
killed.
"""

from __future__ import annotations

import mmap
import os
import random
import sys
import threading
import time
from pathlib import Path
from typing import TextIO

SIZE = 16384


def reader(number: int, path: str, think: float, log: TextIO) -> None:
    """Run one reader thread, forever."""
    draw = random.Random(number)
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_DIRECT", 0))
    places = os.fstat(handle).st_size // SIZE
    into = mmap.mmap(-1, SIZE)
    while True:
        time.sleep(draw.expovariate(1.0 / think))
        began = time.time()
        os.preadv(handle, [into], draw.randrange(places) * SIZE)
        log.write(f"{began:.3f} {time.time() - began:.6f}\n")


def main(words: list[str]) -> None:
    """Start the threads and wait."""
    path, kept, threads, think = words[0], words[1], int(words[2]), float(words[3])
    with Path(kept).open("w", buffering=1, encoding="ascii") as log:
        for number in range(threads):
            rest = (number, path, think, log)
            threading.Thread(target=reader, args=rest, daemon=True).start()
        threading.Event().wait()


if __name__ == "__main__":
    main(sys.argv[1:])
