"""What is said of a scan: the same words and figures in plain text and on the screen."""

from __future__ import annotations

from datetime import UTC

from tests.factory import frame, mirror_pool, view
from tests.table import rows
from tests.ui.drawn import LOOK, text
from zconsole import units
from zconsole.output.text import status_report
from zconsole.pool.model import Scan
from zconsole.timeline.facts import Fact, result_facts, seconds_taken
from zconsole.ui.panes.scan import scan_lines

T = 1_800_000_000.0


@rows(
    ("function", "word"),
    [("resilver", "resilvered"), ("rebuild", "rebuilt"), ("scrub", "repaired")],
)
@rows("state", ["running", "finished"])
def test_text_and_screen_have_one_word_for_what_a_scan_wrote(function, word, state):
    ended = {"end": T - 60, "duration": 3600.0} if state == "finished" else {}
    scan = Scan(function, state, total_bytes=9 * 2**30, processed_bytes=5 * 2**30, **ended)
    shown = frame(mirror_pool(scan), t=T, scans=(view(scan),))
    assert f"{word} 5G" in status_report(shown, UTC)
    assert f"{word} 5G" in text(scan_lines(shown, LOOK, 120))


def test_only_errors_that_there_are_are_bad():
    def found(errors: int | None) -> list[Fact]:
        return list(result_facts(Scan("scrub", "finished", errors=errors), units.size))

    assert found(None) == []
    assert found(0) == [Fact("errors", "0")]
    assert found(2) == [Fact("errors", "2", "error")]


def test_an_end_without_a_printed_duration_has_the_seconds_since_its_start():
    assert seconds_taken(Scan("scrub", "canceled", start=10.0, end=70.0)) == 60.0
    assert seconds_taken(Scan("scrub", "finished", start=10.0, end=70.0, duration=55.0)) == 55.0
    assert seconds_taken(Scan("scrub", "running", start=10.0)) is None
