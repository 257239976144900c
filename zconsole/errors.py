"""The errors that commands report, and the exit code of each."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """Exit codes of all commands, on which scripts rely; no others are returned."""

    OK = 0
    FAILED = 1
    USAGE = 2
    NOT_FOUND = 3
    UNAVAILABLE = 4
    NOT_UNDERSTOOD = 5
    DEGRADED = 10
    FAULTED = 11
    CANCELED = 12
    INTERRUPTED = 130
    """128 + SIGINT, as shells report a program that Ctrl-C has ended."""


class ZconsoleError(Exception):
    """An error with a one-line message for the operator and an exit code."""

    code = ExitCode.FAILED


class UsageError(ZconsoleError):
    """The command line is wrong or contradictory."""

    code = ExitCode.USAGE


class NotFoundError(ZconsoleError):
    """A pool or file does not exist."""

    code = ExitCode.NOT_FOUND


class UnavailableError(ZconsoleError):
    """ZFS is not on this machine, does not answer, or permission is denied."""

    code = ExitCode.UNAVAILABLE


class NotUnderstoodError(ZconsoleError):
    """Input is damaged, or not the output of any known version of ZFS."""

    code = ExitCode.NOT_UNDERSTOOD
