#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The kvsim authors
"""Ctrl-C: status 130, whole lines on stdout, no unfinished --output file."""

import os
import pathlib
import pty
import signal
import subprocess
import sys
import tempfile
import time
import unittest

PROGRAM = sys.argv.pop(1)
# More than a pipe holds: the program waits in write() until somebody reads.
LONG = [PROGRAM, "eval", "sum", "--json", "--input", "fp32", "--a=" + ",".join(["1"] * 4000)]
# Minutes of work.
SLOW = [PROGRAM, "predict", "--head-dim", "64", "--gqa", "8", "--kv-len", "1024",
        "--query-len", "1024", "--accumulate", "fp32"]


def interrupt(process):
    process.send_signal(signal.SIGINT)
    try:
        process.wait(timeout=20)
    except subprocess.TimeoutExpired:
        process.kill()
        raise


class Signals(unittest.TestCase):
    def test_whole_lines_when_the_reader_is_slow(self):
        process = subprocess.Popen(LONG, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        time.sleep(1)
        self.assertIsNone(process.poll(), "the program did not wait for its reader")
        interrupt(process)
        text, complaint = process.communicate()
        self.assertEqual(process.returncode, 130)
        self.assertEqual(complaint, b"")
        self.assertGreater(len(text), 4096)
        self.assertTrue(text.endswith(b"\n"), text[-80:])

    def test_nothing_is_left_when_work_is_interrupted(self):
        with tempfile.TemporaryDirectory() as folder:
            target = pathlib.Path(folder) / "answer.txt"
            process = subprocess.Popen(SLOW + ["--output", str(target), "--quiet"],
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            time.sleep(1)
            self.assertIsNone(process.poll(), "the command was over before it could be interrupted")
            interrupt(process)
            text, complaint = process.communicate()
            self.assertEqual((process.returncode, text, complaint), (130, b"", b""))
            self.assertEqual(os.listdir(folder), [])

    def test_progress_is_whole_lines(self):
        process = subprocess.Popen(SLOW + ["--progress"], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE)
        time.sleep(4)
        interrupt(process)
        text, progress = process.communicate()
        self.assertEqual((process.returncode, text), (130, b""))
        self.assertTrue(progress.endswith(b" %\n"), progress[-80:])

    def test_progress_is_for_terminals(self):
        process = subprocess.Popen(SLOW, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        ours, theirs = pty.openpty()
        on_terminal = subprocess.Popen(SLOW, stdout=subprocess.DEVNULL, stderr=theirs)
        time.sleep(4)
        for each in (process, on_terminal):
            interrupt(each)
        self.assertEqual(process.communicate(), (b"", b""))
        line = os.read(ours, 4096)
        os.close(ours)
        os.close(theirs)
        self.assertTrue(line.startswith(b"\r\x1b[Kkvsim predict: "), line)


if __name__ == "__main__":
    unittest.main()
