#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The kvsim authors
"""Runs golden cases of the command line.

A case is a folder with
  cmd      shell lines; `kvsim` is the built program, the working directory is empty
  stdout, stderr, status   what must come out
  why      where the expected numbers come from, for cases with arithmetic

Every JSON object on stdout is checked against docs/schema. KVSIM_UPDATE_GOLDEN=1 rewrites stdout,
stderr and status of each case: read the difference before you commit it.
"""

import argparse
import difflib
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import jsonschema

SOURCE = pathlib.Path(__file__).resolve().parents[2]
FILES = ("stdout", "stderr", "status")


def normalise(text):
    """Replaces what changes from one build to the next."""
    text = re.sub(r'("version": )"[0-9.]+"', r'\1"VERSION"', text)
    text = re.sub(r"(?m)^kvsim \d+\.\d+\.\d+$", "kvsim VERSION", text)
    text = re.sub(r"(?m)^(commit|compiler|flags): .*$", r"\1: …", text)
    return text


def run(program, case):
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "bin").mkdir()
        (folder / "work").mkdir()
        (folder / "bin" / "kvsim").symlink_to(program)
        environment = {
            "PATH": f"{folder / 'bin'}:/usr/bin:/bin",
            "LC_ALL": "C.UTF-8",
            "KVSIM_SOURCE_DIR": str(SOURCE),
            "TMPDIR": str(folder),
        }
        for name, value in os.environ.items():  # what sanitizers read
            if name.endswith("SAN_OPTIONS"):
                environment[name] = value
        done = subprocess.run(
            ["sh", str(case / "cmd")],
            cwd=folder / "work",
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=120,
        )
    return {
        "stdout": normalise(done.stdout.decode("utf-8", "backslashreplace")),
        "stderr": normalise(done.stderr.decode("utf-8", "backslashreplace")),
        "status": f"{done.returncode}\n",
    }


def schema_problems(text):
    """Every JSON object in `text` that does not fit its schema."""
    problems = []
    decoder = json.JSONDecoder()
    at = 0
    while text[at:].lstrip().startswith("{"):
        at += len(text[at:]) - len(text[at:].lstrip())
        try:
            value, at = decoder.raw_decode(text, at)
        except json.JSONDecodeError as error:
            return problems + [f"stdout is no JSON: {error}"]
        name = value["schema"].replace("/", ".")
        schema = json.loads((SOURCE / "docs" / "schema" / f"{name}.json").read_text())
        value = dict(value, version="0.0.0")
        for error in jsonschema.Draft202012Validator(schema).iter_errors(value):
            where = "/".join(str(step) for step in error.absolute_path)
            problems.append(f"schema {name}: {where}: {error.message}")
    return problems


def check(program, case):
    found = run(program, case)
    problems = schema_problems(found["stdout"])
    lines = found["stderr"].splitlines()
    if "kvsim" in found["stderr"] and any(len(line) > 600 for line in lines):
        problems.append("a line on stderr has more than 600 characters")
    if os.environ.get("KVSIM_UPDATE_GOLDEN") == "1":
        for name in FILES:
            (case / name).write_text(found[name])
        return problems
    for name in FILES:
        path = case / name
        expected = path.read_text() if path.exists() else ""
        if found[name] != expected:
            problems.extend(
                line.rstrip("\n")
                for line in difflib.unified_diff(
                    expected.splitlines(True), found[name].splitlines(True), f"expected {name}",
                    f"found {name}", n=1)
            )
    return problems


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", required=True, type=pathlib.Path)
    parser.add_argument("cases", nargs="+", type=pathlib.Path, help="folders of cases")
    arguments = parser.parse_args()
    failed = 0
    for case in arguments.cases:
        problems = check(arguments.program.resolve(), case.resolve())
        if problems:
            failed += 1
            print(f"{case.name}: {(case / 'cmd').read_text().strip()}")
            for problem in problems:
                print(f"  {problem}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
