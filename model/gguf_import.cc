// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "model/gguf_import.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <map>
#include <optional>
#include <utility>

#include "model/gguf_tensors.h"
#include "model/quote.h"
#include "model/safetensors_writer.h"
#include "model/tokenizer_writer.h"

namespace kvsim {
namespace {

std::int64_t elements_of(const ExpectedWeight& weight) {
  std::int64_t elements = 1;
  for (const std::int64_t size : weight.shape) elements *= size;
  return elements;
}

/// Converts one weight after the other, in pieces that fit into memory.
class WeightWriter {
 public:
  WeightWriter(const GgufFile& file, const DequantisedSource& source,
               const std::function<void(double)>& progress, FolderWriter& folder)
      : file_(file), source_(source), progress_(progress), folder_(folder) {}

  Result<bool> write() {
    std::vector<Tensor> tensors;
    tensors.reserve(file_.model().weights.size());
    for (const GgufWeight& weight : file_.model().weights) {
      tensors.push_back({weight.weight.name, file_.dtype(), weight.weight.shape, {}});
    }
    const Result<std::string> prefix = safetensors_prefix_of_shapes(tensors);
    if (!prefix) return prefix.error();
    Result<bool> begun = folder_.write_file("model.safetensors", *prefix);
    if (!begun) return begun;
    for (const GgufWeight& weight : file_.model().weights) {
      if (Result<bool> done = write_weight(weight); !done) return done;
    }
    return true;
  }

 private:
  Result<bool> write_weight(const GgufWeight& weight) {
    constexpr std::int64_t piece = std::int64_t{1} << 20;
    const std::int64_t elements = elements_of(weight.weight);
    const bool by_head = weight.change == GgufChange::unpermute;
    const std::int64_t columns = weight.weight.shape.size() == 2 ? weight.weight.shape[1] : 1;
    const std::int64_t step = by_head ? file_.model().config.head_dim * columns : piece;
    for (std::int64_t at = 0; at < elements; at += step) {
      values_.resize(static_cast<std::size_t>(std::min(step, elements - at)));
      if (Result<bool> read = source_(values_); !read) return read;
      if (by_head) unpermute_head(values_, columns);
      if (weight.change == GgufChange::minus_one) {
        for (float& value : values_) value -= 1.0F;
      }
      if (const auto error = check(weight, at)) return *error;
      if (Result<bool> written = write_values(); !written) return written;
      done_ += static_cast<std::int64_t>(values_.size());
      progress_(static_cast<double>(done_) / static_cast<double>(file_.elements()));
    }
    return true;
  }

  [[nodiscard]] std::optional<Error> check(const GgufWeight& weight, std::int64_t first) const {
    const bool narrow = file_.dtype() == Dtype::bf16;
    const auto is_bad = [&](float value) {
      constexpr std::uint16_t exponent = 0x7f80;
      return !std::isfinite(value) || (narrow && (to_bfloat16(value) & exponent) == exponent);
    };
    const auto bad = std::ranges::find_if(values_, is_bad);
    if (bad == values_.end()) return std::nullopt;
    return Error{ErrorKind::file,
                 fmt::format("{}: tensor {}: element {} is {}; accepted: finite numbers of {}",
                             quote_path(file_.path()), quote(weight.tensor),
                             first + (bad - values_.begin()), *bad, narrow ? "bf16" : "f32")};
  }

  Result<bool> write_values() {
    if (file_.dtype() != Dtype::bf16) return folder_.write(std::as_bytes(std::span(values_)));
    codes_.resize(values_.size());
    std::ranges::transform(values_, codes_.begin(), to_bfloat16);
    return folder_.write(std::as_bytes(std::span(codes_)));
  }

  const GgufFile& file_;
  const DequantisedSource& source_;
  const std::function<void(double)>& progress_;
  FolderWriter& folder_;
  std::vector<float> values_;
  std::vector<std::uint16_t> codes_;
  std::int64_t done_ = 0;
};

}  // namespace

std::uint16_t to_bfloat16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  // Half a unit, less where the kept part is even: a carry into it rounds up.
  return static_cast<std::uint16_t>((bits + 0x7fffU + (bits >> 16U & 1U)) >> 16U);
}

Result<GgufFile> GgufFile::open(const std::string& path, Dtype dtype) {
  GgufFile file;
  file.path_ = path;
  file.dtype_ = dtype;
  Result<MappedFile> mapping = MappedFile::open(path);
  if (!mapping) return mapping.error();
  file.mapping_ = std::move(*mapping);
  const std::string source = quote_path(path);
  const Result<GgufMetadata> metadata = GgufMetadata::parse(file.bytes(), source);
  if (!metadata) return metadata.error();
  Result<std::vector<GgufTensor>> tensors = read_gguf_tensors(file.bytes(), *metadata, source);
  if (!tensors) return tensors.error();
  file.tensors_ = std::move(*tensors);
  Result<GgufModel> model = read_gguf_model(*metadata, file.tensors_, dtype, source);
  if (!model) return model.error();
  file.model_ = std::move(*model);
  return file;
}

std::vector<std::string> GgufFile::tensor_names() const {
  std::vector<std::string> names;
  names.reserve(model_.weights.size());
  for (const GgufWeight& weight : model_.weights) names.push_back(weight.tensor);
  return names;
}

std::int64_t GgufFile::elements() const {
  std::int64_t elements = 0;
  for (const GgufWeight& weight : model_.weights) elements += elements_of(weight.weight);
  return elements;
}

std::string GgufFile::encodings() const {
  std::map<std::string_view, std::size_t> counts;
  for (const GgufTensor& tensor : tensors_) ++counts[tensor.encoding];
  std::vector<std::pair<std::string_view, std::size_t>> rows(counts.begin(), counts.end());
  std::ranges::sort(rows, [](const auto& a, const auto& b) {
    return a.second != b.second ? a.second > b.second : a.first < b.first;
  });
  std::string text;
  for (const auto& [name, count] : rows) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, count);
  }
  return text;
}

Result<bool> import_gguf(const GgufFile& file, const DequantisedSource& source,
                         const std::function<void(double)>& progress, FolderWriter& folder) {
  const Result<std::vector<TextFile>> tokenizer = gguf_tokenizer_files(
      file.bytes(), file.model().architecture->tokenizer, quote_path(file.path()));
  if (!tokenizer) return tokenizer.error();
  std::vector<TextFile> files = *tokenizer;
  files.push_back({"config.json", file.model().config_json});
  files.push_back({"generation_config.json", file.model().generation_config});
  for (const TextFile& each : files) {
    if (Result<bool> written = folder.write_file(each.name, each.text); !written) return written;
  }
  return WeightWriter(file, source, progress, folder).write();
}

}  // namespace kvsim
