// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz/flip/target.h"
#include "sim/attention_shape.h"
#include "sim/order.h"
#include "sim/sum.h"
#include "softfloat/format.h"
#include "softfloat/formats.h"
#include "softfloat/result.h"

/// The input of a flip: numbers on which two ways of computing may choose another token.
namespace kvsim::fuzz {

/// What is computed in two ways.
enum class CaseKind : std::uint8_t {
  sum,        ///< the logits of two tokens as dot products of a state, in two orders
  attention,  ///< attention of one query by two kernels; the logits are exact sums of its outputs
};

/// An attention kernel and how it meets the query.
struct KernelPath {
  std::string kernel;  ///< a name of attention_kernels()
  /// The query is the last of kv_len queries of one causal launch; otherwise it is alone.
  bool prefill = false;
  std::int64_t splits = 0;  ///< forced number of splits; 0: the kernel's rule
  std::string head = {};    ///< linear kernel that makes logits of the outputs; empty: exact sums

  friend bool operator==(const KernelPath&, const KernelPath&) = default;
};

/// The two ways, "on" and "off", as indices.
inline constexpr std::size_t path_on = 0;
inline constexpr std::size_t path_off = 1;

/// Everything about a case but its numbers.
struct CaseShape {
  Target target = Target::flip;  ///< what the case claims
  CaseKind kind = CaseKind::sum;
  softfloat::Format storage = softfloat::binary16;  ///< of every number; binary32 or narrower

  // CaseKind::sum
  std::int64_t terms = 1;
  softfloat::Format accumulator = softfloat::binary32;
  Product product = Product::rounded;
  std::array<Order, 2> orders = {};

  // CaseKind::attention; query_len is 1
  AttentionShape attention = {};
  std::array<KernelPath, 2> kernels = {};

  friend bool operator==(const CaseShape&, const CaseShape&) = default;

  /// Numbers of the state that the tokens' rows meet: terms, or query_heads · head_dim.
  [[nodiscard]] std::int64_t state_size() const {
    return kind == CaseKind::sum ? terms : attention.query_heads * attention.head_dim;
  }
};

/// The tensors of a case, as indices of FlipCase::tensors. A sum has `state` and `tokens`,
/// attention has `q`, `k`, `v` and `tokens`.
enum class CaseTensor : std::uint8_t {
  state,   ///< [terms]
  q,       ///< [query_heads][head_dim]
  k,       ///< [kv_heads][kv_len][head_dim]
  v,       ///< [kv_heads][kv_len][head_dim]
  tokens,  ///< [2][state_size]: rows of the output projection, one for each token
};
inline constexpr std::size_t case_tensors = 5;

/// "state", "q", "k", "v" or "tokens".
[[nodiscard]] std::string_view to_string(CaseTensor tensor);

/// A case: a shape and numbers of its storage format, row-major.
struct FlipCase {
  CaseShape shape;
  std::array<std::vector<float>, case_tensors> tensors;
  /// Value of the claim that shrinking was to keep at least (shrink.h); 0: it was not shrunk.
  double floor = 0;

  friend bool operator==(const FlipCase&, const FlipCase&) = default;

  [[nodiscard]] std::vector<float>& operator[](CaseTensor t) {
    return tensors[static_cast<std::size_t>(t)];
  }
  [[nodiscard]] const std::vector<float>& operator[](CaseTensor t) const {
    return tensors[static_cast<std::size_t>(t)];
  }
};

/// Numbers that the tensor has in a case of that shape; 0 where the kind has no such tensor.
[[nodiscard]] std::int64_t tensor_size(const CaseShape& shape, CaseTensor tensor);
/// Numbers in a line of the text: the tensor's last dimension.
[[nodiscard]] std::int64_t tensor_columns(const CaseShape& shape, CaseTensor tensor);

inline constexpr std::int64_t most_case_numbers = std::int64_t{1} << 22;  ///< of all tensors
inline constexpr std::int64_t most_case_size = std::int64_t{1} << 16;     ///< of each dimension
inline constexpr std::size_t most_case_text = std::size_t{1} << 27;       ///< bytes

/// Whether the shape can be: sizes from 1 to most_case_size, heads that divide, an accepted storage
/// format, orders that can sum the terms, known kernels. Holds true, or a usage error that names
/// the value and what is accepted. Whether the kernels take the problem is for the score to say.
[[nodiscard]] Result<bool> check_shape(const CaseShape& shape);

/// A case of that shape with +0 everywhere.
[[nodiscard]] FlipCase empty_case(const CaseShape& shape);

/// Codes of numbers of that format.
[[nodiscard]] std::vector<softfloat::Bits> codes(const softfloat::Format& format,
                                                 std::span<const float> values);

/// The text of a case, in lines: docs/fuzzing.md. Numbers are hex floats, exact.
[[nodiscard]] std::string to_text(const FlipCase& flip_case);

/// The name of a case's file: "flip-DIGEST.case", what it shows and the digest of its text.
[[nodiscard]] std::string case_file_name(const FlipCase& flip_case);

/// Reads a case. Errors (file) name the line, what stands there and what is accepted; numbers must
/// be finite and numbers of the storage format as they are.
[[nodiscard]] Result<FlipCase> parse_case(std::string_view text);

}  // namespace kvsim::fuzz
