"""Draw every golden screen anew."""

from tests.golden import rebalance, swap, tour, write_all

write_all()
rebalance.write_all()
swap.write_all()
tour.write_all()
