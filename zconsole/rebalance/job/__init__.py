"""Jobs: create, run, throttle, monitor, control and resume them."""
