# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The kvsim authors
"""What failed, by cause. A cause is the kind of a failure and the innermost functions of the
program on its stack, without addresses and lines, so that many inputs of one defect are one
finding. fuzz/findings/ holds one input of each cause, and ledger.toml a row:

    [[finding]]
    cause = "1f2e3d4c5b6a"           # hash of kind and frames
    target = "order"                 # what found it first
    input = "order-1f2e3d4c5b6a"     # file beside the ledger
    kind = "heap-buffer-overflow"
    frames = ["kvsim::parse_order"]
    found = "2026-11-30"
    reason = ""                      # why it may stay, for now; empty: a new finding

A row with a reason is a known finding: it fails no night. A known finding that passes is reported,
because its row then has to go, and its input into the corpus."""

import dataclasses
import datetime
import hashlib
import json
import pathlib
import re
import tomllib

MOST_FRAMES = 3

# The first that matches says what kind of failure it was.
KINDS = (
    re.compile(r"requirement not met: (?:\S*/)?(\S+)"),
    re.compile(r"ERROR: AddressSanitizer: ([\w-]+)"),
    re.compile(r"ERROR: LeakSanitizer: ([\w -]+)"),
    re.compile(r"runtime error: ([^\n]+)"),
    re.compile(r"ERROR: libFuzzer: ([a-z -]+)"),
)
FRAME = re.compile(r"^\s*#\d+ 0x[0-9a-f]+ (?:in (?P<function>.+?) )?(?=[(/]|<unknown)(?P<rest>.*)$",
                   re.MULTILINE)
OFFSET = re.compile(r"\+(0x[0-9a-f]+)")
# Frames that say nothing about the cause.
BESIDE = re.compile(r"^(__\w*|abort|raise|gsignal|pthread_kill|_start|main|fuzzer::.*|std::.*"
                    r"|operator (new|delete).*|(.*::)?require|LLVMFuzzer\w+)$")


@dataclasses.dataclass(frozen=True)
class Cause:
    kind: str
    frames: tuple[str, ...]

    @property
    def key(self) -> str:
        text = json.dumps([self.kind, *self.frames])
        return hashlib.sha256(text.encode()).hexdigest()[:12]


def without_numbers(text: str) -> str:
    """What two messages about one defect have in common."""
    return re.sub(r"0x[0-9a-f]+|[-+]?\d[\d.e+-]*", "N", text).strip()


def cause_of(log: str, otherwise: str) -> Cause:
    """The cause that a sanitizer's or libFuzzer's log names; `otherwise` is the kind where it names
    none. A requirement of a target is named by its file and line."""
    kind = otherwise
    for pattern in KINDS:
        if found := pattern.search(log):
            kind = found[1] if pattern is KINDS[0] else without_numbers(found[1])
            break
    frames = []
    # The first stack is the failure's; others say who allocated or freed.
    first = re.search(r"^\s*#0 (?:.*\n)(?:\s*#\d+ .*(?:\n|$))*", log, re.MULTILINE)
    for frame in FRAME.finditer(first[0] if first else ""):
        name = frame["function"]
        if name is None:
            offset = OFFSET.search(frame["rest"])
            if offset is None or "/lib" in frame["rest"] or ".so" in frame["rest"]:
                continue
            name = offset[1]
        name = re.sub(r"\(anonymous namespace\)::", "", name)
        name = re.sub(r"[(<].*$", "", name)
        if not BESIDE.match(name):
            frames.append(name)
        if len(frames) == MOST_FRAMES:
            break
    return Cause(kind, tuple(frames))


class Ledger:
    """fuzz/findings/: reads the rows, adds new ones."""

    def __init__(self, folder: pathlib.Path):
        self.folder = folder
        self.path = folder / "ledger.toml"
        text = self.path.read_text(encoding="utf-8") if self.path.exists() else ""
        self.rows = tomllib.loads(text).get("finding", [])
        for row in self.rows:
            lacking = {"cause", "target", "input", "kind", "frames", "found", "reason"} - set(row)
            if lacking:
                raise ValueError(f"{self.path}: a finding lacks {', '.join(sorted(lacking))}")

    def find(self, key: str) -> dict | None:
        return next((row for row in self.rows if row["cause"] == key), None)

    def add(self, cause: Cause, target: str, content: bytes) -> dict:
        """Files a cause that is not there yet: first the input, then the row."""
        row = {
            "cause": cause.key, "target": target, "input": f"{target}-{cause.key}",
            "kind": cause.kind, "frames": list(cause.frames),
            "found": datetime.date.today().isoformat(), "reason": "",
        }
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / row["input"]).write_bytes(content)
        lines = ["[[finding]]", *(f"{name} = {json.dumps(value)}" for name, value in row.items())]
        before = self.path.read_text(encoding="utf-8") if self.path.exists() else ""
        with open(self.path, "a", encoding="utf-8") as stream:
            stream.write(("\n" if before.strip() else "") + "\n".join(lines) + "\n")
        self.rows.append(row)
        return row
