"""Kinds of saved ``zpool status`` text, and the report of ``zconsole status --from`` for each.

Each case is as small as possible; whole outputs of public reports are in ``test_reports``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.table import rows
from tests.unit.cli.test_reports import CODES
from zconsole.__main__ import main

HEADING = "NAME STATE READ WRITE CKSUM"
GOOD = "errors: No known data errors\n"


def table(*lines: str) -> str:
    """Return the ``config:`` section of a pool; rows with only a state get counters."""
    shown = (f"{line} 0 0 0" if line.split()[-1].isupper() else line for line in lines)
    return "".join(f"\t{line}\n" for line in shown)


def text(
    *lines: str,
    state: str = "ONLINE",
    above: str = "",
    scan: str = "none requested",
    end: str = GOOD,
) -> str:
    """Return a whole output for pool ``tank`` with these rows below its own."""
    head = f"  pool: tank\n state: {state}\n{above}  scan: {scan}\nconfig:\n\n"
    return f"{head}{table(HEADING, f'tank {state}', *lines)}\n{end}"


MIRROR = ("  mirror-0 ONLINE", "    sda ONLINE", "    sdb ONLINE")


class Said(NamedTuple):
    """The report of the last pool of a text."""

    word: str
    code: int
    redundancy: Mapping[str, int]
    report: str
    sample: Mapping[str, Any]


@pytest.fixture
def said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Callable[[str], Said]:
    """Return a function that returns the report of a text."""
    monkeypatch.setenv("TZ", "UTC")

    def of(output: str) -> Said:
        file = tmp_path / "status.txt"
        file.write_text(output)
        code = main(["status", "--from", str(file), "--exit-status"])
        report = capsys.readouterr().out
        main(["status", "--from", str(file), "--json"])
        sample = json.loads(capsys.readouterr().out.splitlines()[-1])
        return Said(sample["health"]["word"], code, sample["redundancy"], report, sample)

    return of


# Kinds of texts, and what is said of them

LOOSE = table("    sdd ONLINE", "    sde ONLINE")
SPARE = table("    spare-2 ONLINE", "      sdb ONLINE", "      sdc ONLINE")
SOLARIS = text(*MIRROR, "  mirror-1 ONLINE", "    sdc ONLINE", "    sdd ONLINE").replace(
    " state:", "    id: 8654581339273442104\n state:"
)
LISTED = """\
   pool: tank
     id: 16911161038176216381
  state: ONLINE
 action: The pool can be imported using its name or numeric identifier.
 config:

\ttank        ONLINE
\t  raidz1-0  ONLINE
\t    sda     ONLINE
\t    sdb     ONLINE
"""


LOST = ("  mirror-0 ONLINE", "    sda ONLINE", "    sdb ONLINE", "  sdc UNAVAIL")
FAILED = ("  raidz2-0 DEGRADED", "    sda ONLINE", "    sdb ONLINE", "    sdc UNAVAIL")
BEGUN = "resilver in progress since Sat Mar  9 09:00:01 2024\n\t"
WALKING = "412G / 8.73T scanned, 0B / 8.73T issued\n\t0B resilvered, 0.00% done"
NAMED = "  pool: tank\n state: "
DOUBLED = (
    *("  raidz1-0 ONLINE", "    sda ONLINE", "    spare-1 ONLINE", "      sdb ONLINE"),
    *("      sdd ONLINE", "    sdc ONLINE", "spares", "  sdd INUSE     currently in use"),
)
ENDED = "on Sat Mar  9 09:05:01 2024"
INUSE = "spare sdd is still INUSE though sdb is ONLINE and complete"
CANCELED = f"resilver canceled {ENDED}"
CHECKED = "scrub repaired 0B in 00:11:12 with 0 errors on Sun Mar 10 09:05:01 2024"
DOUBTED = "the last repair was canceled: scrub to check redundancy"
LEGACY = "status: The pool is formatted using a legacy on-disk format.  The pool can\n\tstill be"
UPGRADE = "status: Some supported and requested features are not enabled on the pool.\n\tThe pool"
READ_ONLY = (
    "status: The pool can only be accessed in read-only mode on this system. It\n\tcannot be"
    " accessed in read-write mode because it uses the following\n\tfeature(s) not supported on"
    " this system:\n\tcom.delphix:device_removal (Top-level vdevs can be removed.)\n"
)


class Row(NamedTuple):
    """A text, and what is said of it."""

    output: str
    word: str = "UNKNOWN"
    redundancy: Mapping[str, int] | None = None
    """None: not compared."""
    told: str = ""
    """A part of the report."""


def _ending(output: str, *cuts: str) -> list[Row]:
    """Return rows for an output that ends before each of these words."""
    return [Row(output[: output.index(cut)], told="  the text ends ") for cut in cuts]


def _beginning(output: str, *begins: str) -> list[Row]:
    """Return rows for an output that begins with each of these words, below its state."""
    below, pair = "the text begins below its state: line", {"mirror-0": 1}
    return [Row(output[output.index(begin) :], "UNKNOWN", pair, below) for begin in begins]


CASES: Mapping[str, Sequence[Row]] = {
    # Its rows may be of vdevs whose own rows, with bad devices, were above.
    "without the row of its pool": [
        Row(output, "UNKNOWN", redundancy, "the pool's own row is not shown")
        for output, redundancy in (
            (LOOSE, {}),
            (f"{LOOSE}\n{GOOD}", {}),
            (f"{table('    sdb ONLINE', *MIRROR)}\n{GOOD}", {"mirror-0": 1}),
            (f"{SPARE}\n{GOOD}", {}),
        )
    ],
    # The missing part may have said that the pool is suspended.
    "begun below its state": _beginning(text(*MIRROR), "  scan:", "config:", "\tNAME"),
    # Lists of pools to import have an ``id:`` line, and all output of Solaris 11.4.
    "whole, with the number of its pool": [Row(SOLARIS, "OK"), Row(LISTED, "OK")],
    "cut, with the number of its pool": [
        *_ending(SOLARIS, "\nerrors", "errors", "\t    sdd", "\t  mirror-1", "sdd"),
        *_ending(LISTED, "\t    sdb", "\t    sda", "\t  raidz1-0", "\ttank"),
    ],
    "suspended, without its errors": [
        Row(
            text(
                *LOST,
                state="UNAVAIL",
                above="status: One or more devices are faulted in response to IO failures.\n",
                end="",
            ),
            "SUSPENDED",
            None,
            "  the text ends before its errors: line\n",
        )
    ],
    "below whose end more devices may have failed": [
        Row(text(*FAILED, state="UNAVAIL", end="").removesuffix("\n"), "UNAVAIL", {}, "")
    ],
    "of a repair that is elsewhere, or on its way": [
        Row(text(*MIRROR, scan=scan), word, {"mirror-0": 1})
        for scan, word in (
            (BEGUN + WALKING.replace("0B / 8.73T", "41G / 8.73T").replace("0.00", "0.28"), "OK"),
            (f"resilver (mirror-1) in progress since {ENDED[3:]}\n\t{WALKING}", "ATTENTION"),
            (f"scrub in progress since {ENDED[3:]}\n\t{WALKING}", "OK"),
        )
    ],
    "without a table, of which the least is true": [
        Row(f"{NAMED}DEGRADED\n"),
        Row(f"{NAMED}DEGRADED\n{GOOD}"),
        Row(f"{NAMED}DEGRADED\n{GOOD}{NAMED}ONLINE\n{GOOD}"),
        Row(f"{NAMED}ONLINE\n{GOOD}"),
        Row(f"{NAMED}UNAVAIL\n", "UNAVAIL"),
        Row(f"{NAMED}ONL"),
        Row(f"{NAMED}DEGR"),
        Row(text(*MIRROR).replace("state: ONLINE", "state: FINE")),
    ],
    "of a destroyed pool": [
        Row(
            LISTED.replace("ONLINE", f"{state} (DESTROYED)", 1),
            word,
            None,
            "The pool was destroyed.",
        )
        for state, word in (
            ("ONLINE", "ATTENTION"),
            ("DEGRADED", "DEGRADED"),
            ("FAULTED", "FAULTED"),
        )
    ],
    # After ``zpool replace`` with a spare by hand, redundancy is complete.
    "of a spare beside a device that is whole": [
        Row(text(*DOUBLED), "ATTENTION", {"raidz1-0": 1}, INUSE),
        Row(
            text(*DOUBLED, scan=f"resilvered 1G in 00:11:12 with 0 errors {ENDED}"),
            "ATTENTION",
            {"raidz1-0": 1},
            INUSE,
        ),
        Row(
            text(*DOUBLED, scan=f"resilvered 1G in 00:11:12 with 7 errors {ENDED}"),
            "NOT RESTORED",
        ),
    ],
    # It may have ended because its device was detached, and may have skipped something.
    "of a repair that was canceled, until a scrub": [
        Row(text(*MIRROR, scan=CANCELED), "ATTENTION", None, DOUBTED),
        Row(
            text(*MIRROR, scan=f"resilver (mirror-0) canceled {ENDED}"), "ATTENTION", None, DOUBTED
        ),
        Row(
            text(*MIRROR, scan=f"{CHECKED.replace('10', '08')}\n  scan: {CANCELED}"),
            "ATTENTION",
            None,
            DOUBTED,
        ),
        Row(text(*MIRROR, scan=f"{CHECKED}\n  scan: {CANCELED}"), "OK"),
    ],
    "of a dead cache device, or one put offline": [
        Row(
            text(*MIRROR, "cache", "  nvme0 UNAVAIL 0 0 0 cannot open"),
            "ATTENTION",
            None,
            "nvme0 U",
        ),
        Row(text(*MIRROR, "cache", "  nvme0 FAULTED"), "ATTENTION", None, "  nvme0 FAULTED"),
        Row(text(*MIRROR, "cache", "  nvme0 REMOVED"), "ATTENTION", None, "  nvme0 REMOVED"),
        Row(text(*MIRROR, "cache", "  nvme0 OFFLINE"), "OK"),
    ],
    "of a pool that this system cannot write to, or that could be upgraded": [
        Row(
            text(*MIRROR, above=f"{LEGACY} used, but some features are unavailable.\n"),
            "OK",
        ),
        Row(
            text(
                *MIRROR, above=f"{UPGRADE} can still be used, but some features are unavailable.\n"
            ),
            "OK",
        ),
        Row(text(*MIRROR, above=READ_ONLY), "ATTENTION"),
    ],
    "that lacks what an estimate needs": [
        Row(
            text(*MIRROR, scan=f"scrub in progress {scan}"),
            "OK",
            None,
            f"no ETA: the {lacking} is unk",
        )
        for scan, lacking in (
            ("for 1h2m, 12.34% done, 7h20m to go", "number of bytes done"),
            (f"since {ENDED[3:]}", "progress"),
        )
    ],
}
"""Kinds of texts: a text ..."""


@rows(
    ("kind", "output", "word", "redundancy", "told"),
    [(kind, *row) for kind, every in CASES.items() for row in every],
)
def test_what_is_said_of_a_kind_of_text(
    said: Callable[[str], Said],
    kind: str,
    output: str,
    word: str,
    redundancy: Mapping[str, int] | None,
    told: str,
) -> None:
    found = said(output)
    assert (found.word, found.code) == (word, CODES[word]), kind
    assert redundancy in (None, found.redundancy), kind
    assert told in found.report, kind


@rows(
    ("state", "lines", "redundancy"),
    [
        ("UNAVAIL", LOST, {"mirror-0": 1, "sdc": 0}),
        ("FAULTED", MIRROR, {"mirror-0": 1}),
        ("FAULTED", (*MIRROR, "logs", "  sdc UNAVAIL"), {"mirror-0": 1}),
    ],
)
def test_nothing_is_missing_of_a_pool_that_could_not_be_opened(
    said: Callable[[str], Said], state: str, lines: Sequence[str], redundancy: Mapping[str, int]
) -> None:
    """Below its table there is neither a blank line nor an ``errors:`` line."""
    found = said(text(*lines, state=state, end="").removesuffix("\n"))
    assert (found.word, found.code, found.redundancy) == (state, 11, redundancy)
    never = ("ends before", "not all of it", "last full scrub")
    assert [part for part in never if part in found.report] == []
    assert found.sample["error_count"] is None


@rows(
    "scan",
    [
        BEGUN + WALKING,
        f"{BEGUN}1G scanned at 1G/s, 0B issued at 0B/s, 8T total\n\t0B resilvered, 0.00% done",
        f"{BEGUN}1.23G scanned out of 5.41T at 123M/s, 12h53m to go\n\t0 resilvered, 0.02% done",
        f"resilver (mirror-0) in progress since Sat Mar  9 09:00:01 2024\n\t{WALKING}",
        "resilver in progress for 0h0m, 0.02% done, 7h20m to go",
        f"{BEGUN}374G scanned at 46.8G/s, 16.0M issued at 2.00M/s, 1.41T total\n"
        "\t0B resilvered, 0.00% done, no estimated completion time",
        BEGUN.strip(),
    ],
)
def test_redundancy_is_unknown_until_a_repair_marks_a_device(
    said: Callable[[str], Said], scan: str
) -> None:
    tops = (*MIRROR, "  sdc ONLINE")
    found = said(text(*tops, scan=scan))
    assert (found.word, found.code, found.redundancy) == ("ATTENTION", 0, {"sdc": 0})
    assert " marks no device yet: redundancy unknown\n" in found.report
    assert "redundancy unknown: mirror-0 (no device is marked yet)\n" in found.report
    marked = [line.replace("sdb ONLINE", "sdb ONLINE 0 0 0 (resilvering)") for line in tops]
    assert said(text(*marked, scan=scan)).redundancy == {"mirror-0": 0, "sdc": 0}


def flat(output: str) -> str:
    """Return a text without the blanks at the beginning of lines."""
    return "".join(line.lstrip(" \t") for line in output.splitlines(keepends=True))


THREE = ("  raidz1-0 ONLINE", "    sda ONLINE", "    sdb ONLINE", "    sdc ONLINE")
DRAID = "  draid1:1d:3c:0s-0 ONLINE"
SECOND = ("  mirror-1 ONLINE", "    sdd ONLINE", "    sde ONLINE")


@rows(
    ("lines", "redundancy", "unknown"),
    [
        ((*MIRROR, *SECOND), {"mirror-0": 1, "mirror-1": 1}, ""),
        ((*THREE, *SECOND), {"raidz1-0": 1, "mirror-1": 1}, ""),
        ((*MIRROR, "  sdx ONLINE", *SECOND), {"mirror-0": 2, "mirror-1": 1}, ""),
        ((*MIRROR, "  sdx ONLINE"), {}, "mirror-0"),
        ((*MIRROR, "  sdx ONLINE", "logs", *SECOND), {}, "mirror-0"),
        ((*THREE, "  sdx ONLINE"), {}, "raidz1-0"),
        ((DRAID, *THREE[1:]), {"draid1:1d:3c:0s-0": 1}, ""),
        ((DRAID, *THREE[1:], "  sdx ONLINE"), {}, "draid1:1d:3c:0s-0"),
        ((*THREE, "  sdx UNAVAIL"), {"raidz1-0": 0}, ""),
        (("  mirror ONLINE", *MIRROR[1:], "  sdx ONLINE", *MIRROR), {"mirror-0": 1}, "mirror"),
        (
            (*MIRROR, "  sdx ONLINE", "  mirror-2 ONLINE", *SECOND[1:], "  sdy ONLINE"),
            {},
            "mirror-0, mirror-2",
        ),
    ],
)
def test_redundancy_without_indentation_is_unknown_where_a_group_may_have_ended_before(
    said: Callable[[str], Said], lines: Sequence[str], redundancy: Mapping[str, int], unknown: str
) -> None:
    found = said(flat(text(*lines)))
    told = f"  redundancy unknown: {unknown} (too little of it is shown)\n"
    assert (found.redundancy, told in found.report) == (redundancy, bool(unknown))


NOISY = text(*MIRROR[:-1], "    sdb ONLINE 0 0 1.2K")
LIST = "errors: Permanent errors have been detected in the following files:\n\n"
DAMAGED = text(*MIRROR, end=f"{LIST}        <metadata>:<0x3c>\n        /tank/R&D <1>\n")


@rows(
    ("output", "errors"),
    [
        (NOISY.replace("\n", "<br>\n"), []),
        (NOISY.replace("\n", "<br />\r\n"), []),
        (NOISY.replace("\t", "&nbsp;" * 8), []),
        (escape(DAMAGED), ["<metadata>:<0x3c>", "/tank/R&D <1>"]),
        (escape(DAMAGED).replace("\n", "<br/>\n"), ["<metadata>:<0x3c>", "/tank/R&D <1>"]),
        (DAMAGED.replace("R&D", "R&lt;D"), ["<metadata>:<0x3c>", "/tank/R&lt;D <1>"]),
        (DAMAGED.replace("<1>", "<br>"), ["<metadata>:<0x3c>", "/tank/R&D <br>"]),
    ],
)
def test_the_source_of_a_web_page_is_read_as_it_is_shown(
    said: Callable[[str], Said], output: str, errors: Sequence[str]
) -> None:
    found = said(output)
    assert (found.sample["pool"], found.sample["state"]) == ("tank", "ONLINE")
    assert found.sample["errors"] == errors
    assert (found.word, found.code) == (("ERRORS", 10) if errors else ("ATTENTION", 0))
    assert ("sdb: 1.20K checksum errors" in found.report) == (not errors)
    assert found.redundancy == {"mirror-0": 1}


ERRING = ("  raidz1-0 DEGRADED", "    sda ONLINE 112 3 98", "    sdb {} 12 204 0", "    sdc ONLINE")


@rows(
    ("state", "end", "word"),
    [
        ("DEGRADED", GOOD, "DEGRADED"),
        ("DEGRADED", "errors: 3 data errors, use '-v' for a list\n", "ERRORS"),
        ("SUSPENDED", GOOD, "SUSPENDED"),
    ],
)
def test_the_errors_of_a_device_that_stays_are_told_whatever_the_word(
    said: Callable[[str], Said], state: str, end: str, word: str
) -> None:
    found = said(text(*(row.format("FAULTED") for row in ERRING), state=state, end=end))
    assert found.word == word
    assert "  sda: 112 read, 3 write, 98 checksum errors\n" in found.report
    assert "sdb: 12 read" not in found.report


@rows(("count", "told"), [("1.25K", "1.25K slow I/Os"), ("1", "1 slow I/O"), ("0", "")])
def test_slow_io_of_a_device_is_told(said: Callable[[str], Said], count: str, told: str) -> None:
    slow = text(*MIRROR[:-1], f"    sdb ONLINE 0 0 0 {count}").replace("CKSUM", "CKSUM SLOW")
    found = said(slow)
    assert ("slow I/O" in found.report, told in found.report) == (bool(told), True)
    assert found.word == "OK"


ADDITIONAL = "\n\tAdditional devices are known to be part of this pool, though their\n"


def test_spares_and_cache_devices_of_a_pool_to_import_are_shown(
    said: Callable[[str], Said],
) -> None:
    """They have no state there."""
    beside = "\tlogs\n\t  sde       ONLINE\n\tcache\n\t  sdg\n\tspares\n\t  sdf\n"
    found = said(LISTED + beside + ADDITIONAL)
    tops = [
        (top["name"], top["class"], top["state"]) for top in found.sample["topology"]["children"]
    ]
    assert tops[1:] == [
        ("sde", "log", "ONLINE"),
        ("sdg", "cache", None),
        ("sdf", "spare", None),
    ]
    assert found[:3] == ("OK", 0, {"raidz1-0": 1})


def test_a_vdev_that_has_lost_too_many_devices_is_named(said: Callable[[str], Said]) -> None:
    """Its redundancy is 0, like that of a vdev that just cannot lose another device."""
    devices = ("    sda ONLINE", "    sdb UNAVAIL", "    sdc UNAVAIL")
    lost = ("  raidz1-0 UNAVAIL 0 0 0 insufficient replicas", *devices)
    found = said(text(*lost, state="UNAVAIL", end=""))
    assert "  raidz1-0 UNAVAIL (insufficient replicas)\n  sdb UNAVAIL\n" in found.report
    found = said(text("  raidz1-0 DEGRADED", *devices[:2], "    sdc ONLINE", state="DEGRADED"))
    assert "  raidz1-0 DEGRADED" not in found.report.partition("NAME")[0]


OBJECTS = (
    "errors: The following persistent errors have been detected:\n\n"
    "          DATASET  OBJECT  RANGE\n"
    "          5        0       lvl=4294967295 blkid=0\n"
    "          tank     1b3     lvl=0 blkid=12\n"
)
OLD_ENTRIES = ["5 0 lvl=4294967295 blkid=0", "tank 1b3 lvl=0 blkid=12"]


@rows(
    ("end", "word", "code", "errors"),
    [
        ("errors: No known persistent errors\n", "OK", 0, []),
        (OBJECTS, "ERRORS", 10, OLD_ENTRIES),
        (OBJECTS + "\n# zpool status -v tank\n", "ERRORS", 10, OLD_ENTRIES),
        (OBJECTS.partition("          5")[0], "ERRORS", 10, None),
    ],
)
def test_errors_in_the_words_of_early_solaris(
    said: Callable[[str], Said], end: str, word: str, code: int, errors: Sequence[str] | None
) -> None:
    found = said(text(*MIRROR, end=end))
    assert (found.word, found.code, found.sample["errors"]) == (word, code, errors)
    assert "cut off" not in found.report
