# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The kvsim authors
"""A Llama decoder of about 0.9 million parameters, with the names of Hugging Face's layout."""

import torch
from torch import nn
from torch.nn import functional

CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 128,
    "intermediate_size": 320,
    "num_hidden_layers": 4,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "head_dim": 32,
    "vocab_size": 672,
    "max_position_embeddings": 512,
    "rms_norm_eps": 1e-5,
    "rope_theta": 10000.0,
    "hidden_act": "silu",
    "attention_bias": False,
    "mlp_bias": False,
    "tie_word_embeddings": True,
    "bos_token_id": None,
    "eos_token_id": 0,
    "torch_dtype": "bfloat16",
}
HEADS, KV_HEADS, HEAD_DIM = (CONFIG[name] for name in (
    "num_attention_heads", "num_key_value_heads", "head_dim"))
HIDDEN, FFN, LAYERS = (CONFIG[name] for name in (
    "hidden_size", "intermediate_size", "num_hidden_layers"))
INITIAL_DEVIATION = 0.05


class Norm(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(HIDDEN))

    def forward(self, x):
        return functional.rms_norm(x, (HIDDEN,), self.weight, CONFIG["rms_norm_eps"])


def linear(inputs: int, outputs: int) -> nn.Linear:
    return nn.Linear(inputs, outputs, bias=False)


def rope_table(positions: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """cos and sin [positions][head_dim], the same angle for elements i and i + head_dim / 2."""
    exponents = torch.arange(0, HEAD_DIM, 2, dtype=torch.float64) / HEAD_DIM
    angles = positions.double()[:, None] * CONFIG["rope_theta"] ** -exponents
    angles = torch.cat((angles, angles), dim=-1)
    return angles.cos().float(), angles.sin().float()


def rotate(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    low, high = x.chunk(2, dim=-1)
    return x * cos + torch.cat((-high, low), dim=-1) * sin


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.q_proj = linear(HIDDEN, HEADS * HEAD_DIM)
        self.k_proj = linear(HIDDEN, KV_HEADS * HEAD_DIM)
        self.v_proj = linear(HIDDEN, KV_HEADS * HEAD_DIM)
        self.o_proj = linear(HEADS * HEAD_DIM, HIDDEN)

    def forward(self, x, cos, sin, cache):
        batch, rows, _ = x.shape

        def heads(y, count):
            return y.view(batch, rows, count, HEAD_DIM).transpose(1, 2)

        q = rotate(heads(self.q_proj(x), HEADS), cos, sin)
        k = rotate(heads(self.k_proj(x), KV_HEADS), cos, sin)
        v = heads(self.v_proj(x), KV_HEADS)
        if cache is not None:
            if cache:
                k, v = torch.cat((cache[0], k), dim=2), torch.cat((cache[1], v), dim=2)
            cache[:] = (k, v)
        # Rows after the first pass come one at a time and see everything.
        out = functional.scaled_dot_product_attention(q, k, v, is_causal=rows > 1, enable_gqa=True)
        return self.o_proj(out.transpose(1, 2).reshape(batch, rows, HEADS * HEAD_DIM))


class FeedForward(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate_proj = linear(HIDDEN, FFN)
        self.up_proj = linear(HIDDEN, FFN)
        self.down_proj = linear(FFN, HIDDEN)

    def forward(self, x):
        return self.down_proj(functional.silu(self.gate_proj(x)) * self.up_proj(x))


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.input_layernorm = Norm()
        self.self_attn = Attention()
        self.post_attention_layernorm = Norm()
        self.mlp = FeedForward()

    def forward(self, x, cos, sin, cache):
        x = x + self.self_attn(self.input_layernorm(x), cos, sin, cache)
        return x + self.mlp(self.post_attention_layernorm(x))


class Decoder(nn.Module):
    """`model` of the layout; the output matrix is the embedding."""

    def __init__(self):
        super().__init__()
        self.embed_tokens = nn.Embedding(CONFIG["vocab_size"], HIDDEN)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.norm = Norm()
        cos, sin = rope_table(torch.arange(CONFIG["max_position_embeddings"]))
        self.register_buffer("cos", cos, persistent=False)
        self.register_buffer("sin", sin, persistent=False)

    def initialise(self, seed: int):
        generator = torch.Generator().manual_seed(seed)
        for name, weight in self.named_parameters():
            if weight.dim() == 2:
                into_residual = name.endswith(("o_proj.weight", "down_proj.weight"))
                deviation = INITIAL_DEVIATION / ((2 * LAYERS) ** 0.5 if into_residual else 1)
                with torch.no_grad():
                    weight.normal_(0, deviation, generator=generator)

    def hidden(self, ids, caches=None):
        """The last norm's output for ids [batch][rows]. `caches`: one list a layer, empty at the
        first pass, which then holds the keys and values of every row so far."""
        first = caches[0][0].shape[2] if caches and caches[0] else 0
        x = self.embed_tokens(ids)
        cos, sin = (table[first : first + ids.shape[1]].to(x.dtype)
                    for table in (self.cos, self.sin))
        for index, layer in enumerate(self.layers):
            x = layer(x, cos, sin, None if caches is None else caches[index])
        return self.norm(x)

    def last_logits(self, ids, caches=None):
        """Logits [batch][vocabulary] of the last row."""
        return functional.linear(self.hidden(ids, caches)[:, -1], self.embed_tokens.weight)


def empty_caches() -> list[list]:
    return [[] for _ in range(LAYERS)]
