# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The kvsim authors
"""Tests how ./check counts: which skips are allowed, what fails, and the last line."""

import contextlib
import io
import os
import pathlib
import sys
import tempfile
import unittest
import unittest.mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

import count_tests  # noqa: E402: the path stands above

PASSED = '<testcase name="a" status="run"><system-out>fine</system-out></testcase>'
FAILED = '<testcase name="b" status="fail"><failure message="x"/></testcase>'
MISSING = '<testcase name="c" status="notrun"><skipped message="Unable to find it"/></testcase>'


def skipped(reason: str) -> str:
    return ('<testcase name="d" status="notrun">'
            '<skipped message="SKIP_REGULAR_EXPRESSION_MATCHED"/>'
            f"<system-out>[ RUN ] A.d\nfile.cc:2: Skipped\n{reason}\n[  SKIPPED ] A.d</system-out>"
            f"</testcase>")


class Count(unittest.TestCase):
    def count(self, *cases: str, parts="0 build release\n", shared="") -> tuple[int, str, str]:
        """Exit status, last line, and all that was printed."""
        environment = {"KVSIM_SHARED": shared} if shared else {}
        with (tempfile.TemporaryDirectory() as folder, io.StringIO() as text,
              contextlib.redirect_stdout(text), unittest.mock.patch.dict(os.environ, environment)):
            if not shared:
                os.environ.pop("KVSIM_SHARED", None)
            results = pathlib.Path(folder)
            (results / "parts").write_text(parts)
            (results / "release.xml").write_text(f"<testsuite>{''.join(cases)}</testsuite>")
            status = count_tests.main(results, ROOT / "scripts/allowed_skips")
            printed = text.getvalue()
        return status, printed.splitlines()[-1], printed

    def test_all_passed(self):
        self.assertEqual(self.count(PASSED, PASSED)[:2], (0, "3 passed, 0 failed, 0 skipped"))

    def test_a_failed_test(self):
        status, last, printed = self.count(PASSED, FAILED)
        self.assertEqual((status, last), (1, "2 passed, 1 failed, 0 skipped"))
        self.assertIn("failed: release b", printed)

    def test_a_failed_part(self):
        status, last, printed = self.count(PASSED, parts="1 clang-tidy\n")
        self.assertEqual((status, last), (1, "1 passed, 1 failed, 0 skipped"))
        self.assertIn("failed: clang-tidy", printed)

    def test_a_test_whose_program_is_missing(self):
        self.assertEqual(self.count(PASSED, MISSING)[:2], (1, "2 passed, 1 failed, 0 skipped"))

    def test_nothing_ran(self):
        self.assertEqual(self.count(parts="")[:2], (1, "0 passed, 0 failed, 0 skipped"))

    def test_allowed_skips(self):
        for reason in ("no GPU", "this CPU lacks AVX512-FP16", "new CPU key: Zen 7"):
            with self.subTest(reason=reason):
                self.assertEqual(self.count(PASSED, skipped(reason), shared="/data")[:2],
                                 (0, "2 passed, 0 failed, 1 skipped"))

    def test_other_skips(self):
        for reason in ("too slow", "maybe no GPU", "no KVSIM_SHARED", "this CPU lacks"):
            with self.subTest(reason=reason):
                status, last, printed = self.count(PASSED, skipped(reason), shared="/data")
                self.assertEqual((status, last), (1, "2 passed, 0 failed, 1 skipped"))
                self.assertIn(f"{reason} (not an allowed reason", printed)

    def test_shared_data_may_be_absent_where_nobody_named_them(self):
        self.assertEqual(self.count(PASSED, skipped("no KVSIM_SHARED"))[0], 0)

    def test_a_skip_without_a_reason(self):
        status, _, printed = self.count(PASSED, skipped("[  SKIPPED ] A.d"))
        self.assertEqual(status, 1)
        self.assertIn("no reason given", printed)


if __name__ == "__main__":
    unittest.main()
