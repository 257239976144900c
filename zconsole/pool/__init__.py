"""Facts about one pool, derived without I/O: topology, redundancy, health, balance, what-if."""
