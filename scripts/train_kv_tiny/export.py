# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The kvsim authors
"""Writes a checkpoint of train.py as a folder in Hugging Face's layout, in bfloat16:

    export.py --work FOLDER --out FOLDER
"""

import argparse
import json
import pathlib

import safetensors.torch
import tokenizers
import torch
from make_tokenizer import END, END_ID
from network import CONFIG


def write_json(path: pathlib.Path, value):
    path.write_text(json.dumps(value, indent=1) + "\n", encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description="Exports kv-tiny.")
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    options = parser.parse_args()
    state = torch.load(options.work / "checkpoint.pt")
    weights = {f"model.{name}": weight.to(torch.bfloat16).contiguous()
               for name, weight in state["model"].items()}
    options.out.mkdir(parents=True, exist_ok=True)
    safetensors.torch.save_file(weights, options.out / "model.safetensors",
                                metadata={"format": "pt"})
    tokenizer = tokenizers.Tokenizer.from_file(str(options.work / "tokenizer.json"))
    if tokenizer.get_vocab_size() != CONFIG["vocab_size"]:
        raise SystemExit("export.py: the tokenizer's size is not that of the model")
    tokenizer.save(str(options.out / "tokenizer.json"), pretty=False)
    write_json(options.out / "config.json", CONFIG)
    write_json(options.out / "generation_config.json", {"eos_token_id": END_ID})
    write_json(options.out / "tokenizer_config.json", {
        "tokenizer_class": "PreTrainedTokenizerFast", "eos_token": END,
        "model_max_length": CONFIG["max_position_embeddings"]})
    for row in state["log"]:
        print(json.dumps(row))


if __name__ == "__main__":
    main()
