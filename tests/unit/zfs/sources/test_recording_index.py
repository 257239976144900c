"""Where in a recording a time is."""

from __future__ import annotations

import gzip
import os

import pytest

from tests.unit.zfs.sources.written import line, sample, write
from zconsole.zfs.sources import replay
from zconsole.zfs.sources.replay import place_of, span_of


@pytest.fixture
def recording(tmp_path):
    return write(tmp_path / "r", *(line(sample(t)) for t in range(1000, 3000)))


def test_the_first_and_the_last_time_are_known(recording):
    assert span_of(recording) == (1000.0, 2999.0)


def test_lines_that_are_no_samples_are_passed_over(tmp_path):
    lines = ("x\n", line(sample(5)), "{}\n", line(sample(9)), '{"t": 10, "te')
    assert span_of(write(tmp_path / "r", *lines)) == (5.0, 9.0)


@pytest.mark.slow
@pytest.mark.parametrize("near", [1, 200, 2**16])
@pytest.mark.parametrize("t", [0, 1000, 1001, 1500, 2998, 2999, 9999])
def test_a_place_is_at_or_before_its_time_at_the_start_of_a_line(recording, monkeypatch, t, near):
    monkeypatch.setattr(replay, "_NEAR", near)
    place = place_of(recording, t)
    with open(recording, "rb") as file:  # noqa: PTH123 - a path as text
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
