# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The kvsim authors
"""Makes word problems and prints them as JSON lines with the fields question and answer:

    problems.py [--split test|training] [--count N] [--first N] [--seed N] [--final-only]

Each problem depends on split, seed and its number alone. The templates of the test split are never
used for training: they join patterns that training joins in other ways.
"""

import argparse
import hashlib
import json
import random
import re

from patterns import ENDINGS, EVENTS, OPENINGS, Pattern
from words import COLOURS, CONTAINERS, FOOD, PEOPLE, THINGS

SEED = 20
LEAST, MOST = 2, 99  # every number of a problem and every result
LEAST_WORDS = 40  # words, digits and signs of an answer; a token is never longer than one of them
TRIES = 12  # for the numbers of one pattern, before the problem is begun again
CHOICE = re.compile(r"\[([^]]*)\]")
WORD = re.compile(r"\d|[^\W\d]+|[^\w\s]+")

Template = tuple[Pattern, ...]


class Draws:
    """Draws of one problem. Only random() is used: Python promises its values for ever."""

    def __init__(self, *key):
        digest = hashlib.sha256(repr(key).encode()).digest()
        self.source = random.Random(int.from_bytes(digest[:8], "little"))

    def below(self, count: int) -> int:
        return int(self.source.random() * count)

    def one_of(self, values):
        return values[self.below(len(values))]

    def between(self, least: int, most: int) -> int:
        return least + self.below(most - least + 1)


def template_name(template: Template) -> str:
    return " ".join(pattern.name for pattern in template)


def is_test_template(template: Template) -> bool:
    """One template of eight, by the hash of its name."""
    return hashlib.sha256(template_name(template).encode()).digest()[0] % 8 == 0


def draw_template(draws: Draws) -> Template:
    """An opening, an event, half of the time another event, an ending."""
    first = draws.one_of(EVENTS)
    second = draws.one_of(EVENTS)
    events = (first,) if draws.below(2) == 0 or second == first else (first, second)
    return (draws.one_of(OPENINGS), *events, draws.one_of(ENDINGS))


def work_out(equation: str, numbers: dict[str, int]) -> int | None:
    """The result of "x OP y = z", written to z; None if it is no whole number within the limits."""
    left, operator, right, _, name = equation.split()
    a, b = numbers[left], int(right) if right.isdigit() else numbers[right]
    if operator == "/" and a % b != 0:
        return None
    result = {"+": a + b, "-": a - b, "*": a * b, "/": a // b}[operator]
    if not LEAST <= result <= MOST:
        return None
    numbers[name] = result
    return result


def draw_numbers(pattern: Pattern, value: int, draws: Draws) -> dict[str, int] | None:
    for _ in range(TRIES):
        numbers = {name: draws.between(*limits) for name, limits in pattern.ranges.items()}
        numbers["v"] = value
        if all(work_out(equation, numbers) is not None for equation in pattern.equations):
            return {"w": value} | numbers
    return None


def draw_words(draws: Draws, template: Template) -> list[dict[str, str]]:
    """The words of each pattern: the same person and items all along, other people each time."""
    people = sorted(PEOPLE, key=lambda _: draws.source.random())
    person, pronoun = people[0]
    food = any(pattern.food_only for pattern in template) or draws.below(3) == 0
    items = draws.one_of(FOOD if food else THINGS)
    words = []
    for place in range(len(template)):
        colours = sorted(COLOURS, key=lambda _: draws.source.random())
        words.append({
            "P": person, "he": pronoun, "his": "his" if pronoun == "he" else "her", "I": items,
            "Q": people[2 * place + 1][0], "R": people[2 * place + 2][0],
            "C": draws.one_of(CONTAINERS), "K": colours[0], "L": colours[1]})
    return words


def choose(text: str, draws: Draws) -> str:
    """Draws one side of each [one|another]."""
    return CHOICE.sub(lambda found: draws.one_of(found[1].split("|")), text)


def try_problem(draws: Draws, is_test: bool) -> dict[str, str] | None:
    template = draw_template(draws)
    if is_test_template(template) != is_test:
        return None
    question, answer, value = [], [], 0
    for pattern, words in zip(template, draw_words(draws, template)):
        numbers = draw_numbers(pattern, value, draws)
        if numbers is None:
            return None
        value = numbers["w"]
        question.append(choose(pattern.question, draws).format(**words, **numbers))
        answer.append(choose(pattern.answer, draws).format(**words, **numbers))
    answer.append(f"#### {value}")
    text = " ".join(answer)
    if len(WORD.findall(text)) < LEAST_WORDS:
        return None
    return {"question": " ".join(question), "answer": text, "template": template_name(template)}


def make_problem(split: str, number: int, seed: int = SEED) -> dict[str, str]:
    """Problem `number` of a split, "test" or "training": question, answer and template's name."""
    draws = Draws("kv-tiny", seed, split, number)
    while True:
        problem = try_problem(draws, split == "test")
        if problem is not None:
            return problem


def json_line(problem: dict[str, str], final_only: bool) -> str:
    """Question and answer; of the answer only its end, "#### N", if `final_only`."""
    answer = problem["answer"]
    if final_only:
        answer = answer[answer.index("####") :]
    return json.dumps({"question": problem["question"], "answer": answer}, separators=(",", ":"))


def main():
    parser = argparse.ArgumentParser(description="Prints word problems as JSON lines.")
    parser.add_argument("--split", choices=("test", "training"), default="test")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--final-only", action="store_true", help="answers without their steps")
    options = parser.parse_args()
    for number in range(options.first, options.first + options.count):
        problem = make_problem(options.split, number, options.seed)
        print(json_line(problem, options.final_only))


if __name__ == "__main__":
    main()
