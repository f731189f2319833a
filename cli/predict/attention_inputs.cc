// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "cli/predict/attention_inputs.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>
#include <vector>

#include "cli/format_option.h"
#include "cli/printable.h"
#include "model/attention_tensors.h"
#include "sim/inputs.h"
#include "softfloat/host.h"

namespace kvsim {
namespace {

constexpr std::int64_t max_heads = 4096;
constexpr std::int64_t max_head_dim = 65536;
constexpr std::int64_t max_positions = std::int64_t{1} << 20;
// Elements of q, k and v together: bounds the memory at 2 GiB.
constexpr std::int64_t max_elements = std::int64_t{1} << 27;

std::int64_t element_count(const AttentionShape& shape) {
  return (shape.query_heads * shape.query_len + 2 * shape.kv_heads * shape.kv_len) * shape.head_dim;
}

Result<AttentionShape> shape_from_options(const ParsedOptions& options) {
  if (!options.has("--head-dim")) {
    return Error{ErrorKind::usage,
                 "predict has neither --head-dim nor --tensors; --head-dim N, such as --head-dim "
                 "128, or --tensors FILE is accepted"};
  }
  const auto head_dim = integer_option(options, "--head-dim", 0, 1, max_head_dim);
  if (!head_dim) return head_dim.error();
  const auto kv_heads = integer_option(options, "--kv-heads", 2, 1, max_heads);
  if (!kv_heads) return kv_heads.error();
  const auto gqa = integer_option(options, "--gqa", 1, 1, max_heads);
  if (!gqa) return gqa.error();
  const auto kv_len = integer_option(options, "--kv-len", 512, 1, max_positions);
  if (!kv_len) return kv_len.error();
  const auto query_len = integer_option(options, "--query-len", 1, 1, *kv_len);
  if (!query_len) return query_len.error();
  const std::int64_t query_heads = *gqa * *kv_heads;
  const auto heads = integer_option(options, "--heads", query_heads, 1, max_heads * max_heads);
  if (!heads) return heads.error();
  AttentionShape shape{query_heads, *kv_heads, *query_len, *kv_len, *head_dim};
  if (*heads != query_heads) {
    if (options.has("--gqa")) {
      return Error{ErrorKind::usage,
                   fmt::format("heads is {}, which is not gqa × kv-heads = {} × {} "
                               "= {}",
                               *heads, *gqa, *kv_heads, query_heads)};
    }
    if (*heads % *kv_heads != 0) {
      return Error{
          ErrorKind::usage,
          fmt::format("heads is {}, which is not a multiple of kv-heads = {}", *heads, *kv_heads)};
    }
    shape.query_heads = *heads;
  }
  // Each factor is bounded: heads and positions so that no product overflows.
  if (element_count(shape) > max_elements) {
    return Error{ErrorKind::usage,
                 fmt::format("q, k and v have {} elements together; at most {} are accepted",
                             element_count(shape), max_elements)};
  }
  return shape;
}

Result<GivenAttention> synthetic_inputs(const ParsedOptions& options) {
  const Result<AttentionShape> shape = shape_from_options(options);
  if (!shape) return shape.error();
  const auto storage = format_named("--format", options.value("--format").value_or("binary16"));
  if (!storage) return storage.error();
  constexpr std::array<std::string_view, 2> names{"gaussian", "outliers"};
  const std::string kind = options.value("--input").value_or("gaussian");
  if (kind != names[0] && kind != names[1]) return unknown_word("--input", kind, names);
  const auto seed =
      integer_option(options, "--seed", 1, 0, std::numeric_limits<std::int64_t>::max());
  if (!seed) return seed.error();

  GivenAttention inputs;
  inputs.shape = *shape;
  inputs.storage = *storage;
  inputs.description = Json::object();
  inputs.description["input"] = kind;
  inputs.description["seed"] = *seed;
  inputs.source = fmt::format("{}, seed {}", kind, *seed);
  const AttentionInputs codes =
      generate_attention(kind == "gaussian" ? InputKind::gaussian : InputKind::outliers,
                         static_cast<std::uint64_t>(*seed), *shape, (*storage)->format);
  const auto as_doubles = [&](const std::vector<softfloat::Bits>& from) {
    std::vector<double> values;
    values.reserve(from.size());
    for (const softfloat::Bits bits : from) {
      values.push_back(softfloat::to_double((*storage)->format, bits));
    }
    return values;
  };
  inputs.values = {as_doubles(codes.q), as_doubles(codes.k), as_doubles(codes.v)};
  return inputs;
}

// An option beside --tensors must say what the file says.
std::optional<Error> check_size(const ParsedOptions& options, std::string_view option,
                                std::int64_t in_file, std::string_view file) {
  const auto value = integer_option(options, option, in_file, 1, max_positions);
  if (!value) return value.error();
  if (*value == in_file) return std::nullopt;
  return Error{ErrorKind::usage, fmt::format("{} is {} and {} has {}; the file's is accepted",
                                             option, *value, in_quotes(file), in_file)};
}

Result<std::vector<double>> finite_values(std::string_view file, std::string_view tensor,
                                          const CodeView& codes) {
  std::vector<double> values;
  values.reserve(static_cast<std::size_t>(codes.size()));
  for (std::int64_t i = 0; i < codes.size(); ++i) {
    const double value = softfloat::to_double(codes.format(), codes[i]);
    if (!std::isfinite(value)) {
      return Error{ErrorKind::usage,
                   fmt::format("{}: element {} of {} is {}; finite numbers are accepted",
                               printable(file), i, tensor,
                               std::isnan(value) ? "nan"
                               : value > 0       ? "inf"
                                                 : "-inf")};
    }
    values.push_back(value);
  }
  return values;
}

Result<GivenAttention> file_inputs(const std::string& path, const ParsedOptions& options) {
  for (const std::string_view option : {"--input", "--seed"}) {
    if (options.has(option)) {
      return Error{ErrorKind::usage,
                   fmt::format("{} is given with --tensors; one of them is accepted", option)};
    }
  }
  const Result<AttentionTensors> tensors = load_attention(path);
  if (!tensors) return tensors.error();
  const AttentionSizes& sizes = tensors->sizes();
  GivenAttention inputs;
  inputs.shape = {sizes.query_heads, sizes.kv_heads, sizes.query_len, sizes.kv_len, sizes.head_dim};
  const std::array<std::pair<std::string_view, std::int64_t>, 6> checks{{
      {"--head-dim", sizes.head_dim},
      {"--gqa", inputs.shape.group()},
      {"--kv-heads", sizes.kv_heads},
      {"--heads", sizes.query_heads},
      {"--kv-len", sizes.kv_len},
      {"--query-len", sizes.query_len},
  }};
  for (const auto& [option, in_file] : checks) {
    if (const auto error = check_size(options, option, in_file, path)) return *error;
  }
  if (element_count(inputs.shape) > max_elements) {
    return Error{ErrorKind::usage,
                 fmt::format("{} has {} elements in q, k and v together; at most {} are accepted",
                             in_quotes(path), element_count(inputs.shape), max_elements)};
  }
  for (const softfloat::NamedFormat& row : softfloat::formats()) {
    if (row.format == tensors->format()) inputs.storage = &row;
  }
  if (const auto format_text = options.value("--format")) {
    const auto format = format_named("--format", *format_text);
    if (!format) return format.error();
    if (*format != inputs.storage) {
      return Error{ErrorKind::usage,
                   fmt::format("--format is {} and {} has {}; the file's is accepted",
                               (*format)->name, in_quotes(path), inputs.storage->name)};
    }
  }
  Result<std::vector<double>> q = finite_values(path, "q", tensors->q());
  if (!q) return q.error();
  Result<std::vector<double>> k = finite_values(path, "k", tensors->k());
  if (!k) return k.error();
  Result<std::vector<double>> v = finite_values(path, "v", tensors->v());
  if (!v) return v.error();
  inputs.values = {std::move(*q), std::move(*k), std::move(*v)};
  inputs.description = Json::object();
  inputs.description["tensors"] = printable(path, path.size());
  inputs.source = printable(path, path.size());
  return inputs;
}

}  // namespace

Result<GivenAttention> given_attention(const ParsedOptions& options) {
  if (const auto path = options.value("--tensors")) return file_inputs(*path, options);
  return synthetic_inputs(options);
}

}  // namespace kvsim
