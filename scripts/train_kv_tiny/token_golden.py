# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The kvsim authors
"""Prints texts with the ids that Hugging Face's tokenizers gives for them, for
tests/golden/kv-tiny-tokens.json:

    token_golden.py data/kv-tiny/tokenizer.json
"""

import json
import sys

import tokenizers
from make_tokenizer import joined
from problems import make_problem

TEXTS = (
    "", " ", "  two  spaces ", "\n\n\ttabs\r\n", "1234567890", " 12 - 3 = 9", "x1y22z", "####42",
    "'tis don't \"quoted\"; (a+b)*c/d?!", "<|endoftext|>", "a<|endoftext|>b", "<|endoftext",
    "Grüße, ça va? Ω ≈ 3½", "日本語 ١٢ 🙂👍🏽", "caf\u0065\u0301", "\u00a0no\u2003break\u200bzero",
    "snake_case CamelCase __init__", "Ada", "ada ADA", "Zebra quagga xylophone",
)


def main():
    tokenizer = tokenizers.Tokenizer.from_file(sys.argv[1])
    texts = [*TEXTS, *(joined(make_problem("test", number)) for number in range(20))]
    rows = [json.dumps({"text": text, "ids": tokenizer.encode(text).ids}, ensure_ascii=False)
            for text in texts]
    print("[\n" + ",\n".join(rows) + "\n]")


if __name__ == "__main__":
    main()
