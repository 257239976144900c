"""Pure facts of one pool: topology, redundancy, health, balance, what if."""
