"""What the harness raises."""

from __future__ import annotations


class VmError(Exception):
    """The harness could not do what it was asked; the message says what and why."""


class NotAvailableError(VmError):
    """The virtual machines cannot run here at all (no QEMU, not root, …)."""
