"""Every sample of real output is decoded as its hand-written expectation says."""

from __future__ import annotations

import os
from pathlib import Path

from tests.table import rows
from tests.unit.zfs.decode.expect import differences

CORPUS = Path(os.environ.get("ZCONSOLE_CORPUS", Path(__file__).parents[3] / "fixtures" / "corpus"))


def _samples() -> list[Path]:
    expected = sorted([*CORPUS.glob("status/*.expect.json"), *CORPUS.glob("json/*.expect.json")])
    stems = [path.name.removesuffix(".expect.json") for path in expected]
    texts = [p.with_name(f"{stem}.txt") for p, stem in zip(expected, stems, strict=True)]
    return [text if text.exists() else text.with_suffix(".json") for text in texts]


@rows("sample", _samples())
def test_sample_is_read_as_expected(sample: Path) -> None:
    assert differences(sample) == []
