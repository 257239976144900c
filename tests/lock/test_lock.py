"""A short draw from every part of the lock; `python -m tests.lock check` runs everything."""

import pytest

from tests.lock import kept, meant
from tests.lock.case import RAISED
from tests.lock.lock import PARTS, cases, check, dearest_first, drawn, seen


@pytest.mark.parametrize("part", PARTS)
def test_a_draw_of_the_lock_sees_what_is_kept(part):
    names = dearest_first(drawn(cases(part)))
    texts, old = seen(part, names, 1), kept.read(part)  # more processes would import all again
    assert texts
    assert check(part, texts, {name: old[name] for name in names if name in old}).failed == []


def test_a_line_lets_a_case_differ_and_never_get_lost(monkeypatch):
    monkeypatch.setattr(meant, "read", lambda: (meant.Meant("data", "*", 44, "why"),))
    old = dict.fromkeys(("gone", "other", "raised", "same"), "seen\n")
    texts = {"other": "else\n", "raised": f"{RAISED}ValueError\n", "same": "seen\n"}
    found = check("data", texts, old, say=lambda _: None)
    assert (found.failed, found.meant) == (["gone", "raised"], 1)


def test_what_is_kept_stays_small():
    assert kept.size() <= kept.LIMIT
