#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The kvsim authors
"""Writes tests/golden/torch-cpu/SETTING.safetensors: what PyTorch computes on this CPU.

Small cases of every operator of a decoder, from seeded numbers half of which cancel the other half,
with the results. A case is a group of tensors "OPERATOR FORMAT KEY=VALUE:ROLE"; the roles are those
that tests/sim/torch_cpu_golden_test.cc reads. The header names torch, the CPU, the setting and the
date.
Needs torch 2.11 (scripts/torch, or make_decoder_fixtures.py):

  VENV/bin/python scripts/make_torch_cpu_goldens.py pinned
"""

import argparse
import datetime
import json
import os
import pathlib
import struct
import sys

SOURCE = pathlib.Path(__file__).resolve().parents[1]
SETTINGS = {
    "pinned": {"MKL_CBWR": "AVX2", "ATEN_CPU_CAPABILITY": "avx2"},
    "installed": {},
}


def cpu_name():
    facts = {}
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        key, colon, value = line.partition(":")
        if not colon:
            break
        facts[key.strip()] = value.strip()
    return (f"{facts['vendor_id']} {facts['model name']}, family {facts['cpu family']}, "
            f"model {facts['model']}, stepping {facts['stepping']}")


class Cases:
    """The tensors of every case, in order."""

    def __init__(self, torch):
        self.torch = torch
        self.generator = torch.Generator().manual_seed(20261130)
        self.tensors = []

    def gauss(self, *shape, dtype):
        return self.torch.randn(*shape, generator=self.generator).to(dtype)

    def cancelling(self, x, w=None):
        """The second half of the last dimension is minus the first, in a random order."""
        half = x.shape[-1] // 2
        order = self.torch.randperm(x.shape[-1], generator=self.generator)
        x = x.clone()
        x[..., half:2 * half] = -x[..., :half]
        if w is None:
            return x[..., order].contiguous()
        w = w.clone()
        w[..., half:2 * half] = w[..., :half]
        return x[..., order].contiguous(), w[..., order].contiguous()

    def add(self, operator, dtype, key, **tensors):
        name = f"{operator} {'f32' if dtype == self.torch.float32 else 'bf16'} {key}"
        for role, tensor in tensors.items():
            self.tensors.append((f"{name}:{role}", tensor.detach().contiguous()))

    def write(self, path, metadata):
        codes = {self.torch.float32: "F32", self.torch.bfloat16: "BF16"}
        header, data = {"__metadata__": metadata}, b""
        for name, tensor in self.tensors:
            is_short = tensor.dtype == self.torch.bfloat16
            content = (tensor.view(self.torch.int16) if is_short else tensor).numpy().tobytes()
            header[name] = {"dtype": codes[tensor.dtype], "shape": list(tensor.shape),
                            "data_offsets": [len(data), len(data) + len(content)]}
            data += content
        text = json.dumps(header).encode()
        text += b" " * (-len(text) % 8)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def add_linear(cases, functional, dtype):
    for terms, outputs in ((13, 7), (64, 15), (193, 14), (385, 12)):
        x, w = cases.cancelling(cases.gauss(5, terms, dtype=dtype),
                                cases.gauss(outputs, terms, dtype=dtype))
        bias = cases.gauss(outputs, dtype=dtype)
        results = {}
        for rows in (1, 2, 5):
            results[f"out{rows}"] = functional.linear(x[:rows], w)
            results[f"biased{rows}"] = functional.linear(x[:rows], w, bias)
        results["column"] = functional.linear(x, w[:1])
        cases.add("linear", dtype, f"k={terms}", x=x, w=w, bias=bias, **results)


def add_row_operators(cases, torch, functional, dtype):
    for columns in (7, 37, 133):
        x = cases.cancelling(cases.gauss(3, columns, dtype=dtype))
        cases.add("sum", dtype, f"n={columns}", x=x, out=x.sum(-1), mean=x.mean(-1))
        weight = cases.gauss(columns, dtype=dtype)
        scaled = x.float()
        scaled = scaled * torch.rsqrt(scaled.pow(2).mean(-1, keepdim=True) + 1e-5)
        cases.add("rms", dtype, f"n={columns}", x=x, w=weight, out=weight * scaled.to(dtype),
                  gemma=(scaled * (1.0 + weight.float())).to(dtype))
        cases.add("softmax", dtype, f"n={columns}", x=3 * x, out=functional.softmax(3 * x, -1),
                  single=functional.softmax(3 * x, -1, dtype=torch.float32))
    x = 4 * cases.gauss(157, dtype=dtype)
    cases.add("silu", dtype, "n=157", x=x, out=functional.silu(x))
    cases.add("gelu", dtype, "n=128", x=x[:128], out=functional.gelu(x[:128], approximate="tanh"))
    whole = x[:128].abs()  # in bfloat16 the elements behind whole vectors are rounded twice
    cases.add("rsqrt", dtype, "n=128", x=whole, out=torch.rsqrt(whole))
    y = cases.gauss(157, dtype=dtype)
    cases.add("residual", dtype, "n=157", x=x, y=y, out=x + y, product=x * y)


def eager(torch, functional, q, k, v, causal):
    """As transformers' eager_attention_forward."""
    groups = q.shape[1] // k.shape[1]
    k, v = k.repeat_interleave(groups, 1), v.repeat_interleave(groups, 1)
    scores = torch.matmul(q, k.transpose(2, 3)) * (q.shape[-1] ** -0.5)
    if causal:
        length = scores.shape[-1]
        hidden = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(length - scores.shape[-2] + 1)
        mask = torch.zeros_like(scores[0, 0]).masked_fill(hidden, torch.finfo(q.dtype).min)
        scores = scores + mask
    p = functional.softmax(scores, dim=-1, dtype=torch.float32).to(q.dtype)
    return torch.matmul(p, v)


def add_attention(cases, torch, functional, dtype):
    shapes = [(1, 9, 32, 0), (1, 42, 32, 0), (3, 3, 32, 1), (6, 6, 20, 1), (13, 13, 16, 1),
              (2, 30, 7, 0), (1, 517, 4, 0), (33, 33, 8, 1)]
    if dtype == torch.float32:  # products of 16-bit numbers are exact
        shapes.append((5, 516, 12, 0))
    for queries, keys, width, causal in shapes:
        q = cases.gauss(1, 2, queries, width, dtype=dtype)
        k = cases.gauss(1, 1, keys, width, dtype=dtype)
        q, k = (t.reshape(1, -1, n, width) for t, n in
                zip(cases.cancelling(q.reshape(-1, width), k.reshape(-1, width)), (queries, keys)))
        v = cases.gauss(1, 1, keys, width, dtype=dtype)
        v[:, :, keys // 2:keys // 2 * 2] = -v[:, :, :keys // 2]
        q = 8 * q
        flash = functional.scaled_dot_product_attention(q, k, v, is_causal=causal > 0,
                                                        enable_gqa=True)
        cases.add("attention", dtype, f"causal={causal} {queries}x{keys}x{width}",
                  q=q[0], k=k[0], v=v[0], flash=flash[0],
                  eager=eager(torch, functional, q, k, v, causal)[0])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("setting", choices=sorted(SETTINGS))
    setting = parser.parse_args().setting
    os.environ.update(SETTINGS[setting], OMP_NUM_THREADS="1", MKL_NUM_THREADS="1")
    import torch  # reads the environment once
    import torch.nn.functional as functional

    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    torch.backends.mkldnn.enabled = setting != "pinned"
    cases = Cases(torch)
    for dtype in (torch.float32, torch.bfloat16):
        add_linear(cases, functional, dtype)
        add_row_operators(cases, torch, functional, dtype)
        add_attention(cases, torch, functional, dtype)
    environment = " ".join(f"{name}={value}" for name, value in SETTINGS[setting].items())
    target = SOURCE / "tests" / "golden" / "torch-cpu" / f"{setting}.safetensors"
    cases.write(target, {
        "torch": torch.__version__, "cpu": cpu_name(), "date": str(datetime.date.today()),
        "setting": f"one thread, {environment}, oneDNN disabled" if setting == "pinned"
                   else "one thread, as installed",
        "command": f"scripts/make_torch_cpu_goldens.py {setting}"})
    print(f"{target}: {target.stat().st_size} bytes, {len(cases.tensors)} tensors", file=sys.stderr)


if __name__ == "__main__":
    main()
