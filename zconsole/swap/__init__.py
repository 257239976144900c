"""The guided disk swap: a checklist whose current step is derived from the pool and the machine.

- ``disk``: the checklist record, its disks, and the view of the machine it is compared with
- ``choice``: why a device is thought to have failed, and the ways to swap it
- ``effects``: how pools depend on a disk, and which disk was inserted
- ``steps``: the table of steps; ``stage``: what a step shows, its answers, and how to undo it
- ``watch``: finds the current step and records what changed
- ``store``: keeps checklists on disk and leads through one; ``several`` handles several swaps

Everything except ``store`` and the functions of ``several`` that begin checklists is pure: the
pool, the machine and the time are arguments. Every change to a pool is a plan of ``actions``.
"""
