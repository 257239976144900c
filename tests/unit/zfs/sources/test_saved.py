"""Saved output of zpool as a source."""

from __future__ import annotations

import gzip
import io
import json
import os
import re
import sys
import types
from collections.abc import Callable
from datetime import timedelta, timezone
from pathlib import Path

import pytest

from tests.table import rows
from tests.unit.zfs.sources.source_fakes import CONFIG, STATUS, TEXT
from tests.unit.zfs.sources.written import line, sample, write
from zconsole.errors import NotFoundError, NotUnderstoodError
from zconsole.zfs.decode import decode
from zconsole.zfs.sources.saved import LIST, as_printed, read_states, read_text
from zconsole.zfs.sources.saved import STATUS as BEGINS


def read_newest(*words):
    return read_states(*words)[-1]


class TestSaved:
    def test_text_is_text(self, tmp_path):
        raw = read_newest(write(tmp_path / "s", TEXT))
        assert (raw["source"], raw["text"]) == ("text", TEXT)

    def test_json_is_a_status_document(self, tmp_path):
        raw = read_newest(write(tmp_path / "s", "\n", json.dumps(STATUS)))
        assert (raw["source"], raw["status"]) == ("json", STATUS)

    def test_a_printed_time_counts(self, tmp_path):
        assert read_newest(write(tmp_path / "s", json.dumps({**STATUS, "time": 77})))["t"] == 77

    @rows("printed", [1_795_168_000, "1795168000", "Fri Nov 20 10:46:40 2026"])
    def test_in_every_way_zpool_prints_it(self, tmp_path, printed):
        path = write(tmp_path / "s", json.dumps({**STATUS, "time": printed}))
        raw = read_newest(path, timezone(timedelta(hours=1)))
        assert (raw["t"], raw.get("undated")) == (1_795_168_000, None)

    def test_else_the_time_of_the_file(self, tmp_path):
        path = write(tmp_path / "s", TEXT)
        os.utime(path, (1, 55))
        assert read_newest(path)["t"] == 55

    @rows(
        "heading",
        [
            "1795168000",
            "Fri Nov 20 10:46:40 2026",
            "Fri Nov 20 10:46:40 CET 2026",
            "Fri 20 Nov 2026 10:46:40 AM CET",
        ],
    )
    @rows("end", ["\n", "\r\n"])
    def test_the_heading_of_text_counts(self, tmp_path, heading, end):
        path = tmp_path / "s"
        path.write_bytes((heading + end + TEXT.replace("\n", end)).encode())
        raw = read_newest(str(path), timezone(timedelta(hours=1)))
        assert raw["t"] == 1_795_168_000
        assert [sample.pool.name for sample in decode(raw)] == ["tank"]

    @rows(
        ("parts", "t"),
        [
            (("1795168000\n", TEXT, "1795168005\n", TEXT), 1_795_168_005),
            (("$ zpool status -T u\n1795168000\n", TEXT), 1_795_168_000),
            (("1795168000\n", TEXT, "1795168005\n", TEXT.replace("tank", "other")), 55),
            (("1795168000\n", TEXT, "1795168005\n"), 55),
            ((TEXT, "1795168000\n"), 55),
            (("Fri Nov 20 was a good day for 2026\n", TEXT), 55),
            (("    1795168000\n", TEXT), 55),
        ],
    )
    def test_the_last_heading_if_it_is_that_of_every_pool(self, tmp_path, parts, t):
        path = write(tmp_path / "s", *parts)
        os.utime(path, (1, 55))
        assert read_newest(path)["t"] == t

    @rows("document", [STATUS, CONFIG])
    def test_which_is_not_the_time_of_what_it_shows(self, tmp_path, document):
        assert read_newest(write(tmp_path / "s", json.dumps(document)))["undated"]

    def test_of_many_documents_the_last_counts(self, tmp_path):
        lines = [line({**STATUS, "time": time}) for time in (1, 2)]
        assert read_newest(write(tmp_path / "s", *lines))["t"] == 2

    def test_pools_of_several_documents_are_put_together(self, tmp_path):
        one, other = ({**STATUS, "pools": {name: {"state": "ONLINE"}}} for name in ("a", "b"))
        for indent in (None, 2):
            lines = [json.dumps(each, indent=indent) + "\n" for each in (one, other)]
            raw = read_newest(write(tmp_path / "s", *lines))
            assert list(raw["status"]["pools"]) == ["a", "b"]

    def test_a_pool_that_a_later_document_no_longer_has_is_gone(self, tmp_path):
        pools = {"a": {"state": "ONLINE"}, "b": {"state": "ONLINE"}}
        lines = [line({**STATUS, "pools": pools}), line({**STATUS, "pools": {"b": pools["b"]}})]
        assert list(read_newest(write(tmp_path / "s", *lines))["status"]["pools"]) == ["b"]

    @rows("indent", [None, 2])
    def test_a_banner_before_and_a_prompt_after_are_no_damage(self, tmp_path, indent):
        document = json.dumps(STATUS, indent=indent)
        path = write(tmp_path / "s", "Last login: today\n$ zpool status -j\n", document, "\n$ \n")
        assert read_newest(path)["status"] == STATUS

    def test_of_a_recording_the_newest_sample_of_each_pool_counts(self, tmp_path):
        lines = [sample(t, pool) for t in (1, 2) for pool in ("a", "b")]
        path = write(tmp_path / "s", *map(line, [*lines, sample(3, "a")]))
        assert [(raw["pool"], raw["t"]) for raw in read_states(path)] == [("b", 2), ("a", 3)]
        assert read_newest(path)["pool"] == "a"

    def test_a_line_of_a_recording_and_a_config_are_read_too(self, tmp_path):
        assert read_newest(write(tmp_path / "s", line(sample(9))))["t"] == 9
        assert read_newest(write(tmp_path / "s", json.dumps(CONFIG)))["libzfs"] == CONFIG

    @rows("content", ["", " \n", '{"pools": {', "{nonsense}"])
    def test_damage_is_not_understood(self, tmp_path, content):
        with pytest.raises(NotUnderstoodError):
            read_newest(write(tmp_path / "s", content))

    def test_the_line_of_damaged_json_is_named(self, tmp_path):
        path = write(tmp_path / "s", line(STATUS), "\n", line(STATUS), '{"pools": {')
        with pytest.raises(NotUnderstoodError, match=r"/s: line 4: damaged JSON"):
            read_newest(path)

    def test_a_missing_file_is_not_found(self, tmp_path):
        with pytest.raises(NotFoundError):
            read_newest(str(tmp_path / "s"))

    def test_a_directory_is_no_file(self, tmp_path):
        with pytest.raises(NotFoundError, match=f"^{tmp_path} is a directory, not a file$"):
            read_text(str(tmp_path))

    def test_stdin_and_foreign_bytes(self, monkeypatch):
        stdin = types.SimpleNamespace(buffer=io.BytesIO(b"\xef\xbb\xbf pool: \xff"))
        monkeypatch.setattr(sys, "stdin", stdin)
        assert read_newest("-")["text"] == " pool: \udcff"


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


@rows("made", MARGINS.values())
@rows("text", [SICK, SICK + SICK])
def test_what_stands_before_each_line_of_a_status_is_taken_away(
    made: Callable[[str], str], text: str
) -> None:
    assert as_printed(made(text), BEGINS) == text


@rows("made", MARGINS.values())
@rows("text", [LISTING, HEADLESS])
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


@rows("box", [("|", "+-+", "+-+"), ("│", "╭─╮", "╰─╯"), ("┃", "┏━┓", "┗━┛"), ("║", "╔═╗", "╚═╝")])
@rows(("text", "begins"), [(SICK, BEGINS), (LISTING, LIST)])
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
    assert as_printed(each_line(lambda n, line: f"| {line}")(text), BEGINS) == text


def test_a_table_alone_keeps_how_its_rows_stand_to_each_other() -> None:
    shown = as_printed(MARGINS["mail"](FRAGMENT), BEGINS)
    assert shown == "".join(f"{line[1:]}\n" for line in FRAGMENT.splitlines())


def test_the_text_of_a_page_keeps_its_indentation() -> None:
    assert as_printed(f"<pre>{SICK}</pre>", BEGINS) == f"{SICK}</pre>"
    assert as_printed(f"<pre>{FRAGMENT}</pre>", BEGINS) == f"{FRAGMENT}</pre>"


def test_what_a_pager_or_a_prompt_left_before_a_line_is_overwritten() -> None:
    made = SICK.replace("config:", "--More--(42%)\r             \rconfig:")
    assert as_printed(f"$ zpool status\r\n\x1b[?2004l\r{made}", BEGINS) == (
        f"$ zpool status\r\n{SICK}"
    )


def test_names_of_damaged_files_are_left_alone() -> None:
    text = f"{SICK}        /tank/a\rb\n        /tank/c  pool: d\n        tank/e:<0x1>\rf\n"
    assert as_printed(text, BEGINS) == text


def test_text_within_json_is_left_alone() -> None:
    text = "".join(f"{json.dumps({'t': t, 'text': SICK})}\n" for t in (1.0, 2.0))
    assert as_printed(text, BEGINS) == text
    assert as_printed(f"$ tail -n 2 rec\n{text}", BEGINS) == f"$ tail -n 2 rec\n{text}"


@rows("encoding", ["utf-16-le", "utf-16-be", "utf-16", "utf-32", "utf-8-sig"])
def test_any_width_of_characters_is_read(tmp_path: Path, encoding: str) -> None:
    file = tmp_path / "status.txt"
    file.write_bytes(SICK.encode(encoding))
    assert read_text(str(file), BEGINS) == SICK


def test_a_crash_leaves_nuls_in_a_log(tmp_path: Path) -> None:
    file = tmp_path / "status.txt"
    file.write_bytes(SICK.encode() + bytes(4096))
    assert read_text(str(file), BEGINS) == SICK


def test_a_packed_file_is_read(tmp_path: Path) -> None:
    file = tmp_path / "status.txt.1.gz"
    packed = gzip.compress(SICK.encode())
    file.write_bytes(packed)
    assert read_text(str(file), BEGINS) == SICK
    for damaged in (packed[:40], packed[:20] + b"xxxx" + packed[24:], packed[:3]):
        file.write_bytes(damaged)
        with pytest.raises(NotUnderstoodError, match="gz: damaged: "):
            read_text(str(file), BEGINS)
