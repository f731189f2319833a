# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The kvsim authors
"""Tests ./kvsim and ./check on a machine made of stand-ins for apt-get, dpkg-query, sudo, id and
cmake. They note what they were asked to do; the packages that count as installed are lines of a
file."""

import os
import pathlib
import shutil
import subprocess
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
STAND_INS = {
    "dpkg-query": 'sed "s/^/installed /" "$STATE/installed"',
    "id": 'cat "$STATE/uid"',
    "sudo": '[ -f "$STATE/sudo" ] || exit 1; echo sudo >>"$STATE/log"; shift; exec "$@"',
    "apt-get": """echo "apt-get $*" >>"$STATE/log"
        if [ "$1" = update ]; then touch "$STATE/lists"; exit 0; fi
        [ -f "$STATE/lists" ] || { echo "Unable to locate package"; exit 100; }
        for word in "$@"; do
          case $word in -*|install) ;; *) echo "$word" >>"$STATE/installed" ;; esac
        done""",
    "cmake": """echo "cmake $*" >>"$STATE/log"
        if [ -f "$STATE/broken" ]; then echo "the compiler says no"; exit 1; fi
        [ "$1" = --build ] || exit 0
        sleep 0.2
        mkdir -p "$2/cli"
        { echo '#!/bin/sh'; echo 'for word in "$@"; do printf "[%s]" "$word"; done'
          echo 'exit "${CODE:-0}"'; } >"$2/cli/kvsim"
        chmod +x "$2/cli/kvsim\"""",
}


class Launchers(unittest.TestCase):
    def setUp(self):
        self.place = pathlib.Path(tempfile.mkdtemp(prefix="launcher "))  # a space in every path
        self.addCleanup(shutil.rmtree, self.place)
        self.tree = self.place / "tree"
        for folder in ("softfloat", "sim", "model", "run", "fuzz", "gpu", "experiments", "include",
                       "cli", "cmake"):
            (self.tree / folder).mkdir(parents=True)
            (self.tree / folder / "a.h").touch()
        shutil.copytree(ROOT / "scripts", self.tree / "scripts")
        for name in ("kvsim", "check", "CMakeLists.txt", "CMakePresets.json"):
            shutil.copy(ROOT / name, self.tree)
        self.state = self.place / "state"
        self.state.mkdir()
        (self.state / "uid").write_text("0\n")
        (self.state / "lists").touch()
        lines = (ROOT / "scripts/packages").read_text().splitlines()
        self.packages = [line.split()[1] for line in lines if line.startswith("build ")]
        self.install(*self.packages)
        tools = self.place / "bin"
        tools.mkdir()
        for name, body in STAND_INS.items():
            (tools / name).write_text(f"#!/bin/sh\n{body}\n")
            (tools / name).chmod(0o755)
        self.environment = {"PATH": f"{tools}:/usr/bin:/bin", "STATE": str(self.state)}

    def install(self, *packages: str):
        (self.state / "installed").write_text("".join(f"{name}\n" for name in packages))

    def run_it(self, *arguments: str, program="kvsim", **environment: str):
        command = [str(self.tree / program), *arguments]
        return subprocess.run(command, capture_output=True, text=True, cwd="/", check=False,
                              env=self.environment | environment)

    def log(self) -> str:
        """What the stand-ins were asked since the last call."""
        path = self.state / "log"
        text = path.read_text() if path.exists() else ""
        path.unlink(missing_ok=True)
        return text

    def test_installs_and_builds_what_is_missing_and_says_so(self):
        self.install("g++")
        done = self.run_it()
        self.assertEqual((done.returncode, done.stdout), (0, ""))
        lines = [f"kvsim: installing {name}" for name in self.packages if name != "g++"]
        self.assertEqual(done.stderr.splitlines(), lines + ["kvsim: building build/release"])
        log = self.log()
        self.assertEqual(log.count("apt-get install"), 1)
        self.assertIn("--no-install-recommends", log)
        self.assertNotIn("apt-get update", log)
        self.assertNotIn(" g++", log)

    def test_does_nothing_twice(self):
        self.run_it()
        self.log()
        done = self.run_it()
        self.assertEqual((done.returncode, done.stderr, self.log()), (0, "", ""))

    def test_passes_arguments_and_exit_code_on(self):
        words = ["a b", "", "*", "$HOME", "--x=\\n", "'", '"']
        done = self.run_it(*words, CODE="4")
        self.assertEqual(done.returncode, 4)
        self.assertEqual(done.stdout, "".join(f"[{word}]" for word in words))

    def test_builds_again_when_a_source_is_newer_or_gone(self):
        self.run_it()
        self.log()
        for change in (lambda: (self.tree / "sim/a.h").touch(),
                       lambda: (self.tree / "model/new.cc").touch(),
                       lambda: (self.tree / "model/new.cc").unlink(),
                       lambda: (self.tree / "CMakeLists.txt").touch()):
            change()
            done = self.run_it()
            self.assertEqual(done.stderr, "kvsim: building build/release\n")
            self.assertIn("cmake --build", self.log())
            self.assertEqual(self.run_it().stderr, "")
        (self.tree / "README.md").touch()
        self.assertEqual(self.run_it().stderr, "")

    def test_builds_again_when_torch_was_installed(self):
        cache = self.place / "cache"
        self.run_it(KVSIM_CACHE=str(cache))
        (cache / "torch-0123/torch").mkdir(parents=True)
        later = time.time() + 1
        os.utime(cache / "torch-0123/torch", (later, later))
        self.log()
        done = self.run_it(KVSIM_CACHE=str(cache))
        self.assertEqual(done.stderr, "kvsim: building build/release\n")
        os.utime(cache / "torch-0123/torch", (0, 0))
        self.assertEqual(self.run_it(KVSIM_CACHE=str(cache)).stderr, "")

    def test_no_install_names_what_is_missing(self):
        self.install(*self.packages[1:])
        for program in ("kvsim", "check"):
            done = self.run_it(program=program, KVSIM_NO_INSTALL="1")
            self.assertEqual((done.returncode, done.stdout), (3, ""))
            self.assertIn(self.packages[0], done.stderr)
            self.assertEqual(done.stderr.count("\n"), 1)
        self.assertEqual(self.log(), "")

    def test_no_install_builds_when_nothing_is_missing(self):
        self.assertEqual(self.run_it(KVSIM_NO_INSTALL="1").returncode, 0)

    def test_without_rights_prints_the_line_to_run(self):
        self.install(*self.packages[2:])
        (self.state / "uid").write_text("1000\n")
        done = self.run_it()
        self.assertEqual((done.returncode, done.stdout), (3, ""))
        missing = " ".join(self.packages[:2])
        line = f"apt-get install -y --no-install-recommends {missing}"
        self.assertEqual(done.stderr.splitlines()[-1], line)
        self.assertEqual(self.log(), "")

    def test_uses_sudo_when_it_asks_for_no_password(self):
        self.install()
        (self.state / "uid").write_text("1000\n")
        (self.state / "sudo").touch()
        self.assertEqual(self.run_it().returncode, 0)
        self.assertIn("sudo\napt-get install", self.log())

    def test_refreshes_empty_package_lists(self):
        self.install()
        (self.state / "lists").unlink()
        self.assertEqual(self.run_it().returncode, 0)
        self.assertIn("apt-get update", self.log())

    def test_a_failing_build_shows_its_output_and_is_tried_again(self):
        (self.state / "broken").touch()
        for _ in range(2):
            done = self.run_it()
            self.assertEqual((done.returncode, done.stdout), (3, ""))
            self.assertIn("the compiler says no", done.stderr)
        (self.state / "broken").unlink()
        self.assertEqual(self.run_it().returncode, 0)

    def test_a_failing_rebuild_does_not_run_the_old_program(self):
        self.run_it()
        (self.tree / "sim/a.h").touch()
        (self.state / "broken").touch()
        for _ in range(2):
            done = self.run_it("x")
            self.assertEqual((done.returncode, done.stdout), (3, ""))

    def test_works_through_a_symbolic_link(self):
        link = self.place / "somewhere"
        link.symlink_to(self.tree / "kvsim")
        done = subprocess.run([str(link), "x"], capture_output=True, text=True, cwd=self.place,
                              env=self.environment, check=False)
        self.assertEqual((done.returncode, done.stdout), (0, "[x]"))
        self.assertTrue((self.tree / "build/release/cli/kvsim").exists())

    def test_only_one_of_several_builds(self):
        runs = [subprocess.Popen([str(self.tree / "kvsim"), "x"], env=self.environment, text=True,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(4)]
        for run in runs:
            self.assertEqual(run.communicate()[0], "[x]")
            self.assertEqual(run.returncode, 0)
        self.assertEqual(self.log().count("cmake --build"), 1)

    def test_a_moved_tree_is_configured_afresh(self):
        (self.tree / "build/release").mkdir(parents=True)
        cache = self.tree / "build/release/CMakeCache.txt"
        cache.write_text("CMAKE_HOME_DIRECTORY:INTERNAL=/elsewhere\n")
        self.run_it()
        self.assertIn("--fresh -DKVSIM_BUILD_TESTS=OFF", self.log())

    def test_a_build_that_has_tests_keeps_them(self):
        self.run_it()
        self.assertIn("-DKVSIM_BUILD_TESTS=OFF", self.log())
        cache = self.tree / "build/release/CMakeCache.txt"
        cache.write_text(f"CMAKE_HOME_DIRECTORY:INTERNAL={self.tree}\n")
        (self.tree / "sim/a.h").touch()
        self.run_it()
        log = self.log()
        self.assertIn("--preset release\n", log)
        self.assertNotIn("-DKVSIM_BUILD_TESTS", log)

    def test_check_refuses_what_it_does_not_know(self):
        for arguments in (["--fast"], ["--quick", "--exhaustive"], ["x"], ["--gemma", "x"]):
            done = self.run_it(*arguments, program="check")
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertIn(arguments[-1], done.stderr)
        self.assertEqual(self.log(), "")

    def test_check_accepts_no_terms_by_itself(self):
        done = self.run_it("--gemma", program="check")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertEqual(done.stderr.count("\n"), 1)
        self.assertIn("accepted with --accept-terms", done.stderr)
        self.assertEqual(self.log(), "")

    def test_the_private_python_fails_in_one_line(self):
        cache = self.place / "cache"
        script = "scripts/models/python"
        python = self.place / "bin/python3"
        python.write_text("#!/bin/sh\ncase $* in *ensurepip*) exit 0;; *) echo no; exit 1;; esac\n")
        python.chmod(0o755)
        done = self.run_it(str(cache), "-c", "", program=script)
        self.assertEqual((done.returncode, done.stdout), (3, ""))
        self.assertEqual(done.stderr.count("\n"), 1)
        self.assertIn("install the package python3-venv", done.stderr)
        self.assertEqual([path.name for path in cache.iterdir() if path.is_dir()], [])

    def test_installing_torch_fails_in_one_line(self):
        self.fails_in_one_line("scripts/torch/install", "torch")

    def test_installing_nvcc_fails_in_one_line(self):
        self.fails_in_one_line("scripts/cuda/install", "nvcc")

    def fails_in_one_line(self, script, what):
        cache = self.place / "cache"
        self.assertEqual(self.run_it("--where", str(cache), program=script).returncode, 1)
        uname = self.place / "bin/uname"
        for machine, words in (("x86_64", f"cannot install {what}"), ("sparc", "for sparc")):
            uname.write_text(f"#!/bin/sh\necho {machine}\n")
            uname.chmod(0o755)
            (self.tree / "scripts/models/python").write_text("#!/bin/sh\necho no; exit 1\n")
            done = self.run_it(str(cache), program=script)
            self.assertEqual((done.returncode, done.stdout), (3, ""))
            self.assertEqual(done.stderr.count("\n"), 1)
            self.assertIn(words, done.stderr)
            self.assertEqual([path.name for path in cache.iterdir() if path.is_dir()], [])

    def test_installs_torch_once_and_says_where(self):
        self.installs_once("scripts/torch/install", "torch")

    def test_installs_nvcc_once_and_says_where(self):
        self.installs_once("scripts/cuda/install", "nvidia/cu13")

    def installs_once(self, script, folder):
        cache = self.place / "cache"
        (self.tree / "scripts/models/python").write_text(
            '#!/bin/sh\nwhile [ "$1" != --target ]; do shift; done; '
            f'mkdir -p "$2/{folder}"\n')
        (self.place / "bin/uname").write_text("#!/bin/sh\necho x86_64\n")
        (self.place / "bin/uname").chmod(0o755)
        where = self.run_it(KVSIM_CACHE=str(cache), program=script).stdout
        self.assertTrue(pathlib.Path(where.strip()).is_dir())
        (self.tree / "scripts/models/python").write_text("#!/bin/sh\nexit 1\n")
        for arguments in ([], ["--where"], ["--where", str(cache)]):
            done = self.run_it(*arguments, KVSIM_CACHE=str(cache), program=script)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, where, ""))

    def test_an_unchanged_tree_answers_at_once(self):
        self.run_it()
        times = []
        for _ in range(5):
            start = time.monotonic()
            self.run_it("--version")
            times.append(time.monotonic() - start)
        # The program itself takes some milliseconds; what ./kvsim --version may take is 0.1 s.
        self.assertLess(min(times), 0.09)


if __name__ == "__main__":
    os.environ.pop("KVSIM_NO_INSTALL", None)
    unittest.main()
