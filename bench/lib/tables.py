# SPDX-License-Identifier: Apache-2.0
"""Tables in Markdown, printed row by row during the measurements."""
import os
import platform


class Table:
    def __init__(self, title, columns, note=""):
        print("\n## %s\n" % title)
        if note:
            print(note + "\n")
        print("| " + " | ".join(columns) + " |")
        print("|" + "---|" * len(columns), flush=True)

    def row(self, *cells):
        print("| " + " | ".join(str(cell) for cell in cells) + " |", flush=True)


def shown_seconds(times, name):
    """Median and range."""
    if name not in times.runs:
        return "-"
    low, high = times.range(name)
    return "%.3f (%.3f-%.3f)" % (times.median(name), low, high)


def shown_bytes(size_bytes):
    return "%.1f MiB" % (size_bytes / 1048576)


def shown_machine():
    model = "unknown processor"
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        for line in file:
            if line.startswith("model name"):
                model = line.partition(":")[2].strip()
                break
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return "%d processors (%s), %.0f GiB of memory, Linux %s" % (
        len(os.sched_getaffinity(0)), model, memory / 2**30, platform.release().partition("-")[0])
