"""The disks of the machine: identity, location and contents."""
