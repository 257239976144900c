"""Keys and pastes from the bytes of a terminal, as read by our parser and by textual's."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual import events
from textual._xterm_parser import XTermParser
from textual.message import Message

from tests.table import rows
from zconsole.ui.terminal_driver import KeyParser

FIXED = {
    "Esc and a key": ("\x1bq", ["alt+q"], ["escape", "q"]),
    "Esc and Enter": ("\x1b\r", ["enter"], ["escape", "enter"]),
    "Esc and Tab": ("\x1b\t", ["shift+tab"], ["escape", "tab"]),
    "Esc and a bracket": ("\x1b[", ["["], ["escape", "["]),
    "a paste with Esc in it": ("\x1b[200~S\x1bq\x1b[201~", ["^", "q", "S"], ["Sq"]),
    "a paste that was cut off": ("\x1b[200~S", [], ["S"]),
    "a color, answered late": ("\x1b]11;rgb:f/S\x07", [*"]11;rgb:f/S", "ctrl+g"], []),
    "a name, answered late": ("\x1bP>|S\x1b\\", [*"^P>|S\\"], []),
    "its kind, answered late": ("\x1b[?64;1c", [*"[?64;1c"], []),
    "a mouse that was cut off": ("\x1b[<35;1", [*"[<35;1"], []),
    "no number of a character": ("\x1b[1114112;1u", ValueError, []),
    "half of a character": ("\x1b[55296u", ["\ud800"], []),
    "no size of a terminal": (f"\x1b[48;{2**64};1;1;1t", ["Resize"], []),
}
"""The input, textual's own result and ours, for keys, pastes and other sequences."""


def read(messages: Iterable[Message]) -> list[str]:
    """Return what was typed or pasted, or the kind of any other message."""
    found = []
    for message in messages:
        if isinstance(message, events.Key):
            named = message.key in ("escape", "enter", "tab") or "+" in message.key
            found.append(message.key if named else message.character or "")
        elif isinstance(message, events.Paste):
            found.append(message.text)
        else:
            found.append(type(message).__name__)
    return found


@rows("what", FIXED)
def test_each_fix_is_needed_and_works(what):
    """If textual's own parser gives our result, the fix can be removed."""
    came, by_textual, by_us = FIXED[what]
    ours = KeyParser()
    assert read([*ours.feed(came, 0.0), *ours.feed("", 9.0)]) == by_us
    parser = XTermParser()
    if isinstance(by_textual, type):
        with pytest.raises(by_textual):
            list(parser.feed(came))
        return
    found = list(parser.feed(came))
    if parser._timeout_time is not None:
        parser._timeout_time = 0.0
        found += parser.tick()
    assert read(found) == by_textual
    assert by_textual != by_us


def keys(*packets: str) -> list[str]:
    """Return the keys in these packets, with time for a lone Esc after each."""
    parser = KeyParser()
    found = []
    for now, packet in enumerate(packets):
        found += [*parser.feed(packet, 10.0 * now), *parser.feed("", 10.0 * now + 9.0)]
    return [event.key for event in found if isinstance(event, events.Key)]


@rows(
    ("packet", "read"),
    [
        ("\x1b", ["escape"]),
        ("\x1bq", ["escape", "q"]),
        ("\x1bS", ["escape", "S"]),
        ("\x1b\r", ["escape", "enter"]),
        ("\x1b\t", ["escape", "tab"]),
        ("\x1b?", ["escape", "question_mark"]),
        ("\x1b/", ["escape", "slash"]),
        ("\x1b1", ["escape", "1"]),
        ("\x1bf", ["escape", "f"]),
        ("\x1b[", ["escape", "left_square_bracket"]),
        ("\x1b]", ["escape", "right_square_bracket"]),
        ("\x1b]j", ["escape", "right_square_bracket", "j"]),
        ("\x1bO", ["escape", "O"]),
        ("\x1b\x1b", ["escape", "escape"]),
        ("\x1b\x1bq", ["escape", "escape", "q"]),
        ("\x1bjjj\x1bq", ["escape", "j", "j", "j", "escape", "q"]),
        ("\x1bT\x1b[B\r", ["escape", "T", "down", "enter"]),
        ("\x1b\x03", ["escape", "ctrl+c"]),
        ("\x1b[A\x1b[1;5C\x1bOP\x1b[Z", ["up", "ctrl+right", "f1", "shift+tab"]),
        ("\x1b[113;3u", ["alt+q"]),
        ("\x1b[27u", ["escape"]),
    ],
)
def test_escape_and_the_key_behind_it_are_two_keys(packet, read):
    assert keys(packet) == read


def test_a_special_key_may_come_in_two_packets():
    parser = KeyParser()
    (found,) = (*parser.feed("\x1b[", 0.0), *parser.feed("A", 0.0))
    assert found.key == "up"


def pastes(*packets: str) -> list[str]:
    """Return the pastes in these packets, which arrive in quick succession."""
    parser = KeyParser()
    found = [message for packet in packets for message in parser.feed(packet, 0.0)]
    assert not [event for event in found if isinstance(event, events.Key)]
    return [event.text for event in found if isinstance(event, events.Paste)]


@rows("size", [1, 3, 1000])
def test_a_paste_is_one_event_whatever_it_contains(size):
    whole = "\x1b[200~a\x1bq\x1b[A\x1b[200~\x03S\nb\x1b[201~"
    packets = [whole[i : i + size] for i in range(0, len(whole), size)]
    assert pastes(*packets) == ["aq[A[200~S\nb"]


def test_a_key_behind_a_paste_is_a_key_again():
    assert keys("\x1b[200~S\x1b[201~j") == ["j"]


def test_a_paste_without_an_end_is_over_after_a_silence():
    assert keys("\x1b[200~Sabc", "j") == ["j"]


def test_an_endless_paste_is_not_kept():
    (text,) = pastes("\x1b[200~", "x" * 200_000, "\x1b[201~")
    assert len(text) == 65536


@rows("size", [1, 5, 1000])
@rows(
    "reply",
    [
        "\x1bP>|XTerm(Squeeze)\x1b\\",
        "\x1bP1$r0;1qS\x1b\\",
        "\x1bP0+rTq\x1b\\",
        "\x1b]11;rgb:ffff/SSSS/0000\x1b\\",
        "\x1b]52;c;UVNTcQ==\x07",
        "\x1b_Gi=1;OK\x1b\\",
        "\x1b[?64;1;2;6c",
        "\x1b[>41;354;0c",
        "\x1b[?997;1n",
        "\x1b[4;600;800t",
    ],
)
def test_a_late_reply_of_the_terminal_is_no_key(reply, size):
    parser = KeyParser()
    packets = [reply[i : i + size] for i in range(0, len(reply), size)]
    found = [message for packet in (*packets, "j") for message in parser.feed(packet, 0.0)]
    assert [event.key for event in found if isinstance(event, events.Key)] == ["j"]


@rows("packets", [("\x1b[<35;1", "0;5M"), ("\x1b[?64;1", "j")])
def test_a_cut_off_sequence_is_dropped_after_a_silence(packets):
    assert "1" not in keys(*packets)


def test_a_reply_without_an_end_holds_back_no_key_for_long():
    assert keys("\x1b]11;rgb:ff", "j") == ["j"]
    assert keys("\x1b]11;rgb:ff\x03") == ["ctrl+c"]
    assert keys("\x1b]11;rgb:ff\x1b[A") == ["up"]


@rows(
    "sequence",
    [
        f"\x1b[{2**64}u",
        f"\x1b[{2**64};5A",
        f"\x1b[<0;{2**70};1M",
        f"\x1b[<0;{'9' * 5000};1M",
        "\x1b[9999999u",
        "\x1b[55296u",
        "\x1b[1114112;1u",
        f"\x1b[48;{2**64};1;1;1t",
    ],
)
def test_a_number_that_is_no_character_or_place_ends_nothing(sequence):
    assert keys(f"{sequence}j\x1b[A") == ["j", "up"]


def test_the_mouse_is_still_read():
    parser = KeyParser()
    (found,) = parser.feed("\x1b[<0;10;5M", 0.0)
    assert isinstance(found, events.MouseDown)
    assert (found.x, found.y) == (9, 4)
    assert not parser.feed("\x1b[M !!", 0.0)


def test_the_focus_of_the_window_is_still_read():
    found = list(KeyParser().feed("\x1b[I\x1b[O", 0.0))
    assert [type(event) for event in found] == [events.AppFocus, events.AppBlur]


@given(st.lists(st.text(st.sampled_from("\x1b[]P_O<;0159~MmAutqS\\\x07\x03 \u00e9")), max_size=20))
def test_no_input_ends_the_parser(packets):
    keys(*(packet for packet in packets if packet), "\x1b")
    parser = KeyParser()
    found = list(parser.feed("".join(packets) + "\x03\x03\x1b[201~\x1b[A", 0.0))
    assert any(isinstance(event, (events.Key, events.Paste)) for event in found)
