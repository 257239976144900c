"""No frame, however odd, crashes a view or overflows a line, at any size."""

from __future__ import annotations

import math

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from tests.records import replace
from tests.ui.frames import NOW, Past
from zconsole.config.settings import UNITS
from zconsole.pool.balance import Balance, VdevBalance
from zconsole.pool.health import Health
from zconsole.pool.model import (
    Activity,
    ErrorCounters,
    Event,
    IoRates,
    Pool,
    Progress,
    Sample,
    SampleFailure,
    Scan,
    Vdev,
    placed,
)
from zconsole.pool.redundancy import Redundancy
from zconsole.timeline.eta.estimate import Estimate
from zconsole.timeline.frame import ActivityView, Frame, ScanView, VdevRow
from zconsole.timeline.scan_rate import Mark, PastRates
from zconsole.ui.display_format import DisplayFormat
from zconsole.ui.panes.balance import balance_lines, balance_title
from zconsole.ui.panes.device_columns import Panel, arrange, common_scale, heading, row_line
from zconsole.ui.panes.device_detail import detail_lines
from zconsole.ui.panes.devices import SORTS, Arrangement, items
from zconsole.ui.panes.events import pane_lines
from zconsole.ui.panes.header import header_lines, notice_line
from zconsole.ui.panes.help import footer_line, help_lines
from zconsole.ui.panes.overview import overview_lines, tab_line
from zconsole.ui.panes.scan import scan_lines
from zconsole.ui.view_state import HeaderStatus
from zconsole.ui.widgets.draw import ROLES, short_names
from zconsole.ui.widgets.graph import ASCII, UNICODE

PHASES = (Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink)


def records(kind, *values, **fields):
    """Like ``st.builds``, which would also draw fields of a named tuple that have defaults."""
    drawn = st.tuples(st.tuples(*values), st.fixed_dictionaries(fields))
    return drawn.map(lambda each: kind(*each[0], **each[1]))


words = st.text(max_size=24) | st.sampled_from(["sda", "\x1b[2J", "x" * 200, "[red]", "磁碟"])
size = st.none() | st.integers(0, 2**63)
share = st.none() | st.floats(-1, 5) | st.just(math.nan)
rate = st.none() | st.floats(0, 1e15)
seconds = st.none() | st.floats(0, 1e10)
when = st.none() | st.floats(0, 1e11)
count = st.none() | st.integers(0, 2**40)
states = st.sampled_from(["ONLINE", "DEGRADED", "FAULTED", "AVAIL", "WEIRD", ""])
queues = st.dictionaries(
    st.sampled_from(["sync_r", "scrub"]),
    st.tuples(st.integers(0, 999), st.integers(0, 99)),
    max_size=2,
)
histograms = st.dictionaries(
    st.sampled_from(["disk_r", "disk_w"]),
    st.lists(st.integers(0, 10**9), max_size=40).map(tuple),
    max_size=2,
)
errors = records(ErrorCounters, count, count, count, count)
progress = st.none() | records(Progress, st.sampled_from(["active", "suspended"]), share=share)
leaf = records(
    Vdev,
    words,
    st.sampled_from(["disk", "file", "hole", "dspare"]),
    state=states,
    note=words,
    errors=errors,
    resilvering=st.booleans(),
    awaiting_resilver=st.booleans(),
    size_bytes=size,
    alloc_bytes=size,
    fragmentation=share,
    ashift=st.none() | st.integers(9, 16),
    queues=queues,
    histograms=histograms,
    trim=progress,
    vclass=st.sampled_from(["normal", "log", "cache", "spare", "special", "dedup"]),
)
groups = records(
    Vdev,
    words,
    st.sampled_from(["mirror", "raidz2", "replacing"]),
    state=states,
    errors=errors,
    children=st.lists(leaf, max_size=4).map(tuple),
)
roots = records(
    Vdev,
    words,
    st.just("root"),
    state=states,
    children=st.lists(groups | leaf, max_size=4).map(tuple),
)
rates = records(IoRates, rate, rate, rate, rate, seconds, share)
estimates = records(Estimate, seconds, seconds, seconds, words)
scans = records(
    Scan,
    st.sampled_from(["resilver", "scrub", "rebuild", "none", "new"]),
    st.sampled_from(["running", "paused", "finished", "canceled", "none"]),
    vdev=st.none() | words,
    start=when,
    end=when,
    total_bytes=size,
    scanned_bytes=size,
    issued_bytes=size,
    skipped_bytes=size,
    processed_bytes=size,
    errors=count,
    zpool_eta=seconds,
    paused_since=when,
    two_stage=st.booleans(),
)
past = st.builds(
    PastRates,
    st.floats(NOW - 1e6, NOW),
    st.sampled_from([1.0, 64.0, 4096.0]),
    st.lists(st.none() | st.floats(0, 1e12), max_size=40).map(tuple),
    st.lists(st.builds(Mark, st.floats(NOW - 1e6, NOW + 1e6), words), max_size=3).map(tuple),
)
views = records(
    ScanView,
    scans,
    words,
    st.sampled_from(["scanning", "issuing", None]),
    share,
    rate,
    rate,
    seconds,
    estimates,
    count,
    seconds,
    st.none() | estimates,
    st.lists(words, max_size=2).map(tuple),
    past,
)
activities = records(
    ActivityView,
    records(
        Activity,
        words,
        st.sampled_from(["running", "finished", "exists"]),
        st.none() | words,
        when,
        when,
        size,
        size,
        share,
        seconds,
        words,
    ),
    rate,
    estimates,
)
vdevs = records(VdevBalance, words, words, size, size, size, share, share, rate, share)
healths = records(
    Health,
    words,
    st.sampled_from(["ok", "notice", "warning", "error"]),
    st.lists(words, max_size=3).map(tuple),
)
lefts = records(Redundancy, words, st.integers(0, 3), st.lists(words, max_size=5).map(tuple))
happenings = records(
    Event,
    st.floats(0, 1e11),
    words,
    words,
    st.sampled_from(["info", "notice", "warning", "error"]),
    st.none() | words,
)


@st.composite
def any_frame(draw):
    """Draw a frame of anything."""
    root = draw(roots)
    rows = tuple(
        VdevRow(p.key, p.depth, p.vdev, draw(rates), draw(st.none() | words), draw(when))
        for p in placed(root)
    )
    pool = Pool(draw(words), draw(st.none() | states), root, error_count=draw(count))
    pool = replace(pool, message=draw(st.none() | words))
    failed = SampleFailure("", NOW + draw(st.floats(0, 1e9)), 0.0, draw(words), draw(states))
    return Frame(
        pool.name,
        Sample(NOW, NOW, "text", False, pool, draw(st.none() | states)),
        draw(st.none() | st.just(failed)),
        draw(healths),
        Past({row.key: row.rates for row in rows}, length=12),
        scans=tuple(draw(st.lists(views, max_size=2))),
        activities=tuple(draw(st.lists(activities, max_size=2))),
        redundancy=tuple(draw(st.lists(lefts, max_size=3))),
        rows=rows,
        balance=Balance(
            draw(share), draw(share), draw(rate), tuple(draw(st.lists(vdevs, max_size=3)))
        ),
        events=tuple(draw(st.lists(happenings, max_size=3))),
        flags=("REPLAY",),
    )


def everything(frame, look, width, height):
    """Return every line that any view would draw of a frame."""
    status = HeaderStatus("host", ("PAUSED",), 1.0, frame.stale_seconds, NOW)
    lines = [*header_lines(frame, status, look, width, height)]
    for compact in (False, True):
        lines += scan_lines(frame, look, width, compact=compact)
    lines += scan_lines(frame, look, width, roomy=True, graph=5, until=NOW)
    lines += scan_lines(frame, look, width, roomy=True, whole=True, graph=9)
    lines += [balance_title(frame.balance, look, width)]
    lines += balance_lines(frame.balance, look, width)
    lines += pane_lines(frame, None, look, width)
    lines += [tab_line([frame, frame], 1, look, width), notice_line(frame, look, width)]
    lines += overview_lines([frame], look, width)
    lines += [*help_lines(look, width), footer_line(look, width)]
    columns = arrange(width - 2, 30, look.number)
    names = short_names([look.text(row.vdev.name) for row in frame.rows], 12, look.glyphs.ellipsis)
    panel = Panel(frame, look, columns, names, common_scale(frame, 12))
    lines.append(heading(panel, "errors"))
    for sort in SORTS:
        lines += [row_line(item, panel) for item in items(frame.rows, Arrangement(sort))]
    for row in frame.rows:
        lines += detail_lines(row, frame, (("fact", "\x1b"),), look, width)
    return lines


@settings(phases=PHASES, suppress_health_check=list(HealthCheck))
@given(
    any_frame(),
    st.integers(54, 250),
    st.integers(1, 80),
    st.sampled_from(UNITS),
    st.booleans(),
)
def test_any_frame_can_be_drawn_at_any_size(frame, width, height, unit, plain):
    look = DisplayFormat(ASCII if plain else UNICODE, unit)
    for line in everything(frame, look, width, height):
        for span in line:
            assert span.role in ROLES
            assert not any(ord(c) < 32 or 0x7F <= ord(c) < 0xA0 for c in span.text)
            assert not plain or span.text.isascii()
        assert sum(cell_len(span.text) for span in line) <= width + 1


@settings(phases=PHASES, suppress_health_check=list(HealthCheck))
@given(any_frame(), st.integers(1, 53))
def test_any_frame_can_be_drawn_in_no_room_at_all(frame, width):
    lines = list(everything(frame, DisplayFormat(), width, 1))
    assert lines
    assert all(span.role in ROLES for line in lines for span in line)
