# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The kvsim authors
"""Checks the repository against its own rules (rules.py). One line per finding.

    tidy.py ROOT COMPILE_COMMANDS.JSON
"""

import json
import pathlib
import re
import subprocess
import sys

import rules

CODE = (".cc", ".h")
LAUNCHERS = ("kvsim", "check", ".ci/run")
# What one pattern skips over, so that a word in a comment or in a text is no finding.
COMMENT_OR_TEXT = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"(?P<mark>[^(\s]*)\(.*?\)(?P=mark)"'
    r'|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])\'',
    re.DOTALL,
)
STRAY = re.compile(r"(~|\.(orig|rej|bak|tmp|swp|o|old))$|(^|/)(tmp|temp|foo|bar|test|x)\.\w+$")
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"]+)"', re.MULTILINE)


def folder_of(path: pathlib.PurePath) -> str:
    """The room of the architecture that a file stands in."""
    return "fuzz/targets" if path.parts[:2] == ("fuzz", "targets") else path.parts[0]


def without_comments(text: str) -> str:
    """The code with comments and string literals blanked; every line keeps its number."""

    def blank(match: re.Match) -> str:
        found = match[0]
        if found.startswith('"'):  # the name of an included file is needed
            start = text.rfind("\n", 0, match.start()) + 1
            if text[start : match.start()].lstrip().startswith("#"):
                return found
        return re.sub(r"[^\n]", " ", found)

    return COMMENT_OR_TEXT.sub(blank, text)


def line_number(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1


def check_includes(path: pathlib.PurePath, code: str, existing: set[str]):
    """Includes are written from the root, name a file that exists, and follow the arrows."""
    room = folder_of(path)
    for match in INCLUDE.finditer(code):
        target = match[1]
        place = line_number(code, match.start())
        if target not in existing:
            yield place, "include", f'"{target}" is no file of the repository, named from its root'
            continue
        if room == "tests" or target.startswith("tests/"):
            allowed = room in rules.TESTS
        else:
            allowed = room in rules.TOP or pathlib.PurePath(target).parts[0] in rules.ARROWS[room]
        if not allowed:
            yield place, "arrow", f'{room}/ may not include "{target}"'


def check_bans(path: pathlib.PurePath, code: str, bans):
    for ban in bans:
        if path.parts[0] in ban.folders:
            for match in re.finditer(ban.pattern, code):
                message = f"{match[0].strip()}: {ban.reason}"
                yield line_number(code, match.start()), ban.name, message


def check_text(path: pathlib.PurePath, text: str):
    """Licence lines, width, length."""
    lines = text.splitlines()
    head = "\n".join(lines[:4])
    if "SPDX-License-Identifier: Apache-2.0" not in head or "SPDX-FileCopyrightText:" not in head:
        yield 1, "licence", "the first lines do not hold the two SPDX lines"
    for number, line in enumerate(lines, 1):
        if len(line) > rules.LINE_WIDTH and not re.search(r"https?://", line):
            yield number, "width", f"{len(line)} columns; at most {rules.LINE_WIDTH}"
        if line != line.rstrip():
            yield number, "white space", "at the end of the line"
    if len(lines) > rules.FILE_LINES:
        yield 1, "length", f"{len(lines)} lines; at most {rules.FILE_LINES}: split the file"
    # Highway compiles its -inl.h files once for each instruction set.
    guard = "HWY_TARGET_TOGGLE" if path.stem.endswith("-inl") else "#pragma once"
    if path.suffix == ".h" and guard not in text:
        yield 1, "include guard", f"{guard} is missing"
    if re.search(r"(?<![\w.])/(work|root|home|Users)/\w", text):
        yield 1, "machine path", "names a folder of somebody's machine"


def check_file(path: pathlib.PurePath, text: str, existing: set[str]):
    """Every finding in one file as (line, rule, message). `existing`: all files, from the root."""
    yield from check_text(path, text)
    if path.suffix in CODE:
        code = without_comments(text)
        yield from check_includes(path, code, existing)
        yield from check_bans(path, code, rules.BANS)
    elif is_build_file(path):
        yield from check_bans(path, text, rules.BUILD_BANS)


def is_build_file(path: pathlib.PurePath) -> bool:
    return path.name == "CMakeLists.txt" or path.suffix == ".cmake"


def is_word(name: str, text: str) -> bool:
    """Whether a file name stands in a build file, and not as a part of a longer one."""
    return re.search(rf"(?<![\w/.-]){re.escape(name)}(?![\w.-])", text) is not None


def is_source(path: pathlib.PurePath) -> bool:
    """What somebody wrote as code; the rest is data or prose."""
    code = path.suffix in CODE + (".py", ".sh", ".in")
    return code or is_build_file(path) or str(path) in LAUNCHERS


def check_listed(files: dict[str, str], compiled: set[str]):
    """Each source is compiled in this build; each header of a library stands in its build file, so
    that it is installed."""
    absent = tuple(prefix for prefixes in rules.OPTIONAL for prefix in prefixes
                   if not any(name.startswith(prefixes) for name in compiled))
    for name in files:
        path = pathlib.PurePath(name)
        optional = "consumer" in path.parts or name.startswith(absent)
        if path.suffix == ".cc" and name not in compiled and not optional:
            yield name, "unlisted", "is never compiled: it stands in no CMakeLists.txt"
        if path.suffix == ".h" and path.parts[0] in rules.LIBRARIES:
            lists = files.get(f"{path.parts[0]}/CMakeLists.txt", "")
            if not is_word(str(path.relative_to(path.parts[0])), lists):
                yield name, "unlisted", f"is not installed: {path.parts[0]}/CMakeLists.txt lacks it"


def compiled_sources(root: pathlib.Path, commands: str) -> set[str]:
    """The sources that compile_commands.json names, or that a file of CMake's named there
    includes (KVSIM_UNITY), by their path from the root."""
    paths = []
    for entry in json.loads(commands):
        path = pathlib.Path(entry["directory"], entry["file"])
        if path.suffix == ".cxx":
            paths += map(pathlib.Path, re.findall(r'#include "([^"]+)"', path.read_text()))
        else:
            paths.append(path)
    return {str(path.relative_to(root)) for path in map(pathlib.Path.resolve, paths)
            if path.is_relative_to(root)}


def check_names(files):
    """Files are snake_case; nothing is left over from an editor, a merge or an experiment."""
    for name in files:
        path = pathlib.PurePath(name)
        if path.parts[0] in rules.FOLDERS and path.suffix in CODE + (".py",):
            if not re.fullmatch(r"[a-z][a-z0-9_]*(-inl)?", path.stem):
                yield name, "name", "file names are snake_case"
        if STRAY.search(name):
            yield name, "stray", "looks like a left-over"


def check_root_names(names):
    for name in sorted({pathlib.PurePath(n).parts[0] for n in names} - rules.ROOT_NAMES):
        yield name, "stray", "is not one of the names known at the root (tests/tidy/rules.py)"


def read_repository(root: pathlib.Path) -> dict[str, str]:
    """The text of every file under the project's folders, by its path from the root."""
    files = {}
    for folder in rules.FOLDERS + ("scripts",):
        for path in sorted((root / folder).rglob("*")):
            name = path.relative_to(root)
            if path.is_file() and "__pycache__" not in name.parts:
                # Golden files and corpora are data: any bytes, any width.
                files[str(name)] = path.read_text(encoding="utf-8") if is_source(name) else ""
    for name in ("CMakeLists.txt", *LAUNCHERS):
        files[name] = (root / name).read_text(encoding="utf-8")
    return files


def tracked_files(root: pathlib.Path) -> list[str]:
    """What git tracks; nothing where there is no git or no checkout, as in a source archive."""
    try:
        listing = subprocess.run(["git", "-C", str(root), "ls-files"], capture_output=True,
                                 text=True, check=False)
    except FileNotFoundError:
        return []
    return listing.stdout.splitlines()


def main(root: pathlib.Path, commands: pathlib.Path) -> int:
    files = read_repository(root)
    findings = []
    for name, text in files.items():
        path = pathlib.PurePath(name)
        if not is_source(path):
            continue
        for line, rule, message in check_file(path, text, set(files)):
            findings.append(f"{name}:{line}: {rule}: {message}")
    tracked = tracked_files(root)
    compiled = compiled_sources(root, commands.read_text(encoding="utf-8"))
    whole = [*check_listed(files, compiled), *check_names(files), *check_root_names(tracked)]
    for name, rule, message in whole:
        findings.append(f"{name}: {rule}: {message}")
    print("\n".join(findings))
    print(f"{sum(map(bool, files.values()))} files, {len(findings)} findings")
    return 1 if findings or not files else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2])))
