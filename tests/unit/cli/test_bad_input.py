"""Whatever a file contains, a command ends with one clear line and a documented exit code."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.table import rows
from tests.unit.cli.commandline import STATUS
from zconsole.cli.main import main
from zconsole.errors import NotUnderstoodError
from zconsole.scan_report.report import FORMAT, DeviceReport, Moment, ScanReport, TunableChange
from zconsole.scan_report.store import read_report
from zconsole.ui.theme.files import ThemeError, read_theme
from zconsole.zfs.decode import builders
from zconsole.zfs.decode.builders import DEEPEST

pytestmark = pytest.mark.slow

READERS = (
    ("replay", "--json"),
    ("replay",),
    ("status", "--json", "--from"),
    ("status", "--from"),
    ("balance", "--from"),
    ("report", "--from"),
    ("report", "--list", "--from"),
)
"""Commands that read the file named by their last word."""
GOOD = json.dumps({"t": 1, "text": STATUS})
HEAD = """\
  pool: tank
 state: ONLINE
config:

\tNAME STATE READ WRITE CKSUM
\ttank ONLINE 0 0 0
"""
LIST = "NAME SIZE ALLOC FREE CKPOINT EXPANDSZ FRAG CAP DEDUP HEALTH ALTROOT\n"
ROW = "tank 1T 1G 1T - - 0% 0% 1.00x ONLINE -\n"


def ending(words: tuple[str, ...], path: Path) -> tuple[int, str, str]:
    """Run a command on a file; returns its exit code, stdout and stderr."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main([*words, str(path)])
    return code, out.getvalue(), err.getvalue()


def check(words: tuple[str, ...], path: Path) -> int:
    """Check that a command ends as documented: 0, 3 if a pool or report is missing, or 5."""
    code, _, err = ending(words, path)
    assert code in (0, 3, 5)
    assert "Traceback" not in err
    assert code == 0 or err.splitlines()[-1].startswith("zconsole: ")
    assert len(err) < 10_000
    return code


def nested(depth: int) -> str:
    """Return a status document with nested vdevs."""
    head = '{"name":"m","vdev_type":"mirror","guid":"1","state":"ONLINE","vdevs":{"c":'
    leaf = '{"name":"sda","vdev_type":"disk","guid":"2","state":"ONLINE"}'
    root = '{"name":"tank","vdev_type":"root","guid":"9","state":"ONLINE","vdevs":{"c":'
    tree = root + head * depth + leaf + "}}" * depth + "}}"
    return '{"pools":{"tank":{"name":"tank","state":"ONLINE","vdevs":{"tank":' + tree + "}}}}"


def indented(depth: int) -> str:
    """Return text output with nested vdevs."""
    rows = (f"\t{'  ' * level}mirror-{level} ONLINE 0 0 0\n" for level in range(1, depth))
    return HEAD + "".join(rows)


@rows(
    "content",
    [
        *("[" * 200_000, '{"t":' * 200_000, '{"pools":' * 200_000),
        *(nested(depth) for depth in (DEEPEST + 1, 900, 3000)),
        *(f'{{"t": 1, "status": {nested(depth)}}}\n' for depth in (DEEPEST + 1, 900, 3000)),
        *(indented(depth) for depth in (DEEPEST + 1, 1000)),
        *(json.dumps({"t": 1, "text": indented(depth)}) for depth in (DEEPEST + 1, 1000)),
    ],
)
def test_what_is_nested_too_deep(tmp_path: Path, content: str) -> None:
    path = tmp_path / "f"
    path.write_text(content)
    for words in READERS:
        assert check(words, path) == 5


def test_vdevs_as_deep_as_zfs_nests_them_are_read(tmp_path: Path) -> None:
    path = tmp_path / "f"
    for content in (nested(6), indented(6)):
        path.write_text(content)
        assert check(("status", "--from"), path) == 0


def test_more_vdevs_than_any_pool_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said, most = builders.TOO_MANY, 1000
    monkeypatch.setattr(builders, "MOST_VDEVS", most)
    path = tmp_path / "f"
    rows = [f"\t  sd{n} ONLINE 0 0 0\n" for n in range(most + 1)]
    path.write_text(HEAD + "".join(rows))
    code, _, err = ending(("status", "--from"), path)
    assert (code, said in err) == (5, True)
    third = HEAD + "".join(rows[: most // 3 - 1])
    pools = (json.dumps({"t": n, "text": third.replace("tank", f"p{n}")}) for n in range(4))
    path.write_text("\n".join(pools) + "\n")
    code, out, err = ending(("replay",), path)
    assert (code, out.count("\n"), "line 4: " in err) == (0, 3, True)


def test_names_longer_than_any_path_are_refused_and_paths_are_read(tmp_path: Path) -> None:
    path = tmp_path / "f"
    for length, code in ((4000, 0), (10_000, 5), (1_000_000, 5)):
        name = "a" * length
        vdev = {"name": name, "vdev_type": "disk", "class": "normal", "state": "ONLINE"}
        root = {"name": "tank", "vdev_type": "root", "state": "ONLINE", "vdevs": {name: vdev}}
        document = {"pools": {"tank": {"state": "ONLINE", "vdevs": {"tank": root}}}}
        leaf = {"type": "disk", "id": 0, "guid": 7, "path": f"/dev/{name}"}
        config = {
            "name": "tank",
            "state": 0,
            "pool_guid": 1,
            "vdev_tree": {"type": "root", "id": 0, "guid": 1, "children": [leaf]},
        }
        for content in (
            HEAD + f"\t  {name} ONLINE 0 0 0\n",
            json.dumps(document),
            json.dumps({"t": 1, "libzfs": config}),
        ):
            path.write_text(content)
            assert check(("status", "--from"), path) == code
            assert ending(("status", "--from"), path)[1].count("a" * 5000) == 0


NUMBERS = (
    "1" + "0" * 400,
    "NaN",
    "Infinity",
    "-Infinity",
    "-1e308",
    "1e308",
    "9" * 5000,
    "-0",
    "1e999",
)
KEYS = ("t", "clock", "utc_offset", "list", "host", "iostat", "wait", "text", "pool", "names")


@rows("number", [10**400, -(10**400), 2**70])
def test_counters_beyond_64_bits(tmp_path: Path, number: int) -> None:
    """Rates are computed from device histograms and from the kernel's disk statistics."""
    disk = {"type": "disk", "path": "/dev/sda", "vdev_stats": [0] * 48}
    raw = [8, 0, "sda", *[1] * 14]
    path = tmp_path / "f"
    for key, place in (
        ("vdev_disk_r_lat_histo", 3),
        ("vdev_disk_w_lat_histo", 0),
        (None, 3),
        (None, 12),
    ):
        more = {} if key is None else {key: [*[0] * place, number, 0]}
        rows = [raw if key is not None else [*raw[:place], number, *raw[place + 1 :]]]
        samples = []
        for t in (1, 2):
            vdev = {**disk, "vdev_stats_ex": more}
            config = {"name": "p", "vdev_tree": {"type": "root", "children": [vdev]}}
            samples.append(json.dumps({"t": t, "libzfs": config, "diskstats": rows}))
        path.write_text("\n".join((GOOD, *samples, GOOD)) + "\n")
        code, out, err = ending(("replay", "--json"), path)
        assert (code, out.count("\n"), err.count("\n")) == (0, 2, 1), (key, place)
        assert "2 gaps" in err


@rows("clock", [10**400, -1e300, "soon", [1]])
def test_a_clock_that_shows_no_time(tmp_path: Path, clock: object) -> None:
    disk = {"type": "disk", "path": "/dev/sda", "vdev_stats": [1] * 48}
    config = {"name": "p", "vdev_tree": {"type": "root", "children": [disk]}}
    samples = [{"t": t, "clock": t, "libzfs": config} for t in (1, 2, 3)]
    samples[2]["clock"] = clock
    path = tmp_path / "f"
    path.write_text("\n".join(map(json.dumps, samples)) + "\n")
    code, out, err = ending(("replay", "--json"), path)
    assert (code, out.count("\n"), err) == (0, 3, "")


@rows("number", NUMBERS)
def test_numbers_that_are_none(tmp_path: Path, number: str) -> None:
    path = tmp_path / "f"
    for key in KEYS:
        path.write_text(f'{GOOD[:-1]}, "{key}": {number}}}\n{GOOD}\n')
        assert check(("replay", "--json"), path) == 0
        for words in READERS[2:5]:
            check(words, path)
    for key in ("t", "severity", "name"):
        path.write_text(f'{GOOD[:-1]}, "events": [{{"t": 1, "{key}": {number}}}]}}\n')
        assert check(("replay", "--json"), path) == (5 if number == "9" * 5000 else 0)
    path.write_text(nested(2).replace('"guid":"2"', f'"guid":{number}, "slow_ios": {number}'))
    check(("status", "--json", "--from"), path)
    path.write_text(STATUS.replace("0     0     0", f"{number} 0 0"))
    check(("status", "--json", "--from"), path)
    path.write_text(LIST + ROW.replace("1T", number))
    check(("balance", "--json", "--from"), path)


PIECES = st.sampled_from(
    [
        *("\n", "\0", "\x1b[2J", "{", "}", "[", '"', ":", ",", "  pool: x\n", "\t", " " * 40),
        *(GOOD, STATUS, LIST, ROW, nested(3), *NUMBERS),
        *('{"t": 1}', '"status": {"pools": {}}', '"libzfs": {"name": "a", "vdev_tree": {}}'),
    ]
)
CONTENT = st.lists(st.one_of(PIECES, st.text(max_size=9)), max_size=12).map("".join)
ROWS = st.lists(st.one_of(st.just(GOOD), CONTENT), max_size=6).map("\n".join)


def encoded(text: str) -> bytes:
    return text.encode(errors="surrogatepass")


SLOW = (HealthCheck.too_slow, HealthCheck.function_scoped_fixture)


def fuzz(test: Callable[..., None]) -> Callable[..., None]:
    return settings(suppress_health_check=SLOW)(test)


@given(
    content=st.one_of(st.binary(max_size=60), st.one_of(CONTENT, ROWS).map(encoded)),
    words=st.sampled_from(READERS),
    cut=st.integers(0, 80),
    head=st.sampled_from([b"", b"\x1f\x8b", b"\xff\xfe", b"\xef\xbb\xbf"]),
)
@example(content=b'{"t": 5, "text": 5}', words=("status", "--from"), cut=0, head=b"")
@fuzz
def test_any_bytes(
    content: bytes, words: tuple[str, ...], cut: int, head: bytes, tmp_path: Path
) -> None:
    path = tmp_path / "f"
    path.write_bytes(head + content)
    check(words, path)
    path.write_bytes(gzip.compress(content)[: -cut or None] + head)
    check(words, path)


ODD = (None, True, -1, 2**70, 10**400, 1e308, "x", [], [None], {}, {"x": None})


def spoilt(node: Any) -> Iterator[None]:
    """Put each odd value in each place of a document, one after another."""
    for key in list(node) if isinstance(node, dict) else range(len(node)):
        value = node[key]
        for odd in ODD:
            node[key] = odd
            yield
        node[key] = value
        if isinstance(value, (dict, list)):
            yield from spoilt(value)


@pytest.fixture
def report() -> dict[str, object]:
    """Return a report as in its file."""
    made = ScanReport(
        "tank", "1", "scrub", None, 1.0, "finished", 1.0, 9.0, 10, 10,
        moments=(Moment(2.0, 1.0), Moment(3.0, 2.0, told_end=9.0)),
        devices=(DeviceReport("sda", False, 1.0, 1.0, 1.0, 0.5, 0.1, 0.1),),
        changes=(TunableChange(2.0, "zfs_x", 1, 2),),
        limits={"disk": 1.0}, evidence={"disk": "x"}, tunables={"zfs_x": 1},
    )  # fmt: skip
    return json.loads(json.dumps({"format": FORMAT, **asdict(made)}))


def test_any_report(report: dict[str, object], tmp_path: Path) -> None:
    path, whole = tmp_path / "f", tmp_path / "whole"
    whole.write_text(json.dumps(report))
    for _ in spoilt(report):
        path.write_text(json.dumps(report))
        with contextlib.suppress(NotUnderstoodError):
            read_report(path)
            for words in ((), ("--json",)):
                assert check(("report", *words, "--compare", str(whole)), path) == 0


@given(
    content=st.lists(
        st.one_of(
            st.text(max_size=9),
            st.sampled_from(
                [
                    "name = ",
                    '"x"',
                    "[colors]\n",
                    "background = ",
                    '"#fff"\n',
                    "[" * 600,
                    "9" * 5000,
                    "=",
                    "\n",
                    "1e999",
                    "{" * 600,
                    "a." * 3000,
                    "1979-99-99",
                ]
            ),
        ),
        max_size=8,
    ).map("".join)
)
@fuzz
@example(content="a = " + "[" * 6_000)
@example(content="a = " + "9" * 5000)
@example(content="a." * 3_000 + "a = 1")
def test_any_theme(content: str, tmp_path: Path) -> None:
    path = tmp_path / "odd.toml"
    path.write_text(content, errors="replace")
    try:
        said = read_theme(path).name
    except ThemeError as error:
        said = str(error)
    assert said
    assert "\n" not in said
