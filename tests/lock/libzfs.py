"""JSON of pools, from packed configs as the kernel returns them.

Configs of real pools pass through the same code as live ones: the helper process and the console's
end of it. The other parts of a sample (messages, disk counters, tunables, host) are of the same
moment.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, partial
from typing import Any, cast

from tests.lock.case import Case, digest
from tests.lock.difference import DIGEST
from tests.lock.kernel import ALL, ARCHIVES, COMMAND, moments, states
from zconsole.output.json import line, sample_object
from zconsole.system.async_process import ProcessRunner
from zconsole.system.process import DeadlineError
from zconsole.timeline.frame import Frame
from zconsole.timeline.session import Session
from zconsole.zfs.raw import Raw
from zconsole.zfs.sources.kernel.client import KernelReader
from zconsole.zfs.sources.reader import ReaderUnusableError, ReadFailedError

PATIENCE = 30.0
WHOLE = "2.3.9/"
"""The release whose last samples are kept as lines; other releases are kept as digests."""
_EMPTY = ("null", "false", '""', "[]", "{}")


def cases() -> Iterable[Case]:
    """Return a case for each state of each release, and one for all of them in turn."""
    for archive in sorted(ARCHIVES.glob("*.tar.xz")):
        release, found = archive.name.removesuffix(".tar.xz"), states(archive)
        for state in found:
            yield Case(f"{release}/{state}", partial(_see, f"{release}/{state}"), 0.02)
        yield Case(f"{release}/{ALL}", partial(_see, f"{release}/{ALL}"), 0.02 * len(found))


def _see(name: str, whole: bool) -> str:
    """Return the JSON of each sample of a state: its digest, and the lines of the last one."""
    session, shown, saved = Session(), [], moments(name)
    last = len(saved) if name.startswith(WHOLE) and not name.endswith(f"/{ALL}") else None
    for number, (moment, form) in enumerate(zip(saved, _forms(name, len(saved)), strict=True), 1):
        raw = {**moment.rest, **form}
        frames = session.advance([cast("Raw", raw)])
        samples = [sample_object(frame) | _repaired(frame) for frame in frames]
        text = _text(samples)
        if whole:
            shown += [f"sample {number}", text]
            continue
        shown.append(f"sample {number}: {DIGEST}{digest(text)}")
        if number == last:
            shown.append(_text(map(_abridged, samples)))
    return "\n".join(shown)


def _repaired(frame: Frame) -> Mapping[str, Any]:
    """Return the bytes a scan wrote to each device, which the JSON lacks but details show."""
    vdevs = [row.vdev for row in frame.rows]
    return {"repaired": {each.name: each.scan_processed for each in vdevs if each.scan_processed}}


def _abridged(sample: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a sample without empty or repeated parts."""
    once = {**sample, "scans": sample["scans"][1:]}
    return cast("Mapping[str, Any]", _filled(once))


def _filled(value: Any) -> Any:
    if isinstance(value, list):
        return [_filled(each) for each in value]
    if not isinstance(value, dict):
        return value
    filled = {key: _filled(each) for key, each in value.items()}
    return {key: each for key, each in filled.items() if line(each) not in _EMPTY}


def _text(samples: Iterable[Mapping[str, Any]]) -> str:
    return "\n".join(each for sample in samples for each in _lines(sample))


def _lines(sample: Mapping[str, Any]) -> Iterator[str]:
    """Yield the JSON of a sample: a line for each value, and one for each vdev."""
    for key, value in sample.items():
        if key != "topology":
            yield line({key: value})
    if sample.get("topology"):
        yield from _rows(sample["topology"])


def _rows(node: Mapping[str, Any], depth: int = 0) -> Iterator[str]:
    below = node.get("children", ())
    yield depth * "  " + line({**node, "children": len(below)})
    for child in below:
        yield from _rows(child, depth + 1)


def _forms(name: str, count: int) -> list[Mapping[str, Any]]:
    """Return the forms that the helper makes of a state's configs, or why one failed."""
    reader = _reader()

    async def read() -> Mapping[str, Any]:
        try:
            return await reader.read(name, PATIENCE)
        except (ReaderUnusableError, ReadFailedError, DeadlineError) as error:
            return {"problem": str(error)}

    return [_loop().run_until_complete(read()) for _ in range(count)]


@cache
def _loop() -> asyncio.AbstractEventLoop:
    return asyncio.new_event_loop()


@cache
def _reader() -> KernelReader:
    """Return the reader of this process; its helper ends with the process."""
    return KernelReader(ProcessRunner(), COMMAND)
