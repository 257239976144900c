"""Saved output as it comes out of terminals' logs, pagers, shells' tools, mails and forums."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from zconsole.errors import NotUnderstoodError
from zconsole.zfs.sources.saved import read_text
from zconsole.zfs.sources.strip_decorations import LIST, STATUS, as_printed

CAPTURES = Path(__file__).parents[3] / "fixtures" / "captures"
SICK = (CAPTURES / "2.3.9" / "unavail-leaf" / "status.txt").read_text()
LISTING = (CAPTURES / "2.4.4" / "every-class" / "list-v.txt").read_text()
HEADLESS = (CAPTURES / "2.4.4" / "every-class" / "list-vHp.txt").read_text()
FRAGMENT = SICK[SICK.index("\tNAME") : SICK.index("\nerrors")]


def each_line(write: Callable[[int, str], str]) -> Callable[[str], str]:
    return lambda text: "".join(
        f"{write(n, line)}\n" for n, line in enumerate(text.splitlines(), 1)
    )


MARGINS = {
    "cat -n": each_line(lambda n, line: f"{n:6}\t{line}"),
    "grep -n": each_line(lambda n, line: f"{n}:{line}"),
    "grep, several files": each_line(lambda n, line: f"nas.txt:{line}"),
    "pssh, ansible, pdsh": each_line(lambda n, line: f"nas1: {line}".rstrip()),
    "ts": each_line(lambda n, line: f"[12:{n // 60:02}:{n % 60:02}] {line}"),
    "journal": each_line(lambda n, line: f"Nov {n % 30:2} 11:52:{n % 60:02} nas job[{n}]: {line}"),
    "diff": each_line(lambda n, line: f"+{line}"),
    "mail": each_line(lambda n, line: f"> {line}".rstrip()),
    "mail, twice": each_line(lambda n, line: f"> > {line}"),
    "as it was": lambda text: text,
}


@pytest.mark.parametrize("made", MARGINS.values(), ids=MARGINS)
@pytest.mark.parametrize("text", [SICK, SICK + SICK], ids=["one", "two"])
def test_what_stands_before_each_line_of_a_status_is_taken_away(
    made: Callable[[str], str], text: str
) -> None:
    assert as_printed(made(text), STATUS) == text


@pytest.mark.parametrize("made", MARGINS.values(), ids=MARGINS)
@pytest.mark.parametrize("text", [LISTING, HEADLESS], ids=["headed", "headless"])
def test_what_stands_before_each_line_of_a_listing_is_taken_away(
    made: Callable[[str], str], text: str
) -> None:
    assert as_printed(made(text), LIST) == text


def test_the_margin_of_a_listing_is_taken_away() -> None:
    made = each_line(lambda n, line: f"    {line}")
    assert as_printed(made(LISTING), LIST) == LISTING


def boxed(text: str, side: str, top: str, bottom: str) -> str:
    lines = text.expandtabs().splitlines()
    width = max(map(len, lines))
    inside = "".join(f"{side} {line:<{width}} {side}\n" for line in lines)
    edges = (f"{edge[0]}{edge[1] * (width + 2)}{edge[2]}\n" for edge in (top, bottom))
    return inside.join(edges)


@pytest.mark.parametrize(
    "box", [("|", "+-+", "+-+"), ("│", "╭─╮", "╰─╯"), ("┃", "┏━┓", "┗━┛"), ("║", "╔═╗", "╚═╝")]
)
@pytest.mark.parametrize(("text", "begins"), [(SICK, STATUS), (LISTING, LIST)])
def test_a_box_around_it_is_taken_away(
    text: str, begins: re.Pattern[str], box: tuple[str, str, str]
) -> None:
    shown = as_printed(boxed(text, *box), begins).splitlines()
    assert [line.rstrip() for line in shown] == [
        "",
        *map(str.rstrip, text.expandtabs().splitlines()),
        "",
    ]


def test_where_the_right_side_is_open_nothing_is_taken_from_there() -> None:
    text = f"{SICK}        /tank/a|\n        /tank/----\n"
    assert as_printed(each_line(lambda n, line: f"| {line}")(text), STATUS) == text


def test_a_table_alone_keeps_how_its_rows_stand_to_each_other() -> None:
    shown = as_printed(MARGINS["mail"](FRAGMENT), STATUS)
    assert shown == "".join(f"{line[1:]}\n" for line in FRAGMENT.splitlines())


def test_the_text_of_a_page_keeps_its_indentation() -> None:
    assert as_printed(f"<pre>{SICK}</pre>", STATUS) == f"{SICK}</pre>"
    assert as_printed(f"<pre>{FRAGMENT}</pre>", STATUS) == f"{FRAGMENT}</pre>"


def test_what_a_pager_or_a_prompt_left_before_a_line_is_overwritten() -> None:
    made = SICK.replace("config:", "--More--(42%)\r             \rconfig:")
    assert as_printed(f"$ zpool status\r\n\x1b[?2004l\r{made}", STATUS) == (
        f"$ zpool status\r\n{SICK}"
    )


def test_names_of_damaged_files_are_left_alone() -> None:
    text = f"{SICK}        /tank/a\rb\n        /tank/c  pool: d\n        tank/e:<0x1>\rf\n"
    assert as_printed(text, STATUS) == text


def test_text_within_json_is_left_alone() -> None:
    text = "".join(f"{json.dumps({'t': t, 'text': SICK})}\n" for t in (1.0, 2.0))
    assert as_printed(text, STATUS) == text
    assert as_printed(f"$ tail -n 2 rec\n{text}", STATUS) == f"$ tail -n 2 rec\n{text}"


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-16", "utf-32", "utf-8-sig"])
def test_any_width_of_characters_is_read(tmp_path: Path, encoding: str) -> None:
    file = tmp_path / "status.txt"
    file.write_bytes(SICK.encode(encoding))
    assert read_text(str(file), STATUS) == SICK


def test_a_crash_leaves_nuls_in_a_log(tmp_path: Path) -> None:
    file = tmp_path / "status.txt"
    file.write_bytes(SICK.encode() + bytes(4096))
    assert read_text(str(file), STATUS) == SICK


def test_a_packed_file_is_read(tmp_path: Path) -> None:
    file = tmp_path / "status.txt.1.gz"
    packed = gzip.compress(SICK.encode())
    file.write_bytes(packed)
    assert read_text(str(file), STATUS) == SICK
    for damaged in (packed[:40], packed[:20] + b"xxxx" + packed[24:], packed[:3]):
        file.write_bytes(damaged)
        with pytest.raises(NotUnderstoodError, match="gz: damaged: "):
            read_text(str(file), STATUS)
