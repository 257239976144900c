"""A simulated pool with physics, that emits the raw form a real one does.

``state`` is a pool, with its ``topology``, its ``directories``, its load and its kernel's
parameters. ``simulation`` moves it on in steps: foreground load, the two-stage ``scan``, sequential
``rebuild``, ``rewrite`` and other work become I/O of ``disk`` leaves, as fast as ``flow`` finds the
slowest of them, shared links and the processors allow; ``lifecycle`` ends what is done.
``commands`` and ``backends.actions`` are its zpool; ``emit`` and ``source`` its raw form;
``scenarios`` are pools to begin with.
Everything follows from scenario, seed and simulated time; no clock and no shared randomness.
"""
