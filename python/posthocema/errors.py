# SPDX-License-Identifier: Apache-2.0
"""One exception for each exit status of the program."""

from __future__ import annotations

import errno
import os
import re
from typing import Any, Dict, Optional, Type


class Error(Exception):
    """A failed call. ``str(error)`` is one sentence; ``error.status`` is the exit status of the program."""

    status: int = 70


class TooInaccurate(Error):
    """The predicted error is above ``max_error`` (status 1)."""

    status = 1


class UsageError(Error, ValueError):
    """An option has an invalid value, or conflicts with another (status 2)."""

    status = 2


class _SystemError(Error, OSError):
    """Has errno and filename where the system gave the reason; is then also what OSError makes of this errno."""

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""

    def __reduce__(self) -> Any:
        return of_system, (self.status, str(self), self.errno, self.filename)


class FileError(_SystemError):
    """A file is unreadable, corrupt, or has refused contents (status 3)."""

    status = 3


class InputsError(Error):
    """The snapshots do not agree or lack information (status 4)."""

    status = 4


class TargetError(Error, ValueError):
    """The target cannot be reached from these snapshots (status 5)."""

    status = 5


class OutputError(_SystemError):
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


_KINDS = (TooInaccurate, UsageError, FileError, InputsError, TargetError, OutputError, ResourceError, Cancelled, Bug)
_BY_STATUS: Dict[int, Type[Error]] = {kind.status: kind for kind in _KINDS}


def of_system(status: int, message: str, number: Optional[int], filename: Any) -> Any:
    """A FileError or OutputError, which is also a FileNotFoundError, PermissionError, ... by its errno."""
    kind = _BY_STATUS[status]
    system = OSError if number is None else type(OSError(number, ""))
    if not issubclass(kind, system):
        kind = type(kind.__name__, (kind, system), {"__module__": kind.__module__, "__doc__": kind.__doc__})
    error: Any = kind(message)
    error.errno, error.filename = number, filename
    return error


def error_of(status: int, message: str) -> Error:
    """The exception of a status. The message has the words of the system, if it failed, after the name of the file."""
    kind = _BY_STATUS.get(status, Bug)
    if not issubclass(kind, _SystemError):
        return kind(message)
    numbers = {os.strerror(number): number for number in errno.errorcode}
    numbers.update({"exists already": errno.EEXIST, "exists already and is not a directory": errno.EEXIST})
    filename, *parts = re.split("[:;] ", message)
    number = next((numbers[part] for part in parts if part in numbers), None)
    error: Error = of_system(status, message, number, None if number is None else filename)
    return error
