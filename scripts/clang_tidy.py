# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The kvsim authors
"""Runs clang-tidy over the product's sources: clang_tidy.py BUILD-FOLDER JOBS.

Tests are left out: most of their minutes would go into the macros of GoogleTest.

The build folder holds compile_commands.json; nothing needs to be built in it. A source is looked
at again only when it, one of the project's headers that it includes, its flags, .clang-tidy or
clang-tidy itself has changed. The exit status is 1 if there is any finding.

Three quarters of clang-tidy's time go into the system headers, which it walks for each source
anew. So sources that a build with KVSIM_UNITY compiles together are looked at together; where such
a batch has anything to say, its sources are looked at one by one, and only what is said then
counts.
"""

import concurrent.futures
import functools
import hashlib
import json
import pathlib
import re
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDERS = ("softfloat", "sim", "model", "run", "fuzz", "gpu", "experiments", "cli", "cmake")
TOOL = "clang-tidy-19"
INCLUDE = re.compile(r'^#include "([^"]+)"', re.MULTILINE)


@functools.cache
def headers_of(path: pathlib.Path) -> frozenset[pathlib.Path]:
    """The project's headers that a file includes, and those that they include."""
    found: set[pathlib.Path] = set()
    for name in INCLUDE.findall(path.read_text()):
        header = next((h for h in (ROOT / name, path.parent / name) if h.is_file()), None)
        if header and header not in found:
            found |= {header, *headers_of(header)}
    return frozenset(found)


def sources_of(path: pathlib.Path) -> list[pathlib.Path]:
    """The sources behind one compile command: with KVSIM_UNITY, those that its source includes."""
    if path.suffix != ".cxx":
        return [path]
    return [pathlib.Path(name) for name in INCLUDE.findall(path.read_text())]


def fingerprint(path: pathlib.Path, flags: tuple[str, ...], common: bytes) -> str:
    """A digest of all that decides what clang-tidy says about one source, but for the headers of
    the system."""
    digest = hashlib.sha256(common + repr(flags).encode())
    for name in sorted({path, *headers_of(path)}):
        digest.update(str(name).encode())
        digest.update(name.read_bytes())
    return digest.hexdigest()


def flags_of(entry: dict) -> tuple[str, ...]:
    """The flags of a compile command, but for the precompiled header: each source shows what it
    includes."""
    words = shlex.split(entry["command"])[1:]
    flags = []
    while words:
        word = words.pop(0)
        if word in ("-Xclang", "-o"):
            words.pop(0)
        elif word not in ("-c", "-Winvalid-pch", entry["file"]):
            flags.append(word)
    return tuple(flags)


def look_at(path: pathlib.Path, flags: tuple[str, ...], *options: str) -> str:
    """What clang-tidy says about one source; empty if nothing."""
    command = [TOOL, "--quiet", "--warnings-as-errors=*", *options, str(path), "--", *flags]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else done.stdout.strip() or done.stderr.strip()


def main(build: pathlib.Path, jobs: int) -> int:
    version = subprocess.run([TOOL, "--version"], capture_output=True, check=True).stdout
    common = version + (ROOT / ".clang-tidy").read_bytes()
    cache = build / "clang-tidy-passed"
    cache.mkdir(exist_ok=True)
    planned: set[str] = set()
    batches = []  # each: the file to look at, its sources with their digests, the flags
    for entry in json.loads((build / "compile_commands.json").read_text()):
        compiled = pathlib.Path(entry["file"])
        flags = flags_of(entry)
        sources = {path: fingerprint(path, flags, common) for path in sources_of(compiled)
                   if any(path.is_relative_to(ROOT / folder) for folder in FOLDERS)}
        # A source of several programs is looked at once.
        known = [key in planned or (cache / key).exists() for key in sources.values()]
        if not all(known):
            batches.append((compiled, sources, flags))
        planned.update(sources.values())
    # Those that Highway compiles once per instruction set take longest.
    batches.sort(key=lambda batch: "foreach_target.h" not in batch[0].read_text())

    def check(batch) -> dict[str, str]:
        """What is said about each source of a batch, by the source's digest."""
        compiled, sources, flags = batch
        if compiled not in sources and not look_at(
                compiled, flags, "--checks=-bugprone-suspicious-include",
                f"--header-filter=^{ROOT}/({'|'.join(FOLDERS)})/"):
            return dict.fromkeys(sources.values(), "")
        return {key: look_at(path, flags) for path, key in sources.items()}

    looked = failed = 0
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for said in pool.map(check, batches):
            for key, text in said.items():
                looked += 1
                if text:
                    failed += 1
                    print(text, flush=True)
                else:
                    (cache / key).touch()
    print(f"{TOOL}: {looked} sources looked at, {failed} with findings")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]).resolve(), int(sys.argv[2])))
