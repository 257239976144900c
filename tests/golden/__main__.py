"""Draw every golden screen anew."""

from tests.golden import write_all

write_all()
