"""A simulated pool with physics, that emits the raw form a real one does."""
