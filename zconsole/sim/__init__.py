"""A pool simulated with the physics of its disks, emitted in the raw form of a real pool.

``state`` holds a pool with its ``topology``, its ``directories``, its load and its kernel's
parameters. ``simulation`` advances it in steps: foreground load, the two-stage ``scan``, sequential
``rebuild``, ``rewrite`` and other work become I/O of ``disk`` leaves, at the rate that ``flow``
derives from the slowest leaf, shared links and the processors; ``lifecycle`` ends work that is
done. ``commands`` and ``backends.actions`` take the place of zpool, ``emit`` and ``source`` produce
the raw form, and ``scenarios`` are the pools to start from.

Everything follows from scenario, seed and simulated time; there is no clock and no shared random
state.
"""
