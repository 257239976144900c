"""Full vdevs that take no new writes while a job runs: chosen, shown, and given back."""

from __future__ import annotations

from dataclasses import replace

from tests.ui.actions.scripted import ScriptedSession
from tests.ui.drawn import text
from tests.ui.rebalance.samples import PLAN, SETTINGS, shown
from zconsole.rebalance.planning.plan_document import FillNew
from zconsole.rebalance.planning.settings import Limits, Settings

TIB = 1 << 40
FOUND = FillNew(False, ("mirror-0",), 4 * TIB, 0.05, TIB, 0.05, 2 * TIB, None)


def test_a_plan_offers_it_with_what_it_saves_and_what_it_costs():
    made = replace(PLAN, refused=None, bytes_to_target=2 * TIB, fill_new=FOUND)
    said = " ".join(text(shown(made)).split())
    assert (
        'without new writes on mirror-0 meanwhile (set "Full vdevs"): a spread of 5 % needs 1T'
        " logical, not 2T; 4T less available"
    ) in said
    made = replace(made, bytes_to_target=TIB, fill_new=replace(FOUND, chosen=True))
    said = " ".join(text(shown(made, settings=replace(SETTINGS, fill_new=True))).split())
    assert "no new writes on mirror-0 while the job runs (allocating=off)" in said
    assert (
        "zfs list shows 4T less available until it ends, or has moved nothing for an hour" in said
    )
    assert "lands on the full vdevs again" not in said


async def test_the_console_names_what_is_held_until_the_job_ends():
    ui = ScriptedSession("new-mirror")
    jobs = ui.backend.rebalance_backend()
    settings = Settings(("/depot",), fill_new=True, limits=Limits(until_spread=0.05))
    job = await jobs.start(settings)

    def held() -> list[str]:
        views = (view.activity for view in ui.frame.activities)
        return [f"{a.state} {a.note}" for a in views if a.kind == "allocating"]

    await ui.wait(120.0, 20.0)
    assert held() == [f"off mirror-0 until job {job} ends, or pauses for an hour"]
    assert [top.allocating for top in ui.world.pools[0].tops] == [False, True]
    await jobs.order(job, "stop")
    await ui.wait(120.0, 20.0)
    assert held() == []
    assert [top.allocating for top in ui.world.pools[0].tops] == [True, True]
    assert [words[1] for words in ui.commands] == ["allocating=off", "allocating=on"]
