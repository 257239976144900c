from __future__ import annotations

import asyncio
import contextlib
import gzip
import json
import os
import tempfile
import threading
import types
from array import array
from pathlib import Path

import pytest

from tests.table import rows
from tests.unit.zfs.sources.source_fakes import STATUS, TEXT
from tests.unit.zfs.sources.written import line, sample, write
from zconsole.errors import (
    NotFoundError,
    NotUnderstoodError,
    UnavailableError,
    UsageError,
    ZconsoleError,
)
from zconsole.sim.source import World
from zconsole.timeline.session import Session
from zconsole.zfs.decode import decode
from zconsole.zfs.sources import open_text, recording, replay
from zconsole.zfs.sources.recording import Gaps, Recorder, line_of, pool_name, raw_of
from zconsole.zfs.sources.replay import SPEEDS, Playback, ReplaySource, place_of, span_of


async def played(path: str) -> list[tuple]:
    source = ReplaySource(path, None)
    rounds = []
    while (found := await source.sample()) is not None:
        rounds.append(found)
    return rounds


class TestRecorder:
    def test_lines_are_ascii_json_that_replays(self, tmp_path):
        path = tmp_path / "r"
        raw = {**sample(1.5), "text": "caf\xe9 \udcff"}
        with Recorder(str(path)) as recorder:
            recorder.write([raw])
        assert path.read_bytes().isascii()
        assert json.loads(path.read_text()) == raw

    def test_arrays_become_lists(self, tmp_path):
        path = tmp_path / "r"
        tree = {"scan_stats": array("Q", [1, 2**64 - 1]).tobytes()}
        with Recorder(str(path)) as recorder:
            recorder.write([{"t": 1.0, "libzfs": {"name": "tank", "vdev_tree": tree}}])
        written = json.loads(path.read_text())
        assert written["libzfs"]["vdev_tree"] == {"scan_stats": [1, 2**64 - 1]}

    @rows("was_there", [False, True])
    def test_nothing_to_record_leaves_no_file_of_its_own(self, tmp_path, was_there):
        path = tmp_path / f"{was_there}"
        if was_there:
            path.touch()
        with pytest.raises(NotFoundError), Recorder(str(path)):
            raise NotFoundError("no pool")
        assert path.exists() == was_there
        with contextlib.suppress(NotFoundError), Recorder(str(path)) as recorder:
            recorder.write([sample(1)])
            raise NotFoundError("the pool is gone")
        assert path.stat().st_size > 0

    def test_each_line_is_there_before_the_next_is_written(self, tmp_path):
        path = tmp_path / "r"
        with Recorder(str(path)) as recorder:
            for count in (1, 2, 3):
                recorder.write([sample(count)])
                assert len(path.read_text().splitlines()) == count

    def test_a_sample_without_any_form_is_left_out(self, tmp_path):
        path = tmp_path / "r"
        with Recorder(str(path)) as recorder:
            recorder.write([{"t": 1.0, "pool": "tank", "problem": "stuck"}, sample(1.0)])
        assert len(path.read_text().splitlines()) == 1

    def test_a_recording_is_added_to_and_its_cut_line_dropped(self, tmp_path):
        path = write(tmp_path / "r", line(sample(1)), line(sample(2))[:20])
        with Recorder(path) as recorder:
            recorder.write([sample(3)])
        lines = (tmp_path / "r").read_text().splitlines()
        assert [json.loads(each)["t"] for each in lines] == [1, 3]

    def test_a_long_cut_line_is_found_from_behind(self, tmp_path):
        path = write(tmp_path / "r", line(sample(1)), '{"text": "' + "x" * 200_000)
        Recorder(path).__exit__(None, None, None)
        assert (tmp_path / "r").read_text() == line(sample(1))

    @rows("content", ["precious\n", "{}\n", "[1]\n", '{"t": 1'])
    def test_another_file_is_left_alone(self, tmp_path, content):
        path = write(tmp_path / "r", content)
        with pytest.raises(UsageError, match="not a recording"):
            Recorder(path)
        assert (tmp_path / "r").read_text() == content

    def test_an_empty_file_may_be_used(self, tmp_path):
        with Recorder(write(tmp_path / "r")) as recorder:
            recorder.write([sample(1)])
        assert (tmp_path / "r").read_text() == line(sample(1)).replace(" ", "")

    def test_a_missing_directory_is_not_found(self, tmp_path):
        with pytest.raises(NotFoundError):
            Recorder(str(tmp_path / "no/r"))

    @rows("root", [False, True])
    def test_a_directory_is_no_file(self, tmp_path, monkeypatch, root):
        monkeypatch.setattr(recording, "is_root", lambda: root)
        tmp_path.chmod(0o1777)
        (tmp_path / "d").mkdir(exist_ok=True)
        with pytest.raises(NotFoundError, match=r"/d is a directory, not a file$"):
            Recorder(str(tmp_path / "d"))

    def test_root_follows_no_link(self, tmp_path, monkeypatch):
        monkeypatch.setattr(recording, "is_root", lambda: True)
        write(tmp_path / "target", line(sample(1)))
        (tmp_path / "r").symlink_to(tmp_path / "target")
        with pytest.raises(ZconsoleError):
            Recorder(str(tmp_path / "r"))

    @rows("mode", [0o777, 0o1777, 0o755])
    def test_root_writes_to_no_file_that_somebody_else_linked(self, tmp_path, monkeypatch, mode):
        """In a directory that others can write to, as if protected_hardlinks were off (proc(5))."""
        place, kept = tmp_path / f"{mode:o}", tmp_path / f"{mode:o}.kept"
        kept.touch()
        place.mkdir()
        (place / "recording").hardlink_to(kept)
        place.chmod(mode)
        monkeypatch.setattr(recording, "is_root", lambda: True)
        refused = (
            pytest.raises(ZconsoleError, match="others may write")
            if mode != 0o755
            else contextlib.nullcontext()
        )
        with refused, Recorder(str(place / "recording")) as recorder:
            recorder.write([sample(1)])
        assert (kept.read_bytes() == b"") is (mode != 0o755)

    @pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files to others")
    def test_root_writes_to_no_file_of_somebody_else_in_a_directory_of_theirs(self, tmp_path):
        place = tmp_path / "place"
        place.mkdir()
        (place / "recording").touch()
        for path in (place, place / "recording"):
            os.chown(path, 1234, 1234)
        with pytest.raises(ZconsoleError, match="others may write"):
            Recorder(str(place / "recording"))
        assert (place / "recording").read_bytes() == b""

    def test_root_begins_a_recording_where_others_can_write(self, tmp_path, monkeypatch):
        monkeypatch.setattr(recording, "is_root", lambda: True)
        tmp_path.chmod(0o1777)
        with Recorder(str(tmp_path / "recording")) as recorder:
            recorder.write([sample(1)])
        assert json.loads((tmp_path / "recording").read_text())["t"] == 1

    @pytest.mark.skipif(not os.access("/dev/shm", os.W_OK), reason="no directory below /dev")
    def test_root_follows_no_link_in_a_directory_of_everybody_below_dev(
        self, tmp_path, monkeypatch
    ):
        monkeypatch.setattr(recording, "is_root", lambda: True)
        with tempfile.TemporaryDirectory(dir="/dev/shm") as place:
            link = Path(place, "recording")
            link.symlink_to(write(tmp_path / "target"))
            with pytest.raises(ZconsoleError, match="symbolic links"):
                Recorder(str(link))

    def test_root_waits_for_no_pipe_that_somebody_else_may_have_made(self, tmp_path, monkeypatch):
        monkeypatch.setattr(recording, "is_root", lambda: True)
        os.mkfifo(tmp_path / "pipe")
        tmp_path.chmod(0o1777)
        errors = []

        def recorded():
            with pytest.raises(ZconsoleError) as error:
                Recorder(str(tmp_path / "pipe"))
            errors.append(str(error.value))

        thread = threading.Thread(target=recorded, daemon=True)
        thread.start()
        thread.join(5)
        assert ["others may write" in error for error in errors] == [True]

    def test_a_full_disk_leaves_whole_lines(self, tmp_path, monkeypatch):
        path = tmp_path / "r"
        written = os.write

        def full(file, data):
            if len(data) < 100:
                raise OSError(28, "No space left on device")
            return written(file, data[:100])

        with Recorder(str(path)) as recorder:
            recorder.write([sample(1)])
            monkeypatch.setattr(recording.os, "write", full)
            with pytest.raises(ZconsoleError, match="No space left"):
                recorder.write([sample(2)])
        assert [json.loads(each)["t"] for each in path.read_text().splitlines()] == [1]

    def test_a_pipe_is_written_to(self, tmp_path):
        reading, writing = os.pipe()
        with Recorder(f"/proc/self/fd/{writing}") as recorder:
            recorder.write([sample(1)])
        os.close(writing)
        with os.fdopen(reading) as pipe:
            assert json.loads(pipe.read())["t"] == 1


class TestReplay:
    async def test_a_pool_that_did_not_answer_once_shifts_no_later_round(self, tmp_path):
        order = ((1, "a"), (1, "b"), (2, "b"), (3, "a"), (3, "b"))
        rounds = await played(write(tmp_path / "r", *(line(sample(t, pool)) for t, pool in order)))
        assert [[raw["t"] for raw in each] for each in rounds] == [[1, 1], [2], [3, 3]]

    async def test_pools_of_one_round_come_together(self, tmp_path):
        lines = [sample(t, pool) for t in (1, 2) for pool in ("a", "b")] + [sample(3, "a")]
        rounds = await played(write(tmp_path / "r", *map(line, lines)))
        assert [[(raw["pool"], raw["t"]) for raw in each] for each in rounds] == [
            [("a", 1), ("b", 1)],
            [("a", 2), ("b", 2)],
            [("a", 3)],
        ]

    async def test_samples_say_replay_and_keep_unknown_keys(self, tmp_path):
        (found,) = await played(write(tmp_path / "r", line({**sample(1), "new": 1})))
        assert (found[0]["source"], found[0]["new"]) == ("replay", 1)
        assert decode(found[0])[0].source == "replay"

    async def test_zpools_text_is_that_of_the_round_on_show(self, tmp_path):
        texts = [{"t": t, "text": TEXT.replace("sda1", f"sda{t}")} for t in (1, 2)]
        lines = [texts[0], sample(1, "other"), texts[1], sample(2, "other")]
        source = ReplaySource(write(tmp_path / "r", *map(line, lines)), None)
        for t in (1, 2):
            await source.sample()
            (output,) = await source.zpool_outputs("tank")
            assert output.heading == "$ zpool status  # as recorded"
            assert any(each.split()[:1] == [f"sda{t}"] for each in output.lines)
            with pytest.raises(UnavailableError, match="holds no zpool text of other"):
                await source.zpool_outputs("other")

    async def test_a_form_that_is_null_is_not_there(self, tmp_path):
        path = write(tmp_path / "r", line({"t": 1, "text": TEXT, "status": None, "list": None}))
        ((raw,),) = await played(path)
        assert (raw["text"], raw.keys() & {"status", "list"}) == (TEXT, set())

    @rows(
        ("beside", "read"),
        [
            ({"host": "nas1", "names": ["tank"], "message": "hello", "devices": 4}, False),
            ({"events": "none", "tunables": [1], "sitting_out": {"sda": 1}}, False),
            ({"events": ["resilver_start"], "tunables": {"zfs_scan_legacy": "off"}}, False),
            ({"sitting_out": ["sda"]}, False),
            ({"objsets": {"0x36": {"nread": "1"}}}, False),
            ({"objsets": [["0x36", 1]]}, False),
            ({"objsets": [{"dataset_name": "tank", "nread": "many"}, {}]}, True),
            ({"events": [{"t": 1.0, "name": "resilver_start"}], "host": {"load": 0.5}}, True),
            ({"tunables": {"zfs_scan_legacy": 0}, "sitting_out": [{"guid": 7}]}, True),
            ({"clock": 2.0}, True),
        ],
    )
    async def test_what_another_recorder_means_by_our_names_is_ignored(
        self, tmp_path, beside, read
    ):
        path = write(tmp_path / "r", line({"t": 1, "text": TEXT, **beside}))
        ((raw,),) = await played(path)
        found = {key: raw[key] for key in beside if key in raw}
        assert (raw["text"], found) == (TEXT, beside if read else {})
        assert decode(raw)

    async def test_a_recording_without_pool_keys_is_told_apart_by_its_forms(self, tmp_path):
        lines = [{"t": 1, "text": TEXT}, {"t": 2, "text": TEXT}, {"t": 3, "status": STATUS}]
        assert len(await played(write(tmp_path / "r", *map(line, lines)))) == 3
        assert pool_name({"t": 1, "status": {"pools": 3}}) == ""

    @rows(
        ("bad", "why"),
        [
            ("junk", "not JSON"),
            ("[1]", "not a JSON object"),
            ('{"text": "x"}', "no time t"),
            *(
                (f'{{"t": {t}, "text": "x"}}', "no time t")
                for t in ("true", "NaN", "Infinity", "-1e308", "1e11", "1" + "0" * 400)
            ),
            (f'{{"t": {"9" * 5000}, "text": "x"}}', "not JSON"),
            ('{"t": 1}', "none of libzfs, status, text"),
            ('{"t": 1, "text": 3}', "none of"),
            ('{"t": 1, "text": "x", "status": 3}', "another type"),
        ],
    )
    async def test_a_bad_line_is_named_by_its_number(self, tmp_path, bad, why):
        path = write(tmp_path / "r", line(sample(1)), "\n", f"{bad}\n", line(sample(2)))
        first, (gap,), last = await played(path)
        assert (first[0]["t"], last[0]["t"]) == (1, 2)
        assert gap["place"] == f"{path}: line 3"
        assert why in gap["gap"]

    async def test_a_gap_has_the_time_and_pool_that_its_line_has(self, tmp_path):
        lines = [line(sample(1)), '{"t": 7, "pool": "b"}\n', "junk\n"]
        _, (known,), (unknown,) = await played(write(tmp_path / "r", *lines))
        assert (known["t"], known["pool"], unknown["t"], "pool" in unknown) == (7, "b", 1, False)

    async def test_a_bad_first_line_is_a_gap_before_anything_that_could_lack_it(self, tmp_path):
        gaps = Gaps()
        source = ReplaySource(write(tmp_path / "r", "junk\n", line(sample(5))), None, gaps)
        assert (await source.sample())[0]["t"] == 5
        assert await source.sample() is None
        assert gaps.words == f"{tmp_path}/r: line 1: not JSON (1 gap in the recording)"

    async def test_a_line_that_is_too_long_is_passed_over(self, tmp_path, monkeypatch):
        monkeypatch.setattr(open_text, "LONGEST_LINE", 2000)
        long = line({**sample(2), "more": "x" * 3_000_000})
        path = write(tmp_path / "r", line(sample(1)), long, line(sample(3)))
        assert [raw["t"] for (raw,) in await played(path) if "gap" not in raw] == [1, 3]

    async def test_a_line_that_does_not_end_is_not_followed(self, tmp_path, monkeypatch):
        monkeypatch.setattr(open_text, "FARTHEST", 3_000_000)
        monkeypatch.setattr(open_text, "LONGEST_LINE", 2000)
        gaps = Gaps()
        path = write(tmp_path / "r", line(sample(1)), "x" * 9_000_000, "\n", line(sample(3)))
        source = ReplaySource(path, None, gaps)
        assert (await source.sample())[0]["t"] == 1
        assert await source.sample() is None
        assert "damaged: a line is longer than 2 MiB" in gaps.words

    async def test_a_file_without_any_sample_is_given_up(self, tmp_path, monkeypatch):
        monkeypatch.setattr(replay, "FARTHEST", 100)
        with pytest.raises(NotUnderstoodError, match="no sample in"):
            await played(write(tmp_path / "r", "junk\n" * 99, line(sample(1))))

    async def test_pools_without_end_are_a_gap(self, tmp_path, monkeypatch):
        monkeypatch.setattr(replay, "MOST_POOLS", 3)
        lines = [line(sample(t, str(t))) for t in range(5)] + [line(sample(9, "0"))]
        rounds = await played(write(tmp_path / "r", *lines))
        assert [raw.get("gap") or raw["pool"] for found in rounds for raw in found] == [
            *("0", "1", "2"), "too many pools", "too many pools", "0"
        ]  # fmt: skip

    async def test_a_last_line_cut_short_is_left_out_with_a_note(self, tmp_path):
        gaps = Gaps()
        path = write(tmp_path / "r", line(sample(1)), line(sample(2))[:30])
        source = ReplaySource(path, None, gaps)
        assert (await source.sample())[0]["t"] == 1
        assert await source.sample() is None
        assert "line 2: the last line is cut short (1 gap" in gaps.words

    @rows("content", ["", "\n\n", '{"t": 1, "te'])
    async def test_nothing_whole_in_it_is_not_understood(self, tmp_path, content):
        with pytest.raises(NotUnderstoodError):
            await played(write(tmp_path / "r", content))

    async def test_no_file_is_not_found(self, tmp_path):
        with pytest.raises(NotFoundError):
            await played(str(tmp_path / "r"))

    async def test_bytes_that_are_no_utf8_are_no_reason_to_stop(self, tmp_path):
        (tmp_path / "r").write_bytes(b'{"t": 1, "text": "' + b"\xff" + b'"}\n')
        ((raw,),) = await played(str(tmp_path / "r"))
        assert raw["text"] == "\udcff"

    @rows(
        ("times", "speed", "pauses"),
        [
            ((1, 2, 4), 2, [0.5, 1.0]),
            ((1, 100_000, 100_001), 1, [replay.LONGEST_PAUSE, 1.0]),
            ((5, 4, 6), 1, [0.0, 2.0]),
        ],
    )
    async def test_time_passes_as_recorded(self, tmp_path, monkeypatch, times, speed, pauses):
        now, slept = [0.0], []

        async def wait(seconds):
            slept.append(seconds / speed)
            now[0] += seconds / speed

        loop = types.SimpleNamespace(time=lambda: now[0])
        monkeypatch.setattr(replay, "asyncio", types.SimpleNamespace(get_running_loop=lambda: loop))
        source = ReplaySource(write(tmp_path / "r", *(line(sample(t)) for t in times)), speed)
        source.playback = types.SimpleNamespace(speed=speed, span=None, t=None, wait=wait)
        while await source.sample() is not None:
            pass
        assert slept == pytest.approx(pauses)


class TestKept:
    """Recordings in the encoding of a shell, or compressed for sending."""

    LINES = tuple(line(sample(t)).encode() for t in (1, 2))
    PACKED = gzip.compress(b"".join(LINES))

    @rows(
        ("kept", "damaged"),
        [
            (b"".join(LINES).decode().encode("utf-8-sig"), False),
            (b"".join(LINES).decode().encode("utf-16"), False),
            (PACKED, False),
            (PACKED[:-4], True),  # without its length
            (PACKED[:-9], True),  # nor its checksum
            (b"".join((*map(gzip.compress, LINES), b"more")), True),
        ],
    )
    async def test_it_is_read_as_far_as_it_goes(self, tmp_path, kept, damaged):
        path, gaps, times = tmp_path / "r.gz", Gaps(), []
        path.write_bytes(kept)
        source = ReplaySource(str(path), None, gaps)
        while (found := await source.sample()) is not None:
            times.append(found[0]["t"])
        assert times == [1, 2]
        assert ("r.gz: damaged: " in gaps.words) == damaged

    async def test_a_pipe_is_read_once(self, tmp_path):
        path = tmp_path / "pipe"
        os.mkfifo(path)
        writer = threading.Thread(target=path.write_bytes, args=(self.PACKED,))
        writer.start()
        assert [raw["t"] for (raw,) in await played(str(path))] == [1, 2]
        writer.join()

    @rows("length", [40, 3])
    async def test_a_packed_one_that_is_cut_is_one_clear_line(self, tmp_path, length):
        path = tmp_path / "r.gz"
        path.write_bytes(self.PACKED[:length])
        with pytest.raises(NotUnderstoodError, match=r"r\.gz: damaged"):
            await played(str(path))


@pytest.fixture
def recorded(tmp_path):
    return write(tmp_path / "r", *(line(sample(t)) for t in range(1000, 3000)))


def test_the_first_and_the_last_time_are_known(recorded):
    assert span_of(recorded) == (1000.0, 2999.0)


def test_lines_that_are_no_samples_are_passed_over(tmp_path):
    lines = ("x\n", line(sample(5)), "{}\n", line(sample(9)), '{"t": 10, "te')
    assert span_of(write(tmp_path / "r", *lines)) == (5.0, 9.0)


@rows("near", [1, 200, 2**16])
@rows("t", [0, 1000, 1001, 1500, 2998, 2999, 9999])
def test_a_place_is_at_or_before_its_time_at_the_start_of_a_line(recorded, monkeypatch, t, near):
    monkeypatch.setattr(replay, "_NEAR", near)
    place = place_of(recorded, t)
    with open(recorded, "rb") as file:  # noqa: PTH123 - a path as text
        assert place == 0 or (file.seek(place - 1), file.read(1))[1] == b"\n"
        found = replay._time(file.readline())
        assert found <= max(t, 1000)
        assert found >= min(t, 2999) - near / 20 - 2


def test_what_is_packed_or_a_pipe_has_no_places(tmp_path):
    packed = tmp_path / "r.gz"
    packed.write_bytes(gzip.compress(line(sample(1)).encode()))
    assert span_of(str(packed)) is None
    os.mkfifo(tmp_path / "pipe")
    assert span_of(str(tmp_path / "pipe")) is None
    assert span_of("-") is None
    assert span_of(str(tmp_path / "missing")) is None
    assert span_of(str(write(tmp_path / "empty", ""))) is None


def at(t: float, **fields: object) -> Playback:
    return Playback(t=t, span=(100.0, 300.0), **fields)  # type: ignore[arg-type]


def test_the_share_follows_the_time():
    assert [at(t).share for t in (100.0, 150.0, 300.0, 400.0)] == [0.0, 0.25, 1.0, 1.0]
    assert Playback(t=1.0).share is None
    assert Playback(t=1.0, span=(1.0, 1.0)).share == 1.0


def test_moving_stays_within_the_recording_and_adds_up():
    playback = at(150.0)
    assert playback.seek(0.1)
    assert playback.seek(0.1)
    assert playback.request.t == 190.0
    playback.seek(5.0)
    assert playback.request.t == 300.0
    playback.seek(-5.0)
    assert playback.request.t == 100.0


def test_what_has_no_places_cannot_be_moved_in():
    playback = Playback(t=1.0)
    assert not playback.seek(0.1)
    assert playback.request.t is None


def test_the_speeds_end_at_both_ends():
    playback = at(150.0)
    for _ in SPEEDS:
        playback.faster(1)
    assert playback.speed == SPEEDS[-1]
    for _ in SPEEDS:
        playback.faster(-1)
    assert playback.speed == SPEEDS[0]


async def test_time_passes_at_once_where_none_is_to_pass():
    assert await at(150.0, speed=None).wait(1e9)
    assert await at(150.0).wait(0.0)


@rows("paused", [False, True])
async def test_a_wish_to_be_elsewhere_ends_the_wait(paused):
    playback = at(150.0, paused=paused)
    waiting = asyncio.create_task(playback.wait(1e9))
    await asyncio.sleep(0)
    playback.seek(0.5)
    assert await waiting is False


async def test_a_pause_holds_until_it_is_over_and_a_speed_counts_at_once():
    playback = at(150.0, paused=True)
    waiting = asyncio.create_task(playback.wait(1e6))
    await asyncio.sleep(0.01)
    playback.speed = 1e12
    playback.toggle()
    assert await waiting


def test_a_recording_names_the_datasets_that_the_live_pool_named():
    world, live, replayed = World("foreground", 1), Session(), Session()
    for second in range(8):
        world.advance(float(second))
        raws = world.raws()
        (seen,) = live.advance(raws)
        (again,) = replayed.advance([raw_of(line_of(raw)) for raw in raws])
        assert again.busiest_datasets == seen.busiest_datasets
    assert seen.busiest_datasets
