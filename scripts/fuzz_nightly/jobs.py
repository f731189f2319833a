# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The kvsim authors
"""What a session runs: one class for each kind of job. A job runs for a slice of time and returns
what goes into the journal; failures are what it hands to `found`."""

import dataclasses
import json
import os
import pathlib
import re
import shutil
import subprocess
import time
from typing import Callable

from fuzz_nightly import findings

# Flags of single targets, beside those of all.
TARGET_FLAGS = {
    # Cases are texts of many numbers; their size is fixed by their shape.
    "flip_search": ["-max_len=262144", "-len_control=0"],
}
# Searches for flips that go on from night to night, each from its own state.
FLIP_SEARCHES = {
    "flip-sum-fp16": ["--terms", "64", "--accumulate", "fp16"],
    "flip-a100-splits": ["--device", "a100", "--head-dim", "64", "--kv-len", "512",
                         "--on-splits", "2", "--off-splits", "1"],
    "flip-h100-splits": ["--device", "h100", "--head-dim", "128", "--kv-len", "512",
                         "--on-splits", "8", "--off-splits", "1"],
}
# Files that libFuzzer writes for inputs that failed. slow-unit files are no failures.
ARTIFACT = re.compile(r"^(crash|timeout|oom|leak)-")
INPUT_SECONDS = 60  # an input that takes longer is a failure
MOST_RESTARTS = 20  # of a target that keeps failing within a slice


@dataclasses.dataclass(frozen=True)
class Failure:
    cause: findings.Cause
    target: str
    content: bytes


Found = Callable[[Failure], None]


def guarded(command: list) -> list[str]:
    """The command, so that it ends with this process, however that ends."""
    guard = shutil.which("setpriv")
    return ([guard, "--pdeathsig", "KILL"] if guard else []) + [str(part) for part in command]


def run(command: list, log: pathlib.Path, seconds: float) -> tuple[int, str]:
    """Runs a command to its end, or kills it after so long; its exit status and output."""
    environment = dict(os.environ)
    symbolizer = shutil.which("llvm-symbolizer-19") or shutil.which("llvm-symbolizer")
    if symbolizer:
        environment["ASAN_SYMBOLIZER_PATH"] = symbolizer
    log.parent.mkdir(parents=True, exist_ok=True)
    with open(log, "wb") as stream:
        try:
            status = subprocess.run(guarded(command), stdout=stream, stderr=subprocess.STDOUT,
                                    stdin=subprocess.DEVNULL, env=environment,
                                    timeout=seconds).returncode
        except subprocess.TimeoutExpired:
            status = 124
    return status, log.read_text(encoding="utf-8", errors="replace")


class Target:
    """A libFuzzer program. Its corpus is kept in the state folder beside the repository's."""

    def __init__(self, program: pathlib.Path, state: pathlib.Path, corpus: pathlib.Path):
        self.program = program
        self.name = program.name.removeprefix("fuzz_")
        self.repository_corpus = corpus / self.name
        self.corpus = state / "corpus" / self.name
        self.artifacts = state / "artifacts" / self.name
        self.log = state / "logs" / f"{self.name}.log"
        self.flips = state / "flips"

    def run(self, piece, found: Found) -> dict:
        for folder in (self.corpus, self.artifacts, self.flips):
            folder.mkdir(parents=True, exist_ok=True)
        self.file_artifacts(found)  # those of a slice that was killed
        before = sum(1 for _ in self.corpus.iterdir())
        began = time.monotonic()
        total, status = {"runs": 0, "features": 0}, 0
        for restart in range(MOST_RESTARTS):
            left = piece.seconds - (time.monotonic() - began)
            if restart > 0 and left < 1:
                break
            folders = [self.corpus] + [self.repository_corpus] * self.repository_corpus.is_dir()
            status, log = run(
                [self.program, f"-max_total_time={max(1, round(left))}",
                 f"-seed={piece.seed + restart * 1000003 & 0x7fffffff}",
                 f"-timeout={INPUT_SECONDS}", "-print_final_stats=1",
                 f"-artifact_prefix={self.artifacts}/", *TARGET_FLAGS.get(self.name, []),
                 f"--finds={self.flips}", *folders],
                self.log, left + 2 * INPUT_SECONDS)
            counted = re.findall(r"number_of_executed_units: (\d+)", log)
            counted = counted or re.findall(r"^#(\d+)\s", log, re.MULTILINE)
            total["runs"] += int(counted[-1]) if counted else 0
            features = re.findall(r"\bft: (\d+)", log)
            total["features"] = int(features[-1]) if features else total["features"]
            if status == 0:
                break
            if not self.file_artifacts(found):
                # It failed without an input: at its start, or by being killed.
                found(Failure(findings.cause_of(log, f"exit {status}"), self.name, b""))
                break
        return {"seconds": round(time.monotonic() - began, 2), **total, "exit": status,
                "new": sum(1 for _ in self.corpus.iterdir()) - before}

    def prune(self):
        """Keeps of the corpus only what reaches something that the repository's does not."""
        if not self.corpus.is_dir():
            return
        pruned = self.corpus.with_name(f"{self.name}.pruned")
        shutil.rmtree(pruned, ignore_errors=True)
        pruned.mkdir()
        repository = [self.repository_corpus] * self.repository_corpus.is_dir()
        status, _ = run([self.program, "-merge=1", f"-timeout={INPUT_SECONDS}",
                         *TARGET_FLAGS.get(self.name, []), pruned, *repository, self.corpus],
                        self.log.with_suffix(".prune.log"), 3600)
        if status != 0:
            return  # the corpus stays as it is; the next slice meets what failed
        for path in pruned.iterdir():
            if any((folder / path.name).exists() for folder in repository):
                path.unlink()
        kept = {path.name for path in pruned.iterdir()}
        # One file at a time, so that a kill leaves a corpus that is whole.
        for name in kept:
            (pruned / name).replace(self.corpus / name)
        for path in list(self.corpus.iterdir()):
            if path.name not in kept:
                path.unlink()
        pruned.rmdir()

    def file_artifacts(self, found: Found) -> int:
        """Hands over every failing input that lies there, and sets it aside."""
        if not self.artifacts.is_dir():
            return 0
        paths = sorted(p for p in self.artifacts.iterdir() if ARTIFACT.match(p.name))
        for path in paths:
            kind = path.name.split("-")[0]
            cause = self.try_input(path) or findings.Cause(f"{kind} that does not come again", ())
            found(Failure(cause, self.name, path.read_bytes()))
            aside = self.artifacts / "filed"
            aside.mkdir(exist_ok=True)
            path.replace(aside / path.name)
        return len(paths)

    def try_input(self, path: pathlib.Path) -> findings.Cause | None:
        """Why the input fails; None where it passes."""
        status, log = run([self.program, f"-timeout={INPUT_SECONDS}", path],
                          self.log.with_suffix(".input.log"), 2 * INPUT_SECONDS)
        return None if status == 0 else findings.cause_of(log, f"exit {status}")


class FlipSearch:
    """`kvsim fuzz flip`, going on from its state."""

    def __init__(self, name: str, program: pathlib.Path, state: pathlib.Path):
        self.name = name
        self.program = program
        self.state = state

    def run(self, piece, found: Found) -> dict:
        folder = self.state / "flips"
        folder.mkdir(parents=True, exist_ok=True)
        began = time.monotonic()
        answer = self.state / "logs" / f"{self.name}.json"
        answer.parent.mkdir(parents=True, exist_ok=True)
        status, log = run(
            [self.program, "fuzz", "flip", *FLIP_SEARCHES[self.name], "--quiet", "--threads", "1",
             "--time", f"{max(1, round(piece.seconds))}s", "--runs", "1000000000",
             "--state", folder / f"{self.name}.state", "--corpus", folder, "--no-shrink",
             "--json", "--output", answer],
            self.state / "logs" / f"{self.name}.log", piece.seconds + 300)
        entry = {"seconds": round(time.monotonic() - began, 2), "exit": status}
        if status not in (0, 1):
            found(Failure(findings.Cause(findings.without_numbers(log) or f"exit {status}", ()),
                          self.name, log.encode()))
            return entry
        result = json.loads(answer.read_text())["result"]
        entry["bound_ratio"] = result.get("bound_ratio")
        if status == 1:
            found(Failure(findings.Cause(findings.without_numbers(log), ()), self.name,
                          answer.read_bytes()))
        return entry


class Properties:
    """`kvsim fuzz property all`, each time with another seed."""

    name = "properties"

    def __init__(self, program: pathlib.Path, state: pathlib.Path):
        self.program = program
        self.state = state

    @staticmethod
    def exist(program: pathlib.Path) -> bool:
        return subprocess.run([program, "fuzz", "property", "list"], capture_output=True,
                              check=False).returncode == 0

    def run(self, piece, found: Found) -> dict:
        folder = self.state / "properties"
        folder.mkdir(parents=True, exist_ok=True)
        began = time.monotonic()
        answer = folder / "answer.json"
        answer.unlink(missing_ok=True)
        status, log = run(
            [self.program, "fuzz", "property", "all", "--quiet", "--seed", piece.seed,
             "--time", f"{max(1, round(piece.seconds))}s", "--corpus", folder, "--json",
             "--output", answer],
            self.state / "logs" / "properties.log", piece.seconds + 300)
        entry = {"seconds": round(time.monotonic() - began, 2), "exit": status}
        if status not in (0, 1) or not answer.exists():
            found(Failure(findings.Cause(findings.without_numbers(log) or f"exit {status}", ()),
                          self.name, log.encode()))
            return entry
        rows = json.loads(answer.read_text())["result"]["properties"]
        entry["runs"] = sum(row["runs"] for row in rows)
        for row in rows:
            if "file" not in row:  # holds, or is the canary
                continue
            reason = findings.without_numbers(row["reason"])[:200]
            found(Failure(findings.Cause(f"{row['property']}: {reason}", ()), self.name,
                          pathlib.Path(row["file"]).read_bytes()))
        return entry
