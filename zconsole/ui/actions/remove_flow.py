"""Flow that removes a vdev: ask for the memory its table takes, estimate the copy, confirm."""

from __future__ import annotations

from functools import partial

from zconsole.actions.facts import mapping_memory
from zconsole.actions.remove import plan_remove, whole
from zconsole.pool.model import DATA
from zconsole.scan_report.resilver_time import longest
from zconsole.ui.actions.session import FlowSession


async def remove_flow(ui: FlowSession, key: str) -> bool:
    """Confirm the plan that removes the vdev of a row; return whether it ran."""
    pool = ui.situation_shown().pool
    target, plan = whole(pool, key), partial(plan_remove, key=key)
    if target is not None and target.vdev.vclass in DATA:
        memory = await mapping_memory(ui.backend.runner, pool.name, target.argument)
        known = await ui.paces(ui.frame) if ui.frame is not None else ()
        plan = partial(plan, mapping=memory, estimate=longest([target.vdev], known))
    return await ui.confirm(plan)
