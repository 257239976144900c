"""The guided disk swap: a checklist that sees from pool and machine which step is current.

``choice`` says what failed and how to swap it; ``checklist`` remembers; ``progress`` finds the
current step and the plan for it; ``guide`` puts them together for whoever shows them. Everything
but ``store`` is pure: the pool, the machine and the time are arguments, and whatever changes a
pool is a plan of ``actions``.
"""
