"""Draw every golden screen anew."""

from tests.golden import rebalance, write_all

write_all()
rebalance.write_all()
