"""Outputs from public reports, and more of their kinds, are reported correctly.

The lock has the whole report of ``zconsole status --from`` for each file; here is what must be true
of it. The console's actions on such pools are in ``tests/unit/actions``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from tests.table import rows
from zconsole.__main__ import main
from zconsole.errors import NotUnderstoodError
from zconsole.timeline.frame import Frame
from zconsole.timeline.session import Session

pytestmark = pytest.mark.slow

FIXTURES = Path(__file__).parents[2] / "fixtures"
REPORTS = FIXTURES / "reports"
REBOOT = "make sure that no other host has it, then reboot and import it"

CODES = {
    **dict.fromkeys(("OK", "ATTENTION"), 0),
    **dict.fromkeys(("DEGRADED", "NOT RESTORED", "ERRORS"), 10),
    **dict.fromkeys(("SUSPENDED", "UNAVAIL", "FAULTED"), 11),
    "UNKNOWN": 5,
}
"""Exit status of each word for a pool's health."""
HEALTH = {
    "SUSPENDED": "08-multihost-suspended-all-online.txt",
    "OK": "36-draid-slow-column-12877.txt",
    "DEGRADED": "F5-rebuild-of-a-lost-disk.txt",
    "NOT RESTORED": "F5-rebuilt-onto-a-spare.txt",
    "ERRORS": "44-errors-list-then-dedup-table.txt",
    "ATTENTION": "49-scrub-repaired-no-counters-8205.txt",
    "UNAVAIL": "47-import-listing-41.txt",
    "FAULTED": "F17-two-of-one-name.txt",
    "UNKNOWN": "cut-before-the-table.txt",
}
"""A file by the word for the worst pool in it; the lock has the report of every file."""


def told(file: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, str, list[dict[str, Any]]]:
    """Return the exit status, the printed report and the JSON of a saved output."""
    code = main(["status", "--from", str(file), "--exit-status"])
    text = capsys.readouterr().out
    main(["status", "--from", str(file), "--json"])
    return code, text, [json.loads(line) for line in capsys.readouterr().out.splitlines()]


@rows(("word", "file"), [*HEALTH.items()])
def test_what_is_said_of_a_saved_output(
    word: str, file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, samples = told(REPORTS / file, capsys)
    assert (samples[-1]["health"]["word"], code) == (word, CODES[word])
    assert samples[-1]["scrub_overdue"] is None, "only a live pool is judged"


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
    assert (code, sample["scan"]["function"]) == (5, "none")
    assert f"its {line}: line is cut off, or of no known form" in shown


@rows("form", ["status", "libzfs"])
@rows("key", ["removal_stats", "raidz_expand_stats", "checkpoint_stats"])
def test_work_in_no_known_state_makes_a_pool_unknown(
    key: str, form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kernel, (printed, pool) = config(), document()
    kernel["vdev_tree"] |= {"scan_stats": [], key: [9, *[0] * 6]}
    pool |= {"scan_stats": {}, key: {"state": "WALKING"}}
    file = recorded(tmp_path, form, {"status": printed, "libzfs": kernel}[form])
    code, shown, _ = told(file, capsys)
    assert (code, "removal, expansion or checkpoint is in no known state" in shown) == (5, True)


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
