from __future__ import annotations

from zconsole.timeline.worked_out import WorkedOut


def test_the_same_inputs_are_worked_out_once_and_others_anew() -> None:
    asked, kept = [], WorkedOut[str]()
    for inputs in ((1, "a"), (1, "a"), (1, "b"), (1, "a")):

        def work(inputs: tuple[object, ...] = inputs) -> str:
            asked.append(inputs)
            return f"of {inputs}"

        assert kept.of(inputs, work) == f"of {inputs}"
    assert asked == [(1, "a"), (1, "b"), (1, "a")]
