// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "model/attention_tensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "model/quote.h"

namespace kvsim {
namespace {

using std::string_view_literals::operator""sv;

constexpr std::array accepted_dtypes{Dtype::f64,         Dtype::f32,        Dtype::f16,
                                     Dtype::bf16,        Dtype::f8_e5m2,    Dtype::f8_e4m3,
                                     Dtype::f8_e5m2fnuz, Dtype::f8_e4m3fnuz};

std::string accepted_names() {
  std::string names;
  for (const Dtype dtype : accepted_dtypes) {
    if (!names.empty()) names += ", ";
    names += dtype_info(dtype).name;
  }
  return names;
}

bool is_accepted(Dtype dtype) {
  for (const Dtype accepted : accepted_dtypes) {
    if (dtype == accepted) return true;
  }
  return false;
}

/// The first names of a file, for a message about one that is missing.
std::string names_held(std::span<const Tensor> tensors) {
  constexpr std::size_t most = 8;
  if (tensors.empty()) return "no tensors";
  std::string names;
  for (const Tensor& tensor : tensors.first(std::min(most, tensors.size()))) {
    if (!names.empty()) names += ", ";
    names += quote(tensor.name, 32);
  }
  if (tensors.size() > most) names += fmt::format(" and {} more", tensors.size() - most);
  return names;
}

/// What is wrong with one of the three tensors on its own. Empty: nothing.
std::string problem_of(const Tensor& tensor, std::string_view axes) {
  if (!is_accepted(tensor.dtype)) {
    return fmt::format("has dtype {}; accepted: {}", dtype_info(tensor.dtype).name,
                       accepted_names());
  }
  if (tensor.shape.size() != 3) {
    return fmt::format("has shape {}; accepted: 3 sizes, {}", shape_text(tensor.shape), axes);
  }
  for (const std::int64_t size : tensor.shape) {
    if (size < 1) {
      return fmt::format("has shape {}; accepted: {} with every size at least 1",
                         shape_text(tensor.shape), axes);
    }
  }
  return {};
}

/// What does not fit between the three. Empty: nothing.
std::string mismatch(const Tensor& q, const Tensor& k, const Tensor& v) {
  for (const Tensor* other : {&k, &v}) {
    if (other->dtype != q.dtype) {
      return fmt::format("tensor {} has dtype {} and q has {}; accepted: one dtype for q, k and v",
                         other->name, dtype_info(other->dtype).name, dtype_info(q.dtype).name);
    }
  }
  if (k.shape != v.shape) {
    return fmt::format("k has shape {} and v has {}; accepted: equal shapes", shape_text(k.shape),
                       shape_text(v.shape));
  }
  if (q.shape[2] != k.shape[2]) {
    return fmt::format("q has head_dim {} (shape {}) and k has {} (shape {}); accepted: equal",
                       q.shape[2], shape_text(q.shape), k.shape[2], shape_text(k.shape));
  }
  if (q.shape[0] % k.shape[0] != 0) {
    return fmt::format(
        "q has {} heads and k has {}; accepted: query heads that are a multiple of "
        "the key/value heads",
        q.shape[0], k.shape[0]);
  }
  if (q.shape[1] > k.shape[1]) {
    return fmt::format("q has {} queries for the {} keys of k; accepted: at most one query per key",
                       q.shape[1], k.shape[1]);
  }
  return {};
}

}  // namespace

void CodeView::copy(std::int64_t first, std::span<softfloat::Bits> out) const {
  for (std::size_t index = 0; index < out.size(); ++index) {
    out[index] = (*this)[first + static_cast<std::int64_t>(index)];
  }
}

AttentionTensors::AttentionTensors(SafetensorsFile file, AttentionSizes sizes, Dtype dtype,
                                   CodeView q, CodeView k, CodeView v)
    : file_(std::move(file)), sizes_(sizes), dtype_(dtype), q_(q), k_(k), v_(v) {}

Result<AttentionTensors> AttentionTensors::from(SafetensorsFile file) {
  const auto fail = [&](std::string_view problem) {
    return Error{ErrorKind::usage, fmt::format("{}: {}", quote_path(file.path()), problem)};
  };
  constexpr std::string_view q_axes = "[query_heads, query_len, head_dim]";
  constexpr std::string_view kv_axes = "[kv_heads, kv_len, head_dim]";
  std::array<const Tensor*, 3> found{};
  constexpr std::array names{"q"sv, "k"sv, "v"sv};
  for (std::size_t index = 0; index < names.size(); ++index) {
    found[index] = file.find(names[index]);
    if (found[index] == nullptr) {
      return fail(
          fmt::format("tensor {} is missing, the file holds {}; accepted: a file with the "
                      "tensors q {}, k and v {}",
                      names[index], names_held(file.tensors()), q_axes, kv_axes));
    }
    const std::string problem = problem_of(*found[index], index == 0 ? q_axes : kv_axes);
    if (!problem.empty()) return fail(fmt::format("tensor {} {}", names[index], problem));
  }
  const auto& [q, k, v] = found;
  const std::string problem = mismatch(*q, *k, *v);
  if (!problem.empty()) return fail(problem);
  const Dtype dtype = q->dtype;
  const auto view = [&](const Tensor& tensor) {
    return CodeView(*dtype_info(dtype).format, tensor.bytes);
  };
  const AttentionSizes sizes{q->shape[0], k->shape[0], q->shape[1], k->shape[1], q->shape[2]};
  const std::array views{view(*q), view(*k), view(*v)};
  return AttentionTensors(std::move(file), sizes, dtype, views[0], views[1], views[2]);
}

Result<AttentionTensors> load_attention(const std::string& path) {
  Result<SafetensorsFile> file = SafetensorsFile::open(path);
  if (!file) return file.error();
  return AttentionTensors::from(std::move(*file));
}

}  // namespace kvsim
