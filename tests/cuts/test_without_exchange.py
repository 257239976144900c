"""Without RENAME_EXCHANGE, the original gets a second name, which no error may leave behind."""

from __future__ import annotations

import errno

from tests.cuts.campaign import judged
from tests.cuts.choices import given
from tests.cuts.experiment import Experiments
from tests.cuts.machine import isolated
from tests.cuts.workloads import WORKLOADS


def test_a_failed_comparison_leaves_no_second_name() -> None:
    with isolated():
        experiments = Experiments(next(each for each in WORKLOADS if each.name == "no exchange"))
        lstats = [at for at, call in enumerate(experiments.names, start=1) if call == "lstat"]
        problems = {judged(experiments.error(at, errno.EACCES, given([]))) for at in lstats}
    assert problems == {()}
