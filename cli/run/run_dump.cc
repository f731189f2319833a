// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "cli/run/run_dump.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <span>
#include <system_error>

#include "cli/printable.h"
#include "model/safetensors_writer.h"

namespace kvsim {
namespace {

template <class T>
std::span<const std::byte> bytes_of(const std::vector<T>& numbers) {
  return std::as_bytes(std::span(numbers));
}

/// Rows of K or V as one tensor. Every layer and head has the same positions.
struct Dense {
  std::vector<std::int64_t> shape;
  std::vector<float> numbers;
};

template <class Rows>
Dense dense(const Rows& rows) {
  Dense result;
  const auto& [last, row] = *rows.rbegin();
  result.shape = {last.layer + 1, last.head + 1, last.position + 1, std::ssize(row)};
  result.numbers.reserve(rows.size() * row.size());
  for (const auto& [key, values] : rows) {
    result.numbers.insert(result.numbers.end(), values.begin(), values.end());
  }
  return result;
}

/// What a file holds of a number.
float in_float(double x) { return static_cast<float>(x); }

}  // namespace

Result<bool> RunDump::add(const StepDump& step) {
  const std::lock_guard lock(mutex_);
  Tensors& tensors = open_[{step.prompt, step.arm}];
  ++tensors.steps;
  if (with_logits_) {
    tensors.logits.insert(tensors.logits.end(), step.logits.begin(), step.logits.end());
  }
  for (const StateValues& piece : step.values) {
    if (piece.operation == "hidden") {
      tensors.layers = std::max(tensors.layers, piece.layer + 1);
      tensors.width = std::ssize(piece.values);
      std::ranges::transform(piece.values, std::back_inserter(tensors.hidden), in_float);
    } else {
      auto& rows = piece.operation == "k" ? tensors.k : tensors.v;
      std::vector<float>& row = rows[Key{piece.layer, piece.head, piece.position}];
      row.resize(piece.values.size());
      std::ranges::transform(piece.values, row.begin(), in_float);
    }
  }
  return true;
}

Result<bool> RunDump::write(std::int64_t prompt, std::size_t arm, const Tensors& tensors) {
  std::vector<Tensor> list;
  if (with_logits_) {
    list.push_back(
        {"logits", Dtype::f64, {tensors.steps, run_.vocabulary()}, bytes_of(tensors.logits)});
  }
  if (!tensors.hidden.empty()) {
    list.push_back({"hidden",
                    Dtype::f32,
                    {tensors.steps, tensors.layers, tensors.width},
                    bytes_of(tensors.hidden)});
  }
  Dense k;
  Dense v;
  if (!tensors.k.empty() && !tensors.v.empty()) {
    k = dense(tensors.k);
    v = dense(tensors.v);
    list.push_back({"k", Dtype::f32, k.shape, bytes_of(k.numbers)});
    list.push_back({"v", Dtype::f32, v.shape, bytes_of(v.numbers)});
  }
  const Arm& of = run_.arms()[arm].arm;
  const std::vector<MetadataEntry> metadata{{"prompt", std::to_string(prompt)},
                                            {"arm", to_text_with_label(of)}};
  const std::string path = fmt::format("{}/prompt-{}.arm-{}.safetensors", folder_, prompt, arm);
  const auto written = write_safetensors(path, list, metadata);
  if (!written) return written.error();
  return true;
}

Result<bool> RunDump::finish() {
  std::error_code error;
  std::filesystem::create_directories(folder_, error);
  if (error) {
    return Error{ErrorKind::file,
                 fmt::format("{}: cannot be made: {}", printable(folder_), error.message())};
  }
  for (const auto& [key, tensors] : open_) {
    if (auto written = write(key.first, key.second, tensors); !written) return written;
  }
  open_.clear();
  return true;
}

}  // namespace kvsim
