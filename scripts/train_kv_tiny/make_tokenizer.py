# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The kvsim authors
"""The tokenizer of kv-tiny: byte-level BPE whose words are letters, signs or one digit, each with
the space before it. Merges are learned from training problems."""

import tokenizers
from problems import make_problem
from tokenizers import decoders, models, pre_tokenizers, trainers

END = "<|endoftext|>"
END_ID = 0
SIZE = 672
WORDS = r" ?\p{N}| ?\p{L}+| ?[^\s\p{L}\p{N}]+|\s+"
PROBLEMS = 4000


def make_tokenizer() -> tokenizers.Tokenizer:
    tokenizer = tokenizers.Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(tokenizers.Regex(WORDS), behavior="isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=SIZE, special_tokens=[END], show_progress=False,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()))
    problems = (make_problem("training", number) for number in range(PROBLEMS))
    tokenizer.train_from_iterator((joined(problem) for problem in problems), trainer)
    return tokenizer


def joined(problem: dict[str, str]) -> str:
    """What the model is trained on: the question is the prompt, whole."""
    return problem["question"] + "\n" + problem["answer"]
