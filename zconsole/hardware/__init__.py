"""The disks of the machine: what they are, where they are, and what tells them apart."""
