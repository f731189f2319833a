// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "sim/predict/shapes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <numeric>
#include <span>
#include <utility>

#include "sim/predict/attention_rule.h"
#include "sim/predict/linear_sample.h"
#include "sim/predict/streams.h"
#include "softfloat/index.h"

namespace kvsim {
namespace {

// Questions of so many different sizes are answered for each of them; beyond, for those given.
constexpr std::int64_t most_swept_sizes = 4096;
// Positions of a chunk that are compared.
constexpr std::int64_t compared_positions = 16;

/// Every size from the smallest to the largest of a list.
std::vector<std::int64_t> swept(std::vector<std::int64_t> sizes) {
  std::sort(sizes.begin(), sizes.end());
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  if (sizes.back() - sizes.front() >= most_swept_sizes) return sizes;
  std::vector<std::int64_t> all(index(sizes.back() - sizes.front() + 1));
  std::iota(all.begin(), all.end(), sizes.front());
  return all;
}

/// A linear layer of the decoder, by its sizes.
struct LayerSize {
  const char* name;
  std::int64_t terms;
  std::int64_t outputs;
  std::uint64_t stream;
};

std::array<LayerSize, 4> linear_layers(const DecoderShape& shape) {
  const std::int64_t q_width = shape.query_heads * shape.head_dim;
  const std::int64_t kv_width = shape.kv_heads * shape.head_dim;
  return {{
      {"q, k, v projection", shape.hidden, q_width + 2 * kv_width, streams::qkv_projection},
      {"output projection", q_width, shape.hidden, streams::output_projection},
      {"MLP up", shape.hidden, shape.ffn, streams::mlp_up},
      {"MLP down", shape.ffn, shape.hidden, streams::mlp_down},
  }};
}

LinearSample make_sample(const ShapeOptions& options, const LayerSize& layer) {
  const LinearSampleSize size{options.rows, layer.terms, std::min(options.outputs, layer.outputs),
                              layer.outputs};
  return make_linear_sample(options.storage, size, options.seed, layer.stream);
}

AttentionShape attention_shape(const ShapeOptions& options, std::int64_t query_len,
                               std::int64_t kv_len) {
  return {options.decoder.query_heads, options.decoder.kv_heads, query_len, kv_len,
          options.decoder.head_dim};
}

AttentionLayer attention_layer(const ShapeOptions& options) {
  return {options.storage, options.mask, static_cast<float>(options.decoder.attention_scale)};
}

/// q, k and v of a sequence that is `kv_len` tokens long.
AttentionNumbers make_sequence(const ShapeOptions& options, std::int64_t kv_len) {
  return make_attention_numbers(InputKind::gaussian, options.seed,
                                attention_shape(options, kv_len, kv_len), options.storage);
}

/// Outputs [count][heads][head_dim] of the queries first … first + count − 1 of a call.
Result<std::vector<float>> run_queries(const ShapeOptions& options, const AttentionNumbers& numbers,
                                       const AttentionLaunch& launch, std::int64_t first,
                                       std::int64_t count) {
  const AttentionShape& shape = numbers.shape;
  const AttentionKernel& kernel = options.kernels.attention(shape.query_len);
  const auto result = run_attention(
      kernel, attention_problem(numbers, attention_layer(options), launch), options.run);
  if (!result) return result.error();
  std::vector<float> out;
  for (std::int64_t query = first; query < first + count; ++query) {
    for (std::int64_t head = 0; head < shape.query_heads; ++head) {
      const auto row = result->out.begin() + static_cast<std::ptrdiff_t>(
                                                 (head * shape.query_len + query) * shape.head_dim);
      out.insert(out.end(), row, row + static_cast<std::ptrdiff_t>(shape.head_dim));
    }
  }
  return out;
}

std::string rule_of(const ShapeOptions& options, const AttentionShape& shape,
                    const AttentionLaunch& launch) {
  return attention_rule(options.kernels.attention(shape.query_len), shape, options.mask, launch);
}

/// Collects the answers; every function adds some, or returns an error.
class Shapes {
 public:
  explicit Shapes(const ShapeOptions& options) : options_(options) {}

  Result<bool> rows(const std::vector<std::int64_t>& sizes) {
    if (auto done = linear_by_rows("rows", sizes); !done) return done;
    const AttentionNumbers row = part_of_sequence(make_sequence(options_, options_.kv_len),
                                                  options_.kv_len - 1, options_.kv_len - 1);
    const auto launch_of = [this](std::int64_t batch) {
      AttentionLaunch launch = options_.launch;
      launch.batch = batch;
      return launch;
    };
    return classify(
        {"rows", "attention", options_.storage,
         [&](std::int64_t batch) -> Result<std::string> {
           return rule_of(options_, row.shape, launch_of(batch));
         },
         [&](std::int64_t batch) { return run_queries(options_, row, launch_of(batch), 0, 1); }},
        sizes);
  }

  Result<bool> verify_widths(const std::vector<std::int64_t>& widths) {
    // One token, the next of the ordinary kind, is the reference.
    std::vector<std::int64_t> sizes = widths;
    sizes.push_back(1);
    if (auto done = linear_by_rows("verify width", sizes); !done) return done;
    const std::int64_t widest = *std::max_element(sizes.begin(), sizes.end());
    const AttentionNumbers sequence = make_sequence(options_, options_.kv_len + widest - 1);
    const std::int64_t position = options_.kv_len - 1;
    return classify({"verify width", "attention", options_.storage,
                     [&](std::int64_t width) -> Result<std::string> {
                       return rule_of(options_, attention_shape(options_, width, position + width),
                                      options_.launch);
                     },
                     [&](std::int64_t width) {
                       return run_queries(
                           options_, part_of_sequence(sequence, position, position + width - 1),
                           options_.launch, 0, 1);
                     }},
                    sizes);
  }

  Result<bool> ranks(const std::vector<std::int64_t>& counts) {
    const DecoderShape& decoder = options_.decoder;
    for (const std::int64_t count : counts) {
      if (decoder.query_heads % count != 0 || decoder.kv_heads % count != 0 ||
          decoder.ffn % count != 0) {
        return Error{ErrorKind::usage,
                     fmt::format("ranks is {}; accepted: divisors of {} query heads, {} K/V heads "
                                 "and an MLP of {}",
                                 count, decoder.query_heads, decoder.kv_heads, decoder.ffn)};
      }
    }
    std::vector<std::int64_t> sizes = counts;
    sizes.push_back(1);
    std::sort(sizes.begin(), sizes.end());
    sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
    for (const LayerSize& layer : linear_layers(decoder)) {
      const bool shares_terms =
          layer.stream == streams::output_projection || layer.stream == streams::mlp_down;
      if (auto done = shares_terms ? terms_by_ranks(layer, sizes) : outputs_by_ranks(layer, sizes);
          !done) {
        return done;
      }
    }
    return heads_by_ranks(sizes);
  }

  /// A prompt in parts, each with those before it in the cache, against the prompt at once.
  Result<bool> parts(const char* question, const std::vector<std::int64_t>& lengths,
                     std::size_t first_computed) {
    const std::int64_t total = std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
    const AttentionNumbers sequence = make_sequence(options_, total);
    const auto whole = run_queries(options_, sequence, options_.launch, 0, total);
    if (!whole) return whole.error();
    std::int64_t first = 0;
    for (std::size_t i = 0; i < lengths.size(); ++i) {
      const std::int64_t last = first + lengths[i] - 1;
      if (i >= first_computed) {
        if (auto done = part(question, sequence, *whole, first, last); !done) return done;
      }
      first = last + 1;
    }
    return true;
  }

  [[nodiscard]] ShapeReport take() { return std::move(report_); }

 private:
  Result<bool> classify(const SizedOperator& sized, const std::vector<std::int64_t>& sizes) {
    const std::vector<std::int64_t> all = sized.question == "ranks" ? sizes : swept(sizes);
    auto classes = classify_sizes(sized, all, all.front());
    if (!classes) return classes.error();
    report_.classes.push_back(std::move(*classes));
    return true;
  }

  /// The linear layers in launches of other numbers of rows.
  Result<bool> linear_by_rows(const char* question, const std::vector<std::int64_t>& sizes) {
    for (const LayerSize& layer : linear_layers(options_.decoder)) {
      const LinearSample sample = make_sample(options_, layer);
      const Result<bool> done =
          classify({question, layer.name, options_.storage,
                    [&](std::int64_t rows) { return linear_rule(sample, options_.kernels, rows); },
                    [&](std::int64_t rows) {
                      return run_linear(sample, options_.kernels, {0, sample.rows, rows},
                                        options_.run.engine);
                    }},
                   sizes);
      if (!done) return done;
    }
    return true;
  }

  Result<bool> terms_by_ranks(const LayerSize& layer, const std::vector<std::int64_t>& sizes) {
    const LinearSample sample = make_sample(options_, layer);
    return classify(
        {"ranks", layer.name, options_.storage,
         [&](std::int64_t ranks) { return linear_rule(sample, options_.kernels, 1, ranks); },
         [&](std::int64_t ranks) {
           return run_linear_on_ranks(sample, options_.kernels, {0, sample.rows, 1}, ranks,
                                      options_.run.engine);
         }},
        sizes);
  }

  /// Each rank computes a share of the outputs: only the choice of the kernel can change.
  Result<bool> outputs_by_ranks(const LayerSize& layer, const std::vector<std::int64_t>& sizes) {
    LinearSample sample = make_sample(options_, layer);
    const std::int64_t all_outputs = sample.all_outputs;
    const auto on_rank = [&sample, all_outputs](std::int64_t ranks) -> const LinearSample& {
      sample.all_outputs = std::max(sample.outputs, all_outputs / ranks);
      return sample;
    };
    return classify(
        {"ranks", layer.name, options_.storage,
         [&](std::int64_t ranks) { return linear_rule(on_rank(ranks), options_.kernels, 1); },
         [&](std::int64_t ranks) {
           return run_linear(on_rank(ranks), options_.kernels, {0, sample.rows, 1},
                             options_.run.engine);
         }},
        sizes);
  }

  /// Each rank computes a share of the heads; compared are those of the first.
  Result<bool> heads_by_ranks(const std::vector<std::int64_t>& sizes) {
    const std::int64_t most = sizes.back();
    const AttentionNumbers all = part_of_sequence(make_sequence(options_, options_.kv_len),
                                                  options_.kv_len - 1, options_.kv_len - 1);
    const auto on_rank = [&](std::int64_t ranks) {
      AttentionNumbers part = all;
      part.shape.query_heads /= ranks;
      part.shape.kv_heads /= ranks;
      part.q.resize(index(part.shape.query_heads * part.shape.head_dim));
      part.k.resize(index(part.shape.kv_heads * part.shape.kv_len * part.shape.head_dim));
      part.v.resize(part.k.size());
      return part;
    };
    const std::int64_t compared = all.shape.query_heads / most * all.shape.head_dim;
    return classify({"ranks", "attention", options_.storage,
                     [&](std::int64_t ranks) -> Result<std::string> {
                       return rule_of(options_, on_rank(ranks).shape, options_.launch);
                     },
                     [&](std::int64_t ranks) -> Result<std::vector<float>> {
                       auto out = run_queries(options_, on_rank(ranks), options_.launch, 0, 1);
                       if (out) out->resize(index(compared));
                       return out;
                     }},
                    sizes);
  }

  Result<bool> part(const char* question, const AttentionNumbers& sequence,
                    const std::vector<float>& whole, std::int64_t first, std::int64_t last) {
    const std::int64_t total = sequence.shape.kv_len;
    const std::int64_t count = std::min(compared_positions, last - first + 1);
    const AttentionNumbers chunk = part_of_sequence(sequence, first, last);
    const auto out = run_queries(options_, chunk, options_.launch, last - first + 1 - count, count);
    if (!out) return out.error();
    const std::int64_t width = sequence.shape.query_heads * sequence.shape.head_dim;
    const auto same =
        std::span(whole).subspan(index((last + 1 - count) * width), index(count * width));
    report_.chunks.push_back({question, "attention", first, last, count,
                              rule_of(options_, chunk.shape, options_.launch),
                              rule_of(options_, sequence.shape, options_.launch),
                              compare_vectors(options_.storage, *out, same)});
    for (const LayerSize& layer : linear_layers(options_.decoder)) {
      const LinearSample sample = make_sample(options_, layer);
      auto rule = linear_rule(sample, options_.kernels, last - first + 1);
      if (!rule) return rule.error();
      auto whole_rule = linear_rule(sample, options_.kernels, total);
      if (!whole_rule) return whole_rule.error();
      const auto of_chunk = run_linear(sample, options_.kernels, {0, sample.rows, last - first + 1},
                                       options_.run.engine);
      if (!of_chunk) return of_chunk.error();
      const auto of_whole =
          run_linear(sample, options_.kernels, {0, sample.rows, total}, options_.run.engine);
      if (!of_whole) return of_whole.error();
      report_.chunks.push_back({question, layer.name, first, last, sample.rows, std::move(*rule),
                                std::move(*whole_rule),
                                compare_vectors(options_.storage, *of_chunk, *of_whole)});
    }
    return true;
  }

  const ShapeOptions& options_;
  ShapeReport report_;
};

}  // namespace

Result<ShapeReport> answer_shapes(const ShapeOptions& options, const ShapeQuestions& questions) {
  Shapes shapes(options);
  if (!questions.rows.empty()) {
    if (auto done = shapes.rows(questions.rows); !done) return done.error();
  }
  if (questions.new_tokens > 0) {
    if (auto done = shapes.parts("prefix hit", {questions.cached, questions.new_tokens}, 1);
        !done) {
      return done.error();
    }
  }
  if (!questions.chunks.empty()) {
    if (auto done = shapes.parts("chunks", questions.chunks, 0); !done) return done.error();
  }
  if (!questions.verify_widths.empty()) {
    if (auto done = shapes.verify_widths(questions.verify_widths); !done) return done.error();
  }
  if (!questions.ranks.empty()) {
    if (auto done = shapes.ranks(questions.ranks); !done) return done.error();
  }
  return shapes.take();
}

}  // namespace kvsim
