#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The kvsim authors
"""Every study on kv-tiny, killed on its way and resumed: all controls hold, and claims are judged
as docs/data/findings/kv-tiny.json says, which docs/findings.md shows."""

import json
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

PROGRAM = sys.argv.pop(1)
SOURCE = pathlib.Path(__file__).resolve().parents[2]
COMMITTED = json.loads((SOURCE / "docs/data/findings/kv-tiny.json").read_text(encoding="utf-8"))


class ExperimentAll(unittest.TestCase):
    def test_kv_tiny(self):
        with tempfile.TemporaryDirectory() as folder:
            command = [PROGRAM, "experiment", "all", "--config", "kv-tiny", "--out", folder,
                       "--resume", "--json", "--quiet"]
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            third = pathlib.Path(folder) / "boundary.jsonl"
            for _ in range(600):
                if third.exists() or process.poll() is not None:
                    break
                time.sleep(0.1)
            self.assertIsNone(process.poll(), "ended before it was killed")
            process.send_signal(signal.SIGKILL)
            process.communicate()
            done = subprocess.run(command, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        result = json.loads(done.stdout)["result"]
        self.assertEqual(result["controls"]["green"], list(range(1, 17)))
        self.assertEqual(result["claims"], COMMITTED["claims"],
                         "scripts/findings run kv-tiny, then write")
        self.assertEqual(set(result) - {"claims"}, set(COMMITTED["studies"]))


if __name__ == "__main__":
    unittest.main()
