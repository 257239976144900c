"""The guided disk swap: a checklist that sees from pool and machine which step is current.

``choice`` says what failed and how to swap it; ``checklist`` remembers; ``steps`` has the steps,
``watch`` finds the current one and notices what changed; ``session`` puts them together for whoever
shows them. Everything but ``store`` and ``session`` is pure: the pool, the machine and the time are
arguments, and whatever changes a pool is a plan of ``actions``.
"""
