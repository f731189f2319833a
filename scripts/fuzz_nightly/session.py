# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The kvsim authors
"""A session: which slices of time which job gets. The plan follows from a few numbers in
session.json, and journal.jsonl holds a line for each slice that is done, so a session that was
killed goes on with the slices that are missing. What a slice in flight had found lies in the
corpora and artifacts on disk, where the next slice of that job looks."""

import dataclasses
import json
import os
import pathlib

LONGEST_SLICE = 300  # seconds


def write_whole(path: pathlib.Path, text: str):
    """Writes a file so that it is there whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(path.name + ".part")
    with open(beside, "w", encoding="utf-8") as stream:
        stream.write(text)
        stream.flush()
        os.fsync(stream.fileno())
    beside.replace(path)


@dataclasses.dataclass(frozen=True)
class Slice:
    number: int  # in the session
    job: str
    seconds: float
    seed: int


class Session:
    """The session of a state folder, begun or gone on with."""

    def __init__(self, state: pathlib.Path, jobs: list[str], seconds: float, workers: int,
                 fresh: bool = False):
        self.state = state
        self._head = state / "session.json"
        self._journal = state / "journal.jsonl"
        head = json.loads(self._head.read_text()) if self._head.exists() else None
        self.resumed = head is not None and not head["finished"] and not fresh
        if self.resumed:
            self.head = head
        else:
            length = min(LONGEST_SLICE, max(1.0, seconds * workers / len(jobs)))
            self.head = {
                "number": head["number"] + 1 if head else 1,
                "seconds": seconds, "workers": workers, "jobs": jobs, "slice_seconds": length,
                "slices": max(len(jobs), round(seconds * workers / length)), "finished": False,
            }
            self._write_head()
        self.done = {}
        if self._journal.exists():
            for line in self._journal.read_text().splitlines():
                try:
                    entry = json.loads(line)
                except json.JSONDecodeError:
                    continue  # the line that a kill cut off; its slice is run again
                if entry["session"] == self.head["number"]:
                    self.done[entry["slice"]] = entry
        elif not self._journal.parent.exists():
            self._journal.parent.mkdir(parents=True)

    def _write_head(self):
        write_whole(self._head, json.dumps(self.head, indent=1) + "\n")

    def missing(self) -> list[Slice]:
        """What is still to be run, jobs in turn."""
        jobs, length = self.head["jobs"], self.head["slice_seconds"]
        return [
            Slice(i, jobs[i % len(jobs)], length, 1 + i + 100000 * self.head["number"])
            for i in range(self.head["slices"]) if i not in self.done
        ]

    def note(self, piece: Slice, result: dict):
        """Writes down that a slice is done."""
        entry = {"session": self.head["number"], "slice": piece.number, "job": piece.job,
                 "seed": piece.seed, **result}
        # A kill may have cut the last line off in the middle: begin a new one.
        with open(self._journal, "a+", encoding="utf-8") as stream:
            stream.seek(0, os.SEEK_END)
            whole = stream.tell() == 0 or self._ends_with_newline()
            stream.write(("" if whole else "\n") + json.dumps(entry) + "\n")
            stream.flush()
            os.fsync(stream.fileno())
        self.done[piece.number] = entry

    def _ends_with_newline(self) -> bool:
        with open(self._journal, "rb") as stream:
            stream.seek(-1, os.SEEK_END)
            return stream.read() == b"\n"

    def finish(self):
        self.head["finished"] = True
        self._write_head()
