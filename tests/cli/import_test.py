# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The kvsim authors
"""kvsim import on GGUF files made here with the gguf package, against values worked out with numpy
alone. Runs in the private Python: scripts/models/python CACHE tests/cli/import_test.py PROGRAM"""

import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import gguf
import numpy

PROGRAM = sys.argv.pop(1)
ROOT = pathlib.Path(__file__).resolve().parents[2]
LAYERS, HIDDEN, FFN, HEADS, KV_HEADS, HEAD_DIM, VOCABULARY = 2, 64, 96, 4, 2, 16, 48
Type = gguf.GGMLQuantizationType


def permuted(weight, heads):
    """Rows as llama.cpp's converter writes them: channel j·d/2 + i of a head becomes 2i + j."""
    out = numpy.empty_like(weight)
    size = weight.shape[0] // heads
    for head in range(heads):
        for i in range(size // 2):
            for j in range(2):
                out[head * size + 2 * i + j] = weight[head * size + j * (size // 2) + i]
    return out


def unpermuted(weight, heads):
    out = numpy.empty_like(weight)
    size = weight.shape[0] // heads
    for head in range(heads):
        for i in range(size // 2):
            for j in range(2):
                out[head * size + j * (size // 2) + i] = weight[head * size + 2 * i + j]
    return out


def dequantised(raw, kind, shape):
    """The numbers of a tensor's bytes; the formats are those of ggml's ggml-common.h."""
    raw = numpy.ascontiguousarray(raw).view(numpy.uint8).reshape(-1)
    if kind == Type.F32:
        return raw.view("<f4").reshape(shape)
    if kind == Type.F16:
        return raw.view("<f2").astype("<f4").reshape(shape)
    if kind == Type.Q8_0:  # a half d, then 32 int8 q: d·q
        blocks = raw.reshape(-1, 34)
        scale = blocks[:, :2].copy().view("<f2").astype("<f4")
        return (scale * blocks[:, 2:].copy().view(numpy.int8).astype("<f4")).reshape(shape)
    assert kind == Type.Q4_1  # halves d and m, then 16 bytes: low nibbles first: d·q + m
    blocks = raw.reshape(-1, 20)
    scale = blocks[:, :2].copy().view("<f2").astype("<f4")
    least = blocks[:, 2:4].copy().view("<f2").astype("<f4")
    nibbles = numpy.concatenate([blocks[:, 4:] & 15, blocks[:, 4:] >> 4], axis=1).astype("<f4")
    return (scale * nibbles + least).reshape(shape)


def to_bfloat16(values):
    """Rounded to eight significant bits, ties to even (of normal numbers)."""
    fraction, exponent = numpy.frexp(values.astype(numpy.float64))
    return numpy.ldexp(numpy.rint(fraction * 256) / 256, exponent).astype("<f4")


def read_safetensors(path):
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    tensors = {}
    for name, entry in json.loads(data[8:8 + length]).items():
        begin, end = (8 + length + offset for offset in entry["data_offsets"])
        if entry["dtype"] == "BF16":
            codes = numpy.frombuffer(data[begin:end], "<u2").astype("<u4") << 16
            values = codes.view("<f4")
        else:
            values = numpy.frombuffer(data[begin:end], "<f4")
        tensors[name] = values.reshape(entry["shape"])
    return tensors


def make_model(path, change=None, architecture="llama"):
    """Writes a random tiny Llama; the values that Hugging Face's file should hold, by name.
    `change` may alter the list of (GGUF name, array, encoding)."""
    random = numpy.random.default_rng(1)

    def weight(*shape):
        return random.normal(0, 0.5, shape).astype("<f4")

    q, k = Type.Q4_1, Type.F16
    rows = [("token_embd.weight", weight(VOCABULARY, HIDDEN), Type.Q8_0, None),
            ("output_norm.weight", weight(HIDDEN), Type.F32, None),
            ("output.weight", weight(VOCABULARY, HIDDEN), Type.F16, None)]
    names = {"token_embd.weight": "model.embed_tokens.weight",
             "output_norm.weight": "model.norm.weight", "output.weight": "lm_head.weight"}
    for layer in range(LAYERS):
        block, model = f"blk.{layer}.", f"model.layers.{layer}."
        for name, other, array, kind, heads in (
                ("attn_norm", "input_layernorm", weight(HIDDEN), Type.F32, None),
                ("attn_q", "self_attn.q_proj", weight(HEADS * HEAD_DIM, HIDDEN), q, HEADS),
                ("attn_k", "self_attn.k_proj", weight(KV_HEADS * HEAD_DIM, HIDDEN), k, KV_HEADS),
                ("attn_v", "self_attn.v_proj", weight(KV_HEADS * HEAD_DIM, HIDDEN), Type.Q8_0,
                 None),
                ("attn_output", "self_attn.o_proj", weight(HIDDEN, HEADS * HEAD_DIM), Type.Q4_1,
                 None),
                ("ffn_norm", "post_attention_layernorm", weight(HIDDEN), Type.F32, None),
                ("ffn_gate", "mlp.gate_proj", weight(FFN, HIDDEN), Type.Q4_1, None),
                ("ffn_up", "mlp.up_proj", weight(FFN, HIDDEN), Type.Q8_0, None),
                ("ffn_down", "mlp.down_proj", weight(HIDDEN, FFN), Type.F32, None)):
            rows.append((f"{block}{name}.weight", array, kind, heads))
            names[f"{block}{name}.weight"] = f"{model}{other}.weight"
    if change:
        rows = change(rows)
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_block_count(LAYERS)
    writer.add_context_length(256)
    writer.add_embedding_length(HIDDEN)
    writer.add_feed_forward_length(FFN)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_freq_base(10000)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list([chr(97 + i) for i in range(VOCABULARY - 2)] + ["<|a|>", "<|b|>"])
    writer.add_token_types([1] * (VOCABULARY - 2) + [3, 3])
    writer.add_token_merges(["a b"])
    writer.add_eos_token_id(VOCABULARY - 1)
    writer.add_chat_template("{{ messages }} é")
    expected = {}
    for name, array, kind, heads in rows:
        stored = array if heads is None else permuted(array, heads)
        raw = stored if kind == Type.F32 else gguf.quants.quantize(stored, kind)
        writer.add_tensor(name, raw, raw_dtype=kind)
        values = dequantised(raw, kind, array.shape)
        expected[names.get(name, name)] = values if heads is None else unpermuted(values, heads)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return expected


class Import(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name)
        self.model = self.folder / "model.gguf"
        self.out = self.folder / "out"

    def run_it(self, *arguments):
        return subprocess.run([PROGRAM, "import", *map(str, arguments)], capture_output=True,
                              text=True, check=False, timeout=120)

    def succeed(self, *arguments):
        done = self.run_it(*arguments)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout

    def refuse(self, text, status=3):
        done = self.run_it(self.model, "--out", self.out)
        self.assertEqual((done.returncode, done.stdout), (status, ""), done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertIn(text, done.stderr)
        self.assertEqual([each.name for each in self.folder.iterdir()], ["model.gguf"])

    def test_every_weight_in_float32(self):
        expected = make_model(self.model)
        self.succeed(self.model, "--out", self.out, "--dtype", "f32")
        found = read_safetensors(self.out / "model.safetensors")
        self.assertEqual(set(found), set(expected))
        for name, values in expected.items():
            self.assertEqual(found[name].tobytes(), values.tobytes(), name)

    def test_every_weight_in_bfloat16(self):
        expected = make_model(self.model)
        text = self.succeed(self.model, "--out", self.out)
        found = read_safetensors(self.out / "model.safetensors")
        for name, values in expected.items():
            self.assertEqual(found[name].tobytes(), to_bfloat16(values).tobytes(), name)
        digest = subprocess.run(["sha256sum", self.out / "model.safetensors"], text=True,
                                capture_output=True, check=True).stdout.split()[0]
        self.assertIn(digest, text)

    def test_scores_are_those_of_neighbours_that_turn(self):
        """The file's q and k under RoPE of neighbours give what the folder's give under RoPE of
        halves: the reason for un-permuting."""
        make_model(self.model)
        self.succeed(self.model, "--out", self.out, "--dtype", "f32")
        found = read_safetensors(self.out / "model.safetensors")
        stored = {tensor.name: gguf.quants.dequantize(tensor.data, tensor.tensor_type)
                  for tensor in gguf.GGUFReader(self.model).tensors}
        x = numpy.random.default_rng(2).normal(size=HIDDEN)
        angles = 10000.0 ** (-numpy.arange(0, HEAD_DIM, 2) / HEAD_DIM)

        def score(q, k, turn):
            q, k = ((w.astype(float) @ x).reshape(-1, HEAD_DIM)[0] for w in (q, k))
            return numpy.dot(turn(q, 37), turn(k, 5))

        def neighbours(row, position):
            z = (row[0::2] + 1j * row[1::2]) * numpy.exp(1j * position * angles)
            return numpy.concatenate([z.real, z.imag])

        def halves(row, position):
            z = (row[:HEAD_DIM // 2] + 1j * row[HEAD_DIM // 2:]) * numpy.exp(1j * position * angles)
            return numpy.concatenate([z.real, z.imag])

        for layer in range(LAYERS):
            old = [stored[f"blk.{layer}.attn_{name}.weight"] for name in "qk"]
            new = [found[f"model.layers.{layer}.self_attn.{name}_proj.weight"] for name in "qk"]
            wanted = score(*old, neighbours)
            self.assertAlmostEqual(score(*new, halves), wanted, delta=1e-9 * abs(wanted))
            self.assertGreater(abs(score(*old, halves) - wanted), 1e-3 * abs(wanted))

    def test_configuration_and_tokenizer(self):
        make_model(self.model)
        self.succeed(self.model, "--out", self.out)
        config = json.loads((self.out / "config.json").read_text())
        wanted = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 64,
                  "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
                  "head_dim": 16, "intermediate_size": 96, "vocab_size": 48, "rms_norm_eps": 1e-5,
                  "rope_theta": 10000.0, "tie_word_embeddings": False, "torch_dtype": "bfloat16",
                  "max_position_embeddings": 256, "eos_token_id": 47}
        self.assertEqual(config | wanted, config)
        generation = json.loads((self.out / "generation_config.json").read_text())
        self.assertEqual(generation, {"eos_token_id": 47})
        tokenizer = json.loads((self.out / "tokenizer.json").read_text())
        self.assertEqual(tokenizer["model"]["vocab"]["b"], 1)
        special = [token["content"] for token in tokenizer["added_tokens"] if token["special"]]
        self.assertEqual(special, ["<|a|>", "<|b|>"])
        more = json.loads((self.out / "tokenizer_config.json").read_text())
        self.assertEqual((more["eos_token"], more["chat_template"]), ("<|b|>", "{{ messages }} é"))

    def test_gives_the_same_bytes_again(self):
        make_model(self.model)
        self.succeed(self.model, "--out", self.out)
        self.succeed(self.model, "--out", self.folder / "again")
        for file in self.out.iterdir():
            self.assertEqual(file.read_bytes(), (self.folder / "again" / file.name).read_bytes())

    def test_json_fits_its_schema_in_the_main(self):
        make_model(self.model)
        answer = json.loads(self.succeed(self.model, "--out", self.out, "--json"))
        schema = json.loads((ROOT / "docs/schema/kvsim.import.1.json").read_text())
        self.assertEqual(set(answer), set(schema["required"]))
        self.assertEqual(set(answer["result"]),
                         set(schema["properties"]["result"]["required"]))
        self.assertEqual(answer["result"]["encodings"], "F32 7, Q4_1 6, Q8_0 5, F16 3")

    def test_refuses_bad_files(self):
        self.model.write_bytes(b"not a GGUF file, but long enough to look at")
        self.refuse('accepted: "GGUF"')
        self.model.write_bytes(b"")
        self.refuse("accepted")
        make_model(self.model, architecture="rwkv")
        self.refuse('general.architecture is "rwkv"')
        make_model(self.model, change=lambda rows: rows[:-1])
        self.refuse('"blk.1.ffn_down.weight" [64, 96] is missing')
        make_model(self.model)
        self.model.write_bytes(self.model.read_bytes()[:-100])
        self.refuse("accepted: a whole file")

        def with_nan(rows):
            rows[1][1][5] = numpy.nan
            return rows
        make_model(self.model, change=with_nan)
        self.refuse('"output_norm.weight": element 5 is nan')

    def test_refuses_what_stands(self):
        make_model(self.model)
        self.out.mkdir()
        done = self.run_it(self.model, "--out", self.out)
        self.assertEqual(done.returncode, 3)
        self.assertIn("exists already", done.stderr)
        self.assertEqual(list(self.out.iterdir()), [])

    def interrupt(self, number):
        """Ends an import once it writes."""
        process = subprocess.Popen([PROGRAM, "import", self.model, "--out", self.out, "--quiet"],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        partial = self.folder / "out.partial"
        while not partial.exists() and process.poll() is None:
            time.sleep(0.001)
        process.send_signal(number)
        process.communicate(timeout=60)
        return process.returncode

    def test_an_interrupted_import_leaves_nothing(self):
        make_model(self.model)
        self.assertEqual(self.interrupt(signal.SIGTERM), 128 + signal.SIGTERM)
        self.assertEqual(os.listdir(self.folder), ["model.gguf"])

    def test_a_killed_import_leaves_no_model_and_the_next_one_works(self):
        make_model(self.model)
        self.assertEqual(self.interrupt(signal.SIGKILL), -signal.SIGKILL)
        self.assertFalse(self.out.exists())
        self.succeed(self.model, "--out", self.out)
        self.assertEqual(sorted(os.listdir(self.folder)), ["model.gguf", "out"])

    def test_knows_the_encodings_of_the_package(self):
        source = (ROOT / "model/gguf_tensors.cc").read_text()
        rows = re.findall(r'\{(\d+), "(\w+)", (\d+), (\d+)\}', source)
        self.assertGreater(len(rows), 20)
        for code, name, elements, size in rows:
            kind = Type(int(code))
            self.assertEqual(kind.name, name)
            self.assertEqual(gguf.GGML_QUANT_SIZES[kind], (int(elements), int(size)))
            empty = numpy.zeros((1, int(size)), numpy.uint8)  # the package can read it
            self.assertEqual(gguf.quants.dequantize(empty, kind).size, int(elements))


if __name__ == "__main__":
    unittest.main()
