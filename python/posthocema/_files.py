# SPDX-License-Identifier: Apache-2.0
"""Files that appear whole under their names or not at all. None is written through what lies there already."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import re
import secrets
import shutil
from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, Sequence, Tuple

from .errors import Error, OutputError, of_system

MOST_HEADER = 100_000_000  # bytes, as for safetensors


@contextlib.contextmanager
def naming(path: str) -> Iterator[None]:
    """Failures of the system become OutputError, which names the path; errno and filename are kept."""
    try:
        yield
    except OSError as error:
        if isinstance(error, Error):
            raise
        raise of_system(OutputError.status, f"{path}: {error.strerror or error}", error.errno, path) from error


def sync_directory(path: str) -> None:
    """Makes the names in a directory durable."""
    directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def _tag(run: str) -> str:
    """What the names of a run's partial files have."""
    return "." + re.sub("[^0-9A-Za-z]", "", run)[:12] + "-"


def partial_of(path: str, run: str = "") -> str:
    """A name that no other process has, and that none can foresee."""
    return f"{path}{_tag(run)}{os.getpid()}-{secrets.token_hex(4)}.partial"


def lock(fd: int) -> bool:
    """Holds a partial file or directory until it is closed, so that it is seen to be in work."""
    with contextlib.suppress(OSError):
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    return False


def create(path: str) -> Any:
    """A new file to write, which is locked; not what a link points to, nor a file of another."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
    lock(fd)
    return os.fdopen(fd, "wb")


def _publish(partial: str, path: str, replace: bool) -> None:
    if replace:
        os.replace(partial, path)
        return
    try:
        os.link(partial, path)
    except FileExistsError:
        raise
    except OSError:  # of a filesystem without links
        if os.path.lexists(path):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path) from None
        os.rename(partial, path)
    else:
        os.unlink(partial)


def write_header(file: Any, tensors: Iterable[Tuple[str, str, Sequence[int], int]], metadata: Mapping[str, str]) -> None:
    """The beginning of a safetensors file: names, dtypes, shapes and sizes of the data that follow."""
    header: Dict[str, Any] = {"__metadata__": dict(metadata)}
    at = 0
    for name, dtype, shape, size in tensors:
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    file.write(len(text).to_bytes(8, "little") + text)


def remove(path: str) -> None:
    """A file, or a directory with all in it, if that can be done."""
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path, ignore_errors=True)
    else:
        with contextlib.suppress(OSError):
            os.unlink(path)


def publish_directory(partial: str, path: str, run: str = "") -> None:
    """Gives a directory its name, in place of one that may be replaced."""
    old = partial_of(path, run)
    sync_directory(partial)
    if os.path.lexists(path):
        os.rename(path, old)
    os.rename(partial, path)  # fails where a directory with files has appeared
    sync_directory(os.path.dirname(path) or ".")
    remove(old)


def write_files(files: Mapping[str, Callable[[Any], None]], *, run: str = "", replaces: Callable[[str], bool]) -> None:
    """Writes and syncs a partial file for every path, then gives all their names. A failure leaves none.

    replaces: asked for each path when its file is ready; where it says no, an existing path is an OutputError (EEXIST).
    """
    partials = {path: partial_of(path, run) for path in files}
    opened: List[Any] = []
    try:
        for path, write in files.items():
            with naming(path):
                opened.append(create(partials[path]))
                write(opened[-1])
                opened[-1].flush()
                os.fsync(opened[-1].fileno())
        for path, partial in partials.items():
            with naming(path):
                _publish(partial, path, replaces(path))
    except BaseException:
        for partial in partials.values():
            with contextlib.suppress(OSError):
                os.unlink(partial)
        raise
    finally:
        for file in opened:
            with contextlib.suppress(OSError):  # what was published is synced
                file.close()
    for directory in {os.path.dirname(path) or "." for path in files}:
        with naming(directory):
            sync_directory(directory)


def remove_leftovers(directory: str, run: str) -> None:
    """Removes the partial files and directories that killed processes of a run have left; none that is in work."""
    for entry in list(os.scandir(directory)):
        if _tag(run) not in entry.name or not entry.name.endswith(".partial"):
            continue
        with contextlib.suppress(OSError):
            fd = os.open(entry.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            try:
                if not lock(fd):
                    continue
                remove(entry.path)
            finally:
                os.close(fd)


def probe(directory: str) -> None:
    """Makes a directory, and refuses one that cannot be written."""
    with naming(directory):
        os.makedirs(directory, exist_ok=True)
        partial = partial_of(os.path.join(directory, "probe"))
        create(partial).close()
        os.unlink(partial)
