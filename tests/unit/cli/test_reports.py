"""Outputs from public reports, and more of their kinds, are reported correctly.

Each row is a saved output and the expected report of ``zconsole status --from``, as text, as JSON
and as an exit status. The console's actions on such pools are in ``tests/unit/actions``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.table import rows
from zconsole.__main__ import main
from zconsole.errors import NotUnderstoodError
from zconsole.timeline.frame import Frame
from zconsole.timeline.session import Session

pytestmark = pytest.mark.slow

FIXTURES = Path(__file__).parents[2] / "fixtures"
REPORTS = FIXTURES / "reports"
UNTOLD: Mapping[str, int] = {}


class Case(NamedTuple):
    """The expected report of one file."""

    file: str
    word: str
    code: int
    redundancy: Mapping[str, int] | None = None
    """None: not compared."""
    says: tuple[str, ...] = ()
    """Parts of the printed report."""
    never: tuple[str, ...] = ()
    """Texts that must not be in it."""
    errors: int | None = 0
    no_eta: bool = False
    """Whether neither a scan nor an activity may have an estimate."""
    overdue: bool | None = None


REBOOT = "make sure that no other host has it, then reboot and import it"

CASES = (
    # F1, F3: suspended as multihost writes failed
    Case(
        "08-multihost-suspended-all-online.txt",
        "SUSPENDED",
        11,
        says=(REBOOT, "do not clear"),
        never=("reconnect", "then clear"),
    ),
    Case(
        "55-syslog-prefix-mmp-16078.txt",
        "SUSPENDED",
        11,
        says=(REBOOT, "no ETA: the pool is suspended"),
        never=("reconnect", "9h10m"),
        no_eta=True,
    ),
    Case("F1-json-msgid.json", "SUSPENDED", 11, says=(REBOOT,), never=("reconnect",), no_eta=True),
    Case("F1-libzfs-reason.json", "SUSPENDED", 11, says=(REBOOT,), never=("reconnect",)),
    Case("F1-quoted-mail.txt", "SUSPENDED", 11, says=(REBOOT,), never=("reconnect",)),
    # F2: whatever the state is called
    Case("07-io-failures-suspended-shown-degraded.txt", "SUSPENDED", 11, says=("27105-1 UNAVAIL",)),
    Case(
        "53-mmp-suspended-0.7-online-7296.txt",
        "SUSPENDED",
        11,
        says=("no device is missing", "no other host has it"),
    ),
    # errors counted while nothing can be read are no damage yet
    Case(
        "suspended-with-errors.txt",
        "SUSPENDED",
        11,
        says=("  14 data errors, I/O that could not be done included: scrub once I/O resumes\n",),
        never=("damaged",),
        errors=14,
    ),
    Case(
        "suspended-errors-unlisted.txt",
        "SUSPENDED",
        11,
        says=("  data errors (number unknown), I/O that could not be done included: scrub once",),
        never=("damaged",),
        errors=None,
    ),
    Case("F2-continue-jq.txt", "SUSPENDED", 11, no_eta=True),
    Case("F2-second-pool.txt", "SUSPENDED", 11),
    Case("F2-io-errors-json.json", "SUSPENDED", 11, says=("reconnect the device, then clear",)),
    # F4, F5: sequential rebuilds of a dRAID
    Case(
        "36-draid-slow-column-12877.txt",
        "OK",
        0,
        {"draid3:8d:24c:2s-0": 3},
        says=("ETA 1h03m",),
        never=("past 100", "no redundancy"),
    ),
    Case("F5-rebuild-of-a-lost-disk.txt", "DEGRADED", 10, {"draid2:4d:9c:2s-0": 1}),
    Case("F5-rebuild-not-marked-yet.txt", "DEGRADED", 10, {"draid2:4d:9c:2s-0": 1}),
    Case("F5-rebuilt-onto-a-spare.txt", "NOT RESTORED", 10, {"draid2:4d:9c:2s-0": 2}),
    # F6: JSON without states
    Case("20-json-draid-no-state-18431.json", "OK", 0, {"draid2:4d:8c:1s-0": 2}),
    Case("F6-json-one-lost.json", "DEGRADED", 10, {"draid2:4d:8c:1s-0": 1}, says=("sdc FAULTED",)),
    Case("F6-json-short-names.json", "OK", 0, {"raidz1-0": 1}),
    # F7: what a finished resilver left behind
    Case("60-resilver-finished-ghost-replacing-5007.txt", "NOT RESTORED", 10, {"raidz2-0": 0}),
    Case("F7-ghost-under-a-scrub.txt", "NOT RESTORED", 10, {"raidz1-0": 0}),
    Case("F7-spare-after-errors.txt", "NOT RESTORED", 10, {"raidz2-0": 1}),
    Case("F7-beside-a-checkpoint.txt", "NOT RESTORED", 10, {"raidz1-0": 1}),
    # F8: lists of damaged files
    Case(
        "44-errors-list-then-dedup-table.txt",
        "ERRORS",
        10,
        says=("data errors: 2",),
        never=("refcnt",),
        errors=2,
    ),
    Case("F8-list-then-talk.txt", "ERRORS", 10, errors=2),
    Case("F8-list-without-blanks.txt", "ERRORS", 10, {"raidz1-0": 0}, ("ada1 UNAVAIL",), (), 2),
    # F9: rows below a name that does not belong to a group
    Case("57-unnamed-top-vdev-57.txt", "DEGRADED", 10, UNTOLD, says=("loop2 UNAVAIL",)),
    Case("F9-guids.txt", "DEGRADED", 10, UNTOLD, says=("9482223333344444555 FAULTED",)),
    # F10: no config: line
    Case(
        "22-no-config-line-nickb.txt", "DEGRADED", 10, {"raidz2-0": 1}, ("sdd UNAVAIL",), (), None
    ),
    # F11: every device that is not ONLINE is named
    Case("62-offline-still-resilvering-6570.txt", "DEGRADED", 10, says=("sdd OFFLINE",)),
    # F12: nothing to estimate by
    Case("25-resilver-1-scanned-at-1-per-s.txt", "DEGRADED", 10, never=("9892",), no_eta=True),
    Case("59-resilver-estimate-wrong-11779.txt", "OK", 0, never=("ETA 7m",), no_eta=True),
    Case("F12-five-seconds.txt", "DEGRADED", 10, no_eta=True),
    Case("F12-stands-still.txt", "DEGRADED", 10, no_eta=True),
    # F13: past what was allocated
    Case("01-expand-over-100.txt", "OK", 0, says=("past 100 %",), never=("ETA 0",), no_eta=True),
    # F14: both spares, and nothing to detach that cannot be
    Case(
        "05-two-draid-spares-one-vdev.txt",
        "DEGRADED",
        10,
        says=("draid2-0-0", "draid2-0-1"),
        never=("ONLINE and complete", "detach the spare, or replacing-0", "or replacing-0"),
    ),
    # F15: a scrub after a rebuild that repaired something
    Case("13-draid-scan-lines-18319.txt", "NOT RESTORED", 10, says=("repaired 2K: scrub again",)),
    # F16: zpool's own doubt
    Case(
        "49-scrub-repaired-no-counters-8205.txt",
        "ATTENTION",
        0,
        says=("  One or more devices has experienced an unrecoverable error.",),
    ),
    Case("F16-scrub-with-errors.txt", "ATTENTION", 0, says=("the last scrub ended with 3 errors",)),
    Case(
        "F16-missing-label.txt", "ATTENTION", 0, says=("  One or more devices could not be used",)
    ),
    # F17: a list of pools to import
    Case("47-import-listing-41.txt", "UNAVAIL", 11, never=("last full scrub",), errors=None),
    Case(
        "F17-quoted-3035.txt",
        "UNAVAIL",
        11,
        {f"vault{n}": 0 for n in (1, 2, 3, 4)},
        says=("missing device",),
        errors=None,
    ),
    Case("F17-two-of-one-name.txt", "FAULTED", 11, never=("last full scrub",), errors=None),
    # feature requests
    Case("64-awaiting-only-partial.txt", "DEGRADED", 10, {"raidz2-0": 0}, ("ada2", "another one")),
    Case("15-resilver-nothing-to-fill-13679.txt", "OK", 0, says=("no device is shown that lacks",)),
    Case("39-status-e-partial-tree-16979.txt", "DEGRADED", 10, UNTOLD, says=("U0/old FAULTED",)),
    Case(
        "42-paused-zero-17440.txt",
        "OK",
        0,
        says=("paused since Sun 08 Jun 2025 17:00, started Sun 08 Jun 2025 12:43",),
        no_eta=True,
    ),
    Case("F-wish-errors-only-mirror.txt", "DEGRADED", 10, UNTOLD),
    # errors of no single device: zpool has no sentence about them
    Case("counts-of-no-device-8480.txt", "ATTENTION", 0, says=("raidz1-0: 12 checksum errors",)),
    # no redundancy, together with errors of devices, and without a running repair
    Case(
        "errors-beside-a-resilver.txt",
        "ATTENTION",
        0,
        {"raidz1-0": 0},
        says=("  raidz1-0: no redundancy until the resilver ends\n  sda: 12 checksum errors\n",),
    ),
    Case(
        "awaiting-and-no-scan.txt",
        "ATTENTION",
        0,
        {"raidz1-0": 0},
        says=("  raidz1-0: no redundancy left\n",),
    ),
    # a row of the pool that is worse than its state: line
    Case("root-row-worse.txt", "DEGRADED", 10),
    # zpool refers to a web page only if something is wrong
    Case("see-without-status-2273.txt", "ATTENTION", 0, says=("msg/ZFS-8000-EY",)),
    Case("json-msgid-alone.json", "ATTENTION", 0, says=("ZFS-8000-9P",)),
    # a new device that is gone
    Case(
        "newcomer-lost-4070.txt",
        "NOT RESTORED",
        10,
        {"raidz2-0": 2},
        says=(
            "fills 127286639182292558 (UNAVAIL): bring it back or detach it",
            "keep the old disk",
        ),
        never=("resilver again",),
    ),
    # which disk must stay, and of which vdev
    Case(
        "spare-and-scrub-17472.txt",
        "UNAVAIL",
        11,
        {"mirror-0": 0, "mirror-1": 1},
        says=("mirror-0 0: do not remove b, c; mirror-1 1",),
    ),
    # several spares of one disk
    Case("spares-of-one-disk-13275.txt", "DEGRADED", 10, {"raidz3-8": 1}),
    # one spare that is shown in two places
    Case(
        "one-spare-in-two-places.txt",
        "NOT RESTORED",
        10,
        {"raidz1-0": 0, "raidz1-1": 0, "raidz1-2": 1},
        says=("spare sdz is attached in several places and counts in none",),
        never=("a spare stands in",),
    ),
    # omissions of text output
    Case(
        "cut-before-the-table.txt",
        "UNKNOWN",
        5,
        says=("the text ends before its table",),
        errors=None,
    ),
    Case("cut-name-only.txt", "UNKNOWN", 5, says=("the text ends before its state",), errors=None),
    Case(
        "cut-before-errors.txt",
        "UNKNOWN",
        5,
        says=("the text ends before its errors",),
        errors=None,
    ),
    Case(
        "errors-line-cut.txt",
        "UNKNOWN",
        5,
        says=("its errors: line is cut off",),
        errors=None,
    ),
    Case(
        "scan-line-of-no-known-form.txt",
        "UNKNOWN",
        5,
        says=("its scan: line is cut off, or of no known form",),
        never=("no scan", "never"),
    ),
    Case(
        "one-scan-line-of-two-unknown.txt",
        "UNKNOWN",
        5,
        says=("its scan: line is cut off, or of no known form",),
    ),
    Case(
        "cut-at-both-ends.txt",
        "UNKNOWN",
        5,
        says=("the text ends before its errors",),
        errors=None,
    ),
    Case("json-without-error-count.json", "UNKNOWN", 5, says=("no error_count",), errors=None),
    Case("cut-json.json", "UNKNOWN", 5, says=("no tree",), errors=None),
)


def told(file: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, str, list[dict[str, Any]]]:
    """Return the exit status, the printed report and the JSON of a saved output."""
    code = main(["status", "--from", str(file), "--exit-status"])
    text = capsys.readouterr().out
    main(["status", "--from", str(file), "--json"])
    return code, text, [json.loads(line) for line in capsys.readouterr().out.splitlines()]


@rows("case", CASES)
def test_what_is_said_of_a_saved_output(
    case: Case, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "UTC")
    code, text, samples = told(REPORTS / case.file, capsys)
    worst = samples[-1]
    assert (worst["health"]["word"], code) == (case.word, case.code)
    assert [part for part in case.says if part not in text] == []
    assert [part for part in case.never if part in text] == []
    assert worst["error_count"] == case.errors
    assert worst["scrub_overdue"] is None, "only a live pool is judged"
    if case.redundancy is not None:
        assert worst["redundancy"] == case.redundancy
    if case.no_eta:
        works = [*worst["scans"], *worst["activities"]]
        assert [work["eta_seconds"] for work in works] == [None] * len(works)
        assert all(scan["eta_reason"] for scan in worst["scans"])


def config() -> dict[str, Any]:
    """Return the kernel's config of a pool that isn't suspended."""
    found: dict[str, Any] = json.loads((REPORTS / "F1-libzfs-reason.json").read_text())
    return {key: value for key, value in found.items() if not key.startswith("suspended")}


def document() -> tuple[dict[str, Any], dict[str, Any]]:
    """Return a document of ``zpool status -j``, and its only pool."""
    found = json.loads((REPORTS / "20-json-draid-no-state-18431.json").read_text())
    (pool,) = found["pools"].values()
    return found, pool


def recorded(place: Path, form: str, raw: object) -> Path:
    """Return a recording of one sample in this form."""
    file = place / "recording.jsonl"
    file.write_text(json.dumps({"t": 1.8e9, form: raw}) + "\n")
    return file


NEW_SCANS: Mapping[str, tuple[Any, dict[str, Any]]] = {
    "function": ([9, 1], {"function": "WALK", "state": "SCANNING"}),
    "state": ([1, 9], {"function": "SCRUB", "state": "WALKING"}),
    "no state": ([1, 9], {"function": "SCRUB"}),
    "no function": ([9, 1], {"state": "SCANNING"}),
    "errorscrub": ([*[0] * 16, 9, 1_800_000_000], {"err_scrub_state": "WALKING"}),
    "rebuild": ([], {"rebuild_stats": {"raidz1-0": {"state": "WALKING"}}}),
}
"""Counters of the kernel, and zpool's output, for scans that no release has yet."""


@rows(("form", "new"), [("text", ""), *product(("status", "libzfs"), NEW_SCANS)])
def test_a_scan_of_no_known_kind_or_state_is_not_told_as_none(
    form: str, new: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    counters, words = NEW_SCANS.get(new, ([], {}))
    kernel, (printed, pool) = config(), document()
    kernel["vdev_tree"]["scan_stats"] = [*counters, *[0] * (23 - len(counters))]
    if new == "rebuild":
        kernel["vdev_tree"]["children"][0]["org.openzfs:rebuild_stats"] = [9, *[0] * 12]
    pool["scan_stats"] = words
    text = (REPORTS / "scan-line-of-no-known-form.txt").read_text()
    file = recorded(tmp_path, form, {"text": text, "status": printed, "libzfs": kernel}[form])
    code, shown, (sample,) = told(file, capsys)
    assert (sample["health"]["word"], code) == ("UNKNOWN", 5)
    unknown = {"function": None, "state": None, "eta_reason": "scan unknown"}
    assert sample["scan"] == {**sample["scan"], **unknown}
    assert (sample["scans"], "never" in shown) == ([], False)
    main(["replay", str(file), "--speed=9"])
    assert "  scan unknown  " in capsys.readouterr().out


@rows("form", ["text", "status", "libzfs"])
def test_nothing_is_said_of_the_redundancy_of_a_new_kind_of_vdev(
    form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (REPORTS / "one-scan-line-of-two-unknown.txt").read_text()
    kernel, (printed, pool) = config(), document()
    kernel["vdev_tree"]["children"][0] |= {"type": "anyraid"}
    (root,) = pool["vdevs"].values()
    (top,) = root["vdevs"].values()
    top |= {"name": "anyraid-0", "vdev_type": "anyraid", "state": "ONLINE"}
    raw = {"text": text.replace("mirror-0 ", "anyraid-0"), "status": printed, "libzfs": kernel}
    _, shown, (sample,) = told(recorded(tmp_path, form, raw[form]), capsys)
    assert "anyraid-0" not in sample["redundancy"]
    assert "redundancy unknown: anyraid-0 (not all of it is shown)" in shown


@rows("line", ["remove", "checkpoint", "expand", "condense"])
def test_work_of_no_known_form_makes_a_text_unknown(
    line: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "status.txt"
    whole = (REPORTS / "scan-line-of-no-known-form.txt").read_text().partition("config:")
    scan = "  scan: none requested"
    file.write_text(f"  pool: tank\n state: ONLINE\n{scan}\n{line}: new work\nconfig:{whole[2]}")
    code, shown, (sample,) = told(file, capsys)
    assert (sample["health"]["word"], code) == ("UNKNOWN", 5)
    assert f"its {line}: line is cut off, or of no known form" in shown
    assert sample["scan"]["function"] == "none"


@rows("form", ["status", "libzfs"])
@rows("key", ["removal_stats", "raidz_expand_stats", "checkpoint_stats"])
def test_work_in_no_known_state_makes_a_pool_unknown(
    key: str, form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kernel, (printed, pool) = config(), document()
    kernel["vdev_tree"] |= {"scan_stats": [], key: [9, *[0] * 6]}
    pool |= {"scan_stats": {}, key: {"state": "WALKING"}}
    file = recorded(tmp_path, form, {"status": printed, "libzfs": kernel}[form])
    code, shown, (sample,) = told(file, capsys)
    assert (sample["health"]["word"], code) == ("UNKNOWN", 5)
    assert "its removal, expansion or checkpoint is in no known state" in shown


def test_a_scrub_in_progress_that_is_called_paused_is_paused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (REPORTS / "scan-line-of-no-known-form.txt").read_text()
    new, paused = "something new in progress since", "scrub in progress since"
    file = tmp_path / "status.txt"
    file.write_text(text.replace(new, paused).replace("46 2025", "46 2025 (paused)"))
    _, shown, (sample,) = told(file, capsys)
    scan = sample["scan"]
    assert (scan["state"], scan["eta_reason"], scan["start"]) == ("paused", "paused", 1754324686)
    assert "scrub: paused" in shown


def test_a_balance_without_sizes_says_what_it_needs(capsys: pytest.CaptureFixture[str]) -> None:
    _, text, _ = told(REPORTS / "08-multihost-suspended-all-online.txt", capsys)
    assert "balance: needs zpool list -v" in text
    assert "...." not in text


SAVED = sorted(
    [
        *(path for path in REPORTS.glob("*.txt") if path.name[0].isdigit()),
        *FIXTURES.glob("captures/*/*/status*.txt"),
        *FIXTURES.glob("corpus/status/*.txt"),
    ]
)
BEFORE_A_TABLE = {"024-scrub-in-progress-no-config.txt"}
"""Outputs saved with only the lines above the table."""


def _read(text: str) -> list[Frame]:
    try:
        return list(Session(zone=UTC).advance(({"t": 1.8e9, "undated": True, "text": text},)))
    except NotUnderstoodError:
        return []


def test_a_text_cut_after_any_line_is_right_or_unknown() -> None:
    wrong = []
    for path in SAVED:
        lines = path.read_text(errors="surrogateescape").splitlines(keepends=True)
        whole = {frame.pool: frame for frame in _read("".join(lines))}
        if path.name not in BEFORE_A_TABLE:
            unknown = [frame.pool for frame in whole.values() if frame.health.word == "UNKNOWN"]
            wrong += [f"{path}: complete, but {pool} is UNKNOWN" for pool in unknown]
        for end in range(1, len(lines)):
            cut = f"{path} to line {end}"
            for frame in _read("".join(lines[:end])):
                wrong += [f"{cut}: {why}" for why in _better(frame, whole)]
    assert wrong == []


def test_a_text_that_begins_at_any_line_is_never_ok_where_the_whole_is_not() -> None:
    wrong = []
    for path in SAVED:
        lines = path.read_text(errors="surrogateescape").splitlines(keepends=True)
        whole = _read("".join(lines))
        if len(whole) != 1 or whole[0].health.word == "OK":
            continue
        for begin in range(1, len(lines)):
            words = [frame.health.word for frame in _read("".join(lines[begin:]))]
            wrong += [f"{path} from line {begin}" for word in words if word == "OK"]
    assert wrong == []


@rows("file", [REPORTS / "spares-of-one-disk-13275.txt", REPORTS / "01-expand-over-100.txt"])
def test_a_text_cut_within_a_line_is_right_or_unknown(file: Path) -> None:
    text = file.read_text()
    whole = {frame.pool: frame for frame in _read(text)}
    cuts = ((end, frame) for end in range(1, len(text), 7) for frame in _read(text[:end]))
    assert [(end, why) for end, frame in cuts for why in _better(frame, whole)] == []


def _better(frame: Frame, whole: Mapping[str, Frame]) -> list[str]:
    """Return why a truncated text makes a pool look better than the whole text."""
    full = whole.get(frame.pool)
    if full is None or frame.health.word == "UNKNOWN":
        return []
    left = {entry.vdev: entry.left for entry in full.redundancy}
    found = [
        f"{entry.vdev} has {entry.left} left, not {left[entry.vdev]}"
        for entry in frame.redundancy
        if entry.left > left.get(entry.vdev, entry.left)
    ]
    if (frame.health.word == "OK") != (full.health.word == "OK"):
        found.append(f"{frame.health.word}, not {full.health.word}")
    return found


def test_a_recording_of_a_pool_suspended_by_multihost(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The kernel gives the reason (ZPOOL_CONFIG_SUSPENDED_REASON) during a scrub."""
    config = json.loads((REPORTS / "F1-libzfs-reason.json").read_text())
    half, whole = 1 << 39, 1 << 40
    begun = 1_795_160_000
    scrub = [1, 1, begun, 0, whole, half, 0, 0, 0, half, begun, 0, 0, half, half, *[0] * 7]
    config["vdev_tree"]["scan_stats"] = scrub
    lines = ({"t": begun + 6000.0 + n, "pool": "tank", "libzfs": config} for n in range(4))
    recording = tmp_path / "recording.jsonl"
    recording.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    assert main(["replay", str(recording), "--json"]) == 0
    samples = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert len(samples) == 4
    for sample in samples:
        assert sample["health"]["word"] == "SUSPENDED"
        assert any(REBOOT in reason for reason in sample["health"]["reasons"])
        assert (sample["scan"]["eta_seconds"], sample["scan"]["issue_rate"]) == (None, None)
