"""Alert rules for Prometheus: what ``watch`` alerts of, and what only a server can see.

``python -m zconsole.output.prometheus`` writes them to ``share/``.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from zconsole.output.prometheus.table import BY_NAME, Family

DAY = 86400
NAME = re.compile(r"\bzconsole_\w+")
"""How a metric stands in an expression."""
HEAD = """\
# Alert rules for the metrics of `zconsole export`. Made by
# `python -m zconsole.output.prometheus`: change zconsole/output/prometheus/alert_rules.py instead.
groups:
  - name: zconsole
    rules:
"""


class Rule(NamedTuple):
    """An alert rule; ``hold`` is how long its expression holds before it fires."""

    name: str
    expression: str
    hold: str
    severity: str
    summary: str
    next_step: str


def _slipped(window: str, seconds: int) -> str:
    """Whether a scan ends later than it was expected to, so long ago, by a quarter of the wait.

    As with ``watch --slip``, but by at least 15 minutes; and of one scan: the next may take longer.
    """
    eta, start = "zconsole_scan_eta_seconds", "zconsole_scan_start_timestamp_seconds"
    late = f"{eta} + {seconds} - {eta} offset {window}"
    return (
        f"({late} > clamp_min(0.25 * {eta} offset {window}, 900)"
        f" and {start} == {start} offset {window})"
    )


RULES = (
    Rule(
        "ZfsPoolNotOnline",
        'zconsole_pool_state{state!="ONLINE"} == 1',
        "1m",
        "critical",
        "is {{ $labels.state }}",
        "Run zconsole on the machine: it names the device, and what can be done.",
    ),
    Rule(
        "ZfsNotRestored",
        'zconsole_pool_health{word="NOT RESTORED"} == 1',
        "1m",
        "critical",
        "is not restored: its last repair left something behind",
        "Don't remove the replaced device. zconsole status gives the reason.",
    ),
    Rule(
        "ZfsNoRedundancy",
        'zconsole_redundancy_left{vdev=~"(mirror|raidz|draid).*"} == 0',
        "1m",
        "critical",
        "has no redundancy left in {{ $labels.vdev }}",
        "Another failed device loses data. Replace the missing one, or let its resilver finish.",
    ),
    Rule(
        "ZfsDataErrors",
        "zconsole_pool_data_errors > 0",
        "0m",
        "critical",
        "has {{ $value }} data errors",
        "Files are damaged: zpool status -v names them. Restore them, then scrub.",
    ),
    Rule(
        "ZfsDeviceErrors",
        "increase(zconsole_device_errors_total[1h]) > 0",
        "0m",
        "warning",
        "has new {{ $labels.type }} errors on {{ $labels.device }}",
        "Check the cable and the SMART values of the disk; zconsole shows the likely cause.",
    ),
    Rule(
        "ZfsDeviceDisconnects",
        "zconsole_device_flaps > 0",
        "0m",
        "warning",
        "lost {{ $labels.device }}, and got it back, within the hour",
        "Check its cable, port and power.",
    ),
    Rule(
        "ZfsSpareTrouble",
        'zconsole_spare_trouble{trouble!="elsewhere"} == 1',
        "5m",
        "warning",
        "has a spare that would not help: {{ $labels.device }} ({{ $labels.trouble }})",
        "failed: remove it and add another. idle: its device is ONLINE and complete: detach the"
        " spare, or the device if it is to be replaced. small: too small for a vdev that no other"
        " spare fits.",
    ),
    Rule(
        "ZfsScanStalled",
        "zconsole_scan_stalled_seconds >= 600",
        "0m",
        "warning",
        "makes no progress with its {{ $labels.function }}",
        "Run zconsole on the machine: it names what limits the scan.",
    ),
    Rule(
        "ZfsScanRestarted",
        "delta(zconsole_scan_restarts[1h]) > 0",
        "0m",
        "warning",
        "restarted its {{ $labels.function }}",
        "A device that comes and goes restarts a resilver each time: check its cable.",
    ),
    Rule(
        "ZfsEtaSlipped",
        " or ".join((_slipped("1h", 3600), _slipped("6h", 6 * 3600), _slipped("1d", DAY))),
        "15m",
        "warning",
        "will end its {{ $labels.function }} {{ $value | humanizeDuration }} later than expected",
        "Run zconsole on the machine: it names what limits the scan.",
    ),
    Rule(
        "ZfsScrubOverdue",
        "zconsole_scrub_age_seconds and zconsole_scrub_overdue == 1"
        ' unless on (instance, pool) zconsole_scan_active{function="scrub"}',
        "1h",
        "warning",
        "was not scrubbed in full for {{ $value | humanizeDuration }}",
        "Start a scrub, and check the timer that should have done so.",
    ),
    Rule(
        "ZfsLittleFreeSpace",
        "min by (instance, pool) (zconsole_vdev_fill_ratio) > 0.95",
        "15m",
        "warning",
        "is {{ $value | humanizePercentage }} full",
        "Delete snapshots or files, or add a vdev: writes get slow before the pool is full.",
    ),
    Rule(
        "ZfsSampleStale",
        "time() - zconsole_pool_sample_timestamp_seconds > 300 or zconsole_pool_up == 0",
        "2m",
        "critical",
        "gives no samples: it hangs, is not imported, or its exporter hangs",
        "Run zconsole on the machine: it still answers when zpool hangs.",
    ),
    Rule(
        "ZfsMetricsGone",
        "last_over_time(zconsole_pool_up[1d]) unless zconsole_pool_up",
        "10m",
        "warning",
        "has no metrics any more",
        "Check zconsole-export.service on the machine. After a day this alert ends by itself.",
    ),
)


def named(expression: str) -> tuple[Family, ...]:
    """The metrics of an expression, each once. Raises KeyError for one that is not in the table."""
    return tuple(BY_NAME[name] for name in dict.fromkeys(NAME.findall(expression)))


def alert_rules() -> str:
    """The rules as the YAML file that Prometheus loads."""
    return HEAD + "".join(map(_rule, RULES))


def _rule(rule: Rule) -> str:
    about = "".join(f"      # {family.name}: {family.text}\n" for family in named(rule.expression))
    summary = f"{{{{ $labels.pool }}}} on {{{{ $labels.instance }}}} {rule.summary}"
    return (
        f"{about}"
        f"      - alert: {rule.name}\n"
        f"        expr: {_quoted(rule.expression)}\n"
        f"        for: {rule.hold}\n"
        f"        labels:\n"
        f"          severity: {rule.severity}\n"
        f"        annotations:\n"
        f"          summary: {_quoted(summary)}\n"
        f"          description: {_quoted(rule.next_step)}\n"
    )


def _quoted(text: str) -> str:
    """A YAML string: in single quotes only these are special."""
    return "'" + text.replace("'", "''") + "'"
