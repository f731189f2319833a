#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The kvsim authors
"""Makes tests/golden/decoder/: small random models and what Hugging Face's transformers computes.

One folder for each architecture, as transformers reads it (config.json, model.safetensors), with

  golden.safetensors  ids [tokens]; positions, of which the rest is kept; logits
                      [positions, vocabulary]; layers.<i>.key and .value [heads, positions,
                      head_dim] as they stand in the cache, after RoPE; all in true float64
  golden.json         how far transformers itself is from that in float32 and bfloat16, what
                      the model reaches (scores, logits), and for every field of config.json,
                      and everything that follows from model_type, how far the logits move
                      when it is ignored

The weights are seeded and scaled so that every feature acts; the script stops where one does not.
transformers computes norms, softmax and RoPE in float32 even in a float64 model, so one process
replaces torch.float32 by torch.float64 before transformers is imported.

Needs torch 2.11, transformers 5.24, safetensors and numpy:

  python3 -m venv VENV
  VENV/bin/pip install torch==2.11.0 transformers==5.24.0 safetensors numpy
  VENV/bin/python scripts/make_decoder_fixtures.py

Logits of another CPU or version may differ in the last places of float32 and bfloat16 runs.
"""

import argparse
import copy
import json
import os
import pathlib
import subprocess
import sys

import numpy

from decoder_fixture_models import FIXTURES, SIZES

SOURCE = pathlib.Path(__file__).resolve().parents[1]
FOLDER = SOURCE / "tests" / "golden" / "decoder"
TOKENS = 72
MOST_BYTES = 300_000
LEAST_MOVE = 1e-3
LEAST_SCORE = 20

def positions():
    """Every fourth position and the last one."""
    return [*range(0, TOKENS - 1, 4), TOKENS - 1]


def config_of(name):
    fixture = FIXTURES[name]["config"]
    return {**SIZES, **fixture}


def changed(config, values):
    """config with the members at dotted paths replaced."""
    config = copy.deepcopy(config)
    for path, value in values.items():
        *parents, last = path.split(".")
        at = config
        for parent in parents:
            at = at[parent]
        at[last] = value
    return config


def generator(name, tensor):
    """Philox, keyed by text: a tensor does not depend on the others."""
    seed = numpy.random.SeedSequence([*f"{name}/{tensor}".encode()])
    return numpy.random.Generator(numpy.random.Philox(seed))


def draw(fixture, config, tensor, shape, normal):
    """The numbers of one weight."""
    scale = {"query": 1, "embedding": 1, "head_norm": 1, **fixture["scale"]}
    gemma = config["model_type"].startswith("gemma")
    if tensor.endswith(("q_norm.weight", "k_norm.weight")):
        return scale["head_norm"] * (1 + 0.2 * normal) - (1 if gemma else 0)
    if tensor.endswith(("layernorm.weight", "norm.weight")):
        return 0.3 * normal + (0 if gemma else 1)
    if tensor.endswith(".bias"):
        return 0.4 * normal
    if tensor.endswith("embed_tokens.weight"):
        # A tied matrix gives the logits too; Gemma multiplies its rows by the root of hidden_size.
        return scale["embedding"] * normal
    deviation = shape[1] ** -0.5
    if tensor.endswith(("q_proj.weight", "k_proj.weight")):
        deviation *= scale["query"]
    if tensor.endswith("lm_head.weight"):
        deviation *= 3
    return deviation * normal


def import_torch(float64):
    """torch; with float64, one whose float32 is float64, as transformers then sees it."""
    import torch
    torch.set_num_threads(1)
    if float64:
        torch.set_default_dtype(torch.float64)
        torch.float32 = torch.float = torch.float64
        torch.Tensor.float = torch.Tensor.double
    import transformers
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    return torch, transformers


def configuration(transformers, config):
    """transformers' own configuration; it writes into the dictionaries that it is given."""
    settings = copy.deepcopy(config)
    del settings["torch_dtype"]
    return transformers.AutoConfig.for_model(**settings)


def make_model(transformers, config, weights, implementation):
    """A model of that configuration with those of the weights that it has."""
    made = configuration(transformers, config)
    model = transformers.AutoModelForCausalLM.from_config(made, attn_implementation=implementation)
    kept = dict(weights)
    if made.tie_word_embeddings:
        kept["lm_head.weight"] = kept["model.embed_tokens.weight"]
    wanted = model.state_dict().keys()
    model.load_state_dict({key: kept[key] for key in wanted}, strict=True)
    return model.eval()


def run(torch, transformers, model, ids):
    """Logits [tokens, vocabulary], and keys and values [heads, tokens, head_dim] of each layer."""
    with torch.no_grad():
        cache = transformers.DynamicCache()
        out = model(torch.tensor([ids]), cache=cache, use_cache=True)
    layers = [(layer.keys[0], layer.values[0]) for layer in cache.layers]
    return out.logits[0], layers


# What follows from model_type, ignored: each changes a model in place.

def scale_of_hidden(model, _torch):
    for layer in model.model.layers:
        attention = layer.self_attn
        config = attention.config
        attention.scaling = (config.hidden_size // config.num_attention_heads) ** -0.5


def without_head_norms(model, torch):
    for layer in model.model.layers:
        layer.self_attn.q_norm = layer.self_attn.k_norm = torch.nn.Identity()


def without_sandwich_norms(model, torch):
    for layer in model.model.layers:
        layer.post_attention_layernorm = layer.post_feedforward_layernorm = torch.nn.Identity()


def plain_norm_weight(model, _torch):
    for module in model.modules():
        if type(module).__name__.endswith("RMSNorm"):
            module.weight.data -= 1


def plain_embedding(model, _torch):
    model.model.embed_tokens.embed_scale.fill_(1)


def without_projection_biases(model, _torch):
    for layer in model.model.layers:
        for projection in ("q_proj", "k_proj", "v_proj"):
            getattr(layer.self_attn, projection).bias.data.zero_()


def record_scores(model, seen):
    """Appends the lowest and highest score of each layer, before a cap; returns the way back."""
    module = sys.modules[type(model).__module__]
    plain = module.eager_attention_forward

    def recorded(attention, query, key, value, mask, scaling, **options):
        keys = module.repeat_kv(key, attention.num_key_value_groups)
        seen_keys = (mask == 0).expand(1, query.shape[1], -1, -1)
        scores = (query @ keys.transpose(2, 3) * scaling)[seen_keys]
        seen.append((float(scores.min()), float(scores.max())))
        return plain(attention, query, key, value, mask, scaling=scaling, **options)

    module.eager_attention_forward = recorded
    return lambda: setattr(module, "eager_attention_forward", plain)


def write_models():
    """config.json, model.safetensors and the tokens, of all fixtures."""
    torch, transformers = import_torch(False)
    from safetensors.torch import save_file
    for name, fixture in FIXTURES.items():
        folder = FOLDER / name
        folder.mkdir(parents=True, exist_ok=True)
        config = config_of(name)
        (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")
        made = configuration(transformers, config)
        with torch.device("meta"):
            shapes = {key: tuple(value.shape) for key, value in
                      transformers.AutoModelForCausalLM.from_config(made).state_dict().items()}
        if config["tie_word_embeddings"]:
            del shapes["lm_head.weight"]
        weights = {}
        for tensor, shape in shapes.items():
            normal = generator(name, tensor).standard_normal(shape)
            numbers = draw(fixture, config, tensor, shape, normal)
            weights[tensor] = torch.tensor(numbers, dtype=torch.bfloat16)
        save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})


def tokens_of(name):
    ids = generator(name, "ids").integers(0, SIZES["vocab_size"], TOKENS)
    return [int(token) for token in ids]


def write_goldens():
    """golden.safetensors, and the part of golden.json that is computed in float64."""
    torch, transformers = import_torch(True)
    from safetensors.torch import load_file, save_file
    kept = positions()
    for name, fixture in FIXTURES.items():
        folder = FOLDER / name
        ids = tokens_of(name)
        config = config_of(name)
        model = transformers.AutoModelForCausalLM.from_pretrained(
            folder, dtype=torch.float64, attn_implementation="eager").eval()
        seen = []
        restore = record_scores(model, seen)
        logits, layers = run(torch, transformers, model, ids)
        restore()
        golden = {"ids": torch.tensor(ids), "positions": torch.tensor(kept),
                  "logits": logits[kept].contiguous()}
        for i, (key, value) in enumerate(layers):
            assert key.dtype == torch.float64 and key.shape[1] == TOKENS
            golden[f"layers.{i}.key"] = key[:, kept].contiguous()
            golden[f"layers.{i}.value"] = value[:, kept].contiguous()
        save_file(golden, folder / "golden.safetensors")

        weights = {key: value.double() for key, value in
                   load_file(folder / "model.safetensors").items()}
        again, _ = run(torch, transformers, make_model(transformers, config, weights, "eager"), ids)
        assert torch.equal(again, logits), f"{name}: loaded in two ways, it gives two results"
        largest = float(logits.abs().max())
        scores = [min(low for low, _ in seen), max(high for _, high in seen)]
        cap = config.get("final_logit_softcapping")
        reached = {"lowest_score": scores[0], "highest_score": scores[1], "largest_logit": largest}
        assert -scores[0] > LEAST_SCORE and scores[1] > LEAST_SCORE, f"{name}: scores {scores}"
        if config.get("attn_logit_softcapping"):
            assert max(-scores[0], scores[1]) > 2.5 * config["attn_logit_softcapping"], scores
        if cap:
            assert largest > 0.98 * cap, f"{name}: {largest} under a cap of {cap}"

        moves = []
        for field, values in fixture["ignored"].items():
            by_config = isinstance(values, dict)
            other = make_model(transformers, changed(config, values) if by_config else config,
                               weights, "eager")
            if not by_config:
                globals()[values](other, torch)
            moved, _ = run(torch, transformers, other, ids)
            move = float((moved - logits)[kept].abs().max())
            assert move > LEAST_MOVE * largest, f"{name}: without {field}: {move} of {largest}"
            row = {"field": field, "move": move}
            moves.append(row | ({"values": values} if by_config else {"property": values}))
        text = {
            "made_by": "scripts/make_decoder_fixtures.py",
            "versions": {"torch": torch.__version__, "transformers": transformers.__version__,
                         "numpy": numpy.__version__},
            "reached": reached,
            "ignored": moves,
        }
        (folder / "golden.json").write_text(json.dumps(text, indent=1) + "\n")


def write_distances():
    """How far float32 and bfloat16 are from the golden logits, into golden.json."""
    torch, transformers = import_torch(False)
    from safetensors.torch import load_file
    kept = positions()
    for name in FIXTURES:
        folder = FOLDER / name
        golden = load_file(folder / "golden.safetensors")["logits"]
        distances = []
        for dtype in ("float32", "bfloat16"):
            for implementation in ("eager", "sdpa"):
                try:
                    model = transformers.AutoModelForCausalLM.from_pretrained(
                        folder, dtype=getattr(torch, dtype), attn_implementation=implementation)
                except ValueError:  # Gemma-2's soft cap
                    continue
                logits, _ = run(torch, transformers, model.eval(), tokens_of(name))
                assert logits.dtype == getattr(torch, dtype)
                error = logits[kept].double() - golden
                distances.append({"dtype": dtype, "attention": implementation,
                                  "root_mean_square": float(error.square().mean().sqrt()),
                                  "largest": float(error.abs().max())})
        text = json.loads((folder / "golden.json").read_text())
        text["distances"] = distances
        (folder / "golden.json").write_text(json.dumps(text, indent=1) + "\n")
        size = sum(path.stat().st_size for path in folder.iterdir())
        assert size < MOST_BYTES, f"{name}: {size} bytes"
        print(f"{name}: {size} bytes; scores {text['reached']['lowest_score']:.1f} to "
              f"{text['reached']['highest_score']:.1f}; "
              + "; ".join(f"{d['dtype']} {d['attention']} {d['root_mean_square']:.2g}"
                          for d in distances))
        least = min(text["ignored"], key=lambda row: row["move"])
        print(f"  least move {least['move'] / text['reached']['largest_logit']:.2g} of the largest "
              f"logit: {least['field']}")


PHASES = {"models": write_models, "goldens": write_goldens, "distances": write_distances}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--phase", choices=PHASES, help="only this one; default all, in this order")
    arguments = parser.parse_args()
    if arguments.phase:
        PHASES[arguments.phase]()
        return
    environment = {**os.environ, "HF_HUB_OFFLINE": "1"}
    for phase in PHASES:
        subprocess.run([sys.executable, __file__, "--phase", phase], env=environment, check=True)


if __name__ == "__main__":
    main()
