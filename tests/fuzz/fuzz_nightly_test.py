#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The kvsim authors
"""Tests of scripts/fuzz-nightly, with a shell script that behaves like a libFuzzer program."""

import json
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

from fuzz_nightly import findings, report  # noqa: E402

# Given a file it fails, unless that says "fine", in a function of the name that stands there. Given
# folders it adds an input to the first one, and then fails with one of the names in `fails`, or
# takes its time.
FAKE = r"""#!/bin/sh
here=$(dirname "$0")
corpus=
merge= last=
for argument; do
  case $argument in
    -merge=1) merge=1 ;;
    -max_total_time=*) seconds=${argument#*=} ;;
    -seed=*) seed=${argument#*=} ;;
    -artifact_prefix=*) prefix=${argument#*=} ;;
    -*) ;;
    *) [ -n "$corpus" ] || corpus=$argument; last=$argument ;;
  esac
done
if [ -n "$merge" ]; then
  cp "$(ls "$last"/* | head -n 1)" "$corpus"
  exit 0
fi
fail() {
  echo "==$$== ERROR: libFuzzer: deadly signal"
  echo "    #0 0x$$ in abort stdlib/abort.c:79"
  echo "    #1 0x$$a in kvsim::$1(int) /src/file.cc:$$:3"
  echo "    #2 0x7f in fuzzer::Fuzzer::ExecuteCallback() (/x/fuzz_fake+0x$$)"
  exit 77
}
if [ -f "$corpus" ]; then
  [ "$(cat "$corpus")" = fine ] || fail "$(cat "$corpus")"
  exit 0
fi
echo "input $seed" >"$corpus/$seed"
echo "#$seed INITED cov: 12 ft: 34 corp: 1/1b"
if [ -f "$here/fails" ]; then
  sed -n "$((seed % $(wc -l <"$here/fails") + 1))p" "$here/fails" >"${prefix}crash-$seed"
  if [ -f "$here/late" ]; then echo $$ >"$here/pid"; sleep 60; fi
  fail "$(cat "${prefix}crash-$seed")"
fi
sleep "$seconds"
echo "stat::number_of_executed_units: 100"
"""


# Given `fuzz property all` and `fuzz flip`, writes an answer to --output.
KVSIM = r"""#!/bin/sh
[ "$3" != list ] || exit 0
action=$2
while [ $# -gt 0 ]; do
  case $1 in
    --output) output=$2 ;;
    --corpus) corpus=$2 ;;
  esac
  shift
done
if [ "$action" = flip ]; then
  echo '{"result": {"bound_ratio": 0.5}}' >"$output"
  exit 0
fi
echo 'the case' >"$corpus/replica.case"
cat >"$output" <<END
{"result": {"properties": [
  {"property": "canary", "runs": 5, "holds": false, "reason": "as it must be"},
  {"property": "replica", "runs": 7, "holds": false, "reason": "row 31 differs",
   "file": "$corpus/replica.case"}]}}
END
exit 1
"""


class Summary(unittest.TestCase):
    def test_a_rate_is_left_out_where_the_time_rounds_to_nothing(self):
        self.assertEqual(report.rate(7, 0.0), "")
        self.assertEqual(report.rate(7000, 0.5), "14,000")


class Causes(unittest.TestCase):
    STACK = """==7== ERROR: AddressSanitizer: heap-buffer-overflow on address 0x60200000eff8
READ of size 1 at 0x60200000eff8 thread T0
    #0 0x55d6 in __asan_memcpy (/a/fuzz_order+0x1)
    #1 0x55d6 in (anonymous namespace)::require(bool) /a/fuzz/targets/input.h:22:3
    #1 0x55d7 in kvsim::(anonymous namespace)::Scanner::next(char) /a/sim/order.cc:41:12
    #2 0x55d8 in kvsim::parse_order(std::string_view) /a/sim/order.cc:77:9
    #3 0x55d9 in LLVMFuzzerTestOneInput /a/fuzz/targets/order.cc:60:3

0x60200000eff8 is located 0 bytes after an 8-byte region
    #0 0x55d6 in malloc (/a/fuzz_order+0x2)
    #1 0x55d6 in kvsim::read_file(int) /a/model/file.cc:3:1
"""

    def test_kind_and_innermost_functions_of_the_first_stack(self):
        cause = findings.cause_of(self.STACK, "exit 1")
        self.assertEqual(cause.kind, "heap-buffer-overflow")
        self.assertEqual(cause.frames, ("kvsim::Scanner::next", "kvsim::parse_order"))

    def test_addresses_and_lines_make_no_difference(self):
        moved = self.STACK.replace("0x55d", "0x66e").replace(":41:12", ":43:5")
        first, second = (findings.cause_of(text, "x").key for text in (self.STACK, moved))
        self.assertEqual(first, second)
        self.assertNotEqual(
            first, findings.cause_of(self.STACK.replace("parse_order", "height"), "x").key)
        self.assertNotEqual(
            first, findings.cause_of(self.STACK.replace("heap-buffer", "stack-buffer"), "x").key)

    def test_other_kinds(self):
        def kind(text):
            return findings.cause_of(text, "exit 9").kind
        overflow = "a.cc:3:4: runtime error: signed integer overflow: {} + 1 cannot be represented"
        self.assertEqual(kind(overflow.format(2147483647)), kind(overflow.format(2147483646)))
        self.assertEqual(kind("requirement not met: /a/b/targets/order.cc:12\n"
                              "== ERROR: libFuzzer: deadly signal"), "order.cc:12")
        self.assertEqual(kind("==1== ERROR: libFuzzer: timeout after 60 seconds"), "timeout after")
        self.assertEqual(kind("nothing"), "exit 9")

    def test_without_names_the_place_in_the_program_counts(self):
        cause = findings.cause_of("    #0 0x7f (/lib/x86_64-linux-gnu/libc.so.6+0x3c04f)\n"
                                  "    #1 0x55 (/a/fuzz_order+0x1600c4) (BuildId: 67)\n", "x")
        self.assertEqual(cause.frames, ("0x1600c4",))


class Nightly(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.programs = self.root / "build/fuzz"
        self.programs.mkdir(parents=True)
        (self.root / "corpora/a").mkdir(parents=True)
        self.state = self.root / "state"
        self.ledger = self.root / "findings/ledger.toml"

    def target(self, *names):
        for name in names:
            path = self.programs / f"fuzz_{name}"
            path.write_text(FAKE)
            path.chmod(0o755)

    def command(self, seconds, jobs):
        return [ROOT / "scripts/fuzz-nightly", "--seconds", str(seconds), "--jobs", str(jobs),
                "--no-build", "--build", self.root / "build", "--state", self.state,
                "--findings", self.root / "findings", "--corpora", self.root / "corpora",
                "--program", self.root / "no-kvsim"]

    def night(self, seconds=1, jobs=2):
        return subprocess.run(self.command(seconds, jobs), capture_output=True, text=True,
                              timeout=60)

    def journal(self):
        return [json.loads(line) for line in (self.state / "journal.jsonl").read_text().split("\n")
                if line.startswith("{") and line.endswith("}")]

    def test_every_target_has_its_time(self):
        self.target("a", "b", "c", "d")
        done = self.night(seconds=2)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual([entry["job"] for entry in sorted(self.journal(),
                                                           key=lambda e: e["slice"])], list("abcd"))
        self.assertTrue(all(entry["runs"] == 100 for entry in self.journal()))
        self.assertIn("| a | 1 | 1 | 100 |", (self.state / "summary.md").read_text())
        self.assertIn("no-kvsim is not there", done.stdout)
        again = self.night(seconds=2)  # the next night has the corpus of this one
        self.assertIn("session 2, begun", again.stdout)
        self.assertEqual(len(list((self.state / "corpus/a").iterdir())), 2)

    def test_failures_are_one_finding_for_each_cause(self):
        self.target("a")
        (self.programs / "fails").write_text("one\ntwo\n")
        done = self.night(jobs=1, seconds=3)
        self.assertEqual(done.returncode, 1)
        rows = tomllib.loads(self.ledger.read_text())["finding"]
        self.assertEqual(sorted(row["frames"] for row in rows), [["kvsim::one"], ["kvsim::two"]])
        self.assertGreater(len(list((self.state / "artifacts/a/filed").iterdir())), 2)
        for row in rows:
            content = (self.root / "findings" / row["input"]).read_text().strip()
            self.assertEqual(row["frames"], [f"kvsim::{content}"])
        # With a reason they are known, and the night passes.
        self.ledger.write_text(self.ledger.read_text().replace('reason = ""', 'reason = "because"'))
        again = self.night(jobs=1)
        self.assertEqual(again.returncode, 0, again.stdout)
        self.assertIn("New findings: 0. Known findings that came again: ", again.stdout)
        self.assertIn("(because)", again.stdout)
        self.assertEqual(len(tomllib.loads(self.ledger.read_text())["finding"]), 2)

    def test_a_known_finding_that_passes_is_reported(self):
        self.target("a")
        (self.root / "findings").mkdir()
        ledger = findings.Ledger(self.root / "findings")
        row = ledger.add(findings.Cause("deadly signal", ("kvsim::one",)), "a", b"fine")
        self.ledger.write_text(self.ledger.read_text().replace('reason = ""', 'reason = "known"'))
        done = self.night()
        self.assertEqual(done.returncode, 1)
        self.assertIn(f"{row['input']} passes now: take its row out", done.stdout)
        (self.root / "findings" / row["input"]).write_bytes(b"two")
        done = self.night()
        self.assertIn(f"{row['input']} fails for another cause now", done.stdout)

    def test_a_night_that_is_killed_goes_on_with_nothing_lost(self):
        self.target("a", "b")
        (self.programs / "fails").write_text("one\n")
        (self.programs / "late").touch()  # the first slice has found something and is in flight
        night = subprocess.Popen(self.command(seconds=2, jobs=1), stdout=subprocess.DEVNULL)
        pid = self.programs / "pid"
        deadline = time.monotonic() + 30
        while not (pid.exists() and pid.read_text().strip()) and time.monotonic() < deadline:
            time.sleep(0.02)
        night.send_signal(signal.SIGKILL)
        night.wait()
        target = int(pid.read_text())
        while pathlib.Path(f"/proc/{target}").exists() and time.monotonic() < deadline:
            state = pathlib.Path(f"/proc/{target}/stat").read_text().rsplit(")", 1)[1].split()[0]
            if state == "Z":
                break
            time.sleep(0.02)
        self.assertLess(time.monotonic(), deadline, "the target outlived the script")
        (self.programs / "late").unlink()
        (self.programs / "fails").unlink()
        kept = list((self.state / "corpus/a").iterdir())
        self.assertEqual(len(kept), 1)
        with open(self.state / "journal.jsonl", "a", encoding="utf-8") as stream:
            stream.write('{"session": 1, "slice": 7, "jo')  # as if cut off by the kill
        done = self.night(seconds=2, jobs=1)
        self.assertIn("session 1, gone on with: 2 slices", done.stdout)
        self.assertEqual(sorted(entry["slice"] for entry in self.journal()), [0, 1])
        self.assertTrue(kept[0].exists())
        self.assertIn("kvsim::one", self.ledger.read_text())  # of the slice that was killed
        self.assertEqual(done.returncode, 1)

    def test_pruning_keeps_what_the_merge_keeps(self):
        self.target("a")
        for _ in range(3):
            self.assertEqual(self.night().returncode, 0)
        corpus = self.state / "corpus/a"
        first = min(path.name for path in corpus.iterdir())
        done = subprocess.run([*self.command(1, 1), "--prune"], capture_output=True, text=True,
                              timeout=60)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual([path.name for path in corpus.iterdir()], [first])
        self.assertFalse((self.state / "corpus/a.pruned").exists())

    def test_flips_and_properties_of_the_program(self):
        self.target("a")
        program = self.root / "kvsim"
        program.write_text(KVSIM)
        program.chmod(0o755)
        command = [program if part == self.root / "no-kvsim" else part
                   for part in self.command(1, 2)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        self.assertEqual((done.returncode, done.stderr), (1, ""))
        self.assertIn("flip-sum-fp16 0.500", done.stdout)
        self.assertIn("| properties | 1 | ", done.stdout)
        row, = tomllib.loads(self.ledger.read_text())["finding"]
        self.assertEqual((row["target"], row["kind"]), ("properties", "replica: row N differs"))
        self.assertEqual((self.root / "findings" / row["input"]).read_text(), "the case\n")

    def test_errors(self):
        self.assertEqual(self.night().returncode, 3)  # no programs
        self.target("a")
        self.assertEqual(self.night(seconds=0).returncode, 2)
        only = subprocess.run([*self.command(1, 1), "--only", "b"], capture_output=True, text=True)
        self.assertEqual((only.returncode, only.stderr),
                         (2, "fuzz-nightly: no job b; accepted: a\n"))
        (self.root / "findings").mkdir()
        self.ledger.write_text('[[finding]]\ncause = "1"\n')
        self.assertEqual(self.night().returncode, 3)


class Repository(unittest.TestCase):
    def test_every_row_of_the_ledger_has_its_input(self):
        ledger = findings.Ledger(ROOT / "fuzz/findings")
        inputs = {row["input"] for row in ledger.rows}
        files = {p.name for p in ledger.folder.iterdir()} - {"README.md", "ledger.toml"}
        self.assertEqual(inputs, files)
        for row in ledger.rows:
            self.assertEqual(
                findings.Cause(row["kind"], tuple(row["frames"])).key, row["cause"])


if __name__ == "__main__":
    unittest.main()
