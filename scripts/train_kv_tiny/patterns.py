# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The kvsim authors
"""The patterns that problems are made of. A problem is an opening, one or two events and an ending;
a template is the list of their names.

Texts: {P}, {Q}, {R} are people and {he} is the pronoun of {P}; {I} items, {C} containers, {K} and
{L} colours; {v} is the quantity before the pattern and {w} after it, small letters are numbers. Of
[one|another] each side is drawn equally often: in answers these are the places where a trained
model has a near-tie.

Numbers: a pattern names its free numbers with their ranges, and gives one or two equations as
(left, operator, right, result), computed in order.
"""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Pattern:
    """One sentence of the question, how the answer works it out, and the numbers in it."""

    name: str
    question: str
    answer: str
    ranges: dict[str, tuple[int, int]]
    equations: tuple[str, ...] = ()
    food_only: bool = False


NEXT = "[Then|Next|After that]"
SO = "[so there are|which makes|and that gives]"
LEFT = "[so there are|which leaves|and that leaves]"
FIRST = "[First|To begin|At first]"
WHO = "[{P}|{he}]"

OPENINGS = (
    Pattern("own", "{P} [has|owns] {w} {I}.", f"{FIRST}, {{P}} [has|owns] {{w}} {{I}}.",
            {"w": (10, 60)}),
    Pattern("groups", "{P} has {a} {C} with {b} {I} in each.",
            f"{FIRST}, {{P}} [has|owns] {{a}} * {{b}} = {{w}} {{I}} in the {{C}}.",
            {"a": (2, 9), "b": (2, 9)}, ("a * b = w",)),
    Pattern("colours", "{P} has {a} {K} {I} and {b} {L} {I}.",
            f"{FIRST}, {{P}} [has|owns] {{a}} + {{b}} = {{w}} {{I}} [together|in all].",
            {"a": (5, 40), "b": (5, 40)}, ("a + b = w",)),
    Pattern("more", "{Q} has {a} {I}, and {P} has {b} more than {Q}.",
            f"{FIRST}, {{P}} [has|owns] {{a}} + {{b}} = {{w}} {{I}}.",
            {"a": (5, 50), "b": (2, 30)}, ("a + b = w",)),
    Pattern("fewer", "{Q} has {a} {I}, and {P} has {b} fewer than {Q}.",
            f"{FIRST}, {{P}} [has|owns] {{a}} - {{b}} = {{w}} {{I}}.",
            {"a": (15, 80), "b": (2, 30)}, ("a - b = w",)),
    Pattern("times", "{Q} has {a} {I}, and {P} has {b} times as many.",
            f"{FIRST}, {{P}} [has|owns] {{a}} * {{b}} = {{w}} {{I}}.",
            {"a": (2, 12), "b": (2, 6)}, ("a * b = w",)),
    Pattern("half", "{Q} has {a} {I}, and {P} has half as many.",
            f"{FIRST}, {{P}} [has|owns] {{a}} / 2 = {{w}} {{I}}.",
            {"a": (12, 90)}, ("a / 2 = w",)),
    Pattern("daily", "{P} [collects|picks up] {a} {I} a day for {b} days.",
            f"{FIRST}, {{P}} [collects|picks up] {{a}} * {{b}} = {{w}} {{I}}.",
            {"a": (2, 9), "b": (2, 9)}, ("a * b = w",)),
    Pattern("rows", "{P} puts all {his} {I} in {a} rows of {b}.",
            f"{FIRST}, {{P}} [has|owns] {{a}} * {{b}} = {{w}} {{I}} in the rows.",
            {"a": (2, 9), "b": (2, 9)}, ("a * b = w",)),
    Pattern("share", "{Q} shares {a} {I} equally among {b} children, and {P} is one of them.",
            f"{FIRST}, {{P}} [gets|receives] {{a}} / {{b}} = {{w}} {{I}}.",
            {"a": (20, 96), "b": (2, 6)}, ("a / b = w",)),
    Pattern("days", "{P} [collects|picks up] {a} {I} on Monday and {b} on Tuesday.",
            f"{FIRST}, {{P}} [collects|picks up] {{a}} + {{b}} = {{w}} {{I}} [together|in all].",
            {"a": (5, 40), "b": (5, 40)}, ("a + b = w",)),
    Pattern("gifts", "{P} gets {a} {I} from {Q} and {b} from {R}.",
            f"{FIRST}, {{P}} [gets|receives] {{a}} + {{b}} = {{w}} {{I}} [together|in all].",
            {"a": (5, 40), "b": (5, 40)}, ("a + b = w",)),
    Pattern("had", "{P} had {a} {I} but lost {b} of them.",
            f"{FIRST}, {{P}} [keeps|still has] {{a}} - {{b}} = {{w}} {{I}}.",
            {"a": (20, 90), "b": (2, 40)}, ("a - b = w",)),
)

EVENTS = (
    Pattern("buy", "{P} buys {n} more.",
            f"{NEXT}, {WHO} buys {{n}} more, {SO} {{v}} + {{n}} = {{w}} {{I}}.",
            {"n": (2, 40)}, ("v + n = w",)),
    Pattern("find", "{P} finds {n} {I} [in the garden|at home].",
            f"{NEXT}, {WHO} finds {{n}} {{I}}, {SO} {{v}} + {{n}} = {{w}} {{I}}.",
            {"n": (2, 30)}, ("v + n = w",)),
    Pattern("present", "{Q} gives {P} {n} {I} as a present.",
            f"{NEXT}, {WHO} [gets|receives] {{n}} {{I}}, {SO} {{v}} + {{n}} = {{w}} {{I}}.",
            {"n": (2, 30)}, ("v + n = w",)),
    Pattern("packs", "{P} buys {a} packs of {b} {I}.",
            f"{NEXT}, {WHO} buys {{a}} * {{b}} = {{m}} {{I}}, {SO} {{v}} + {{m}} = {{w}} {{I}}.",
            {"a": (2, 6), "b": (2, 9)}, ("a * b = m", "v + m = w")),
    Pattern("friends", "{a} friends bring {P} {b} {I} each.",
            f"{NEXT}, the friends bring {{a}} * {{b}} = {{m}} {{I}}, {SO} {{v}} + {{m}} = {{w}}"
            " {I}.",
            {"a": (2, 6), "b": (2, 9)}, ("a * b = m", "v + m = w")),
    Pattern("twice", "{P} [then gets|is given] as many {I} again as {he} has.",
            f"{NEXT}, the number doubles, {SO} {{v}} * 2 = {{w}} {{I}}.",
            {}, ("v * 2 = w",)),
    Pattern("give", "{P} gives {n} of them to {Q}.",
            f"{NEXT}, {WHO} gives away {{n}} {{I}}, {LEFT} {{v}} - {{n}} = {{w}} {{I}}.",
            {"n": (2, 40)}, ("v - n = w",)),
    Pattern("lose", "{P} loses {n} {I} on the way home.",
            f"{NEXT}, {WHO} loses {{n}} {{I}}, {LEFT} {{v}} - {{n}} = {{w}} {{I}}.",
            {"n": (2, 30)}, ("v - n = w",)),
    Pattern("sell", "{P} sells {n} {I} at the market.",
            f"{NEXT}, {WHO} sells {{n}} {{I}}, {LEFT} {{v}} - {{n}} = {{w}} {{I}}.",
            {"n": (2, 40)}, ("v - n = w",)),
    Pattern("hand", "{P} gives {b} {I} to each of {a} friends.",
            f"{NEXT}, {WHO} gives away {{a}} * {{b}} = {{m}} {{I}}, {LEFT} {{v}} - {{m}} = {{w}}"
            " {I}.",
            {"a": (2, 6), "b": (2, 9)}, ("a * b = m", "v - m = w")),
    Pattern("halve", "{P} gives half of the {I} to {Q}.",
            f"{NEXT}, {WHO} gives away half, {LEFT} {{v}} / 2 = {{w}} {{I}}.",
            {}, ("v / 2 = w",)),
    Pattern("eat", "{P} eats {n} of the {I}.",
            f"{NEXT}, {WHO} eats {{n}} {{I}}, {LEFT} {{v}} - {{n}} = {{w}} {{I}}.",
            {"n": (2, 20)}, ("v - n = w",), food_only=True),
    Pattern("spoil", "{n} of the {I} turn out to be bad, and {P} throws them away.",
            f"{NEXT}, {WHO} throws away {{n}} {{I}}, {LEFT} {{v}} - {{n}} = {{w}} {{I}}.",
            {"n": (2, 20)}, ("v - n = w",), food_only=True),
    Pattern("return", "{Q} gives back {n} {I} that {P} had lent.",
            f"{NEXT}, {WHO} [gets|receives] {{n}} {{I}}, {SO} {{v}} + {{n}} = {{w}} {{I}}.",
            {"n": (2, 30)}, ("v + n = w",)),
)

END = "[So|Thus|In the end]"

ENDINGS = (
    Pattern("total", "How many {I} does {P} have now?",
            f"{END}, {{P}} [has|owns] {{v}} {{I}}.", {}),
    Pattern("bags", "{P} puts them in {C} of {k}. How many {C} does {P} fill?",
            f"{END}, {{P}} [fills|needs] {{v}} / {{k}} = {{w}} {{C}}.",
            {"k": (2, 9)}, ("v / k = w",)),
    Pattern("price", "{P} sells all of them for {k} dollars each. How many dollars does {P} get?",
            f"{END}, {{P}} [gets|receives] {{v}} * {{k}} = {{w}} dollars.",
            {"k": (2, 5)}, ("v * k = w",)),
    Pattern("split", "{P} shares all of them equally among {k} friends. How many {I} does each"
            " friend get?",
            f"{END}, each friend [gets|receives] {{v}} / {{k}} = {{w}} {{I}}.",
            {"k": (2, 9)}, ("v / k = w",)),
    Pattern("ahead", "{Q} has {t} {I}. How many more {I} than {Q} does {P} have?",
            f"{END}, {{P}} [has|owns] {{v}} - {{t}} = {{w}} {{I}} more than {{Q}}.",
            {"t": (2, 60)}, ("v - t = w",)),
    Pattern("together", "{Q} has {t} {I}. How many {I} do {P} and {Q} have together?",
            f"{END}, they have {{v}} + {{t}} = {{w}} {{I}} [together|in all].",
            {"t": (2, 60)}, ("v + t = w",)),
)
