"""Virtual machines with a real OpenZFS: images built from Debian's packages, run by QEMU."""
