# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The kvsim authors
"""Tests of the word problems that kv-tiny is trained on. What a question asks is worked out here
from its sentences alone, by rules written for this test; the generator's patterns are not used."""

import json
import pathlib
import re
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts/train_kv_tiny"))

import problems  # noqa: E402

COMMITTED = ROOT / "data/kv-tiny/problems.jsonl"
# A sentence, and what it does to the number of things so far.
RULES = (
    (r"\w+ (?:has|owns) (\d+) \w+", lambda v, n: n),
    (r"\w+ has (\d+) \w+ with (\d+) \w+ in each", lambda v, a, b: a * b),
    (r"\w+ has (\d+) \w+ \w+ and (\d+) \w+ \w+", lambda v, a, b: a + b),
    (r"\w+ has (\d+) \w+, and \w+ has (\d+) more than \w+", lambda v, a, b: a + b),
    (r"\w+ has (\d+) \w+, and \w+ has (\d+) fewer than \w+", lambda v, a, b: a - b),
    (r"\w+ has (\d+) \w+, and \w+ has (\d+) times as many", lambda v, a, b: a * b),
    (r"\w+ has (\d+) \w+, and \w+ has half as many", lambda v, a: a / 2),
    (r"\w+ (?:collects|picks up) (\d+) \w+ a day for (\d+) days", lambda v, a, b: a * b),
    (r"\w+ puts all \w+ \w+ in (\d+) rows of (\d+)", lambda v, a, b: a * b),
    (r"\w+ shares (\d+) \w+ equally among (\d+) children, and \w+ is one of them",
     lambda v, a, b: a / b),
    (r"\w+ (?:collects|picks up) (\d+) \w+ on Monday and (\d+) on Tuesday", lambda v, a, b: a + b),
    (r"\w+ gets (\d+) \w+ from \w+ and (\d+) from \w+", lambda v, a, b: a + b),
    (r"\w+ had (\d+) \w+ but lost (\d+) of them", lambda v, a, b: a - b),
    (r"\w+ buys (\d+) more", lambda v, n: v + n),
    (r"\w+ finds (\d+) \w+ (?:in the garden|at home)", lambda v, n: v + n),
    (r"\w+ gives \w+ (\d+) \w+ as a present", lambda v, n: v + n),
    (r"\w+ buys (\d+) packs of (\d+) \w+", lambda v, a, b: v + a * b),
    (r"(\d+) friends bring \w+ (\d+) \w+ each", lambda v, a, b: v + a * b),
    (r"\w+ (?:then gets|is given) as many \w+ again as s?he has", lambda v: 2 * v),
    (r"\w+ gives (\d+) of them to \w+", lambda v, n: v - n),
    (r"\w+ loses (\d+) \w+ on the way home", lambda v, n: v - n),
    (r"\w+ sells (\d+) \w+ at the market", lambda v, n: v - n),
    (r"\w+ gives (\d+) \w+ to each of (\d+) friends", lambda v, a, b: v - a * b),
    (r"\w+ gives half of the \w+ to \w+", lambda v: v / 2),
    (r"\w+ eats (\d+) of the \w+", lambda v, n: v - n),
    (r"(\d+) of the \w+ turn out to be bad, and \w+ throws them away", lambda v, n: v - n),
    (r"\w+ gives back (\d+) \w+ that \w+ had lent", lambda v, n: v + n),
    (r"How many \w+ does \w+ have now", lambda v: v),
    (r"\w+ puts them in \w+ of (\d+). How many \w+ does \w+ fill", lambda v, n: v / n),
    (r"\w+ sells all of them for (\d+) dollars each. How many dollars does \w+ get",
     lambda v, n: v * n),
    (r"\w+ shares all of them equally among (\d+) friends. How many \w+ does each friend get",
     lambda v, n: v / n),
    (r"\w+ has (\d+) \w+. How many more \w+ than \w+ does \w+ have", lambda v, n: v - n),
    (r"\w+ has (\d+) \w+. How many \w+ do \w+ and \w+ have together", lambda v, n: v + n),
)
EQUATION = re.compile(r"(\d+) ([-+*/]) (\d+) = (\d+)")


def solve(question: str) -> float:
    """Works a question out, sentence by sentence; the last two may belong together."""
    value = None
    rest = question
    while rest:
        found = [(match, step) for pattern, step in RULES
                 if (match := re.match(pattern + r"[.?](?: |$)", rest))]
        if not found:
            raise ValueError(f"no rule for: {rest}")
        match, step = max(found, key=lambda one: one[0].end())
        value = step(value, *map(int, match.groups()))
        rest = rest[match.end():]
    return value


def final_number(answer: str) -> int:
    return int(re.search(r"#### (\d+)$", answer)[1])


class Problems(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.test = [problems.make_problem("test", number) for number in range(1000)]
        cls.training = [problems.make_problem("training", number) for number in range(3000)]

    def test_every_answer_is_right(self):
        for problem in self.test + self.training:
            self.assertEqual(solve(problem["question"]), final_number(problem["answer"]), problem)

    def test_every_step_of_an_answer_is_right(self):
        operators = {"+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b,
                     "/": lambda a, b: a / b}
        for problem in self.test + self.training:
            equations = EQUATION.findall(problem["answer"])
            self.assertGreaterEqual(len(equations), 1, problem)
            for left, operator, right, result in equations:
                self.assertEqual(operators[operator](int(left), int(right)), int(result), problem)

    def test_rules_of_this_test_notice_a_wrong_answer(self):
        question = "Ada has 12 pens. Ada buys 5 more. How many pens does Ada have now?"
        self.assertEqual(solve(question), 17)
        self.assertNotEqual(
            solve("Ada has 12 pens. Ada loses 5 pens on the way home. How many pens does Ada have"
                  " now?"), 17)
        with self.assertRaises(ValueError):
            solve("Ada has 12 pens. Ada dances.")

    def test_training_has_fifty_templates_and_more(self):
        self.assertGreaterEqual(len({problem["template"] for problem in self.training}), 50)
        self.assertGreaterEqual(len({problem["template"] for problem in self.test}), 50)

    def test_held_out_templates_join_what_training_has(self):
        templates = {problem["template"] for problem in self.training}
        self.assertFalse(templates & {problem["template"] for problem in self.test})
        patterns = {pattern for template in templates for pattern in template.split()}
        for problem in self.test:
            self.assertLessEqual(set(problem["template"].split()), patterns)

    def test_held_out_words_are_words_of_training(self):
        known = {word for problem in self.training
                 for word in re.findall(r"[A-Za-z]+", problem["question"] + problem["answer"])}
        for problem in self.test:
            words = re.findall(r"[A-Za-z]+", problem["question"] + problem["answer"])
            self.assertLessEqual(set(words), known)

    def test_no_held_out_question_is_a_training_question(self):
        questions = {problem["question"] for problem in self.training}
        self.assertFalse(questions & {problem["question"] for problem in self.test})

    def test_answers_are_worked_out_in_forty_tokens(self):
        # The tokenizer never joins two words or two digits, so that there are at least as many.
        for problem in self.test + self.training:
            words = re.findall(r"[A-Za-z]+|\d|[^\w\s]+", problem["answer"])
            self.assertGreaterEqual(len(words), 40, problem)

    def test_numbers_have_two_digits_at_most(self):
        for problem in self.test + self.training:
            numbers = map(int, re.findall(r"\d+", problem["question"] + problem["answer"]))
            self.assertTrue(all(2 <= number <= 99 for number in numbers), problem)

    def test_one_number_gives_one_problem(self):
        self.assertEqual(problems.make_problem("test", 7), self.test[7])
        self.assertNotEqual(problems.make_problem("test", 7, seed=21), self.test[7])
        self.assertEqual(len({problem["question"] for problem in self.test}), 1000)

    def test_committed_problems_are_those_of_the_generator(self):
        lines = COMMITTED.read_text(encoding="utf-8").splitlines()
        self.assertEqual(len(lines), 1000)
        for line, problem in zip(lines, self.test):
            self.assertEqual(json.loads(line),
                             {"question": problem["question"],
                              "answer": f"#### {final_number(problem['answer'])}"})


if __name__ == "__main__":
    unittest.main()
