"""Access to the operating system: processes, the state directory, its files, mounts and clocks."""
