# SPDX-License-Identifier: Apache-2.0
"""Runs and times commands: medians over interleaved runs, ratios run by run, peaks of memory."""
import json
import os
import statistics
import subprocess
import threading
import time

WATCH_EVERY_S = 0.002


class Failed(Exception):
    """A command failed that should succeed."""


class Command:
    """A timed command: its arguments, the files it makes (removed before and after), and its output."""

    def __init__(self, argv, outputs=()):
        self.argv = [str(word) for word in argv]
        self.outputs = [str(path) for path in outputs]

    def clear(self):
        for path in self.outputs:
            if os.path.isdir(path):
                for name in os.listdir(path):
                    os.unlink(os.path.join(path, name))
            elif os.path.exists(path):
                os.unlink(path)


class Run:
    """One run: seconds from start to end, peak of all resident memory, its output."""

    def __init__(self, seconds, max_rss_bytes, stdout, peaks=None):
        self.peaks = peaks
        self.seconds = seconds
        self.max_rss_bytes = max_rss_bytes
        self.stdout = stdout

    @property
    def json(self):
        return json.loads(self.stdout)


def start(argv):
    # files, not pipes: the command never waits for a reader
    stdout, stderr = os.memfd_create("stdout"), os.memfd_create("stderr")
    return subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr), stdout, stderr


def read_all(fd):
    with os.fdopen(fd, "rb") as file:
        file.seek(0)
        return file.read()


def finish(process, stdout, stderr):
    text, errors = read_all(stdout), read_all(stderr)
    if process.returncode != 0:
        raise Failed("%s ended with status %d: %s" % (" ".join(process.args[:6]), process.returncode,
                                                      errors.decode(errors="replace")[-800:]))
    return text


def run_once(argv):
    begin = time.monotonic()
    process, stdout, stderr = start(argv)
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.monotonic() - begin
    process.returncode = os.waitstatus_to_exitcode(status)
    return Run(seconds, usage.ru_maxrss * 1024, finish(process, stdout, stderr))


def look(peaks, pid, is_over):
    """Keeps the largest values of /proc/PID/status."""
    while not is_over.wait(WATCH_EVERY_S):
        try:
            with open("/proc/%d/status" % pid, encoding="ascii") as file:
                for line in file:
                    name, _, value = line.partition(":")
                    if name in peaks:
                        peaks[name] = max(peaks[name], int(value.split()[0]) * 1024)
        except (FileNotFoundError, ProcessLookupError):
            return


def watch(argv):
    """The same, with peaks of RssAnon and RssFile. Sampling takes a few percent of a processor."""
    begin = time.monotonic()
    process, stdout, stderr = start(argv)
    peaks, is_over = {"RssAnon": 0, "RssFile": 0}, threading.Event()
    thread = threading.Thread(target=look, args=(peaks, process.pid, is_over))
    thread.start()
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.monotonic() - begin
    is_over.set()
    thread.join()
    process.returncode = os.waitstatus_to_exitcode(status)
    return Run(seconds, usage.ru_maxrss * 1024, finish(process, stdout, stderr), peaks)


class Times:
    """The runs of several commands in turn."""

    def __init__(self, names):
        self.runs = {name: [] for name in names}

    def seconds(self, name):
        return [run.seconds for run in self.runs[name]]

    def median(self, name):
        return statistics.median(self.seconds(name))

    def range(self, name):
        return min(self.seconds(name)), max(self.seconds(name))

    def ratio(self, above, below, shift=None):
        """Median of the ratios of each turn; shift = (a, b): commands whose times are subtracted, or None."""
        values = []
        for i in range(len(self.runs[above])):
            top, bottom = self.runs[above][i].seconds, self.runs[below][i].seconds
            if shift:
                top -= self.runs[shift[0]][i].seconds if shift[0] else 0
                bottom -= self.runs[shift[1]][i].seconds if shift[1] else 0
            values.append(top / bottom if bottom > 0 else float("nan"))
        return statistics.median(values)


def interleave(commands, n_runs, before_each=None):
    """Runs the commands of {name: Command} in turn, n_runs times. Each turn begins with another command, so
    that none always follows the same one. Outputs are removed while nothing is timed."""
    names = list(commands)
    times = Times(names)
    for turn in range(n_runs):
        for i in range(len(names)):
            name = names[(turn + i) % len(names)]
            commands[name].clear()
            if before_each:
                before_each(name)
            times.runs[name].append(run_once(commands[name].argv))
            commands[name].clear()
    return times


def warm(files):
    """Reads files into the page cache."""
    buffer = bytearray(1 << 20)
    for path in files:
        with open(path, "rb", buffering=0) as file:
            while file.readinto(buffer):
                pass


def cool(files):
    """Evicts files from the page cache."""
    for path in files:
        fd = os.open(path, os.O_RDONLY)
        os.fsync(fd) # a page that is not stored yet stays
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(fd)


def is_cached(path):
    """True if the first page of a file is in memory: cool() failed, and a run would be warm."""
    import ctypes
    import mmap
    libc = ctypes.CDLL(None, use_errno=True)
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY) as view:
        address = ctypes.addressof(ctypes.c_char.from_buffer(view))
        pages = (len(view) + mmap.PAGESIZE - 1) // mmap.PAGESIZE
        present = (ctypes.c_ubyte * pages)()
        libc.mincore(ctypes.c_void_p(address), ctypes.c_size_t(len(view)), present)
        return sum(present) > pages // 100
