"""The Grafana dashboard: one panel or more for every metric of the table.

What a panel shows is told by the table: its unit by the end of the name, its legend by the labels.
``python -m zconsole.output.prometheus`` writes it to ``share/``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from zconsole.output.prometheus.table import BY_NAME, Family

Panel = dict[str, Any]

SECTIONS: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "Pools": (
        ("pool_health",),
        ("pool_state",),
        ("redundancy_left",),
        ("pool_data_errors",),
        ("pool_up",),
        ("pool_sample_timestamp_seconds",),
        ("pool_stale_seconds",),
    ),
    "Last scans": (
        ("last_scan_result",),
        ("last_scan_end_timestamp_seconds",),
        ("last_scrub_end_timestamp_seconds",),
        ("scrub_age_seconds",),
        ("scrub_overdue",),
        ("last_scan_duration_seconds",),
        ("last_scan_errors",),
    ),
    "Running scan": (
        ("scan_stage",),
        ("scan_limit",),
        ("scan_start_timestamp_seconds",),
        ("scan_done_ratio",),
        ("scan_eta_seconds", "scan_eta_low_seconds", "scan_eta_high_seconds"),
        (
            "scan_issue_bytes_per_second",
            "scan_scan_bytes_per_second",
            "scan_ceiling_bytes_per_second",
        ),
        ("scan_active",),
        ("scan_stalled_seconds",),
        ("scan_restarts",),
        ("scan_errors",),
    ),
    "Devices": (
        ("device_read_bytes_per_second",),
        ("device_write_bytes_per_second",),
        ("device_wait_seconds",),
        ("device_busy_ratio",),
        ("device_errors_total",),
        ("device_new_errors", "device_flaps", "spare_trouble"),
    ),
    "Balance": (
        ("vdev_fill_ratio",),
        ("vdev_new_write_ratio",),
        ("balance_spread_ratio",),
        ("balance_imbalance_bytes",),
    ),
    "Rebalance": (
        ("rebalance_job",),
        ("rebalance_done_bytes", "rebalance_total_bytes"),
        ("rebalance_bytes_per_second",),
    ),
}
"""Title of a section to its panels, each of metrics without the ``zconsole_`` of their names."""

UNITS = (
    ("_timestamp_seconds", "dateTimeFromNow"),
    ("_bytes_per_second", "Bps"),
    ("_bytes", "bytes"),
    ("_seconds", "s"),
    ("_ratio", "percentunit"),
)
"""End of a name to Grafana's unit."""
COLUMNS, WIDTH, HEIGHT = 24, 8, 7
"""Of Grafana's grid, and of a panel on it."""
SOURCE = {"type": "prometheus", "uid": "${datasource}"}


def dashboard() -> str:
    """The dashboard as the JSON that Grafana imports."""
    document = {
        "uid": "zconsole",
        "title": "ZFS pools (zconsole)",
        "tags": ["zfs"],
        "schemaVersion": 36,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "templating": {"list": list(_variables())},
        "panels": [{"id": number, **panel} for number, panel in enumerate(_panels(), 1)],
    }
    return json.dumps(document, indent=1) + "\n"


def _variables() -> Iterator[Panel]:
    yield {"name": "datasource", "label": "Source", "type": "datasource", "query": "prometheus"}
    for name, label, of in (
        ("instance", "Machine", ""),
        ("pool", "Pool", '{instance=~"$instance"}'),
    ):
        yield {
            "name": name,
            "label": label,
            "type": "query",
            "datasource": SOURCE,
            "query": f"label_values(zconsole_pool_up{of}, {name})",
            "refresh": 2,
            "includeAll": True,
            "multi": True,
            "current": {"text": "All", "value": "$__all"},
        }


def _panels() -> Iterator[Panel]:
    y = 0
    for title, panels in SECTIONS.items():
        yield {"type": "row", "title": title, "gridPos": _place(0, y, COLUMNS, 1)}
        y += 1
        for at, names in enumerate(panels):
            row, column = divmod(at, COLUMNS // WIDTH)
            place = _place(column * WIDTH, y + row * HEIGHT, WIDTH, HEIGHT)
            yield _panel(tuple(BY_NAME[f"zconsole_{name}"] for name in names), place)
        y += -(-len(panels) // (COLUMNS // WIDTH)) * HEIGHT


def _place(x: int, y: int, width: int, height: int) -> Mapping[str, int]:
    return {"x": x, "y": y, "w": width, "h": height}


def _panel(families: tuple[Family, ...], place: Mapping[str, int]) -> Panel:
    """A tile for every state or time; else a graph."""
    first = families[0]
    title = first.text.removeprefix("1 for ").removeprefix("the current word of ")
    tiles = first.names_state or first.name.endswith("_timestamp_seconds")
    mode = "name" if first.names_state else "value_and_name"
    return {
        "type": "stat" if tiles else "timeseries",
        "title": title[:1].upper() + title[1:],
        "description": "\n".join(f"{each.name}: {each.text}" for each in families),
        "datasource": SOURCE,
        "gridPos": place,
        "fieldConfig": {"defaults": {"unit": _unit(first)}, "overrides": []},
        "options": {"textMode": mode, "graphMode": "none"} if tiles else {},
        "targets": [
            _target(each, several=len(families) > 1, instant=tiles, ref=chr(ord("A") + at))
            for at, each in enumerate(families)
        ],
    }


def _unit(family: Family) -> str:
    return next((unit for end, unit in UNITS if family.name.endswith(end)), "none")


def _target(family: Family, *, several: bool, instant: bool, ref: str) -> Panel:
    legend = " ".join(f"{{{{{label}}}}}" for label in family.labels)
    return {
        "refId": ref,
        "datasource": SOURCE,
        "expr": _query(family),
        "instant": instant,
        "legendFormat": f"{family.text}: {legend}" if several else legend,
    }


def _query(family: Family) -> str:
    """Of the chosen machines and pools; a date is in milliseconds, a counter is its growth."""
    chosen = 'instance=~"$instance"'
    if "pool" in family.labels:
        chosen += ', pool=~"$pool"'
    query = f"{family.name}{{{chosen}}}"
    if family.name.endswith("_timestamp_seconds"):
        return f"{query} * 1000"
    return f"increase({query}[1h])" if family.counts else query
