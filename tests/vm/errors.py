"""Exceptions of the harness."""

from __future__ import annotations


class VmError(Exception):
    """The harness could not do what it was asked; the message has the details."""


class NotAvailableError(VmError):
    """The virtual machines cannot run here at all (no QEMU, not root, …)."""
