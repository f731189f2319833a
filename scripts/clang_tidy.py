# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The kvsim authors
"""Runs clang-tidy over the product's sources: clang_tidy.py BUILD-FOLDER JOBS.

Tests are left out: most of their minutes would go into the macros of GoogleTest.

The build folder holds compile_commands.json and a finished Ninja build, which knows the headers of
each source. A source is looked at again only when it, one of its headers, its compile command,
.clang-tidy or clang-tidy itself has changed. The exit status is 1 if there is any finding.

Three quarters of clang-tidy's time go into the system headers, which it walks for each source
anew. So sources with equal compile commands are looked at together, as one source that includes
them. Sources of a batch must not know each other's names; where a batch has anything to say, its
sources are looked at one by one, and only what is said then counts.
"""

import collections
import concurrent.futures
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
BATCH = 12  # sources; more saves little, and leaves a core idle at the end
# A declaration that starts its line, as clang-format leaves those outside functions and classes.
DECLARED = re.compile(r"^(?!#|//|namespace|using|\}|return)\S.*?\b(\w+)(?:\(|\{|;| = | \{)")


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


def batches_of(work: dict[pathlib.Path, tuple[str, ...]]) -> list[list[pathlib.Path]]:
    """Sources with equal flags that declare different names. A source that Highway compiles once
    per instruction set stays alone."""
    batches: list[list[pathlib.Path]] = []
    open_batches: dict[tuple, list[tuple[set[str], list[pathlib.Path]]]]
    open_batches = collections.defaultdict(list)
    for path, flags in sorted(work.items()):
        text = path.read_text()
        if "foreach_target.h" in text:
            batches.insert(0, [path])  # the longest first
            continue
        names = {match[1] for line in text.splitlines() if (match := DECLARED.match(line))}
        for taken, batch in open_batches[flags]:
            if len(batch) < BATCH and not names & taken:
                taken |= names
                batch.append(path)
                break
        else:
            open_batches[flags].append((names, [path]))
            batches.append(open_batches[flags][-1][1])
    return batches


def look_at(path: pathlib.Path, flags: tuple[str, ...], *options: str) -> str:
    """What clang-tidy says about one source; empty if nothing."""
    command = [TOOL, "--quiet", "--warnings-as-errors=*", *options, str(path), "--", *flags]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else done.stdout.strip() or done.stderr.strip()


def main(build: pathlib.Path, jobs: int) -> int:
    version = subprocess.run([TOOL, "--version"], capture_output=True, check=True).stdout
    common = version + (ROOT / ".clang-tidy").read_bytes()
    headers = headers_of_objects(build)
    cache = build / "clang-tidy-passed"
    cache.mkdir(exist_ok=True)
    keys = {}
    work = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        path = pathlib.Path(entry["file"])
        if not any(path.is_relative_to(ROOT / folder) for folder in FOLDERS):
            continue  # a test, or generated
        words = shlex.split(entry["command"])
        key = fingerprint(entry, headers.get(words[words.index("-o") + 1], []), common)
        if not (cache / key).exists():
            keys[path] = key
            work[path] = flags_of(entry)

    def check(batch: list[pathlib.Path]) -> dict[pathlib.Path, str]:
        """What is said about each source of a batch."""
        if len(batch) > 1:
            together = cache / f"{keys[batch[0]]}.cc"
            together.write_text("".join(f'#include "{path}"\n' for path in batch))
            # -Wno-shadow: a name of one source may hide one of another; the build looks for it.
            said = look_at(together, (*work[batch[0]], "-Wno-shadow"),
                           "--checks=-bugprone-suspicious-include",
                           f"--header-filter=^{ROOT}/({'|'.join(FOLDERS)})/")
            together.unlink()
            if not said:
                return dict.fromkeys(batch, "")
        return {path: look_at(path, work[path]) for path in batch}

    failed = 0
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for said in pool.map(check, batches_of(work)):
            for path, text in said.items():
                if text:
                    failed += 1
                    print(text, flush=True)
                else:
                    (cache / keys[path]).touch()
    print(f"{TOOL}: {len(work)} sources looked at, {failed} with findings")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]).resolve(), int(sys.argv[2])))
