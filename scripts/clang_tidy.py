# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The kvsim authors
"""Runs clang-tidy over the product's sources: clang_tidy.py BUILD-FOLDER JOBS.

Tests are left out: most of their minutes would go into the macros of GoogleTest.

The build folder holds compile_commands.json and a finished Ninja build, which knows the headers of
each source. A source is looked at again only when it, one of its headers, its compile command,
.clang-tidy or clang-tidy itself has changed. The exit status is 1 if there is any finding.
"""

import concurrent.futures
import hashlib
import json
import pathlib
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDERS = ("softfloat", "sim", "model", "run", "fuzz", "gpu", "experiments", "cli", "cmake")
TOOL = "clang-tidy-19"


def headers_of_objects(build: pathlib.Path) -> dict[str, list[str]]:
    """What Ninja remembers: for each object file, the files it was compiled from."""
    text = subprocess.run(
        ["ninja", "-C", str(build), "-t", "deps"], capture_output=True, text=True, check=True
    ).stdout
    dependencies: dict[str, list[str]] = {}
    current: list[str] = []
    for line in text.splitlines():
        if line.startswith("    "):
            current.append(line.strip())
        elif ": #deps" in line:
            current = dependencies.setdefault(line.split(": #deps", 1)[0], [])
    return dependencies


def fingerprint(entry: dict, headers: list[str], common: bytes) -> str:
    """A digest of all that decides what clang-tidy says about one source."""
    digest = hashlib.sha256(common + entry["command"].encode())
    for name in sorted({entry["file"], *headers}):
        path = pathlib.Path(entry["directory"], name)
        digest.update(str(path).encode())
        if path.is_relative_to(ROOT):
            digest.update(path.read_bytes())
        else:
            state = path.stat()
            digest.update(f"{state.st_size} {state.st_mtime_ns}".encode())
    return digest.hexdigest()


def main(build: pathlib.Path, jobs: int) -> int:
    version = subprocess.run([TOOL, "--version"], capture_output=True, check=True).stdout
    common = version + (ROOT / ".clang-tidy").read_bytes()
    headers = headers_of_objects(build)
    cache = build / "clang-tidy-passed"
    cache.mkdir(exist_ok=True)
    work = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        path = pathlib.Path(entry["file"])
        if not any(path.is_relative_to(ROOT / folder) for folder in FOLDERS):
            continue  # a test, or generated
        words = shlex.split(entry["command"])
        key = fingerprint(entry, headers.get(words[words.index("-o") + 1], []), common)
        if not (cache / key).exists():
            work[path] = key

    def check(path: pathlib.Path) -> tuple[pathlib.Path, subprocess.CompletedProcess]:
        command = [TOOL, "-p", str(build), "--quiet", "--warnings-as-errors=*", str(path)]
        return path, subprocess.run(command, capture_output=True, text=True, check=False)

    failed = 0
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for path, done in pool.map(check, sorted(work)):
            if done.returncode == 0:
                (cache / work[path]).touch()
            else:
                failed += 1
                print(done.stdout.strip() or done.stderr.strip(), flush=True)
    print(f"{TOOL}: {len(work)} sources looked at, {failed} with findings")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]).resolve(), int(sys.argv[2])))
