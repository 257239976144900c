from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.table import rows
from zconsole.system.printable import clean


@rows(
    ("text", "shown"),
    [
        ("tank", "tank"),
        ("über 日本", "über 日本"),
        ("a\x1b[31mb", "a\\x1b[31mb"),
        ("a\nb\t", "a\\x0ab\\x09"),
        ("a\udcffb", "a\\xffb"),
        ("a\u202eb", "a\\u202eb"),
        ("\x9b2J", "\\x9b2J"),
    ],
)
def test_outside_text_cannot_speak_to_the_terminal(text, shown):
    assert clean(text) == shown


@given(st.text())
def test_cleaned_text_holds_no_control_characters(text):
    assert all(c.isprintable() or c in "\u00a0\u3000" or c.isspace() for c in clean(text))
    assert not any(ord(c) < 32 or 127 <= ord(c) < 160 for c in clean(text))
