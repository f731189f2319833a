#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The kvsim authors
"""Checks what can be checked without a host: the files of fuzz/continuous."""

import pathlib
import re
import subprocess
import unittest

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = ROOT / "fuzz/continuous"


class Continuous(unittest.TestCase):
    def test_workflow(self):
        workflow = yaml.safe_load((FOLDER / "workflow.yml").read_text())
        self.assertEqual(set(workflow["jobs"]), {"batch", "coverage"})
        for job in workflow["jobs"].values():
            for step in job["steps"]:
                self.assertEqual(len({"run", "uses"} & set(step)), 1)
                command = step.get("run", "")
                checked = subprocess.run(["sh", "-n"], input=re.sub(r"\$\{\{.*?\}\}", "x", command),
                                         text=True, capture_output=True, check=False)
                self.assertEqual(checked.stderr, "")
                for path in re.findall(r"(?:scripts|fuzz)/[\w/-]+", command):
                    self.assertTrue((ROOT / path).exists(), path)

    def test_options_of_the_night_are_there(self):
        command = re.search(r"scripts/fuzz-nightly ([^\n]*)", (FOLDER / "workflow.yml").read_text())
        shown = subprocess.run([ROOT / "scripts/fuzz-nightly", "--help"], capture_output=True,
                               text=True, check=True).stdout
        for option in re.findall(r"--[a-z-]+", command[1]):
            self.assertIn(option, shown)

    def test_project(self):
        project = yaml.safe_load((FOLDER / "project.yaml").read_text())
        self.assertEqual(project["language"], "c++")

    def test_image_has_what_the_libraries_need(self):
        image = (FOLDER / "Dockerfile").read_text()
        # Those of the program alone are left out.
        beside = {"g++", "libcli11-dev", "libtomlplusplus-dev"}
        for line in (ROOT / "scripts/packages").read_text().splitlines():
            section, _, package = line.partition(" ")
            if section == "build" and package not in beside:
                self.assertIn(f" {package} ", image)

    def test_scripts(self):
        for shell, script in (("bash", "build.sh"), ("sh", "coverage")):
            subprocess.run([shell, "-n", FOLDER / script], check=True)
        usage = subprocess.run([FOLDER / "coverage"], capture_output=True, text=True, check=False)
        self.assertEqual((usage.returncode, usage.stderr), (2, "usage: coverage OUT [CORPORA…]\n"))


if __name__ == "__main__":
    unittest.main()
