"""The guided disk swap: a checklist that sees from pool and machine which step is current.

``disk`` has what a checklist remembers, ``choice`` what failed and how to swap it; ``steps`` is the
table of the steps, ``way_back`` has what each leaves standing; ``watch`` finds the current one and
notices what changed; ``store`` keeps checklists and leads through one. Everything but ``store`` and
what begins checklists in ``several`` is pure: the pool, the machine and the time are arguments, and
whatever changes a pool is a plan of ``actions``.
"""
