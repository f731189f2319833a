// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The kvsim authors
#include "cli/predict/prediction_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "cli/format_option.h"
#include "cli/number_list.h"
#include "cli/predict/attention_inputs.h"
#include "cli/predict/named_shape.h"
#include "cli/predict/rope_option.h"
#include "cli/printable.h"
#include "cli/replay/settings.h"
#include "model/margins_file.h"

namespace kvsim {
namespace {

constexpr std::int64_t most_positions = std::int64_t{1} << 20;
constexpr std::int64_t most_list = 4096;

/// Takes the layer of --tensors: its sizes, its format and its numbers.
Result<bool> take_tensors(const ParsedOptions& options, PredictionRequest& request) {
  const auto given = given_attention(options);
  if (!given) return given.error();
  if (given->storage->format.width() > 16) {
    return Error{ErrorKind::usage,
                 fmt::format("{} has {}; float16 and bfloat16 are accepted, or an option about "
                             "orders such as --order sequential",
                             given->source, given->storage->name)};
  }
  AttentionNumbers numbers;
  numbers.shape = given->shape;
  numbers.q.assign(given->values.q.begin(), given->values.q.end());
  numbers.k.assign(given->values.k.begin(), given->values.k.end());
  numbers.v.assign(given->values.v.begin(), given->values.v.end());
  DecoderShape& shape = request.options.decoder;
  shape = {};
  shape.name = "the tensors' sizes";
  shape.query_heads = given->shape.query_heads;
  shape.kv_heads = given->shape.kv_heads;
  shape.head_dim = given->shape.head_dim;
  shape.hidden = shape.query_heads * shape.head_dim;
  shape.ffn = 4 * shape.hidden;
  shape.layers = layers_of_sizes;
  request.options.kv_len = given->shape.kv_len;
  request.storage = given->storage;
  request.captured = std::make_shared<const AttentionNumbers>(std::move(numbers));
  request.options.captured = request.captured.get();
  request.input_source = given->source;
  request.input_name = given->source;
  return true;
}

Result<bool> take_synthetic(const ParsedOptions& options, const std::string& dtype,
                            PredictionRequest& request) {
  const bool is_known = dtype == "float16" || dtype == "bfloat16";
  const auto storage =
      format_named("--format", options.value("--format").value_or(is_known ? dtype : "binary16"));
  if (!storage) return storage.error();
  request.storage = *storage;
  constexpr std::array<std::string_view, 2> names{"gaussian", "outliers"};
  const std::string kind = options.value("--input").value_or("gaussian");
  if (kind != names[0] && kind != names[1]) return unknown_word("--input", kind, names);
  request.options.input = kind == "gaussian" ? InputKind::gaussian : InputKind::outliers;
  request.input_name = kind;
  request.input_source = fmt::format("{}, seed {}", kind, request.options.seed);
  return true;
}

Result<bool> take_questions(const ParsedOptions& options, bool is_quick,
                            PredictionOptions& prediction) {
  ShapeQuestions& questions = prediction.questions;
  const auto list = [&](std::string_view name, std::vector<std::int64_t>& into) -> Result<bool> {
    const auto numbers = integer_list_option(options, name, 1, most_positions, most_list);
    if (!numbers) return numbers.error();
    into = *numbers;
    return true;
  };
  for (const auto& [name, into] :
       {std::pair{"--rows", &questions.rows}, std::pair{"--chunks", &questions.chunks},
        std::pair{"--verify-width", &questions.verify_widths},
        std::pair{"--ranks", &questions.ranks}}) {
    if (auto done = list(name, *into); !done) return done;
  }
  const auto cached = integer_option(options, "--cached", 0, 1, most_positions);
  if (!cached) return cached.error();
  const auto fresh = integer_option(options, "--new", 0, 1, most_positions);
  if (!fresh) return fresh.error();
  if (options.has("--cached") != options.has("--new")) {
    return Error{ErrorKind::usage, fmt::format("{} is given without {}; both are accepted together",
                                               options.has("--cached") ? "--cached" : "--new",
                                               options.has("--cached") ? "--new" : "--cached")};
  }
  questions.cached = *cached;
  questions.new_tokens = *fresh;
  const bool is_asked = !questions.rows.empty() || !questions.chunks.empty() ||
                        !questions.verify_widths.empty() || !questions.ranks.empty() ||
                        questions.new_tokens > 0;
  if (is_asked) return true;
  questions.rows = {1, 64};
  if (is_quick) return true;
  for (std::int64_t width = 2; width <= 16; ++width) questions.verify_widths.push_back(width);
  if (prediction.kv_len > 32) {
    // A cache hit of half the prompt, of at most 2,048 tokens.
    questions.cached = std::min<std::int64_t>(1024, prediction.kv_len / 2);
    questions.new_tokens = questions.cached;
  }
  for (const std::int64_t ranks : {1, 2, 4}) {
    if (prediction.decoder.query_heads % ranks == 0 && prediction.decoder.kv_heads % ranks == 0 &&
        prediction.decoder.ffn % ranks == 0) {
      questions.ranks.push_back(ranks);
    }
  }
  return true;
}

Result<bool> take_margins(const ParsedOptions& options, PredictionOptions& prediction) {
  prediction.margins = built_in_margins();
  const auto path = options.value("--margins");
  if (!path) return true;
  const auto list = load_margins(*path);
  if (!list) return list.error();
  MarginHistogram& margins = prediction.margins;
  margins.name = list->model.empty() ? printable(*path, path->size()) : printable(list->model);
  margins.source = printable(*path, path->size());
  margins.bins = bin_margins(list->margins);
  if (!list->top_logits.empty()) {
    std::vector<double> tops = list->top_logits;
    std::sort(tops.begin(), tops.end());
    margins.top_logit = tops[tops.size() / 2];
  }
  return true;
}

Result<bool> take_sizes(const ParsedOptions& options, PredictionOptions& prediction) {
  const bool is_quick = options.has("--quick");
  const auto size = [&](std::string_view name, std::int64_t fallback, std::int64_t most,
                        std::int64_t& into) -> Result<bool> {
    const auto value = integer_option(options, name, fallback, 1, most);
    if (!value) return value.error();
    into = *value;
    return true;
  };
  if (prediction.captured == nullptr) {
    if (auto done = size("--kv-len", is_quick ? 128 : 512, most_positions, prediction.kv_len);
        !done) {
      return done;
    }
  }
  const std::int64_t layers =
      is_quick ? std::min<std::int64_t>(2, prediction.decoder.layers) : prediction.decoder.layers;
  if (auto done = size("--layers", layers, prediction.decoder.layers, prediction.layers); !done) {
    return done;
  }
  if (auto done = size("--prefix", is_quick ? 4 : 16, 1024, prediction.prefix); !done) return done;
  return size("--trials", is_quick ? 500 : 2000, 1000000, prediction.trials);
}

Result<bool> take_exp(const ParsedOptions& options, PredictionRequest& request) {
  auto settings = ExpSettings::from(options);
  if (!settings) return settings.error();
  request.exp = std::make_shared<const ExpSettings>(std::move(*settings));
  request.options.exp_ulp = request.exp->ulp();
  if (const auto table = request.exp->table()) {
    request.exp_table = std::make_shared<const ExpTable>(*table);
    request.options.exp.table = request.exp_table.get();
  }
  return true;
}

/// Bounds the memory of a layer (q, k and v of so many tokens) and the time of its prefill.
Result<bool> check_tokens(std::string_view what, std::int64_t tokens, bool is_prefilled,
                          const DecoderShape& decoder) {
  constexpr std::int64_t most_elements = std::int64_t{1} << 25;
  constexpr std::int64_t most_queries = std::int64_t{1} << 27;
  constexpr double most_work = 0x1p38;
  const std::int64_t per_token = 2 * decoder.kv_heads * decoder.head_dim;
  const std::int64_t elements = per_token * tokens;
  if (elements > most_elements) {
    return Error{ErrorKind::usage,
                 fmt::format("{} has {} tokens, {} elements of k and v; at most {} elements are "
                             "accepted",
                             what, tokens, elements, most_elements)};
  }
  if (decoder.query_heads * decoder.head_dim * tokens > most_queries) {
    return Error{
        ErrorKind::usage,
        fmt::format("{} has {} tokens, {} elements of q; at most {} elements are accepted", what,
                    tokens, decoder.query_heads * decoder.head_dim * tokens, most_queries)};
  }
  const double work = static_cast<double>(decoder.query_heads * decoder.head_dim) *
                      static_cast<double>(tokens) * static_cast<double>(tokens);
  if (is_prefilled && work > most_work) {
    return Error{
        ErrorKind::usage,
        fmt::format("{} has {} tokens, whose prefill takes {:.3g} multiply-adds a layer; at "
                    "most {:.3g} are accepted",
                    what, tokens, work, most_work)};
  }
  return true;
}

Result<bool> check_work(const PredictionOptions& prediction) {
  const DecoderShape& decoder = prediction.decoder;
  const ShapeQuestions& questions = prediction.questions;
  if (auto fits = check_tokens("--kv-len", prediction.kv_len, false, decoder); !fits) return fits;
  std::int64_t chunks = 0;
  for (const std::int64_t chunk : questions.chunks) chunks += chunk;
  if (auto fits = check_tokens("--chunks", chunks, true, decoder); !fits) return fits;
  if (auto fits = check_tokens("--cached and --new", questions.cached + questions.new_tokens, true,
                               decoder);
      !fits) {
    return fits;
  }
  std::int64_t widest = 1;
  for (const std::int64_t width : questions.verify_widths) widest = std::max(widest, width);
  return check_tokens("--verify-width behind --kv-len", prediction.kv_len + widest - 1, false,
                      decoder);
}

}  // namespace

Result<PredictionRequest> prediction_request(const ParsedOptions& options) {
  if (options.has("--query-len") && !options.has("--tensors")) {
    return Error{ErrorKind::usage,
                 "--query-len is given without an option about orders; accepted with --order, for "
                 "instance"};
  }
  PredictionRequest request;
  PredictionOptions& prediction = request.options;
  auto named = named_shape(options);
  if (!named) return named.error();
  prediction.decoder = named->shape;
  request.shape_source = named->source;
  request.unused_fields = named->unused;
  const auto device = find_dispatch(options.value("--device").value_or("h100"));
  if (!device) {
    return Error{device.error().kind, fmt::format("--device: {}", device.error().message)};
  }
  prediction.device = *device;
  prediction.on = options.value("--on").value_or("decode");
  prediction.off = options.value("--off").value_or("prefill");
  const auto kernels = choose_kernels(*prediction.device, prediction.on, prediction.off);
  if (!kernels) return kernels.error();
  const auto seed =
      integer_option(options, "--seed", 1, 0, std::numeric_limits<std::int64_t>::max());
  if (!seed) return seed.error();
  prediction.seed = static_cast<std::uint64_t>(*seed);
  const auto engine = engine_options(options);
  if (!engine) return engine.error();
  prediction.engine = *engine;
  if (auto done = options.has("--tensors") ? take_tensors(options, request)
                                           : take_synthetic(options, named->dtype, request);
      !done) {
    return done.error();
  }
  prediction.storage = request.storage->format;
  if (auto done = take_sizes(options, prediction); !done) return done.error();
  prediction.positions = options.has("--quick") ? 1 : 4;
  if (auto done = take_questions(options, options.has("--quick"), prediction); !done) {
    return done.error();
  }
  if (auto done = take_margins(options, prediction); !done) return done.error();
  if (auto done = take_exp(options, request); !done) return done.error();
  if (auto fits = check_shape(prediction.decoder); !fits) return fits.error();
  Result<GivenRope> rope = given_rope(options, prediction.decoder, prediction.storage);
  if (!rope) return rope.error();
  request.rope = std::move(rope->name);
  request.rope_setting = std::move(rope->setting);
  prediction.rope_source = std::move(rope->source);
  if (auto fits = check_work(prediction); !fits) return fits.error();
  return request;
}

}  // namespace kvsim
