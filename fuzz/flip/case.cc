// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "fuzz/flip/case.h"

#include <fmt/format.h>

#include "sim/attention/kernel.h"
#include "sim/linear.h"
#include "sim/order_names.h"
#include "softfloat/arithmetic.h"
#include "softfloat/host.h"

namespace kvsim::fuzz {
namespace {

Error usage(std::string message) { return {ErrorKind::usage, std::move(message)}; }

struct Size {
  std::string_view name;
  std::int64_t value;
};

Result<bool> check_sizes(std::initializer_list<Size> sizes) {
  for (const Size& size : sizes) {
    if (size.value >= 1 && size.value <= most_case_size) continue;
    return usage(fmt::format("{} {}: 1 to {} are accepted", size.name, size.value, most_case_size));
  }
  return true;
}

/// Whether every number of the format is a float.
bool is_narrow(const softfloat::Format& format) {
  return format.precision <= 24 && format.exponent_bits <= 8 && format.has_zero() &&
         softfloat::format_name(format) != "unnamed";
}

Result<bool> check_sum(const CaseShape& shape) {
  Result<bool> done = check_sizes({{"terms", shape.terms}});
  if (!done) return done;
  if (!is_narrow(shape.accumulator)) {
    return usage(fmt::format("accumulate {}: formats of at most 32 bits are accepted, such as fp32",
                             softfloat::format_name(shape.accumulator)));
  }
  for (const Order& order : shape.orders) {
    done = check_length(order, shape.terms);
    if (!done) return done;
    done = check_formats(order, shape.storage, shape.accumulator);
    if (!done) return done;
  }
  return true;
}

Result<bool> check_attention(const CaseShape& shape) {
  const AttentionShape& sizes = shape.attention;
  Result<bool> done = check_sizes({{"query-heads", sizes.query_heads},
                                   {"kv-heads", sizes.kv_heads},
                                   {"head-dim", sizes.head_dim},
                                   {"kv-len", sizes.kv_len}});
  if (!done) return done;
  if (sizes.query_heads % sizes.kv_heads != 0) {
    return usage(fmt::format("query-heads {}: a multiple of kv-heads, which is {}, is accepted",
                             sizes.query_heads, sizes.kv_heads));
  }
  for (const KernelPath& path : shape.kernels) {
    if (find_attention_kernel(path.kernel) == nullptr) {
      return usage(
          fmt::format("attention kernel {}: unknown; kvsim kernels lists those that are accepted",
                      order_names::quoted(path.kernel)));
    }
    if (!path.head.empty() && find_linear_kernel(path.head) == nullptr) {
      return usage(
          fmt::format("linear kernel {}: unknown; kvsim kernels lists those that are accepted",
                      order_names::quoted(path.head)));
    }
    if (path.splits < 0 || path.splits > 4096) {
      return usage(fmt::format("splits {}: 0 to 4096 are accepted", path.splits));
    }
  }
  return true;
}

}  // namespace

std::string_view to_string(CaseTensor tensor) {
  switch (tensor) {
    case CaseTensor::state:
      return "state";
    case CaseTensor::q:
      return "q";
    case CaseTensor::k:
      return "k";
    case CaseTensor::v:
      return "v";
    case CaseTensor::tokens:
      break;
  }
  return "tokens";
}

std::int64_t tensor_size(const CaseShape& shape, CaseTensor tensor) {
  const bool sum = shape.kind == CaseKind::sum;
  const AttentionShape& sizes = shape.attention;
  switch (tensor) {
    case CaseTensor::state:
      return sum ? shape.terms : 0;
    case CaseTensor::q:
      return sum ? 0 : sizes.query_heads * sizes.head_dim;
    case CaseTensor::k:
    case CaseTensor::v:
      return sum ? 0 : sizes.kv_heads * sizes.kv_len * sizes.head_dim;
    case CaseTensor::tokens:
      break;
  }
  return 2 * shape.state_size();
}

std::int64_t tensor_columns(const CaseShape& shape, CaseTensor tensor) {
  if (shape.kind == CaseKind::sum) return shape.terms;
  return tensor == CaseTensor::tokens ? shape.state_size() : shape.attention.head_dim;
}

Result<bool> check_shape(const CaseShape& shape) {
  if (!is_narrow(shape.storage)) {
    return usage(fmt::format("storage {}: formats of at most 32 bits are accepted, such as fp16",
                             softfloat::format_name(shape.storage)));
  }
  Result<bool> done = shape.kind == CaseKind::sum ? check_sum(shape) : check_attention(shape);
  if (!done) return done;
  // Each factor is at most 2^16, so that the products below stay within 64 bits.
  std::int64_t numbers = 0;
  for (std::size_t t = 0; t < case_tensors; ++t) {
    numbers += tensor_size(shape, static_cast<CaseTensor>(t));
  }
  if (numbers > most_case_numbers) {
    return usage(
        fmt::format("{} numbers: at most {} are accepted in a case", numbers, most_case_numbers));
  }
  return true;
}

FlipCase empty_case(const CaseShape& shape) {
  FlipCase result;
  result.shape = shape;
  for (std::size_t t = 0; t < case_tensors; ++t) {
    result.tensors[t].assign(
        static_cast<std::size_t>(tensor_size(shape, static_cast<CaseTensor>(t))), 0.0F);
  }
  return result;
}

std::vector<softfloat::Bits> codes(const softfloat::Format& format, std::span<const float> values) {
  std::vector<softfloat::Bits> result;
  result.reserve(values.size());
  for (const float x : values) {
    result.push_back(
        softfloat::convert(format, softfloat::binary32, softfloat::from_float(x)).bits);
  }
  return result;
}

}  // namespace kvsim::fuzz
