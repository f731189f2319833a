# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The kvsim authors
"""Greedy answers of kv-tiny to held-out problems: the share that is exact, and near-ties.

    evaluate.py --model FOLDER [--count N] [--compare-cache]

Weights are those of the folder, computed with in float32. --compare-cache computes in bfloat16,
once with a cache of keys and values and once without, and counts the answers that differ.
"""

import argparse
import json
import pathlib

import safetensors.torch
import tokenizers
import torch
from make_tokenizer import END_ID
from network import Decoder, empty_caches
from problems import make_problem

LONGEST = 160  # tokens of an answer
NEAR_TIE = 0.125  # logits


def load_model(folder: pathlib.Path, dtype: torch.dtype) -> Decoder:
    weights = safetensors.torch.load_file(folder / "model.safetensors")
    model = Decoder()
    model.load_state_dict({name.removeprefix("model."): weight for name, weight in weights.items()})
    return model.to(dtype)


def groups_of_equal_length(rows: list[list[int]]) -> list[list[int]]:
    """Indices of rows of the same length, so that nothing is padded."""
    groups: dict[int, list[int]] = {}
    for index, row in enumerate(rows):
        groups.setdefault(len(row), []).append(index)
    return list(groups.values())


@torch.inference_mode()
def answer_group(model, prompts: list[list[int]], cached: bool):
    """Tokens and margins [prompt][step] for prompts of one length, until all answers have ended."""
    ids = torch.tensor(prompts)
    caches = empty_caches() if cached else None
    last, tokens, margins = ids, [], []
    ended = torch.zeros(len(prompts), dtype=torch.bool)
    while len(tokens) < LONGEST and not ended.all():
        logits = model.last_logits(last, caches).float()
        best = logits.topk(2).values
        chosen = (logits == best[:, :1]).int().argmax(dim=1)  # of equal logits the lower index
        tokens.append(chosen)
        margins.append(best[:, 0] - best[:, 1])
        ended |= chosen == END_ID
        ids = torch.cat((ids, chosen[:, None]), dim=1)
        last = chosen[:, None] if cached else ids
    return torch.stack(tokens, dim=1).tolist(), torch.stack(margins, dim=1).tolist()


def answer_greedily(model, prompts: list[list[int]], cached=True):
    """For each prompt the tokens up to the one that ends the answer, and the distance of the two
    largest logits at each. Not cached: every token is computed from the whole text."""
    answers = [None] * len(prompts)
    for group in groups_of_equal_length(prompts):
        rows = answer_group(model, [prompts[index] for index in group], cached)
        for index, tokens, margins in zip(group, *rows):
            end = tokens.index(END_ID) + 1 if END_ID in tokens else len(tokens)
            answers[index] = (tokens[:end], margins[:end])
    return answers


def final_number(answer: str) -> str:
    """What stands after "####", or nothing."""
    return answer.rpartition("####")[2].strip() if "####" in answer else ""


def held_out(count: int, tokenizer):
    """Problems of the test split, and the token ids of their questions."""
    problems = [make_problem("test", number) for number in range(count)]
    return problems, [tokenizer.encode(problem["question"]).ids for problem in problems]


def are_exact(problems, answers, tokenizer) -> list[bool]:
    return [final_number(tokenizer.decode(tokens)) == final_number(problem["answer"])
            for problem, (tokens, _) in zip(problems, answers)]


def by_ending(problems, exact: list[bool]) -> dict[str, list[int]]:
    """For each ending how many are exact, and how many there are."""
    counts: dict[str, list[int]] = {}
    for problem, right in zip(problems, exact):
        row = counts.setdefault(problem["template"].split()[-1], [0, 0])
        row[0] += right
        row[1] += 1
    return counts


def exact_rate(model, tokenizer, count: int) -> float:
    problems, prompts = held_out(count, tokenizer)
    return sum(are_exact(problems, answer_greedily(model, prompts), tokenizer)) / count


def first_difference(one: list[int], other: list[int]) -> int | None:
    places = [i for i, (a, b) in enumerate(zip(one, other)) if a != b]
    return places[0] if places else None


def summary(problems, answers, tokenizer) -> dict:
    margins = [margin for _, row in answers for margin in row]
    exact = are_exact(problems, answers, tokenizer)
    return {"problems": len(problems), "exact": sum(exact), "by ending": by_ending(problems, exact),
            "tokens": len(margins), "shortest answer": min(len(row) - 1 for row, _ in answers),
            "near-ties": sum(margin < NEAR_TIE for margin in margins),
            "problems with near-ties": sum(min(row) < NEAR_TIE for _, row in answers)}


def main():
    parser = argparse.ArgumentParser(description="Evaluates kv-tiny on held-out problems.")
    parser.add_argument("--model", type=pathlib.Path, required=True)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--compare-cache", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    tokenizer = tokenizers.Tokenizer.from_file(str(options.model / "tokenizer.json"))
    problems, prompts = held_out(options.count, tokenizer)
    if not options.compare_cache:
        answers = answer_greedily(load_model(options.model, torch.float32), prompts)
        print(json.dumps(summary(problems, answers, tokenizer)))
        return
    model = load_model(options.model, torch.bfloat16)
    on = answer_greedily(model, prompts)
    off = answer_greedily(model, prompts, cached=False)
    flips = [first_difference(a, b) for (a, _), (b, _) in zip(on, off)]
    print(json.dumps({"on": summary(problems, on, tokenizer),
                      "off": summary(problems, off, tokenizer),
                      "flipped": sum(flip is not None for flip in flips)}))


if __name__ == "__main__":
    main()
