"""The tests of `zconsole/a/b.py` are in `tests/unit/a/test_b.py`."""

from __future__ import annotations

from pathlib import Path

from tests.unit.source import PACKAGE

HERE = Path(__file__).parent

SOURCE = "reads the source or the documents of the whole package"
ACTIONS = "asks every module that plans actions the same"
COMMANDS = "gives every command the same odd files or streams"
DECODERS = "compares what several decoders make of one pool"
JOB = "follows a job through the command line, its processes and its journal"
SHIPPED = "holds a file that is shipped to the metrics there are"
SESSION = "follows whole scans through decoding, history and what is told of them"
ELSEWHERE = {
    "test_imports.py": SOURCE,
    "test_linear.py": "gives every pattern and every reader of outside text the same long inputs",
    "test_mirror.py": SOURCE,
    "test_opens.py": SOURCE,
    "test_readme.py": SOURCE,
    "test_wheel.py": SOURCE,
    "test_words.py": SOURCE,
    "actions/test_consequences.py": ACTIONS,
    "actions/test_fresh.py": ACTIONS,
    "actions/test_preconditions.py": ACTIONS,
    "actions/test_shared_spares.py": ACTIONS,
    "cli/test_bad_input.py": COMMANDS,
    "cli/test_configuration.py": "is of config.py: what it means for every other command",
    "cli/test_completion_scripts.py": "runs what completion.py makes in the shells it is for",
    "cli/test_dead_mounts.py": COMMANDS,
    "cli/test_large_input.py": COMMANDS,
    "cli/test_reports.py": "is a table of saved outputs and of what is said of them",
    "cli/test_saved_texts.py": "is a table of kinds of saved text and of what is said of them",
    "cli/test_standing_duties.py": "asks every duty that looks into a file the same",
    "cli/test_streams.py": COMMANDS,
    "diagnosis/bottleneck/test_recorded.py": SESSION,
    "swap/test_swaps.py": "plays whole swaps, through all modules of the package",
    "timeline/eta/test_printed.py": SESSION,
    "timeline/test_clock_set.py": SESSION,
    "timeline/test_first_seconds.py": SESSION,
    "timeline/test_cleared_damage.py": SESSION,
    "output/prometheus/test_alert_rules.py": SHIPPED,
    "output/prometheus/test_dashboard.py": SHIPPED,
    "hardware/test_light_duty.py": "is of light.py, the other tests of which fill a file",
    "rebalance/job/test_gone.py": JOB,
    "rebalance/job/test_trust.py": JOB,
    "system/test_no_threads.py": "refuses threads to everything that begins one",
    "system/test_threads.py": "counts the threads that several modules leave behind",
    "zfs/decode/test_agreement.py": DECODERS,
    "zfs/decode/test_captures.py": DECODERS,
    "zfs/decode/test_corpus.py": DECODERS,
    "zfs/decode/test_robust.py": DECODERS,
    "zfs/decode/test_roundtrip.py": DECODERS,
    "zfs/decode/test_text_errors.py": "is of text.py, the other tests of which fill a file",
    "zfs/sources/test_every_source.py": "asks every source the same",
}
"""Tests of several modules, with the reason."""
PARTS = {
    "actions/test_autopilots.py": "actions/backend.py",
    "actions/test_lights.py": "actions/locate.py",
    "actions/test_places.py": "actions/plan.py",
    "diagnosis/device_errors/test_common_causes.py": "diagnosis/device_errors/faults.py",
    "diagnosis/device_errors/test_tracker.py": "diagnosis/device_errors/faults.py",
    "hardware/test_enclosures.py": "hardware/location.py",
    "hardware/test_identity.py": "hardware/location.py",
    "hardware/test_led.py": "hardware/light.py",
    "hardware/test_temperature.py": "hardware/located_source.py",
    "pool/test_damage.py": "pool/health.py",
    "pool/test_replication.py": "pool/redundancy.py",
    "pool/test_spare_problems.py": "pool/health.py",
    "scan_report/test_last_scans.py": "scan_report/store.py",
    "swap/test_undone.py": "swap/report.py",
    "timeline/test_scan_track.py": "timeline/scans.py",
    "timeline/test_datasets.py": "timeline/rates.py",
    "timeline/test_known_change.py": "timeline/scan_rate.py",
    "tunables/test_hold_plan.py": "tunables/pilot.py",
    "tunables/test_presets.py": "tunables/catalog.py",
    "tunables/test_targets.py": "tunables/pilot.py",
    "zfs/decode/test_capacity.py": "zfs/decode/decoder.py",
    "zfs/decode/test_devices.py": "zfs/decode/builders.py",
    "zfs/decode/test_measurements.py": "zfs/decode/decoder.py",
    "zfs/decode/test_text_rows.py": "zfs/decode/text_config.py",
}
"""Tests of a part of a module, whose other tests are in its own file."""


def mirrored(test: Path) -> bool:
    """Return whether a test is named after a module, or after a folder of modules."""
    module = PACKAGE / test.parent / test.name.removeprefix("test_")
    return module.is_file() or module.with_suffix("").is_dir()


def test_every_test_is_found_where_its_module_is():
    tests = {str(path.relative_to(HERE)) for path in HERE.rglob("test_*.py")}
    named = {test for test in tests if mirrored(Path(test))}
    assert tests - named - ELSEWHERE.keys() - PARTS.keys() == set()
    assert named & (ELSEWHERE.keys() | PARTS.keys()) == set()
    assert [module for module in PARTS.values() if not (PACKAGE / module).is_file()] == []
