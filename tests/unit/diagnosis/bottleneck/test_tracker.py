from __future__ import annotations

from zconsole.diagnosis.bottleneck.finding import TOO_LITTLE, Verdict
from zconsole.diagnosis.bottleneck.tracker import SPAN, Hysteresis

MEMORY = Verdict("memory", "scan memory: …", {"walked": 0.4}, 0.9)
NEW = Verdict("new-disk", "the new disk sdx: 98% busy", {"busy": 0.98}, 0.9)
UNCLEAR = Verdict("unclear", "not clear", {"busy": 0.7})


def told(*rounds):
    """What is told last, of (stage, what was found) at every second."""
    steady, last = Hysteresis(), None
    for n, (stage, found) in enumerate(rounds):
        last = steady.push(float(n), stage, found)
    return last


def test_what_limits_for_a_moment_is_not_told():
    issuing = [("issuing", MEMORY)] * 10
    assert told(*issuing, ("issuing", NEW), ("issuing", UNCLEAR)) == MEMORY
    assert told(*issuing, *[("issuing", NEW)] * 20) == NEW


def test_while_it_walks_it_is_told_what_limits_it_when_it_issues():
    found = told(*[("issuing", NEW)] * 10, ("scanning", MEMORY))
    assert found.cause == "new-disk"
    assert found.text == "the new disk sdx: 98% busy, when it issues; now it scans metadata"
    assert told(*[("issuing", MEMORY)] * 10, ("scanning", MEMORY)) == MEMORY


def test_before_any_issuing_was_judged_it_is_what_was_found():
    assert told(("scanning", MEMORY)) == MEMORY
    assert told(("issuing", TOO_LITTLE)) == TOO_LITTLE
    assert told(("issuing", None)) is None


def test_what_was_long_ago_is_forgotten():
    assert told(*[("issuing", MEMORY)] * 200, *[("issuing", NEW)] * int(SPAN)) == NEW
