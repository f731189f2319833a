#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The kvsim authors
"""Makes tests/golden/gpu/transformers-SETTING.json: bits of what Hugging Face's transformers
computes on this CPU, one thread, with the models of tests/golden/decoder and those that are named
(folders that `kvsim import` or `kvsim fetch` wrote).

For every model, dtype and attention implementation, and for several ways to cut its tokens into
passes with a cache, one digest of the last row's logits per pass: the first 16 hexadecimal digits
of the SHA-256 of the numbers as little-endian doubles; and one of its hidden states: of the text
of such digests, one behind each layer. Another CPU may give other bits: the file names the CPU.

Settings: pinned sets MKL_CBWR=AVX2 and ATEN_CPU_CAPABILITY=avx2 and turns oneDNN off; installed
changes nothing. Needs torch 2.11 and transformers 5.24 (make_decoder_fixtures.py says how to get
them):

  VENV/bin/python scripts/make_torch_goldens.py ~/.cache/kvsim/models/smollm2-135m \\
    ~/.cache/kvsim/models/gemma3-270m
"""

import argparse
import hashlib
import json
import os
import pathlib
import struct
import subprocess
import sys

SOURCE = pathlib.Path(__file__).resolve().parents[1]
MODELS = SOURCE / "tests" / "golden" / "decoder"
FOLDER = SOURCE / "tests" / "golden" / "gpu"
NAMES = ["llama-llama3", "llama-linear", "mistral", "gemma2", "gemma3", "qwen2", "qwen3"]
DTYPES = {"binary32": "float32", "bfloat16": "bfloat16", "binary16": "float16"}
# Rows of each pass; every way begins with an empty cache.
WAYS = [[37, 1, 1, 1, 7, 1, 12, 1], [72], [3, 2, 1, 1], [1, 1, 1]]
LARGE_WAYS = [[64] + [1] * 16, [80], [7, 2, 1, 3]]
ENVIRONMENT = {
    "pinned": {"MKL_CBWR": "AVX2", "ATEN_CPU_CAPABILITY": "avx2"},
    "installed": {},
}
FEATURES = ["avx", "avx2", "fma", "f16c", "avx512f", "avx512bw", "avx512dq", "avx512vl",
            "avx512_vnni", "avx512_bf16", "avx512_fp16", "avx_vnni", "amx_tile", "amx_bf16",
            "amx_int8"]


def cpu():
    fields = dict(line.split(":", 1) for line in
                  pathlib.Path("/proc/cpuinfo").read_text().split("\n\n", 1)[0].splitlines())
    fields = {key.strip(): value.strip() for key, value in fields.items()}
    flags = fields["flags"].split()
    return {"vendor": fields["vendor_id"], "model": fields["model name"],
            "features": " ".join(name for name in FEATURES if name in flags)}


def digest(row):
    numbers = row.double().tolist()
    return hashlib.sha256(struct.pack(f"<{len(numbers)}d", *numbers)).hexdigest()[:16]


def run_way(torch, transformers, model, ids, way):
    """The digests of one way."""
    def take(_module, _inputs, out):
        state = out[0] if isinstance(out, tuple) else out
        hidden[-1] += digest(state[0, -1])

    hidden = []
    hooks = [layer.register_forward_hook(take) for layer in model.model.layers]
    cache = transformers.DynamicCache(config=model.config)
    logits, first = [], 0
    with torch.no_grad():
        for rows in way:
            hidden.append("")
            out = model(torch.tensor([ids[first:first + rows]]), cache=cache, use_cache=True,
                        logits_to_keep=1)
            logits.append(digest(out.logits[0, -1]))
            first += rows
    for hook in hooks:
        hook.remove()
    hidden = [hashlib.sha256(text.encode()).hexdigest()[:16] for text in hidden]
    return {"passes": way, "logits": logits, "hidden": hidden}


def models(large):
    """Name, folder, tokens, ways and formats of each."""
    from safetensors.torch import load_file
    for name in NAMES:
        folder = MODELS / name
        yield name, folder, load_file(folder / "golden.safetensors")["ids"].tolist(), WAYS, DTYPES
    for folder in large:
        # Any tokens will do.
        ids = [(7919 * i + 13) % 49000 for i in range(80)]
        two = {key: DTYPES[key] for key in ("binary32", "bfloat16")}
        yield folder.name, folder, ids, LARGE_WAYS, two


def make(setting, large):
    import torch
    import transformers
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    torch.set_num_threads(1)
    if setting == "pinned":
        torch.backends.mkldnn.set_flags(False)
    rows = []
    for name, folder, ids, ways, dtypes in models(large):
        for storage, dtype in dtypes.items():
            for attention in ("eager", "sdpa"):
                try:
                    model = transformers.AutoModelForCausalLM.from_pretrained(
                        folder, dtype=getattr(torch, dtype),
                        attn_implementation=attention).eval()
                except ValueError:  # Gemma-2's soft cap
                    continue
                rows.append({"model": name, "storage": storage, "attention": attention, "ids": ids,
                             "ways": [run_way(torch, transformers, model, ids, way)
                                      for way in ways]})
    head = {
        "made_by": "scripts/make_torch_goldens.py",
        "setting": setting,
        "cpu": cpu(),
        "capability": torch.backends.cpu.get_cpu_capability(),
        "versions": {"torch": torch.__version__, "transformers": transformers.__version__},
    }
    FOLDER.mkdir(parents=True, exist_ok=True)
    path = FOLDER / f"transformers-{setting}.json"
    lines = ",\n".join(" " + json.dumps(row, separators=(",", ":")) for row in rows)
    path.write_text(f'{json.dumps(head, indent=1)[:-2]},\n "runs": [\n{lines}\n ]\n}}\n')
    print(f"{path.relative_to(SOURCE)}: {path.stat().st_size} bytes")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", type=pathlib.Path, help="folders of real models")
    parser.add_argument("--setting", choices=ENVIRONMENT,
                        help="only this one, in an environment that has it already")
    arguments = parser.parse_args()
    if arguments.setting:
        make(arguments.setting, arguments.models)
        return
    for setting, variables in ENVIRONMENT.items():
        environment = {**os.environ, **variables, "HF_HUB_OFFLINE": "1"}
        subprocess.run([sys.executable, __file__, *arguments.models, "--setting", setting],
                       env=environment, check=True)


if __name__ == "__main__":
    main()
