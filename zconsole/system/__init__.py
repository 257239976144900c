"""The operating system: processes, the state directory, files written beside the work, clocks."""
