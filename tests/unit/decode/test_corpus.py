"""Every sample of real output is read as its hand-written expectation says."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.unit.decode.expect import differences

CORPUS = Path(os.environ.get("ZCONSOLE_CORPUS", Path(__file__).parents[2] / "fixtures" / "corpus"))


def _samples() -> list[Path]:
    expected = sorted([*CORPUS.glob("status/*.expect.json"), *CORPUS.glob("json/*.expect.json")])
    stems = [path.with_name(path.name.removesuffix(".expect.json")) for path in expected]
    both = [
        (stem.with_name(f"{stem.name}.txt"), stem.with_name(f"{stem.name}.json")) for stem in stems
    ]
    return [text if text.exists() else document for text, document in both]


@pytest.mark.parametrize("sample", _samples(), ids=lambda path: path.stem)
def test_sample_is_read_as_expected(sample: Path) -> None:
    assert differences(sample) == []
