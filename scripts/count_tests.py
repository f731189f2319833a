# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The kvsim authors
"""Adds up what ./check ran: count_tests.py RESULTS-FOLDER ALLOWED-SKIPS.

Prints each failed part or test, each reason for which tests were skipped, and as the last line
"N passed, N failed, N skipped". The exit status is 1 if anything failed, nothing ran, or a
reason is not one of those allowed.
"""

import collections
import os
import pathlib
import re
import sys
import xml.etree.ElementTree as ElementTree


def allowed_reasons(text: str, environment: dict[str, str]) -> list[re.Pattern]:
    """The patterns of the file ALLOWED-SKIPS that hold in this environment."""
    patterns = []
    for line in text.splitlines():
        if not line or line.startswith("#"):
            continue
        condition = re.fullmatch(r"unless (\w+): (.*)", line)
        if condition and environment.get(condition[1]):
            continue
        patterns.append(re.compile(condition[2] if condition else line))
    return patterns


def skip_reason(output: str) -> str:
    """The reason that GoogleTest printed: the line below "FILE:LINE: Skipped"."""
    found = re.search(r": Skipped\n(.+)", output)
    return found[1].strip() if found and not found[1].startswith("[") else "no reason given"


def read_run(path: pathlib.Path):
    """(name, state, output) of each test of one ctest run; state is passed, failed or skipped."""
    for case in ElementTree.parse(path).getroot().iter("testcase"):
        output = case.findtext("system-out") or ""
        if case.find("skipped") is not None:
            message = case.find("skipped").get("message", "")
            # Otherwise ctest did not run it: its program is missing, it is switched off, …
            real = message.startswith("SKIP_")
            yield case.get("name"), "skipped" if real else "failed", output
        else:
            yield case.get("name"), "passed" if case.get("status") == "run" else "failed", output


def main(results: pathlib.Path, allowed_file: pathlib.Path) -> int:
    count = collections.Counter()
    skips = collections.Counter()
    for line in (results / "parts").read_text().splitlines():
        status, name = line.split(" ", 1)
        count["passed" if status == "0" else "failed"] += 1
        if status != "0":
            print(f"failed: {name}")
    for path in sorted(results.glob("*.xml")):
        for name, state, output in read_run(path):
            count[state] += 1
            if state == "failed":
                print(f"failed: {path.stem} {name}")
            elif state == "skipped":
                skips[skip_reason(output)] += 1
    allowed = allowed_reasons(allowed_file.read_text(), dict(os.environ))
    good = count["failed"] == 0 and count["passed"] > 0
    for reason, number in sorted(skips.items()):
        known = any(pattern.fullmatch(reason) for pattern in allowed)
        good = good and known
        note = "" if known else " (not an allowed reason: this fails)"
        print(f"skipped {number}: {reason}{note}")
    print(f"{count['passed']} passed, {count['failed']} failed, {count['skipped']} skipped")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])))
