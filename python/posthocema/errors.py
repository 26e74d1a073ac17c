# SPDX-License-Identifier: Apache-2.0
"""One exception for each exit status of the program."""

from __future__ import annotations

from typing import Dict, Type


class Error(Exception):
    """A failed call. ``str(error)`` is one sentence; ``error.status`` is the exit status of the program."""

    status: int = 70


class TooInaccurate(Error):
    """The predicted error is above ``max_error`` (status 1)."""

    status = 1


class UsageError(Error, ValueError):
    """An option has an invalid value, or conflicts with another (status 2)."""

    status = 2


class FileError(Error, OSError):
    """A file is unreadable, corrupt, or has refused contents (status 3)."""

    status = 3


class InputsError(Error):
    """The snapshots do not agree or lack information (status 4)."""

    status = 4


class TargetError(Error, ValueError):
    """The target cannot be reached from these snapshots (status 5)."""

    status = 5


class OutputError(Error, OSError):
    """An output exists, cannot be written, or has no space (status 6)."""

    status = 6


class ResourceError(Error, MemoryError):
    """Not enough memory within the limit, or no threads (status 7)."""

    status = 7


class Cancelled(Error):
    """The run was stopped, and nothing was published (status 8)."""

    status = 8


class Bug(Error):
    """The library found a fault of its own (status 70)."""

    status = 70


_BY_STATUS: Dict[int, Type[Error]] = {
    kind.status: kind
    for kind in (
        TooInaccurate,
        UsageError,
        FileError,
        InputsError,
        TargetError,
        OutputError,
        ResourceError,
        Cancelled,
        Bug,
    )
}


def error_of(status: int, message: str) -> Error:
    """The exception of a status."""
    return _BY_STATUS.get(status, Bug)(message)
