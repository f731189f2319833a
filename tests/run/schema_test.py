# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The kvsim authors
"""The golden records fit docs/schema/kvsim.record.2.json, and lines with one thing wrong do not.
tests/run/record_test.cc shows that the program writes the golden lines byte for byte."""

import copy
import json
import pathlib
import sys
import unittest

import jsonschema

ROOT = pathlib.Path(sys.argv.pop(1))
SCHEMA = json.loads((ROOT / "docs/schema/kvsim.record.2.json").read_text(encoding="utf-8"))
LINES = (ROOT / "tests/run/golden/records.jsonl").read_text(encoding="utf-8").splitlines()
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)


def holders(value):
    """Every object in a line."""
    if isinstance(value, dict):
        yield value
    for child in value.values() if isinstance(value, dict) else value:
        if isinstance(child, (dict, list)):
            yield from holders(child)


class RecordSchema(unittest.TestCase):
    def test_schema_is_one(self):
        jsonschema.Draft202012Validator.check_schema(SCHEMA)

    def test_golden_lines_fit(self):
        for line in LINES:
            VALIDATOR.validate(json.loads(line))

    def test_missing_and_unknown_fields_do_not_fit(self):
        for line in LINES:
            record = json.loads(line)
            for index, holder in enumerate(holders(record)):
                for key in holder:
                    broken = copy.deepcopy(record)
                    del list(holders(broken))[index][key]
                    self.assertFalse(VALIDATOR.is_valid(broken), f"without {key}: {line}")
                broken = copy.deepcopy(record)
                list(holders(broken))[index]["seconds"] = 3
                self.assertFalse(VALIDATOR.is_valid(broken), f"with seconds: {line}")


if __name__ == "__main__":
    unittest.main()
