# SPDX-License-Identifier: Apache-2.0
"""The tables of bench/run, one function each. A row is measured in turn with its references; bench.ratios
receives the ratios for the summary."""
import json
import os
import shutil
import statistics
import subprocess
import sys

from lib.measure import Command, Failed, cool, interleave, is_cached, run_once, warm, watch
from lib.tables import Table, shown_bytes, shown_seconds

COLUMNS = ["snapshots", "synth [s]", "input [GB/s]", "minimal [s]", "`cat` [s]", "`cat` + write [s]",
           "/ minimal", "/ `cat`", "/ (`cat` + write)", "peak anonymous"]
DURABLE = "One target, output on disk and durable (fsync) in all columns that write; files in the page cache."


def row(bench, table, label, name, commands, before_each=None):
    """One target, compared with references among minimal, read, read+write."""
    if not before_each:
        warm(bench.data.files(name))
    times = interleave(commands, bench.n_runs, before_each)
    ratio = lambda below: "%.2f" % times.ratio("synth", below) if below in commands else "-"
    table.row(label, shown_seconds(times, "synth"),
              "%.1f" % (bench.data.bytes(name) / 1e9 / times.median("synth")),
              *(shown_seconds(times, yardstick) for yardstick in ("minimal", "read", "read+write")),
              ratio("minimal"), ratio("read"), ratio("read+write"),
              shown_bytes(max(run.json["peak_anonymous_bytes"] for run in times.runs["synth"])))
    return times


def yardsticks(bench, name, dtype="f16", threads=0):
    on = bench.on_disk
    return {"synth": on.synth(name, threads=threads), "minimal": on.least(name, threads, dtype),
            "read": on.read(name), "read+write": on.read_and_write(name)}


def dtypes(bench):
    table = Table("Types of numbers", COLUMNS, DURABLE)
    for dtype in ("f16", "bf16", "f32"):
        name = bench.data.usual(dtype)
        times = row(bench, table, name, name, yardsticks(bench, name, dtype))
        if dtype == "f16":
            bench.ratios["K=1 / minimal reference"] = (times.ratio("synth", "minimal"), 1.15)
            bench.ratios["K=1 / (cat + write + fsync)"] = (times.ratio("synth", "read+write"), 0.8)
        else:
            bench.data.drop(name)


def snapshots(bench):
    table = Table("Numbers of snapshots", COLUMNS, DURABLE)
    for n_snapshots in (8, 32, 128):
        name = bench.data.usual("f16", n_snapshots)
        row(bench, table, name, name, yardsticks(bench, name))
        if n_snapshots != 32:
            bench.data.drop(name)


def targets(bench):
    name, on = bench.data.usual(), bench.in_memory
    counts = (1, 8, 25, 64)
    table = Table("Numbers of targets (%s)" % name,
                  ["targets", "synth [s]", "writing alone [s]", "/ minimal", "/ `cat`",
                   "/ one target, without writing", "peak anonymous"],
                  "Outputs on tmpfs. Writing alone: as many bytes with pwrite of 1 MiB by all threads, in the same "
                  "turn; taken off both times in the last ratio.")
    commands = {"minimal": on.least(name), "read": on.read(name)}
    for n in counts:
        commands["K=%d" % n] = on.synth(name, n)
        commands["write %d" % n] = on.write(name, n)
    warm(bench.data.files(name))
    times = interleave(commands, bench.n_runs)
    for n in counts:
        key, write = "K=%d" % n, "write %d" % n
        growth = times.ratio(key, "K=1", (write, "write 1"))
        table.row(n, shown_seconds(times, key), shown_seconds(times, write),
                  "%.2f" % times.ratio(key, "minimal"), "%.2f" % times.ratio(key, "read"), "%.2f" % growth,
                  shown_bytes(max(run.json["peak_anonymous_bytes"] for run in times.runs[key])))
        if n == 25:
            bench.ratios["K=25 / K=1, both without writing"] = (growth, 6)


def threads(bench):
    name, on = bench.data.usual(), bench.in_memory
    counts = sorted({1, min(2, bench.n_threads), bench.n_threads})
    kinds = ("K=1", "minimal", "K=25", "write")
    table = Table("Threads (%s)" % name,
                  ["threads", "one target [s]", "minimal [s]", "25 targets [s]", "writing alone [s]",
                   "one thread / these: one target", "minimal", "25 targets", "writing", "25 without writing"],
                  "Outputs on tmpfs. Writing alone: the bytes of 25 outputs, by as many threads.")
    commands = {}
    for n in counts:
        commands["K=1 j%d" % n] = on.synth(name, 1, n)
        commands["minimal j%d" % n] = on.least(name, n)
        commands["K=25 j%d" % n] = on.synth(name, 25, n)
        commands["write j%d" % n] = on.write(name, 25, n)
    warm(bench.data.files(name))
    times = interleave(commands, bench.n_runs)
    for n in counts:
        growth = times.ratio("K=25 j1", "K=25 j%d" % n, ("write j1", "write j%d" % n))
        table.row(n, *(shown_seconds(times, "%s j%d" % (kind, n)) for kind in kinds),
                  *("%.2f" % times.ratio("%s j1" % kind, "%s j%d" % (kind, n)) for kind in kinds),
                  "%.2f" % growth)
        if n == 2:
            bench.ratios["one thread / two threads, K=25"] = (times.ratio("K=25 j1", "K=25 j2"), -1.7)
            bench.ratios["the same without writing"] = (growth, -1.7)


SAME = ["what", "synth [s]", "the minimal program", "minimal [s]", "`cat` [s]", "/ minimal", "/ `cat`"]
IN_FLIGHT = 32  # of the minimal program, past the page cache


def beside_same(bench, table, name, label, synth, pattern, minimal, read=None, before_each=None):
    """synth and the minimal program that reads in the same way, in turn; read: `cat`, or nothing."""
    commands = {"synth": synth, "minimal": minimal, **({"read": read} if read else {})}
    times = interleave(commands, bench.n_runs, before_each)
    table.row(label, shown_seconds(times, "synth"), pattern, shown_seconds(times, "minimal"),
              shown_seconds(times, "read") if read else "-", "%.2f" % times.ratio("synth", "minimal"),
              "%.2f" % times.ratio("synth", "read") if read else "-")
    return times


def cold(bench):
    name, on = bench.data.usual(), bench.on_disk
    files = bench.data.files(name)
    table = Table("Cold files (%s)" % name, SAME,
                  "One target, output on disk and durable; the inputs are taken out of the page cache (posix_fadvise) "
                  "before each run.")

    def before_each(_):
        cool(files)
        if is_cached(files[0]):
            raise Failed("%s stays in the page cache: cold files cannot be measured here" % files[0])
    direct = "direct:%d" % IN_FLIGHT
    kinds = [("default", (), direct), ("--io read", ("--io", "read"), "read"),
             ("--io direct", ("--io", "direct"), direct), ("--io mmap", ("--io", "mmap"), "mmap")]
    for label, options, pattern in kinds[:2] if bench.is_io else kinds:
        times = beside_same(bench, table, name, label, on.synth(name, options=options), pattern,
                            on.least(name, pattern=pattern), on.read(name), before_each)
        if label == "default":
            bench.ratios["cold / minimal, %s" % direct] = (times.ratio("synth", "minimal"), 1.1)
    table = Table("Cold files, nothing written", ["what", "[s]"])
    commands = {verb: on.verb(verb, name) for verb in ("weights", "plan")}
    times = interleave(commands, bench.n_runs, before_each)
    for verb in commands:
        table.row(verb, shown_seconds(times, verb))


def latency(bench):
    """A device that answers each read late, but many at once."""
    name, on, rate_mb = bench.data.delayed(), bench.on_disk, 1000
    if subprocess.run([on.slow_mount, bench.data.path(name), bench.data.path("out"), "true"],
                      capture_output=True, check=False).returncode:
        print("\nNo table of latency: mounting with FUSE is not allowed here.")
        return
    table = Table("Latency (%s)" % name, SAME,
                  "A device that answers a read after so long, any number at once, and transfers %d MB/s; simulated "
                  "(tests/support/slow_mount.c). One target, output on disk and durable." % rate_mb)
    slow = lambda command: on.on_slow_device(command, name, delay_ms, rate_mb)
    for delay_ms in (1, 5, 20):
        pattern = "direct:%d" % (2 * IN_FLIGHT)
        times = beside_same(bench, table, name, "%d ms" % delay_ms, slow(on.synth(name)), pattern,
                            slow(on.least(name, pattern=pattern)), None if bench.is_io else slow(on.read(name)))
        if delay_ms == 20:
            bench.ratios["reads of 20 ms / minimal, %s" % pattern] = (times.ratio("synth", "minimal"), 1.2)
    many = bench.data.many()
    table = Table("Latency, headers and samples", ["snapshots", "weights [s]", "`cat` of the first 4 KiB of each [s]"])
    for name in (name, many):
        for delay_ms in (1, 5, 20):
            commands = {"weights": slow(on.verb("weights", name))}
            if not bench.is_io:
                commands["heads"] = slow(on.heads(name))
            times = interleave(commands, min(bench.n_runs, 3))
            table.row("%s, %d ms" % (name, delay_ms),
                      *(shown_seconds(times, what) if what in commands else "-" for what in ("weights", "heads")))
    delay_ms, source = 5, bench.data.delayed()
    table = Table("Latency, 5 ms", ["snapshots", "weights [s]", "synth [s]"],
                  "The same device; snapshots of 8 shards each, and compressed ones.")
    for name in (source, bench.data.sharded(source), bench.data.compressed(source, True)):
        times = interleave({"weights": slow(on.verb("weights", name)), "synth": slow(on.synth(name))},
                           min(bench.n_runs, 3))
        table.row(name, shown_seconds(times, "weights"), shown_seconds(times, "synth"))


def warm_files(bench):
    name, on = bench.data.usual(), bench.in_memory
    table = Table("Warm files (%s)" % name, SAME, "One target, files in the page cache, output on tmpfs.")
    warm(bench.data.files(name))
    for label, options, pattern in (("default", (), "read"), ("--io mmap", ("--io", "mmap"), "mmap")):
        times = beside_same(bench, table, name, label, on.synth(name, options=options), pattern,
                            on.least(name, pattern=pattern), on.read(name))
        if label == "default":
            bench.ratios["warm / minimal, read"] = (times.ratio("synth", "minimal"), 1.15)


def write(bench):
    name, on = bench.data.usual(), bench.on_disk
    table = Table("Writing (%s)" % name, ["targets", "synth [s]", "writing alone [s]", "writing alone / synth"],
                  "Outputs on disk and durable, files in the page cache. Writing alone: as many bytes into one file.")
    warm(bench.data.files(name))
    for n in (1, 25):
        # a file accepts the bytes of one thread at a time
        times = interleave({"synth": on.synth(name, n), "write": on.write(name, n, threads=1)}, bench.n_runs)
        ratio = times.ratio("write", "synth")
        table.row(n, shown_seconds(times, "synth"), shown_seconds(times, "write"), "%.2f" % ratio)
        if n == 25:
            bench.ratios["writing alone / K=25 on disk"] = (ratio, -0.9)


def distributed(bench):
    name, on = bench.data.usual(), bench.in_memory
    table = Table("Distributed checkpoints (%s)" % name, ["ranks", "synth [s]", "safetensors [s]", "safetensors / synth"],
                  "One target, output on tmpfs: `--ranks` beside one safetensors file of the same tensors.")
    warm(bench.data.files(name))
    for ranks in (1, 8):
        times = interleave({"dcp": on.synth(name, options=("--ranks", ranks), suffix="-dcp/"),
                            "safetensors": on.synth(name)}, bench.n_runs)
        ratio = times.ratio("safetensors", "dcp")
        table.row(ranks, shown_seconds(times, "dcp"), shown_seconds(times, "safetensors"), "%.2f" % ratio)
        bench.ratios["safetensors / %d ranks" % ranks] = (ratio, -0.9)
    opening(bench)


def opening(bench):
    n, on = bench.data.scale.n_small_tensors, bench.on_disk
    one = bench.data.files(bench.data.small_tensors())[0]
    many = os.path.join(bench.data.path(bench.data.distributed_small_tensors()), "checkpoint")
    warm([one])
    times = interleave({"dcp": on.inspect(many), "safetensors": on.inspect(one)}, bench.n_runs)
    table = Table("Opening a distributed checkpoint", ["tensors", "ranks", "inspect [s]", "safetensors [s]"],
                  "`inspect --json`, which also prints the tensors.")
    table.row(n, 64, shown_seconds(times, "dcp"), shown_seconds(times, "safetensors"))
    bench.ratios["opening %d tensors on 64 ranks [s]" % n] = (times.median("dcp"), 1)


def processes(bench):
    """The start of MPI is in the figures, and in a column of its own."""
    name, on = bench.data.usual(), bench.in_memory
    if not shutil.which("mpirun.openmpi") or not os.path.exists(on.program + "-mpi.openmpi"):
        print("skipped: processes, for lack of Open MPI", file=sys.stderr)
        return
    table = Table("Processes (%s)" % name, ["targets", "two threads [s]", "two processes [s]", "start of MPI [s]",
                                            "two processes / two threads", "the same without the start"],
                  "Outputs on tmpfs, files in the page cache: `mpirun -n 2 posthoc-ema-mpi` beside `posthoc-ema -j 2`.")
    warm(bench.data.files(name))
    for n, options in (1, ()), (8, ()), (25, ("--accumulate", "f64")):
        team = on.team(name, n, 2, options)
        start = Command([*team.argv[:6], "--version"])
        threads = on.synth(name, n, threads=2, options=options)
        times = interleave({"threads": threads, "processes": team, "start": start}, bench.n_runs)
        ratio = times.ratio("processes", "threads")
        table.row(" ".join([str(n), *options]), *(shown_seconds(times, which) for which in ("threads", "processes", "start")),
                  "%.2f" % ratio, "%.2f" % times.ratio("processes", "threads", ("start", None)))
        bench.ratios["two processes / two threads, %d targets" % n] = (ratio, 1.05)


def small(bench):
    one, many, on = bench.data.one_tensor(), bench.data.small_tensors(), bench.in_memory
    table = Table("Small tensors", ["snapshots", "synth [s]", "minimal [s]", "`cat` [s]", "/ minimal", "/ `cat`",
                                    "/ one tensor", "peak anonymous"],
                  "One target, output on tmpfs: %d tensors of 1 KB beside one tensor of the same bytes."
                  % bench.data.scale.n_small_tensors)
    commands = {}
    for name in (one, many):
        commands.update({"synth " + name: on.synth(name), "minimal " + name: on.least(name),
                         "read " + name: on.read(name)})
        warm(bench.data.files(name))
    times = interleave(commands, bench.n_runs)
    for name in (one, many):
        synth = "synth " + name
        table.row(name, *(shown_seconds(times, kind + name) for kind in ("synth ", "minimal ", "read ")),
                  *("%.2f" % times.ratio(synth, kind + name) for kind in ("minimal ", "read ")),
                  "%.2f" % times.ratio(synth, "synth " + one),
                  shown_bytes(max(run.json["peak_anonymous_bytes"] for run in times.runs[synth])))
    bench.ratios["100 000 small tensors / one tensor"] = (times.ratio("synth " + many, "synth " + one), 2)
    bench.data.drop(one)
    bench.data.drop(many)


def formats(bench):
    usual, on = bench.data.usual(), bench.on_disk
    table = Table("Formats (%s)" % usual, COLUMNS, DURABLE + " The minimal reference reads the same snapshots as "
                  "safetensors; of compressed files `cat` is `zstd -dc`.")
    pt = ("--name-regex", r"^0\.(?<time>[0-9]+)\.(?<sigma>.*)\.pt$")
    kinds = [("safetensors", lambda: usual, (), ".safetensors"),
             (".pt to .pt", lambda: bench.data.torch_files(usual, "pt"), pt, ".pt"),
             (".pt to .safetensors", lambda: bench.data.torch_files(usual, "pt"), pt, ".safetensors"),
             (".pkl to .pkl", lambda: bench.data.torch_files(usual, "pkl"), (), ".pkl"),
             (".zst with a seek table", lambda: bench.data.compressed(usual, True), (), ".safetensors"),
             (".zst, one frame", lambda: bench.data.compressed(usual, False), (), ".safetensors")]
    for label, make, options, suffix in kinds:
        name = make()
        if not name:
            table.row(label, "torch is not importable", *["-"] * (len(COLUMNS) - 2))
            continue
        commands = yardsticks(bench, usual)
        commands["synth"] = on.synth(name, options=options, suffix=suffix)
        commands["read"] = on.decompress(name) if "zst" in label else on.read(name)
        commands["read+write"] = on.read_and_write(name)
        if "zst" in label:
            del commands["read+write"]
        warm(bench.data.files(usual))
        times = row(bench, table, label, name, commands)
        if "zst" in label:
            bench.ratios["%s / zstd -dc" % label] = (times.ratio("synth", "read"), 0.6)
        if name != usual and label != ".pt to .pt" and "zst" not in label:
            bench.data.drop(name)
    frames, one = (bench.data.compressed(usual, with_table) for with_table in (True, False))
    times = interleave({"frames": on.synth(frames), "one": on.synth(one, threads=1)}, bench.n_runs)
    bench.ratios[".zst: one frame on one thread / a seek table on all"] = (times.ratio("one", "frames"), -1.8)
    bench.data.drop(frames)
    bench.data.drop(one)


def many(bench):
    name, on = bench.data.many(), bench.in_memory
    n = bench.data.scale.n_many
    table = Table("%d snapshots of %d tensors" % (n, n), ["what", "seconds", "/ `cat`", "/ minimal"],
                  "%.1f GB, files in the page cache, output on tmpfs." % (bench.data.bytes(name) / 1e9))
    commands = {"synth": on.synth(name), "`cat`": on.read(name), "minimal": on.least(name)}
    verbs = ["weights"] + (["plan"] if " plan " in on.verbs else [])
    for verb in verbs:
        commands[verb] = on.verb(verb, name)
    commands["inspect"] = on.inspect(bench.data.path(name))
    warm(bench.data.files(name))
    times = interleave(commands, bench.n_runs)
    for what in [*verbs, "inspect", "synth", "`cat`", "minimal"]:
        table.row(what, shown_seconds(times, what), "%.2f" % times.ratio(what, "`cat`"),
                  "%.2f" % times.ratio(what, "minimal"))
    bench.ratios["%s of 1000 x 1000 [s]" % verbs[-1]] = (times.median(verbs[-1]), 1)
    bench.ratios["synth of 1000 x 1000 / reading (cat)"] = (times.ratio("synth", "`cat`"), 1.15)
    for verb in ("weights", "inspect"): # 0.35 s where `cat` took 0.7
        bench.ratios["%s of 1000 x 1000 / reading (cat)" % verb] = (times.ratio(verb, "`cat`"), 0.5)
    # not plan, which measures bandwidths
    without = statistics.median(a - b for a, b in zip(times.seconds("synth"), times.seconds("weights")))
    bench.ratios["the same without weights"] = (without / times.median("`cat`"), 1.2)
    bench.data.drop(name)


def memory(bench):
    table = Table("Memory", ["checkpoint", "snapshots", "targets", "options", "peak RssAnon", "peak RssFile",
                             "seconds"],
                  "Largest values of /proc/PID/status, read every 2 ms. Hard links: many names for few files, "
                  "each mapped for itself.")
    scale, on = bench.data.scale, bench.in_memory
    sets = [("small", 4, scale.file_bytes), ("large", 2, scale.large_bytes)]
    anonymous = []
    for label, n_files, size in sets:
        for n_snapshots in (4, 128):
            if bench.is_quick and label == "large" and n_snapshots == 128:
                continue  # reads 512 GB
            name = bench.data.linked("%s-%d" % (label, n_snapshots), n_files, n_snapshots, size)
            cases = [(1, ())]
            if label == "small":
                cases += [(1, ("--max-ram", "16M")), (25, ("--max-ram", "64M"))]
            for n_targets, options in cases:
                command = on.synth(name, n_targets, options=options)
                command.clear()
                try:
                    run = watch(command.argv)
                except Failed as failure:  # a limit that cannot be met is also a result
                    table.row("%.1f GB" % (size / 1e9), n_snapshots, n_targets, " ".join(options),
                              str(failure)[-120:].strip(), "-", "-")
                    continue
                finally:
                    command.clear()
                table.row("%.1f GB" % (size / 1e9), n_snapshots, n_targets, " ".join(options),
                          shown_bytes(run.peaks["RssAnon"]), shown_bytes(run.peaks["RssFile"]), "%.1f" % run.seconds)
                if not options:
                    anonymous.append(run.peaks["RssAnon"] / 1048576)
                    bench.most_mapped = max(bench.most_mapped, run.peaks["RssFile"] / 1048576)
            bench.data.drop(name)
    bench.ratios["peak RssAnon, K=1 [MiB]"] = (max(anonymous), 32)
    bench.ratios["its spread over checkpoints and snapshots [MiB]"] = (max(anonymous) - min(anonymous), 2)
    bench.ratios["peak RssFile / threads [MiB]"] = (bench.most_mapped / bench.n_threads, 64)


def startup(bench):
    """Commands that do next to nothing, compared with the minimal time of a process."""
    table = Table("Start-up", ["command", "[ms]", "beyond `true` [ms]"],
                  "Median, and a tenth of the runs each was faster than; %d runs in turn." % bench.n_starts)
    program = bench.on_disk.program
    usual = bench.data.usual()
    weights, few = "weights of " + usual, bench.data.few_bytes()
    plan, weights_of_few = "plan of " + few, "weights of " + few
    warm(bench.data.files(usual))
    commands = {"true": Command(["true"]), "--version": Command([program, "--version"]),
                "synth --help": Command([program, "synth", "--help"]),
                weights: bench.on_disk.verb("weights", usual),
                weights_of_few: bench.on_disk.verb("weights", few), plan: bench.on_disk.verb("plan", few)}
    times = interleave(commands, bench.n_starts)
    for name in commands:
        seconds = sorted(times.seconds(name))
        table.row("`%s`" % name, "%.2f, %.2f" % (1e3 * times.median(name), 1e3 * seconds[len(seconds) // 10]),
                  "%.2f" % (1e3 * (times.median(name) - times.median("true"))))
    bench.ratios[weights + " [ms]"] = (1e3 * times.median(weights), 30)
    bench.ratios[plan + " [ms]"] = (1e3 * times.median(plan), 100)
    bench.ratios["%s / weights" % plan] = (times.ratio(plan, weights_of_few), 1.2)
    bench.ratios["--version [ms]"] = (1e3 * times.median("--version"), 5)


def waits(bench):
    """Everyday commands, each in turn with the least that a machine has to do for it."""
    usual, many, few, on = bench.data.usual(), bench.data.many(), bench.data.few_bytes(), bench.in_memory
    packed = bench.data.compressed(usual, True)
    average = bench.data.path("out/average.safetensors")
    bench.data.run(on.program, "synth", "--quiet", "--force", "--sigma-rel", "0.1", bench.data.path(usual), average)
    first = Command(["head", "-c", "65536", bench.data.files(usual)[0]])
    table = Table("Who waits for what", ["command", "[s]", "beside", "[s]", "ratio"],
                  "Files in the page cache, outputs on tmpfs.")
    for label, command, beside, least in (
            ("inspect of a file of 100 MB", on.inspect(bench.data.files(usual)[0]), "its first 64 KiB", first),
            ("plan of " + few, on.verb("plan", few), "`head` of each", on.heads(few)),
            ("weights of " + usual, on.verb("weights", usual), "`head` of each", on.heads(usual)),
            ("synth of " + usual, on.synth(usual), "`cat`", on.read(usual)),
            ("the same, 25 targets", on.synth(usual, 25), "writing alone", on.write(usual, 25)),
            ("the same from .zst", on.synth(packed), "`zstd -dc`", on.decompress(packed)),
            ("verify of the average", Command([on.program, "verify", "--quiet", average]), "`cat`", on.read(usual)),
            ("inspect of 1000 x 1000 tensors", on.inspect(bench.data.path(many)), "`cat`", on.read(many)),
            ("weights of them", on.verb("weights", many), "`cat`", on.read(many)),
            ("synth of them", on.synth(many), "`cat`", on.read(many))):
        warm(bench.data.files(many if "1000" in label or "them" in label else packed if "zst" in label else usual))
        times = interleave({"ours": command, "least": least}, bench.n_runs)
        table.row(label, shown_seconds(times, "ours"), beside, shown_seconds(times, "least"),
                  "%.2f" % times.ratio("ours", "least"))


EVALUATE = """#!/bin/sh
sleep 1
echo "$1" | sed -E 's/newest/1/; s/.*-([0-9.]+)\\.safetensors/\\1/' | awk '{ print log($1 / 0.123) ^ 2 }'
"""


def search(bench):
    """A search whose command takes a second."""
    name, on = bench.data.usual(), bench.on_disk
    table = Table("Search (%s)" % name, ["scores", "passes", "search [s]", "its commands [s]", "search / commands"],
                  "The command sleeps for a second, then scores a candidate by its width. Files in the page cache.")
    script, out = bench.data.path("out/evaluate"), bench.data.path("out/search/")
    with open(script, "w", encoding="ascii") as file:
        file.write(EVALUATE)
    os.chmod(script, 0o755)
    warm(bench.data.files(name))
    command = Command([on.program, "search", "--quiet", "--json", "--sigma-rel", "0.05:0.25",
                       "--exec", script + " {}", bench.data.path(name), out])
    runs = []
    for _ in range(min(bench.n_runs, 3)):
        shutil.rmtree(out, ignore_errors=True)
        runs.append(run_once(command.argv))
    found = [(run.seconds, sum(score["seconds"] for score in run.json["scores"])) for run in runs]
    ratio = statistics.median(seconds / commands for seconds, commands in found)
    table.row(len(runs[0].json["scores"]), runs[0].json["passes"], "%.2f" % statistics.median(f[0] for f in found),
              "%.2f" % statistics.median(f[1] for f in found), "%.2f" % ratio)
    bench.ratios["search / its commands of a second"] = (ratio, 1.05)


def python(bench):
    """Averages in memory, in one process of Python beside files on tmpfs and a loop of torch."""
    name = bench.data.delayed()
    script = os.path.join(os.path.dirname(__file__), "..", "python", "state_dicts.py")
    build = os.path.dirname(bench.on_disk.program)
    # threads of OpenMP that spin would wait for those of other programs
    environment = {**os.environ, "OMP_WAIT_POLICY": "passive", "PYTHONPATH": os.path.join(os.path.dirname(script), "../../python"),
                   "POSTHOC_EMA_LIBRARY": os.path.join(build, "libposthoc-ema.so")}
    warm(bench.data.files(name))
    done = subprocess.run([bench.data.python, script, bench.data.path(name), os.path.join(bench.in_memory.out, "averages"),
                           str(bench.n_runs), "1", "8"], env=environment, capture_output=True, check=False)
    if done.returncode and b"No module named" in done.stderr:
        print("\nNo table of Python: torch or safetensors cannot be imported; see bench/compare --help.")
        return
    if done.returncode:
        raise Failed(done.stderr.decode()[-800:])
    table = Table("Python (%s)" % name,
                  ["averages", "state_dicts [s]", "run to tmpfs [s]", "loop of torch [s]", "/ run", "loop / state_dicts",
                   "memory beyond the tensors"],
                  "One process of Python, as many threads each; files in the page cache.")
    for count, found in json.loads(done.stdout).items():
        shown = {kind: "%.3f (%.3f-%.3f)" % (statistics.median(found[kind]), min(found[kind]), max(found[kind]))
                 for kind in ("state_dicts", "run", "loop")}
        ratio = lambda a, b: statistics.median(x / y for x, y in zip(found[a], found[b]))
        table.row(count, shown["state_dicts"], shown["run"], shown["loop"], "%.2f" % ratio("state_dicts", "run"),
                  "%.1f" % ratio("loop", "state_dicts"), shown_bytes(found["beyond"]))
        bench.ratios["Python, %s in memory / run to tmpfs" % count] = (ratio("state_dicts", "run"), 1.15 if count == "1" else 1.2)
        bench.ratios["Python, loop of torch / %s in memory" % count] = (ratio("loop", "state_dicts"), -2 if count == "1" else -6)
        bench.ratios["Python, %s in memory: MiB beyond the tensors" % count] = (found["beyond"] / 1048576, 32)


SECTIONS = {"waits": waits, "dtypes": dtypes, "targets": targets, "threads": threads, "snapshots": snapshots, "cold": cold,
            "latency": latency, "warm": warm_files, "write": write, "distributed": distributed, "processes": processes, "small": small, "formats": formats,
            "many": many, "search": search, "python": python, "memory": memory, "startup": startup}
