"""Draw every golden screen anew."""

from tests.golden import tour, write_all

write_all()
tour.write_all()
