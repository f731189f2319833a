#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The kvsim authors
"""Tests of scripts/gpu-confirm, with stand-ins for nvidia-smi, cmake and the program."""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]


class GpuConfirm(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        (self.root / "scripts").mkdir()
        for script in ("gpu-confirm", "gpu-confirm-model"):
            shutil.copy(ROOT / "scripts" / script, self.root / "scripts")

    def program(self, path, text):
        path = self.root / path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("#!/bin/sh\n" + text)
        path.chmod(0o755)
        return path

    def run_script(self, *arguments, smi="/nonexistent/nvidia-smi"):
        environment = {
            "PATH": f"{self.root / 'bin'}:/usr/bin:/bin",
            "HOME": os.environ.get("HOME", "/"),
            "KVSIM_NVIDIA_SMI": str(smi),
        }
        return subprocess.run(
            [self.root / "scripts/gpu-confirm", *arguments],
            env=environment, capture_output=True, text=True, timeout=60)

    def machine(self, build="exit 0", kvsim="exit 0"):
        self.program("bin/cmake", f'echo "$@" >>"{self.root}/calls"\n'
                     f'case $1 in --build) {build} ;; esac\n')
        self.program("build/release/cli/kvsim", f'echo "$@" >>"{self.root}/calls"\n{kvsim}\n')
        self.program("build/release/tests/gpu/probe/gpu_device_test", "echo tested")
        return self.program("bin/smi", "echo 'NVIDIA H200, 580.1, 9.0'")

    def summary(self):
        return (self.root / "build/gpu-confirm/summary.txt").read_text()

    def test_without_a_gpu_nothing_is_built(self):
        done = self.run_script()
        self.assertEqual(done.returncode, 5)
        self.assertEqual(done.stderr, "gpu-confirm: no GPU: nvidia-smi shows no device\n")
        self.assertFalse((self.root / "build").exists())
        silent = self.program("bin/smi", "exit 0")
        self.assertEqual(self.run_script(smi=silent).returncode, 5)

    def test_a_dry_run_prints_every_step_and_runs_none(self):
        done = self.run_script("--dry-run", "/results")
        self.assertEqual(done.returncode, 0, done.stderr)
        names = [line.split(":")[0] for line in done.stdout.splitlines()]
        self.assertEqual(names, [
            "configure", "build", "device-tests", "probe-units", "probe-tables",
            "torch-cuda-fp32", "cublas-fp32", "torch-cuda-bf16", "cublas-bf16"])
        self.assertIn("probe --device cuda --unit all --rows 20000 --out /results/units",
                      done.stdout)
        self.assertFalse((self.root / "build").exists())

    def test_the_limits_of_all_steps_are_at_most_ten_minutes(self):
        text = (ROOT / "scripts/gpu-confirm").read_text()
        seconds = 0
        for line in text.splitlines():
            words = line.split()
            if len(words) > 2 and words[0] == "step" and words[2].isdigit():
                seconds += int(words[2]) * (2 if "dtype" in words[1] else 1)
        self.assertGreater(seconds, 300)
        self.assertLessEqual(seconds, 600)

    def test_runs_every_step_and_sums_up(self):
        done = self.run_script(smi=self.machine())
        self.assertEqual(done.returncode, 0, done.stderr)
        summary = self.summary()
        self.assertIn("NVIDIA H200, 580.1, 9.0", summary)
        self.assertEqual(summary.count("done (0)"), 9)
        self.assertIn("tested", (self.root / "build/gpu-confirm/device-tests.txt").read_text())
        self.assertEqual(len((self.root / "calls").read_text().splitlines()), 8)

    def test_what_is_not_available_is_no_failure_and_a_difference_is(self):
        smi = self.machine(kvsim="case $1 in crosscheck) exit 5 ;; esac")
        self.assertEqual(self.run_script(smi=smi).returncode, 0)
        self.assertEqual(self.summary().count("not available (5)"), 4)
        smi = self.machine(kvsim='case "$*" in *--unit*) exit 1 ;; esac')
        self.assertEqual(self.run_script(smi=smi).returncode, 1)
        self.assertRegex(self.summary(), r"probe-units +not as the tables say \(1\)")

    def test_a_build_that_fails_ends_it(self):
        done = self.run_script(smi=self.machine(build="exit 2"))
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stdout, r"build +failed \(2\)")
        self.assertEqual(len((self.root / "calls").read_text().splitlines()), 2)

    def test_an_option_that_is_none(self):
        done = self.run_script("--now")
        self.assertEqual(done.returncode, 2)
        self.assertIn("--now", done.stderr)

    # The studies on a model: a program that writes the records which it is asked for.
    STUDIES = """case "$1 $*" in
experiment*--dry-run*) ;;
experiment*--shard*) out=${*#*--out }; out=${out%% *}; i=${*#*--shard }; i=${i%% *}
  echo "$CUDA_VISIBLE_DEVICES" >"$out/behaviour.${i%/*}-of-${i#*/}.jsonl" ;;
merge*) for last; do :; done; cat "$2" "$3" >"$last" ;;
esac"""

    def test_a_model_on_two_gpus_is_computed_in_parts_and_joined(self):
        smi = self.machine(kvsim=self.STUDIES)
        smi.write_text("#!/bin/sh\nprintf '0\\n1\\n'")
        done = self.run_script("--model", "m", "--prompts", str(smi), "--study=behaviour", smi=smi)
        self.assertEqual(done.returncode, 0, done.stderr)
        folder = self.root / "build/gpu-confirm/confirm"
        self.assertEqual((folder / "behaviour.jsonl").read_text(), "0\n1\n")
        calls = (self.root / "calls").read_text()
        self.assertIn("experiment behaviour --config confirm --model m --engine torch-cuda", calls)
        self.assertIn("--no-controls --resume --shard 1/2", calls)
        self.assertIn("report " + str(folder / "behaviour.jsonl"), calls)

    def test_a_model_whose_controls_fail(self):
        smi = self.machine(kvsim='case "$2 $*" in controls*) exit 1 ;; esac\n' + self.STUDIES)
        smi.write_text("#!/bin/sh\nprintf '0\\n1\\n'")
        self.assertEqual(self.run_script("--model", "m", smi=smi).returncode, 1)
        self.assertIn("report", (self.root / "calls").read_text())

    def test_a_model_without_a_gpu_or_with_bad_options(self):
        self.assertEqual(self.run_script("--model", "m").returncode, 5)
        self.assertFalse((self.root / "build").exists())
        for arguments, words in [(["--model"], "no value"),
                                 (["--model", "m", "--gpus", "0"], "'0'"),
                                 (["--model=m", "--engine=sim"], "'sim'"),
                                 (["--model=m", "--prompts=/nowhere"], "'/nowhere'"),
                                 (["--model=m", "--fast"], "--fast")]:
            done = self.run_script(*arguments)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(words, done.stderr)


if __name__ == "__main__":
    unittest.main()
