# SPDX-License-Identifier: Apache-2.0
"""The commands that are measured: synth, and references that read, add and write no more than needed."""
import os
import subprocess

from lib.measure import Command

READ_AND_WRITE = """
n=$1 out=$2; shift 2
cat "$@" >/dev/null
for i in $(seq "$n"); do dd if="$1" of="$out.$i" bs=1M conv=fsync status=none; done
"""


class Commands:
    """program, minimal, slow_mount: paths. out: the directory of outputs."""

    def __init__(self, program, minimal, slow_mount, data, out):
        self.program, self.minimal, self.slow_mount = program, minimal, slow_mount
        self.data, self.out = data, out
        done = subprocess.run([program, "synth", "--help"], stdout=subprocess.PIPE, check=True)
        self.help = done.stdout.decode()
        done = subprocess.run([program, "--help"], stdout=subprocess.PIPE, check=True)
        self.verbs = done.stdout.decode()

    def offers(self, option):
        return option in self.help

    def widths(self, n_targets):
        if n_targets == 1:
            return "0.1"
        return ",".join("%.5f" % (0.06 + 0.18 * m / (n_targets - 1)) for m in range(n_targets))

    def synth(self, name, n_targets=1, threads=0, options=(), suffix=".safetensors"):
        out = os.path.join(self.out, "synth-%d" % n_targets + ("/" if n_targets > 1 else suffix))
        threads = ["-j", threads] if threads else []
        return Command([self.program, "synth", "--quiet", "--force", "--json", *threads, *options,
                        "--sigma-rel", self.widths(n_targets), self.data.path(name), out],
                       [out, out + ".json"])

    def team(self, name, n_targets, n_processes, options=()):
        """synth by several processes of Open MPI, of one thread each."""
        synth = self.synth(name, n_targets, options=options)
        mpirun = ["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "-n", n_processes]
        return Command([*mpirun, self.program + "-mpi.openmpi", *synth.argv[1:], "-j", 1], synth.outputs)

    def verb(self, verb, name):
        """A verb that makes no output."""
        return Command([self.program, verb, "--quiet", "--json", "--sigma-rel", "0.1", self.data.path(name)])

    def inspect(self, path):
        return Command([self.program, "inspect", "--json", path])

    def least(self, name, threads=0, dtype="f16", pattern="mmap"):
        """The minimal reference, for safetensors files only. pattern: how it reads."""
        out = os.path.join(self.out, "minimal")
        threads = ["-j", threads] if threads else []
        return Command([self.minimal, *threads, "-t", dtype, "-p", pattern, "-o", out, *self.data.files(name)],
                       [out])

    def on_slow_device(self, command, name, delay_ms, rate_mb):
        """The command with a view of a set, in which reads take time, in the place of the set."""
        at, view = self.data.path(name), self.data.path("out/view")
        os.makedirs(view, exist_ok=True)
        argv = [word.replace(at + "/", view + "/") if word.startswith(at + "/") else view if word == at else word
                for word in command.argv]
        return Command([self.slow_mount, "--delay", delay_ms, "--rate", rate_mb, at, view, *argv],
                       command.outputs)

    def write(self, name, n_targets, threads=0):
        """Only writes as many bytes as the outputs have."""
        out = os.path.join(self.out, "written")
        threads = ["-j", threads] if threads else []
        size = os.path.getsize(self.data.files(name)[0]) * n_targets
        return Command([self.minimal, *threads, "-o", out, "-w", size], [out])

    def read(self, name):
        return Command(["sh", "-c", 'cat "$@" >/dev/null', "sh", *self.data.files(name)])

    def heads(self, name):
        """The beginning of each file, one after the other."""
        return Command(["sh", "-c", 'for f; do dd if="$f" of=/dev/null bs=4k count=1 status=none; done', "sh",
                        *self.data.files(name)])

    def decompress(self, name):
        return Command(["sh", "-c", 'zstd -dcq "$@" >/dev/null', "sh", *self.data.files(name)])

    def read_and_write(self, name, n_targets=1):
        """`cat` of the inputs, then as many bytes as the outputs have with `dd conv=fsync`."""
        out = os.path.join(self.out, "copied")
        return Command(["sh", "-c", READ_AND_WRITE, "sh", n_targets, out, *self.data.files(name)],
                       ["%s.%d" % (out, i + 1) for i in range(n_targets)])
