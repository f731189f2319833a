#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The kvsim authors
"""Makes tests/golden/models/NAME.json: what transformers computes in float32 with a folder that
`kvsim import` wrote.

Twenty questions of GSM8K's test part (kv-tiny: of its own problems), cut to 24 tokens, then sixteen
tokens chosen greedily: for each step the token and its margin, for the first and the last step the
20 largest logits. Needs torch 2.11 and transformers 5.24 (make_decoder_fixtures.py says how to get
them), for Gemma also sentencepiece and protobuf:

  VENV/bin/python scripts/make_model_goldens.py smollm2-135m \\
    ~/.cache/kvsim/models/smollm2-135m GSM8K/test.jsonl
  VENV/bin/python scripts/make_model_goldens.py kv-tiny data/kv-tiny data/kv-tiny/problems.jsonl
"""

import argparse
import hashlib
import json
import pathlib

import torch
import transformers

SOURCE = pathlib.Path(__file__).resolve().parents[1]
PROMPTS = 20
PROMPT_TOKENS = 24
STEPS = 16
TOP = 20


def top_of(logits):
    values, tokens = logits.topk(TOP)
    return [[int(token), float(value)] for token, value in zip(tokens, values)]


def run(model, ids):
    """Greedy steps after the prompt, each by one pass over all tokens."""
    tokens, steps = list(ids), []
    with torch.no_grad():
        for step in range(STEPS):
            logits = model(torch.tensor([tokens])).logits[0, -1]
            assert logits.dtype == torch.float32
            best = logits.topk(2)
            # Of equal logits ours takes the lower index.
            token = int((logits == best.values[0]).nonzero()[0])
            steps.append({"token": token, "margin": float(best.values[0] - best.values[1])})
            if step in (0, STEPS - 1):
                steps[-1]["top"] = top_of(logits)
            tokens.append(token)
    return steps


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name", help="of the golden file")
    parser.add_argument("folder", type=pathlib.Path, help="that kvsim import or fetch wrote")
    parser.add_argument("questions", type=pathlib.Path,
                        help="JSON lines with a field question: test.jsonl of GSM8K")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    model = transformers.AutoModelForCausalLM.from_pretrained(
        arguments.folder, dtype=torch.float32).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(arguments.folder)
    prompts = []
    with arguments.questions.open(encoding="utf-8") as lines:
        for _, line in zip(range(PROMPTS), lines):
            ids = tokenizer(json.loads(line)["question"])["input_ids"][:PROMPT_TOKENS]
            prompts.append({"ids": ids, "steps": run(model, ids)})
    weights = (arguments.folder / "model.safetensors").read_bytes()
    text = {
        "made_by": "scripts/make_model_goldens.py",
        "model": arguments.name,
        "identity": hashlib.sha256(weights).hexdigest(),
        "attention": model.config._attn_implementation,
        "versions": {"torch": torch.__version__, "transformers": transformers.__version__},
    }
    path = SOURCE / "tests" / "golden" / "models" / f"{arguments.name}.json"
    path.parent.mkdir(exist_ok=True)
    # One prompt a line.
    lines = ",\n".join(" " + json.dumps(prompt, separators=(",", ":")) for prompt in prompts)
    head = json.dumps(text, indent=1)[:-2]
    path.write_text(f'{head},\n "prompts": [\n{lines}\n ]\n}}\n')
    margins = [step["margin"] for prompt in prompts for step in prompt["steps"]]
    print(f"{path.relative_to(SOURCE)}: {path.stat().st_size} bytes, smallest margin "
          f"{min(margins):.2g}")


if __name__ == "__main__":
    main()
