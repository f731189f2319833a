# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The kvsim authors
"""Shows that every rule of the tidy test finds a bad example, and leaves a good one alone."""

import json
import pathlib
import re
import tempfile
import unittest

import rules
import tidy

SPDX = "// SPDX-License-Identifier: Apache-2.0\n// SPDX-FileCopyrightText: The kvsim authors\n"
GOOD = SPDX + "int x = 1;\n"


def found(name: str, text: str, existing=frozenset()) -> set[str]:
    """The names of the rules that a file breaks."""
    return {rule for _, rule, _ in tidy.check_file(pathlib.PurePath(name), text, set(existing))}


class Bans(unittest.TestCase):
    def test_each_example_is_caught_in_each_folder(self):
        for ban in rules.BANS:
            for folder in ban.folders:
                with self.subTest(ban=ban.name, folder=folder):
                    self.assertEqual(found(f"{folder}/a.cc", SPDX + ban.example + "\n"), {ban.name})

    def test_comments_and_texts_are_left_alone(self):
        for ban in rules.BANS:
            with self.subTest(ban=ban.name):
                quoted = ban.example.replace('"', "'")
                text = f'// {quoted}\n/* {quoted}\n {quoted} */\nauto x = R"({quoted})";\n'
                self.assertEqual(found(f"{ban.folders[0]}/a.cc", SPDX + text), set())
                text = f'auto x = "{quoted}"; auto y = \'"\';\n'
                self.assertEqual(found(f"{ban.folders[0]}/a.cc", SPDX + text), set())

    def test_code_after_a_comment_is_seen(self):
        text = SPDX + 'auto x = "//"; int y = rand();\n'
        self.assertEqual(found("sim/a.cc", text), {"random source"})

    def test_own_names_are_left_alone(self):
        text = "model.exp(x); exp2_unit(x); strand(1); kvsim::log(x); wall_time(); my_exit(1);\n"
        self.assertEqual(found("sim/a.cc", SPDX + text), set())

    def test_each_libm_function_is_caught(self):
        for name in rules.TRANSCENDENTAL.split("|"):
            for start in ("std::", " ::", "__builtin_"):
                call = f"{start}{name}(x); {start}{name}f(x)"
                with self.subTest(call=call):
                    self.assertEqual(found("model/a.cc", SPDX + call + ";\n"), {"libm"})

    def test_build_files(self):
        for ban in rules.BUILD_BANS:
            with self.subTest(ban=ban.name):
                text = SPDX.replace("//", "#") + ban.example + "\n"
                self.assertEqual(found("sim/CMakeLists.txt", text), {ban.name})


class Includes(unittest.TestCase):
    EXISTING = {f"{folder}/a.h" for folder in (*rules.FOLDERS, "fuzz/targets")}

    def arrow(self, source: str, target: str) -> set[str]:
        return found(f"{source}/b.cc", SPDX + f'#include "{target}/a.h"\n', self.EXISTING)

    def test_every_pair_of_folders(self):
        for source in rules.ARROWS:
            for target in rules.FOLDERS:
                with self.subTest(source=source, target=target):
                    good = target in rules.ARROWS[source]
                    self.assertEqual(self.arrow(source, target), set() if good else {"arrow"})

    def test_the_arrows_of_the_architecture(self):
        for source, target in (
            ("softfloat", "sim"), ("sim", "model"), ("model", "sim"), ("run", "fuzz"),
            ("fuzz", "gpu"), ("gpu", "fuzz"), ("sim", "run"), ("experiments", "cli"),
            ("model", "tests"), ("cli", "tests"),
        ):
            with self.subTest(source=source, target=target):
                self.assertEqual(self.arrow(source, target), {"arrow"})

    def test_the_top_may_include_anything(self):
        for source in rules.TOP:
            for target in rules.ARROWS:
                self.assertEqual(self.arrow(source, target), set())
        self.assertEqual(self.arrow("tests", "tests"), set())

    def test_a_file_that_is_not_there(self):
        text = SPDX + '#include "order.h"\n'
        self.assertEqual(found("sim/b.cc", text, {"sim/order.h"}), {"include"})

    def test_an_include_in_a_comment(self):
        text = SPDX + '// #include "model/a.h"\n'
        self.assertEqual(found("sim/b.cc", text, self.EXISTING), set())


class Texts(unittest.TestCase):
    def test_good(self):
        self.assertEqual(found("sim/a.cc", GOOD), set())
        self.assertEqual(found("sim/a.h", SPDX + "#pragma once\n"), set())

    def test_licence(self):
        self.assertEqual(found("sim/a.cc", "int x;\n"), {"licence"})

    def test_width(self):
        self.assertEqual(found("sim/a.cc", SPDX + "//" + "x" * 98 + "\n"), set())
        self.assertEqual(found("sim/a.cc", SPDX + "//" + "x" * 99 + "\n"), {"width"})
        self.assertEqual(found("sim/a.cc", SPDX + "//" + "é" * 98 + "\n"), set())

    def test_length(self):
        self.assertEqual(found("sim/a.cc", SPDX + "int x;\n" * 598), set())
        self.assertEqual(found("sim/a.cc", SPDX + "int x;\n" * 599), {"length"})

    def test_include_guard(self):
        self.assertEqual(found("sim/a.h", GOOD), {"include guard"})
        self.assertEqual(found("sim/a-inl.h", GOOD), {"include guard"})

    def test_white_space(self):
        self.assertEqual(found("sim/a.cc", SPDX + "int x; \n"), {"white space"})

    def test_machine_path(self):
        self.assertEqual(found("sim/a.cc", SPDX + "// see /" + "home/me/x\n"), {"machine path"})


class Files(unittest.TestCase):
    LIST = "kvsim_library(NAME sim SOURCES order.cc\n  HEADERS order.h deep/sum.h)\n"

    def unlisted(self, *names: str) -> set[str]:
        files = {name: "" for name in names} | {"sim/CMakeLists.txt": self.LIST}
        return {name for name, _, _ in tidy.check_listed(files, {"sim/order.cc", "tests/a.cc"})}

    def test_listed(self):
        names = ("sim/order.cc", "sim/deep/sum.h", "sim/order.h", "tests/a.cc", "tests/a.h")
        self.assertEqual(self.unlisted(*names), set())

    def test_unlisted(self):
        for name in ("sim/sum.cc", "sim/deep/order.cc", "tests/b.cc", "tests/sim/order.cc",
                     "sim/sum.h", "sim/deep/order.h", "sim/der.h", "model/order.h"):
            with self.subTest(name=name):
                self.assertEqual(self.unlisted(name), {name})

    def test_sources_of_a_missing_library(self):
        names = ("gpu/torch/a.cc", "gpu/torch/b.cc", "tests/gpu/torch_a_test.cc")
        self.assertEqual(self.unlisted(*names), set())
        self.assertEqual(self.unlisted("gpu/torchlight.cc"), {"gpu/torchlight.cc"})
        files = {name: "" for name in names}
        found = {name for name, _, _ in tidy.check_listed(files, {"gpu/torch/a.cc"})}
        self.assertEqual(found, {"gpu/torch/b.cc", "tests/gpu/torch_a_test.cc"})

    def test_compiled_sources(self):
        commands = """[{"directory": "/a/build", "file": "/a/tests/sim/../oracle.cc"},
            {"directory": "/a", "file": "sim/order.cc"}, {"directory": "/b", "file": "x.cc"}]"""
        self.assertEqual(tidy.compiled_sources(pathlib.Path("/a"), commands),
                         {"tests/oracle.cc", "sim/order.cc"})

    def test_sources_that_are_compiled_together(self):
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "unity_0_cxx.cxx").write_text(
                '/* generated */\n#include "/a/sim/order.cc"\n\n#include "/a/sim/tree.cc"\n')
            commands = json.dumps([{"directory": folder, "file": "unity_0_cxx.cxx"}])
            self.assertEqual(tidy.compiled_sources(pathlib.Path("/a"), commands),
                             {"sim/order.cc", "sim/tree.cc"})

    def test_names(self):
        for name in ("sim/Order.cc", "sim/order-old.cc", "cli/a.h.orig", "sim/a.cc~",
                     "tests/tmp.txt", "sim/2nd.h"):
            with self.subTest(name=name):
                self.assertEqual(len({n for n, _, _ in tidy.check_names([name])}), 1)
        good = ["sim/order.cc", "sim/lanes-inl.h", "tests/sim/CMakeLists.txt"]
        self.assertEqual(list(tidy.check_names(good)), [])

    def test_root(self):
        names = ["sim/order.cc", "README.md", "repro.py", "notes/a.md"]
        self.assertEqual([n for n, _, _ in tidy.check_root_names(names)], ["notes", "repro.py"])

    def test_the_arrows_name_every_folder(self):
        root = pathlib.Path(__file__).resolve().parents[2]
        holding = {path.parts[-2] for path in root.glob("*/CMakeLists.txt")} - {"build"}
        self.assertLessEqual(holding, set(rules.FOLDERS) | {"scripts", "docs"})
        self.assertTrue(re.fullmatch(r"[a-z|0-9]+", rules.TRANSCENDENTAL))


if __name__ == "__main__":
    unittest.main()
