# SPDX-License-Identifier: Apache-2.0
"""The sets of snapshots for measurements, each made in a directory when it is first needed."""
import json
import os
import shutil
import struct
import subprocess

from lib.measure import Failed


class Scale:
    """Sizes of the sets. A file of the usual set has file_bytes, in 16-bit or other numbers."""

    def __init__(self, is_tiny, scale=1):
        self.file_bytes = 400_000 if is_tiny else int(100_000_000 * scale)
        self.large_bytes = 1_600_000 if is_tiny else 4_000_000_000  # a large checkpoint, for memory
        self.n_small_tensors = 400 if is_tiny else 100_000          # of 1 KB
        self.n_many = 20 if is_tiny else 1000                       # snapshots, and tensors in each


class Data:
    def __init__(self, directory, program, python, scale, is_kept):
        self.directory, self.program, self.python = directory, program, python
        self.scale, self.is_kept = scale, is_kept

    def path(self, name):
        return os.path.join(self.directory, name)

    def files(self, name):
        """The snapshots of a set, sorted, without directories and hidden files."""
        paths = [os.path.join(self.path(name), file) for file in sorted(os.listdir(self.path(name)))]
        return [path for path in paths if os.path.isfile(path)]

    def bytes(self, name):
        return sum(os.path.getsize(path) for path in self.files(name))

    def drop(self, name):
        """Removes a set that no later row needs, unless it is in a directory of the user."""
        if not self.is_kept:
            shutil.rmtree(self.path(name), ignore_errors=True)

    def make(self, name, fill):
        """Calls fill(directory) unless the set is there; it appears whole or not at all."""
        if not os.path.isdir(self.path(name)):
            partial = self.path(name + ".partial")
            shutil.rmtree(partial, ignore_errors=True)
            os.makedirs(partial)
            fill(partial)
            os.rename(partial, self.path(name))
            os.sync()  # pending writes would be measured
        return name

    def run(self, *argv):
        done = subprocess.run([str(word) for word in argv], stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, check=False)
        if done.returncode != 0:
            raise Failed("%s: %s" % (" ".join(map(str, argv[:4])), done.stderr.decode()[-800:]))

    def training(self, name, n_snapshots, n_params, n_tensors=64, dtype="f16"):
        """Snapshots of two widths. One step per time: more steps only take time in gen."""
        n_times = n_snapshots // 2
        return self.make(name, lambda out: self.run(
            self.program, "gen", "--quiet", "--no-sync", "--count", n_times, "--steps", n_times,
            "--params", n_params, "--tensors", n_tensors, "--dtype", dtype, "--truth", "0.1",
            "--truth-dtype", "f16", "--force", out))

    def usual(self, dtype="f16", n_snapshots=32):
        """3.2 GB of snapshots, for any number and dtype."""
        size = self.scale.file_bytes * 32 // n_snapshots
        name = "%s-%dx%dMB" % (dtype, n_snapshots, size // 1_000_000)
        return self.training(name, n_snapshots, size // (4 if dtype == "f32" else 2), dtype=dtype)

    def sharded(self, source):
        """The same snapshots as directories of shards."""
        def fill(out):
            for path in self.files(source):
                to = os.path.join(out, os.path.basename(path)[:-len(".safetensors")])
                self.run(self.program, "synth", "--quiet", "--no-sync", "--convert", "--shard-size",
                         os.path.getsize(path) // 8, path, to + "/")
        return self.make("shards-of-" + source, fill)

    def delayed(self):
        """A quarter of the usual set: on a simulated device."""
        size = self.scale.file_bytes // 4
        return self.training("f16-32x%dMB" % (size // 1_000_000), 32, size // 2)

    def few_bytes(self):
        """32 files of 20 KB."""
        return self.training("f16-32x20KB", 32, 10_000, 8)

    def one_tensor(self):
        return self.training("one-tensor", 32, self.scale.n_small_tensors * 512, 1)

    def small_tensors(self):
        n = self.scale.n_small_tensors
        return self.training("small-tensors", 32, n * 512, n)

    def distributed_small_tensors(self):
        """One snapshot of them as a distributed checkpoint of 64 ranks."""
        def fill(out):
            self.run(self.program, "synth", "--quiet", "--no-sync", "--convert", "--ranks", 64,
                     self.files(self.small_tensors())[0], os.path.join(out, "checkpoint"))
        return self.make("distributed-small-tensors", fill)

    def many(self):
        n = self.scale.n_many
        return self.training("many", n, n * 2048, n)  # tensors of 4 KB

    def compressed(self, source, with_table):
        """zstd, level 1: seekable frames as synth writes them, or the one frame of the zstd tool."""
        def fill(out):
            for path in self.files(source):
                to = os.path.join(out, os.path.basename(path) + ".zst")
                if with_table:
                    self.run(self.program, "synth", "--quiet", "--no-sync", "--level", 1, "--convert",
                             path, to)
                else:
                    self.run("sh", "-c", 'zstd -q -1 <"$1" >"$2"', "sh", path, to)
        return self.make(("zst-of-" if with_table else "zst-one-frame-of-") + source, fill)

    def torch_files(self, source, kind):
        """The same snapshots as .pt or .pkl; None where torch is not importable."""
        script = os.path.join(os.path.dirname(__file__), "..", "python", "save_torch.py")
        try:
            return self.make(kind, lambda out: self.run(self.python, script, kind, self.path(source), out))
        except Failed as failure:
            if "No module named" in str(failure):
                return None
            raise

    def linked(self, name, n_files, n_snapshots, size_bytes):
        """n_snapshots names (hard links) of n_files files, so that a large set fits on a disk and into the
        page cache. Every name is mapped separately, so memory is that of n_snapshots files."""
        def fill(out):
            sources = os.path.join(out, ".sources")
            self.run(self.program, "gen", "--quiet", "--no-sync", "--count", n_files, "--steps", n_files,
                     "--input-sigma", "0.1", "--params", size_bytes // 2, "--tensors", 64, "--dtype",
                     "f16", "--truth", "0.1", "--truth-dtype", "f16", sources)
            files = sorted(os.path.join(sources, file) for file in os.listdir(sources)
                           if file.endswith(".safetensors"))
            for path in files:
                forget_metadata(path)
            for i in range(n_snapshots):
                name = "snapshot-%07d-%s.safetensors" % (i // 2 + 1, ("0.050", "0.100")[i % 2])
                os.link(files[i % n_files], os.path.join(out, name))
            shutil.rmtree(sources)
        return self.make(name, fill)


def forget_metadata(path):
    """Blanks the metadata of a safetensors file in place, so that only its name gives time and width."""
    with open(path, "r+b") as file:
        size, = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(size))
        header.pop("__metadata__", None)
        text = json.dumps(header, separators=(",", ":")).encode()
        file.seek(8)
        file.write(text.ljust(size))
