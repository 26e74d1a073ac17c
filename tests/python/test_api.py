# SPDX-License-Identifier: Apache-2.0
"""The package posthocema makes what the program makes.

    tests/python/test_api.py PROGRAM LIBRARY [--no-numpy] [TEST...]      TEST: Memory, Memory.test_cycles_leak_nothing
"""
import contextlib
import copy
import ctypes
import errno
import inspect
import json
import logging
import math
import os
import pathlib
import pickle
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
PROGRAM, os.environ["POSTHOC_EMA_LIBRARY"] = (os.path.abspath(path) for path in sys.argv[1:3])
HAS_NUMPY = "--no-numpy" not in sys.argv
sys.argv[1:] = [word for word in sys.argv[3:] if word != "--no-numpy"]
if not HAS_NUMPY:
    sys.modules["numpy"] = None  # as where it is not installed
sys.path.insert(0, str(SOURCE / "python"))

import posthocema as ph  # noqa: E402
from posthocema import _library  # noqa: E402


def phema(*arguments, cwd):
    return subprocess.run(
        [PROGRAM, *arguments], cwd=cwd, check=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ).stdout.decode()


def tensors_of(path):
    """Names to dtype, shape and bytes of a safetensors file, read without any library."""
    data = pathlib.Path(path).read_bytes()
    end = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:end])
    header.pop("__metadata__", None)
    return {
        name: (t["dtype"], tuple(t["shape"]), data[end + t["data_offsets"][0] : end + t["data_offsets"][1]])
        for name, t in header.items()
    }


class Case(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.holder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.holder.cleanup)
        cls.dir = pathlib.Path(cls.holder.name)
        phema("gen", "-q", "--count", "8", "--params", "20k", "--dtype", "f16", "--truth", "0.1", "run", cwd=cls.dir)
        cls.run_dir = cls.dir / "run"


def run_with_faults(case, lines, calls, path, pause_ms, is_due=None, until=None):
    """What a program prints. Calls on a path pause in it, no longer than until this file exists. If is_due is given, it
    gets SIGINT once that is true. The file "paused" is there once the first call pauses."""
    program = [
        "import os, pathlib, signal, sys, threading, time",
        "signal.signal(signal.SIGINT, signal.default_int_handler)",  # a launcher may ignore it
        f"sys.path.insert(0, {str(SOURCE / 'python')!r})",
        "import posthocema as ph",
        "def calls(): return [t for t in threading.enumerate() if t.name == 'posthocema']",
        *lines,
    ]
    environment = {
        **os.environ, "LD_PRELOAD": os.path.join(os.path.dirname(PROGRAM), "tests/libfaults.so"), "FAULT_CALLS": calls,
        "FAULT_PATH": path, "FAULT_PAUSE": str(pause_ms), "MALLOC_PERTURB_": "165",
        "FAULT_BEGUN": "paused", **({"FAULT_UNTIL": until} if until else {}),
    }  # fmt: skip
    child = subprocess.Popen(
        [sys.executable, "-c", "\n".join(program)], cwd=case.dir, env=environment, stdout=subprocess.PIPE
    )
    case.addCleanup(child.kill)
    if is_due:
        while child.poll() is None and not is_due():
            time.sleep(0.01)
        case.assertIsNone(child.poll(), "the program ended by itself")
        child.send_signal(signal.SIGINT)
    said = child.communicate(timeout=300)[0]
    for mark in {"paused", until} - {None}:
        (case.dir / mark).unlink(missing_ok=True)
    case.assertEqual(child.returncode, 0)
    return said.decode().split()


class Numbers(unittest.TestCase):
    def test_gammas_and_betas_match_the_paper(self):
        # arXiv:2312.02696, sec. 3.2, and eq. 127
        self.assertAlmostEqual(ph.gamma(0.05), 16.97, delta=0.005)
        self.assertAlmostEqual(ph.gamma(0.10), 6.94, delta=0.005)
        self.assertAlmostEqual(ph.sigma_rel(ph.gamma(0.1)), 0.1, delta=1e-15)
        self.assertEqual(ph.beta(0.1, 1), 0)
        self.assertAlmostEqual(ph.beta(0.1, 1000), (1 - 1 / 1000) ** (ph.gamma(0.1) + 1), delta=1e-15)
        with self.assertRaises(ph.TargetError) as caught:
            ph.gamma(0.4)
        self.assertIn("0.4", str(caught.exception))
        self.assertEqual(caught.exception.status, 5)
        with self.assertRaises(ph.UsageError):
            ph.beta(0.1, 0)

    def test_weights_without_files(self):
        found = ph.weights([(0.05, 100), (0.1, 100), (0.05, 200), (0.1, 200)], [(0.1, 200), (0.15, 200)])
        self.assertEqual([round(row[0], 9) for row in found], [0, 0, 0, 1])
        self.assertAlmostEqual(sum(row[1] for row in found), 1, delta=1e-12)

    def test_the_structs_are_those_of_the_header(self):
        header = (SOURCE / "include/posthoc-ema.h").read_text()
        header = re.sub(r"/\*.*?\*/", "", header, flags=re.S)
        structs = {
            "series_options": _library.SeriesOptions, "series_info": _library.SeriesInfo,
            "set": _library.SetInfo, "left_out": _library.LeftOutInfo, "snapshot": _library.SnapshotInfo, "plan_options": _library.PlanOptions,
            "plan_info": _library.PlanInfo, "target": _library.TargetInfo,
            "tensor": _library.TensorInfo, "read_options": _library.ReadOptions,
            "progress": _library.ProgressInfo, "run_options": _library.RunOptions,
            "result": _library.RunResult, "search_options": _library.SearchOptions,
            "design_options": _library.DesignOptions, "design_info": _library.DesignInfo,
        }  # fmt: skip
        for name, struct in structs.items():
            body = re.search(r"struct posthoc_ema_%s \{(.*?)\n\};" % name, header, flags=re.S).group(1)
            body = re.sub(r"int \(\*progress\)\([^;]*\)", "int progress", body)
            members = []
            for declaration in body.split(";"):
                members += re.findall(r"(\w+)\s*(?:,|$)", declaration.strip())
            self.assertEqual([n.rstrip("_") for n, _ in struct._fields_], members, name)
        declared = set(re.findall(r"\bposthoc_ema_([a-z_]+)\(", header))
        bound = set(_library._FALLIBLE) | {
            "version", "sigma_rel", "beta", "series_close", "plan_free", "output", "handle_signals", "design_free",
        }  # fmt: skip
        self.assertEqual(declared, bound)
        version = re.search(r"posthoc-ema VERSION (\d+\.\d+)", (SOURCE / "CMakeLists.txt").read_text()).group(1)
        self.assertEqual(_library.VERSION, version)


class Averages(Case):
    def test_a_series_and_a_plan_describe_themselves(self):
        with ph.open(self.run_dir) as series:
            self.assertEqual(len(series), 16)
            self.assertEqual({s.sigma_rel for s in series.snapshots}, {0.05, 0.1})
            with series.plan([0.1, 0.15]) as plan:
                self.assertEqual([t.sigma_rel for t in plan.targets], [0.1, 0.15])
                self.assertAlmostEqual(sum(plan.targets[1].weights), 1, delta=1e-9)
                self.assertTrue(0 < plan.targets[1].predicted_error < 0.01)
                self.assertEqual(plan.checks.verdict, "fits")
                said = json.loads(phema("weights", "--json", "--sigma-rel", "0.1,0.15", "run", cwd=self.dir))
                self.assertIn(repr(float(plan.targets[1].weights[-1]))[:12], json.dumps(said))
            self.assertEqual(series.checks().verdict, "fits")
        with self.assertRaises(ValueError):
            series.plan(0.1)

    def test_a_series_is_not_made_from_a_name(self):
        for kind in (ph.Series, ph.Plan):
            with self.assertRaises(TypeError):
                kind("run")

    def test_a_series_says_what_was_recognised(self):
        for fixture, profile in (("reports/diffusion_policy/run", "ema:decay=0.9"), ("trainers/flux_action", None)):
            directory = SOURCE / "fixtures" / fixture
            with ph.open(directory, input_profile=profile) as series:
                said = json.loads(phema("inspect", "--json", directory, cwd=self.dir))["recognised"]
                self.assertTrue(said["left_out"])
                self.assertEqual(series.recognised, said)

    def test_tied_tensors_of_a_trainer_share_their_average(self):
        with ph.open(SOURCE / "fixtures/trainers/titan/checkpoint") as series, series.plan(0.08) as plan:
            tensors = plan.state_dict(0, kind="buffer")
            self.assertIs(tensors["output.weight"], tensors["tok_embeddings.weight"])
            self.assertTrue(any("'output.weight' as 'tok_embeddings.weight'" in note for note in series.notes))

    def test_a_run_makes_the_bytes_of_the_program(self):
        phema("synth", "-q", "--sigma-rel", "0.1", "run", "program.safetensors", cwd=self.dir)
        out = self.dir / "library.safetensors"
        seen = []
        with ph.open(str(self.run_dir)) as series, series.plan(0.1) as plan:
            result = plan.run(out, progress=seen.append)
            self.assertEqual(result.paths, [str(out)])
            self.assertEqual(seen[-1].done_bytes, seen[-1].total_bytes)
            self.assertIn("100 %", str(seen[-1]))
            self.assertEqual(len({p.done_bytes for p in seen}), len(seen))  # nothing is told twice
            with self.assertRaises(ph.OutputError) as caught:
                plan.run(out)
            self.assertEqual(caught.exception.status, 6)
            plan.run(out, replace=True)
        self.assertEqual(tensors_of(out), tensors_of(self.dir / "program.safetensors"))
        phema("verify", "-q", str(out), cwd=self.dir)

    @unittest.skipIf(HAS_NUMPY, "NumPy is there")
    def test_numpy_that_is_missing_is_named(self):
        with ph.open(self.run_dir) as series, series.plan(0.1) as plan:
            with self.assertRaisesRegex(ImportError, 'numpy is not installed; kind="buffer" needs nothing'):
                plan.state_dict()
            self.assertEqual(len(plan.state_dict(kind="buffer")), len(plan.tensors()))

    def test_tensors_in_memory_are_those_of_files(self):
        for dtype in (None, "f32"):
            out = self.dir / f"WIDTH-{dtype}.safetensors"
            with ph.open(self.run_dir) as series, series.plan([0.08, 0.1]) as plan:
                plan.run(str(out).replace("WIDTH", "{sigma}"), dtype=dtype)
                for j, name in enumerate(["0.080", "0.100"]):
                    written = tensors_of(str(out).replace("WIDTH", name))
                    made = dict(plan.iterate(j, dtype=dtype, kind="buffer"))
                    self.assertEqual({n: bytes(t) for n, t in made.items()}, {n: t[2] for n, t in written.items()})
                    if HAS_NUMPY:
                        arrays = plan.state_dict(j, dtype=dtype)
                        self.assertEqual({n: a.tobytes() for n, a in arrays.items()}, {n: t[2] for n, t in written.items()})
                        self.assertEqual({n: a.shape for n, a in arrays.items()}, {n: t[1] for n, t in written.items()})
                self.assertEqual(plan.output_bytes(dtype), sum(len(t[2]) for t in written.values()))
                with self.assertRaises(KeyError):
                    plan.tensor("nothing")
                with self.assertRaises(ph.UsageError):
                    plan.tensor(next(iter(written)), kind="jax")

    def test_all_targets_are_made_in_one_pass(self):
        kind = "numpy" if HAS_NUMPY else "buffer"
        for limit in (None, 90_000_000):
            with ph.open(self.run_dir) as series, series.plan("0.05:0.2:0.01", max_ram_bytes=limit) as plan:
                made = plan.state_dicts(kind=kind, dtype="f32")
                self.assertEqual(len(made), 16)
                for target, found in zip(plan, made):
                    expected = plan.state_dict(target, kind=kind, dtype="f32")
                    self.assertEqual({n: bytes(t) for n, t in found.items()}, {n: bytes(t) for n, t in expected.items()})

    def test_one_call_makes_averages(self):
        options = {"last": 6, "exclude": "bias", "dtype": "f32", "metric": "walk"}
        made = ph.synth(self.run_dir, self.dir / "called", "0.1,0.15", **options)
        with ph.open(self.run_dir, last=6, exclude="bias") as series, series.plan([0.1, 0.15], metric="walk") as plan:
            for path, target in zip(made.paths, plan):
                expected = {n: bytes(t) for n, t in plan.state_dict(target, dtype="f32", kind="buffer").items()}
                self.assertEqual({n: t[2] for n, t in tensors_of(path).items()}, expected)
        with self.assertRaisesRegex(TypeError, "neither open\\(\\), plan\\(\\) nor run\\(\\) has an option widths"):
            ph.synth(self.run_dir, self.dir / "called", widths=0.1)

    def write_model(self, folder, tensors, **config):
        """A folder as of save_pretrained() of transformers: sharded, with a tokenizer."""
        folder.mkdir()
        index = {}
        for k, name in enumerate(tensors):
            dtype, shape, data = tensors[name]
            header = json.dumps({"__metadata__": {"format": "pt"}, name: {"dtype": dtype, "shape": shape, "data_offsets": [0, len(data)]}})
            index[name] = f"model-{k}.safetensors"
            (folder / index[name]).write_bytes(len(header).to_bytes(8, "little") + header.encode() + data)
        (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": index}))
        (folder / "config.json").write_text(json.dumps({"dtype": "float16", **config}))
        (folder / "tokenizer.json").write_text("{}")
        (folder / "optimizer.pt").write_bytes(b"state")
        (folder / "more").mkdir()

    def test_an_average_becomes_a_folder_of_a_model(self):
        first = tensors_of(next(self.run_dir.glob("*.safetensors")))
        like, out = self.dir / "like", self.dir / "out"
        self.write_model(like, first)
        with ph.open(self.run_dir) as series, series.plan([0.1, 0.15]) as plan:
            plan.save_pretrained(f"{out}/", 0.15, like=like)
            shown = {"config.json", "tokenizer.json", "model.safetensors.index.json", *(f"model-{k}.safetensors" for k in range(len(first)))}
            self.assertEqual({file.name for file in out.iterdir()}, shown)
            made = {n: t for file in out.glob("*.safetensors") for n, t in tensors_of(file).items()}
            self.assertEqual({n: t[2] for n, t in made.items()}, {n: bytes(t) for n, t in plan.state_dict(1, kind="buffer").items()})
            with self.assertRaises(FileExistsError):
                plan.save_pretrained(out, like=like)
            plan.save_pretrained(out, like=like, dtype="float32", replace=True)
            self.assertEqual(json.loads((out / "config.json").read_text())["dtype"], "float32")
            made = {n: t for file in out.glob("*.safetensors") for n, t in tensors_of(file).items()}
            expected = {n: bytes(t) for n, t in plan.state_dict(0, kind="buffer", dtype="f32").items()}
            self.assertEqual({n: t[2] for n, t in made.items()}, expected)

            less = {name: t for name, t in first.items() if name != "gain"}
            self.write_model(self.dir / "less", less)
            self.write_model(self.dir / "more", {**first, "new": ("I64", (1,), bytes(range(8)))})
            self.write_model(self.dir / "other", {**first, "gain": ("F16", (2,), bytes(4))})
            (self.dir / "none").mkdir()
            for name, message in (
                ("less", "'gain': is in the snapshots, but not in .*less, nor tied"), ("more", "tensor 'new': is not in the snapshots"),
                ("other", "tensor 'gain': is \\[2\\], in the snapshots \\[\\]"), ("none", "is no folder of a model"), ("run", "is no folder"),
            ):  # fmt: skip
                with self.assertRaisesRegex(ph.InputsError, message):
                    plan.save_pretrained(self.dir / "refused", like=self.dir / name)
            plan.save_pretrained(self.dir / "mixed", like=self.dir / "more", strict=False)
            mixed = {n: t for file in (self.dir / "mixed").glob("*.safetensors") for n, t in tensors_of(file).items()}
            self.assertEqual((mixed["new"][2], set(mixed)), (bytes(range(8)), {*first, "new"}))
        self.assertFalse([file for file in self.dir.iterdir() if "refused" in file.name])

    def test_compressed_snapshots_are_read(self):
        packed = self.dir / "packed"
        packed.mkdir()
        for path in sorted(self.run_dir.glob("*.safetensors"))[-8:]:
            phema("synth", "-q", "--convert", str(path), str(packed / path.name) + ".zst", cwd=self.dir)
        with ph.open(packed) as series, series.plan(0.08) as plan:
            out = self.dir / "packed.safetensors"
            plan.run(out)
            made = {n: bytes(t) for n, t in plan.iterate(kind="buffer")}
        self.assertEqual(made, {n: t[2] for n, t in tensors_of(out).items()})

    def test_failures_have_the_exceptions_of_their_statuses(self):
        with self.assertRaises(ph.FileError) as caught:
            ph.open(self.dir / "nowhere")
        self.assertIsInstance(caught.exception, OSError)
        with ph.open(self.run_dir) as series:
            with self.assertRaises(ph.TargetError):
                series.plan(0.5)
            with self.assertRaises(ph.TooInaccurate) as caught:
                series.plan(0.2, max_error=1e-9)
            self.assertEqual(caught.exception.status, 1)
            with self.assertRaises(ph.UsageError) as caught:
                series.plan(0.1, metric="walks")
            self.assertEqual(str(caught.exception), "metric: 'walks' is not one of motion|walk|profile")
            with self.assertRaises(ph.UsageError):
                ph.open("a\0b")

    def test_messages_go_to_the_logger(self):
        with self.assertLogs("posthocema", logging.INFO) as logs:
            with ph.open(self.run_dir) as series, series.plan(0.1) as plan:
                plan.run(self.dir / "logged.safetensors")
        self.assertTrue(any("logged.safetensors" in line for line in logs.output))

    def test_other_threads_run_during_a_run(self):
        with ph.open(self.run_dir) as series:
            outs = [self.dir / f"thread-{i}.safetensors" for i in range(3)]
            threads = [
                threading.Thread(target=lambda out=out: ph.open(self.run_dir).plan(0.09).run(out)) for out in outs
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertEqual(len({out.read_bytes().split(b"}")[-1] for out in outs}), 1)
            self.assertEqual(len(series), 16)


    def test_the_interpreter_is_free_during_a_call(self):
        """A call ends when another thread has made a file, which that thread can only do during the call."""
        lines = [
            "is_called, ran = threading.Event(), []",
            "def make():",
            "    is_called.wait()",
            "    ran.append(True)",
            "    pathlib.Path('made').touch()",
            "sys.setswitchinterval(1000)  # seconds: this thread keeps the interpreter, except in the call",
            "other = threading.Thread(target=make)",
            "other.start()",
            "status, pointer = None, ctypes.c_void_p()",
            "arguments = ctypes.byref(pointer), _library.text('run'), None",
            "is_called.set()",
            "status, message = _library.status_of('series_open', *arguments)",
            "print(status, len(ran))",
            "other.join()",
            "_library.LIBRARY.posthoc_ema_series_close(pointer)",
        ]
        imports = ["import ctypes", "from posthocema import _library"]
        self.assertEqual(run_with_faults(self, imports + lines, "open", "snapshot-", 60_000, until="made"), ["0", "1"])

    def test_warnings_go_to_the_logger(self):
        exchanged = self.dir / "exchanged"
        exchanged.mkdir()
        paths = sorted(self.run_dir.glob("*.safetensors"))
        labels = [path.name for path in paths]
        labels[6], labels[10] = labels[10], labels[6]  # of one width
        for path, label in zip(paths, labels):
            (exchanged / label).write_bytes(path.read_bytes().replace(b"posthoc_ema.", b"posthoc_xxx."))
        with self.assertLogs("posthocema", logging.WARNING) as logs, ph.open(exchanged) as series:
            verdict = series.checks().verdict
            with series.plan(0.1) as plan:
                warnings = plan.warnings
        self.assertEqual(verdict, "wrong")
        self.assertEqual(len(warnings), 1)  # and not that the weights are large as well
        self.assertIn("the snapshots do not fit their labels: ", warnings[0])
        self.assertTrue(any(warnings[0] in line for line in logs.output))
        scored = []
        with ph.open(exchanged) as series:
            with self.assertRaisesRegex(ph.InputsError, "do not fit their labels"):
                ph.search(series, lambda path: scored.append(path) or 1, (0.06, 0.2))
            self.assertEqual(scored, [])
            with self.assertLogs("posthocema", logging.WARNING) as logs:
                found = ph.search(series, lambda path: len(path), (0.06, 0.2), coarse=2, tolerance=0.5, checks="warn")
            self.assertEqual((found.checks.verdict, found.warnings), ("wrong", warnings))
            self.assertEqual(sum(warnings[0] in line for line in logs.output), 2)  # before, and with the result
            self.assertEqual(found.checks.reason, series.checks().reason)
            unchecked = ph.search(series, lambda path: len(path), (0.06, 0.2), coarse=2, tolerance=0.5, checks="off")
            self.assertEqual((unchecked.checks.verdict, unchecked.warnings), ("unknown", []))


    def test_a_profile_that_was_assumed_must_fit(self):
        phema("gen", "-q", "--count", "16", "--params", "2K", "--raw", "--input-profile", "lightning:decay=0.99", "parts", cwd=self.dir)
        files = self.dir / "lightning"
        subprocess.run(
            [sys.executable, SOURCE / "tests/cli/bin/containers", self.dir / "parts", files], check=True
        )
        with ph.open(files) as series:
            with self.assertRaisesRegex(ph.InputsError, "assumed .* lightning:decay=0.99 fits best"):
                series.plan(0.1)
            self.assertEqual(series.checks().verdict, "wrong")
            with series.plan(0.1, checks="warn") as plan:
                self.assertEqual(len(plan.warnings), 1)
        with ph.open(files, input_profile="lightning:decay=0.99") as series, series.plan(0.1) as plan:
            self.assertEqual((plan.checks.verdict, plan.warnings), ("fits", []))


class Documents(Case):
    def test_their_examples_run(self):
        pages = sorted((SOURCE / "docs/python").glob("*.md"))
        self.assertGreater(len(pages), 5)
        for document in (SOURCE / "README.md", SOURCE / "python/README.md", SOURCE / "docs/python.md", *pages):
            text = document.read_text()
            blocks = re.findall(r"^```python\n(.*?)^```$", text, flags=re.S | re.M)
            self.assertTrue(blocks, document)
            for block in blocks:
                if "import torch" in block or "numpy" in block and not HAS_NUMPY:
                    continue  # those of torch run in test_recorder.py, those of trainers in test_trainers.py
                with tempfile.TemporaryDirectory() as directory:
                    os.symlink(self.run_dir, os.path.join(directory, "checkpoints"))
                    environment = {**os.environ, "PYTHONPATH": str(SOURCE / "python")}
                    done = subprocess.run(
                        [sys.executable, "-c", block], cwd=directory, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
                    )
                    self.assertEqual((done.returncode, done.stderr), (0, b""), block)


    def test_the_page_for_pypi_needs_no_clone(self):
        metadata = (SOURCE / "pyproject.toml").read_text()
        page = (SOURCE / re.search(r'^readme = "(.*?)"', metadata, flags=re.M)[1]).read_text()
        links = re.findall(r"\]\((.*?)\)|src=\"(.*?)\"", page)
        self.assertTrue(links)
        self.assertEqual([link for link in links if not "".join(link).startswith("https://")], [])


class Stopping(Case):
    def test_an_exception_in_progress_stops_the_run(self):
        def stop(progress):
            raise RuntimeError("enough")

        before = sorted(os.listdir(self.dir))
        with ph.open(self.run_dir) as series, series.plan(0.1) as plan:
            with self.assertRaisesRegex(RuntimeError, "enough"):
                plan.run(self.dir / "stopped.safetensors", progress=stop)
        self.assertEqual(sorted(os.listdir(self.dir)), before)

    def is_paused(self):
        return (self.dir / "paused").exists()

    def test_ctrl_c_stops_a_run_and_leaves_nothing(self):
        phema("gen", "-q", "--count", "2", "--params", "1M", "--steps", "30", "--no-sync", "large", cwd=self.dir)
        for options in ("", ", threads=1", ", progress=lambda p: None"):
            lines = [
                "plan = ph.open('large').plan(0.1)",
                f"try: plan.run('interrupted.safetensors'{options})",
                "except KeyboardInterrupt: print('interrupted')",
            ]
            partial = self.dir / "interrupted.safetensors.partial"
            before = sorted(os.listdir(self.dir))
            said = run_with_faults(self, lines, "pwrite", ".partial", 200, lambda: partial.exists())  # 35 writes
            self.assertEqual(said, ["interrupted"])
            self.assertEqual(sorted(os.listdir(self.dir)), before)

    def test_ctrl_c_stops_a_search_and_leaves_nothing(self):
        places = self.dir / "places"
        places.mkdir()
        lines = [
            f"import tempfile; tempfile.tempdir = {str(places)!r}",
            "try: ph.search(ph.open('run'), lambda path: print('scored'))",
            "except KeyboardInterrupt: print('interrupted')",
        ]
        said = run_with_faults(self, lines, "pwrite", ".partial", 1000, lambda: any(places.glob("*/*.partial")))
        self.assertEqual(said, ["interrupted"])
        self.assertEqual(list(places.iterdir()), [])

    def test_ctrl_c_does_not_wait_for_opening_and_planning(self):
        """Reads of snapshots last ten minutes, as on a disk that does not answer."""
        cases = [
            ("open", [], "ph.open('run')"),
            ("pread", ["series = ph.open('run')"], "series.plan(0.1)"),
            ("pread", ["series = ph.open('run')"], "ph.design(until=10000, model=1000, sigma_rel='0.05:0.2', disk_bytes=100000, like=series)"),
        ]
        for calls, before, call in cases:
            lines = [*before, "while calls(): pass", f"try: {call}"]
            lines += ["except KeyboardInterrupt: print('interrupted', len(calls()))"]
            said = run_with_faults(self, lines, calls, "snapshot-", 600_000, self.is_paused)
            self.assertEqual(said, ["interrupted", "1"], call)

    def test_ctrl_c_that_another_thread_gets_does_not_wait_either(self):
        lines = [
            "def elsewhere():",
            "    while not calls(): time.sleep(0.01)",
            "    time.sleep(0.2)",
            "    signal.pthread_kill(threading.get_ident(), signal.SIGINT)",
            "threading.Thread(target=elsewhere, daemon=True).start()",
            "try: ph.open('run')",
            "except KeyboardInterrupt: print('interrupted')",
        ]
        self.assertEqual(run_with_faults(self, lines, "open", "snapshot-", 600_000, None), ["interrupted"])

    def test_ctrl_c_does_not_wait_for_a_tensor(self):
        phema("gen", "-q", "--count", "2", "--params", "8M", "--steps", "30", "--no-sync", "wide", cwd=self.dir)
        lines = [
            "plan = ph.open('wide').plan(0.1)",
            "largest = max(plan.tensors(), key=lambda t: t.bytes).name",  # 416 reads of 128 KiB
            "os.rename('wide', 'slow'); os.symlink('slow', 'wide')",  # only from here on reads pause
        ]
        for call in ("plan.tensor(largest, io='read', threads=1, kind='buffer')", "plan.state_dict(io='read', kind='buffer')"):
            tries = [f"try: {call}", "except KeyboardInterrupt: print('interrupted')"]
            said = run_with_faults(self, [*lines, *tries], "pread", "slow/", 2000, self.is_paused)
            (self.dir / "wide").unlink()
            (self.dir / "slow").rename(self.dir / "wide")
            self.assertEqual(said, ["interrupted"], call)

    def test_a_handler_that_raises_nothing_gets_the_tensor(self):
        lines = [
            "signal.signal(signal.SIGINT, lambda *_: print('noted'))",
            "plan = ph.open('run').plan(0.1)",
            "os.rename('run', 'slow'); os.symlink('slow', 'run')",  # only from here on reads pause
            "data = [t.tobytes() for t in plan.state_dict(io='read', kind='buffer').values()]",
            "print(data == [t.tobytes() for t in plan.state_dict(kind='buffer').values()])",
            "os.remove('run'); os.rename('slow', 'run')",
        ]
        said = run_with_faults(self, lines, "pread", "slow/", 20, self.is_paused)
        self.assertEqual(said, ["noted", "True"])

    def test_a_plan_that_nobody_waits_for_may_use_its_series(self):
        lines = [
            "try:",
            "    with ph.open('run', last=1) as series:",
            "        series.plan(0.1)",
            "except KeyboardInterrupt: print('interrupted', len(calls()))",
            "pathlib.Path('closed').touch()",
            "for call in calls(): call.join()",
            "print(len(ph.open('run')))",
        ]
        said = run_with_faults(self, lines, "pread", "snapshot-", 60_000, self.is_paused, until="closed")
        self.assertEqual(said, ["interrupted", "1", "16"])


class Closing(Case):
    """Objects that are closed, copied or used again while a call of the library uses them."""

    def test_a_plan_that_its_progress_closes_ends_its_run(self):
        for stop in (False, True):
            out = self.dir / f"closed-{stop}.safetensors"
            plan = ph.open(self.run_dir).plan(0.1)

            def progress(_):
                plan.close()
                if stop:
                    raise RuntimeError("enough")

            if stop:
                with self.assertRaisesRegex(RuntimeError, "enough"):
                    plan.run(out, progress=progress)
                self.assertFalse(out.exists())
            else:
                self.assertEqual(plan.run(out, progress=progress).paths, [str(out)])
                phema("verify", "-q", str(out), cwd=self.dir)
            with self.assertRaisesRegex(ValueError, "Plan is closed"):
                plan.run(out, replace=True)

    def test_a_plan_that_another_thread_closes_ends_its_run(self):
        results, is_running, is_closed = [], threading.Event(), threading.Event()

        def progress(_):
            is_running.set()
            is_closed.wait()

        with ph.open(self.run_dir) as series, series.plan(0.1) as plan:
            thread = threading.Thread(
                target=lambda: results.append(plan.run(self.dir / "left.safetensors", progress=progress))
            )
            thread.start()
            is_running.wait()
        is_closed.set()
        thread.join()
        self.assertEqual(results[0].paths, [str(self.dir / "left.safetensors")])
        phema("verify", "-q", "left.safetensors", cwd=self.dir)

    def test_a_plan_that_is_closed_during_a_read_gives_the_tensor(self):
        lines = [
            "plan = ph.open('run').plan(0.1)",
            "name = plan.tensors()[0].name",
            "def read(): return bytes(plan.tensor(name, kind='buffer', io='read', threads=1))",
            "found = [read()]",
            "os.rename('run', 'slow'); os.symlink('slow', 'run')",  # only from here on reads pause
            "thread = threading.Thread(target=lambda: found.append(read()))",
            "thread.start()",
            "def place(): return sys._current_frames()[thread.ident].f_code.co_name",
            "while thread.is_alive() and place() != 'status_of': pass",
            "time.sleep(0.1)",
            "plan.close()",
            "thread.join()",
            "os.remove('run'); os.rename('slow', 'run')",
            "print(found[0] == found[1])",
        ]
        self.assertEqual(run_with_faults(self, lines, "pread", "slow/", 50), ["True"])

    def test_a_progress_may_use_all_plans_but_its_own(self):
        sizes = []
        with ph.open(self.run_dir) as series, series.plan(0.1) as plan, series.plan(0.09) as other:

            def run(again):
                before = sorted(os.listdir(self.dir))
                with self.assertRaisesRegex(ph.UsageError, "a progress callback cannot run or read the plan that calls it"):
                    plan.run(self.dir / "outer.safetensors", progress=again)
                self.assertEqual(sorted(os.listdir(self.dir)), before)

            run(lambda _: plan.run(self.dir / "inner.safetensors"))
            run(lambda _: plan.state_dict(kind="buffer"))

            def use(_):
                sizes.append(plan.output_bytes() + len(plan) + len(series.plan(0.1).targets))
                sizes.append(len(other.run(self.dir / "other.safetensors", replace=True).paths))

            plan.run(self.dir / "outer.safetensors", progress=use)
            self.assertGreater(sizes[0], 0)
            self.assertEqual(set(sizes[1::2]), {1})

    def test_a_generator_ends_with_its_plan(self):
        with ph.open(self.run_dir) as series, series.plan(0.1) as plan:
            tensors = plan.iterate(kind="buffer")
            kept = next(tensors)[1]
            data = bytes(kept)
        with self.assertRaisesRegex(ValueError, "Plan is closed"):
            next(tensors)
        with self.assertRaisesRegex(ValueError, "Plan is closed"):
            plan.tensor(plan.tensors()[0].name, kind="buffer")
        self.assertEqual(bytes(kept), data)

    def test_copies_are_opened_again(self):
        with ph.open(self.run_dir, last=6) as series, series.plan((w / 100 for w in (8, 12)), at=[2048, 4096]) as plan:
            with contextlib.chdir(self.run_dir) if hasattr(contextlib, "chdir") else contextlib.nullcontext():
                for made in (copy.deepcopy(series), pickle.loads(pickle.dumps(series))):
                    self.assertEqual(made.snapshots, series.snapshots)
                for made in (copy.deepcopy(plan), pickle.loads(pickle.dumps(plan))):
                    self.assertEqual(made.targets, plan.targets)
                    self.assertEqual(made.state_dict(3, kind="buffer"), plan.state_dict(3, kind="buffer"))
            made.close()
            with self.assertRaisesRegex(ValueError, "is closed"):
                pickle.dumps(made)
            twin = copy.copy(plan)
            twin.close()
            self.assertGreater(len(plan.state_dict(kind="buffer")), 0)

    def fork(self, child):
        """The exit status of a process that is forked here, after child() or its exception."""
        pid = os.fork()
        if pid == 0:
            try:
                child()
                os._exit(0)
            except ph.UsageError as error:
                os._exit(10 if "was forked while" in str(error) else 11)
            except BaseException:
                os._exit(12)
        return os.WEXITSTATUS(os.waitpid(pid, 0)[1])

    def test_a_forked_process_uses_what_was_idle(self):
        statuses = []
        with ph.open(self.run_dir) as series, series.plan(0.1) as plan:

            def use():
                plan.run(self.dir / "child.safetensors", replace=True)
                series.plan(0.09).state_dict(kind="buffer")
                plan.close()
                series.close()
                ph.open(self.run_dir).close()

            self.assertEqual(self.fork(use), 0)

            def progress(_):
                statuses.append(self.fork(lambda: plan.tensors() and plan.tensor(plan.tensors()[0].name, kind="buffer")))
                statuses.append(self.fork(lambda: ph.gamma(0.1)))
                statuses.append(self.fork(plan.close))

            plan.run(self.dir / "parent.safetensors", progress=progress)
            self.assertEqual(set(statuses), {10, 0})
            self.assertEqual(statuses[:3], [10, 10, 0])
        phema("verify", "-q", "parent.safetensors", cwd=self.dir)

    def test_a_process_that_returns_from_its_progress_ends(self):
        lines = [
            "def progress(p):",
            "    pid = os.fork()",
            "    if pid == 0: return",
            "    print(os.WEXITSTATUS(os.waitpid(pid, 0)[1]), flush=True)",
            "    raise KeyError",
            "try: ph.open('run').plan(0.1).run('forked.safetensors', progress=progress)",
            "except KeyError: print('stopped')",
        ]
        self.assertEqual(run_with_faults(self, lines, "none", "none", 0), ["70", "stopped"])
        self.assertFalse((self.dir / "forked.safetensors").exists())


class Messages(Case):
    def test_messages_have_the_words_of_python(self):
        with ph.open(self.run_dir) as series, series.plan([0.07, 0.2], at=series[0].time * 1.5) as plan:
            with self.assertRaisesRegex(ph.UsageError, r"^[^ ]+: 2 outputs do not fit one file; name a directory, or put"):
                plan.run(self.dir / "two.safetensors")
            with self.assertRaisesRegex(ph.InputsError, "^snapshot 1: the time must be positive, found 0$"):
                ph.weights([(0.1, 5), (0.1, 0)], [(0.07, 5)])
            with self.assertRaisesRegex(ph.InputsError, "^snapshots 0 and 1 are the same average"):
                ph.weights([(0.1, 5), (0.1, 5)], [(0.07, 5)])
            self.assertTrue(any("(weights --advise says how many" in warning for warning in plan.warnings), plan.warnings)


class Integers(Case):
    def test_integers_that_c_would_cut_are_refused(self):
        huge = 2**64
        with ph.open(self.run_dir) as series, series.plan(0.1) as plan:
            name, out = plan.tensors()[0].name, self.dir / "cut.safetensors"
            cases = [
                ("every: expected at most 18446744073709551615, found 18446744073709551616", lambda: ph.open(self.run_dir, every=huge)),
                ("every: expected 0 or more, found -1", lambda: ph.open(self.run_dir, every=-1)),
                ("last: expected 0 or more, found -1", lambda: ph.open(self.run_dir, last=-1)),
                ("update_every: expected 0 or more", lambda: ph.open(self.run_dir, update_every=-1)),
                ("max_ram_bytes: expected 0 or more", lambda: series.plan(0.1, max_ram_bytes=-1)),
                ("shard_bytes: expected 0 or more, found -5", lambda: plan.run(out, shard_bytes=-5)),
                ("shard_bytes: expected at most", lambda: plan.run(out, shard_bytes=huge)),
                ("level: expected at most 2147483647, found 4294967299", lambda: plan.run(out, level=2**32 + 3)),
                ("level: expected -2147483648 or more", lambda: plan.run(out, level=-(2**31) - 1)),
                ("threads: expected 0 or more, found -1", lambda: plan.run(out, threads=-1)),
                ("threads: expected at most 4294967295", lambda: plan.run(out, threads=2**32)),
                ("threads: expected 0 or more, found -1", lambda: plan.state_dict(threads=-1, kind="buffer")),
                ("target: expected an index below 1 .*, found -2", lambda: plan.state_dict(-2, kind="buffer")),
                ("target: expected an index below 1 .*, found 1", lambda: plan.tensor(name, 1, kind="buffer")),
                ("target: expected an index or one of the widths 0.1, found 0.15", lambda: plan.state_dict(0.15, kind="buffer")),
                ("target: expected at most", lambda: next(plan.iterate(huge, kind="buffer"))),
                ("step: expected at most", lambda: ph.beta(0.1, huge)),
                ("step: expected 0 or more", lambda: ph.beta(0.1, -1)),
                ("coarse: expected 0 or more", lambda: ph.search(series, lambda path: 0, coarse=-1)),
                ("batch: expected 0 or more", lambda: ph.search(series, lambda path: 0, batch=-1)),
                ("disk_bytes: expected 0 or more", lambda: ph.design(1000, 1000, 0.1, disk_bytes=-1)),
                ("model: expected at most", lambda: ph.design(1000, huge, 0.1, disk_bytes=1000)),
                ("params: expected 0 or more", lambda: ph.design(1000, params=-1, sigma_rel=0.1, disk_bytes=10**6)),
                ("max_widths: expected 0 or more", lambda: ph.design(1000, 1000, 0.1, disk_bytes=10**6, max_widths=-1)),
                ("to: expected at most 1.8e308", lambda: ph.open(self.run_dir, to=10**400)),
            ]  # fmt: skip
            for message, call in cases:
                with self.assertRaisesRegex(ph.UsageError, message):
                    call()
            self.assertFalse(out.exists())
            kinds = [
                ("every: expected an integer, found True", lambda: ph.open(self.run_dir, every=True)),
                ("last: expected an integer, found 2.0", lambda: ph.open(self.run_dir, last=2.0)),
                ("target: expected a number, found '0.1'", lambda: plan.state_dict("0.1", kind="buffer")),
                ("model: expected an integer, found '3'", lambda: ph.design(1000, "3", 0.1, disk_bytes=1000)),
                ("target: expected a number, found True", lambda: plan.state_dict(True, kind="buffer")),
                ("sigma_rel: expected a number, found True", lambda: series.plan(True)),
                ("max_error: expected a number, found False", lambda: series.plan(0.1, max_error=False)),
                ("to: expected a number, found '7'", lambda: ph.open(self.run_dir, to="7")),
                ("at: expected a number, found '24'", lambda: series.plan(0.1, at=["24"])),
            ]  # fmt: skip
            for message, call in kinds:
                with self.assertRaisesRegex(TypeError, message):
                    call()

    @unittest.skipUnless(HAS_NUMPY, "needs NumPy")
    def test_numbers_of_numpy_are_taken(self):
        import numpy

        half = len(ph.open(self.run_dir)) // 2
        with ph.open(self.run_dir, last=numpy.uint8(half // 2)) as series:
            self.assertEqual(len(series), half)
            newest = numpy.int64(series.snapshots[-1].named_time)
            with series.plan(numpy.float32(0.125), at=newest) as plan:
                self.assertEqual(plan.targets[0].sigma_rel, 0.125)
                plan.state_dict(numpy.int64(0), threads=numpy.array(1))
            self.assertEqual(len(series.plan(numpy.array([0.1, 0.2]))), 2)
        found = ph.design(numpy.int64(1000), numpy.int32(1000), numpy.array([0.1]), disk_bytes=numpy.uint64(10**6))
        self.assertEqual(found.model_elements, 1000)


class Tastes(Case):
    """What a user of Python expects without reading."""

    def test_texts_are_lists_as_those_of_the_program(self):
        listed = "0.05:0.25:0.05,0.07"
        with ph.open(self.run_dir) as series, series.plan(listed, at="2048,4096") as plan:
            found = json.loads(phema("weights", "-q", "--json", "--sigma-rel", listed, "--at", "2048,4096", "run", cwd=self.dir))
            self.assertEqual([t.sigma_rel for t in plan], [t["sigma_rel"] for t in found["targets"]])
            self.assertEqual([t.sigma_rel for t in plan[:6]], [0.05, 0.1, 0.15, 0.2, 0.25, 0.07])
            for wrong in ("0.05:0.25:0.03", "0.1:0.2:0", "0.1,,0.2", "0.1:0.2", "x", "0.05:nan:0.1", "0.1:0.2:1e-9"):
                with self.assertRaisesRegex(ph.UsageError, "sigma_rel: "):
                    series.plan(wrong)
            scores = ph.search(series, lambda path: 1.0, "0.05:0.1").scores
            self.assertEqual([s.sigma_rel for s in scores], [s.sigma_rel for s in ph.search(series, lambda path: 1.0, [0.05, 0.1]).scores])
            for wrong in ("0.05:0.1:0.05", 0.1, (0.1,)):
                with self.assertRaisesRegex(ph.UsageError, "sigma_rel: "):
                    ph.search(series, lambda path: 1.0, wrong)

    def test_series_and_plans_are_sequences_of_what_they_hold(self):
        with ph.open(self.run_dir) as series, series.plan([0.1, 0.15], at=[2048, 4096]) as plan, series.plan("0.1,0.15") as one:
            self.assertEqual([*series], series.snapshots)
            self.assertEqual((series[-1], series[1:3]), (series.snapshots[-1], series.snapshots[1:3]))
            self.assertEqual(([*plan], plan[3], plan[-1], plan[1:]), (plan.targets, plan.targets[3], plan.targets[3], plan.targets[1:]))
            self.assertEqual((one[0.15], one[one[1]]), (one.targets[1], one.targets[1]))
            self.assertEqual(plan[2:], one.targets[:0] + plan.targets[2:])
            self.assertNotEqual(plan[0], plan[1])
            self.assertEqual(len({*plan, *pickle.loads(pickle.dumps(plan.targets))}), 4)
            for wrong in (4, -5, 0.2, 0.15, one[0]):
                with self.assertRaises(IndexError):
                    plan[wrong]
            self.assertEqual(one.state_dict(0.15, kind="buffer"), one.state_dict(1, kind="buffer"))
            self.assertEqual(repr(one)[:76], "<posthocema.Plan: 2 targets from 16 snapshots, labels fits: 0.1, 0.15>")
            self.assertIn("<td>power:sigma=0.15</td>", one._repr_html_())
            self.assertEqual(series._repr_html_().count("<tr>"), 17)
            self.assertNotIn("weights", repr(one[0]))
            with self.assertRaisesRegex(KeyError, "no tensor 'blocks.0.wieght' among 8, such as blocks.0.weight"):
                one.tensor("blocks.0.wieght", kind="buffer")

    def test_dtypes_have_the_names_of_all_libraries(self):
        names = ["f16", "F16", "float16", *([__import__("numpy").float16, __import__("numpy").dtype("float16")] if HAS_NUMPY else [])]
        with contextlib.suppress(ImportError):
            names.append(__import__("torch").float16)
        with ph.open(self.run_dir) as series, series.plan(0.1) as plan:
            for i, name in enumerate(names):
                self.assertEqual({t.dtype for t in plan.tensors(name)}, {"F16"})
                (path,) = plan.run(self.dir / f"dtype{i}.safetensors", dtype=name).paths
                self.assertEqual({t[0] for t in tensors_of(path).values()}, {"F16"})
            for wrong in ("f64", "int8", 3):
                with self.assertRaisesRegex(ph.UsageError, "dtype: '.*' is not one of"):
                    plan.tensors(wrong)

    def test_none_is_the_default(self):
        with ph.open(self.run_dir, last=None, to=None, update_every=None) as series, series.plan(0.1, max_error=None) as plan:
            self.assertEqual(len(series), 16)
            plan.state_dict(kind="buffer", threads=None)
        for wrong, call in ((-1, ph.sigma_rel), (0.5, ph.gamma)):
            with self.assertRaises(ph.TargetError):
                call(wrong)
        with self.assertRaisesRegex(TypeError, "sigma_rel: expected a number"):
            ph.gamma("0.1")

    def test_errors_of_the_system_are_those_of_python(self):
        with ph.open(self.run_dir) as series, series.plan(0.1) as plan:
            out = self.dir / "there.safetensors"
            plan.run(out)
            cases = [
                (ph.FileError, FileNotFoundError, errno.ENOENT, "nowhere", lambda: ph.open("nowhere")),
                (ph.FileError, FileNotFoundError, errno.ENOENT, "nowhere", lambda: ph.Design.load("nowhere")),
                (ph.OutputError, FileExistsError, errno.EEXIST, str(out), lambda: plan.run(out)),
            ]
            for kind, system, number, filename, call in cases:
                with self.assertRaises(kind) as caught:
                    call()
                found = caught.exception
                for error in (found, pickle.loads(pickle.dumps(found)), copy.copy(found)):
                    self.assertIsInstance(error, system)
                    self.assertIsInstance(error, kind)
                    self.assertEqual((error.errno, error.filename, str(error)), (number, filename, str(found)))
                    self.assertTrue(str(error).startswith(filename + ": "), str(error))
            (self.dir / "broken").mkdir()
            (self.dir / "broken/a-0000001-0.050.safetensors").write_bytes(b"no header")
            with self.assertRaises(ph.FileError) as caught:
                ph.open(self.dir / "broken")
            self.assertEqual((caught.exception.errno, caught.exception.filename), (None, None))
            with self.assertRaisesRegex(FileExistsError, "replace=True replaces it"):
                plan.run(out)

    def test_progress_may_show_itself(self):
        program = "import sys, posthocema as ph\n"
        for setting in ("", "sys.modules['tqdm'] = sys.modules['tqdm.auto'] = None\n"):
            text = program + setting + "ph.open('run').plan(0.1).run('shown.safetensors', progress=True, replace=True)"
            environment = {**os.environ, "PYTHONPATH": str(SOURCE / "python")}
            done = subprocess.run([sys.executable, "-c", text], cwd=self.dir, env=environment, stderr=subprocess.PIPE, check=True)
            lines = done.stderr.decode().replace("\r", "\n").split("\n")
            self.assertEqual(done.stderr.count(b"\n"), 1, done.stderr)
            self.assertRegex(lines[-2], "100 ?%")


class Designs(Case):
    OPTIONS = {"until": 10000, "model": 1000, "sigma_rel": "0.05:0.2", "disk_bytes": 100000}

    def test_a_design_is_the_file_of_the_program(self):
        common = ["design", "-q", "--until", "10000", "--model", "4000", "--disk", "100000", "--sigma-rel", "0.05:0.2"]
        more = [
            ([], {}),
            (["--dtype", "f32", "--even", "--at", "5000"], {"dtype": "f32", "even": True, "at": 5000}),
            (["--input-sigma", "0.05,0.1"], {"input_sigma": [0.1, 0.05]}),
            (["--motion", "fall", "--max-widths", "2"], {"motion": "fall", "max_widths": 2}),
            (["--like", "run"], {"like": None}),
            ([], {"model": None, "params": 1000}),
        ]
        for i, (arguments, options) in enumerate(more):
            program, library = self.dir / f"program-{i}.json", self.dir / f"library-{i}.json"
            phema(*common, *arguments, "-o", str(program), cwd=self.dir)
            if "like" in options:
                options["like"] = ph.open(self.run_dir)
            found = ph.design(**{**self.OPTIONS, **options})
            found.save(library)
            self.assertEqual(json.loads(library.read_text()), json.loads(program.read_text()), arguments)
            self.assertEqual(ph.Design.load(program), found)
            self.assertEqual(ph.Design.load(library), found)
        with self.assertRaises(ph.OutputError):
            found.save(library)
        found.save(library, replace=True)
        self.assertEqual([p.name for p in self.dir.glob("*.partial")], [])
        # the program takes it as its own
        phema("gen", "-q", "--design", str(library), "--params", "1k", "designed", cwd=self.dir)
        self.assertEqual(len(ph.open(self.dir / "designed")), len(found.widths) * len(found.times))

    def test_a_disk_that_is_too_small_is_refused(self):
        with self.assertRaises(ph.TargetError):
            ph.design(**{**self.OPTIONS, "disk_bytes": 10})
        with self.assertRaises(ph.TooInaccurate):
            ph.design(**self.OPTIONS, max_error=1e-12)
        for options in ({}, {"model": 5, "params": 5}):
            with self.assertRaisesRegex(ph.UsageError, "params: expected this or model, found (neither|both)"):
                ph.design(until=1000, sigma_rel=0.1, disk_bytes=10**6, **options)
        for wrong in ("a:b", "0.2:0.1", "0.1:0.2:0.3", "0.1,", ""):
            with self.assertRaises(ph.UsageError):
                ph.design(**{**self.OPTIONS, "sigma_rel": wrong})

    def test_what_is_no_design_is_refused(self):
        path = self.dir / "hostile.json"
        ph.design(**self.OPTIONS).save(path, replace=True)
        good = json.loads(path.read_text())
        hostile = [
            ("version", 2), ("until", 1), ("until", True), ("dtype", "f8"), ("times", []), ("times", [2, 2]),
            ("times", [0, 5]), ("times", ["5"]), ("averages", []), ("averages", [{}] * 5),
            ("averages", [{"sigma_rel": "0.1"}]), ("averages", [{"sigma_rel": 0.1, "half_life": 5}]),
            ("averages", [{"sigma_rel": 0.1, "gamma": 5}]), ("averages", [{"sigma_rel": 0.1, "gamma": "x"}]), ("raw", True),
        ]  # fmt: skip
        for key, value in hostile:
            path.write_text(json.dumps({**good, key: value}))
            with self.assertRaises(ph.FileError, msg=f"{key}: {value}") as caught:
                ph.Design.load(path)
            self.assertIn("hostile.json: is no design", str(caught.exception))
        for text in ("", "[]", "[" * 100000, '{"version": 1', "\0", " " * (1 << 21)):
            path.write_text(text)
            with self.assertRaises(ph.FileError):
                ph.Design.load(path)
        path.write_text(json.dumps({**good, "averages": [{"sigma_rel": 0.5}]}))
        with self.assertRaises(ph.TargetError):
            ph.Design.load(path)
        with self.assertRaises(ph.FileError):
            ph.Design.load(self.dir / "nowhere.json")


class Options(Case):
    def test_options_are_those_of_the_program(self):
        def weights(*arguments):
            said = json.loads(phema("weights", "-q", "--json", "--sigma-rel", "0.08", *arguments, "run", cwd=self.dir))
            return said["targets"][0]["weights"]

        last = ph.open(self.run_dir).snapshots[-1].named_time
        half = int(last / 2)
        cases = [
            (["--reset-at", str(half)], {"reset_at": half}, {}),
            (["--reset-at", f"{half},counter"], {"reset_at": f"{half},counter"}, {}),
            (["--time-offset", "3"], {"time_offset": 3}, {}),
            (["--schedule", "cosine"], {}, {"schedule": "cosine"}),
            (["--checks", "off"], {}, {"checks": "off"}),
        ]
        for arguments, of_series, of_plan in cases:
            with ph.open(self.run_dir, **of_series) as series, series.plan(0.08, **of_plan) as plan:
                for found, expected in zip(plan.targets[0].weights, weights(*arguments)):
                    self.assertAlmostEqual(found, expected, delta=1e-12, msg=str(arguments))
        with ph.open(self.run_dir, reset_at=[half], time_offset=3) as series:
            with series.plan(0.08, schedule="linear") as plan:
                plan.run(self.dir / "options.safetensors")
        phema("verify", "-q", "options.safetensors", cwd=self.dir)
        ema_pytorch = SOURCE / "fixtures/ema_pytorch/snapshots"
        with ph.open(ema_pytorch, input_sigma=[0.05, 0.28], update_every=5) as series, series.plan(0.1) as plan:
            plan.run(self.dir / "sigmas.pt")
        phema("verify", "-q", "sigmas.pt", cwd=self.dir)
        with self.assertRaises(ph.UsageError):
            ph.open(self.run_dir, use="both")

    def test_the_program_finds_outputs_of_the_package_up_to_date(self):
        shape = {  # options of run that shape bytes: value, words of the program, OUT
            "into": ("base.safetensors", ["--into", "base.safetensors"], "o.safetensors"),
            "dtype": ("bf16", ["--dtype", "bf16"], "o.safetensors"),
            "overflow": ("inf", ["--overflow", "inf"], "o.safetensors"),
            "shard_bytes": (20000, ["--shard-size", "20000"], "o/"),
            "level": (9, ["--level", "9"], "o.safetensors.zst"),
            "input_hash": ("sampled", ["--input-hash", "sampled"], "o.safetensors"),
        }
        others = {"io", "replace", "sync", "drop_cache", "verify", "refuse_nan", "threads", "progress"}
        self.assertEqual(set(shape) | others, set(inspect.signature(ph.Plan.run).parameters) - {"self", "out"})
        previous = os.getcwd()
        os.chdir(self.dir)
        self.addCleanup(os.chdir, previous)
        with ph.open("run") as series, series.plan(0.1) as plan:
            plan.run("base.safetensors")
            for name, (value, words, out) in shape.items():
                plan.run(f"{name}-{out}", **{name: value})
                same = ["synth", "-q", "--skip-existing", "--sigma-rel", "0.1", "run", f"{name}-{out}"]
                found = json.loads(phema(*same, *words, "--json", cwd=self.dir))
                self.assertEqual([o["status"] for o in found["outputs"]], ["kept"], name)
                other = ["--shard-size", "10000"] if name == "shard_bytes" else []
                with self.assertRaises(subprocess.CalledProcessError, msg=name) as raised:
                    phema(*same, *other, cwd=self.dir)
                self.assertIn(f"another {words[0]}", raised.exception.stderr.decode())


class Search(Case):
    def test_the_search_finds_the_width_of_the_truth(self):
        truth = {n: t[2] for n, t in tensors_of(next(self.run_dir.glob("truth/*"))).items()}
        paths = []

        def distance(path):
            paths.append(path)
            compared = subprocess.run([PROGRAM, "diff", path, next(self.run_dir.glob("truth/*"))], stdout=subprocess.PIPE)
            return float(compared.stdout.splitlines()[-1].split()[0])

        self.assertTrue(truth)
        with ph.open(self.run_dir) as series:
            found = ph.search(series, distance, (0.06, 0.2), dtype="f32")
            self.assertAlmostEqual(found.sigma_rel, 0.1, delta=0.005)
            self.assertEqual(len(found.scores), len(paths))
            self.assertFalse(any(os.path.exists(path) for path in paths))
            kept = ph.search(series, lambda path: abs(math.log(float(path.split("-")[-1][:-len(".safetensors")]) / 0.09)), (0.06, 0.2), directory=self.dir / "kept")
            self.assertTrue(os.path.exists(kept.best.path))
            self.assertAlmostEqual(kept.sigma_rel, 0.09, delta=0.005)
            with self.assertRaises(ph.UsageError):
                ph.search(series, lambda path: float("nan"), (0.06, 0.2))

    def test_averages_that_the_function_changes_are_made_again(self):
        ways = {
            "overwrite": lambda path: pathlib.Path(path).write_bytes(b"hello"),
            "remove": os.unlink,
            "link": lambda path: (os.rename(path, self.dir / "moved"), os.symlink(self.dir / "moved", path)),
            "others": lambda path: [f.write_bytes(b"hello") for f in pathlib.Path(path).parent.iterdir()],
        }
        truth = self.dir / "unchanged"
        with ph.open(self.run_dir) as series:
            first = ph.search(series, lambda path: 1.0, (0.06, 0.2), tolerance=0.1, directory=truth)
            right = {name: (truth / name).read_bytes() for name in os.listdir(truth)}
            self.assertGreater(len(right), 2)
            for way, change in ways.items():
                def score(path):
                    self.assertEqual(pathlib.Path(path).read_bytes(), right[os.path.basename(path)], way)
                    change(path)
                    return 1.0

                with self.assertLogs("posthocema", "WARNING"):
                    found = ph.search(series, score, (0.06, 0.2), tolerance=0.1, directory=self.dir / way)
                self.assertEqual(len(found.scores), len(first.scores))
                for kept in found.scores:
                    self.assertFalse(os.path.islink(kept.path))
                    self.assertEqual(pathlib.Path(kept.path).read_bytes(), right[os.path.basename(kept.path)], way)
            with self.assertLogs("posthocema", "WARNING"):
                ph.search(series, lambda path: ways["others"](path) and 1.0, (0.06, 0.2), tolerance=0.1)
            ph.search(series, lambda path: 1.0, (0.06, 0.2), tolerance=0.1, extension="", shard_bytes=20000)

    def test_messages_name_arguments(self):
        with ph.open(self.run_dir) as series:
            for make, message in (
                (lambda: series.plan(), "no target: give sigma_rel= or profile="),
                (lambda: series.plan(profile="zoo"), "profile: 'zoo': unknown profile"),
                (lambda: series.plan(0.1, rules="w"), "rules='w': "),
                (lambda: series.plan(0.1).run(self.dir / "o.safetensors", into="x", shard_bytes=1 << 20), "into: "),
                (lambda: ph.open(self.run_dir, name_regex="("), "name_regex: "),
            ):
                with self.assertRaises(ph.Error) as caught:
                    make()
                self.assertIn(message, str(caught.exception))
                self.assertNotIn("--", str(caught.exception))

    def test_the_search_scores_tensors_without_files(self):
        if not HAS_NUMPY:
            self.skipTest("needs NumPy")
        with ph.open(self.run_dir) as series:
            found = ph.search(series, lambda tensors: -sum(float(t.size) for t in tensors.values()), (0.06, 0.2), state_dict="numpy")
            self.assertEqual(found.best.path, None)


class Memory(Case):
    def test_cycles_leak_nothing(self):
        def cycle(n):
            for i in range(n):
                with ph.open(self.run_dir) as series, series.plan(0.1, metric="walk") as plan:
                    plan.tensor(plan.tensors()[0].name, kind="buffer")
                    if i % 10 == 0:
                        plan.run(self.dir / "cycle.safetensors", replace=True, sync=False)

        def usage():
            status = pathlib.Path("/proc/self/status").read_text()
            return (
                int(re.search(r"VmRSS:\s+(\d+)", status).group(1)),
                len(os.listdir("/proc/self/fd")),
                int(re.search(r"Threads:\s+(\d+)", status).group(1)),
            )

        cycle(10)
        before = usage()
        quarter = int(os.environ.get("CYCLES", 50)) // 4
        levels = [before[0]]
        for _ in range(4):
            cycle(quarter)
            after = usage()
            while after[2] > before[2]:  # the last one may still end, and so did one before
                time.sleep(0.01)
                after = usage()
            levels.append(after[0])
        self.assertEqual(after[1], before[1])
        # A leak grows in each quarter; the heaps of new threads grow now and then, and stay.
        self.assertLess(min(b - a for a, b in zip(levels, levels[1:])), max(quarter, 64), f"KiB: {levels}")


if __name__ == "__main__":
    unittest.main(verbosity=1)
